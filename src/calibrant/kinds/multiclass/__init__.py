"""Probabilities of several classes, with labels as outcomes."""
