"""Rebuild the tables of Yang & Bi.

``python -m research.reproduction.costs [--run Cancer:tree:MetaCal:100 ...] [--quick]``.

Without options the page is written from the stored results. ``--run`` computes the splits that are not stored; it can
be stopped at any time and continues later. ``--quick`` repeats one split of the smallest set, compares it with the
stored result, and writes nothing.
"""

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from research.reproduction.costs import figure, pages, results, tables
from research.reproduction.costs.data import TABULAR
from research.reproduction.costs.experiment import PARTS, timed
from research.reproduction.sources import NoDataError

Task = tuple[str, str, str, int]  # part, set, model, seed

MODELS = {**dict.fromkeys(TABULAR, ("tree", "forest")), "Sentiment": ("softmax",)}

# Fast parts first, then a few splits of each, then slow ones (Bank with forests: six minutes per split).
_ALL = [
    f"{name}:{model}:{part}:100"
    for part in ("scores", "isotonic")
    for name, models in MODELS.items()
    for model in models
] + [
    f"{name}:{model}:MetaCal:{seeds}"
    for seeds in (5, 20, 40, 100)
    for model in ("tree", "softmax", "forest")
    for name, models in MODELS.items()
    if model in models
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m research.reproduction.costs", description=__doc__)
    parser.add_argument(
        "--run", nargs="*", metavar="SET:MODEL:PART:SEEDS", help="splits to have at the end; without: all"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    if options.quick and options.run is not None:
        parser.error("--quick writes nothing; leave out --run")
    if options.run is not None:
        run([task for text in options.run or _ALL for task in _tasks(text)], options.jobs)
    if options.quick:
        return compared()
    kept = results.read()
    counts = pages.write(kept)
    figure.agreement(kept).savefig(pages.OUT / "costs" / "agreement.png", dpi=144)
    print(f"{counts.total()} cells: {', '.join(f'{n} {verdict}' for verdict, n in counts.most_common())}")
    return 0


def compared() -> int:
    """Repeat one split and compare it with the stored one."""
    split = ("Cancer", "tree", 0)
    kept = results.read()
    if split not in kept:
        print(f"{results.KEPT} has no {split}.")
        return 1
    try:
        again = {name: value for part in PARTS for name, value in PARTS[part](*split).items()}
    except NoDataError as error:
        print(f"costs: left out. {error}")
        return 0
    differ = {
        name: (kept[split].get(name, math.nan), value)
        for name, value in again.items()
        if not math.isclose(value, kept[split].get(name, math.nan), rel_tol=1e-5, abs_tol=1e-7)
    }
    verdicts = Counter(cell.verdict for cell in tables.cells(kept))
    print(f"costs: {verdicts.total()} cells, {', '.join(f'{n} {verdict}' for verdict, n in verdicts.most_common())}")
    print(f"costs: {len(again) - len(differ)} of {len(again)} values of a split come out again")
    for name, (was, now) in differ.items():
        print(f"    {name}: kept {was:.6g}, now {now:.6g}")
    return int(bool(differ))


def _tasks(text: str) -> Iterator[Task]:
    name, model, part, seeds = (text.split(":") + 4 * [""])[:4]
    if model not in MODELS.get(name, ()) or part not in PARTS or not seeds.isdecimal():
        known = ", ".join(f"{name}:{model}" for name, models in MODELS.items() for model in models)
        raise SystemExit(f"--run {text}: it must be SET:MODEL:PART:SEEDS, of {known} and the parts {', '.join(PARTS)}.")
    yield from ((part, name, model, seed) for seed in range(int(seeds)))


def run(tasks: list[Task], jobs: int) -> None:
    """Compute the parts of splits that are not stored, and store each when it is finished."""
    kept = results.read()
    left = [task for task in dict.fromkeys(tasks) if f"seconds, {task[0]}" not in kept.get(task[1:], {})]
    print(f"{len(set(tasks))} parts of splits, {len(left)} to do", flush=True)
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        work = {pool.submit(timed, *task): task for task in left}
        try:
            for done, future in enumerate(as_completed(work), 1):
                part, *key = work[future]
                text = f"{time.monotonic() - began:7.0f} s  {done} of {len(left)}: {', '.join(map(str, key))}, {part}, "
                try:
                    found = future.result()
                except NoDataError as error:
                    print(f"{text}skipped. {error}", flush=True)
                    continue
                results.add(tuple(key), found)
                print(f"{text}{found[f'seconds, {part}']:.0f} s", flush=True)
        except BaseException:  # stop the remaining work, which would not be stored
            pool.shutdown(cancel_futures=True)
            raise


if __name__ == "__main__":
    sys.exit(main())
