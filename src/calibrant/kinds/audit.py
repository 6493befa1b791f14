"""Residuals of forecasts, as an audit searches and tests them; kinds of forecast share these functions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.columns import ColumnData
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import in_the_large
from calibrant.inference.paired_rows import MIN_CLUSTERS, PairedRows
from calibrant.results.audit import ResidualTerms
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, add_tables, count_checked

MOST_SCORES = 2**20  # distinct scores of a segment beyond which they are rounded
RESOLUTION = 2**-20
LEAST_SCORE = 1e-200  # of a variance by which squares are divided


@dataclass(frozen=True)
class SegmentTest:
    """Means, error with interval, and p-value of a segment on rows that did not choose it."""

    predicted: float = math.nan
    observed: float = math.nan
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    pvalue: float = 1.0


def bernoulli_terms(score: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the variance of the residuals of probabilities, and their change by a shift of the log-odds.

    Both are p (1 - p); impossible outcomes, with scores of 0 and 1, have the variance 1.
    """
    variance = np.where(score > 0, np.maximum(score, LEAST_SCORE), 0.0) * (1 - score)
    variance = np.where(variance > 0, variance, residual**2)
    return variance, variance


def assess_probabilities(rows: Rows, places: Iterable[Ints], level: float, skewness: float) -> SegmentTest:
    """Test calibration in the large of the rows at these places."""
    if rows.cluster is None:
        table = _count(rows, places)
        return SegmentTest() if table is None else _test_scores(Design(table), level)
    every = list(places)
    return _test_clusters(rows.part(np.concatenate(every)), level) if every else SegmentTest()


def without_classes(forecast: Any, classes: Sequence[Any] | None) -> tuple[Any, Sequence[Any]]:
    """Return a forecast that is read as it is; it has no classes."""
    return forecast, ()


@dataclass(frozen=True)
class AuditedForecasts:
    """How forecasts of one kind are audited: the constant ``AUDIT`` of the module `audit` of a kind.

    Attributes
    ----------
    terms : ResidualTerms
    features : tuple of str
        The features that describe the forecast.
    check : callable
        From rows and classes to validated rows and the columns that describe the forecast.
    assess : callable
        From rows, places of the rows of a segment, confidence level and skewness to the `SegmentTest`.
    residual_terms : callable
        From forecasts and residuals to the variances of the residuals, and their changes by a shift of the forecast.
    options : tuple of str
        The options that not all kinds have.
    reading : mapping
        Further options of `Rows.read`.
    forecast_column : callable
        From a forecast and the given classes to the column that is read, and its classes.
    batch_forecast : callable
        From the columns of a batch of rows in files to their forecast.
    """

    terms: ResidualTerms
    features: tuple[str, ...]
    check: Callable[[Rows, Sequence[Any]], tuple[Rows, list[ColumnData]]]
    assess: Callable[[Rows, Iterable[Ints], float, float], SegmentTest] = assess_probabilities
    residual_terms: Callable[[Floats, Floats], tuple[Floats, Floats]] = bernoulli_terms
    options: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    forecast_column: Callable[[Any, Sequence[Any] | None], tuple[Any, Sequence[Any]]] = without_classes
    batch_forecast: Callable[[Sequence[ColumnData]], Any] = lambda columns: columns[0]


def described_by_itself(check: Callable[[Rows], Rows]) -> Callable[..., tuple[Rows, list[ColumnData]]]:
    """Return the `check` of forecasts that are one column, which also describes them."""

    def checked(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
        used = check(rows)
        return used, [used.forecasts[0]]

    return checked


def _count(rows: Rows, places: Iterable[Ints]) -> ScoreTable | None:
    """Count the rows block by block; more than a million distinct scores are rounded to multiples of 2**-20."""
    table, waiting = None, list[ScoreTable]()
    for place in places:
        waiting.append(count_checked(rows.part(place)))
        if sum(map(len, waiting)) >= MOST_SCORES:
            table, waiting = _folded(table, waiting), []
    return _folded(table, waiting) if waiting else table


def _folded(table: ScoreTable | None, others: list[ScoreTable]) -> ScoreTable:
    found = add_tables([*([] if table is None else [table]), *others])
    return found.round(RESOLUTION) if len(found) > MOST_SCORES else found


def _test_clusters(rows: Rows, level: float) -> SegmentTest:
    """Test scores of rows in clusters; rows of too few clusters are not tested."""
    if rows.n_clusters < MIN_CLUSTERS:
        found = _test_scores(Design(count_checked(rows)), level)
        return SegmentTest(found.predicted, found.observed, found.error)
    paired, (table,) = PairedRows.from_rows(rows)
    return _test_scores(Design(table, paired), level)


def _test_scores(design: Design, level: float) -> SegmentTest:
    table = design.table
    total = float(table.n.sum())
    predicted, observed = float(np.sum(table.n * table.score)) / total, float(table.k.sum()) / total
    found = in_the_large(design, level)
    shift = found.shift
    error = (math.nan,) * 3 if shift is None else (shift.value, shift.low, shift.high)
    return SegmentTest(predicted, observed, *error, found.test.pvalue)
