"""Evaluation of predictive distributions."""

from calibrant.kinds.point.evaluation import evaluate

__all__ = ["evaluate"]
