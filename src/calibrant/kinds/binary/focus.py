"""The rows at whose scores decisions are taken: those above a threshold, or with the highest scores."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support import columns
from calibrant._support.errors import Argument, InputError, Note, join_notes
from calibrant._support.formatting import short_percent
from calibrant.results.settings import Focus
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked


def rows_in_focus(rows: Rows, focus: Focus) -> Rows:
    """Return the rows in the focus, with their groups; rows without a score stay, so that they are counted later."""
    used = check_scores(rows)
    table = count_checked(used)
    lowest, score = _lowest(table, focus), columns.scores(rows.forecasts[0])
    with np.errstate(invalid="ignore"):
        inside = score.mask | (score.values >= lowest)
    kept = rows.part(inside)
    counts = (int(np.count_nonzero(used.forecasts[0].values >= lowest)), len(used))
    note = _note(focus, *(counts if table.importance else _counts(table, lowest)))
    y = replace(kept.y, notes=(*kept.y.notes, note))
    return replace(kept, y=y, by=tuple(column.part(inside) for column in rows.by))


def tables_in_focus(tables: Mapping[Any, ScoreTable], focus: Focus) -> dict[Any, ScoreTable]:
    """Return the tables with the scores in the focus, which is one for all of them; the first one has the note."""
    whole = sum(tables.values(), ScoreTable.empty())
    if whole.importance:
        raise InputError(
            Argument("focus") + " must be given with rows or counts; got a table of weights, which does not have the "
            "number of rows of each score.",
            hint="Pass outcomes, scores and weights as columns.",
        )
    lowest = _lowest(whole, focus)
    notes = [(_note(focus, *_counts(whole, lowest)),), *[()] * (len(tables) - 1)]
    parts = zip(tables.items(), notes, strict=True)
    return {key: _part(table, lowest, note) for (key, table), note in parts}


def _part(table: ScoreTable, lowest: float, notes: tuple[Note, ...]) -> ScoreTable:
    inside = table.score >= lowest
    n, k = table.n[inside], table.k[inside]
    return ScoreTable(table.score[inside], n, k, n_in=int(n.sum()), _notes=join_notes(table.notes, notes))


def _lowest(table: ScoreTable, focus: Focus) -> float:
    """Return the lowest score in the focus; an error if no row lies in it."""
    if focus.lowest is None:
        assert focus.share is not None
        above = np.cumsum(table.n[::-1])
        place = int(np.searchsorted(above, focus.share * float(above[-1]) * (1 - 1e-9)))
        return float(table.score[::-1][min(place, len(table) - 1)])
    highest = table.extremes[1]
    if highest < focus.lowest:
        raise InputError(
            Argument("focus") + f" must contain a row; got {focus.lowest:g}, and the highest score is {highest:.6g}.",
            value=focus.lowest,
        )
    return focus.lowest


def _counts(table: ScoreTable, lowest: float) -> tuple[int, int]:
    return int(table.n[table.score >= lowest].sum()), int(table.size)


def _note(focus: Focus, inside: int, count: int) -> Note:
    text = f"All results are those of {focus.text}: {inside:,} of {count:,} rows ({short_percent(inside / count)})."
    return Note("focus", inside, text)
