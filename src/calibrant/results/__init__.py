"""Results of evaluations, comparisons and tests: pure data with text, frames and JSON; no kind is named here."""
