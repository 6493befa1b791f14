"""`Labels`: predicted classes, for `calibrant.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._support.short_text import short_repr
from calibrant._support.typing import Column
from calibrant.forecasts.protocol import select_rows

__all__ = ["Labels"]


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
