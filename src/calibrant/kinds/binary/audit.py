"""Rows of predicted probabilities of one event in an audit."""

from calibrant.kinds.audit import AuditedForecasts, described_by_itself
from calibrant.results.audit import ResidualTerms
from calibrant.tables.score_table import check_scores

AUDIT = AuditedForecasts(
    ResidualTerms("log_odds_error", "the score"),
    features=("score",),
    check=described_by_itself(check_scores),
    options=("pos_label",),
)
