"""Numbers of rows, events and bins of a result, as data and as text."""

from typing import Any, Protocol

import numpy as np

from calibrant.tables.score_table import ScoreTable

__all__ = ["bins_text", "mean_score", "n_rows", "n_used", "row_counts", "rows_text"]


class RowTable(Protocol):
    """A table of any kind of forecast."""

    @property
    def n_in(self) -> int: ...
    @property
    def n_dropped(self) -> int: ...
    @property
    def size(self) -> int | float: ...
    @property
    def importance(self) -> bool: ...


def n_used(table: RowTable) -> int:
    """Return the number of rows that were read and not dropped."""
    return table.n_in - table.n_dropped


def mean_score(table: ScoreTable) -> float:
    """Return the mean score of all rows."""
    return float(np.sum(table.n * table.score) / table.size)


def row_counts(table: RowTable) -> dict[str, Any]:
    """Return the numbers of rows read, used and dropped, and their total weight."""
    return {"n_in": table.n_in, "n_used": n_used(table), "n_dropped": table.n_dropped, "size": table.size}


def n_rows(table: RowTable) -> int:
    """Return the number of rows: those used if rows have importance weights, else the sum of frequencies."""
    return n_used(table) if table.importance else int(table.size)


def rows_text(table: RowTable) -> str:
    """Format the number of rows: "1,000 rows"."""
    if table.importance:
        return f"{n_used(table):,} rows with a total weight of {table.size:,.6g}"
    return f"{table.size:,} row{'s' if table.size != 1 else ''}"


def bins_text(count: int) -> str:
    """Format the number of bins: "10 bins"."""
    return f"{count:,} bin{'s' if count != 1 else ''}"
