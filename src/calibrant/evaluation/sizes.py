"""Numbers of rows, events and bins of a result, as data and as text."""

from typing import Any

from calibrant.tables.score_table import ScoreTable


def sizes(table: ScoreTable) -> dict[str, Any]:
    """Numbers of rows and events, mean score and event rate."""
    return {
        "n_in": table.n_in,
        "n_used": table.n_used,
        "n_dropped": table.n_dropped,
        "size": table.size,
        "positives": table.positives,
        "prevalence": table.prevalence,
        "mean_score": float(table.n @ table.score / table.size),
    }


def rows_in_words(table: ScoreTable) -> str:
    """How many rows there are."""
    if table.importance:
        return f"{table.n_used:,} rows with a total weight of {table.size:,.6g}"
    return f"{table.size:,} row{'s' if table.size != 1 else ''}"


def bins_in_words(count: int) -> str:
    """How many bins there are."""
    return f"{count:,} bin{'s' if count != 1 else ''}"


def sizes_in_words(table: ScoreTable) -> str:
    """Number of rows, mean score and event rate."""
    predicted, happened = (100 * sizes(table)[name] for name in ("mean_score", "prevalence"))
    weighted = "weighted " if table.importance else ""
    return f"{rows_in_words(table)}; {weighted}mean score {predicted:.4g} %, {weighted}event rate {happened:.4g} %"
