"""Bias of point predictions by bins of the prediction, with confidence intervals and tests."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from calibrant._support.arrays import Bools, Column, Floats
from calibrant._support.errors import Note, check_share, warn_notes
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import columns, number
from calibrant.inference.multiplicity import holm
from calibrant.metrics.bins import EqualSize, MeanBins, choose_bins
from calibrant.metrics.point_costs import bin_means
from calibrant.results.verdict import TestResult
from calibrant.tables.mean_table import MeanPartition, MeanTable, read_mean_table
from calibrant.tables.rows import WeightOptions

# A bin whose outcomes are all equal accepts predictions that equal them, up to the rounding of their mean.
SLACK = 1e-12
# The bins of an evaluation, in its table and in the test behind its verdict.
_MOST_BINS, _ROWS_PER_BIN, _CLUSTERS_PER_BIN = 10, 50, 5
_FEWEST = 5  # outcomes other than 0 that a test needs where most are 0


def usual_bins(table: MeanTable, n_clusters: int | None = None) -> EqualSize:
    """Return ten bins, or fewer so that each has fifty effective rows and five clusters."""
    most = table.effective_size / _ROWS_PER_BIN + 1e-9  # equal weights give the same bins as no weights
    if n_clusters is not None:
        most = min(most, n_clusters / _CLUSTERS_PER_BIN)
    return EqualSize(int(np.clip(most, 1, _MOST_BINS)))


@dataclass(frozen=True, eq=False, repr=False)
class BiasByBin:
    """Bias in each bin of the prediction, with confidence intervals and tests; see `bias_by_bin`.

    Attributes
    ----------
    per_bin : dict of arrays
        lower, upper (the bin is (lower, upper], the first one includes lower; with `Edges` and `EqualWidth` the nominal
        edges), n, mean_prediction, mean_outcome, bias (mean prediction less mean outcome), low and high (its confidence
        interval), pvalue (of bias 0), adjusted (Holm), outcome_low, outcome_high (confidence interval of the mean
        outcome) and rejected (rows whose prediction lies outside that interval at level 1 - alpha).
    test : TestResult
        Joint test that no bin has a bias: sum of squares of the normal scores of the bins, chi-squared.
    alpha, level : float
        Significance level of the tests, and confidence level.
    size : float
        Number of rows, or sum of weights.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    bias_by_bin

    Examples
    --------
    >>> from calibrant.regression import bias_by_bin
    >>> result = bias_by_bin([1.0, 2.0, 3.5, 3.0, 9.0, 8.0], [1.0, 2.5, 3.0, 4.0, 9.0, 9.5], n_bins=2)
    >>> len(result), result.significant, round(result.mean_absolute, 3)
    (2, array([False, False]), 0.417)
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
        """Percentage of rows in bins with a significant bias, each bin tested at `alpha` without adjustment.

        For a model without bias it is 100 alpha on average, for bins of any width.
        """
        return float(100 * (self.per_bin["n"] @ (self.per_bin["pvalue"] <= self.alpha)) / self.size)

    @property
    def mean_absolute(self) -> float:
        """Mean absolute bias over the rows, in the unit of the predictions: the analogue of ECE."""
        return float(self.per_bin["n"] @ np.abs(self.per_bin["bias"]) / self.size)

    @property
    def reliability(self) -> float:
        """Mean of bias^2 over the rows: the reduction of the squared error if the bias of the bins were removed."""
        return float(self.per_bin["n"] @ self.per_bin["bias"] ** 2 / self.size)

    @property
    def significant(self) -> Bools:
        """Which bins have a significant bias: adjusted p-value <= alpha."""
        return np.asarray(self.per_bin["adjusted"] <= self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; undefined values are null.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        totals = ("tce", "biased_share", "mean_absolute", "reliability")
        return {
            "schema_version": 1,
            "size": self.size,
            "alpha": self.alpha,
            "level": self.level,
            **{k: v for name in totals for k, v in number(name, getattr(self, name)).items()},
            "test": self.test.to_dict(),
            "per_bin": columns(self.per_bin),
            "notes": [note.to_dict() for note in self.notes],
        }

    def cells(self) -> list[list[str]]:
        """Return the table as text; its first row is the header.

        Returns
        -------
        list of lists of str
            One row per bin; a star marks a significant bias.
        """
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
        return "\n".join([self._summary(), *text_table(self.cells()), "  * significant (Holm)", *notes])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self.cells())}<p>* significant (Holm)</p>"


def bias_by_bin(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: MeanBins | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    **rows: Unpack[WeightOptions],
) -> BiasByBin:
    r"""Bias of point predictions by bins of the prediction, with confidence intervals and tests.

    The bias of a bin is its mean prediction less its mean outcome. `rejected` counts the predictions that differ
    significantly from the mean outcome of their bin. Tests are Student's t with the number of (effective) rows less 1
    as degrees of freedom, corrected for the skewness of the differences (its median over the bins) by the
    transformation of Hall (1992). A bin has a bias, but neither interval nor test, if it has one row, if all its
    outcomes are equal, or if most are 0 and fewer than five are not (rare counts, claims).

    Parameters
    ----------
    y_true, y_pred : columns
        Or one `MeanTable` instead of both.
    n_bins : int, default=10
        Number of bins of equal size, as far as ties allow.
    bins : kind of bins, optional
        Other bins: `EqualSize`, `EqualWidth`, `Edges`, `PAVA` or `PAVABC`; not with `n_bins`. `PAVABC` gives blocks
        whose mean outcomes rise, as TCE for probabilities uses them; tests in blocks that were chosen by the outcomes
        reject too often.
    alpha : float, default=0.05
        Level of `rejected` and of `significant`.
    confidence_level : float, default=0.95
        Level of the intervals.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    BiasByBin
        The bins with intervals and tests.

    See Also
    --------
    BiasByBin, BiasDisplay, MeanTable

    Notes
    -----
    In simulations (docs/studies/regression_error_rates.csv) calibrated models are rejected at about the nominal rate
    from about fifty rows per bin on, for skewed and heavy-tailed errors too (with lognormal errors at 10 % instead of
    5 % for twenty rows). Rows are assumed independent. The skewness of a merged table is unknown; its tests are t tests
    without the correction.

    Examples
    --------
    >>> result = bias_by_bin([1.0, 2.0, 3.5, 3.0, 9.0, 8.0], [1.0, 2.5, 3.0, 4.0, 9.0, 9.5], n_bins=2)
    >>> result.per_bin["n"], result.per_bin["bias"].round(3)
    (array([3., 3.]), array([0.   , 0.833]))
    """
    table = read_mean_table(y_true, y_pred, rows)
    check_share("alpha", alpha)
    check_share("confidence_level", confidence_level)
    partition = choose_bins(EqualSize, n_bins, bins)(table)
    p, y = table.prediction, table.mean
    prediction = partition.mean(lambda run: p[run])
    biases = bin_means(partition, lambda run: p[run] - y[run], rounding=partition.rounding)
    bias = biases.mean
    outcomes = bin_means(partition, lambda run: y[run])
    unknown = (bias != 0) & too_alike(partition, outcomes.error)
    biases, outcomes = (replace(means, error=np.where(unknown, np.nan, means.error)) for means in (biases, outcomes))
    low, high = biases.limits(confidence_level)
    pvalue = biases.pvalue(np.zeros(bias.size))
    outcome_low, outcome_high = outcomes.limits(confidence_level)
    per_bin = {
        "lower": partition.lower,
        "upper": partition.upper,
        "n": partition.n,
        "mean_prediction": prediction,
        "mean_outcome": outcomes.mean,
        "bias": bias,
        "low": low,
        "high": high,
        "pvalue": pvalue,
        "adjusted": _adjusted(pvalue),
        "outcome_low": outcome_low,
        "outcome_high": outcome_high,
        "rejected": _rejected(partition, outcomes.mean, *outcomes.limits(1 - alpha)),
    }
    return BiasByBin(per_bin, alpha, confidence_level, float(table.size), _all_bins(pvalue, table), table.notes)


def too_alike(partition: MeanPartition, error: Floats) -> Bools:
    """Return which bins have too little variation of outcomes.

    All are equal, or most are 0 and fewer than five are not. The standard error of a bin of zeros (rare counts, claims)
    is underestimated.
    """
    y = partition.table.mean
    zeros = partition.weighted(lambda run: (y[run] == 0).astype(np.float64))
    return np.asarray((error == 0) | too_few(zeros, partition))


def too_few(zeros: Floats, partition: MeanPartition) -> Bools:
    """Return in which bins most outcomes are 0 and fewer than five are not, given the number of zeros."""
    n, m = partition.n, partition.effective_n
    return np.asarray((zeros >= n / 2) & ((1 - zeros / n) * m < _FEWEST) & (m > _FEWEST))


def _rejected(partition: MeanPartition, outcome: Floats, low: Floats, high: Floats) -> Floats:
    """Return the rows of each bin whose prediction lies outside the interval; 0 where the interval is undefined."""
    p, labels = partition.table.prediction, partition.labels
    slack = SLACK * np.maximum(np.abs(outcome), 1e-300)
    low = np.where(np.isnan(low), -np.inf, low - slack)
    high = np.where(np.isnan(high), np.inf, high + slack)

    def outside(run: slice) -> Floats:
        place = labels[run]
        return ((p[run] < low[place]) | (p[run] > high[place])).astype(np.float64)

    return partition.weighted(outside)


def _adjusted(pvalue: Floats) -> Floats:
    """Return p-values adjusted by Holm, of the bins that have one."""
    adjusted, known = np.full(pvalue.size, np.nan), ~np.isnan(pvalue)
    if known.any():
        adjusted[known] = holm(pvalue[known])
    return adjusted


def _all_bins(pvalue: Floats, table: MeanTable) -> TestResult:
    """Return the test that no bin has a bias: the sum of squares of the p-values as normal scores, chi-squared."""
    from scipy.special import chdtrc, ndtri

    known = pvalue[~np.isnan(pvalue)]
    if not known.size:
        return TestResult(np.nan, np.nan, "bias in all bins", df=0.0, notes=table.notes)
    statistic = float(np.sum(ndtri(np.maximum(known, 1e-300) / 2) ** 2))
    return TestResult(
        statistic, float(chdtrc(known.size, statistic)), "bias in all bins", df=float(known.size), notes=table.notes
    )


def tce(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: MeanBins | None = None,
    alpha: float = 0.05,
    **rows: Unpack[WeightOptions],
) -> float:
    """Test-based calibration error of point predictions, 0 to 100.

    The percentage of rows whose prediction differs significantly, by a t test at level `alpha`, from the mean outcome
    of their bin: TCE of Matsubara et al. (2023) with the t test instead of the binomial test. Each prediction is tested
    against its whole bin, so wide bins reject calibrated predictions far from the centre of the bin. By default the
    number of bins equals the number of rows per bin, about sqrt(N). (`BiasByBin.biased_share` tests bins instead of
    predictions.) Other options are those of `bias_by_bin`.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    n_bins, bins
        Number of bins, or the bins; not both.
    alpha : float, default=0.05
        Significance level of the test of each row.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    float
        Percentage of rows.

    See Also
    --------
    TCE, ece, PAVABC, null

    Examples
    --------
    >>> tce([1.0, 2.0, 3.0, 2.0, 9.0, 8.0, 9.5, 8.5], [2.0, 2.0, 2.1, 2.1, 19.0, 19.0, 19.5, 19.5], n_bins=2)
    50.0
    """
    table = read_mean_table(y_true, y_pred, rows)
    warn_notes(table.notes)
    chosen = fine_bins(table) if bins is None and n_bins is None else choose_bins(EqualSize, n_bins, bins)
    return bias_by_bin(table, bins=chosen, alpha=alpha).tce


def fine_bins(table: MeanTable) -> EqualSize:
    """Return bins of equal size, as many as each holds rows."""
    return EqualSize(max(1, math.isqrt(int(table.effective_size))))
