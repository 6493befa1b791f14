"""Weighted replicates with the same arguments on both kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._kernels import reference_replicates
from tests.fuzz.choices import STRANGE, Choices

WEIGHTED = ("weighted_replicates",)

# Any rising numbers may stand for critical values: both kernels interpolate the same ones.
CRITICAL = 3.8 / (1 - np.linspace(0, 0.6, 40)) ** 2


def weighted_calls(arguments: Any) -> list[Callable[[], Any]]:
    """Return the call of each kernel."""
    table, drawn = arguments
    makers = (_kernels.weighted_replicates, reference_replicates.weighted_replicates)
    return [lambda make=make: make(*table)(*drawn) for make in makers]


def weighted_arguments(choices: Choices) -> Any:
    """Return rows and a plan, and draws of the rows or of clusters; some of them are wrong."""
    rng = np.random.default_rng(choices.whole(0, 2**16 - 1))
    entries = choices.pick((0, 1, 2, 10, 63, 64, 65, 200))
    steps = choices.pick((5, 64, 10**6))
    score = np.unique(rng.integers(0, steps + 1, entries) / steps)
    rows = np.ones(score.size, dtype=np.int64) if choices.whole(0, 1) else rng.integers(1, 4, score.size)
    size = int(rows.sum())
    weight = np.round(rng.random(size) * choices.pick((1, 4, 1e6)), choices.pick((0, 1, 15))) + choices.pick((1, 1e-6))
    event = (rng.random(size) < np.repeat(score, rows) ** choices.pick((1, 3))).astype(np.uint8)
    if size and choices.whole(0, 15) == 0:
        weight[choices.whole(0, size - 1)] = choices.pick((*STRANGE, 0.0, 1e300, 1e-300))
    if size and choices.whole(0, 31) == 0:
        event[0] = 2
    if size and choices.whole(0, 31) == 0:
        rows[0] = choices.pick((0, 5, 2**62))
    return (score, rows, weight, event, _plan(choices, score)), _draws(choices, rng, size)


def _plan(choices: Choices, score: Any) -> _kernels.Plan:
    inner = [choices.whole(0, score.size) for _ in range(choices.whole(0, 4))]
    limits = [choices.pick((-1.0, -1.0, 0.0, 2.5, 40.0)) for _ in range(2)]
    shares = [choices.pick((0.0, 0.05, 0.3)), choices.pick((0.0, 1.0)), choices.pick((0.2, 1.0))]
    blocks = _kernels.WeightedBlocks(limits[0], *shares[:2], limits[1], shares[2], CRITICAL, 0.01)
    return _kernels.Plan(
        fixed=[np.sort(np.array([0, *inner], dtype=np.int64))],
        quantiles=[choices.whole(0, 5)] if choices.whole(0, 1) else [],
        blocks=[blocks] if choices.whole(0, 2) else [],
        linear=[(score, 1 - score)] if choices.whole(0, 1) else [],
    )


def _draws(choices: Choices, rng: Any, size: int) -> Any:
    columns = choices.whole(1, 9) if choices.whole(0, 1) else size
    kind = choices.pick((np.uint8, np.uint8, np.int32))
    drawn = rng.integers(0, choices.pick((1, 2, 5, 256)), (choices.whole(1, 3), columns)).astype(kind)
    if drawn.size and kind is np.int32 and choices.whole(0, 15) == 0:
        drawn[0, 0] = -1
    if columns == size and choices.whole(0, 1):
        return drawn, None
    return drawn, rng.integers(0, columns + (choices.whole(0, 31) == 0), size).astype(np.int32)
