"""Evaluation of class probabilities, from rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column, Ints
from calibrant.evaluation.group_evaluation import evaluate_groups
from calibrant.evaluation.multiclass import evaluate_classes
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import LOG_ODDS_MARGIN, Settings, integer_seed
from calibrant.inference.decision import check_margin
from calibrant.inference.resampling import check_clusters
from calibrant.metrics.classwise import as_multiclass_metrics
from calibrant.metrics.registry import MetricLike
from calibrant.tables.class_probabilities import ClassProbabilities
from calibrant.tables.class_table import ClassTable, used_rows
from calibrant.tables.rows import Missing, Rows

__all__ = ["evaluate_multiclass"]

_N_RESAMPLES, _FEWER_RESAMPLES, _MANY = 199, 99, 10_000_000


@dataclass(frozen=True, eq=False)
class _Sample:
    """A class table and, if rows are in clusters, the cluster of each row."""

    table: ClassTable
    cluster: Ints | None

    @classmethod
    def from_rows(cls, rows: Rows, labels: tuple[Any, ...]) -> "_Sample":
        cluster = used_rows(rows).cluster_codes
        return cls(ClassTable.from_rows(rows, labels), cluster)


def evaluate_multiclass(
    y_true: Column | ClassTable,
    proba: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    by: Any = None,
    margin: Any = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> Evaluation:
    """Evaluate class probabilities; see `calibrant.evaluate`."""
    read = ClassProbabilities.read(proba)
    labels = tuple(read.class_names(classes))
    options: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
    rows = Rows.read(y_true, {read.name: read}, cluster=cluster, by=by, **options)
    usual = _FEWER_RESAMPLES if read.matrix.size > _MANY else _N_RESAMPLES
    settings = Settings(
        _check_margin(margin, alpha),
        float(alpha),
        check_share("confidence_level", confidence_level),
        check_count("n_resamples", usual if n_resamples is None else n_resamples),
        integer_seed(random_state),
        {} if metrics is None else as_multiclass_metrics(metrics),
    )
    seed = seed_sequence(random_state)

    def one(sample: _Sample, show: bool | None = False) -> Evaluation:
        return evaluate_classes(sample.table, settings, seed, show=show, cluster=sample.cluster)

    whole = _Sample.from_rows(rows, labels)
    if whole.cluster is not None:
        check_clusters(int(whole.cluster.max()) + 1)
    result = one(whole, progress)
    if by is None:
        return result
    groups = {key: None if own.is_empty else _Sample.from_rows(own, labels) for key, own in rows.split().items()}
    return evaluate_groups(result, groups, one, name=rows.group_name, progress=progress)


def _check_margin(margin: Any, alpha: float) -> float:
    checked = check_margin(LOG_ODDS_MARGIN if margin is None else margin, alpha)
    if not isinstance(checked, (int, float)) or not math.isfinite(checked):
        raise InputError(
            f"margin must be a number in log-odds for class probabilities; got {margin!r}.", argument="margin"
        )
    return float(checked)
