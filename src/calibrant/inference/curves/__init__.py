"""Calibration curves: estimates, confidence bands, and the calibration belt."""
