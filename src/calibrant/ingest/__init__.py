"""Outside data to tables: frames of any library that Narwhals knows, files, and tables that were kept."""
