"""Properties that losses, norms, tests, scores and forecasts declare and that inference reads."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

FORECAST_KINDS = ("binary", "multiclass", "labels", "point", "distribution")


def declared_kind(forecast: Any) -> str | None:
    """Return the kind that a forecast declares; None for columns, whose own `kind` may mean something else."""
    kind = getattr(forecast, "kind", None)
    return kind if isinstance(kind, str) and kind in FORECAST_KINDS else None


def declare(**properties: Any) -> Callable[[T], T]:
    """Attach properties to a function as attributes; a class declares them as class attributes.

    >>> @declare(measures_gaps=True)
    ... def loss(partition): ...
    >>> loss.measures_gaps
    True
    """

    def attach(function: T) -> T:
        for name, value in properties.items():
            setattr(function, name, value)
        return function

    return attach
