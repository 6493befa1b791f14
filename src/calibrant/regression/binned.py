"""Bias by bins of the prediction, with intervals and tests: where predicted numbers are wrong, and what it costs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from calibrant import _kernels
from calibrant._json import number
from calibrant._tables import html_table, text_table
from calibrant._typing import Bools, Floats, Ints, Weights
from calibrant.bins import PAVA, PAVABC, Edges, Quantile
from calibrant.costs import Cost, LinearCost, called_on_arrays, check_cost
from calibrant.errors import InputError, Note
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.multiplicity import holm
from calibrant.inference.resampling import check_share
from calibrant.regression.means import need_rows
from calibrant.regression.table import ROUNDING, MeanTable, as_number, take_rows

__all__ = ["BiasByBin", "CostByBin", "bias_by_bin", "cost_by_bin", "fine_bins", "tce"]

Bins: TypeAlias = Quantile | Edges | PAVA | PAVABC

_FEWEST = 5  # outcomes other than 0 that a test needs where most are 0
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
    n_min, n_max = bins.limits(table) if isinstance(bins, PAVABC) else (0, table.size)  # type: ignore[arg-type]
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


@dataclass(frozen=True, eq=False, repr=False)
class BiasByBin:
    """Bias in every bin of the prediction, with intervals and tests; see `bias_by_bin`.

    Attributes
    ----------
    per_bin : dict of arrays
        lower, upper (the bin is above the one, up to and with the other; the first holds both. With `Edges`
        [lower, upper), the last holds both), n, mean_prediction, mean_outcome, bias (mean prediction less mean
        outcome), low and high (its interval), pvalue (of bias 0), adjusted (Holm), outcome_low, outcome_high
        (interval of the mean outcome) and rejected (rows whose prediction that interval, at level 1 - alpha, leaves
        out).
    test : TestResult
        Whether all bins are without bias: squares of the bins' normal scores, chi-squared.
    """

    per_bin: Mapping[str, Any]
    alpha: float
    level: float
    size: float
    test: TestResult
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return int(self.per_bin["n"].size)

    @property
    def tce(self) -> float:
        """Percentage of rows whose prediction differs significantly from the mean outcome of their bin; see `tce`."""
        return float(100 * self.per_bin["rejected"].sum() / self.size)

    @property
    def biased_share(self) -> float:
        """Percentage of rows in bins whose own bias is significant, each bin tested for itself at `alpha`.

        Of a model without bias, 100 alpha on average, however wide the bins.
        """
        return float(100 * (self.per_bin["n"] @ (self.per_bin["pvalue"] <= self.alpha)) / self.size)

    @property
    def mean_absolute(self) -> float:
        """Mean of |bias| over the rows, in the unit of the predictions: the analogue of ECE."""
        return float(self.per_bin["n"] @ np.abs(self.per_bin["bias"]) / self.size)

    @property
    def reliability(self) -> float:
        """Mean of bias^2 over the rows: the part of the squared error that removing the bias of the bins would save."""
        return float(self.per_bin["n"] @ self.per_bin["bias"] ** 2 / self.size)

    @property
    def significant(self) -> Bools:
        """Which bins have a bias beyond chance: adjusted p-value <= alpha."""
        return np.asarray(self.per_bin["adjusted"] <= self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; what does not exist is null."""
        totals = {
            "tce": self.tce,
            "biased_share": self.biased_share,
            "mean_absolute": self.mean_absolute,
            "reliability": self.reliability,
        }
        return {
            "schema_version": 1,
            "size": self.size,
            "alpha": self.alpha,
            "level": self.level,
            **{k: v for name, value in totals.items() for k, v in number(name, value).items()},
            "test": self.test.to_dict(),
            "per_bin": _plain_columns(self.per_bin),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _cells(self) -> list[list[str]]:
        b = self.per_bin
        rows = [
            ["prediction", "rows", "mean prediction", "mean outcome", "bias", f"{100 * self.level:g} % interval", "p"]
        ]
        for i in range(len(self)):
            span = f"{b['low'][i]:.4g} to {b['high'][i]:.4g}" if np.isfinite(b["low"][i]) else "unknown"
            chance = f"{b['pvalue'][i]:.2g}" if np.isfinite(b["pvalue"][i]) else "-"
            numbers = [f"{b[name][i]:.4g}" for name in ("mean_prediction", "mean_outcome", "bias")]
            mark = " *" if self.significant[i] else ""
            rows.append(
                [f"{b['lower'][i]:.4g} to {b['upper'][i]:.4g}", f"{b['n'][i]:,.6g}", *numbers, span, chance + mark]
            )
        return rows

    def _summary(self) -> str:
        return (
            f"{len(self)} bins, {self.size:,.6g} rows; {self.biased_share:.1f} % of rows lie in bins with a "
            f"significant bias; all bins together: p = {self.test.pvalue:.2g}"
        )

    def __repr__(self) -> str:
        notes = [f"Note: {note.text}" for note in self.notes]
        return "\n".join([self._summary(), *text_table(self._cells()), "  * beyond chance (Holm)", *notes])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells())}<p>* beyond chance (Holm)</p>"


@take_rows
def bias_by_bin(
    table: MeanTable,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> BiasByBin:
    r"""Bias of predicted numbers by bins of the prediction, with intervals and tests.

    In every bin the mean prediction less the mean outcome, with interval and test of the differences, and how many of
    its predictions differ significantly from the bin's mean outcome. Tests are Student's t with as many degrees of
    freedom as rows (or effective rows) less 1, corrected by Hall's (1992) transformation for the skewness of the
    differences, of which the median over the bins is taken. A bin of one row, one whose outcomes are all equal, and one
    in which most are 0 and fewer than five are not (rare counts, claims) has a bias but neither interval nor test.

    Parameters
    ----------
    y_true, y_pred : columns
        Or one `MeanTable` instead of both.
    n_bins : int, default=10
        Bins of equal size, as far as ties allow; or `bins`.
    bins : Quantile, Edges, PAVA or PAVABC
        For bins of other kinds. `PAVABC` gives blocks whose mean outcomes rise, as TCE for probabilities has them;
        tests inside blocks that were chosen by the outcomes reject too often.
    alpha : float, default=0.05
        Level of `rejected` and of `significant`.
    confidence_level : float, default=0.95
        Level of the intervals.

    Notes
    -----
    Rejection rates of right models in simulations are in docs/numbers: near the nominal ones from about fifty rows a
    bin on, for skewed and heavy-tailed errors too (with lognormal errors 10 % for 5 % at twenty rows). Rows are taken
    as independent. A merged table does not know the skewness; its tests are plain t tests.

    Examples
    --------
    >>> result = bias_by_bin([1.0, 2.0, 3.5, 3.0, 9.0, 8.0], [1.0, 2.5, 3.0, 4.0, 9.0, 9.5], n_bins=2)
    >>> result.per_bin["n"], result.per_bin["bias"].round(3)
    (array([3., 3.]), array([0.   , 0.833]))
    """
    check_share("alpha", alpha)
    check_share("confidence_level", confidence_level)
    groups = group(table, bins_of(bins, n_bins))
    p, y = table.prediction, table.mean
    prediction = groups.mean(lambda run: p[run])
    biases = groups.spread(lambda run: p[run] - y[run], groups.mean(lambda run: p[run] - y[run]), groups.rounding)
    bias = biases.mean
    outcomes = groups.spread(lambda run: y[run], groups.mean(lambda run: y[run]))
    unknown = (bias != 0) & too_alike(groups, outcomes.error)
    biases, outcomes = (replace(means, error=np.where(unknown, np.nan, means.error)) for means in (biases, outcomes))
    low, high = biases.limits(confidence_level)
    pvalue = biases.pvalue(np.zeros(bias.size))
    outcome_low, outcome_high = outcomes.limits(confidence_level)
    per_bin = {
        "lower": groups.lower,
        "upper": groups.upper,
        "n": groups.n,
        "mean_prediction": prediction,
        "mean_outcome": outcomes.mean,
        "bias": bias,
        "low": low,
        "high": high,
        "pvalue": pvalue,
        "adjusted": _adjusted(pvalue),
        "outcome_low": outcome_low,
        "outcome_high": outcome_high,
        "rejected": _rejected(groups, outcomes.mean, *outcomes.limits(1 - alpha)),
    }
    return BiasByBin(per_bin, alpha, confidence_level, float(table.size), _all_bins(pvalue, table), table.notes)


def too_alike(groups: Groups, error: Floats) -> Bools:
    """Which bins know too little of how outcomes vary: all are equal, or most are 0 and fewer than five are not.

    Of rare counts and claims: a bin of zeros looks sure of its mean, and is not.
    """
    y = groups.table.mean
    zeros = groups.weighted(lambda run: (y[run] == 0).astype(np.float64))
    few = (zeros >= groups.n / 2) & ((1 - zeros / groups.n) * groups.effective_n < _FEWEST)
    return np.asarray((error == 0) | (few & (groups.effective_n > _FEWEST)))


def _rejected(groups: Groups, outcome: Floats, low: Floats, high: Floats) -> Floats:
    """How many rows of each bin have a prediction outside the accepted interval; none where nothing is known."""
    p, labels = groups.table.prediction, groups.labels
    # A bin whose outcomes are all equal accepts what equals them, up to the rounding of their mean.
    slack = 1e-12 * np.maximum(np.abs(outcome), 1e-300)
    low = np.where(np.isnan(low), -np.inf, low - slack)
    high = np.where(np.isnan(high), np.inf, high + slack)

    def outside(run: slice) -> Floats:
        place = labels[run]
        return ((p[run] < low[place]) | (p[run] > high[place])).astype(np.float64)

    return groups.weighted(outside)


def _adjusted(pvalue: Floats) -> Floats:
    """Holm's p-values of the bins that have one."""
    adjusted, known = np.full(pvalue.size, np.nan), ~np.isnan(pvalue)
    if known.any():
        adjusted[known] = holm(pvalue[known])
    return adjusted


def _all_bins(pvalue: Floats, table: MeanTable) -> TestResult:
    """The test that no bin has a bias: each p-value as a normal score, whose squares add up to chi-squared."""
    from scipy.special import chdtrc, ndtri

    known = pvalue[~np.isnan(pvalue)]
    if not known.size:
        return TestResult(np.nan, np.nan, "bias in all bins", df=0.0, notes=table.notes)
    statistic = float(np.sum(ndtri(np.maximum(known, 1e-300) / 2) ** 2))
    return TestResult(
        statistic, float(chdtrc(known.size, statistic)), "bias in all bins", df=float(known.size), notes=table.notes
    )


@as_number
def tce(table: MeanTable, *, n_bins: int | None = None, bins: Bins | None = None, alpha: float = 0.05) -> float:
    """Test-based calibration error of predicted numbers, 0 to 100.

    The percentage of rows whose prediction differs significantly, by a t test at level `alpha`, from the mean outcome
    of their bin: TCE of Matsubara et al. (2023) with the t test in the place of the binomial one. Every prediction is
    tested against its whole bin, so wide bins reject good predictions far from the bin's middle: by default there are
    as many bins as rows in each, about sqrt(N). (`BiasByBin.biased_share` tests bins instead of predictions.) Other
    options as for `bias_by_bin`.

    Examples
    --------
    >>> tce([1.0, 2.0, 3.0, 2.0, 9.0, 8.0, 9.5, 8.5], [2.0, 2.0, 2.1, 2.1, 19.0, 19.0, 19.5, 19.5], n_bins=2)
    50.0
    """
    chosen = fine_bins(table) if bins is None and n_bins is None else bins_of(bins, n_bins)
    return float(bias_by_bin.of_table(table, bins=chosen, alpha=alpha).tce)


def fine_bins(table: MeanTable) -> Quantile:
    """As many bins of equal size as each holds rows."""
    return Quantile(max(1, math.isqrt(int(table.effective_size))))


def _plain_columns(per_bin: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Arrays as lists for JSON; what does not exist is null."""
    return {name: [v if np.isfinite(v) else None for v in values.tolist()] for name, values in per_bin.items()}


@dataclass(frozen=True, eq=False, repr=False)
class CostByBin:
    """What wrong predictions cost, bin by bin; see `cost_by_bin`.

    Attributes
    ----------
    per_bin : dict of arrays
        lower, upper, n, mean_prediction, cost (mean cost of a row), low and high (its interval), shift (what to add to
        the bin's predictions so that they cost least), least (the mean cost then) and avoidable (cost less least).
    """

    per_bin: Mapping[str, Any]
    level: float
    size: float
    notes: tuple[Note, ...] = ()

    @property
    def value(self) -> float:
        """Mean cost of a row."""
        return float(self.per_bin["n"] @ self.per_bin["cost"] / self.size)

    @property
    def avoidable(self) -> float:
        """What the best shift of every bin would save, in mean cost of a row: the part that is miscalibration."""
        return float(self.per_bin["n"] @ self.per_bin["avoidable"] / self.size)

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; what does not exist is null."""
        return {
            "schema_version": 1,
            "size": self.size,
            "level": self.level,
            "value": self.value,
            "avoidable": self.avoidable,
            "per_bin": _plain_columns(self.per_bin),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _cells(self) -> list[list[str]]:
        b = self.per_bin
        rows = [["prediction", "rows", "cost", f"{100 * self.level:g} % interval", "best shift", "avoidable"]]
        for i in range(b["n"].size):
            span = f"{b['low'][i]:.4g} to {b['high'][i]:.4g}" if np.isfinite(b["low"][i]) else "unknown"
            numbers = [f"{b[name][i]:.4g}" for name in ("shift", "avoidable")]
            place = f"{b['lower'][i]:.4g} to {b['upper'][i]:.4g}"
            rows.append([place, f"{b['n'][i]:,.6g}", f"{b['cost'][i]:.4g}", span, *numbers])
        return rows

    def _summary(self) -> str:
        return f"Cost of {self.value:.4g} a row, {self.avoidable:.4g} of it avoidable ({self.size:,.6g} rows)"

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *text_table(self._cells())])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells())}"


@take_rows
def cost_by_bin(
    table: MeanTable,
    *,
    cost: Cost = LinearCost(over=1, under=1),  # noqa: B008  (frozen)
    n_bins: int | None = None,
    bins: Bins | None = None,
    confidence_level: float = 0.95,
) -> CostByBin:
    r"""Expected cost of wrong predictions, by bins of the prediction, where too high and too low cost differently.

    Cost-aware calibration (Yang and Bi, 2025) of a number: predicting :math:`\hat y` where y happens costs
    :math:`C_o (\hat y - y)` if that is too high and :math:`C_u (y - \hat y)` if too low, or what another cost says. In
    every bin the mean cost with its interval, and the shift of its predictions that would cost least: for
    linear costs the :math:`C_u / (C_o + C_u)` quantile of y - y_pred.

    Parameters
    ----------
    y_true, y_pred : columns
        Or one `MeanTable` of rows.
    cost : cost object, default=LinearCost(over=1, under=1)
        Of `calibrant.costs`, or any function of arrays (y_pred, y) that is convex in the difference. (Costs with a
        scale of their own, such as ExponentialCost, were made for probabilities: mind the unit of your numbers.)
    n_bins, bins, confidence_level
        See `bias_by_bin`.

    Examples
    --------
    >>> from calibrant import LinearCost
    >>> result = cost_by_bin([4.0, 5.0, 6.0, 7.0], [5.0, 5.0, 5.0, 5.0], cost=LinearCost(over=1, under=3), n_bins=1)
    >>> result.value, result.per_bin["shift"], result.avoidable
    (2.5, array([1.]), 1.0)
    """
    check_cost(cost)
    check_share("confidence_level", confidence_level)
    need_rows(table, "cost_by_bin")
    groups = group(table, bins_of(bins, n_bins))
    paid = _paid(cost, table.prediction, table.mean)
    mean = groups.mean(lambda run: paid[run])
    low, high = groups.spread(lambda run: paid[run], mean).limits(confidence_level)
    shift = best_shifts(groups, cost)
    paid_then = _paid(cost, table.prediction + shift[groups.labels], table.mean)
    least = groups.mean(lambda run: paid_then[run])
    per_bin = {
        "lower": groups.lower,
        "upper": groups.upper,
        "n": groups.n,
        "mean_prediction": groups.mean(lambda run: table.prediction[run]),
        "cost": mean,
        "low": low,
        "high": high,
        "shift": np.where(least < mean, shift, 0.0),
        "least": np.minimum(least, mean),
        "avoidable": np.maximum(mean - least, 0.0),
    }
    return CostByBin(per_bin, confidence_level, float(table.size), table.notes)


def _paid(cost: Cost, p: Floats, y: Floats) -> Floats:
    found = called_on_arrays(cost, p, y)
    if found.shape != p.shape:
        raise InputError(
            f"A cost must be given for every row; for {p.shape} rows it gave an array of shape {found.shape}.",
            argument="cost",
            value=cost,
        )
    return found


def best_shifts(groups: Groups, cost: Cost) -> Floats:
    """What to add to the predictions of every bin so that they cost least.

    Linear costs: a quantile of what is missing, the lowest of equally good ones. Others, convex in the difference: by
    golden sections between the least and the largest that is missing.
    """
    missing = groups.table.mean - groups.table.prediction
    weight = groups.table.n
    order = np.lexsort((missing, groups.labels))
    start = np.searchsorted(groups.labels[order], np.arange(groups.lower.size + 1))
    bins = [order[a:b] for a, b in pairwise(start)]
    if type(cost) is LinearCost:
        tau = cost.under / (cost.over + cost.under)
        return np.array([quantile(missing[rows], weight[rows], tau) for rows in bins])
    return np.array([_least(cost, groups.table, rows, missing) for rows in bins])


def quantile(values: Floats, weight: Weights, share: float) -> float:
    """The lowest of the rising values with at least this share of the weight up to it."""
    held = np.cumsum(weight)
    return float(values[min(int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))), values.size - 1)])


def _least(cost: Cost, table: MeanTable, rows: Ints, missing: Floats) -> float:
    from scipy.optimize import minimize_scalar

    low, high = float(missing[rows[0]]), float(missing[rows[-1]])
    if low == high:
        return low
    p, y, weight = table.prediction[rows], table.mean[rows], table.n[rows]
    found = minimize_scalar(
        lambda shift: float(weight @ called_on_arrays(cost, p + shift, y)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9 * (high - low)},
    )
    return float(found.x)
