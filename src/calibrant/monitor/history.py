"""`History`: one row per window of a monitored model or of one of its groups."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import frame_from_columns
from calibrant.monitor.events import BINARY, event_text, rate_words
from calibrant.monitor.status import ChangeEstimate
from calibrant.monitor.time_windows import window_text
from calibrant.results.evaluation import to_json_text

__all__ = ["History", "WindowRecord"]

_SHOWN = 30


@dataclass(frozen=True)
class WindowRecord:
    """One window.

    Attributes
    ----------
    start : datetime
    n_rows, n_events : int
    predicted, observed : float
        Mean score and event rate.
    log_e_value : float
        Of all windows up to this one; NaN while the window is open.
    alarm : bool
        Whether an alarm was raised in this window or before it.
    closed : bool
    threshold : float
        Log e-value of an alarm in this window; NaN while it is open. See `History`.
    """

    start: datetime
    n_rows: int
    n_events: int
    predicted: float
    observed: float
    log_e_value: float
    alarm: bool
    closed: bool
    threshold: float = math.nan


@dataclass(frozen=True, repr=False)
class History:
    """Windows in order of time; see `Monitor.history`.

    Attributes
    ----------
    model, version : str
    group : label or None
        None for all rows.
    windows : tuple of WindowRecord
    window : str or int
        The setting.
    threshold : float
        Log e-value of an alarm after the last closed window. For a group, with the other groups as they are: the rule
        is joint, so the threshold is lower while other groups have much evidence, and differs between windows. For an
        event, that of an alarm by this event alone; the mean of the e-values of all events decides.
    change_point : ChangeEstimate or None
    kind : str
        Kind of the forecasts.
    event : label or None
        The class or the level; None for binary forecasts and for the rates of all events: of the most probable class,
        or of the central interval.
    """

    model: str
    version: str
    group: Any
    windows: tuple[WindowRecord, ...]
    window: str | int
    threshold: float
    change_point: ChangeEstimate | None = None
    kind: str = BINARY
    event: Any = None

    def __len__(self) -> int:
        return len(self.windows)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per window as a frame of the named library."""
        return frame_from_columns({name: [getattr(w, name) for w in self.windows] for name in _NAMES}, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "schema_version": 1,
            "result": "history",
            "model": self.model,
            "version": self.version,
            "group": self.group,
            "kind": self.kind,
            "event": self.event,
            "window": self.window,
            "threshold": self.threshold,
            "change_point": None if self.change_point is None else self.change_point.to_dict(),
            "windows": [{name: _plain(getattr(w, name)) for name in _NAMES} for w in self.windows],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return to_json_text(self.to_dict())

    def plot(self, *, fig: Any = None) -> Any:
        """Draw rates and evidence over time; return a `calibrant.plots.MonitorDisplay`."""
        from calibrant import plots

        return plots.MonitorDisplay.from_history(self).plot(fig=fig)

    def __repr__(self) -> str:
        lines = text_table(self.cells(), left=(0,)) if self.windows else ["  no windows"]
        return "\n".join([self._heading(), *lines])

    def _repr_html_(self) -> str:
        table = html_table(self.cells(), left=(0,)) if self.windows else ""
        return f"<p>{self._heading()}</p>{table}"

    def _heading(self) -> str:
        more = f", the last {_SHOWN} shown" if len(self.windows) > _SHOWN else ""
        return f"History: {len(self.windows):,} windows{more}"

    @property
    def rate_words(self) -> tuple[str, str, str]:
        """The words for both rates, and for what they are rates of."""
        return rate_words(self.kind if self.event is None else BINARY)

    @property
    def subject(self) -> str:
        """The group and the event in words; empty for all rows."""
        group = "" if self.group is None else f", group {self.group}"
        return group + ("" if self.event is None else f", {event_text(self.kind, self.event)}")

    def cells(self) -> list[list[str]]:
        """Return the table of the last windows as text; its first row is the header."""
        header = ["window", "rows", *self.rate_words[:2], "log e-value", "alarm"]
        rows = []
        for w in self.windows[-_SHOWN:]:
            evidence = "open" if not w.closed else f"{w.log_e_value:.2f}"
            rates = (f"{100 * rate:.2f} %" for rate in (w.predicted, w.observed))
            rows.append([window_text(w.start, self.window), f"{w.n_rows:,}", *rates, evidence, "alarm" * w.alarm])
        return [header, *rows]


_NAMES = tuple(WindowRecord.__dataclass_fields__)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
