"""Predictive distributions are not audited."""

NOT_AUDITED = "Pass its means as cb.Point(mean)."
