"""Evaluation: verdicts, metrics, tests and groups of one model or several."""
