"""Numbers and p-values as text."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """How the numbers of one line are written: all alike."""

    unit: str
    decimals: int
    signed: bool

    @classmethod
    def of(cls, unit: str, spread: float, *, signed: bool) -> "Form":
        """One decimal of a percentage; of others four, or as many as show two digits of the spread."""
        if unit == "%":
            return cls(unit, 1, signed)
        needed = 4 if not 0 < spread < math.inf else 1 + math.ceil(-math.log10(spread))
        return cls(unit, min(max(needed, 4), 9), signed)

    def amount(self, value: float) -> str:
        """A value with its unit."""
        number = f"{value:{'+' if self.signed else ''}.{self.decimals}f}"
        return f"{number} %" if self.unit == "%" else number

    def span(self, low: float, high: float) -> str:
        """From low to high, the unit once; empty where the limits do not exist."""
        if math.isnan(low) or math.isnan(high):
            return ""
        return f"{self.amount(low).removesuffix(' %')} to {self.amount(high)}"


def chance(pvalue: float) -> str:
    """A p-value; empty where there is none."""
    if math.isnan(pvalue):
        return ""
    if pvalue < 1e-300:
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.0e}"


def p_is(pvalue: float) -> str:
    """A p-value in a sentence: "p = 0.012", "p < 1e-300"."""
    text = chance(pvalue)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
