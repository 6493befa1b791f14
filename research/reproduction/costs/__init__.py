"""Yang & Bi (2025), "Cost-aware calibration of classifiers": every table again."""
