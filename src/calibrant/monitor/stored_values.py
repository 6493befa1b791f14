"""Types of the columns of the store. Each checks what it reads: a database can be edited by hand or be damaged."""

import json
import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from calibrant.monitor.time_windows import DAY, LAST_YEAR, read_time

__all__ = ["StoreError", "StoredValue", "check_stream", "check_sums", "damaged", "read_json"]

_LARGEST = 2**63 - 1
# A window may end after the last time that is accepted.
_FIRST_TIME, _LAST_TIME = read_time(datetime(1, 1, 1)), read_time(datetime(LAST_YEAR, 12, 31)) + 366 * DAY
_HEX = frozenset("0123456789abcdef")


class StoreError(OSError):
    """The store cannot be read or written. What it held before the call is unchanged.

    See Also
    --------
    Monitor

    Examples
    --------
    >>> damaged("a window ends before it begins")
    StoreError('The store is damaged: a window ends before it begins. Restore it from a backup.')
    """


def damaged(what: str) -> StoreError:
    """Return the error about content of the store that the monitor did not write."""
    return StoreError(f"The store is damaged: {what}. Restore it from a backup.")


class Rule(NamedTuple):
    """What the values of a column must be, in words and as a function; the other function converts raw values."""

    words: str
    holds: Callable[[Any], bool]
    convert: Callable[[Any], Any]


def _whole(words: str, low: int, high: int = _LARGEST) -> Rule:
    return Rule(words, lambda value: type(value) is int and low <= value <= high, _integer)


def _real(words: str, low: float, high: float) -> Rule:
    return Rule(words, lambda value: type(value) is float and low <= value <= high, _float)


def _text(words: str, holds: Callable[[str], bool] = lambda value: True) -> Rule:
    return Rule(words, lambda value: isinstance(value, str) and holds(value), lambda value: value)


def _integer(value: Any) -> Any:
    # PostgreSQL has sums of whole numbers as decimals.
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def _float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _flag(value: Any) -> Any:
    return bool(value) if value in (0, 1) else value


def _binary(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@lru_cache(maxsize=8192)
def _is_label(key: str) -> bool:
    """Return whether a text is the key of a label, or empty: JSON of a scalar, or of a list of scalars."""
    if not key:
        return True
    try:
        found = json.loads(key)
    except (ValueError, RecursionError):
        return False
    parts = found if isinstance(found, list) else [found]
    numbers = (part for part in parts if isinstance(part, float))
    return all(type(part) in (str, int, float) for part in parts) and all(map(math.isfinite, numbers))


def _is_stream(key: str) -> bool:
    """Return whether a text is the key of a stream: that of a label, or of an event of a group."""
    if not key.startswith("event "):
        return _is_label(key)
    # A label may hold the word that joins both keys.
    cuts = [at for at in range(len(key)) if key.startswith(" of ", at)]
    return any(_is_label(key[6:at]) and _is_label(key[at + 4 :]) for at in cuts)


def _is_digest(value: str) -> bool:
    return len(value) == 64 and set(value) <= _HEX


_FINITE = 1.7976931348623157e308
RULES = {
    "count": _whole("a whole number of at least 0", 0),
    "rows": _whole("a whole number of at least 1", 1),
    "ordinal": _whole("a whole number from 1 to 2147483647", 1, 2**31 - 1),
    "time": _whole("microseconds since 1970 in the years 1 to 9000", _FIRST_TIME, _LAST_TIME),
    "sum": _real("a finite number of at least 0", 0.0, _FINITE),
    "number": _real("a finite number", -_FINITE, _FINITE),
    "limit": _real("a number", -math.inf, math.inf),
    "probability": _real("a number from 0 to 1", 0.0, 1.0),
    "flag": Rule("0 or 1", lambda value: type(value) is bool, _flag),
    "bytes": Rule("bytes", lambda value: type(value) is bytes, _binary),
    "text": _text("text"),
    "label": _text("the key of a group or of an event", _is_label),
    "stream": _text("the key of a stream", _is_stream),
    "sha256": _text("a SHA-256 in hexadecimal", _is_digest),
    "scope": _text("read, write or admin", ("read", "write", "admin").__contains__),
    "delivery": _text("a state of a delivery", ("waiting", "delivered", "acknowledged", "earlier").__contains__),
}


class StoredValue(sa.types.TypeDecorator[Any]):
    """A type of SQL with the rule that its values meet; others are a `StoreError` that names the column.

    The rule also holds for minima, maxima and sums of the column. NULL is left to the constraints of the database.

    Parameters
    ----------
    base : TypeEngine
        The type of SQL.
    rule : str
        A key of `RULES`.
    place : str
        Table and column, for the error.
    """

    impl: sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]] = sa.Text
    cache_ok = True

    def __init__(self, base: sa.types.TypeEngine[Any], rule: str, place: str = "") -> None:
        super().__init__()
        self.base, self.rule, self.place = base, rule, place
        self.impl = base

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any]:
        """Return the function that checks values; it sees them as the driver returns them."""
        rule, place = RULES[self.rule], self.place

        def read(value: Any) -> Any:
            if value is None:
                return None
            found = rule.convert(value)
            if not rule.holds(found):
                raise damaged(f"{place} must be {rule.words}; got {repr(value)[:60]}")
            return found

        return read


def read_json(text: str, place: str, kind: type) -> Any:
    """Return the list or the mapping that a column holds as JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise damaged(f"{place} must be JSON of a {kind.__name__}; got {text[:60]!r}")
    return found


def check_stream(row: Any, place: str) -> Any:
    """Return a row of a stream if its key fits its event, and its sums can be sums; see `check_sums`."""
    fits = row.stream.startswith(f"event {row.event} of ") if row.event else not row.stream.startswith("event ")
    if not fits:
        raise damaged(f"{place}.stream must be the key of a stream of event {row.event!r}; got {row.stream!r}")
    if getattr(row, "cohort", 1) < bool(row.stream and not row.event):
        raise damaged(f"{place}.cohort must be at least 1 for a group; got {row.cohort}")
    return check_sums(row, place)


def check_sums(row: Any, place: str) -> Any:
    """Return a row with the sums of some forecasts, n, k and score_sum, if they can be sums of outcomes and scores."""
    if row.n is not None and (row.n < 1 or row.k > row.n or row.score_sum > row.n * (1 + 1e-9)):
        found = f"n = {row.n}, k = {row.k}, score_sum = {row.score_sum:g}"
        raise damaged(f"{place} must have sums of at least one row, with k and score_sum up to n; got {found}")
    return row
