"""`evaluate`: metrics with intervals and null distributions, tests, and a verdict on calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant._support.errors import InputError, Note
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column
from calibrant.evaluation.binary import evaluate_table
from calibrant.evaluation.group_evaluation import evaluate_groups
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import check_settings
from calibrant.inference.decision import Margin
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows, read_rows
from calibrant.metrics.costs import Cost
from calibrant.metrics.registry import MetricLike
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked, count_rows
from calibrant.tables.table_functions import row_options

__all__ = ["evaluate"]


@row_options
def evaluate(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    y_prob: Column | None = None,
    *,
    by: Any = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Evaluation:
    """Evaluate the calibration of predicted probabilities: metrics, tests and a verdict.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable`; or a mapping of tables, one per group.
    by : column, several columns or frame, optional
        Group of each row: a country, a week. Several columns are a list, a mapping of names to columns, or a frame;
        groups are then the observed combinations, with tuples as keys. Each group is evaluated too; p-values are
        adjusted by Holm for the number of groups, which is at most 1,000. A missing group is an error.
    costs : cost, mapping or sequence of costs, optional
        Adds the expected calibration cost of each: ``{"fraud": LinearCost(over=1, under=20)}``.
    margin : float or AbsoluteMargin, default=0.1
        Largest log-odds error that does not matter. 0.1 means odds that are right to about 10 %: 2.5 points at a score
        of 50 %, 0.1 points at 1 %. ``AbsoluteMargin(0.01)`` tests ACE instead, in probability.
    alpha : float, default=0.05
        Level of the tests behind the verdict.
    metrics : list of metrics or mapping of names to metrics, optional
        Replaces the default panel. Metrics are objects, their functions, or names in `METRICS`: ``["ece", cb.brier]``.
    confidence_level : float, default=0.95
        Of intervals and null ranges.
    n_resamples : int, default=499
        Bootstrap and null replicates of the metrics. The verdict needs none.
    random_state : int, Generator or None, default=0
        0, so that the same data get the same numbers.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) may depend on each other. At least 10 clusters are needed; a group with
        fewer is not tested.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. With ``missing="drop"`` a row without a cluster is
        dropped too.

    Returns
    -------
    Evaluation
        ``verdict``, ``direction``, ``metrics``, ``groups``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    The verdict follows from an omnibus test of calibration and an equivalence test at the margin:

    =================  ====================================  ==================
    omnibus test       shown to lie within the margin        not shown
    =================  ====================================  ==================
    significant        negligible                            miscalibrated
    not significant    calibrated                            inconclusive
    =================  ====================================  ==================

    The omnibus test rejects if one of up to four tests does after Holm's adjustment: calibration in the large, slope,
    and the deviations over coarse and fine bins of equal information. A calibrated model is "miscalibrated" with a
    probability of at most about `alpha`. Each direction is claimed by its own test. The equivalence test inverts the
    distribution of the squared log-odds errors of the coarse bins; a model whose error is exactly the margin is shown
    to lie within it with a probability of at most about `alpha`. Errors that cancel within a bin are not seen by it,
    so a significant deviation over fine bins must lie within the margin as well. It needs an information (sum of
    p (1 - p)) of at least 20, and of about 2,000 to show a calibrated model within 0.1: 10,000 rows at 50 % events,
    200,000 at 1 %. An event with score 0, or its absence with score 1, contradicts calibration: the verdict is then
    miscalibrated.

    p-values shown with a verdict are adjusted so that they cannot contradict it: none is at most `alpha` unless the
    omnibus test rejects. Each null has the p-value of its metric alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = evaluate(rng.random(3000) < p**1.3, p, n_resamples=99)
    >>> found.verdict, found.direction
    ('miscalibrated', 'overestimates')
    """
    settings = check_settings(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    seed = seed_sequence(random_state)
    if isinstance(y_true, Mapping):
        whole, samples, name = _read_tables(y_true, y_prob, by, cluster, rows)
    else:
        whole = _Sample(*read_rows(y_true, y_prob, cluster, rows))
        samples, name = _read_groups(y_true, y_prob, by, cluster, rows)

    def one(sample: _Sample, show: bool | None = False) -> Evaluation:
        return evaluate_table(
            sample.table, settings, seed, show=show, rows=sample.rows, few_clusters=sample.few_clusters
        )

    result = evaluate_groups(one(whole, progress), samples, one, name=name, progress=progress)
    return replace(result, own_notes=(*result.own_notes, *_few_clusters(samples)))


@dataclass(frozen=True, eq=False)
class _Sample:
    """A table and, if rows are in clusters, its rows; without tests if there are too few clusters."""

    table: ScoreTable
    rows: PairedRows | None = None
    few_clusters: bool = False

    @classmethod
    def count(cls, rows: Rows) -> "_Sample | None":
        """Count the rows of a group; None if no row is used."""
        if rows.is_empty:
            return None
        if rows.cluster is None:
            return cls(count_rows(rows))
        used = check_scores(rows)
        if used.n_clusters < MIN_CLUSTERS:
            return cls(count_checked(used), few_clusters=True)
        paired, (table,) = PairedRows.from_rows(rows)
        return cls(table, paired)


def _read_groups(
    y_true: Any, y_prob: Any, by: Any, cluster: Column | None, rows: Mapping[str, Any]
) -> tuple[dict[Any, _Sample | None], str | None]:
    """Return the sample of each group, and the name of the groups."""
    if by is None:
        return {}, None
    if isinstance(y_true, ScoreTable):
        raise InputError(
            "by must be omitted with a ScoreTable; got both. A table does not have the group of each row.",
            hint="Pass y_true, y_prob and by; or a mapping of tables.",
            argument="by",
        )
    read = Rows.read(y_true, {"y_prob": y_prob}, cluster=cluster, by=by, **rows)
    return {key: _Sample.count(own) for key, own in read.split().items()}, read.group_name


def _read_tables(
    tables: Mapping[Any, ScoreTable], y_prob: Any, by: Any, cluster: Any, rows: Mapping[str, Any]
) -> tuple[_Sample, dict[Any, _Sample | None], str | None]:
    """Return the sum of the tables, the table of each group, and the name of the groups."""
    options = {"y_prob": y_prob, "by": by, "cluster": cluster}
    given = [name for name, value in options.items() if value is not None] + list(rows)
    if given:
        raise InputError(f"{', '.join(given)} must be omitted with tables; got both.", argument=given[0])
    found = _tables_by_group(tables)
    for key, table in found.items():
        if not isinstance(table, ScoreTable):
            raise InputError(
                f"Each group must be a ScoreTable; got {type(table).__name__} for {key!r}.", argument="y_true"
            )
    if not found:
        raise InputError("There are no tables; at least one is needed.", argument="y_true")
    name = (", ".join(tables.by) or None) if isinstance(tables, Tables) else None
    whole = _Sample(sum(found.values(), ScoreTable.empty()))
    groups = {} if list(found) == [None] else {key: _Sample(t) if len(t) else None for key, t in found.items()}
    return whole, groups, name


def _few_clusters(samples: Mapping[Any, _Sample | None]) -> list[Note]:
    few = [str(key) for key, sample in samples.items() if sample is not None and sample.few_clusters]
    text = f"Groups with fewer than {MIN_CLUSTERS} clusters, which are not tested: {', '.join(few)}."
    return [Note("few_clusters", len(few), text)] if few else []


def _tables_by_group(tables: Mapping[Any, ScoreTable]) -> Mapping[Any, ScoreTable]:
    """Return the tables by group; `Tables` has them by model and group."""
    if not isinstance(tables, Tables):
        return tables
    if len(tables.models) > 1:
        raise InputError(
            f"y_true must have the tables of one model; got {', '.join(map(repr, tables.models))}.",
            hint="Evaluate one: tables.of(model).",
            argument="y_true",
        )
    return tables.of()
