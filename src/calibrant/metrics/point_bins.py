"""Rows of predicted numbers in bins, and means of bins with errors that allow for skewness."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from calibrant import _kernels
from calibrant._support.errors import InputError
from calibrant._support.typing import Floats, Ints, Weights
from calibrant.metrics.bins import PAVA, PAVABC, Edges, Quantile
from calibrant.metrics.point import need_rows
from calibrant.tables.mean_table import ROUNDING, MeanTable

__all__ = ["Bins", "Groups", "Means", "bins_of", "fine_bins", "group", "plain_columns"]

Bins: TypeAlias = Quantile | Edges | PAVA | PAVABC

_RUN = 1 << 15  # entries at a time: what is computed of them stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Groups:
    """Entries of a table in bins of their prediction: no bin is empty, and equal predictions share one."""

    table: MeanTable
    labels: Ints
    lower: Floats
    upper: Floats

    def sums(self, of: Callable[[slice], Floats | Weights] | None = None) -> Floats:
        """Sums over the entries of each bin of what `of` says of a run of them; of nothing, how many these are."""
        total = np.zeros(self.lower.size)
        for first in range(0, len(self.table), _RUN):
            run = slice(first, first + _RUN)
            values = None if of is None else of(run)
            total += np.bincount(self.labels[run], weights=values, minlength=total.size)
        return total

    def weighted(self, of: Callable[[slice], Floats]) -> Floats:
        """Sums of values that count once for every row, or by weight."""
        return self.sums(of if self.table.single else lambda run: self.table.n[run] * of(run))

    @cached_property
    def n(self) -> Floats:
        return self.sums(None if self.table.single else lambda run: self.table.n[run])

    @cached_property
    def effective_n(self) -> Floats:
        w2 = self.table.w2
        return self.n if w2 is None else self.n**2 / self.sums(lambda run: w2[run])

    def mean(self, of: Callable[[slice], Floats]) -> Floats:
        """Of something known of every entry, bin by bin."""
        return self.weighted(of) / self.n

    @property
    def rounding(self) -> Floats:
        """Of differences between predictions and outcomes: up to this size they are none."""
        return ROUNDING * np.maximum(np.abs(self.lower), np.abs(self.upper))

    def spread(self, of: Callable[[slice], Floats], mean: Floats, rounding: Floats | float = 0.0) -> "Means":
        """Means of these values with their standard errors and skewness.

        Outcomes inside an entry vary by their spread. The error is NaN for a single row; skewness is 0 where rows are
        merged.
        """
        table, m = self.table, self.effective_n
        if table.importance:
            need_rows(table, "An interval or a test with importance weights")

        def away(run: slice) -> Floats:
            return of(run) - mean[self.labels[run]]

        def squares(run: slice) -> Floats:
            if table.single:
                return away(run) ** 2
            weighted: Floats = (table.n if table.w2 is None else table.w2)[run] * away(run) ** 2 + table.m2[run]
            return weighted

        with np.errstate(divide="ignore", invalid="ignore"):
            squared = self.sums(squares)
            error = np.sqrt(m / (m - 1) * squared) / self.n
        skewness = 0.0
        if table.has_rows:
            skewness = self._skewness(away, squared if table.w2 is None else self.weighted(lambda run: away(run) ** 2))
        error = np.where(error <= rounding, 0.0, error)  # what is rounding is none
        return Means(np.where(np.abs(mean) <= rounding, 0.0, mean), np.where(m > 1, error, np.nan), m, skewness)

    def _skewness(self, away: Callable[[slice], Floats], squared: Floats) -> float:
        """The median of the bins' skewness: single bins tell too little of it, and extreme errors too much."""

        def cubes(run: slice) -> Floats:
            away_here = away(run)
            return away_here * away_here * away_here  # a power takes ten times as long

        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.weighted(cubes) / self.n / (squared / self.n) ** 1.5
        found = found[np.isfinite(found) & (self.effective_n >= 3)]
        return float(np.median(found)) if found.size else 0.0


@dataclass(frozen=True, eq=False)
class Means:
    r"""Means of bins, tested and given intervals by Student's t, corrected for skewness.

    Hall's (1992) transformation of the statistic t of a mean of m values with skewness :math:`\gamma`,

    .. math::

       g(t) = t + a t^2 + \tfrac13 a^2 t^3 + \tfrac12 a, \quad a = \gamma / (3 \sqrt m),

    has Student's distribution to a higher order than t itself: the t test of skewed errors (prices, amounts, counts)
    rejects far too often in bins of fifty rows.
    """

    mean: Floats
    error: Floats
    m: Floats
    skewness: float

    @property
    def _a(self) -> Floats:
        found: Floats = self.skewness / (3 * np.sqrt(self.m))
        return found

    def pvalue(self, of: Floats) -> Floats:
        """Two-sided, of the hypothesis that the mean is `of`; without any spread, whether it is."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            t = (self.mean - of) / self.error
            g = t + self._a * t**2 + self._a**2 * t**3 / 3 + self._a / 2
            pvalue = 2 * stdtr(self.m - 1, -np.abs(g))
        found: Floats = np.where(self.error == 0, (self.mean == of).astype(np.float64), pvalue)
        return found

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """The values that the test does not reject."""
        from scipy.special import stdtrit

        with np.errstate(divide="ignore", invalid="ignore"):
            reach = stdtrit(self.m - 1, (1 + level) / 2)
            low, high = (self.mean - self._back(side * reach) * self.error for side in (1, -1))
        return low, high

    def _back(self, g: Floats) -> Floats:
        """The t behind a transformed one."""
        a = self._a
        bent = (np.cbrt(1 + 3 * a * (g - a / 2)) - 1) / np.where(a == 0, 1, a)
        found: Floats = np.where(np.abs(a) < 1e-9, g, bent)
        return found


def group(table: MeanTable, bins: Bins) -> Groups:
    """The entries of the table in bins.

    Quantile(B): bin b begins after rank floor(b N / B), in integers; equal predictions go whole to the bin that holds
    the first of them. Edges: [e_b, e_b+1), the last one closed. PAVA and PAVABC: blocks of the distinct predictions,
    by their mean outcomes.
    """
    p = table.prediction
    low, high = float(p.min()), float(p.max())
    if isinstance(bins, Edges):
        return _between(table, bins)
    if isinstance(bins, Quantile):
        cuts = _quantile_cuts(table, bins.n_bins)
    elif isinstance(bins, (PAVA, PAVABC)):
        cuts = _block_cuts(table, bins)
    else:
        raise InputError(
            f"bins must be Quantile, Edges, PAVA or PAVABC; it is {bins!r}.",
            hint="For example calibrant.Quantile(20), or calibrant.Edges([0, 10, 100]).",
            argument="bins",
            value=bins,
        )
    # Bin b holds what is above cut b - 1 and not above cut b. `locate` counts edges that do not exceed a value, so the
    # edges are the next doubles after the cuts.
    cuts = np.unique(cuts[cuts < high])
    labels = _kernels.locate(np.nextafter(cuts, np.inf), p)
    return Groups(table, labels, np.concatenate([[low], cuts]), np.concatenate([cuts, [high]]))


def _quantile_cuts(table: MeanTable, n_bins: int) -> Floats:
    """The last prediction of every bin but the last one."""
    if table.single:
        ranks = np.unique([b * len(table) // n_bins - 1 for b in range(1, n_bins)])
        ranks = ranks[ranks >= 0]
        return np.partition(table.prediction, ranks)[ranks] if ranks.size else np.empty(0)
    merged = table.merged()
    held = np.cumsum(merged.n)
    if table.importance:
        wanted = np.array([(b / n_bins - 1e-9) * table.size for b in range(1, n_bins)])
    else:
        wanted = np.array([b * int(table.size) // n_bins for b in range(1, n_bins)])
    wanted = wanted[wanted > 0]
    return merged.prediction[np.minimum(np.searchsorted(held, wanted), len(merged) - 1)]


def _block_cuts(table: MeanTable, bins: PAVA | PAVABC) -> Floats:
    merged = table.merged()
    n_min, n_max = bins.limits(table) if isinstance(bins, PAVABC) else (0, table.size)
    n = merged.n.astype(np.float64)
    # The kernel compares sums of outcomes that are not negative: a shift changes no comparison of means.
    start = _kernels.pava_bc(n, n * (merged.mean - merged.mean.min()), float(min(n_min, table.size)), float(n_max))
    return merged.prediction[start[1:] - 1]


def _between(table: MeanTable, bins: Edges) -> Groups:
    edges, p = np.array(bins.edges), table.prediction
    outside = (p < edges[0]) | (p > edges[-1])
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"Predictions must lie within the edges, {edges[0]:g} to {edges[-1]:g}; row {row} is {p[row]:.6g}.",
            argument="bins",
            row=row,
            value=float(p[row]),
        )
    labels = _kernels.locate(edges[1:-1], p)
    occupied, labels = np.unique(labels, return_inverse=True)
    return Groups(table, labels, edges[:-1][occupied], edges[1:][occupied])


def bins_of(bins: Bins | None, n_bins: int | None) -> Bins:
    """The bins that were asked for; giving both is an error."""
    if bins is not None and n_bins is not None:
        raise InputError("bins and n_bins were both given.", hint="Pass one of them.", argument="bins")
    return bins if bins is not None else Quantile(10 if n_bins is None else n_bins)


def fine_bins(table: MeanTable) -> Quantile:
    """As many bins of equal size as each holds rows."""
    return Quantile(max(1, math.isqrt(int(table.effective_size))))


def plain_columns(per_bin: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Arrays as lists for JSON; what does not exist is null."""
    return {name: [v if np.isfinite(v) else None for v in values.tolist()] for name, values in per_bin.items()}
