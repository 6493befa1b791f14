"""Calibration over time: a store of tables per window, and alarms that stay valid however often one looks."""
