"""Rows of point predictions in an audit."""

import math
from collections.abc import Iterable

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant.forecasts.predictions import Point
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.inference.regression.point_components import mean_component
from calibrant.kinds.audit import AuditedForecasts, SegmentTest, described_by_itself
from calibrant.kinds.point.metrics import estimate_metrics
from calibrant.results.audit import ResidualTerms
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means
from calibrant.tables.rows import Rows


def squared_terms(prediction: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the squared residuals of numbers as their variance, and their change by a shift of the prediction."""
    return residual**2, np.ones(prediction.size)


def assess_numbers(rows: Rows, places: Iterable[Ints], level: float, skewness: float) -> SegmentTest:
    """Test the mean error, prediction less outcome, of the rows at these places.

    Skewed errors that cannot be tested have the p-value 1; `skewness` is that of all rows.
    """
    every = list(places)
    return _test_numbers(rows.part(np.concatenate(every)), level, skewness) if every else SegmentTest()


def _test_numbers(rows: Rows, level: float, skewness: float) -> SegmentTest:
    """Test the mean error, prediction less outcome; skewed errors that cannot be tested have the p-value 1.

    `skewness` is that of all rows.
    """
    table, cluster = MeanTable.from_rows(rows), rows.cluster_codes
    estimate = next(estimate_metrics(table, cluster, level, True))
    pvalue = mean_component(table, cluster, estimate, skewness)[0].pvalue
    few = cluster is not None and int(cluster.max()) + 1 < MIN_CLUSTERS
    limits = (math.nan, math.nan) if few else (estimate.low, estimate.high)
    known = not (few or math.isnan(pvalue))
    means = table.mean_prediction, table.mean_outcome
    return SegmentTest(*means, estimate.value, *limits, pvalue if known else 1.0)


AUDIT = AuditedForecasts(
    ResidualTerms("mean_error", "the prediction", is_share=False),
    features=("prediction",),
    check=described_by_itself(check_means),
    assess=assess_numbers,
    residual_terms=squared_terms,
    reading={"hint": ONE_COLUMN},
    forecast_column=lambda forecast, classes: (forecast.y_pred if isinstance(forecast, Point) else forecast, ()),
)
