"""Reproduction of the tables and figures of the papers, compared cell by cell. Run with ``make reproduce``."""
