"""Tensors counted on a CUDA device: exact TCE of 1,000,000,000 scores, and `CalibrationCounter` beside torchmetrics.

``make bench NAME=gpu`` needs a device with 40 GB of free memory; docs/performance.rst has the numbers. Scores are
float32 with normal log-odds, outcomes bool, both on the device before a measurement begins. The first call includes the
initialisation of torch's kernels and memory; the other times are medians of seven calls.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torchmetrics.classification import BinaryCalibrationError

import calibrant as cb
from calibrant._kernels import tensors

CALLS = 7


def rows(size: int, seed: int = 0) -> tuple[Any, Any]:
    """Return outcomes and scores on the device."""
    torch.manual_seed(seed)
    p = torch.empty(size, device="cuda").normal_(-2, 1.5).sigmoid_()
    return torch.rand(size, device="cuda") < p**1.05, p


def seconds(call: Callable[[], object]) -> float:
    """Return the time of one call, with all work on the device."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def median(call: Callable[[], object]) -> float:
    """Return the median time of several calls."""
    return statistics.median(seconds(call) for _ in range(CALLS))


def tce_rows(size: int) -> list[dict[str, Any]]:
    """Measure exact counting and TCE, and their steps."""
    y, p = rows(size)
    first = seconds(lambda: cb.tce(y, p))
    table = cb.ScoreTable.from_arrays(y, p)
    columns = [torch.tensor(column, device="cuda") for column in (table.score, table.n, table.k)]
    times = {
        "exact TCE, first call": first,
        "exact TCE": median(lambda: cb.tce(y, p)),
        "of this: sort and count on the device": median(lambda: tensors.runs(p, y)),
        "of this: copy of the table": median(lambda: [tensors.to_host(column) for column in columns]),
        "of this: TCE of the table": median(lambda: cb.tce(cb.ScoreTable(table.score, table.n, table.k))),
        "copy of all rows to the host alone": seconds(lambda: (y.cpu(), p.cpu())),
    }
    return [{"what": name, "rows": size, "distinct scores": len(table), "ms": 1000 * s} for name, s in times.items()]


def counter_rows(size: int) -> list[dict[str, Any]]:
    """Measure `CalibrationCounter` and torchmetrics' metric."""
    y, p = rows(size)
    target = y.long()
    ours = cb.metrics.CalibrationCounter("ece").cuda()
    ours.update(p, target)

    def theirs() -> object:
        metric = BinaryCalibrationError(n_bins=15, norm="l1").cuda()
        metric.update(p, target)
        return metric.compute()

    theirs()
    times = {
        "CalibrationCounter.update": median(lambda: ours.update(p, target)),
        "CalibrationCounter.table and ECE": median(lambda: cb.ece(ours.table())),
        "torchmetrics BinaryCalibrationError.update and compute": median(theirs),
    }
    return [
        {"what": name, "rows": size, "distinct scores": len(ours.table()), "ms": 1000 * s} for name, s in times.items()
    ]


def check(size: int) -> None:
    """Compare the tables of the device with those of the host."""
    y, p = rows(size)
    host = cb.ScoreTable.from_arrays(y.cpu().numpy(), p.cpu().numpy())
    wide = p.double() ** 1.01
    counter = cb.metrics.CalibrationCounter().cuda()
    counter.update(p, y)
    same = [
        cb.ScoreTable.from_arrays(y, p) == host,
        cb.ScoreTable.from_arrays(y, wide) == cb.ScoreTable.from_arrays(y.cpu().numpy(), wide.cpu().numpy()),
        counter.table() == host.round(2**-20),
    ]
    if not all(same):
        raise AssertionError(f"tables differ: {same}")


def main() -> None:
    """Check, measure and print; sizes may be given: rows of TCE, rows of the counter."""
    sizes = [int(float(size)) for size in sys.argv[1:3]] or [10**9, 10**8]
    check(10**7)
    print(torch.cuda.get_device_name(), torch.__version__)
    for row in tce_rows(sizes[0]) + counter_rows(sizes[1]):
        print(f"{row['what']:<56} {row['rows']:>13,} rows {row['distinct scores']:>13,} scores {row['ms']:>8.1f} ms")


if __name__ == "__main__":
    main()
