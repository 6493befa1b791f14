"""Outside data to tables: frames of any library that Narwhals knows, files, queries, and tables that were kept."""
