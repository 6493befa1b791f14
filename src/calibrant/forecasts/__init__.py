"""Forecasts of a numeric target: predictive distributions, one per row."""
