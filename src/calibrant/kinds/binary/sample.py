"""Read and group predicted probabilities of one event with outcomes 0 and 1, as `TableSample`."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._support.arrays import Column
from calibrant._support.errors import Argument, InputError, join_notes
from calibrant.inference.paired_rows import read_rows
from calibrant.inference.table_sample import TableSample
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks, neighbour_notes
from calibrant.kinds.sample import GroupedSample
from calibrant.results.settings import Focus
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores, plain_rows, read_score_forecast

if TYPE_CHECKING:
    from calibrant.tables.collection import Tables


def errors(used: Rows) -> list[Errors]:
    """Return the errors of the scores of each model."""
    scores = [column.values.astype(np.float64) for column in used.forecasts]
    return [Errors((used.y.values - p)[:, None], p) for p in scores]


TIME_BLOCKS = partial(in_time_blocks, check=check_scores, errors=errors)


def read(y_true: Any, y_prob: Any, cluster: Column | None, options: Mapping[str, Any]) -> TableSample:
    """Read the rows, or take the table, for one metric; options as for `ScoreTable.from_arrays`."""
    if "time" in options:
        read_score_forecast.check_given(y_prob)
        rows, serial = TIME_BLOCKS(Rows.read(y_true, {"forecast": y_prob}, cluster=cluster, **options))
        need_blocks(serial)
        return TableSample.from_rows(rows)
    return TableSample(*read_rows(y_true, y_prob, cluster, dict(options), read_score_forecast))


def read_groups(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    forecast: Column | None = None,
    *,
    by: Any = None,
    cluster: Column | None = None,
    focus: Focus | None = None,
    **options: Any,
) -> GroupedSample[TableSample]:
    """Read rows, one table, or a mapping of tables by group; of a `focus` only the rows in it."""
    if isinstance(y_true, Mapping):
        return _read_tables(y_true, {"forecast": forecast, "by": by, "cluster": cluster, **options}, focus)
    if isinstance(y_true, ScoreTable) and focus is not None:
        from calibrant.kinds.binary.focus import tables_in_focus  # most evaluations have none

        y_true = tables_in_focus({None: y_true}, focus)[None]
    by_row = by is not None or cluster is not None or "time" in options or focus is not None
    if not isinstance(y_true, ScoreTable) and by_row:
        read_score_forecast.check_given(forecast)
        rows = Rows.read(y_true, {"forecast": forecast}, cluster=cluster, by=by, **options)
        if focus is not None:
            from calibrant.kinds.binary.focus import rows_in_focus

            rows = rows_in_focus(rows, focus)
        return GroupedSample.from_rows(rows, TableSample.from_rows, TIME_BLOCKS)
    if by is not None:
        raise InputError(
            Argument("by")
            + " must be omitted with a ScoreTable; got both. A table does not have the group of each row.",
            hint="Pass y_true, forecast and by; or a mapping of tables.",
        )
    table, paired = read_rows(y_true, forecast, cluster, options, read_score_forecast)
    plain = None if any(value is not None for value in options.values()) else plain_rows(y_true, forecast)
    if plain is not None:
        score, outcome = (column.astype(np.float64) for column in plain)
        table = table.with_notes(join_notes(table.notes, neighbour_notes(outcome, score)))
    return GroupedSample(TableSample(table, paired))


def _read_tables(
    tables: Mapping[Any, ScoreTable], others: Mapping[str, Any], focus: Focus | None
) -> GroupedSample[TableSample]:
    """Return the sum of the tables and the table of each group."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise InputError(f"{', '.join(given)} must be omitted with tables; got both.", argument=given[0])
    from calibrant.tables.collection import Tables  # most evaluations have rows

    found = _tables_by_group(tables) if isinstance(tables, Tables) else tables
    for key, table in found.items():
        if not isinstance(table, ScoreTable):
            raise InputError(
                Argument("y_true") + f" must have a ScoreTable for each group; got {type(table).__name__} for {key!r}."
            )
    if not found:
        raise InputError(Argument("y_true") + " must have at least one table; got none.")
    if focus is not None:
        from calibrant.kinds.binary.focus import tables_in_focus

        found = tables_in_focus(found, focus)
    name = (", ".join(tables.by) or None) if isinstance(tables, Tables) else None
    whole = TableSample(sum(found.values(), ScoreTable.empty()))
    groups = {} if list(found) == [None] else {key: TableSample(t) if len(t) else None for key, t in found.items()}
    return GroupedSample(whole, groups, name)


def _tables_by_group(tables: "Tables") -> Mapping[Any, ScoreTable]:
    """Return the tables of the only model by group."""
    if len(tables.models) > 1:
        raise InputError(
            Argument("y_true") + f" must have the tables of one model; got {', '.join(map(repr, tables.models))}.",
            hint="Evaluate one: tables.of(model).",
        )
    return tables.of()
