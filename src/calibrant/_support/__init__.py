"""Building blocks without statistics: types, errors, columns, options, text, JSON, SQL, files, progress."""
