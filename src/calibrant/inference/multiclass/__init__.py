"""Inference about class probabilities: the decision behind a verdict, and samples of rows."""
