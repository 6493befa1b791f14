"""Measure the service under load on loopback.

``make bench NAME=service`` runs three measurements. ``rate``: clients send batches for some time; latencies, and rows
in the store beside rows that were acknowledged.
``memory``: many requests of all kinds; resident memory of the service on the way.
``slow``: the load of `rate` while other clients open connections and send nothing, half a request, or a body that never
ends, and while others do not read their answers.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from tools import service_results
from tools.service_process import ROOT, ServiceProcess, new_store

DEFAULTS = (
    ["rate", "--pause", "150"],
    ["rate", "--pause", "150", "--store", "postgresql"],
    ["rate", "--pause", "250", "--store", "postgresql"],
    ["slow", "--pause", "150", "--seconds", "40"],
    ["memory"],
)
MODEL = "load"
HOURS_PER_SECOND = 1 / 20  # windows of an hour close every 20 seconds of the test


def bodies(rng: np.random.Generator, n_rows: int, n: int = 50) -> list[dict[str, Any]]:
    """Return batches of rows with scores of three decimals."""
    batches = []
    for _ in range(n):
        p = rng.random(n_rows).round(3)
        batches.append({"y": (rng.random(n_rows) < p).astype(int).tolist(), "p": p.tolist()})
    return batches


def send_batches(port: int, number: int, seconds: float, n_rows: int, pause: float, out: Any) -> None:
    """Send batches one after the other; report the latency of each and the acknowledged rows."""
    rng = np.random.default_rng(number)
    texts = [json.dumps(body)[:-1] for body in bodies(rng, n_rows)]
    latencies, acknowledged, statuses, i = [], 0, {}, 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    begun = time.monotonic()
    target = begun + pause * rng.random()
    while time.monotonic() - begun < seconds:
        if pause:
            time.sleep(max(0.0, target - time.monotonic()))
            target = max(target + pause, time.monotonic())
        minutes = (time.monotonic() - begun) * HOURS_PER_SECOND * 60
        moment = np.datetime64("2026-01-01T00:00:00") + np.timedelta64(int(minutes * 60), "s")
        body = f'{texts[i % len(texts)]}, "time": "{moment}"}}'
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{number}-{i}"}
        sent = time.perf_counter()
        connection.request("POST", f"/v1/models/{MODEL}/observations", body, headers)
        answer = connection.getresponse()
        data = json.loads(answer.read())
        latencies.append(time.perf_counter() - sent)
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        acknowledged += data.get("n_rows", 0)
        i += 1
    connection.close()
    out.put((latencies, acknowledged, statuses))


def measure_rate(service: ServiceProcess, *, clients: int, seconds: float, n_rows: int, pause: float) -> dict[str, Any]:
    """Send batches from several processes; return rates, latencies and counts."""
    context = multiprocessing.get_context("spawn")
    out = context.SimpleQueue()
    with cb.MonitorClient(service.url, model=MODEL) as client:
        client.create(window="hour")
        before = client.status()["n_rows"]
    workers = [
        context.Process(target=send_batches, args=(service.port, i, seconds, n_rows, pause, out))
        for i in range(clients)
    ]
    begun = os.times()
    for worker in workers:
        worker.start()
    results = [out.get() for _ in workers]
    for worker in workers:
        worker.join()
    latencies = np.concatenate([result[0] for result in results]) * 1000
    acknowledged = sum(result[1] for result in results)
    with cb.MonitorClient(service.url, model=MODEL) as client:
        stored = client.status()["n_rows"] - before
    statuses: dict[int, int] = {}
    for _, _, result in results:
        for status, count in result.items():
            statuses[status] = statuses.get(status, 0) + count
    return {
        "clients": clients,
        "seconds": seconds,
        "rows_per_request": n_rows,
        "pause_ms": 1000 * pause,
        "requests": int(latencies.size),
        "requests_per_second": round(latencies.size / seconds, 1),
        "rows_per_second": round(acknowledged / seconds, 1),
        "p50_ms": round(float(np.quantile(latencies, 0.5)), 1),
        "p99_ms": round(float(np.quantile(latencies, 0.99)), 1),
        "max_ms": round(float(latencies.max()), 1),
        "rows_acknowledged": acknowledged,
        "rows_stored": stored,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "load_average_before": round(os.getloadavg()[0], 1),
        "wall_s": round(os.times().elapsed - begun.elapsed, 1),
    }


def measure_memory(service: ServiceProcess, *, requests: int, seed: int) -> dict[str, Any]:
    """Send requests of all kinds; return the resident memory every twentieth of the way, in MB."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    rows = bodies(rng, 10)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    model, statuses, memory = f"/v1/models/{MODEL}", {}, []
    begun = time.monotonic()
    for i in range(requests):
        if i % (requests // 20) == 0:
            memory.append(round(service.memory() / 1024, 1))
        kind = draw.random()
        headers = {"Content-Type": "application/json"}
        if kind < 0.1:
            day = np.datetime64("2026-02-01T00:00") + np.timedelta64(i // 100, "m")
            request = ("POST", f"{model}/observations", json.dumps({**rows[i % 50], "time": str(day)}))
        elif kind < 0.15:
            request = ("POST", f"{model}/observations", '{"y": [1], "p": [2], "time": "2026-01-01"}')
        elif kind < 0.2:
            request = ("GET", f"{model}/status", None)
        elif kind < 0.25:
            request = ("GET", f"/v1/models/none{i}/status", None)
        elif kind < 0.3:
            request = ("GET", f"/path{i}?token=cbt_x_{i}", None)
        else:
            request = ("GET", ("/v1/health", "/v1/models", f"{model}/alarms")[i % 3], None)
        connection.request(*request, headers)
        answer = connection.getresponse()
        answer.read()
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    memory.append(round(service.memory() / 1024, 1))
    return {
        "requests": requests,
        "seconds": round(time.monotonic() - begun, 1),
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "memory_mb": memory,
    }


@contextmanager
def slow_clients(port: int, n: int) -> Iterator[list[socket.socket]]:
    """Open connections of four kinds, `n` of each, and keep them open."""
    head = f"POST /v1/models/{MODEL}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    starts = (
        b"",
        b"GET /v1/models HTTP/1.1\r\nHos",
        f"{head}Content-Length: 1000\r\n\r\n{{".encode(),
        f"GET /v1/models/{MODEL}/history?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20,
    )
    connections = []
    for start in starts:
        for _ in range(n):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(start)
            connections.append(connection)
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


def measure(kind: str, service: ServiceProcess, options: argparse.Namespace) -> dict[str, Any]:
    """Run one measurement."""
    rate = {"clients": options.clients, "n_rows": options.rows, "pause": options.pause / 1000}
    if kind == "rate":
        return measure_rate(service, seconds=options.seconds, **rate)
    if kind == "memory":
        with cb.MonitorClient(service.url, model=MODEL) as client:
            client.create(window="hour")
        return measure_memory(service, requests=options.requests, seed=1)
    alone = measure_rate(service, seconds=options.seconds, **rate)
    with slow_clients(service.port, options.slow):
        beside = measure_rate_again(service, options, rate)
    return {"slow_clients": 4 * options.slow, "without": alone, "with": beside}


def measure_rate_again(service: ServiceProcess, options: argparse.Namespace, rate: dict[str, Any]) -> dict[str, Any]:
    """Measure with new keys: the service knows those of the first measurement."""
    with cb.MonitorClient(service.url, model=MODEL) as client:
        client.delete()
    return measure_rate(service, seconds=options.seconds, **rate)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run one measurement on one kind of store."""
    with new_store(options.store) as (store, folder):
        service = ServiceProcess(store, folder)
        service.start()
        try:
            result = measure(options.kind, service, options)
            assert service.stop() == 0
        finally:
            if service.process is not None and service.process.poll() is None:
                service.kill()
    return {"measurement": options.kind, "store": options.store, **result}


def main() -> None:
    """Run all measurements and write a file, or add one measurement to it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=["rate", "memory", "slow"], help="all by default: a new file")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0, help="milliseconds between the requests of a client")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "studies" / "service_load.json")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.kind and options.out.exists() else []
    chosen = [options]
    if options.kind is None:
        chosen = [parser.parse_args(arguments, argparse.Namespace(**vars(options))) for arguments in DEFAULTS]
    for measurement in chosen:
        results.append(run(measurement))
        options.out.write_text(json.dumps(results, indent=1) + "\n")
        print(json.dumps(results[-1], indent=1))
    service_results.main()


if __name__ == "__main__":
    main()
