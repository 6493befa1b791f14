"""Inference: intervals, null distributions, tests of calibration, equivalence, sample sizes."""
