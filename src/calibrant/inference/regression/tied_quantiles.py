"""Outcomes that equal predicted quantiles: where their PIT values lie is not known, so it is chosen to fit best."""

from typing import Any

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import Note


def settle_ties(u: Floats, y: Floats, forecast: Any) -> tuple[Floats, list[Note]]:
    """Return PIT values, with those of outcomes at a predicted quantile moved so that the levels fit best.

    A calibrated quantile q of level v has P(y < q) <= v <= P(y <= q). If y = q has a positive probability, as with
    counts, both shares differ from v. An outcome at predicted quantiles may therefore lie on either side of each of
    them. From the lowest cell between levels to the highest, such outcomes fill cells up to the expected number, those
    with the fewest cells left first. So the tests reject only if no such choice fits the levels.
    """
    levels = forecast.known_levels
    if levels is None or forecast.ensemble is not None:
        return u, []
    values = forecast.quantile(levels)
    first = np.count_nonzero(values < y[:, None], axis=1)
    last = np.count_nonzero(values <= y[:, None], axis=1)
    tied = last > first
    if not tied.any():
        return u, []
    edges = np.concatenate([[0.0], levels, [1.0]])
    expected = np.diff(np.round(y.size * edges)).astype(np.int64)
    cell = first.copy()
    free = expected - np.bincount(first[~tied], minlength=expected.size)
    cell[tied] = _best_cells(first[tied], last[tied], free)
    width = np.diff(edges)
    place = np.clip((u - edges[first]) / np.where(tied, edges[last + 1] - edges[first], width[first]), 0.0, 1.0)
    text = (
        "Outcomes that equal a predicted quantile: {count}. Coverage counts them as inside; tests count them below or "
        "above the quantile, whichever fits its level better."
    )
    settled: Floats = np.where(tied, edges[cell] + place * width[cell], u)
    return settled, [Note("tied_quantiles", int(tied.sum()), text)]


def _best_cells(first: Ints, last: Ints, free: Ints) -> Ints:
    """Return a cell from `first` to `last` for each row, so that the free places of all cells are filled best."""
    found = np.full(first.size, -1)
    order = np.argsort(last, kind="stable")
    for cell, places in enumerate(free):
        waiting: Bools = (found[order] < 0) & (first[order] <= cell)
        rows = order[waiting]
        due = int(np.count_nonzero(last[rows] == cell))
        found[rows[: max(int(places), due)]] = cell
    return found
