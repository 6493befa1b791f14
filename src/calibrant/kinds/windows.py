"""`EventRows`: rows of any kind of forecast as binary events, which the monitor counts and tests.

A forecast of several classes, or of a distribution, states the probabilities of many events: that the outcome is a
class, or that it lies below a quantile. Each event with its stated probability is a binary forecast.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.random import Generator

from calibrant._support.arrays import Bools, Floats
from calibrant._support.columns import ColumnData
from calibrant.tables.rows import Rows


@dataclass(frozen=True, eq=False)
class EventRows:
    """Outcomes and forecasts of the same rows, validated.

    Attributes
    ----------
    content : tuple of arrays
        The columns of outcomes and forecasts. Two batches have equal rows if these are equal, in any order of rows.
    events : function
        From a function that returns a random generator to the rows of each event by its label: whether it happened, and
        its stated probability. The label None stands for the rates that a status shows for all events.
    sort_keys : tuple of arrays
        The columns by which rows are sorted before their checksum is computed, the most significant one last.
    """

    content: tuple[Floats, ...]
    events: Callable[[Callable[[], Generator]], Mapping[Any, Rows]]
    sort_keys: tuple[Floats, ...]

    def __len__(self) -> int:
        return self.content[0].size


def as_rows(happened: Bools, probability: Floats) -> Rows:
    """Return the rows of an event from whether it happened and its stated probability."""
    y = ColumnData("y", happened)
    return Rows(y, (ColumnData("p", probability),), n_in=len(y))


class Windows(Protocol):
    """What the module ``windows`` of a kind has; only kinds with this module can be monitored.

    Each event of a kind has its own e-process; the e-value of several events is the mean of theirs. A kind without
    labels has one event, whose rows can also be given as counts, or as predictions whose outcomes arrive later.

    Attributes
    ----------
    SETTINGS : tuple of str
        The settings of a monitored model that this kind has in addition to those of all kinds.
    FORECASTS : str
        What a forecast is called, in the plural.
    EXAMPLE : str
        The arguments that create a model of this kind.
    RATES : tuple of str
        Words for the predicted and the observed rate of a window, and for what they are rates of.
    TAKES : tuple of str
        Other kinds whose forecasts a model of this kind takes for its own.
    """

    @property
    def SETTINGS(self) -> tuple[str, ...]: ...
    @property
    def FORECASTS(self) -> str: ...
    @property
    def EXAMPLE(self) -> str: ...
    @property
    def RATES(self) -> tuple[str, str, str]: ...
    @property
    def TAKES(self) -> tuple[str, ...]: ...

    def read_settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check the settings of this kind that are given, and return all of them as they are stored."""

    def labels(self, settings: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the labels of the events that are tested; empty for the one event of a kind without labels."""

    def event_text(self, label: Any) -> str:
        """Return an event in words."""

    def read_rows(self, y: Any, forecast: Any, settings: Mapping[str, Any], pos_label: object = None) -> EventRows:
        """Read outcomes and forecasts; single values are one row. Errors call them y and p."""
