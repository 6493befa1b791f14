"""`Point`: point predictions of a number, for `calibrant.evaluate`."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant._support.typing import Column

__all__ = ["Point"]


@dataclass(frozen=True, eq=False)
class Point:
    """Point predictions: the predicted mean of a numeric outcome.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.evaluate([1.0, 2.5, 3.0, 4.5], cb.Point([1.5, 2.0, 3.5, 4.0])).kind
    'point'
    """

    y_pred: Column

    kind: ClassVar[str] = "point"
