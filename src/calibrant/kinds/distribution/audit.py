"""Predictive distributions are not audited."""

__all__ = ["NOT_AUDITED"]

NOT_AUDITED = "Pass its means as cb.Point(mean)."
