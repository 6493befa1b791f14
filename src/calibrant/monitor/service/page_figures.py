"""Figures of the pages as SVG, wide for a screen and narrow for a phone; equal data are drawn once."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from calibrant.metrics.bins import Quantile
from calibrant.monitor.history import History
from calibrant.report.templates import SafeText, inline_figure, new_canvas
from calibrant.tables.score_table import ScoreTable

__all__ = ["ResultCache", "history_figures", "reliability_figures", "table_digest"]

_RARE = 0.2  # below this event rate, points crowd in a corner of linear axes
_WIDE, _NARROW = "wide", "narrow"


class ResultCache:
    """The last results of slow functions, by a digest of their input."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._found: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return the stored result of the key, or compute and store it."""
        found = self.peek(key)
        if found is None:
            found = compute()
            self.put(key, found)
        return found

    def peek(self, key: Any) -> Any:
        """Return the stored result of the key, or None."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Any, result: Any) -> None:
        """Store a result; the one that was not used for longest is dropped."""
        with self._lock:
            self._found[key] = result
            self._found.move_to_end(key)
            while len(self._found) > self._size:
                self._found.popitem(last=False)


def history_figures(history: History, cache: ResultCache) -> dict[str, SafeText]:
    """Return rates and evidence over time; no figures without windows."""
    if not len(history):
        return {}
    key = "history", hashlib.sha256(history.to_json().encode()).hexdigest()
    sizes = {_WIDE: (9.0, 5.4), _NARROW: (4.4, 5.6)}
    found: dict[str, SafeText] = cache.get(
        key, lambda: {n: inline_figure(history.plot(fig=new_canvas(*s)), f"{n}-time") for n, s in sizes.items()}
    )
    return found


def reliability_figures(tables: Mapping[str, ScoreTable], cache: ResultCache) -> dict[str, SafeText]:
    """Return the reliability diagram of one or two periods in ten bins of equal size; logit axes for rare events."""
    digests = tuple((name, table_digest(table)) for name, table in tables.items())
    found: dict[str, SafeText] = cache.get(("reliability", digests), lambda: _reliability(tables))
    return found


def _reliability(tables: Mapping[str, ScoreTable]) -> dict[str, SafeText]:
    from calibrant.plots.reliability import ReliabilityDisplay

    rare = min(table.prevalence for table in tables.values()) < _RARE
    found = {}
    for name, size in ((_WIDE, (7.4, 5.6)), (_NARROW, (4.4, 4.8))):
        display = ReliabilityDisplay.from_predictions(
            dict(tables), bins=Quantile(10), scale="logit" if rare else "linear", fig=new_canvas(*size)
        )
        found[name] = inline_figure(display, f"{name}-reliability")
    return found


def table_digest(table: ScoreTable) -> str:
    """Return the checksum of a table of counts."""
    digest = hashlib.sha256()
    for array in (table.score, table.n, table.k):
        digest.update(array.tobytes())
    return digest.hexdigest()
