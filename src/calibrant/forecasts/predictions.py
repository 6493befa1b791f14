"""`Point`, `Labels` and `Ordinal`: predicted means, classes, and probabilities of ordered classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._support.arrays import Column
from calibrant._support.formatting import short_repr
from calibrant.forecasts.protocol import select_rows


@dataclass(frozen=True, eq=False)
class Point:
    """Point predictions: the predicted mean of a numeric outcome.

    Parameters
    ----------
    y_pred : column
        Predicted means.

    See Also
    --------
    Gaussian, Quantiles, Samples, evaluate

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.evaluate([1.0, 2.5, 3.0, 4.5], cb.Point([1.5, 2.0, 3.5, 4.0])).kind
    'point'
    """

    __repr__ = short_repr

    y_pred: Column

    kind: ClassVar[str] = "point"

    def __len__(self) -> int:
        return len(self.y_pred)

    def __getitem__(self, rows: Any) -> "Point":
        """Return the predictions of some of the rows: one position, a slice, a mask, or several positions."""
        return Point(select_rows(self.y_pred, rows))

    # Rows are selected, not iterated: NumPy would read the predictions as a nested sequence.
    __iter__: ClassVar[None] = None


@dataclass(frozen=True, eq=False)
class Labels:
    """Predicted classes, which are calibrated if each class is predicted as often as it occurs.

    Parameters
    ----------
    y_pred : column of labels
        Such as ``model.predict(X)``.
    classes : sequence, optional
        All classes; by default those that occur among outcomes and predictions.

    See Also
    --------
    Point, Gaussian, evaluate, proportions

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.evaluate(["a", "b", "b", "b"], cb.Labels(["a", "a", "b", "b"])).kind
    'labels'
    """

    __repr__ = short_repr

    y_pred: Column
    classes: Sequence[Any] | None = None

    kind: ClassVar[str] = "labels"

    def __len__(self) -> int:
        return len(self.y_pred)

    def __getitem__(self, rows: Any) -> "Labels":
        """Return the predictions of some of the rows: one position, a slice, a mask, or several positions."""
        return Labels(select_rows(self.y_pred, rows), self.classes)

    # Rows are selected, not iterated: NumPy would read the predictions as a nested sequence.
    __iter__: ClassVar[None] = None


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
