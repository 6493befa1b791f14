"""Evaluation of predicted probabilities of one event, from rows or tables."""

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

__all__ = ["evaluate_binary"]

_N_RESAMPLES = 499


def evaluate_binary(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    y_prob: Column | None = None,
    *,
    by: Any = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Evaluation:
    """Evaluate predicted probabilities of one event; see `calibrant.evaluate`."""
    n_resamples = _N_RESAMPLES if n_resamples is None else n_resamples
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
