"""Preconditions of the reference kernel: the conditions and the messages of the compiled one (cpp/checks.hpp)."""

from typing import Any

import numpy as np

from calibrant._kernels.interface import Bytes, GroupTables, Order, Plan, TestedBlocks
from calibrant._support.arrays import Floats, Ints, Weights

_MOST_ROWS = 2**32
_WRONG_EVENTS = "k must lie between 0 and n"


def require(holds: Any, text: str) -> None:
    """Raise a ValueError unless the condition holds."""
    if not holds:
        raise ValueError(text)


def check_lengths(text: str, *columns: Any) -> None:
    """Check that columns are equally long."""
    require(len({column.size for column in columns}) == 1, f"{text} must be equally long")


def check_counts(n: Weights, k: Weights) -> None:
    """Check each count, k from 0 to n, and a total below 2^63 - 1. Weights are any numbers."""
    if n.dtype.kind not in "iu":
        return
    require(np.all((k >= 0) & (k <= n)), _WRONG_EVENTS)
    # In halves of 32 bits, whose sums do not overflow.
    total = (int((n >> 32).sum()) << 32) + int((n & 0xFFFFFFFF).sum())
    require(total < 2**63 - 1, "n must add up to less than 2^63 - 1")


def check_sums(n: Weights, k: Weights) -> None:
    """Check sums of counts; single counts are not checked where the compiled kernel does not."""
    require(n.dtype.kind == "f" or np.all((k >= 0) & (k <= n)), _WRONG_EVENTS)


def check_starts(start: Ints, rows: int) -> None:
    """Check the first rows of bins, none of which is empty."""
    rising = start.size == 0 or (start[0] >= 0 and start[-1] < rows and np.all(start[1:] > start[:-1]))
    require(rising, "start must rise strictly and stay below the number of rows")


def check_bins(bin_n: Ints, bin_k: Ints) -> None:
    """Check rows and events of bins."""
    valid = np.all((bin_n >= 1) & (bin_k >= 0) & (bin_k <= bin_n))
    require(valid, "bin_n must be at least 1, and bin_k must lie between 0 and bin_n")


def check_level(alpha: float) -> None:
    """Check a level of significance."""
    require(0 <= alpha <= 1, "alpha must lie between 0 and 1")


def check_scores(score: Floats) -> None:
    """Check probabilities."""
    require(np.all((score >= 0) & (score <= 1)), "score must lie between 0 and 1")


def check_edges(edges: Floats) -> None:
    """Check edges in increasing order; NaN has no place among them."""
    require(np.all(edges[1:] >= edges[:-1]) and not np.isnan(edges).any(), "edges must not fall")


def check_equal_widths(edges: Floats) -> None:
    """Check edges of bins of equal width: -inf, b / B up to one unit in the last place, inf."""
    require(edges.size >= 2, "edges must be at least two")
    bins = edges.size - 1
    inner = np.abs(edges[1:-1] - np.arange(1, bins) / bins) <= 1.2e-16
    valid = edges[0] == -np.inf and edges[-1] == np.inf and np.all(inner)
    require(valid, "edges must be -inf, b / B for each bin, and inf")


def check_groups(groups: int, *columns: Any) -> None:
    """Check rows of groups."""
    valid = len({column.size for column in columns}) == 1 and groups >= 1
    require(valid, "score, label and group must be equally long, and groups at least 1")


def check_group_tables(a: GroupTables, b: GroupTables) -> None:
    """Check the tables of the same groups: where each begins, and the lengths of columns."""

    def fits(start: Ints, score: Floats, n: Ints, k: Ints) -> bool:
        rising = start.size > 0 and start[0] == 0 and bool(np.all(start[1:] >= start[:-1]))
        return rising and start[-1] == score.size == n.size == k.size

    valid = a[0].size == b[0].size and fits(*a) and fits(*b)
    require(valid, "start must rise from 0 to the number of scores, and columns must be equally long")


def check_table(score: Floats, n: Ints, k: Ints, *, by_rows: bool) -> None:
    """Check a table whose replicates are drawn."""
    check_lengths("score, n and k", score, n, k)
    check_counts(n, k)
    require(np.all(n >= 1), "n must be at least 1")
    check_scores(score)
    require(not by_rows or int(n.sum()) < _MOST_ROWS, "at most 2^32 - 1 rows can be drawn one by one")


def check_order(drawn: Bytes | Order, order: Order | None, size: int) -> Order | slice:
    """Return the column of `drawn` for each of `size` rows of a table."""
    if order is None or order.size == 0:
        require(drawn.shape[1] == size, "drawn must have one column per row")
        return slice(None)
    inside = order.size == size and np.all((order >= 0) & (order < drawn.shape[1]))
    require(inside, "order must have a column of drawn for each row of the table")
    return order


def check_weighted_rows(score: Floats, rows: Ints, weight: Floats, event: Bytes) -> None:
    """Check weighted rows in order of score."""
    check_lengths("score and rows", score, rows)
    check_lengths("weight and event", weight, event)
    check_scores(score)
    valid = np.all((rows >= 1) & (rows <= weight.size)) and int(rows.sum()) == weight.size
    require(valid, "rows must be at least 1 and add up to all rows")
    require(np.all((weight > 0) & np.isfinite(weight)), "weight must be positive and finite")
    require(np.all(event <= 1), "event must be 0 or 1")


def check_plan(plan: Plan, entries: int) -> None:
    """Check what is to be measured of replicates."""
    for start in plan.fixed:
        rising = start.size == 0 or (start[0] >= 0 and start[-1] <= entries and np.all(start[1:] >= start[:-1]))
        require(rising, "starts of bins must not fall and must lie in the table")
    valid = all(1 <= bins < 2**31 for bins in plan.quantiles)
    require(valid, "a number of bins must lie between 1 and 2^31 - 1")
    for blocks in plan.blocks:
        if isinstance(blocks, TestedBlocks):
            check_level(blocks.alpha)
        else:
            valid = blocks.critical.size >= 4 and blocks.step > 0
            require(valid, "critical values must be at least 4, at rising nodes")
    for pair in plan.linear:
        for values in pair:
            require(values.size == entries, "coefficients must be as long as the table")
    partitions = len(plan.fixed) + len(plan.quantiles)
    require(all(0 <= partition < partitions for partition, _ in plan.gaps), "gaps must name partitions of the plan")
