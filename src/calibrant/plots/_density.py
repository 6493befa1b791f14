"""Distribution of predictions, computed from a table: violins, histograms, quantiles."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats
from calibrant.plots._canvas import Axis, Scale
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable


@dataclass(frozen=True, eq=False)
class Violin:
    """Outline of a distribution: half its width at several probabilities; the maximum is 1.

    `score` is the probability at each position; at the ends it is the lowest and the highest score of the bin, which
    the axis may have clipped.
    """

    at: Floats
    width: Floats
    score: Floats


def violins(partition: Partition, axis: Axis, cells: int) -> list[Violin]:
    """Return the distribution of predictions per bin, from its lowest to its highest score.

    Rows are counted in cells of equal length along the axis, exactly, and smoothed over neighbouring cells, reflected
    at the ends: by 0.9 s n^(-1/5), s the standard deviation (Silverman's rule), and at least 0.6 cells.
    """
    from scipy.ndimage import gaussian_filter1d

    table = partition.table
    before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
    stops = np.append(partition.start[1:], len(table))
    found = []
    for start, stop, size in zip(partition.start, stops, partition.effective_n, strict=True):
        ends = axis.forward(table.score[[start, stop - 1]])
        if ends[0] == ends[1]:
            found.append(Violin(axis.backward(ends), np.ones(2), table.score[[start, stop - 1]]))
            continue
        edges = np.linspace(ends[0], ends[1], cells + 1)
        inner = start + np.searchsorted(table.score[start:stop], axis.backward(edges[1:-1]))
        counts = np.diff(before[np.concatenate([[start], inner, [stop]])])
        middle = np.arange(cells)
        mean = np.average(middle, weights=counts)
        spread = np.sqrt(np.average((middle - mean) ** 2, weights=counts))
        smooth = gaussian_filter1d(counts, max(0.6, 0.9 * spread * size**-0.2), mode="reflect")
        places = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        width = np.concatenate([smooth[:1], smooth, smooth[-1:]])
        at = axis.backward(places)
        score = np.concatenate([table.score[start : start + 1], at[1:-1], table.score[stop - 1 : stop]])
        found.append(Violin(at, width / width.max(), score))
    return found


def histogram(table: ScoreTable, axis: Axis, cells: int = 40) -> tuple[Floats, Floats]:
    """Return edges of cells of equal length along the axis, and the rows between them.

    Cells are closed on the left, the last one on both sides. Values beyond the ends count in the outer cells.
    """
    edges = axis.backward(np.linspace(axis.forward(axis.low), axis.forward(axis.high), cells + 1))
    inner = np.searchsorted(table.score, edges[1:-1])
    before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
    end = np.searchsorted(table.score, axis.high, side="right") if axis.cut else len(table)
    return edges, np.diff(before[np.concatenate([[0], inner, [end]])])


def choose_scale(tables: Iterable[ScoreTable], scale: Scale | None, ymax: float | None) -> Scale:
    """Return the given scale; without one "logit" where scores crowd an end of [0, 1], and "linear" elsewhere.

    Scores crowd an end if at least 80 % of the rows lie within 0.1 of it, in each table. With `ymax` a linear axis
    already magnifies the low end.
    """
    if scale is not None or ymax is not None:
        return scale or "linear"
    return "logit" if all(table.crowds_end for table in tables) else "linear"


def quantile(table: ScoreTable, share: float) -> float:
    """Return the lowest score that at least this share of rows does not exceed."""
    reached = np.cumsum(table.n, dtype=np.float64)
    return float(table.score[min(np.searchsorted(reached, share * reached[-1]), len(table) - 1)])
