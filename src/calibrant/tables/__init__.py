"""Tables: sorted, distinct, immutable, additive summaries of rows, and their storage."""
