"""Predicted classes, with labels as outcomes."""
