"""Probabilities of ordered classes, with their labels as outcomes: grades, stages, ratings."""
