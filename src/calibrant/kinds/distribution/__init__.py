"""Predictive distributions of a number."""
