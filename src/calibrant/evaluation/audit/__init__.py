"""Audit: segments of rows in which a forecast is miscalibrated."""
