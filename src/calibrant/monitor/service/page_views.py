"""What the pages show: the list of models, the page of a model and its periods, addresses and figures."""

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

from calibrant._support.errors import InputError
from calibrant.evaluation.evaluate import evaluate
from calibrant.kinds.log_odds import NAME as LOG_ODDS_ERROR
from calibrant.metrics.bins import EqualSize
from calibrant.monitor.alarm_log import Silence
from calibrant.monitor.model import Monitor
from calibrant.monitor.model_queries import ModelSummary
from calibrant.monitor.observations import group_key, group_label
from calibrant.monitor.status import Alarm, ConfidenceSequence, GroupStatus, History, Status
from calibrant.monitor.time_windows import read_time, to_datetime, window_text
from calibrant.plots.canvas import new_canvas
from calibrant.report.templates import SafeText, inline_figure
from calibrant.results import sentences
from calibrant.results.evaluation import Evaluation
from calibrant.tables.score_table import ScoreTable


@dataclass(frozen=True)
class PageLinks:
    """Addresses of the pages below `root`, with the token of the request if it came in the address.

    Names are parameters, not parts of the path: a browser would change a path with the name ``..``.
    """

    root: str = ""
    token: str | None = None

    def overview(self, **parameters: Any) -> str:
        """Return the address of the list of models."""
        return self._address("/", parameters)

    def model(self, model: str, **parameters: Any) -> str:
        """Return the address of the page of a model."""
        return self._address("/model", {"name": model, **parameters})

    def events(self) -> str:
        """Return the address of the stream of changes."""
        return self._address("/v1/events", {})

    def acknowledge(self, model: str, alarm: int) -> str:
        """Return the address of the API that acknowledges an alarm."""
        return f"{self._api(model)}/alarms/{alarm}/acknowledgement"

    def silences(self, model: str) -> str:
        """Return the address of the API that silences a model."""
        return f"{self._api(model)}/silences"

    def asset(self, name: str, digest: str) -> str:
        """Return the address of a style sheet or script, which changes with its content."""
        return f"{self.root}/static/{name}?v={digest}"

    def hidden(self, **parameters: Any) -> dict[str, str]:
        """Return the fields of a form that keep the parameters and the token."""
        return {name: str(value) for name, value in self._with_token(parameters).items() if value is not None}

    def _api(self, model: str) -> str:
        return f"{self.root}/v1/models/{quote(model, safe='')}"

    def _address(self, path: str, parameters: dict[str, Any]) -> str:
        given = {name: value for name, value in self._with_token(parameters).items() if value not in (None, "")}
        return f"{self.root}{path}" + (f"?{urlencode(given)}" if given else "")

    def _with_token(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters if self.token is None else {**parameters, "token": self.token}


_RARE = 0.2  # below this event rate, points crowd in a corner of linear axes


class ResultCache:
    """The last results of slow functions, by a digest of their input."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._results: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, compute: Callable[..., Any], *args: Any) -> Any:
        """Return the stored result of the key, or compute and store it."""
        result = self.peek(key)
        if result is None:
            result = compute(*args)
            self.put(key, result)
        return result

    def peek(self, key: Any) -> Any:
        """Return the stored result of the key, or None."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: Any, result: Any) -> None:
        """Store a result; the one that was not used for longest is dropped."""
        with self._lock:
            self._results[key] = result
            self._results.move_to_end(key)
            while len(self._results) > self._size:
                self._results.popitem(last=False)


def _history_figures(history: History, cache: ResultCache) -> dict[str, SafeText]:
    """Return rates and evidence over time; no figures without windows."""
    if not len(history):
        return {}
    key = "history", hashlib.sha256(history.to_json().encode()).hexdigest()
    sizes = {"wide": (9.0, 5.4), "narrow": (4.4, 5.6)}
    return _draw(key, "time", sizes, lambda canvas: history.plot(fig=canvas), cache)


def _reliability_figures(tables: Mapping[str, ScoreTable], cache: ResultCache) -> dict[str, SafeText]:
    """Return the reliability diagram of one or two periods in ten bins of equal size; logit axes for rare events."""
    from calibrant.plots.reliability import ReliabilityDisplay

    if not tables:
        return {}
    rare = min(table.prevalence for table in tables.values()) < _RARE

    def plot(canvas: Any) -> ReliabilityDisplay:
        scale: Literal["logit", "linear"] = "logit" if rare else "linear"
        return ReliabilityDisplay.from_predictions(dict(tables), bins=EqualSize(10), scale=scale, fig=canvas)

    key = "reliability", tuple((name, _table_digest(table)) for name, table in tables.items())
    return _draw(key, "reliability", {"wide": (7.4, 5.6), "narrow": (4.4, 4.8)}, plot, cache)


def _draw(
    key: Any, name: str, sizes: Mapping[str, tuple[float, float]], plot: Callable[[Any], Any], cache: ResultCache
) -> dict[str, SafeText]:
    """Return a figure that is wide for a screen, and one that is narrow for a phone."""
    figures: dict[str, SafeText] = cache.get(
        key, lambda: {form: inline_figure(plot(new_canvas(*size)), f"{form}-{name}") for form, size in sizes.items()}
    )
    return figures


def _table_digest(table: ScoreTable) -> str:
    """Return the checksum of a table of counts."""
    digest = hashlib.sha256()
    for array in (table.score, table.n, table.k):
        digest.update(array.tobytes())
    return digest.hexdigest()


_NO_VALUE = "\N{EN DASH}"
_MODELS_PER_PAGE = 50
_GROUPS_OF_A_ROW = 3
_TONES = {"alarm": "bad", "acknowledged": "open", "no alarm": "good", "no evidence": "plain"}
_WORST_FIRST = {state: place for place, state in enumerate(_TONES)}

# Name and heading of each order, and its key; models without a value come last.
_SORTS: dict[str, tuple[str, Callable[[ModelSummary], Any]]] = {
    "state": ("state", lambda m: (_WORST_FIRST[m.state], -_evidence_share(m), m.model.casefold())),
    "name": ("model", lambda m: m.model.casefold()),
    "evidence": ("evidence", lambda m: -_evidence_share(m)),
    "window": ("last closed window", lambda m: math.inf if m.last_window is None else -m.last_window.timestamp()),
    "rows": ("rows", lambda m: -m.n_rows),
    "unlabelled": ("unlabelled", lambda m: math.inf if math.isnan(m.unlabelled) else -m.unlabelled),
}


def overview_view(
    summaries: Sequence[ModelSummary], links: PageLinks, *, search: str = "", sort: str = "state", page: int = 1
) -> dict[str, Any]:
    """Return the data of the page: the models whose name contains `search`, in an order, `page` of them."""
    sort = sort if sort in _SORTS else "state"
    named = sorted((m for m in summaries if search.casefold() in m.model.casefold()), key=_SORTS[sort][1])
    n_pages = max(1, math.ceil(len(named) / _MODELS_PER_PAGE))
    page = min(max(page, 1), n_pages)
    alarms = sum(m.state == "alarm" for m in summaries)
    return {
        "headline": _headline(alarms, len(summaries)),
        "tone": "bad" if alarms else "good" if summaries else "plain",
        "n_alarms": alarms,
        "n_models": len(summaries),
        "n_found": len(named),
        "rows": [_model_row(m, links) for m in named[(page - 1) * _MODELS_PER_PAGE : page * _MODELS_PER_PAGE]],
        "headings": {
            name: {"text": text, "link": links.overview(q=search, sort=name), "current": name == sort}
            for name, (text, _) in _SORTS.items()
        },
        "search": search,
        "sort": sort,
        "hidden": links.hidden(),
        "pages": [
            {"number": i, "link": links.overview(q=search, sort=sort, page=i), "current": i == page}
            for i in range(1, n_pages + 1)
        ],
        "clear": links.overview(sort=sort),
    }


def _headline(alarms: int, models: int) -> str:
    if not models:
        return "No model is monitored"
    if models == 1:
        return "Alarm" if alarms else "No alarm"
    return f"Alarm for {alarms:,} of {models:,} models" if alarms else f"No alarm for {models:,} models"


def _model_row(m: ModelSummary, links: PageLinks) -> dict[str, Any]:
    groups = [str(group) for group in m.alarms if group is not None]
    more = len(groups) - _GROUPS_OF_A_ROW
    return {
        "name": m.model,
        "link": links.model(m.model),
        "state": m.state,
        "tone": _TONES[m.state],
        "evidence": f"{m.log_e_value:.2f}" if m.n_windows else _NO_VALUE,
        "threshold": f"{m.threshold:.2f}",
        "share": _evidence_share(m),
        "spark": sparkline(m.evidence, m.threshold),
        "last_window": _NO_VALUE if m.last_window is None else window_text(m.last_window, m.window),
        "rows": f"{m.n_rows:,}",
        "open_rows": f"{m.n_open_rows:,}",
        "predicted": _percent(m.predicted),
        "observed": _percent(m.observed),
        "unlabelled": _percent(m.unlabelled, 1),
        "silenced": None if m.silenced is None or m.silenced <= datetime.now(UTC) else f"{m.silenced:%Y-%m-%d %H:%M}",
        "groups": groups[:_GROUPS_OF_A_ROW],
        "more_groups": max(more, 0),
    }


def _evidence_share(m: Any) -> float:
    """Return the log e-value as a share of its threshold, from 0 to 1."""
    return min(max(m.log_e_value / m.threshold, 0.0), 1.0) if math.isfinite(m.log_e_value) else 1.0


def _percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage; a dash if there is none."""
    return f"{100 * share:.{digits}f} %" if math.isfinite(share) else _NO_VALUE


def sparkline(values: Sequence[float], threshold: float, width: int = 120, height: int = 30) -> dict[str, Any] | None:
    """Return the points of a small curve, the height of the threshold and the last point; None for fewer than two.

    Values beyond twice the threshold are drawn there, so that the way to the threshold stays visible.
    """
    if len(values) < 2:
        return None
    top = 2 * threshold
    drawn = [min(max(value, -0.5 * threshold), top) for value in values]
    low, high = min(0.0, *drawn), max(threshold, *drawn)
    margin = 3.0

    def y(value: float) -> float:
        return round(margin + (height - 2 * margin) * (high - value) / (high - low), 1)

    xs = [round(margin + (width - 2 * margin) * i / (len(drawn) - 1), 1) for i in range(len(drawn))]
    points = " ".join(f"{x:g},{y(value):g}" for x, value in zip(xs, drawn, strict=True))
    last = {"x": xs[-1], "y": y(drawn[-1])}
    return {"width": width, "height": height, "points": points, "threshold": y(threshold), "last": last}


_FEWEST_WINDOWS = 4
# The interval of the log-odds error and the tests need no replicates; those of other metrics are not shown.
_REPLICATES = 19
_NAMES = ("reference period", "period")


@dataclass(frozen=True)
class Period:
    """Windows that start at `since` or later and before `until`; None is no limit."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def read(cls, since: str, until: str, name: str = "") -> "Period":
        """Return the period of two texts, which may be empty."""
        first, last = (
            to_datetime(read_time(text, name + end)) if text.strip() else None
            for text, end in ((since, "since"), (until, "until"))
        )
        if first is not None and last is not None and first >= last:
            raise InputError(
                f"{name}since must lie before {name}until; got {since} and {until}.", argument=f"{name}since"
            )
        return cls(first, last)

    def texts(self, *, hours: bool) -> tuple[str, ...]:
        """Return both limits for inputs of dates, or of dates and hours."""
        form = "%Y-%m-%dT%H:%M" if hours else "%Y-%m-%d"
        return tuple("" if each is None else f"{each:{form}}" for each in (self.since, self.until))


def default_periods(history: History) -> tuple[Period | None, Period]:
    """Return the reference and the period: before and after the estimated change, else before and in the last quarter.

    With few windows there is no reference, and the period is everything.
    """
    change, starts = history.change_point, [w.start for w in history.windows]
    if change is not None and change.window > starts[0]:
        clear = sum(start < change.low for start in starts) >= _FEWEST_WINDOWS
        return Period(None, change.low if clear else change.window), Period(change.window, None)
    if len(starts) < _FEWEST_WINDOWS:
        return None, Period()
    cut = starts[-math.ceil(len(starts) / 4)]
    return (Period(None, cut), Period(cut, None)) if cut > starts[0] else (None, Period())


def _period_view(
    monitor: Monitor, periods: Mapping[str, Period], cache: ResultCache, *, version: str | None, group: Any = None
) -> dict[str, Any]:
    """Return the figures and one row per period; `error` says why a period cannot be shown."""
    tables, errors = {}, []
    for name, period in periods.items():
        try:
            tables[name] = monitor.table(period.since, period.until, group=group, version=version)
        except InputError as error:
            errors.append(f"{name}: {error}")
    margin = monitor.settings.margin
    rows = []
    for name, table in tables.items():
        evaluation = cache.get(("evaluation", _table_digest(table), margin), _evaluate, table, margin)
        rows.append(_period_row(name, table, evaluation))
    return {"figures": _reliability_figures(tables, cache), "rows": rows, "errors": errors}


def _evaluate(table: ScoreTable, margin: float) -> Evaluation:
    return evaluate(table, margin=margin, n_resamples=_REPLICATES)


def _period_row(name: str, table: ScoreTable, e: Evaluation) -> dict[str, Any]:
    interval = e.metrics[LOG_ODDS_ERROR].interval
    shown = _NO_VALUE if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
    return {
        "name": name,
        "verdict": e.verdict,
        "direction": e.direction,
        "tone": sentences.tone(e.verdict),
        "rows": f"{table.size:,}",
        "predicted": _percent(float((table.score * table.n).sum() / table.n.sum())),
        "observed": _percent(table.prevalence),
        "log_odds_error": f"{e.metrics[LOG_ODDS_ERROR].value:.2f}",
        "interval": shown,
    }


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

    def periods(self) -> tuple[Period | None, Period]:
        """Return the chosen reference and period."""
        period = Period.read(self.since, self.until)
        return Period.read(self.reference_since, self.reference_until, "reference "), period

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of the address of this request with changes."""
        fields = {name: getattr(self, name) for name in ("version", "group", *_FIELDS)}
        return {**fields, "groups": "all" if self.all_groups else None, **changes}


def model_view(
    monitor: Monitor, request: ModelRequest, links: PageLinks, cache: ResultCache, silences: Sequence[Silence] = ()
) -> dict[str, Any]:
    """Return the data of the page of a model; an `InputError` for a version or group that it does not have."""
    status = monitor.status(version=request.version)
    group = _read_group(request.group)
    history = monitor.history(group, version=request.version)
    return {
        **_heading(status),
        "model": monitor.model,
        "model_version": status.version,
        "versions": [
            {"name": name, "link": links.model(monitor.model, version=name), "current": name == status.version}
            for name in monitor.versions()
        ],
        "tiles": _tiles(status),
        "sentences": status.sentences(),
        "alarms": [_alarm(alarm, status, links) for alarm in _by_weight(status.alarms)],
        "shown_alarms": _SHOWN_ALARMS,
        "silences": [_silence(each) for each in silences if each.active],
        "silence": links.silences(monitor.model),
        "steps": _steps(status, links),
        "history": {
            "figures": _history_figures(history, cache),
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
    text, tone = "No alarm" if status.n_windows else "No window is closed", "good"
    if status.alarm:
        text, tone = f"Alarm: {_subjects(status.open_alarms)}", "bad"
    elif status.alarms:
        text, tone = "No open alarm; all were acknowledged", "open"
    return {"headline": text, "tone": tone, "n_alarms": len(status.open_alarms)}


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
    window, sequence = status.settings.get("window", "day"), status.confidence_sequence
    last = _NO_VALUE if status.last_window is None else window_text(status.last_window, window)
    shift = f"{sequence.estimate:+.2f}" if sequence.is_known and not sequence.is_refuted else _NO_VALUE
    evidence = f"{status.log_e_value:.2f}" if status.n_windows else _NO_VALUE
    missing = f"{status.n_unlabelled:,} without outcome"
    open_rows = f"{status.n_open_rows:,} more in {status.n_open_windows:,} open"
    tiles = [
        ("Log e-value", evidence, f"alarm at {status.threshold:.2f}"),
        ("Observed rate", _percent(status.observed), f"predicted {_percent(status.predicted)}"),
        ("Shift (log-odds)", shift, _shift(sequence) if status.n_windows else "no closed window"),
        ("Rows", f"{status.n_rows - status.n_open_rows:,}", open_rows),
        ("Last closed window", last, f"{status.n_windows:,} closed windows"),
        (
            *("Unlabelled", _percent(status.unlabelled, 1)),
            missing if math.isfinite(status.unlabelled) else "outcomes came with scores",
        ),
    ]
    values: list[dict[str, Any]] = [{"label": label, "value": value, "text": text} for label, value, text in tiles]
    values[0]["share"] = _evidence_share(status)
    return values


def _shift(sequence: ConfidenceSequence) -> str:
    """Return the limits of the shift in words."""
    if sequence.is_refuted:
        return "no single shift fits"
    return f"{sequence.low:+.2f} to {sequence.high:+.2f}" if sequence.is_known else "not known yet"


def _by_weight(alarms: Sequence[Alarm]) -> list[Alarm]:
    """Return open alarms first, among them those of all rows first, and newer ones before older ones."""
    return sorted(alarms, key=lambda a: (a.acknowledged is not None, a.group is not None, -a.id))


def _alarm(alarm: Alarm, status: Status, links: PageLinks) -> dict[str, Any]:
    done = alarm.acknowledged
    acknowledged = {"text": f"Acknowledged {done:%Y-%m-%d %H:%M} UTC", "reason": alarm.reason} if done else None
    return {
        "id": alarm.id,
        "subject": alarm.subject,
        "version": alarm.version,
        "window": window_text(alarm.window, status.settings.get("window", "hour")),
        "raised": f"{alarm.raised:%Y-%m-%d %H:%M} UTC",
        "log_e_value": f"{alarm.log_e_value:.2f}",
        "state": "acknowledged" if done else "alarm",
        "tone": "open" if done else "bad",
        "lines": [acknowledged] if acknowledged else [],
        "acknowledge": None if done else links.acknowledge(status.model, alarm.id),
    }


def _silence(each: Silence) -> dict[str, Any]:
    return {"until": f"{each.until:%Y-%m-%d %H:%M} UTC", "author": each.author, "reason": each.reason}


def _steps(status: Status, links: PageLinks) -> dict[str, Any] | None:
    """Return what to do after an alarm: code that fits a calibrator to the windows since the change.

    If only groups have an alarm, the calibrator is that of the group with the oldest one: others may be calibrated.
    """
    if not status.alarm:
        return None
    alarm, change, whole = status.open_alarms[0], status.change_point, any(a.group is None for a in status.open_alarms)
    window = status.settings.get("window", "hour")
    arguments = [f'since="{window_text(alarm.window, window)}"'] if change is None or not whole else []
    if whole:
        arguments += [] if status.version == "1" else [f"version={status.version!r}"]
        fit = [f"calibrator = monitor.recalibrate({', '.join(arguments)})"]
    else:
        arguments += [f"group={alarm.group!r}", *([] if alarm.version == "1" else [f"version={alarm.version!r}"])]
        fit = [f"rows = monitor.table({', '.join(arguments)})", "calibrator = cb.Beta().fit(rows)"]
    code = [f"monitor = cb.Monitor(STORE, model={status.model!r})", *fit, 'cb.save(calibrator, "calibrator.json")']
    return {
        "change": None if change is None or not whole else window_text(change.window, window),
        "group": None if whole else str(alarm.group),
        "code": "\n".join(code),
        "acknowledge": links.acknowledge(status.model, alarm.id),
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
        periods = request.periods() if request.has_periods else default_periods(history)
    except InputError as error:
        return {**view, "errors": [str(error)]}
    named = {name: period for name, period in zip(_NAMES, periods, strict=True) if period is not None}
    texts = [text for period in periods for text in (period or Period()).texts(hours=hours)]
    values = dict(zip(("reference_since", "reference_until", "since", "until"), texts, strict=True))
    view |= _period_view(monitor, named, cache, version=request.version, group=_read_group(request.group))
    return {**view, "values": values}


def _groups(status: Status, request: ModelRequest, links: PageLinks) -> dict[str, Any]:
    """Return the groups with the largest evidence first."""
    shown = list(status.groups.items())[: None if request.all_groups else _SHOWN_GROUPS]
    return {
        "rows": [_group(label, group, status, request, links) for label, group in shown],
        "hidden": len(status.groups) - len(shown),
        "all": links.model(status.model, **request.parameters(groups="all")),
        "n_alarms": sum(group.alarm for group in status.groups.values()),
    }


def _group(label: Any, group: GroupStatus, status: Status, request: ModelRequest, links: PageLinks) -> dict[str, Any]:
    key = group_key(label)
    alarms = [alarm for alarm in status.alarms if alarm.version == status.version and alarm.group == label]
    seen = bool(alarms) and all(alarm.acknowledged is not None for alarm in alarms)
    return {
        "name": str(label),
        "link": links.model(status.model, **request.parameters(group=key)),
        "current": key == request.group,
        "rows": group.n_rows,
        "predicted": _percent(group.predicted),
        "observed": _percent(group.observed),
        "difference": f"{100 * (group.observed - group.predicted):+.2f}",
        "difference_number": group.observed - group.predicted,
        "shift": _shift(group.confidence_sequence),
        "log_e_value": f"{group.log_e_value:.2f}",
        "log_e_number": group.log_e_value,
        "state": "acknowledged" if seen else "alarm" if group.alarm else "no alarm",
        "tone": "open" if seen else "bad" if group.alarm else "good",
    }
