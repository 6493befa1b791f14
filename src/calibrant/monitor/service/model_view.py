"""The page of a model: what it shows, as plain data."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import InputError
from calibrant.monitor.history import History
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.observations import group_key, group_label
from calibrant.monitor.service.overview_view import NO_VALUE, evidence_share, percent
from calibrant.monitor.service.page_figures import ResultCache, history_figures
from calibrant.monitor.service.page_links import PageLinks
from calibrant.monitor.service.period_view import NAMES, Period, default_periods, period_view
from calibrant.monitor.silences import Silence
from calibrant.monitor.status import Alarm, ConfidenceSequence, GroupStatus, Status
from calibrant.monitor.time_windows import window_text

__all__ = ["ModelRequest", "model_view"]

_SHOWN_GROUPS = 50
_SHOWN_ALARMS = 4  # of the others the page shows the number, and lists them when asked
_FIELDS = ("since", "until", "reference_since", "reference_until")


@dataclass(frozen=True)
class ModelRequest:
    """What a reader asked for: a version, the key of a group, both periods as text, and whether to list all groups."""

    version: str | None = None
    group: str | None = None
    since: str = ""
    until: str = ""
    reference_since: str = ""
    reference_until: str = ""
    all_groups: bool = False

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> "ModelRequest":
        """Return the request of the parameters of an address."""
        texts = {name: parameters.get(name, "") for name in _FIELDS}
        chosen = (parameters.get("version") or None, parameters.get("group") or None)
        return cls(*chosen, **texts, all_groups=parameters.get("groups") == "all")

    @property
    def has_periods(self) -> bool:
        """Whether the reader chose periods."""
        return any(getattr(self, name).strip() for name in _FIELDS)

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of the address of this request with changes."""
        own = {name: getattr(self, name) for name in ("version", "group", *_FIELDS)}
        return {**own, "groups": "all" if self.all_groups else None, **changes}


def model_view(
    monitor: Monitor,
    request: ModelRequest,
    links: PageLinks,
    cache: ResultCache,
    silences: Sequence[Silence] = (),
) -> dict[str, Any]:
    """Return the data of the page of a model; an `InputError` for a version or group that it does not have."""
    status = monitor.status(version=request.version)
    group = _read_group(request.group)
    history = monitor.history(group, version=request.version)
    versions = monitor.versions()
    return {
        **_heading(status),
        "model": monitor.model,
        "model_version": status.version,
        "versions": [
            {"name": name, "link": links.model(monitor.model, version=name), "current": name == status.version}
            for name in versions
        ],
        "tiles": _tiles(status),
        "sentences": status.sentences(),
        "alarms": [_alarm(alarm, status, links) for alarm in _by_weight(status.alarms)],
        "shown_alarms": _SHOWN_ALARMS,
        "silences": [_silence(each) for each in silences if each.active],
        "silence": links.silences(monitor.model),
        "steps": _steps(status, links),
        "history": {
            "figures": history_figures(history, cache),
            "group": None if group is None else str(group),
            "back": links.model(monitor.model, **request.parameters(group=None)),
            "windows": history.cells(),
        },
        "periods": _periods(monitor, request, links, cache, history),
        "groups": _groups(status, request, links),
        "notes": [note.text for note in status.notes],
        "settings": json.dumps(dict(status.settings), indent=1),
    }


def _read_group(key: str | None) -> Any:
    if key is None:
        return None
    try:
        return group_label(key)
    except ValueError as error:
        raise InputError(f"group must be the key of a group, a label in JSON; got {key[:80]!r}.") from error


def _heading(status: Status) -> dict[str, Any]:
    current = [alarm for alarm in status.alarms if alarm.acknowledged is None]
    if current:
        return {"headline": f"Alarm: {_subjects(current)}", "tone": "bad", "n_alarms": len(current)}
    if status.alarms:
        return {"headline": "No open alarm; all were acknowledged", "tone": "open", "n_alarms": 0}
    return {"headline": "No alarm" if status.n_windows else "No window is closed", "tone": "good", "n_alarms": 0}


def _subjects(alarms: Sequence[Alarm]) -> str:
    """Return the words for all rows and the groups; many groups are counted."""
    groups = list(dict.fromkeys(str(alarm.group) for alarm in alarms if alarm.group is not None))
    named = f"{len(groups)} groups" if len(groups) > 2 else "groups " + " and ".join(groups)
    named = f"group {groups[0]}" if len(groups) == 1 else named
    if not groups:
        return "all rows"
    return named if all(alarm.group is not None for alarm in alarms) else f"all rows and {named}"


def _tiles(status: Status) -> list[dict[str, Any]]:
    """Return label, value and explanation of the main numbers; the first has a bar."""
    window = status.settings.get("window", "day")
    last = NO_VALUE if status.last_window is None else window_text(status.last_window, window)
    open_rows = f"{status.n_open_rows:,} more in {status.n_open_windows:,} open"
    sequence = status.confidence_sequence
    limits = _shift(sequence) if status.n_windows else "no closed window"
    known = sequence.is_known and not sequence.is_refuted
    shift = f"{sequence.estimate:+.2f}" if known else NO_VALUE
    missing = f"{status.n_unlabelled:,} without outcome"
    return [
        {
            "label": "Log e-value",
            "value": f"{status.log_e_value:.2f}" if status.n_windows else NO_VALUE,
            "text": f"alarm at {status.threshold:.2f}",
            "share": evidence_share(status),
        },
        {"label": "Observed rate", "value": percent(status.observed), "text": f"predicted {percent(status.predicted)}"},
        {"label": "Shift (log-odds)", "value": shift, "text": limits},
        {"label": "Rows", "value": f"{status.n_rows - status.n_open_rows:,}", "text": open_rows},
        {"label": "Last closed window", "value": last, "text": f"{status.n_windows:,} closed windows"},
        {
            "label": "Unlabelled",
            "value": percent(status.unlabelled, 1),
            "text": missing if math.isfinite(status.unlabelled) else "outcomes came with scores",
        },
    ]


def _shift(sequence: ConfidenceSequence) -> str:
    """Return the limits of the shift in words."""
    if sequence.is_refuted:
        return "no single shift fits"
    return f"{sequence.low:+.2f} to {sequence.high:+.2f}" if sequence.is_known else "not known yet"


def _by_weight(alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return open alarms first, among them those of all rows first, and newer ones before older ones."""
    return sorted(alarms, key=lambda a: (a.acknowledged is not None, a.group is not None, -a.id))


def _alarm(alarm: Alarm, status: Status, links: PageLinks) -> dict[str, Any]:
    return {
        "id": alarm.id,
        "subject": alarm.subject,
        "version": alarm.version,
        "window": window_text(alarm.window, status.settings.get("window", "hour")),
        "raised": f"{alarm.raised:%Y-%m-%d %H:%M} UTC",
        "log_e_value": f"{alarm.log_e_value:.2f}",
        "state": "alarm" if alarm.acknowledged is None else "acknowledged",
        "tone": "bad" if alarm.acknowledged is None else "open",
        "lines": [] if alarm.acknowledged is None else [_acknowledged(alarm)],
        "acknowledge": None if alarm.acknowledged is not None else links.acknowledge(status.model, alarm.id),
    }


def _acknowledged(alarm: Alarm) -> dict[str, Any]:
    return {"text": f"Acknowledged {alarm.acknowledged:%Y-%m-%d %H:%M} UTC", "reason": alarm.reason}


def _silence(each: Silence) -> dict[str, Any]:
    return {"until": f"{each.until:%Y-%m-%d %H:%M} UTC", "author": each.author, "reason": each.reason}


def _steps(status: Status, links: PageLinks) -> dict[str, Any] | None:
    """Return what to do after an alarm: code that fits a calibrator to the windows since the change.

    If only groups have an alarm, the calibrator is that of the group with the oldest one: others may be calibrated.
    """
    current = [alarm for alarm in status.alarms if alarm.acknowledged is None]
    if not current:
        return None
    change = status.change_point
    window = status.settings.get("window", "hour")
    whole = any(alarm.group is None for alarm in current)
    since = f'since="{window_text(current[0].window, window)}"' if change is None else ""
    version = "" if status.version == "1" else f"{', ' if since else ''}version={status.version!r}"
    fit = [f"calibrator = monitor.recalibrate({since}{version})"]
    if not whole:
        since = f'since="{window_text(current[0].window, window)}"'
        version = "" if current[0].version == "1" else f", version={current[0].version!r}"
        fit = [
            f"rows = monitor.table({since}, group={current[0].group!r}{version})",
            "calibrator = cb.Beta().fit(rows)",
        ]
    code = [f"monitor = cb.Monitor(STORE, model={status.model!r})", *fit, 'cb.save(calibrator, "calibrator.json")']
    return {
        "change": None if change is None or not whole else window_text(change.window, window),
        "group": None if whole else str(current[0].group),
        "code": "\n".join(code),
        "acknowledge": links.acknowledge(status.model, current[0].id),
    }


def _periods(
    monitor: Monitor, request: ModelRequest, links: PageLinks, cache: ResultCache, history: History
) -> dict[str, Any]:
    """Return the form of both periods and their comparison."""
    hours = monitor.settings.window not in ("day", "week")
    fields = request.parameters(**dict.fromkeys(_FIELDS))
    view: dict[str, Any] = {
        "input": "datetime-local" if hours else "date",
        "hidden": links.hidden(name=monitor.model, **fields),
        "values": {name: getattr(request, name) for name in _FIELDS},
        "chosen": request.has_periods,
        "reset": links.model(monitor.model, **fields),
        "figures": {},
        "rows": [],
        "errors": [],
    }
    if not len(history):
        return view
    try:
        periods = _chosen_periods(request, history)
    except InputError as error:
        return {**view, "errors": [str(error)]}
    named = {name: period for name, period in zip(NAMES, periods, strict=True) if period is not None}
    values = [text for period in periods for text in (period or Period()).texts(hours=hours)]
    names = ("reference_since", "reference_until", "since", "until")
    shown = period_view(monitor, named, cache, version=request.version, group=_read_group(request.group))
    return {**view, "values": dict(zip(names, values, strict=True)), **shown}


def _chosen_periods(request: ModelRequest, history: History) -> tuple[Period | None, Period]:
    if not request.has_periods:
        return default_periods(history)
    period = Period.read(request.since, request.until)
    reference = Period.read(request.reference_since, request.reference_until, "reference ")
    return reference, period


def _groups(status: Status, request: ModelRequest, links: PageLinks) -> dict[str, Any]:
    """Return the groups with the largest evidence first."""
    shown: Sequence[tuple[Any, GroupStatus]] = list(status.groups.items())
    hidden = 0 if request.all_groups else max(0, len(shown) - _SHOWN_GROUPS)
    if hidden:
        shown = shown[:_SHOWN_GROUPS]
    return {
        "rows": [_group(label, group, status, request, links) for label, group in shown],
        "hidden": hidden,
        "all": links.model(status.model, **request.parameters(groups="all")),
        "n_alarms": sum(group.alarm for group in status.groups.values()),
    }


def _group(label: Any, group: GroupStatus, status: Status, request: ModelRequest, links: PageLinks) -> dict[str, Any]:
    key = group_key(label)
    own = [alarm for alarm in status.alarms if alarm.version == status.version and alarm.group == label]
    seen = bool(own) and all(alarm.acknowledged is not None for alarm in own)
    return {
        "name": str(label),
        "link": links.model(status.model, **request.parameters(group=key)),
        "current": key == request.group,
        "rows": group.n_rows,
        "predicted": percent(group.predicted),
        "observed": percent(group.observed),
        "difference": f"{100 * (group.observed - group.predicted):+.2f}",
        "difference_number": group.observed - group.predicted,
        "shift": _shift(group.confidence_sequence),
        "log_e_value": f"{group.log_e_value:.2f}",
        "log_e_number": group.log_e_value,
        "state": "acknowledged" if seen else "alarm" if group.alarm else "no alarm",
        "tone": "open" if seen else "bad" if group.alarm else "good",
    }
