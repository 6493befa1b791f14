"""Outcomes that equal predicted quantiles: where their PIT values lie is known up to the levels next to them."""

from typing import Any

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import Note
from calibrant._support.random_streams import RandomState, generator

_RESOLVED = 0.002  # mean distance of shares that can be resolved; more gets a note


def settle_ties(u: Floats, y: Floats, forecast: Any, random_state: RandomState) -> tuple[Floats, Floats, list[Note]]:
    """Return PIT values, with those of outcomes at predicted quantiles moved so that the levels fit best.

    A calibrated quantile q of level v has P(y < q) <= v <= P(y <= q). If y = q has a positive probability, as with
    counts, both shares differ from v. Let a be the highest level whose quantile lies below y, b the next one, c the
    highest level whose quantile is at most y, and d the next one: P(X < y) lies in [a, b], P(X <= y) in [c, d]. The PIT
    value of such an outcome is uniform between both probabilities, so at a random place w it lies between a + w (c - a)
    and b + w (d - b). From the lowest cell between levels to the highest, such outcomes fill cells up to the expected
    number, those with the fewest cells left first. So the tests reject only if no distribution with these quantiles
    fits. The second result is for each level how far the share of rows below it may lie from the settled one.
    """
    levels = forecast.known_levels
    if levels is None or forecast.ensemble is not None:
        return u, np.zeros(1), []
    values = forecast.quantile(levels)
    below = np.count_nonzero(values < y[:, None], axis=1)
    upto = np.count_nonzero(values <= y[:, None], axis=1)
    tied = upto > below
    if not tied.any():
        return u, np.zeros(levels.size), []
    edges = np.concatenate([[0.0], levels, [1.0]])
    place = generator(random_state).random(y.size)
    # An untied outcome lies in its cell; a tied one anywhere between the two bounds.
    low = np.where(tied, edges[below] + place * (edges[upto] - edges[below]), u)
    high = np.where(tied, edges[below + 1] + place * (edges[upto + 1] - edges[below + 1]), u)
    first, last = (np.searchsorted(levels, bound) for bound in (low, high))
    free = np.diff(np.round(y.size * edges)).astype(np.int64)
    open_ = last > first
    free = free - np.bincount(first[~open_], minlength=free.size)
    cell = first.copy()
    cell[open_] = _best_cells(first[open_], last[open_], free)
    inside = np.clip((edges[cell] + edges[cell + 1]) / 2, low, high)
    settled: Floats = np.where(open_, inside, (low + high) / 2)
    share = np.searchsorted(np.sort(settled), levels, side="right") / y.size
    ends = [np.searchsorted(np.sort(bound), levels, side="right") / y.size for bound in (low, high)]
    unresolved = np.maximum(ends[0] - share, share - ends[1])
    notes = [
        Note(
            "tied_quantiles",
            int(tied.sum()),
            "Outcomes that equal a predicted quantile: {count}. Coverage counts them as inside; tests place them "
            "between the levels next to them, where they fit best.",
        )
    ]
    if float(unresolved.mean()) > _RESOLVED:
        text = (
            f"The quantiles do not determine the distribution of such outcomes: shares of rows below the levels are "
            f"known up to {100 * float(unresolved.mean()):.2g} points on average. For counts pass cb.Poisson, "
            "cb.NegativeBinomial, cb.Samples, or quantiles at more levels."
        )
        notes.append(Note("resolution", 1, text))
    return settled, unresolved, notes


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
