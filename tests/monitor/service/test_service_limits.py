"""Limits: sizes, slow and silent clients, full queues, streams of events, the end of the service."""

import contextlib
import json
import socket
import threading
import time

import pytest

import calibrant as cb
from calibrant.monitor.schema import StoreError
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.work_queue import WriteQueue
from calibrant.monitor.store import Store

OWN = "/v1/models/m"
ROW = {"y": 1, "p": 0.5, "time": "2026-01-01"}


def raw(service, data=b"", timeout=10.0):
    """Open a connection and send bytes."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=timeout)
    connection.sendall(data)
    return connection


def read_all(connection):
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_large_bodies_are_refused_declared_or_not(start):
    service = start(max_body=2000, max_rows=50)
    service.request("PUT", OWN, {})
    big = json.dumps({"y": 1, "p": 0.5, "time": "2026-01-01", "version": "x" * 3000}).encode()
    reply = service.request("POST", f"{OWN}/observations", big)
    assert (reply.status, "at most 2,000 bytes" in reply.json()["detail"]) == (413, True)
    head = f"POST {OWN}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunked = head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b" " * 1024 + b"\r\n"
    with raw(service, chunked + (b"400\r\n" + b" " * 1024 + b"\r\n") * 2 + b"0\r\n\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
    many = service.request("POST", f"{OWN}/observations", {**ROW, "y": [1] * 51, "p": [0.5] * 51})
    assert (many.status, "at most 50 rows" in many.json()["detail"]) == (413, True)
    assert service.request("POST", f"{OWN}/observations", ROW).status == 201


def test_a_client_learns_that_a_body_is_too_large(run_service, path):
    with run_service(path, max_body=2**16) as service:
        client = cb.MonitorClient(service.url, model="m", retries=0)
        client.create()
        with pytest.raises(cb.InputError, match=r"at most 65,536 bytes; got .* Send the rows in parts"):
            client.observe([0, 1] * 300_000, [0.12345678901234, 0.5] * 300_000, time="2026-01-01")
        assert client.status()["n_rows"] == 0


@pytest.mark.parametrize("window", ["hour", 1])
def test_a_request_has_a_limited_number_of_windows_and_groups(run_service, path, window):
    with run_service(path) as service:
        service.request("PUT", OWN, {"window": window})
        times = [f"2026-01-{1 + i // 24:02}T{i % 24:02}:00" for i in range(600)]
        body = {"y": [0] * 600, "p": [0.5] * 600, "time": times, "group": [str(i % 10) for i in range(600)]}
        reply = service.request("POST", f"{OWN}/observations", body)
        assert (reply.status, "600 windows and 10 groups. Send the rows in parts" in reply.json()["detail"]) == (
            400,
            True,
        )
        part = {name: values[:20] for name, values in body.items()}
        assert service.request("POST", f"{OWN}/observations", part).status == 201


def test_slow_and_silent_clients_are_cut_off_and_do_not_block_others(start):
    service = start(header_seconds=1.0, body_seconds=1.0)
    service.request("PUT", OWN, {})
    head = f"POST {OWN}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(raw(service)) for _ in range(100)]
        half = [stack.enter_context(raw(service, b"GET /v1/models HTTP/1.1\r\nHo")) for _ in range(100)]
        slow = [stack.enter_context(raw(service, head + b"Content-Length: 100\r\n\r\n{")) for _ in range(100)]
        seconds = []
        for _ in range(20):
            begun = time.monotonic()
            assert service.request("POST", f"{OWN}/observations", ROW).status == 201
            seconds.append(time.monotonic() - begun)
        assert sorted(seconds)[10] < 1.0
        assert all(read_all(each) == b"" for each in silent + half)
        assert all(read_all(each).startswith(b"HTTP/1.1 408") for each in slow)
    assert not service.server.server_state.connections - {None} or _settles(service)


def _settles(service):
    deadline = time.monotonic() + 10
    while service.server.server_state.connections and time.monotonic() < deadline:
        time.sleep(0.05)
    return not service.server.server_state.connections


def test_a_client_that_leaves_during_its_body_is_no_error_of_the_service(run_service, path, caplog):
    caplog.set_level("INFO")
    with run_service(path) as service:
        service.request("PUT", OWN, {})
        head = f"POST {OWN}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with raw(service, head.encode() + b"Content-Length: 1000\r\n\r\n{"):
            time.sleep(0.1)
        end = time.monotonic() + 10
        while "observations 499 " not in caplog.text and time.monotonic() < end:
            time.sleep(0.02)
        assert 'operation="observe",status="499"} 1.0' in service.request("GET", "/metrics").body.decode()
    assert "observations 499 " in caplog.text
    assert not [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")]


def test_answers_do_not_wait_for_the_acknowledgement_of_packets(service):
    """Nagle's algorithm would delay the second part of each answer by 40 ms."""
    with raw(service, b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        (own,) = service.server.server_state.connections
        sent = own.transport.get_extra_info("socket")
        assert sent.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_client_that_does_not_read_is_cut_off(start):
    service = start(body_seconds=1.0)
    monitor = cb.Monitor(service.settings.store, model="m")
    for day in range(3):
        monitor.observe([1] * 300, [0.5] * 300, time=f"2026-01-0{day + 1}", group=[f"g{i:0200}" for i in range(300)])
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = service.url.removeprefix("http://").split(":")
    with connection:
        connection.connect((host, int(port)))
        connection.sendall(b"GET /v1/models/m/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        wait = time.monotonic() + 10
        while not service.server.server_state.connections and time.monotonic() < wait:
            time.sleep(0.01)
        assert service.request("GET", "/v1/health").status == 200
        assert _settles(service)  # while the client is still there


def test_a_full_queue_answers_503_with_a_time_to_come_back(start):
    service = start(max_queue=2)
    service.request("PUT", OWN, {})
    go = threading.Event()
    service.service.writers._waiting.put((go.wait, __import__("concurrent.futures").futures.Future()))
    replies = []

    def post():
        replies.append(service.request("POST", f"{OWN}/observations", ROW))

    threads = [threading.Thread(target=post) for _ in range(6)]
    for each in threads:
        each.start()
    deadline = time.monotonic() + 10
    while len(replies) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [reply.status for reply in replies] == [503] * 4
    assert {reply.headers["Retry-After"] for reply in replies} == {"1"}
    go.set()
    for each in threads:
        each.join()
    assert sorted(reply.status for reply in replies) == [201, 201, 503, 503, 503, 503]
    assert service.request("GET", f"{OWN}/status").json()["n_rows"] == 2
    assert b'calibrant_queue_refused{queue="write"} 4.0' in service.request("GET", "/metrics").body


def test_writes_that_wait_share_a_transaction_and_fail_alone(store):
    """The results come when the transaction is durable; an error of the store undoes all, and each runs again."""
    own = Store(store)
    monitor = cb.Monitor(own)
    queue, go = WriteQueue("w", own, 100), threading.Event()
    first = queue._submit(go.wait)
    calls = []

    def flaky():
        calls.append(1)
        if len(calls) == 1:
            raise StoreError("locked")
        return monitor.observe(1, 0.5, time="2026-01-01")

    def refused():
        raise ServiceProblem(404, "none")

    observe = lambda: monitor.observe([1, 0], [0.5, 0.5], time="2026-01-01", batch="b")  # noqa: E731
    futures = [queue._submit(work) for work in (observe, observe, refused, flaky)]
    go.set()
    assert first.result(10)
    assert [futures[0].result(10).n_rows, futures[1].result(10).repeated_batch] == [2, True]
    assert isinstance(futures[2].exception(10), ServiceProblem)
    assert futures[3].result(10).n_rows == 1
    assert len(calls) == 2
    assert monitor.status().n_rows == 3
    queue.close()


def test_events_tell_changes_of_own_models_only(service):
    for name in ("own", "other"):
        cb.Monitor(service.settings.store, model=name)
    token = service.token("read", "own")
    request = f"GET /v1/events?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with raw(service, request, timeout=20) as connection:
        seen = _receive_until(connection, b'"revision": 0}')
        cb.Monitor(service.settings.store, model="other").observe(1, 0.5, time="2026-01-01")
        cb.Monitor(service.settings.store, model="own").observe(1, 0.5, time="2026-01-01")
        seen += _receive_until(connection, b'data: {"model": "own", "revision": 1}')
        cb.Monitor(service.settings.store, model="own").delete("own")
        seen += _receive_until(connection, b'data: {"model": "own", "revision": -1}')
    assert b"other" not in seen
    assert b"text/event-stream" in seen


def _receive_until(connection, words):
    found = b""
    while words not in found:
        part = connection.recv(65536)
        assert part, found
        found += part
    return found


def test_a_stream_ends_when_its_token_is_revoked(service, monkeypatch):
    from calibrant.monitor.service import running_service
    from calibrant.monitor.service.access_tokens import TokenBook

    monkeypatch.setattr(running_service, "_HEARTBEAT", 0.3)
    token = service.token("read")
    request = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with raw(service, request, timeout=20) as connection:
        _receive_until(connection, b": heartbeat")
        TokenBook(Store(service.settings.store)).revoke(token.split("_")[1])
        _receive_until(connection, b"0\r\n\r\n")


def test_streams_are_limited_and_a_slow_reader_keeps_one_change_per_model(start):
    service = start(max_streams=2)
    cb.Monitor(service.settings.store, model="m")
    request = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with raw(service, request) as first, raw(service, request) as second:
        _receive_until(first, b"revision")
        _receive_until(second, b"revision")
        reply = service.request("GET", "/v1/events")
        assert (reply.status, reply.headers["Retry-After"]) == (503, "10")
    (hub,) = {service.service.events}
    deadline = time.monotonic() + 20
    while hub.n_streams and time.monotonic() < deadline:  # found gone at the next heartbeat at the latest
        time.sleep(0.05)
    from calibrant.monitor.service.running_service import Subscription

    own = Subscription(lambda model: model != "hidden")
    for revision in range(1000):
        own.offer({"m": revision, "hidden": revision})
    assert own.take() == {"m": 999}


def test_the_service_stops_after_its_running_requests(start):
    service = start()
    service.request("PUT", OWN, {})
    go, replies = threading.Event(), []
    service.service.writers._waiting.put((go.wait, __import__("concurrent.futures").futures.Future()))
    worker = threading.Thread(target=lambda: replies.append(service.request("POST", f"{OWN}/observations", ROW)))
    worker.start()
    stream = raw(service, b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout=20)
    _receive_until(stream, b"retry")
    service.server.should_exit = True
    assert read_all(stream).endswith(b"0\r\n\r\n")  # the stream ends
    with pytest.raises(OSError, match="refused"):
        raw(service)
    go.set()
    worker.join(20)
    assert replies[0].status == 201
    assert cb.Monitor(service.settings.store, model="m").status().n_rows == 1
