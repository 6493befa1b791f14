"""Reproduction of all tables of Yang & Bi (2025), "Cost-aware calibration of classifiers"."""
