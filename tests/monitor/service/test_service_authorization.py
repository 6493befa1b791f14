"""Who may do what: each endpoint with each kind of token, on both stores."""

import logging
import re
from datetime import timedelta

import pytest
from starlette.requests import Request

import calibrant as cb
from calibrant import InputError
from calibrant.monitor import schema
from calibrant.monitor.service.access_tokens import TokenBook, check_access
from calibrant.monitor.service.endpoints import ENDPOINTS
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.server import check_address
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.store import Store

BODIES = {
    "create": {},
    "observe": {"y": 1, "p": 0.5, "time": "2026-01-01"},
    "predict": {"id": "a", "p": 0.5, "time": "2026-01-01"},
    "outcome": {"id": "a", "y": 1},
    "add_table": {"score": [0.5], "n": [1], "k": [1], "time": "2026-01-01"},
    "close": {},
    "acknowledge": {"reason": "seen"},
    "silence": {"until": "2999-01-01", "reason": "work"},
}
PUBLIC = {"health", "openapi"}
# Lists that any token of the scope may read; they show its own models only.
OF_ALL_MODELS = {"models", "events", "metrics", "audit"}


@pytest.fixture(scope="module")
def callers():
    """Names of callers; the function of the service returns their tokens."""
    return ("none", "wrong", "read", "write", "admin", "other read", "other write", "other admin", "revoked", "expired")


def make_tokens(service):
    found = {"none": None, "wrong": "cbt_0123456789ab_" + "x" * 43}
    for scope in ("read", "write", "admin"):
        found[scope] = service.token(scope, "own")
        found[f"other {scope}"] = service.token(scope, "other")
    book = TokenBook(Store(service.settings.store))
    found["revoked"] = service.token("admin")
    book.revoke(found["revoked"].split("_")[1])
    found["expired"] = service.token("admin", lifetime=timedelta(microseconds=1))
    return found


def expected(endpoint, caller):
    """Return the status without rights, or None if the request is allowed."""
    if endpoint.scope is None:
        return None
    if caller in ("none", "wrong", "revoked", "expired"):
        return 401
    scope = caller.split()[-1]
    if scope not in (endpoint.scope, "admin"):
        return 403
    if "{model}" in endpoint.path and caller.startswith("other"):
        return 403
    return 403 if endpoint.name == "audit" else None  # the audit log needs a token for all models


def test_each_endpoint_checks_each_token(service, callers):
    cb.Monitor(service.settings.store, model="own").observe([0, 1], [0.5, 0.5], time="2026-01-01")
    cb.Monitor(service.settings.store, model="other")
    tokens = make_tokens(service)
    wrong = []
    # What deletes the model comes last.
    for endpoint in sorted(ENDPOINTS, key=lambda each: each.name == "delete"):
        path = endpoint.path.format(model="own", alarm=1, silence=1)
        for caller in callers:
            if endpoint.name == "events" and expected(endpoint, caller) is None:
                continue  # it does not end; see the tests of events
            reply = service.request(endpoint.method, path, BODIES.get(endpoint.name), token=tokens[caller])
            want = expected(endpoint, caller)
            fits = reply.status == want if want else reply.status in (*endpoint.answers, 404)
            if not fits:
                wrong.append((endpoint.name, caller, reply.status, want))
    assert wrong == []
    assert {each.name for each in ENDPOINTS if each.scope is None} == PUBLIC
    assert {each.name for each in ENDPOINTS if "{model}" not in each.path} == PUBLIC | OF_ALL_MODELS


def test_a_token_of_one_model_learns_nothing_of_others(service):
    for name in ("own", "secret"):
        cb.Monitor(service.settings.store, model=name).observe([1, 0], [0.5, 0.5], time="2026-01-01")
    token = service.token("read", "own")
    assert [each["name"] for each in service.request("GET", "/v1/models", token=token).json()["items"]] == ["own"]
    assert b"secret" not in service.request("GET", "/metrics", token=token).body
    known = service.request("GET", "/v1/models/secret/status", token=token)
    unknown = service.request("GET", "/v1/models/none/status", token=token)
    assert (known.status, known.body) == (unknown.status, unknown.body)
    assert known.status == 403


def test_a_link_reads_and_does_nothing_else(service):
    cb.Monitor(service.settings.store, model="own")
    read, write = service.token("read", "own"), service.token("write", "own")
    admin = service.token("admin")
    assert service.request("GET", f"/v1/models/own/status?token={read}").status == 200
    assert service.request("GET", f"/v1/models/own/status?token={admin}").status == 403
    body = BODIES["observe"]
    assert service.request("POST", f"/v1/models/own/observations?token={write}", body).status == 403
    assert service.request("GET", "/v1/models/own/status?token=cbt_x_y").status == 401
    headers = service.request("GET", f"/v1/models/own/status?token={read}").headers
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")


def test_without_tokens_only_loopback_is_served(service):
    assert service.request("GET", "/v1/models").status == 200
    for headers in ({"Host": "monitor.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "127.0.0.1.example"}):
        assert service.request("GET", "/v1/models", headers=headers).status == 403
    assert service.request("GET", "/v1/models", headers={"Host": "localhost:9"}).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, 200) for host in ("localhost", "LocalHost:1", "127.0.0.1:99999", "[::1]", "[::1]:80", "own.example")),
        *((host, 403) for host in ("evil.com:", "evil.com:99999", "evil.com@localhost", "[evil]", "", "localhost@a")),
        *((host, 403) for host in ("evil.com/localhost", "a, localhost", "localhost]", "[::1", "own.example.com")),
    ],
)
def test_without_tokens_the_raw_host_must_be_loopback_or_allowed(path, host, status):
    settings = ServiceSettings(path, allowed_hosts=("own.example",))
    scope = {"type": "http", "method": "GET", "path": "/v1/models", "query_string": b"", "server": ("127.0.0.1", 80)}
    request = Request({**scope, "headers": [(b"host", host.encode())]})
    if status == 200:
        assert check_access(TokenBook(Store(path)), settings, request, "read", None).token is None
        return
    with pytest.raises(ServiceProblem, match="must be addressed as loopback") as raised:
        check_access(TokenBook(Store(path)), settings, request, "read", None)
    assert raised.value.status == 403


def test_tokens_stay_required_when_all_are_revoked(service):
    token = service.token("admin")
    assert service.request("GET", "/v1/models").status == 401
    assert service.request("GET", "/v1/models", token=token).status == 200
    TokenBook(Store(service.settings.store)).revoke(token.split("_")[1])
    assert service.request("GET", "/v1/models", token=token).status == 401
    assert service.request("GET", "/v1/models").status == 401


def test_the_store_holds_no_token(service):
    token = service.token("admin")
    with Store(service.settings.store).read() as connection:
        (row,) = connection.execute(schema.tokens.select()).all()
    secret = token.split("_", 2)[2]
    assert secret not in str(row)
    assert re.fullmatch("[0-9a-f]{64}", row.sha256)
    assert len(secret) == 43  # 256 bits


def test_rotation_replaces_a_token_at_once_or_after_a_grace_period(service):
    book = TokenBook(Store(service.settings.store))
    old = service.token("read", "own")
    new, made = book.rotate(old.split("_")[1])
    assert (made.scope, made.models) == ("read", ("own",))
    assert [service.request("GET", "/v1/models", token=each).status for each in (old, new)] == [401, 200]
    newest, _ = book.rotate(new.split("_")[1], timedelta(hours=1))
    assert [service.request("GET", "/v1/models", token=each).status for each in (new, newest)] == [200, 200]
    with pytest.raises(InputError, match="id must be an active token"):
        book.rotate(old.split("_")[1])
    with pytest.raises(InputError, match="id must be the id of a token"):
        book.revoke("nobody")


def test_all_secrets_are_compared_in_constant_time(service, monkeypatch):
    """Also for ids that do not exist, so that the time tells nothing."""
    from calibrant.monitor.service import access_tokens

    compared = []
    real = access_tokens.hmac.compare_digest
    monkeypatch.setattr(access_tokens.hmac, "compare_digest", lambda a, b: compared.append(1) or real(a, b))
    token = service.token("read")
    book = TokenBook(Store(service.settings.store))
    for text in (token, token[:-1] + "~", "cbt_000000000000_x", "cbt_é_x", "", "x" * 10_000):
        book.verify(text)
    assert len(compared) == 6


def test_logs_and_audit_never_hold_tokens(service, caplog):
    cb.Monitor(service.settings.store, model="own")
    read, admin = service.token("read"), service.token("admin")
    with caplog.at_level(logging.DEBUG):
        service.request("GET", f"/v1/models?token={read}")
        service.request("GET", f"/v1/models/own?token={read}x")
        service.request("PUT", "/v1/models/new", {"window": "day"}, token=admin)
        service.request("GET", "/v1/models", headers={"Authorization": f"Basic {read}"})
        service.request("POST", "/v1/models/new/silences", {"until": "2999-01-01", "reason": "r"}, token=admin)
        audit = service.request("GET", "/v1/audit", token=admin)
    text = caplog.text + audit.body.decode()
    for token in (read, admin):
        assert token.split("_", 2)[2] not in text
    assert "token=" not in caplog.text
    acts = [(each["who"], each["action"], each["model"]) for each in audit.json()["items"]]
    who = admin.split("_")[1]
    assert acts == [(who, "create model", "new"), (who, "silence model", "new")]
    assert "PUT /v1/models/new 201" in caplog.text
    assert who in caplog.text


def test_other_addresses_need_a_token_first(store):
    settings = ServiceSettings(store, host="0.0.0.0")
    with pytest.raises(InputError, match="while there is no token; got '0.0.0.0'. Create one first: calibrant serve"):
        check_address(settings)
    book = TokenBook(Store(store))
    _, token = book.create("t", "read")
    check_address(settings)
    book.revoke(token.id)
    with pytest.raises(InputError, match="host must be loopback"):
        check_address(settings)
    check_address(ServiceSettings(store, host="::1"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scope": "root"}, "scope must be 'read' or 'write' or 'admin'; got 'root'."),
        ({"name": ""}, "name must be text of 1 to 500"),
        ({"lifetime": timedelta(0)}, "lifetime must be longer than 0"),
    ],
)
def test_bad_tokens_are_errors(path, given, words):
    with pytest.raises(InputError, match=words):
        TokenBook(Store(path)).create(**({"name": "t", "scope": "read"} | given))
