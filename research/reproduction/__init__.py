"""The tables and figures of the papers, rebuilt and compared cell by cell. Run with ``make reproduce``."""
