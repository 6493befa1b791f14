"""The targets, each a module with `run(data)` and `seeds()`, and their corpus."""

from pathlib import Path

TARGETS = ("kernel", "calibrators", "tables", "scans", "commands", "specifications")
CORPUS = Path(__file__).with_name("corpus")
