"""Keeping calibrators in files, and taking them to where scores are made: SQL and ONNX."""

import calibrant.calibrators  # noqa: F401  (says which extra is missing, if it is)
