"""Types, errors, columns, options, text, JSON, SQL dialects, progress: parts without statistics."""
