"""The pages over HTTP: tokens, headers, addresses, errors and health."""

import re
from datetime import timedelta

import pytest

import calibrant as cb

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "store.db")
    for name in ("a", "b"):
        cb.Monitor(path, model=name).observe([0, 1, 0, 1], [0.2, 0.7, 0.3, 0.6], time="2026-01-01")
    return path


def text(reply):
    return reply.body.decode()


def test_pages_have_strict_headers_and_nothing_inline(service):
    for path in ("/", "/model?name=a", "/nothing", "/model?name=nothing"):
        reply = service.request("GET", path)
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "Set-Cookie" not in reply.headers
        assert not re.search(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=", text(reply))


def test_static_files_are_cached_by_their_content_and_nothing_else_is_served(service):
    page = text(service.request("GET", "/"))
    links = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(links) == 5
    for link in links:
        reply = service.request("GET", link.replace("&amp;", "&"))
        assert reply.status == 200
        assert "immutable" in reply.headers["Cache-Control"]
    for name in ("page.html", "..%2f..%2fversions.py", "%2e%2e", "service_model.html"):
        assert service.request("GET", f"/static/{name}").status == 404


def test_an_unchanged_page_is_not_sent_again(service):
    first = service.request("GET", "/model?name=a")
    again = service.request("GET", "/model?name=a", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    cb.MonitorClient(service.url, model="a").observe([1], [0.5], time="2026-01-02")
    changed = service.request("GET", "/model?name=a", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status == 200


def test_a_link_with_a_token_shows_its_models_only_and_keeps_the_token(service):
    token = service.token("read", "a")
    page = service.request("GET", f"/?token={token}")
    assert page.status == 200
    assert ">a</bdi>" in text(page)
    assert ">b</bdi>" not in text(page)
    assert f"/model?name=a&amp;token={token}" in text(page)
    assert service.request("GET", f"/model?name=a&token={token}").status == 200
    assert service.request("GET", f"/model?name=b&token={token}").status == 403


def test_pages_need_a_token_where_there_are_tokens(service):
    token = service.token("admin")
    for path in ("/", "/model?name=a", "/model?name=nothing"):
        for given in (None, "wrong"):
            reply = service.request("GET", path, token=given)
            assert reply.status == 401
            assert 'name="token"' in text(reply)
        assert service.request("GET", f"{path}{'&' if '?' in path else '?'}token={token}").status == 403
    assert 'name="name" value="a"' in text(service.request("GET", "/model?name=a"))
    assert service.request("GET", "/model?name=a", token=token).status == 200
    wrong = text(service.request("GET", "/?token=cal_guess"))
    assert "cal_guess" not in wrong


def test_an_expired_token_opens_no_page(service):
    service.token("admin")
    token = service.token("read", lifetime=timedelta(microseconds=1))
    assert service.request("GET", f"/?token={token}").status == 401


def test_the_store_without_models_says_how_to_post_rows(run_service, tmp_path):
    with run_service(str(tmp_path / "empty.db")) as found:
        page = text(found.request("GET", "/"))
        assert "No model is monitored" in page
        code = page.split("<pre", 1)[1].split(">", 1)[1].split("</pre>")[0]
        exec(code.replace("&#34;", '"').replace("&#39;", "'"), {})
        assert cb.MonitorClient(found.url).models() == ["churn"]
        assert "churn" in text(found.request("GET", "/"))


def test_unknown_pages_models_versions_and_groups_are_errors_that_say_so(service):
    assert service.request("GET", "/nothing").status == 404
    assert service.request("GET", "/model").status == 404
    assert "none with this name" in text(service.request("GET", "/model?name=nothing"))
    bad = service.request("GET", "/model?name=a&version=9")
    assert bad.status == 400
    assert "version must be a version of the model" in text(bad)
    assert service.request("GET", "/model?name=a&group=x").status == 400
    assert service.request("POST", "/").status == 405
    assert service.request("GET", "/?page=x&sort=y").status == 200


def test_health_needs_no_token_and_names_no_model(service):
    service.token("read")
    for path, answer in (("/healthz", b"ok\n"), ("/readyz", b"ready\n")):
        reply = service.request("GET", path)
        assert (reply.status, reply.body) == (200, answer)


def test_a_service_that_stops_is_not_ready_but_alive(service):
    service.service.stop()
    assert service.request("GET", "/readyz").status == 503
    assert service.request("GET", "/healthz").status == 200


def test_a_model_that_was_deleted_and_created_again_has_a_new_page(service):
    client = cb.MonitorClient(service.url, model="again")
    shown = []
    for n in (3, 5):
        client.create()
        client.observe([0, 1] * n, [0.2, 0.7] * n, time="2026-01-01")
        shown.append([text(service.request("GET", path)) for path in ("/?q=again", "/model?name=again")])
        client.delete()
        assert service.request("GET", "/model?name=again").status == 404
        assert "again</bdi>" not in text(service.request("GET", "/?q=again"))
    for page, rows in zip(shown, (6, 10), strict=True):
        assert f"+ {rows} open" in page[0]
        assert f"{rows} more in 1 open" in page[1]


def test_a_page_that_updates_itself_is_drawn_a_tenth_of_the_time(service):
    client = cb.MonitorClient(service.url, model="a")
    first = service.request("GET", "/model?name=a")
    client.observe([1], [0.5], time="2026-01-01")
    live = service.request("GET", "/model?name=a", headers={"X-Calibrant-Live": "1"})
    assert live.body == first.body
    assert 0 < float(live.headers["Calibrant-Refresh"]) <= 15
    fresh = service.request("GET", "/model?name=a")
    assert fresh.body != first.body
    assert "Calibrant-Refresh" not in fresh.headers
    again = service.request(
        "GET", "/model?name=a", headers={"X-Calibrant-Live": "1", "If-None-Match": fresh.headers["ETag"]}
    )
    assert (again.status, "Calibrant-Refresh" in again.headers) == (304, False)
