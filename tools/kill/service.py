"""Kill the service at random points under load, and count lost and repeated batches and alarms.

``make kill NAME=service`` runs it. Clients send batches to one model after the other, and repeat each one until it is
acknowledged. The scores are far too small, so each model soon raises an alarm. The service is killed (SIGKILL) at
random times and started again. In the end each batch must be in the store once: each batch has its own score and number
of rows. A receiver of webhooks that deduplicates by id must have got each entry of the outbox.
"""

import argparse
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import calibrant as cb
from calibrant.monitor import schema
from calibrant.monitor.client import ServiceError
from calibrant.monitor.store import Store
from tools import service_results
from tools.service_process import ROOT, Receiver, ServiceProcess, new_store

STORES = ("sqlite", "postgresql")
BATCHES_PER_MODEL = 6
SCORES = 1024
CONFIG = """
lease_seconds = 3
retry_seconds = 0.2
poll_seconds = 0.2
[[webhooks]]
name = "tests"
url = "{url}"
secret_variable = "SECRET_OF_TESTS"
"""


@dataclass(frozen=True)
class Result:
    """Counts of one run."""

    store: str
    kills: int
    clients: int
    batches_acknowledged: int
    batches_sent_again: int
    batches_lost: int
    batches_counted_twice: int
    alarms: int
    outbox_entries: int
    entries_received: int
    entries_received_again: int
    entries_lost: int
    unsigned: int


def rows(batch: int) -> tuple[list[int], list[float]]:
    """Return the rows of a batch: half of them are events, with a score below 1 %."""
    n = 20 + batch
    return [i % 2 for i in range(n)], [(batch + 1) / SCORES] * n


class Client(threading.Thread):
    """Sends the batches of its models one after the other until it is told to stop."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(daemon=True)
        self.url, self.number = url, number
        self.done: dict[str, list[int]] = {}
        self.n_repeated = 0
        self.stopping = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            model = 0
            while not self.stopping.is_set():
                self._send_model(f"client {self.number} model {model}")
                model += 1
        except Exception as error:
            self.error = error

    def _send_model(self, model: str) -> None:
        with cb.MonitorClient(self.url, model=model, retries=0, timeout=20) as client:
            self._repeat(lambda: client.create(window="day", dependence="independent"))
            self.done[model] = []
            for batch in range(BATCHES_PER_MODEL):
                day = str(np.datetime64("2026-01-01") + batch)
                name = f"batch {batch}"
                receipt = self._repeat(partial(client.observe, *rows(batch), time=day, batch=name))
                self.n_repeated += receipt.repeated_batch
                self.done[model].append(batch)
                if self.stopping.is_set():
                    return

    def _repeat(self, call: Callable[[], Any]) -> Any:
        """Call until there is an answer, at short intervals, so that requests run when the service is killed."""
        while True:
            try:
                return call()
            except ServiceError as error:
                if error.status not in (0, 503):
                    raise
                time.sleep(0.02)

    @property
    def n_done(self) -> int:
        """Number of acknowledged batches."""
        return sum(map(len, list(self.done.values())))


def run(store: str, folder: Path, *, n_kills: int, n_clients: int, seed: random.Random, kind: str) -> Result:
    """Kill the service a number of times under load; return what the store and the receiver hold."""
    receiver = Receiver(refuse_every=7)
    service = ServiceProcess(store, folder, config=CONFIG.format(url=receiver.url))
    service.start()
    clients = [Client(service.url, number) for number in range(n_clients)]
    for client in clients:
        client.start()
    try:
        for _ in range(n_kills):
            _wait_for_batches(clients, seed.randint(1, 25))
            time.sleep(seed.uniform(0, 0.05))
            service.kill()
            service.start()
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join(120)
            if client.error is not None:
                raise client.error
        _wait_for_deliveries(store)
        code = service.stop()
        assert code == 0, f"the service ended with {code}"
        return check(store, receiver, clients, n_kills, kind)
    finally:
        if service.process is not None and service.process.poll() is None:
            service.kill()
        receiver.close()


def _wait_for_batches(clients: list[Client], n: int) -> None:
    """Wait until further batches are acknowledged."""
    before = sum(client.n_done for client in clients)
    while sum(client.n_done for client in clients) < before + n and all(client.error is None for client in clients):
        time.sleep(0.001)


def _wait_for_deliveries(store: str, seconds: float = 120) -> None:
    opened, deadline = Store(store), time.monotonic() + seconds
    delivered = sa.select(schema.deliveries.c.outbox_id).where(schema.deliveries.c.state == "delivered")
    query = sa.select(sa.func.count()).where(schema.outbox.c.id.not_in(delivered))
    while time.monotonic() < deadline:
        with opened.read() as connection:
            if not connection.execute(query).scalar_one():
                return
        time.sleep(0.5)


def check(store: str, receiver: Receiver, clients: list[Client], n_kills: int, kind: str) -> Result:
    """Compare the store and the receiver with what the clients were told."""
    lost = twice = acknowledged = 0
    for client in clients:
        for model, batches in client.done.items():
            acknowledged += len(batches)
            if not batches:
                continue
            table = cb.Monitor(store, model=model).table()
            stored = dict(zip(np.rint(table.score * SCORES).astype(int).tolist(), table.n.tolist(), strict=True))
            expected = {batch + 1: len(rows(batch)[0]) for batch in batches}
            lost += sum(stored.get(score, 0) < n for score, n in expected.items())
            twice += sum(n > expected.get(score, n) for score, n in stored.items())
    with Store(store).read() as connection:
        entries = set(connection.execute(sa.select(schema.outbox.c.id)).scalars())
        alarms = connection.execute(sa.select(sa.func.count()).select_from(schema.alarms)).scalar_one()
    return Result(
        store=kind,
        kills=n_kills,
        clients=len(clients),
        batches_acknowledged=acknowledged,
        batches_sent_again=sum(client.n_repeated for client in clients),
        batches_lost=lost,
        batches_counted_twice=twice,
        alarms=int(alarms),
        outbox_entries=len(entries),
        entries_received=len(receiver.seen.keys() & entries),
        entries_received_again=sum(receiver.seen.values()) - len(receiver.seen),
        entries_lost=len(entries - receiver.seen.keys()),
        unsigned=receiver.n_unsigned,
    )


def main() -> None:
    """Run the long test on one or both kinds of store and write the results to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--store", choices=STORES, help="by default both, one after the other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="keep the results of the file")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "studies" / "service_kill.json")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.add and options.out.exists() else []
    for kind in [options.store] if options.store else STORES:
        with new_store(kind) as (store, folder):
            result = run(
                store,
                folder,
                n_kills=options.kills,
                n_clients=options.clients,
                seed=random.Random(options.seed),
                kind=kind,
            )
        results.append({"seed": options.seed, **asdict(result)})
        options.out.write_text(json.dumps(results, indent=2) + "\n")
        print(json.dumps(asdict(result), indent=2))
    service_results.main()


if __name__ == "__main__":
    main()
