"""Rows of predictive distributions, as they are evaluated."""

from calibrant.kinds.point.rows import read

__all__ = ["read"]
