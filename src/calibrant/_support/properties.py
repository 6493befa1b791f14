"""Properties that losses, norms, tests and scores declare and that inference reads."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


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
