"""Rows of predicted probabilities of one event in an audit."""

from collections.abc import Sequence
from typing import Any

from calibrant._support.columns import ColumnData
from calibrant.kinds.residuals import AuditedForecasts
from calibrant.results.audit import ResidualTerms
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import check_scores


def _check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    used = check_scores(rows)
    return used, [used.forecasts[0]]


AUDIT = AuditedForecasts(
    ResidualTerms("log_odds_error", "the score"), features=("score",), check=_check, options=("pos_label",)
)
