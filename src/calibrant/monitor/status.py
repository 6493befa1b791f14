"""Results of a monitored model: receipts, alarms, `Status`, `History`, and their page."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from calibrant._support.columns import distinct_texts
from calibrant._support.errors import Note
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import frame_from_columns, frame_from_rows, number
from calibrant._support.plain_data import label as json_label
from calibrant.kinds.base import array_kind, kind_of
from calibrant.monitor.time_windows import window_text
from calibrant.results.evaluation import to_json_text
from calibrant.results.text import ResultText
from calibrant.versions import __version__

_SHOWN_GROUPS, _SHOWN_WINDOWS = 20, 30
DEFAULT_KIND = array_kind(1).name
_EVENT_RATES = ("predicted", "observed", "event rate")


@dataclass(frozen=True)
class Receipt:
    """What a call stored. It is returned when the rows are durable.

    Attributes
    ----------
    n_rows : int
        Number of rows that were stored.
    n_late : int
        Of those, rows of closed windows, which were counted in the oldest open window.
    n_duplicates, n_unknown : int
        Rows that were left out: ids that were known already, and outcomes without a prediction.
    repeated_batch : bool
        Whether the batch was stored before, so that nothing was stored now.
    n_closed : int
        Number of windows that this call closed.
    alarms : tuple
        The label of the group, or None for all rows, of each alarm that this call raised.
    """

    n_rows: int
    n_late: int = 0
    n_duplicates: int = 0
    n_unknown: int = 0
    repeated_batch: bool = False
    n_closed: int = 0
    alarms: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Alarm:
    """An alarm: the whole (`group` is None) or a group, the window in which it was raised, and when.

    `id` is the number to acknowledge. `raised` is the time of the clock, `window` the start of the window.
    """

    id: int
    version: str
    group: Any
    window: datetime
    log_e_value: float
    raised: datetime
    acknowledged: datetime | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "id": self.id,
            "version": self.version,
            "group": None if self.group is None else json_label(self.group),
            "window": self.window.isoformat(),
            **number("log_e_value", self.log_e_value),
            "raised": self.raised.isoformat(timespec="seconds"),
            "acknowledged": None if self.acknowledged is None else self.acknowledged.isoformat(timespec="seconds"),
            "reason": self.reason,
        }

    @property
    def subject(self) -> str:
        """The words for the whole or the group."""
        return "all rows" if self.group is None else f"group {self.group}"


@dataclass(frozen=True)
class ConfidenceSequence:
    """Calibration in the large in log-odds, with limits that hold at all times together; positive: underestimates."""

    estimate: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there are an estimate and both limits."""
        return all(map(math.isfinite, (self.estimate, self.low, self.high)))

    @property
    def is_refuted(self) -> bool:
        """Whether no single shift describes all windows: no shift is left, or not the estimate."""
        return math.isfinite(self.estimate) and not self.low <= self.estimate <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return _fields(self, "estimate low high")


@dataclass(frozen=True)
class ChangeEstimate:
    """The start of the first window after a change, with an interval."""

    window: datetime
    low: datetime
    high: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return _fields(self, "window low high")


@dataclass(frozen=True)
class GroupStatus:
    """A group or an event over all closed windows.

    `threshold` is the log e-value of an alarm: of a group, with the other groups as they are (the rule is joint); of an
    event, by this event alone (the mean of the e-values of all events decides).
    """

    n_rows: int
    predicted: float
    observed: float
    log_e_value: float
    weight: float
    alarm: bool
    confidence_sequence: ConfidenceSequence
    threshold: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return _fields(self, "n_rows predicted observed log_e_value threshold weight alarm confidence_sequence")


@dataclass(frozen=True, repr=False)
class Status:
    """State of a monitored model after its last closed window; see `Monitor.status`.

    Attributes
    ----------
    model, version : str
    alarms : tuple of Alarm
        All alarms, also those that were acknowledged.
    groups : mapping of label to GroupStatus
        The largest e-value first.
    n_rows : int
        Number of rows in all windows, also in open ones.
    n_windows, n_open_windows : int
        Number of closed windows and of open windows with rows.
    n_open_rows : int
        Number of rows in open windows; rates and evidence are of the others.
    unlabelled : float
        Share of predictions without an outcome; NaN if `Monitor.predict` was not used.
    n_unlabelled : int
    predicted, observed : float
        Mean score and event rate of all closed windows. For class probabilities, mean confidence and accuracy of the
        most probable class; for predictive distributions, nominal and observed coverage of the central interval.
    log_e_value, threshold : float
        Natural logarithm of the e-value of all rows, and where it raises an alarm.
    last_window : datetime or None
        Start of the last closed window.
    change_point : ChangeEstimate or None
        After an alarm of all rows, when the event rates of the windows began to deviate; None if they do not show it.
    confidence_sequence : ConfidenceSequence
    notes : tuple of Note
    settings : mapping
    events : mapping of label to GroupStatus
        Of class probabilities each class, of predictive distributions each level; empty for binary forecasts. The
        largest e-value first.
    """

    model: str
    version: str
    alarms: tuple[Alarm, ...]
    groups: Mapping[Any, GroupStatus]
    n_rows: int
    n_windows: int
    n_open_windows: int
    n_open_rows: int
    unlabelled: float
    n_unlabelled: int
    predicted: float
    observed: float
    log_e_value: float
    threshold: float
    last_window: datetime | None
    change_point: ChangeEstimate | None
    confidence_sequence: ConfidenceSequence
    notes: tuple[Note, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[Any, GroupStatus] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Kind of the forecasts; see `Monitor`."""
        return str(self.settings.get("kind", DEFAULT_KIND))

    @property
    def open_alarms(self) -> list[Alarm]:
        """The alarms that were not acknowledged."""
        return [alarm for alarm in self.alarms if alarm.acknowledged is None]

    @property
    def alarm(self) -> bool:
        """Whether there is an alarm that was not acknowledged."""
        return bool(self.open_alarms)

    @property
    def headline(self) -> str:
        """The alarms in one line, or "no alarm"."""
        if not self.alarm:
            return f"Status: no alarm for model {self.model!r}"
        subjects = list(dict.fromkeys(alarm.subject for alarm in self.open_alarms))  # of several versions
        shown = ", ".join(subjects[:5]) + (", ..." if len(subjects) > 5 else "")
        return f"Status: alarm for model {self.model!r} ({shown})"

    def sentences(self) -> list[str]:
        """Return sentences about the evidence."""
        sentences = [self._sizes()]
        if not self.n_windows:
            return [*sentences, "No window is closed, so there is no evidence."]
        mean = f" (mean of {len(self.events)} events)" if self.events else ""
        sentences.append(
            f"Log e-value of all rows{mean}: {self.log_e_value:.2f}; an alarm is raised at {self.threshold:.2f}."
        )
        sequence = self.confidence_sequence
        if self.events:
            label, largest = next(iter(self.events.items()))
            sentences.append(f"Most evidence: {self._event_text(label)}, log e-value {largest.log_e_value:.2f}.")
        elif sequence.is_refuted:
            sentences.append("Calibration in the large: no single shift of the log-odds describes all windows.")
        elif sequence.is_known:
            level = f"{100 * (1 - float(self.settings.get('alpha', 0.05))):g} %"
            sentences.append(
                f"Calibration in the large (log-odds): {sequence.estimate:+.3f}, {level} confidence sequence "
                f"{sequence.low:+.3f} to {sequence.high:+.3f}.{self._margin_words()}"
            )
        if self.change_point is not None:
            at, low, high = (self._window(getattr(self.change_point, name)) for name in ("window", "low", "high"))
            sentences.append(f"The change is estimated at {at} (95 % CI {low} to {high}).")
        elif self._whole_has_alarm:
            sentences.append("The event rates of the windows do not show when the change began.")
        return sentences

    def _margin_words(self) -> str:
        """Say why a confidence sequence without 0 raises no alarm of all rows; empty where there is nothing to say."""
        sequence, margin = self.confidence_sequence, float(self.settings.get("margin", 0.0))
        if sequence.low <= 0 <= sequence.high or self._whole_has_alarm:
            return ""
        if max(-sequence.low, sequence.high) <= margin:
            return f" It excludes 0 but lies within the margin of {margin:g}, so there is no alarm."
        if sequence.low <= margin and sequence.high >= -margin:
            return f" It excludes 0 but not all shifts within the margin of {margin:g}, so there is no alarm."
        return f" It lies beyond the margin of {margin:g}; the log e-value has not reached the alarm."

    @property
    def _whole_has_alarm(self) -> bool:
        return any(alarm.group is None and alarm.version == self.version for alarm in self.alarms)

    @property
    def _whole(self) -> GroupStatus:
        """The state of all rows of closed windows."""
        n_rows, alarm, sequence = self.n_rows - self.n_open_rows, self._whole_has_alarm, self.confidence_sequence
        values = (self.predicted, self.observed, self.log_e_value)
        return GroupStatus(n_rows, *values, 1.0, alarm, sequence, self.threshold)

    def _sizes(self) -> str:
        last = "" if self.last_window is None else f", the last from {self._window(self.last_window)}"
        first, second, what = kind_of(self.kind).windows.RATES
        about = f"{what}: " if self.events else ""
        rates = (
            f"; {about}{first} {100 * self.predicted:.2f} %, {second} {100 * self.observed:.2f} %"
            if self.n_windows
            else ""
        )
        windows = "window" if self.n_windows == 1 else "windows"
        closed = f"{self.n_rows - self.n_open_rows:,} rows in {self.n_windows:,} closed {windows}{last}{rates}"
        return f"{closed}; {self.n_open_rows:,} rows in {self.n_open_windows:,} open."

    def _event_text(self, label: Any) -> str:
        return str(kind_of(self.kind).windows.event_text(label))

    def _window(self, start: datetime) -> str:
        return window_text(start, self.settings.get("window", "hour"))

    def alarm_lines(self) -> list[str]:
        """Return one line per alarm."""
        lines = []
        for alarm in self.alarms:
            done = "" if alarm.acknowledged is None else f"; acknowledged: {alarm.reason}"
            lines.append(
                f"alarm {alarm.id}: {alarm.subject}, version {alarm.version}, raised by window "
                f"{self._window(alarm.window)} with log e-value {alarm.log_e_value:.2f}{done}"
            )
        return lines

    def cells(self) -> list[list[str]]:
        """Return the table of all rows, the first events and the first groups as text; its first row is the header."""
        header = ["", "rows", "predicted", "observed", "log e-value", "alarm at", "alarm"]
        events = [(self._event_text(label), each) for label, each in self.events.items()]
        groups = list(zip(distinct_texts(list(self.groups)), self.groups.values(), strict=True))
        rows = [("all", self._whole), *events[:_SHOWN_GROUPS], *groups[:_SHOWN_GROUPS]]
        return [header, *([name, *_cells(row)] for name, row in rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return all results and settings as plain data for JSON."""
        return {
            "schema_version": 1,
            "result": "status",
            **_fields(self, "model version alarm headline n_rows n_windows n_open_windows n_open_rows unlabelled"),
            **_fields(self, "n_unlabelled predicted observed log_e_value threshold last_window change_point"),
            "confidence_sequence": self.confidence_sequence.to_dict(),
            "alarms": [alarm.to_dict() for alarm in self.alarms],
            "kind": self.kind,
            "groups": [{"group": json_label(name), **group.to_dict()} for name, group in self.groups.items()],
            "events": [{"event": json_label(name), **event.to_dict()} for name, event in self.events.items()],
            "settings": dict(self.settings),
            "notes": [note.to_dict() for note in self.notes],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return to_json_text(self.to_dict())

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row for all rows (group "all") and one per group, as a frame of the named library.

        For forecasts with several events there is one more row per event, with its label in the column `event`.
        """
        names = ("n_rows", "predicted", "observed", "log_e_value", "threshold", "alarm")
        parts = [("all", "", self._whole)]
        parts += [("all", str(label), event) for label, event in self.events.items()]
        parts += [(str(label), "", group) for label, group in self.groups.items()]
        rows = [
            {
                "group": group,
                **({"event": event} if self.events else {}),
                **{name: getattr(part, name) for name in names},
            }
            for group, event, part in parts
        ]
        rows[0]["n_rows"] = self.n_rows
        return frame_from_rows(rows, backend)

    def __repr__(self) -> str:
        return self._text().to_text()

    def _repr_html_(self) -> str:
        return self._text().to_html()

    def _text(self) -> ResultText:
        hidden = len(self.groups) - _SHOWN_GROUPS
        more = [f"{hidden:,} more groups: see to_frame()"] if hidden > 0 else []
        return ResultText(self.headline, self.sentences(), self.cells(), [*self.alarm_lines(), *more], self.notes)


def _fields(result: Any, names: str) -> dict[str, Any]:
    """Return fields as plain data: times as text, a number that is not finite as null with the reason."""
    fields: dict[str, Any] = {}
    for name in names.split():
        value = getattr(result, name)
        if isinstance(value, float):
            fields |= number(name, value)
        elif isinstance(value, datetime):
            fields[name] = value.isoformat()
        else:
            fields[name] = value.to_dict() if hasattr(value, "to_dict") else value
    return fields


def _cells(row: GroupStatus) -> list[str]:
    rates = (f"{100 * rate:.2f} %" if math.isfinite(rate) else "" for rate in (row.predicted, row.observed))
    evidence = (f"{value:.2f}" for value in (row.log_e_value, row.threshold))
    return [f"{row.n_rows:,}", *rates, *evidence, "alarm" if row.alarm else ""]


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
    kind: str = DEFAULT_KIND
    event: Any = None

    def __len__(self) -> int:
        return len(self.windows)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per window as a frame of the named library."""
        return frame_from_columns({name: [getattr(w, name) for w in self.windows] for name in _WINDOW_COLUMNS}, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "schema_version": 1,
            "result": "history",
            **_fields(self, "model version group kind event window threshold change_point"),
            "windows": [{name: _json_value(getattr(w, name)) for name in _WINDOW_COLUMNS} for w in self.windows],
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
        more = f", the last {_SHOWN_WINDOWS} shown" if len(self.windows) > _SHOWN_WINDOWS else ""
        return f"History: {len(self.windows):,} windows{more}"

    @property
    def rate_words(self) -> tuple[str, str, str]:
        """The words for both rates, and for what they are rates of."""
        return _EVENT_RATES if self.event is not None else kind_of(self.kind).windows.RATES

    @property
    def subject(self) -> str:
        """The group and the event in words; empty for all rows."""
        group = "" if self.group is None else f", group {self.group}"
        return group + ("" if self.event is None else f", {kind_of(self.kind).windows.event_text(self.event)}")

    def cells(self) -> list[list[str]]:
        """Return the table of the last windows as text; its first row is the header."""
        header = ["window", "rows", *self.rate_words[:2], "log e-value", "alarm"]
        rows = []
        for w in self.windows[-_SHOWN_WINDOWS:]:
            evidence = "open" if not w.closed else f"{w.log_e_value:.2f}"
            rates = (f"{100 * rate:.2f} %" for rate in (w.predicted, w.observed))
            rows.append([window_text(w.start, self.window), f"{w.n_rows:,}", *rates, evidence, "alarm" * w.alarm])
        return [header, *rows]


_WINDOW_COLUMNS = tuple(WindowRecord.__dataclass_fields__)


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def monitor_section(status: Status, history: History) -> dict[str, Any]:
    """Return what the section of a monitored model shows, here and in the report of an evaluation."""
    from calibrant.plots.canvas import new_canvas
    from calibrant.report.templates import inline_figure

    figures = [inline_figure(history.plot(fig=new_canvas(6.4, 5.2)), "monitor")] if len(history) else []
    return {
        "tone": "bad" if status.alarm else "good",
        "headline": status.headline,
        "sentences": status.sentences(),
        "alarms": status.alarm_lines(),
        "figures": figures,
        "groups": status.cells(),
        "windows": history.cells(),
        "notes": [note.text for note in status.notes],
        "settings": json.dumps(dict(status.settings), indent=1),
    }


def status_page(status: Status, history: History, *, title: str) -> str:
    """Return the page of a monitored model."""
    from calibrant.report.templates import render

    section = monitor_section(status, history)
    return render("monitor_page.html", title=title, version=__version__, monitor=section)
