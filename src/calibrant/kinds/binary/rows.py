"""Rows and tables of predicted probabilities of one event, as they are evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support.arrays import Column
from calibrant._support.errors import Argument, InputError
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows, read_rows
from calibrant.kinds.grouped_sample import GroupedSample
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked, count_rows
from calibrant.tables.table_functions import read_score_forecast

__all__ = ["Sample", "read"]


@dataclass(frozen=True, eq=False)
class Sample:
    """A table and, if rows are in enough clusters for tests, its rows."""

    table: ScoreTable
    rows: PairedRows | None = None
    n_clusters: int | None = None

    @classmethod
    def from_rows(cls, rows: Rows) -> "Sample":
        """Validate and count rows."""
        if rows.cluster is None:
            return cls(count_rows(rows))
        used = check_scores(rows)
        if used.n_clusters < MIN_CLUSTERS:
            return cls(count_checked(used), n_clusters=used.n_clusters)
        paired, (table,) = PairedRows.from_rows(rows)
        return cls(table, paired, paired.n_draws)


def read(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    forecast: Column | None = None,
    *,
    by: Any = None,
    cluster: Column | None = None,
    **options: Any,
) -> GroupedSample[Sample]:
    """Read rows, one table, or a mapping of tables by group."""
    if isinstance(y_true, Mapping):
        return _read_tables(y_true, {"forecast": forecast, "by": by, "cluster": cluster, **options})
    if not isinstance(y_true, ScoreTable) and (by is not None or cluster is not None):
        read_score_forecast.check_given(forecast)
        rows = Rows.read(y_true, {"forecast": forecast}, cluster=cluster, by=by, **options)
        return GroupedSample.from_rows(rows, Sample.from_rows)
    if by is not None:
        raise InputError(
            Argument("by")
            + " must be omitted with a ScoreTable; got both. A table does not have the group of each row.",
            hint="Pass y_true, forecast and by; or a mapping of tables.",
        )
    return GroupedSample(Sample(*read_rows(y_true, forecast, cluster, options, read_score_forecast)))


def _read_tables(tables: Mapping[Any, ScoreTable], others: Mapping[str, Any]) -> GroupedSample[Sample]:
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
    whole = Sample(sum(found.values(), ScoreTable.empty()))
    groups = {} if list(found) == [None] else {key: Sample(t) if len(t) else None for key, t in found.items()}
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
