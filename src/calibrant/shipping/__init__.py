"""Keeping calibrators in files, and taking them to where scores are made: SQL and ONNX."""
