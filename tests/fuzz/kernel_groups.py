"""Arguments of the kernel's functions for groups and shared rows, and the calls that must agree."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._kernels import reference
from tests.fuzz.choices import SPECIAL, STRANGE, Choices

__all__ = ["GROUPS", "group_arguments", "group_calls"]

GROUPS = (
    "count_groups",
    "merge_groups",
    "encode",
    "row_order",
    "count_shared",
    "count_groups_shared",
    "pava_bc_entries",
)
# Rows that one thread counts in the cache, those that it splits into streams, and those that threads share.
_ROWS = (*(0, 1, 2, 3, 7, 20, 64, 65, 300, 5000) * 3, 2**16, 2**16 + 1, 90_000, 2**18 + 3)
_LARGE = (*(2**16 + 1,) * 6, 2**18, 2**18 + 1)


def group_arguments(name: str, choices: Choices) -> Any:
    """Return arguments of a function."""
    if name == "encode":
        return _values(choices), choices.whole(0, 300)
    if name == "pava_bc_entries":
        return _entries(choices)
    if name == "merge_groups":
        groups = choices.whole(1, 5)
        tables = tuple(_tables(choices, groups) for _ in range(2))
        return None if any(each is None for each in tables) else tables
    size = choices.pick(_LARGE if name.endswith("_shared") else _ROWS)
    score, label = _rows(choices, size)
    if name == "row_order":
        return (np.asarray(score, dtype=np.float64),)
    if name == "count_shared":
        return score, label, choices.whole(1, 5)
    groups = choices.pick((1, 2, 3, 60, 3000, 100_000))
    group = _random(choices).integers(0, max(1, groups - choices.whole(0, groups // 2)), size, dtype=np.int32)
    if size and choices.whole(0, 15) == 0:
        group[choices.whole(0, size - 1)] = choices.pick((-1, groups, 2**31 - 1, -(2**31)))
    if name == "count_groups_shared":
        return score, label, group, groups, choices.whole(1, 5)
    return score, label, group, groups


def group_calls(name: str, arguments: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the call of the compiled kernel and that of the reference."""
    from calibrant._kernels import _core

    if name == "count_shared":
        return lambda: _core.count(*arguments), lambda: reference.count(*arguments[:2])
    if name == "count_groups_shared":
        return lambda: _flat(_core.count_groups(*arguments)), lambda: reference.count_groups(*arguments[:4])
    if name == "pava_bc_entries":
        return lambda: _core.pava_bc_entries(*arguments), lambda: _present_blocks(*arguments)
    return lambda: getattr(_kernels, name)(*arguments), lambda: getattr(reference, name)(*arguments)


def _flat(found: Any) -> Any:
    return None if found is None else (found[0], *found[1])


def _present_blocks(n: Any, k: Any, n_min: int, n_max: int) -> Any:
    """Return the blocks of the table without absent entries, as indices of entries."""
    n, k = n.astype(np.int64), k.astype(np.int64)
    present = np.flatnonzero(n > 0)
    return present[reference.pava_bc(n[present], k[present], n_min, n_max)]


def _random(choices: Choices) -> np.random.Generator:
    return np.random.default_rng(choices.whole(0, 2**16 - 1))


def _rows(choices: Choices, size: int) -> tuple[Any, Any]:
    """Return scores and labels: few or many distinct scores, in few or many binades, one of them sometimes invalid."""
    rng, kind = _random(choices), choices.whole(0, 5)
    score = rng.random(size)
    if kind == 0:
        score = np.round(score * choices.whole(1, 300)) / 300
    elif kind == 1:
        score = np.array(SPECIAL[:9])[rng.integers(0, 9, size)]
    elif kind == 2:
        score = np.clip(0.5 + (score - 0.5) * 2.0 ** -choices.whole(0, 60), 0, 1)
    elif kind == 3:
        score = score ** choices.whole(1, 200)
    if choices.whole(0, 2) == 0:
        score = score.astype(np.float32)
    elif choices.whole(0, 2) == 0:
        score = score.astype(np.float32).astype(np.float64)  # sorted as 32-bit keys
    label = (rng.random(size) < choices.share()).astype(np.int8)
    if size and choices.whole(0, 15) == 0:
        place = choices.whole(0, size - 1)
        if choices.whole(0, 1):
            label[place] = choices.pick((2, -1, 127, -128))
        else:
            with np.errstate(all="ignore"):
                score[place] = choices.pick(STRANGE)
    return score, label


def _values(choices: Choices) -> Any:
    """Return words: few or many distinct ones, some of which share their leading or trailing bits."""
    rng, size = _random(choices), choices.pick((0, 1, 2, 20, 300, 3000))
    words = rng.integers(0, choices.pick((1, 2, 3, 50, 200, 2**20)), size, dtype=np.uint64)
    return words << np.uint64(choices.pick((0, 0, 8, 32, 40)))


def _tables(choices: Choices, groups: int) -> Any:
    """Return tables of groups, one after another; sometimes their starts or lengths do not fit."""
    sizes = [choices.pick((0, 0, 1, 2, 5, 70)) for _ in range(groups)]
    rng = _random(choices)
    score = np.concatenate([np.empty(0), *(np.sort(rng.choice(200, each, replace=False)) / 200 for each in sizes)])
    n = rng.integers(1, choices.pick((3, 1000, 2**40, 2**61)), score.size)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if choices.whole(0, 15) == 0:
        start[choices.whole(0, groups)] = choices.integer()
    if choices.whole(0, 31) == 0:
        start = start[:-1]
    if choices.whole(0, 31) == 0:
        n = n[: choices.whole(0, n.size)]
    return (start, score, n, rng.integers(0, n + 1)) if _rising(start, score) else None


def _rising(start: Any, score: Any) -> bool:
    """Return whether the scores of each group rise, which is not checked; starts that do not fit are."""
    if not (start[0] == 0 and start[-1] == score.size and (np.diff(start) >= 0).all()):
        return True
    inner = np.setdiff1d(np.arange(1, score.size), start)
    return bool(np.all(score[inner] > score[inner - 1]))


def _entries(choices: Choices) -> Any:
    """Return counts of which some are 0, in runs that fill whole blocks of 64."""
    runs = [(choices.whole(1, 150), choices.whole(0, 3), choices.whole(0, 3)) for _ in range(choices.whole(0, 8))]
    n = np.repeat([each[1] for each in runs], [each[0] for each in runs]).astype(np.int64)
    k = np.repeat([min(each[1:]) for each in runs], [each[0] for each in runs]).astype(np.int64)
    if n.size and choices.whole(0, 1):
        n *= _random(choices).integers(0, 40, n.size)
        k = np.minimum(k, n)
    if n.size and choices.whole(0, 1):
        k = np.minimum(_random(choices).integers(0, 4, n.size), n)
    kind = np.uint8 if choices.whole(0, 1) else np.int64
    if kind is np.int64:
        scale = choices.pick((1, 1, 2**20, 2**40))
        n, k = n * scale, k * scale
    n_min = choices.whole(0, 400) * (1 if kind is np.uint8 else scale)
    return n.astype(kind), k.astype(kind), n_min, n_min + choices.whole(0, 800)
