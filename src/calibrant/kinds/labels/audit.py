"""Predicted classes are not audited."""

NOT_AUDITED = "Labels have no residuals: pass class probabilities."
