"""Evaluation of predicted classes: are they predicted as often as they occur?"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.columns import distinct_texts
from calibrant.kinds.labels.details import LabelsDetails
from calibrant.kinds.labels.sample import LabelsSample
from calibrant.kinds.labels.verdict import ClassProportion, decide_proportions
from calibrant.metrics.labels import Proportions
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import Interval, MetricResult, Null
from calibrant.results.verdict import Verdict

_SHOWN_CLASSES = 10  # whose differences are metrics of an evaluation


def evaluate(sample: LabelsSample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate a sample without groups; nothing is resampled."""
    table = sample.table
    options: dict[str, Any] = {"alpha": settings.alpha, "confidence_level": settings.confidence_level}
    margin = float(settings.margin)  # type: ignore[arg-type]
    verdict, classes = decide_proportions(table, sample.cluster_sums, sample.cluster_sizes, margin=margin, **options)
    found = Proportions(list(table.labels), np.asarray(table.n), {}, table.notes)
    metrics = {m.name: m for m in _metrics(verdict, classes, found, settings.confidence_level)}
    details = LabelsDetails(classes, sample.n_clusters)
    breakdowns = {"proportions": found}
    return Evaluation("labels", table, metrics, breakdowns, verdict, details, settings, own_notes=table.notes)


def _metrics(
    verdict: Verdict, classes: Sequence[ClassProportion], found: Proportions, level: float
) -> Iterator[MetricResult]:
    """Return the distances of the proportions, the largest differences, and measures of accuracy."""
    none, p = (math.nan, math.nan), verdict.pvalue
    yield _result("largest difference", verdict.deviation.value, none, 0.0, p, level, adjusted=p)
    variation = float(np.abs(found.difference).sum()) / 2
    yield _result("total variation", variation, none, 0.0, math.nan, level)
    texts = dict(zip(classes, distinct_texts([c.label for c in classes]), strict=True))
    largest = sorted(classes, key=lambda c: -abs(c.difference))[:_SHOWN_CLASSES]
    for c in sorted(largest, key=classes.index):
        name = f"difference of {texts[c]}"
        yield _result(name, c.difference, (c.low, c.high), 0.0, c.pvalue, level, adjusted=c.adjusted_pvalue)
    accuracy = {"accuracy": found.accuracy, "macro accuracy": found.macro_accuracy, "F-measure": found.f_measure}
    for name, value in accuracy.items():
        yield _result(name, value, none, math.nan, math.nan, level)


def _result(
    name: str,
    value: float,
    limits: tuple[float, float],
    expected: float,
    pvalue: float,
    level: float,
    *,
    adjusted: float = math.nan,
) -> MetricResult:
    spec: dict[str, Any] = {"name": name, "kind": "labels"}
    method = "none" if math.isnan(limits[0]) else "paired"
    interval = Interval(name, value, *limits, level, method, "1", 0, spec)
    null = Null(name, value, expected, math.nan, math.nan, pvalue, "two-sided", level, "1", 0, spec)
    return MetricResult(name, interval, null, adjusted)
