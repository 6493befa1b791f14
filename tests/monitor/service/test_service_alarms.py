"""Alarms: the outbox, webhooks, e-mail, acknowledgement, silences and metrics."""

import http.server
import json
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

import calibrant as cb
from calibrant import InputError
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import silence_model
from calibrant.monitor.service.notifications import Mailbox, Notification
from calibrant.monitor.service.outbox import Outbox
from calibrant.monitor.service.service_settings import read_settings
from calibrant.monitor.service.webhooks import Webhook, WebhookError, sign, verify_signature
from calibrant.monitor.store import Store
from tools.service_process import SECRET, Receiver, free_port

FAST = {"lease_seconds": 2.0, "retry_seconds": 0.05, "poll_seconds": 0.1}


@pytest.fixture
def receiver():
    found = Receiver(refuse_every=3)
    yield found
    found.close()


@pytest.fixture
def mail_server():
    """Run a real SMTP server; yield its port and the list of its messages."""
    controller = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed")
    messages = []

    class Handler:
        async def handle_DATA(self, server, session, envelope):
            messages.append(envelope)
            return "250 OK"

    own = controller.Controller(Handler(), hostname="127.0.0.1", port=free_port())
    own.start()
    yield own.port, messages
    own.stop()


def raise_alarm(store, model="m", **options):
    """Store rows that raise an alarm of all rows."""
    monitor = cb.Monitor(store, model=model, dependence="independent", **options)
    for day in range(1, 4):
        monitor.observe([1, 0] * 100, [0.01] * 200, time=f"2026-01-0{day}", group="g")
    return monitor


def wait_until(done, seconds=20):
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert done()


def deliveries(store):
    with Store(store).read() as connection:
        return connection.execute(sa.select(schema.deliveries)).all()


def test_an_alarm_and_its_entry_are_one_transaction(store, monkeypatch):
    monitor = raise_alarm(store)
    with monitor.store.read() as connection:
        alarms = connection.execute(sa.select(schema.alarms.c.id)).scalars().all()
        entries = connection.execute(sa.select(schema.outbox.c.alarm_id)).scalars().all()
    assert sorted(alarms) == sorted(entries)
    assert len(alarms) >= 1

    def fail(*args, **options):
        raise RuntimeError("no ids")

    monkeypatch.setattr("calibrant.monitor.alarm_log.uuid.uuid4", fail)
    with pytest.raises(RuntimeError, match="no ids"):
        raise_alarm(store, "other")
    assert cb.Monitor(store, model="other").alarms() == ()


def test_a_webhook_gets_each_alarm_with_a_signature(store, start, receiver):
    service = start(channels=(Webhook("hook", receiver.url, SECRET),), public_url="https://monitor.example", **FAST)
    for model in ("a", "b", "c"):
        client = cb.MonitorClient(service.url, model=model)
        client.create(dependence="independent")
        for day in range(1, 4):
            client.observe([1, 0] * 100, [0.01] * 200, time=f"2026-01-0{day}")
    wait_until(lambda: len(receiver.seen) == 3)
    wait_until(lambda: {row.state for row in deliveries(store)} == {"delivered"})
    assert (receiver.n_unsigned, receiver.n_refused > 0) == (0, True)
    body = next(each for each in receiver.bodies.values() if each["data"]["model"] == "a")
    (alarm,) = cb.Monitor(store, model="a").alarms()
    assert body["type"] == "alarm.raised"
    assert body["data"]["alarm"] == alarm.id
    assert body["data"]["window"] == alarm.window.isoformat()
    assert set(receiver.seen.values()) == {1}
    metrics = service.request("GET", "/metrics").body.decode()
    assert 'calibrant_outbox_waiting{channel="hook"} 0.0' in metrics
    assert 'calibrant_alarms{model="a",state="open"} 1.0' in metrics
    assert 'calibrant_deliveries_total{channel="hook",result="delivered"} 3.0' in metrics


def test_alarms_of_other_processes_are_sent_and_those_before_the_channel_are_not(store, start, receiver):
    raise_alarm(store, "before")
    start(channels=(Webhook("hook", receiver.url, SECRET, ("before", "after")),), **FAST)
    wait_until(lambda: {row.state for row in deliveries(store)} == {"earlier"})
    raise_alarm(store, "after")
    raise_alarm(store, "of nobody")
    wait_until(lambda: len(receiver.seen) == 2)  # all rows and the group
    assert {each["data"]["model"] for each in receiver.bodies.values()} == {"after"}
    assert sorted(each["data"]["group"] or "" for each in receiver.bodies.values()) == ["", "g"]


def test_an_attempt_that_was_killed_is_repeated_with_the_same_id(store, receiver):
    """The service may die between the answer of the receiver and the end of the attempt."""
    outbox, hook = Outbox(Store(store), lease=60, pause=0.05), Webhook("hook", receiver.url, SECRET)
    outbox.register([hook])
    raise_alarm(store)
    first = outbox.due(hook)[0]
    assert outbox.claim(first)
    hook.send(first.notification)
    assert not outbox.claim(first)  # another process cannot claim it now
    assert first.notification.id not in {due.notification.id for due in outbox.due(hook)}
    with outbox.store.write() as connection:  # the lease is over
        connection.execute(schema.deliveries.update().values(next_attempt=schema.now() - 1))
    again = next(due for due in outbox.due(hook) if due.notification.id == first.notification.id)
    assert again.attempts == 1
    assert outbox.claim(again)
    hook.send(again.notification)
    outbox.finish(again, None)
    assert receiver.seen[first.notification.id] == 2
    assert outbox.waiting(hook)[0] == 1  # the group


def test_pauses_between_attempts_grow_up_to_an_hour(store):
    outbox = Outbox(Store(store), pause=5.0)
    hook = Webhook("hook", "http://127.0.0.1:9/", SECRET)
    outbox.register([hook])
    raise_alarm(store)
    due = outbox.due(hook)[0]
    waits = []
    for attempts in (0, 1, 2, 30):
        each = type(due)(due.notification, due.channel, attempts)
        outbox.claim(each)
        outbox.finish(each, "refused")
        row = next(r for r in deliveries(store) if r.outbox_id == due.notification.id)
        waits.append(round((row.next_attempt - schema.now()) / 1e6))
        with outbox.store.write() as connection:
            connection.execute(schema.deliveries.update().values(attempts=[1, 2, 30, 31][len(waits) - 1]))
    assert waits == [5, 10, 20, 3600]
    assert row.error == "refused"


def test_silenced_alarms_wait_and_acknowledged_ones_are_not_sent(store, start, receiver):
    service = start(channels=(Webhook("hook", receiver.url, SECRET),), **FAST)
    for model in ("quiet", "known"):
        cb.Monitor(store, model=model, dependence="independent")
        silence_model(Store(store), model, datetime.now(UTC) + timedelta(hours=1), "deployment", "me")
        raise_alarm(store, model)
    for alarm in cb.Monitor(store, model="known").alarms():
        reply = service.request("POST", f"/v1/models/known/alarms/{alarm.id}/acknowledgement", {"reason": "seen"})
        assert (reply.status, reply.json()["reason"]) == (200, "seen")
    time.sleep(0.5)
    assert not receiver.seen
    for model in ("quiet", "known"):
        (silence,) = service.request("GET", f"/v1/models/{model}/silences").json()["items"]
        assert (silence["active"], silence["reason"], silence["author"]) == (True, "deployment", "me")
        assert service.request("DELETE", f"/v1/models/{model}/silences/{silence['id']}").status == 204
        assert service.request("DELETE", f"/v1/models/{model}/silences/{silence['id']}").status == 404
    wait_until(lambda: len(receiver.seen) == 2)
    wait_until(lambda: {row.state for row in deliveries(store)} == {"delivered", "acknowledged"})
    assert {each["data"]["model"] for each in receiver.bodies.values()} == {"quiet"}
    actions = [each["action"] for each in service.request("GET", "/v1/audit").json()["items"]]
    assert actions.count("acknowledge alarm") == 2
    assert actions.count("end silence") == 2


def test_silenced_and_acknowledged_alarms_do_not_wait_to_be_sent(path):
    outbox, hook = (
        Outbox(Store(path), public_url="https://monitor.example/"),
        Webhook("hook", "http://[::1]:9/", SECRET),
    )
    outbox.register([hook])
    monitor = raise_alarm(path)
    assert [each.notification.link for each in outbox.due(hook)] == [
        "https://monitor.example/model?name=m&version=1",
        "https://monitor.example/model?name=m&version=1&group=%22g%22",
    ]
    assert outbox.waiting(hook)[0] == 2
    monitor.acknowledge(monitor.alarms()[0], "seen")
    assert outbox.waiting(hook)[0] == 1
    silence_model(outbox.store, "m", datetime.now(UTC) + timedelta(hours=1), "migration", "me")
    assert outbox.waiting(hook) == (0, 0.0)


def test_a_clock_that_was_ahead_delays_no_alarm(path, monkeypatch):
    outbox, hook = Outbox(Store(path)), Webhook("hook", "http://127.0.0.1:9/", SECRET)
    outbox.register([hook])
    raise_alarm(path)
    real = schema.now
    monkeypatch.setattr(schema, "now", lambda: real() + 10 * 365 * 86_400_000_000)
    first, second = outbox.due(hook)
    assert outbox.claim(first)
    outbox.finish(first, "the receiver is away")
    monkeypatch.setattr(schema, "now", real)
    assert {each.notification.id for each in outbox.due(hook)} == {first.notification.id, second.notification.id}
    retry = next(each for each in outbox.due(hook) if each.attempts)
    assert outbox.claim(retry)
    outbox.finish(retry, "the receiver is away")
    assert len(outbox.due(hook)) == 1  # the pause of a clock that is right is kept


def test_failures_of_the_store_are_logged_and_counted(run_service, path, caplog):
    with run_service(path) as service:
        service.request("PUT", "/v1/models/m", {})
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE calibrant_cells")
        connection.close()
        row = {"y": 1, "p": 0.5, "time": "2026-01-01"}
        assert service.request("POST", "/v1/models/m/observations", row).status == 503
        assert "calibrant_store_errors_total 1.0" in service.request("GET", "/metrics").body.decode()
    (record,) = [each for each in caplog.records if each.name == "calibrant.service"]
    assert record.levelname == "ERROR"
    assert "POST /v1/models/m/observations: The store cannot be used: no such table" in record.getMessage()


def test_a_silence_expires(store):
    cb.Monitor(store, model="m", dependence="independent")
    outbox, hook = Outbox(Store(store)), Webhook("hook", "http://127.0.0.1:9/", SECRET)
    outbox.register([hook])
    raise_alarm(store)
    until = datetime.now(UTC) + timedelta(seconds=2)
    silence_model(outbox.store, "m", until, "short", "me")
    assert outbox.due(hook) == []
    wait_until(lambda: len(outbox.due(hook)) == 2)
    assert datetime.now(UTC) >= until


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"until": "2020-01-01", "reason": "r"}, "until must lie in the future; got 2020-01-01 00:00."),
        ({"until": "2999-01-01"}, "reason must be given as text."),
        ({"until": "2999-01-01", "reason": ""}, "reason must be text of 1 to 500"),
    ],
)
def test_bad_silences_are_problems(service, body, words):
    cb.Monitor(service.settings.store, model="m")
    reply = service.request("POST", "/v1/models/m/silences", body)
    assert (reply.status, words in reply.json()["detail"]) == (400, True)


def test_e_mail_is_sent_through_a_server(store, start, mail_server):
    port, messages = mail_server
    box = Mailbox("mail", "127.0.0.1", "monitor@example.org", ("a@example.org", "b@example.org"), port, "none")
    start(channels=(box,), public_url="https://monitor.example", **FAST)
    raise_alarm(store, "Modèle <b>")
    wait_until(lambda: len(messages) == 2)
    wait_until(lambda: {row.state for row in deliveries(store)} == {"delivered"})
    import email
    import email.policy

    found = email.message_from_bytes(messages[0].content, policy=email.policy.default)
    assert messages[0].rcpt_tos == ["a@example.org", "b@example.org"]
    assert found["Subject"] == "Calibrant: alarm for model 'Modèle <b>' (all rows)"
    entry = {row.outbox_id for row in deliveries(store)}
    assert found["Message-ID"].strip("<>").removesuffix("@example.org") in entry
    assert "Log e-value" in found.get_content()
    assert "Predicted rate so far: 1.00 %. Observed: 50.00 %." in found.get_content()
    page = "The page of the model: https://monitor.example/model?name=Mod%C3%A8le+%3Cb%3E&version=1"
    assert page in found.get_content().splitlines()


def test_a_server_that_is_away_delays_mail(store, mail_server):
    outbox = Outbox(Store(store))
    box = Mailbox("mail", "127.0.0.1", "m@example.org", ("a@example.org",), 9, "none")
    outbox.register([box])
    raise_alarm(store)
    with pytest.raises(OSError, match="refused"):
        box.send(outbox.due(box)[0].notification)


def test_redirects_and_errors_of_a_receiver_are_no_delivery():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(int(self.path[1:]))
            self.send_header("Location", "/200")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        alarm = cb.monitor.status.Alarm(1, "1", None, datetime.now(UTC), 5.0, datetime.now(UTC))
        notification = Notification("id", datetime.now(UTC), "m", alarm, 0.1, 0.2)
        for status in (302, 404, 500):
            hook = Webhook("hook", f"http://127.0.0.1:{server.server_port}/{status}", SECRET)
            with pytest.raises(WebhookError, match=f"answered with status {status}"):
                hook.send(notification)
        server.shutdown()


def test_a_signature_holds_for_its_id_body_time_and_secret_only():
    now = int(time.time())
    made = sign(SECRET, "id", now, b"body")
    assert verify_signature(SECRET, "id", str(now), made, b"body")
    assert verify_signature(SECRET, "id", str(now), f"v1,other {made}", b"body")  # while a secret is rotated
    assert not verify_signature(SECRET, "id", str(now), made, b"Body")
    assert not verify_signature(SECRET, "id2", str(now), made, b"body")
    assert not verify_signature(SECRET, "id", str(now + 1), made, b"body")
    assert not verify_signature("whsec_" + "B" * 44, "id", str(now), made, b"body")
    old = now - 301
    assert not verify_signature(SECRET, "id", str(old), sign(SECRET, "id", old, b"body"), b"body")
    assert not verify_signature(SECRET, "id", "x", made, b"body")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://hooks.example/x", "must begin with https://, or with http:// on loopback"),
        ("ftp://127.0.0.1/x", "must begin with https://"),
        ("https://user:pass@hooks.example/", "must not hold a password"),
        ("https://", "must begin with https://"),
    ],
)
def test_addresses_of_webhooks_are_checked(url, words):
    with pytest.raises(InputError, match=words):
        Webhook("hook", url, SECRET)


def test_a_configuration_file_is_read_and_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", SECRET)
    (tmp_path / "password").write_text("pass word\n")
    text = f"""
    max_body = 1000
    public_url = "https://monitor.example"
    [[webhooks]]
    name = "team"
    url = "https://hooks.example/x"
    secret_variable = "HOOK"
    models = ["churn"]
    [[email]]
    name = "mail"
    host = "mail.example"
    sender = "m@example.org"
    recipients = ["a@example.org"]
    user = "u"
    password_file = "{tmp_path / "password"}"
    """
    file = tmp_path / "service.toml"
    file.write_text(text)
    settings = read_settings(str(file), store="s.db", max_queue=3)
    hook, box = settings.channels
    assert (settings.max_body, settings.max_queue, hook.models, box.password) == (1000, 3, ("churn",), "pass word")
    assert SECRET not in repr(settings) + repr(hook)
    assert "pass word" not in repr(box)
    for bad, words in {
        "max_bdy = 1": "unknown setting 'max_bdy'. Did you mean 'max_body'?",
        "max_body = -1": "max_body must be a number above 0; got -1.",
        "x": "config must be a TOML file; service.toml:",
        "[webhooks]\nname = 'x'": "must have webhooks and e-mail as tables",
        "[[webhooks]]\nname = 'x'\nurl = 'https://h'\nsecret = 'whsec_'": "Secrets are read from secret_file",
        "[[webhooks]]\nname = 'x'\nsecret_variable = 'HOOK'": "channel 'x' is not complete",
        "[[webhooks]]\nname = 'x'\nurl = 'https://h'\nsecret_variable = 'NO'": "variable 'NO' is not set",
        "[[email]]\nname = 'x'\nhost = 'h'\nsender = 's@e'\nrecipients = ['a@e']\nsecurity = 'none'": "security",
        "[[email]]\nname = 'x'\nhost = 'h'\nsender = 's@e'\nrecipients = ['a']": "recipients must be e-mail addresses",
    }.items():
        file.write_text(bad)
        with pytest.raises(InputError) as found:
            read_settings(str(file), store="s.db")
        assert words in str(found.value)


def test_metrics_are_in_the_format_of_prometheus(service):
    from prometheus_client.parser import text_string_to_metric_families

    raise_alarm(service.settings.store)
    monitor = cb.Monitor(service.settings.store, model="m")
    monitor.predict(["x", "y"], [0.5, 0.5], time="2026-01-03")
    cb.Monitor(service.settings.store, model="empty")
    families = {
        each.name: each for each in text_string_to_metric_families(service.request("GET", "/metrics").body.decode())
    }
    value = {name: {s.labels.get("model"): s.value for s in each.samples} for name, each in families.items()}
    status = monitor.status()
    assert value["calibrant_log_e_value"] == {"m": pytest.approx(status.log_e_value), "empty": 0.0}
    assert value["calibrant_log_e_threshold"]["m"] == pytest.approx(status.threshold)
    assert value["calibrant_observed_rate"] == {"m": pytest.approx(status.observed)}
    assert value["calibrant_rows"]["m"] == status.n_rows - status.n_open_rows
    assert (value["calibrant_unlabelled"]["m"], value["calibrant_predictions"]["m"]) == (2, 2)
    assert "calibrant_http_requests" in families
    assert json.dumps(sorted(families))  # names are plain text
