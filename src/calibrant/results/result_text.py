"""Rounded numbers for the short representations of results."""

import math

from calibrant._support.formatting import NumberFormat, p_text

__all__ = ["format_level", "format_limits", "format_pvalues"]


def format_limits(unit: str, value: float, low: float, high: float, *, signed: bool = False) -> tuple[str, str]:
    """Return the value and "low to high", with digits that fit the distance of the limits.

    Without limits the second text is empty. Units other than "1" and "%" may have any size: four significant digits.

    >>> format_limits("1", 0.03124, 0.02011, 0.04093), format_limits("%", 12.34, 8.1, 15.22)
    (('0.0312', '0.0201 to 0.0409'), ('12.3 %', '8.1 to 15.2 %'))
    """
    if unit in ("1", "%"):
        form = NumberFormat.for_spread(unit, high - low, signed=signed)
        return form.value(value), form.range(low, high)
    return f"{value:.4g}", "" if math.isnan(low) or math.isnan(high) else f"{low:.4g} to {high:.4g}"


def format_level(level: float, term: str) -> str:
    """Return a level with its term.

    >>> format_level(0.95, "CI")
    '95% CI'
    """
    return f"{100 * level:g}% {term}"


def format_pvalues(pvalue: float, adjusted: float | None = None, resampled: float | None = None) -> list[str]:
    """Return the p-values that exist.

    >>> format_pvalues(0.0123, adjusted=0.0246)
    ['p = 0.012', 'adjusted p = 0.025']
    """
    texts = (("", pvalue, ""), ("adjusted ", adjusted, ""), ("", resampled, " by resampling"))
    return [f"{a}{p_text(p)}{z}" for a, p, z in texts if p is not None and not math.isnan(p)]
