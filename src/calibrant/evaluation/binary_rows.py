"""Rows and tables of predicted probabilities of one event, as they are evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.random import SeedSequence

from calibrant._support.errors import Argument, InputError
from calibrant._support.typing import Column
from calibrant.evaluation.binary import complete_evaluation, evaluate_table, start_table
from calibrant.evaluation.pipeline import ROW_OPTIONS, GroupedSample, Kind, Starter
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import Settings
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows, read_rows
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked, count_rows
from calibrant.tables.table_functions import read_score_forecast

__all__ = ["BINARY"]


@dataclass(frozen=True, eq=False)
class _Sample:
    """A table and, if rows are in enough clusters for tests, its rows."""

    table: ScoreTable
    rows: PairedRows | None = None
    n_clusters: int | None = None

    @classmethod
    def from_rows(cls, rows: Rows) -> "_Sample":
        """Validate and count rows."""
        if rows.cluster is None:
            return cls(count_rows(rows))
        used = check_scores(rows)
        if used.n_clusters < MIN_CLUSTERS:
            return cls(count_checked(used), n_clusters=used.n_clusters)
        paired, (table,) = PairedRows.from_rows(rows)
        return cls(table, paired, paired.n_draws)


def _read(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    forecast: Column | None = None,
    *,
    by: Any = None,
    cluster: Column | None = None,
    **options: Any,
) -> GroupedSample[_Sample]:
    """Read rows, one table, or a mapping of tables by group."""
    if isinstance(y_true, Mapping):
        return _read_tables(y_true, {"forecast": forecast, "by": by, "cluster": cluster, **options})
    if not isinstance(y_true, ScoreTable) and (by is not None or cluster is not None):
        read_score_forecast.check_given(forecast)
        rows = Rows.read(y_true, {"forecast": forecast}, cluster=cluster, by=by, **options)
        return GroupedSample.from_rows(rows, _Sample.from_rows)
    if by is not None:
        raise InputError(
            Argument("by")
            + " must be omitted with a ScoreTable; got both. A table does not have the group of each row.",
            hint="Pass y_true, forecast and by; or a mapping of tables.",
        )
    return GroupedSample(_Sample(*read_rows(y_true, forecast, cluster, options, read_score_forecast)))


def _read_tables(tables: Mapping[Any, ScoreTable], others: Mapping[str, Any]) -> GroupedSample[_Sample]:
    """Return the sum of the tables and the table of each group."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise InputError(f"{', '.join(given)} must be omitted with tables; got both.", argument=given[0])
    found = _tables_by_group(tables)
    for key, table in found.items():
        if not isinstance(table, ScoreTable):
            raise InputError(
                Argument("y_true") + f" must have a ScoreTable for each group; got {type(table).__name__} for {key!r}."
            )
    if not found:
        raise InputError(Argument("y_true") + " must have at least one table; got none.")
    name = (", ".join(tables.by) or None) if isinstance(tables, Tables) else None
    whole = _Sample(sum(found.values(), ScoreTable.empty()))
    groups = {} if list(found) == [None] else {key: _Sample(t) if len(t) else None for key, t in found.items()}
    return GroupedSample(whole, groups, name)


def _tables_by_group(tables: Mapping[Any, ScoreTable]) -> Mapping[Any, ScoreTable]:
    """Return the tables by group; `Tables` has them by model and group."""
    if not isinstance(tables, Tables):
        return tables
    if len(tables.models) > 1:
        raise InputError(
            Argument("y_true") + f" must have the tables of one model; got {', '.join(map(repr, tables.models))}.",
            hint="Evaluate one: tables.of(model).",
        )
    return tables.of()


def _evaluate(sample: _Sample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    few = sample.n_clusters is not None and sample.n_clusters < MIN_CLUSTERS
    return evaluate_table(sample.table, settings, seed, show=progress, rows=sample.rows, few_clusters=few)


def _starter(whole: _Sample) -> Starter[_Sample] | None:
    """Return the function that begins the evaluation of a group of independent rows; None for weights and clusters."""
    if whole.table.importance or whole.n_clusters is not None:
        return None
    return lambda sample, settings, seed, submit: start_table(sample.table, settings, seed, submit)


BINARY = Kind(
    "binary",
    _read,
    _evaluate,
    options=("costs", "metrics", "pos_label", *ROW_OPTIONS),
    complete=complete_evaluation,
    starter=_starter,
)
