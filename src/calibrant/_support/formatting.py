"""Numbers and p-values as text."""

import math
from dataclasses import dataclass

from calibrant._support.arrays import true_runs
from calibrant._support.typing import Bools, Floats

__all__ = ["NumberFormat", "format_percent", "format_pvalue", "p_text", "percent_digits", "round_up", "runs_text"]


@dataclass(frozen=True)
class NumberFormat:
    """Format of a value and its interval: unit, number of decimals, and whether a plus sign is printed."""

    unit: str
    decimals: int
    signed: bool

    @classmethod
    def for_spread(cls, unit: str, spread: float, *, signed: bool) -> "NumberFormat":
        """Choose one decimal for percentages; otherwise 4 to 9, so that the spread has two significant digits."""
        if unit == "%":
            return cls(unit, 1, signed)
        needed = 4 if not 0 < spread < math.inf else 1 + math.ceil(-math.log10(spread))
        return cls(unit, min(max(needed, 4), 9), signed)

    def value(self, value: float) -> str:
        """Format a value with its unit."""
        number = f"{value:{'+' if self.signed else ''}.{self.decimals}f}"
        return f"{number} %" if self.unit == "%" else number

    def range(self, low: float, high: float) -> str:
        """Format the limits of an interval with one unit; empty where they do not exist."""
        if math.isnan(low) or math.isnan(high):
            return ""
        return f"{self.value(low).removesuffix(' %')} to {self.value(high)}"


def format_percent(share: float) -> str:
    """Format a share as a percentage with three digits: "30.0 %", "0.0125 %", "100 %".

    >>> format_percent(0.3), format_percent(0.000125), format_percent(1.0), format_percent(0.0)
    ('30.0 %', '0.0125 %', '100 %', '0 %')
    """
    return f"{percent_digits(share)} %"


def percent_digits(share: float) -> str:
    """Format a share as a percentage with three digits, without its unit."""
    return f"{100 * share:#.3g}".removesuffix(".") if share else "0"


def format_pvalue(pvalue: float) -> str:
    """Format a p-value: "0.012", "< 1e-300"; empty if it is NaN."""
    if math.isnan(pvalue):
        return ""
    if pvalue < 1e-300:
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.0e}"


def p_text(pvalue: float) -> str:
    """Format a p-value for sentences: "p = 0.012", "p < 1e-300"."""
    text = format_pvalue(pvalue)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def round_up(count: float) -> int:
    """Round a count up to two significant digits."""
    whole = math.ceil(count - 1e-9)
    unit = int(10 ** max(len(str(whole)) - 2, 0))
    return -(-whole // unit) * unit


def runs_text(points: Floats, chosen: Bools, most: int = 3) -> str:
    """Return the runs of neighbouring points that are chosen, in words.

    >>> import numpy as np
    >>> runs_text(np.array([0.1, 0.2, 0.3, 0.5]), np.array([True, True, False, True]))
    '0.1 to 0.2, 0.5'
    """
    ends = [(points[a], points[z - 1]) for a, z in true_runs(chosen)]
    shown = [f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}" for low, high in ends[:most]]
    return ", ".join(shown) + (f" and {len(ends) - most} more ranges" if len(ends) > most else "")
