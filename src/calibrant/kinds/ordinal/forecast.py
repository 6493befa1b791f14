"""`Ordinal`: probabilities of ordered classes, for `calibrant.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._support.formatting import short_repr
from calibrant.forecasts.protocol import select_rows


@dataclass(frozen=True, eq=False)
class Ordinal:
    """Probabilities of ordered classes, which are calibrated if all cumulative probabilities are.

    Parameters
    ----------
    proba : array of shape (n, K), or frame
        Probability of each class; rows sum to 1.
    classes : sequence, optional
        The class of each column, from the lowest to the highest; by default the names of a frame's columns, else 0 to
        K - 1.

    See Also
    --------
    Labels, Point, evaluate

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> proba = np.tile([[0.5, 0.3, 0.2]], (4, 1))
    >>> cb.evaluate(["low", "mid", "low", "high"], cb.Ordinal(proba, classes=["low", "mid", "high"])).kind
    'ordinal'
    """

    __repr__ = short_repr

    proba: Any
    classes: Sequence[Any] | None = None

    kind: ClassVar[str] = "ordinal"

    def __len__(self) -> int:
        return len(self.proba)

    def __getitem__(self, rows: Any) -> "Ordinal":
        """Return the forecasts of some of the rows: one position, a slice, a mask, or several positions."""
        return Ordinal(select_rows(self.proba, rows), self.classes)

    # Rows are selected, not iterated: NumPy would read the forecasts as a nested sequence.
    __iter__: ClassVar[None] = None
