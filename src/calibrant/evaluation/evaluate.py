"""`evaluate`: metrics with intervals and null distributions, tests, and a verdict on calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant._support.errors import InputError, Note
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column
from calibrant.evaluation.binary import evaluate_table
from calibrant.evaluation.groups import GroupRows, adjust_groups, check_tables, split
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import check_settings
from calibrant.inference.decision import Margin
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows, read_rows
from calibrant.metrics.costs import Cost
from calibrant.metrics.registry import MetricLike
from calibrant.tables.collection import Tables
from calibrant.tables.score_table import ScoreTable

__all__ = ["evaluate"]


def evaluate(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    y_prob: Column | None = None,
    *,
    by: Column | None = None,
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
    by : column, optional
        Group of each row: a country, a week. Each group is evaluated too; p-values are adjusted by Holm for the number
        of groups.
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
        How rows are read; see `ScoreTable.from_arrays`.

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
    together: PairedRows | None = None
    groups: dict[Any, GroupRows]
    if isinstance(y_true, Mapping):
        tables, name = check_tables(_tables_by_group(y_true), y_prob, by, cluster, rows), None
        if isinstance(y_true, Tables):
            name = ", ".join(y_true.by) or None
        whole = sum(tables.values(), ScoreTable.empty())
        groups = {} if list(tables) == [None] else {key: GroupRows(table) for key, table in tables.items()}
    else:
        whole, together = read_rows(y_true, y_prob, cluster, rows)
        groups, name = split(y_true, y_prob, by, rows, cluster=cluster)
    result = evaluate_table(whole, settings, seed, show=progress, rows=together)
    found = {
        key: evaluate_table(own.table, settings, seed, show=False, rows=own.rows, few_clusters=own.few_clusters)
        for key, own in progress_bar(groups.items(), len(groups), "evaluating groups", show=progress)
        if len(own.table)
    }
    notes = _group_notes(groups)
    return replace(result, groups=adjust_groups(found), by=name, own_notes=(*result.own_notes, *notes))


def _group_notes(groups: Mapping[Any, GroupRows]) -> list[Note]:
    notes = []
    empty = [str(key) for key, own in groups.items() if not len(own.table)]
    if empty:
        notes.append(Note("empty_groups", len(empty), f"Groups without a row that counts: {', '.join(empty)}."))
    few = [str(key) for key, own in groups.items() if own.few_clusters]
    if few:
        text = f"Groups with fewer than {MIN_CLUSTERS} clusters, which are not tested: {', '.join(few)}."
        notes.append(Note("few_clusters", len(few), text))
    return notes


def _tables_by_group(tables: Mapping[Any, ScoreTable]) -> Mapping[Any, ScoreTable]:
    """The tables by group, where they came by model and group."""
    if not isinstance(tables, Tables):
        return tables
    if len(tables.models) > 1:
        raise InputError(
            f"These are tables of several models, {', '.join(map(repr, tables.models))}.",
            hint="Evaluate one: tables.of(model).",
            argument="y_true",
        )
    return tables.of()
