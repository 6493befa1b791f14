"""Kill writers of a monitor at random points, and count lost and repeated batches.

``make kill NAME=monitor``: a writer stores batches one after the other and prints the number of each one that is
acknowledged. It is killed (SIGKILL) at random times and started again at the batch after the last acknowledged one, so
that a batch that was stored but not acknowledged is sent twice. In the end each batch must be in the store once: batch
i has i + 1 rows of which the scores are its own, so the store shows which ones are missing or repeated. PostgreSQL runs
with the default settings of durability (fsync and synchronous_commit on).
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tools.service_process import new_store

ROOT = Path(__file__).parents[2]
STORES = ("sqlite", "postgresql")
MODEL = "killed"
BATCHES_PER_DAY = 50
SCORES = 1 << 20  # batch i has the scores i / SCORES


@dataclass(frozen=True)
class Result:
    """Counts of one run."""

    store: str
    batches: int
    acknowledged: int
    kills: int
    resent: int
    lost: int
    counted_twice: int


def rows(batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a batch: 1 to 5 rows with its own score."""
    n = 1 + batch % 5
    return np.arange(n) % 2, np.full(n, (batch + 1) / SCORES)


def write(store: str, first: int, n_batches: int) -> None:
    """Store batches and print the number of each acknowledged one."""
    import calibrant as cb

    monitor = cb.Monitor(store, model=MODEL)
    start = np.datetime64("2026-01-01")
    for batch in range(first, n_batches):
        receipt = monitor.observe(*rows(batch), time=start + batch // BATCHES_PER_DAY, group="g", batch=batch)
        sys.stdout.write(f"{batch} {int(receipt.repeated_batch)}\n")
        sys.stdout.flush()


def run(store: str, *, n_batches: int, n_kills: int, seed: random.Random) -> Result:
    """Write all batches with a number of kills; return what the store holds."""
    done = -1
    kills = resent = 0
    while done + 1 < n_batches:
        command = [sys.executable, "-m", "tools.kill.monitor", "--write", store, str(done + 1), str(n_batches)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert writer.stdout is not None
        # After a random number of acknowledgements, and then at a random moment of the next batches.
        left = None if kills >= n_kills else seed.randint(1, max(1, (n_batches - done - 1) // (n_kills - kills + 1)))
        for line in writer.stdout:
            if not line.endswith("\n"):  # killed while it wrote, so not acknowledged
                break
            batch, repeated = map(int, line.split())
            assert batch == done + 1
            done, resent = batch, resent + repeated
            if left is not None:
                left -= 1
                if left <= 0:
                    time.sleep(seed.uniform(0, 0.02))
                    writer.send_signal(signal.SIGKILL)
                    kills, left = kills + 1, None
        writer.stdout.close()
        code = writer.wait()
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the writer failed with {code}")
    return check(store, n_batches, done + 1, kills, resent)


def check(store: str, n_batches: int, acknowledged: int, kills: int, resent: int) -> Result:
    """Count batches that are not in the store, and those that are in it more than once."""
    import calibrant as cb

    table = cb.Monitor(store, model=MODEL).evaluate(n_resamples=1, metrics=["ece"]).table
    stored = dict(zip(np.rint(table.score * SCORES).astype(int).tolist(), table.n.tolist(), strict=True))
    expected = {batch + 1: rows(batch)[0].size for batch in range(n_batches)}
    lost = sum(stored.get(score, 0) < n for score, n in expected.items())
    twice = sum(n > expected.get(score, 0) for score, n in stored.items())
    return Result(
        store.partition("+")[0] if "://" in store else "sqlite", n_batches, acknowledged, kills, resent, lost, twice
    )


def main() -> None:
    """Run the long test on one or both kinds of store and write the results to files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", nargs=3, metavar=("STORE", "FIRST", "BATCHES"))
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--store", choices=STORES, help="by default both, one after the other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="add the counts to those of earlier runs in the file")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "studies")
    options = parser.parse_args()
    if options.write:
        write(options.write[0], int(options.write[1]), int(options.write[2]))
        return
    for store in [options.store] if options.store else STORES:
        kill(store, options)


def kill(kind: str, options: argparse.Namespace) -> None:
    """Run the long test on a kind of store and write the result to a file."""
    with new_store(kind, durable=True) as (store, _):
        result = run(store, n_batches=options.batches, n_kills=options.kills, seed=random.Random(options.seed))
    path = options.out / f"monitor_kill_{kind}.json"
    counts = asdict(result) | {"runs": 1}
    if options.add and path.exists():
        before = json.loads(path.read_text())
        counts = {name: value if name == "store" else value + before[name] for name, value in counts.items()}
    text = json.dumps(counts, indent=2)
    print(text)
    path.write_text(text + "\n")


if __name__ == "__main__":
    main()
