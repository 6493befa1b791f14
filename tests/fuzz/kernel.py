"""Both kernels with the same arguments: results that agree, or the same error."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._kernels import reference, reference_replicates
from tests.fuzz.choices import Choices
from tests.fuzz.kernel_groups import GROUPS, group_arguments, group_calls
from tests.fuzz.kernel_weights import WEIGHTED, weighted_arguments, weighted_calls
from tests.kernel_results import agree

Ints = Any


class DifferenceError(AssertionError):
    """The kernels differ."""


FUNCTIONS = (
    *("count", "row_sums", "row_squared_errors", "pava_bc", "bin_sums", "rejected", "squared_errors", "locate"),
    *("cumulative_extremes", "venn_abers", "window_distances", "draw", "draws", "signed_sums"),
    *("simulate", "resample", "resample_drawn", "measure", "simulated", "resampled"),
    *GROUPS,
    *("signs", "poisson_draws", "class_draws", "simulate_drawn"),
    *WEIGHTED,
    "resample_together",
)
GIVEN = ("resample_drawn", "resample_together", "simulate_drawn")  # draws
REPLICATES = ("simulate", "resample", *GIVEN, "measure", "simulated", "resampled")
DRAWN = ("draw", "draws", "signed_sums", "signs", "poisson_draws", "class_draws")
# Functions that check scores, or take any.
CHECKED = ("rejected", "locate", *REPLICATES)
LABELS = (np.int64, np.int8, np.int32, np.int16, np.float64, np.float32)


def seeds() -> list[bytes]:
    return [bytes([i, *((i * j) % 251 for j in range(60))]) for i in range(len(FUNCTIONS))]


def run(data: bytes) -> None:
    choices = Choices(data)
    name = choices.pick(FUNCTIONS)
    other = reference_replicates if name in REPLICATES or name in DRAWN else reference
    arguments = _arguments(name, choices)
    if arguments is None:
        return
    with np.errstate(all="ignore"):
        calls: Any
        if name in GROUPS:
            calls = [lambda call=call: _as_list(call()) for call in group_calls(name, arguments)]
        elif name in WEIGHTED:
            calls = [lambda call=call: _as_list(call()) for call in weighted_calls(arguments)]
        elif name in REPLICATES:
            table, method = arguments
            calls = [
                lambda each=each: _as_list(_measure(each, name, table, method))
                for each in (_kernels.replicates, other.replicates)
            ]
        else:
            makers = (getattr(_kernels, name), ROW_SUMS.get(name) or getattr(other, name))
            calls = [lambda make=make: _as_list(make(*arguments)) for make in makers]
        left, right = (_result(call) for call in calls)
    if name in ROW_SUMS and left == [None]:
        return  # a table decides
    sums = len(_kernels.ReplicateSums._fields)
    if name in (*REPLICATES, *WEIGHTED) and not isinstance(left, str) and not isinstance(right, str):
        for i in range(4, len(left), sums):  # -1: the decision needs SciPy, which the reference asks itself.
            left[i] = np.where(left[i] == -1, right[i], left[i])
            right[i] = np.where(right[i] == -1, left[i], right[i])
    if not _same(left, right):
        raise DifferenceError(name, arguments, left, right)


def _measure(make: Callable[..., Any], name: str, table: Any, method: Any) -> Any:
    *columns, in_clusters = table
    own = make(*columns, in_clusters=in_clusters)
    if name != "resample_together":
        return getattr(own, name)(*method)
    score, *others = columns
    found = own.resample_together([make(score / 2, *others, in_clusters=in_clusters)], *method)
    return [column for sums in found for column in sums]


def _as_list(found: Any) -> list[Any]:
    return [found] if found is None or isinstance(found, (float, int, np.ndarray)) else list(found)


def _result(call: Callable[[], list[Any]]) -> list[Any] | str:
    try:
        return call()
    except ValueError as error:
        return str(error)


def _row_sums(score: Any, label: Any, edges: Any) -> tuple[Any, ...]:
    """Return what the compiled kernel adds up over rows; the reference kernel leaves it to tables."""
    reference.row_sums(score, label, edges)
    bins, count = np.searchsorted(edges[1:-1], score, side="right"), edges.size - 1
    n, k = (np.bincount(which, minlength=count).astype(np.int64) for which in (bins, bins[label == 1]))
    return n, k, np.bincount(bins, weights=score, minlength=count)


def _row_squared_errors(score: Any, label: Any) -> tuple[int, float]:
    reference.row_squared_errors(score, label)
    return int(np.sum(label == 1)), float(np.sum((score.astype(np.float64) - (label == 1)) ** 2))


ROW_SUMS: dict[str, Any] = {"row_sums": _row_sums, "row_squared_errors": _row_squared_errors}


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return bool(left == right)
    return agree(left, right)


def _ints(values: Any) -> Ints:
    return np.array(values, dtype=np.int64)


def _counts(choices: Choices, size: int) -> tuple[Ints, Ints]:
    """Return rows and events: mostly valid, sometimes large, sometimes any."""
    kind = choices.whole(0, 15)
    if kind == 0:
        return _ints([choices.integer() for _ in range(size)]), _ints([choices.integer() for _ in range(size)])
    most = 2 ** choices.pick((3, 3, 6, 10, 20, 40)) if kind > 2 else 3
    n = [choices.whole(1, most) for _ in range(size)]
    return _ints(n), _ints([choices.whole(0, each) for each in n])


def _scores(choices: Choices, size: int) -> Any:
    if choices.whole(0, 15) == 0:
        return np.array([choices.number() for _ in range(size)])
    return np.unique(np.array([choices.share() for _ in range(size)]) + 0.0)


def _starts(choices: Choices, rows: int) -> Ints:
    if choices.whole(0, 15) == 0:
        return _ints([choices.whole(-1, rows + 1) for _ in range(choices.whole(0, 3))])
    inner = [choices.whole(0, max(rows - 1, 0)) for _ in range(choices.whole(0, 4))]
    return np.unique(_ints([0, *inner])) if rows else _ints([])


def _level(choices: Choices) -> float:
    return float(choices.pick((0.05, 0.05, 0.01, 0.5, 0.999, 1e-9, 0.0, 1.0, -0.1, float("nan"))))


def _arguments(name: str, choices: Choices) -> Any:
    """Return arguments of a function; None if their order would be wrong, which is not checked."""
    if name in GROUPS or name in WEIGHTED:
        return weighted_arguments(choices) if name in WEIGHTED else group_arguments(name, choices)
    if name in ("count", "row_sums", "row_squared_errors"):
        return _rows(name, choices)
    size = choices.whole(0, 12) * choices.pick((1, 1, 1, 12))
    if name in DRAWN:
        return _drawn(name, choices, size)
    score = _scores(choices, size)
    if name not in CHECKED and not ((score >= 0) & (score <= 1)).all():
        return None
    if name == "window_distances":
        return None if not _sorted(score) else (score, np.array([choices.share() for _ in score]), choices.whole(0, 6))
    if name == "locate":
        values = np.array([choices.number() for _ in range(choices.whole(0, 9))])
        return score, values
    n, k = _counts(choices, score.size)
    if name in REPLICATES:
        return _replicates(name, choices, (score, n, k))
    if name == "rejected":
        start = _starts(choices, score.size)
        bins = _counts(choices, start.size)
        return (
            (score, n, start, *bins, _level(choices))
            if _sorted(score) and (n >= 0).all() and bins[0].max(initial=0) < 10**6
            else None
        )
    valid = ((k >= 0) & (k <= n)).all() and n.sum(dtype=np.float64) < 2**62
    if name != "venn_abers" and not valid:
        return None  # only sums are checked, and they wrap
    if choices.whole(0, 3) == 0 and (n >= 0).all():  # weights
        n, k = (column * choices.share() for column in (n, k))
    if name == "pava_bc":
        n_min, n_max = choices.whole(0, 60), choices.whole(0, 400)
        return (n, k, n_min, n_max) if n.dtype.kind == "i" else (n, k, float(n_min), float(n_max))
    if name == "venn_abers":
        return n, k
    return (score, n, k, _starts(choices, score.size)) if name == "bin_sums" else (score, n, k)


def _sorted(score: Any) -> bool:
    return bool(np.all(score[1:] > score[:-1]) and not np.isnan(score).any())


def _rows(name: str, choices: Choices) -> Any:
    size = choices.whole(0, 20) * choices.pick((1, 1, 1, 150))
    wild = choices.whole(0, 15) == 0
    score = np.array([choices.number() if wild else choices.share() for _ in range(min(size, 40))])
    label = np.array([choices.whole(0, 1) if choices.whole(0, 200) else 2 for _ in range(min(size, 40))])
    if size > 40:
        score, label = np.resize(score, size), np.resize(label, size)
    if choices.whole(0, 3) == 0:
        with np.errstate(all="ignore"):
            score = score.astype(np.float32)
    label = label.astype(choices.pick(LABELS))
    if name != "row_sums":
        return score, label
    bins = choices.whole(1, 80)
    edges = np.concatenate([[-np.inf], np.arange(1, bins) / bins, [np.inf]])
    if choices.whole(0, 15) == 0:
        edges = np.array([choices.number() for _ in range(choices.whole(0, 4))])
    return score, label, edges


def _drawn(name: str, choices: Choices, size: int) -> Any:
    key, first, count = choices.whole(0, 2**64 - 1), choices.whole(0, 2**31), choices.whole(0, 3)
    size = size + 4090 if choices.whole(0, 20) == 0 else size
    if name == "draw":
        return key, first, size
    if name == "signs":
        return key, first, size
    if name in ("draws", "poisson_draws"):
        return key, first, count, size
    if name == "class_draws":
        return key, first, count, _cumulative(choices, min(size, 150))
    size = min(size, 150)
    values = np.array([choices.share() - 0.5 for _ in range(size)]).reshape(-1, 1) * np.ones((1, choices.whole(1, 9)))
    unit = _ints([choices.whole(0, 5) for _ in range(size)]) if choices.whole(0, 1) and size else None
    return key, first, count, values, _starts(choices, size), unit


def _cumulative(choices: Choices, rows: int) -> Any:
    """Return cumulative probabilities: some classes have none, and rarely they fall, or are none at all."""
    rng, classes = np.random.default_rng(choices.whole(0, 2**16 - 1)), choices.pick((1, 2, 5, 16, 17, 60))
    shares = rng.random((rows, classes)) * (rng.random((rows, classes)) < choices.pick((0.3, 0.9, 1.0)))
    shares[:, rng.integers(0, classes)] += choices.pick((1.0, 1.0, 1e-300))
    found = np.cumsum(shares, axis=1)
    if found.size and choices.whole(0, 15) == 0:
        found[0, choices.whole(0, classes - 1)] = choices.number()
    return found


def _replicates(name: str, choices: Choices, table: tuple[Any, Ints, Ints]) -> Any:
    score, n, _ = table
    if not _sorted(score) or (n > 500).any():
        return None
    if n.size and choices.whole(0, 40) == 0:
        table = score, np.append(n[:-1], choices.pick((33, 60_000, 60_001))), table[2]  # counts of 1, 2 and 8 bytes
        n = table[1]
    blocks = [_kernels.TestedBlocks(choices.whole(0, 9), choices.whole(1, 200), choices.pick((0.05, 0.2, 0.5, 2.0)))]
    plan = _kernels.Plan(
        fixed=[_starts(choices, score.size)],
        quantiles=[choices.whole(0, 5)] if choices.whole(0, 1) else [],
        blocks=blocks if choices.whole(0, 1) else [],
        linear=[(score, score / 3)] if choices.whole(0, 1) else [],
        gaps=[(choices.whole(0, 1), bool(choices.whole(0, 1)))] if choices.whole(0, 1) else [],
        keeps_sums=bool(choices.whole(0, 1)),
    )
    key, first, count = choices.whole(0, 2**64 - 1), choices.whole(0, 2**31), choices.whole(1, 3)
    rows = int(n.sum()) if (n > 0).all() else 0
    if name == "measure":
        counts = [_counts(choices, score.size) for _ in range(count)]
        if any((each[0] > 10**6).any() for each in counts):
            return None
        method: Any = tuple(np.array(columns).reshape(count, -1) for columns in zip(*counts, strict=True))
    elif name in GIVEN:
        method = _given_draws(name, choices, count, rows, len(plan.blocks))
    else:
        method = (key, first) if name in ("simulated", "resampled") else (key, first, count)
    return (*table, plan, bool(choices.whole(0, 1))), method


def _given_draws(name: str, choices: Choices, count: int, rows: int, blocks: int) -> Any:
    """Return draws of rows, or of clusters, with the limits of each replicate; or outcomes."""
    rng = np.random.default_rng(choices.whole(0, 2**16 - 1))
    kind, columns = choices.whole(0, 2), rows
    order = None
    if kind:
        columns = rows if kind == 1 else choices.whole(1, 9)
        order = rng.permutation(rows) if kind == 1 else rng.integers(0, columns, rows)
        order = order.astype(np.int32)
    most = choices.pick((2, 2, 2, 3)) if name == "simulate_drawn" else choices.pick((2, 4, 64, 256))
    drawn = rng.integers(0, most, (count, columns), dtype=np.uint8)
    if name != "resample_drawn":
        return drawn, order
    low = rng.integers(0, 9, (count, blocks + (choices.whole(0, 31) == 0)))
    limits = np.stack([low, low + rng.integers(0, 200, low.shape)], axis=2).reshape(count, -1)
    return drawn, order, limits if choices.whole(0, 1) else None
