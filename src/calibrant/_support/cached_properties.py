"""`cached_property` without a lock: that of Python 3.11 lets one thread at a time compute a property of a class."""

import sys

__all__ = ["cached_property"]

if sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar, overload

    T = TypeVar("T")

    class cached_property(Generic[T]):  # noqa: N801  # the name of Python's own
        """A property that is computed once for each object; twice if two threads need it at the same time."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> "cached_property[T]": ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object | None, owner: type | None = None) -> "cached_property[T] | T":
            if instance is None:
                return self
            found = instance.__dict__[self.attrname] = self.func(instance)
            return found
