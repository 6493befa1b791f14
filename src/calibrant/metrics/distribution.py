"""Measures of predictive distributions, the RP kind of calibration: PIT, tests, coverage, sharpness and scores.

A forecast is calibrated in this sense if outcomes fall below its q quantile with the chance q, for every q: then the
probability integral transforms (PIT), F(y), are uniform.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import CalibrantWarning, InputError, Note, join_notes
from calibrant._support.json_values import number
from calibrant._support.options import check_count, check_share
from calibrant._support.random_streams import RandomState, generator
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.distributions import Quantiles, Samples, levels_of, pinball_losses
from calibrant.forecasts.reading import as_forecast, read_outcomes
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.metrics import significance
from calibrant.tables.mean_table import ONE_COLUMN

__all__ = [
    "Coverage",
    "anderson_darling",
    "chi_square",
    "coverage",
    "crps",
    "interval_score",
    "kolmogorov_smirnov",
    "miscalibration",
    "nll",
    "pinball",
    "pit",
    "sharpness",
]

_NEAREST = 2.0**-54  # what is nearer to 1, a double takes for 1; to 0 it is counted alike
_FEW_EXPECTED = 5
_MOST_BINS, _DRAWS_AT_ONCE = 10_000, 500
_FAR = 4.0  # A^2 of a p-value of about 0.009


def pit(y_true: Column, forecast: Any, *, random_state: RandomState = 0, randomized: bool = True) -> Floats:
    """Probability integral transforms: F(y) of every row, uniform on [0, 1] if the forecasts are calibrated.

    Parameters
    ----------
    y_true : column of n outcomes
    forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
        One distribution a row.
    random_state : int, Generator or None
    randomized : bool, default=True
        Where only a cell of F(y) is known (between two quantiles, between two draws, at an atom of a distribution of
        whole numbers), a uniform number is drawn in it: only then are PITs of calibrated forecasts uniform. False gives
        the middle of the cell.

    Returns
    -------
    ndarray of n numbers in [0, 1]

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> pit([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)).round(4)
    array([0.5   , 0.9772])
    """
    y, known = read_outcomes(y_true, forecast)
    return transforms(y, known, random_state=random_state, randomized=randomized)


def transforms(y: Floats, forecast: Any, *, random_state: RandomState = 0, randomized: bool = True) -> Floats:
    """`pit` of outcomes and forecasts that were read already."""
    low, high = forecast.cells(y)
    if not (low < high).any():
        return np.array(high)
    place = generator(random_state).random(y.size) if randomized else 0.5
    found: Floats = low + place * (high - low)
    return found


def uniform(u: Column) -> tuple[Floats, tuple[Note, ...]]:
    """PIT values, numbers in [0, 1], none missing; and what was noted of them."""
    column = _columns.scores(_columns.read(u, "u", hint="Pass one column of PIT values."))
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError("u holds no values; at least one is needed.", argument="u")
    return column.values, join_notes(column.notes, _at_the_ends(column.values))


def anderson_darling(u: Column) -> TestResult:
    r"""Anderson and Darling's test that PIT values are uniform; it weighs the tails most.

    .. math::

       A^2 = -n - \frac1n \sum_{i=1}^n (2i - 1) \left[\ln u_{(i)} + \ln (1 - u_{(n+1-i)})\right]

    The measure of pure calibration of Carney and Cunningham (2006). The p-value is that of the limiting distribution
    with the correction for n rows of Marsaglia and Marsaglia (2004), and beyond A^2 = 4 one of our own; it is exact for
    one row, within 0.005 for two or three, within 0.0005 from five rows on.

    Parameters
    ----------
    u : column of PIT values
        See `pit`. What is nearer to 0 or 1 than 2^-54 (as 1 itself stands for) counts as that far from it; a note
        counts such values.

    Examples
    --------
    >>> result = anderson_darling([0.1, 0.25, 0.4, 0.6, 0.7, 0.95])
    >>> round(result.statistic, 4), round(result.pvalue, 3)
    (0.151, 0.999)
    """
    given, notes = uniform(u)
    values = np.sort(given)
    statistic = a_squared(values)
    pvalue = ad_pvalue(statistic, values.size)
    return TestResult(statistic, pvalue, "Anderson-Darling", notes=notes)


def a_squared(values: Floats) -> float:
    """A^2 of rising PIT values."""
    n = values.size
    low = np.log(np.maximum(values, _NEAREST))
    with np.errstate(divide="ignore"):
        high = np.maximum(np.log1p(-values), math.log(_NEAREST))
    weight = 2 * np.arange(1, n + 1) - 1
    return float(-n - weight @ (low + high[::-1]) / n)


def _at_the_ends(values: Floats) -> tuple[Note, ...]:
    ends = int(np.count_nonzero((values < _NEAREST) | (values == 1)))
    text = "PIT values of 0 or 1, or within 2^-54: {count}. The forecasts hold these outcomes to be nearly impossible."
    return (Note("pit_at_end", ends, text),) if ends else ()


def ad_pvalue(z: float, n: int) -> float:
    """Upper tail of A^2 of n uniform numbers."""
    from scipy.special import erfc

    if n == 1:  # A^2 = -1 - ln u(1 - u)
        chance = 4 * math.exp(-1 - z)
        return min(1.0, chance / (1 + math.sqrt(max(0.0, 1 - chance))))
    below = ad_limit(z)
    if z <= _FAR:
        return float(min(1.0, max(0.0, 1 - below - _correction(below, n))))
    # Beyond the precision of the series: the leading term of the tail, by Zolotarev's theorem.
    limit = 1 - below if below < 1 - 1e-11 else math.sqrt(3) * erfc(math.sqrt(z))
    # Marsaglia's correction does not vanish far out. Simulations of 2 to 16 rows, down to p = 1e-5, gave this one.
    return float(min(1.0, limit * (1 + (0.178 * z - 0.2) / n)))


def ad_limit(z: float) -> float:
    r"""Distribution function of A^2 for infinitely many rows: Anderson and Darling's (1954) series.

    .. math::

       \frac{\sqrt{2 \pi}}{z} \sum_j \binom{-1/2}{j} (4j + 1) e^{-t_j}
       \int_0^\infty e^{z / (8 (w^2 + 1)) - t_j w^2} dw, \quad t_j = (4j + 1)^2 \pi^2 / (8 z)
    """
    if z <= 0.01:  # where it is below 1e-50
        return 0.0
    if z > 100:  # and here above 1 - 1e-43
        return 1.0
    step = 0.02
    x = np.arange(-500, 501) * step  # the trapezoidal rule is exact to rounding for such bells
    total, coefficient = 0.0, 1.0
    for j in range(60):
        t = (4 * j + 1) ** 2 * math.pi**2 / (8 * z)
        integral = 0.5 * step * float(np.sum(np.exp(z / (8 * (x**2 / t + 1)) - x**2))) / math.sqrt(t)
        term = coefficient * (4 * j + 1) * math.exp(-t) * integral
        total += term
        if abs(term) < 1e-18:
            break
        coefficient *= -(0.5 + j) / (j + 1)
    return min(1.0, math.sqrt(2 * math.pi) / z * total)


def _correction(x: float, n: int) -> float:
    """What the limiting distribution function lacks for n rows: Marsaglia & Marsaglia (2004), section 3."""
    if x > 0.8:
        return float(np.polyval([255.7844, -1116.360, 1950.646, -1705.091, 745.2337, -130.2137], x)) / n
    c = 0.01265 + 0.1757 / n
    if x < c:
        t = x / c
        return math.sqrt(t) * (1 - t) * (49 * t - 102) * (0.0037 / n**3 + 0.00078 / n**2 + 0.00006 / n)
    t = (x - c) / (0.8 - c)
    shape = float(np.polyval([1.91864, -8.259, 14.458, -14.6538, 6.54034, -0.00022633], t))
    return shape * (0.04213 / n + 0.01365 / n**2)


def kolmogorov_smirnov(u: Column) -> TestResult:
    """Kolmogorov and Smirnov's test that PIT values are uniform: the largest gap to the diagonal, by scipy.

    Examples
    --------
    >>> result = kolmogorov_smirnov([0.1, 0.25, 0.4, 0.6, 0.7, 0.95])
    >>> round(result.statistic, 4), round(result.pvalue, 3)
    (0.1333, 0.999)
    """
    from scipy.stats import kstest

    values, notes = uniform(u)
    found = kstest(values, "uniform")
    return TestResult(float(found.statistic), float(found.pvalue), "Kolmogorov-Smirnov", notes=notes)


def chi_square(
    u: Column,
    *,
    n_bins: int = 10,
    edges: Sequence[float] | None = None,
    n_resamples: int = 9999,
    random_state: RandomState = 0,
) -> TestResult:
    """Pearson's test that PIT values are uniform, by how many fall into each of several bins.

    Parameters
    ----------
    u : column of PIT values
    n_bins : int, default=10
        Equally wide bins [b/B, (b+1)/B), the last one closed.
    edges : numbers between 0 and 1, optional
        Inner edges of other bins, rising; such as the levels of quantile forecasts, whose cells need no random numbers.
    n_resamples, random_state
        Where fewer than 5 values are expected in a bin, `resampling_pvalue` is the p-value by drawing that many sets of
        uniform values, and a note says so.

    Examples
    --------
    >>> result = chi_square([0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.6, 0.65, 0.7, 0.95], n_bins=2)
    >>> round(result.statistic, 4), result.df
    (0.4, 1.0)
    """
    from scipy.stats import chisquare

    values, notes = uniform(u)
    check_count("n_resamples", n_resamples)
    if edges is None:
        check_count("n_bins", n_bins, _MOST_BINS)
        if n_bins < 2:
            raise InputError("n_bins must be at least 2: one bin holds everything.", argument="n_bins", value=n_bins)
        inner = np.arange(1, n_bins) / n_bins
    else:
        inner = levels_of(edges)[0]
        if inner.ndim != 1 or not inner.size or not (np.diff(np.concatenate([[0.0], inner, [1.0]])) > 0).all():
            raise InputError(
                f"edges must rise strictly between 0 and 1; they are {edges!r}.", argument="edges", value=edges
            )
    chance = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    counts = np.bincount(np.searchsorted(inner, values, side="right"), minlength=chance.size)
    expected = values.size * chance
    found = chisquare(counts, expected)
    statistic, df = float(found.statistic), float(chance.size - 1)
    again = None
    if expected.min() < _FEW_EXPECTED:
        rng, beyond = generator(random_state), 0
        for first in range(0, n_resamples, _DRAWS_AT_ONCE):
            drawn = rng.multinomial(values.size, chance, size=min(_DRAWS_AT_ONCE, n_resamples - first))
            beyond += int(np.count_nonzero(((drawn - expected) ** 2 / expected).sum(axis=1) >= statistic * (1 - 1e-12)))
        again = float((1 + beyond) / (1 + n_resamples))
        text = f"Fewer than {_FEW_EXPECTED} values are expected in a bin: use resampling_pvalue."
        notes += (Note("few_expected", 1, text),)
    return TestResult(statistic, float(found.pvalue), "chi-squared", df=df, resampling_pvalue=again, notes=notes)


def miscalibration(u: Column) -> float:
    """Area between the distribution of the PIT values and the diagonal: 0 is best, 1/2 is worst.

    The integral over x of the distance between x and the share of u up to x, exactly. Where forecasts are too wide or
    too narrow, the coverage of central intervals is wrong by twice that on average over all levels.

    Examples
    --------
    >>> round(miscalibration([0.25, 0.75]), 4)
    0.125
    """
    given, notes = uniform(u)
    for note in notes:
        if note.code != "pit_at_end":  # an end is an end
            warnings.warn(note.text, CalibrantWarning, stacklevel=2)
    values = np.sort(given)
    x = np.concatenate([[0.0], values, [1.0]])
    share = np.arange(values.size + 1) / values.size
    # On each piece the gap |share - x| is linear, perhaps through 0.
    left, right = share - x[:-1], share - x[1:]
    width = np.diff(x)
    crosses = left * right < 0
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = (left**2 + right**2) / (2 * np.abs(left - right))
    area = np.where(crosses, bent, (np.abs(left) + np.abs(right)) / 2)
    return float(np.sum(width * np.where(width > 0, area, 0.0)))


# Coverage and sharpness


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """How often central intervals hold the outcome; see `coverage`.

    Attributes
    ----------
    per_level : dict of arrays
        level (nominal), observed (share of outcomes inside), low and high (Clopper and Pearson's interval of that
        share), pvalue (exact binomial test) and width (mean width of the intervals).
    """

    per_level: Mapping[str, Any]
    size: int
    confidence_level: float

    @property
    def mean_absolute(self) -> float:
        """Mean distance of observed and nominal coverage."""
        return float(np.mean(np.abs(self.per_level["observed"] - self.per_level["level"])))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        columns = {name: values.tolist() for name, values in self.per_level.items()}
        return {
            "schema_version": 1,
            "size": self.size,
            "confidence_level": self.confidence_level,
            **number("mean_absolute", self.mean_absolute),
            "per_level": columns,
        }

    def _cells(self) -> list[list[str]]:
        level = f"{100 * self.confidence_level:g} % interval"
        rows = [["nominal", "observed", level, "p", "mean width"]]
        for nominal, observed, low, high, p, width in zip(*self.per_level.values(), strict=True):
            span = f"{100 * low:.1f} to {100 * high:.1f} %"
            rows.append([f"{100 * nominal:g} %", f"{100 * observed:.1f} %", span, f"{p:.2g}", f"{width:.4g}"])
        return rows

    def __repr__(self) -> str:
        return "\n".join([f"Coverage of central intervals, {self.size:,} rows", *text_table(self._cells())])

    def _repr_html_(self) -> str:
        return f"<p>Coverage of central intervals, {self.size:,} rows</p>{html_table(self._cells())}"


def coverage(
    y_true: Column,
    forecast: Any,
    *,
    levels: Sequence[float] | None = None,
    confidence_level: float = 0.95,
) -> Coverage:
    """How often central intervals hold the outcome, with intervals and tests, and how wide they are.

    The central interval of level L reaches from the (1 - L)/2 to the (1 + L)/2 quantile; an outcome at an end is
    inside. (Forecasts of whole numbers therefore cover more than L.) Of m draws the nearest levels of intervals between
    two draws are taken, (m + 1 - 2 i) / (m + 1): between draws nobody knows what to expect.

    Parameters
    ----------
    y_true : column of n outcomes
    forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
    levels : numbers between 0 and 1
        By default 0.5, 0.8, 0.9 and 0.95, as far as an ensemble has draws for them; of quantile forecasts, those of
        pairs of their levels.
    confidence_level : float, default=0.95

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> result = coverage([9.0, 12.0, 13.5, 10.5], Gaussian([10.0] * 4, 2.0), levels=[0.5, 0.9])
    >>> result.per_level["observed"]
    array([0.5 , 0.75])
    """
    y, known = read_outcomes(y_true, forecast)
    check_share("confidence_level", confidence_level)
    wanted = levels_of(_pairs(known) if levels is None else levels)[0]
    if not wanted.size:
        raise InputError("levels must be numbers between 0 and 1; there are none.", argument="levels")
    inside, width = np.empty(wanted.size), np.empty(wanted.size)
    if isinstance(known, Samples):
        wanted = np.unique(_whole_ranks(wanted, known.draws.shape[1]))
        inside, width = inside[: wanted.size], width[: wanted.size]
    for i, level in enumerate(wanted):
        low, high = known.quantile([(1 - level) / 2, (1 + level) / 2]).T
        inside[i] = np.count_nonzero((y >= low) & (y <= high))
        width[i] = np.mean(high - low)
    limits = significance.clopper_pearson(inside, y.size, confidence_level=confidence_level)
    per_level = {
        "level": wanted,
        "observed": inside / y.size,
        "low": limits[0],
        "high": limits[1],
        "pvalue": significance.binomial(inside, y.size, wanted),
        "width": width,
    }
    return Coverage(per_level, y.size, confidence_level)


def _whole_ranks(levels: Floats, draws: int) -> Floats:
    """The nearest levels of intervals from the i-th lowest to the i-th highest draw: (m + 1 - 2 i) / (m + 1)."""
    rank = np.clip(np.rint((draws + 1) * (1 - levels) / 2), 1, max((draws + 1) // 2 - (draws % 2), 1))
    found: Floats = np.maximum(1 - 2 * rank / (draws + 1), 1e-9)
    return found


def _pairs(forecast: Any) -> list[float]:
    """Levels of central intervals whose ends are known."""
    if isinstance(forecast, Samples):
        widest = 1 - 2 / (forecast.draws.shape[1] + 1)
        return [level for level in (0.5, 0.8, 0.9, 0.95) if level <= widest + 1e-9] or [max(widest, 1e-6)]
    if not isinstance(forecast, Quantiles):
        return [0.5, 0.8, 0.9, 0.95]
    found = [float(1 - 2 * q) for q in forecast.levels if q < 0.5 and np.isclose(forecast.levels, 1 - q).any()]
    if not found:
        raise InputError(
            "No two levels of these quantiles are the ends of a central interval.",
            hint="Pass levels=, or predict quantiles in pairs such as 0.05 and 0.95.",
            argument="forecast",
        )
    return sorted(round(level, 12) for level in found)


def sharpness(forecast: Any, *, level: float = 0.9) -> float:
    """Mean width of the central intervals of this level: of two calibrated forecasts the sharper one is better.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(sharpness(Gaussian([10.0, 20.0], [1.0, 3.0])), 3)
    6.579
    """
    check_share("level", level)
    low, high = as_forecast(forecast).quantile([(1 - level) / 2, (1 + level) / 2]).T
    return float(np.mean(high - low))


# Scores: calibration and sharpness in one


def nll(y_true: Column, forecast: Any) -> float:
    """Mean negative log-likelihood of the outcomes; lower is better, infinite if one was held to be impossible.

    Needs densities: normal forecasts, scipy's distributions, and what recalibrators make of them.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(nll([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    2.6121
    """
    y, known = read_outcomes(y_true, forecast)
    return float(-np.mean(known.log_density(y)))


def crps(y_true: Column, forecast: Any) -> float:
    """Mean continuous ranked probability score, in the unit of the outcomes; lower is better.

    The integral of (F(x) - 1{x >= y})^2 over x: the absolute error, for forecasts that are distributions. Draws count
    as the distribution that they are (1/m each); of quantiles twice the mean pinball loss is taken.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(crps([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    1.6865
    """
    y, known = read_outcomes(y_true, forecast)
    return float(np.mean(known.crps(y)))


def pinball(y_true: Column, y_pred: Column, *, level: float) -> float:
    """Mean pinball loss of predicted quantiles: level (y - q) where y > q, (1 - level) (q - y) elsewhere.

    Examples
    --------
    >>> pinball([10.0, 24.0], [12.0, 20.0], level=0.75)
    1.75
    """
    check_share("level", level)
    columns = [
        _columns.finite(_columns.read(c, name, hint=ONE_COLUMN)) for c, name in ((y_true, "y_true"), (y_pred, "y_pred"))
    ]
    _columns.check_lengths(columns)
    _columns.check_alignment({"y_true": y_true, "y_pred": y_pred})
    _columns.refuse_missing(columns)
    if not len(columns[0]):
        raise InputError("y_true holds no rows; at least one is needed.", argument="y_true")
    y, q = (column.values for column in columns)
    return float(np.mean(pinball_losses(y, q[:, None], np.array([level]))))


def interval_score(y_true: Column, forecast: Any, *, level: float = 0.9) -> float:
    """Mean interval score of central intervals: their width, and 2 / (1 - level) times how far the outcome lies beyond.

    Gneiting and Raftery (2007); lower is better.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(interval_score([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 3)
    13.682
    """
    check_share("level", level)
    y, known = read_outcomes(y_true, forecast)
    low, high = known.quantile([(1 - level) / 2, (1 + level) / 2]).T
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.mean(high - low + 2 / (1 - level) * beyond))
