"""`MonitorClient`: the arguments of `Monitor`, its errors, and calls that are repeated but stored once."""

import contextlib
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import scipy.stats

import calibrant as cb
from calibrant import InputError
from calibrant.monitor.client import ServiceError


@pytest.fixture
def client(service):
    with cb.MonitorClient(service.url, model="m") as found:
        found.create(window="day", maturity=timedelta(hours=1))
        yield found


def read_message(connection):
    """Return a request or an answer with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 20)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
    while len(body) < length:
        body += connection.recv(1 << 20)
    return head + b"\r\n\r\n" + body


class LossyProxy(threading.Thread):
    """Forwards connections to a service, and cuts some of them after the request, before its answer comes back."""

    def __init__(self, url, cut):
        super().__init__(daemon=True)
        host, port = url.removeprefix("http://").split(":")
        self.target, self.cut, self.n_cut = (host, int(port)), list(cut), 0
        self.own = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.own.getsockname()[1]}"
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.own.accept()
                with client, socket.create_connection(self.target) as server:
                    self.serve(client, server)

    def serve(self, client, server):
        while request := read_message(client):
            server.sendall(request)
            answer = read_message(server)
            if self.cut and self.cut.pop(0):
                self.n_cut += 1
                return
            client.sendall(answer)

    def close(self):
        self.own.shutdown(socket.SHUT_RDWR)
        self.own.close()


def test_each_method_does_what_the_monitor_does(client, service):
    rng = np.random.default_rng(0)
    p = rng.random(30)
    y, times = rng.random(30) < p, [datetime(2026, 1, 1 + i // 10, tzinfo=UTC) for i in range(30)]
    groups = {"land": ["a", "b", "a"] * 10, "n": [1, 2, 1] * 10}
    own = cb.Monitor(service.settings.store, model="own", maturity=timedelta(hours=1))
    for each in (client, own):
        assert each.observe(y, p, time=times, group=groups, batch=1, version="v").n_rows == 30
        assert each.observe(y, p, time=times, group=groups, batch=1, version="v").repeated_batch
        assert each.predict([1, "x"], [0.2, 0.3], time="2026-01-04", group="late").n_rows == 2
        assert each.outcome(1, True, time="2026-01-05").n_rows == 1
        assert each.outcome(["?"], [0]).n_unknown == 1
        table = cb.ScoreTable.from_counts([0.1, 0.2], [10, 20], [1, 5])
        assert each.add_table(table, time=datetime(2026, 1, 6), group=3, version="v").n_rows == 30
        assert each.close().n_closed > 0
    mine, theirs = (cb.Monitor(service.settings.store, model=name) for name in ("m", "own"))
    assert mine.history().windows == theirs.history().windows
    assert mine.groups() == theirs.groups()
    assert mine.table() == theirs.table()
    assert client.status()["n_rows"] == own.status().n_rows
    assert len(client.history()["windows"]) == len(own.history())
    assert client.evaluate(since="2026-01-01")["verdict"] == own.evaluate(since="2026-01-01").verdict
    assert client.models() == ["m", "own"]


def test_a_call_whose_answer_is_lost_is_stored_once(client, service):
    proxy = LossyProxy(service.url, cut=[True, True, False, True, False])
    with cb.MonitorClient(proxy.url, model="m") as lossy:
        receipt = lossy.observe([1, 0], [0.5, 0.5], time="2026-01-01")
        assert (receipt.n_rows, receipt.repeated_batch) == (0, True)  # the first attempt stored it
        assert lossy.observe([1, 0], [0.5, 0.5], time="2026-01-01").repeated_batch
    proxy.close()
    assert proxy.n_cut == 3
    assert client.status()["n_rows"] == 4


def test_a_busy_service_is_asked_again(start):
    service = start(max_queue=1)
    with cb.MonitorClient(service.url, model="m") as first:
        first.create()
    receipts = []

    def post(number):
        with cb.MonitorClient(service.url, model="m", retries=30) as own:
            for i in range(5):
                receipts.append(own.observe(1, 0.5, time="2026-01-01", batch=f"{number}-{i}"))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(receipt.n_rows for receipt in receipts) == 20
    assert cb.Monitor(service.settings.store, model="m").status().n_rows == 20


def test_errors_have_the_words_of_the_library(client, service):
    with pytest.raises(InputError, match="p must lie in") as local:
        client.observe([1], [1.5], time="2026-01-01")
    assert local.value.argument == "p"
    client.observe(1, 0.5, time="2026-01-01", batch="b")
    with pytest.raises(InputError, match="Idempotency-Key must be a new id or come with the same rows") as found:
        client.observe(0, 0.5, time="2026-01-01", batch="b")
    assert found.value.hint == "Give each batch its own id."
    with pytest.raises(InputError, match="window must be 'day', the value stored for model 'm'; got 'week'"):
        client.create(window="week")
    with pytest.raises(ServiceError, match="there is none with this name") as missing:
        cb.MonitorClient(service.url, model="none").status()
    assert missing.value.status == 404
    token = service.token("read", "other")
    with pytest.raises(ServiceError, match="must have the scope") as refused:
        cb.MonitorClient(service.url, model="m", token=token).status()
    assert refused.value.status == 403


def test_a_service_that_is_away_is_a_clear_error():
    with pytest.raises(ServiceError, match="The service at http://127.0.0.1:9 does not answer: .*refused") as found:
        cb.MonitorClient("http://127.0.0.1:9", retries=1).status()
    assert found.value.status == 0


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("monitor.example", None, "url must be an address such as"),
        ("ftp://monitor.example", None, "url must be an address such as"),
        ("http://monitor.example", "cbt_x_y", "url must begin with https:// where a token is sent"),
        ("http://user@127.0.0.1", None, "url must be an address such as"),
        ("http://127.0.0.1:99999", None, "url must be an address such as"),
    ],
)
def test_addresses_are_checked(url, token, words):
    with pytest.raises(InputError, match=words):
        cb.MonitorClient(url, token=token)


def test_tokens_are_not_shown():
    assert "secret" not in repr(cb.MonitorClient("https://monitor.example", token="cbt_x_secret"))


def test_the_client_needs_no_extra():
    """It imports neither SQLAlchemy nor Arrow nor a web framework."""
    code = (
        "import sys, calibrant as cb\n"
        "client = cb.MonitorClient('http://127.0.0.1:9', retries=0)\n"
        "try:\n    client.observe([1], [0.5], time='2026-01-01', group='g')\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
        "print([m for m in ('sqlalchemy', 'starlette', 'pyarrow', 'uvicorn') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "ServiceError\n[]\n"


def test_class_probabilities_and_labels_are_sent(run_service, path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 2, 3], 40)
    y = rng.choice(["a", "b", "c"], 40)
    with run_service(path) as service:
        client = cb.MonitorClient(service.url, model="m")
        client.create(classes=["a", "b", "c"])
        own = cb.Monitor(path, model="own", classes=["a", "b", "c"])
        for each in (client, own):
            assert each.observe(y, p, time="2026-01-01", group=["x", "y"] * 20).n_rows == 40
        assert cb.Monitor(path, model="m").table(event="b") == own.table(event="b")
        with pytest.raises(cb.InputError, match="y must have as many rows as p, 40; got 39"):
            client.observe(y[1:], p, time="2026-01-01")
        for forecast in (scipy.stats.norm(0, 1), cb.Quantiles([0.1, 0.5], [[1, 2]])):
            with pytest.raises(cb.InputError, match="p must be scores, or an array of class probabilities"):
                client.observe([0.5], forecast, time="2026-01-01")
        binary = cb.MonitorClient(service.url, model="binary")
        binary.create()
        assert binary.observe(["yes", "no"], [0.2, 0.7], time="2026-01-01", pos_label="yes").n_rows == 2
        binary.predict(["i"], [0.4], time="2026-01-01")
        assert binary.outcome(["i"], ["yes"], pos_label="yes").n_rows == 1
        assert cb.Monitor(path, model="binary").table().positives == 2
        reply = service.request(
            "POST", "/v1/models/binary/observations", {"y": ["yes"], "p": [0.5], "time": "2026-01-01"}
        )
        assert reply.json()["detail"] == (
            "y must hold 0 and 1; got the labels 'yes'. Send 1 for rows with the event and 0 for others."
        )
        reply = service.request("POST", "/v1/models/binary/observations", {"y": [1], "p": [0.5], "time": 1777766400})
        assert reply.json()["detail"].startswith("time must be a time or a column of times; got 1777766400.")
