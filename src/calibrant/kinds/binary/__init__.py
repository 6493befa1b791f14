"""Probabilities of one event, with outcomes 0 and 1."""
