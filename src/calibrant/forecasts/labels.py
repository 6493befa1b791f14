"""`Labels`: predicted classes, for `calibrant.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._support.typing import Column

__all__ = ["Labels"]


@dataclass(frozen=True, eq=False)
class Labels:
    """Predicted classes: is each class predicted as often as it occurs?

    Parameters
    ----------
    y_pred : column of labels
        Such as ``model.predict(X)``.
    classes : sequence, optional
        All classes; by default those that occur among outcomes and predictions.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.evaluate(["a", "b", "b", "b"], cb.Labels(["a", "a", "b", "b"])).kind
    'labels'
    """

    y_pred: Column
    classes: Sequence[Any] | None = None

    kind: ClassVar[str] = "labels"
