"""Predicted classes are not audited."""

__all__ = ["NOT_AUDITED"]

NOT_AUDITED = "Labels have no residuals: pass class probabilities."
