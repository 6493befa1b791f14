"""`ComparedModels`: forecasts of one kind by several models, and the deviations and losses that a comparison tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from calibrant._support.errors import Note
from calibrant._support.typing import Floats
from calibrant.inference.paired_deviations import Deviations
from calibrant.inference.squared_deviations import SampledRows
from calibrant.tables.rows import Rows

__all__ = ["ComparedModels", "RowLosses", "column_name"]


@dataclass(frozen=True, eq=False)
class RowLosses:
    """The deviations of each model, and its losses per row.

    Attributes
    ----------
    deviations : sequence of Deviations
    losses : mapping of metric to the losses of each model
    units : mapping of metric to unit
    too_little : Note or None
        The reason why no difference can be shown, if there is one.
    incomparable : tuple of str
        Metrics that the models define in different ways.
    """

    deviations: Sequence[Deviations]
    losses: Mapping[str, Sequence[Floats]]
    units: Mapping[str, str]
    too_little: Note | None = None
    incomparable: tuple[str, ...] = ()


class ComparedModels(Protocol):
    """Forecasts of one kind by several models."""

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the forecasts of each model, to be read with the outcomes."""
        ...

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        ...

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model, to be evaluated."""
        ...

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return deviations and losses on the rows that are used."""
        ...


def column_name(model: str) -> str:
    """Return the name of a model's forecast in error messages."""
    return f"forecasts[{model!r}]"
