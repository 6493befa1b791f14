"""All endpoints of the API, version 1: they read models, store rows and administer."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from calibrant._support.errors import Argument, InputError, is_number
from calibrant._support.plain_data import label as json_label
from calibrant.monitor.alarm_log import end_silence, list_silences, silence_model
from calibrant.monitor.model import Monitor
from calibrant.monitor.observations import group_key
from calibrant.monitor.service.openapi import SETTINGS, Call, Endpoint, Parameter, describe, list_page, ref
from calibrant.monitor.service.problems import MEDIA_TYPE, ServiceProblem
from calibrant.monitor.service.prometheus_metrics import METRICS_TYPE, scrape
from calibrant.monitor.service.request_bodies import ARROW, CSV, JSON, Columns, media_type, read_columns, read_object
from calibrant.monitor.status import Receipt
from calibrant.monitor.store import read_audit, record_audit
from calibrant.tables.score_table import ScoreTable
from calibrant.versions import __version__

_EVENTS = "text/event-stream"
_SMALL = 2**16  # bytes of a body that is parsed in the event loop
_TEXT = {"type": "string"}

# Endpoints that read.


def _page(call: Call, items: list[Any]) -> Response:
    """Return one page of items, which are in the order of their ids."""
    limit, after = call.query["limit"], _position(call)
    rest = [item for item in items if item.id > after]
    shown = rest[:limit]
    cursor = str(shown[-1].id) if len(rest) > limit else None
    return JSONResponse({"items": [item.to_dict() for item in shown], "next_cursor": cursor})


def _position(call: Call) -> int:
    """Return the cursor of a call if it is a number; 0 without one."""
    cursor: str = "0" if call.query["cursor"] is None else call.query["cursor"]
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise InputError(Argument("cursor") + f" must be the next_cursor of an earlier answer; got {cursor[:40]!r}.")
    return int(cursor)


async def _describe(call: Call, names: list[str]) -> list[dict[str, Any]]:
    """Return the settings and the revision of models."""
    revisions = await call.service.read(call.service.revisions)
    monitors = [await call.service.monitor(name) for name in names]
    return [
        {"name": monitor.model, "settings": monitor.settings.to_dict(), "revision": revisions.get(monitor.model, 0)}
        for monitor in monitors
    ]


async def _models(call: Call) -> Response:
    limit, after = call.query["limit"], call.query["cursor"] or ""
    names = [name for name in await call.service.models(call.access) if name > after]
    cursor = names[limit - 1] if len(names) > limit else None
    return JSONResponse({"items": await _describe(call, names[:limit]), "next_cursor": cursor})


async def _model(call: Call) -> Response:
    return JSONResponse((await _describe(call, [call.model]))[0])


async def _status(call: Call) -> Response:
    return JSONResponse((await call.read(Monitor.status, version=call.query["version"])).to_dict())


async def _history(call: Call) -> Response:
    limit, start = call.query["limit"], _position(call)
    history = (await call.read(_read_history, call.query["group"], call.query["version"])).to_dict()
    windows = history["windows"]
    history["windows"] = windows[start : start + limit]
    history["next_cursor"] = str(start + limit) if start + limit < len(windows) else None
    return JSONResponse(history)


def _read_history(monitor: Monitor, group: str | None, version: str | None) -> Any:
    """Return the history; a group is named as text, or in JSON where several labels are written so: 1 and "1"."""
    if group is None:
        return monitor.history(version=version)
    labels = monitor.groups()
    written, by_key = [label for label in labels if str(label) == group], {group_key(label): label for label in labels}
    label = written[0] if len(written) == 1 else by_key.get(group, group)
    return monitor.history(label, version=version)


async def _evaluation(call: Call) -> Response:
    compute, with_monitor = call.service.compute, call.service.with_monitor
    evaluation = await compute(with_monitor, call.model, Monitor.evaluate, **call.query)
    return JSONResponse(await compute(evaluation.to_dict))


async def _alarms(call: Call) -> Response:
    return _page(call, await call.read(Monitor.alarms))


async def _silences(call: Call) -> Response:
    await call.service.monitor(call.model)
    return _page(call, await call.service.read(list_silences, call.service.store, call.model))


async def _events(call: Call) -> Response:
    service = call.service
    if service.events.full:
        raise ServiceProblem(
            503,
            f"The service must have fewer than {service.events.most:,} streams of events; try again later.",
            headers={"Retry-After": "10"},
        )

    async def valid() -> bool:
        try:
            await service.authorize(call.request, "read")
        except ServiceProblem as problem:
            return problem.status not in (401, 403)
        return True

    return StreamingResponse(service.events.stream(call.access.sees, valid), media_type=_EVENTS)


async def _health(call: Call) -> Response:
    await call.service.check()
    return JSONResponse({"status": "ok", "version": __version__})


async def _openapi(call: Call) -> Response:
    return JSONResponse(openapi())


async def _metrics(call: Call) -> Response:
    return Response(await call.service.read(scrape, call.service, call.access), media_type=METRICS_TYPE)


# Endpoints that store rows.


def _receipt(call: Call, receipt: Receipt) -> Response:
    """Return the answer for stored rows."""
    call.service.stored(receipt)
    values = {**dataclasses.asdict(receipt), "alarms": [None if g is None else json_label(g) for g in receipt.alarms]}
    return JSONResponse(values, 200 if receipt.repeated_batch else 201)


def _batch(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise InputError(Argument("batch") + " must be given once.")
    if not keys:
        return None
    try:  # headers arrive as Latin-1
        return keys[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return keys[0]


def _add_table(monitor: Monitor, *, score: Any, n: Any, k: Any, **options: Any) -> Receipt:
    return monitor.add_table(ScoreTable.from_counts(score, n, k), **options)


# Endpoints that administer.


async def _json(call: Call, *known: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object of the body; required members are texts."""
    media_type(call.request.headers.get("content-type"), (JSON,))
    given = read_object(await call.request.body(), (*known, *required))
    for name in required:
        if not isinstance(given.get(name), str):
            raise InputError(Argument(name) + " must be given as text.")
    return {name: value for name, value in given.items() if value is not None}


async def _create(call: Call) -> Response:
    given = await _json(call, *SETTINGS)
    for name, value in given.items():
        _check_setting(name, value)
    if "maturity" in given:
        if not 0 <= given["maturity"] <= SETTINGS["maturity"]["maximum"]:
            raise InputError(Argument("maturity") + f" must be a number of seconds; got {given['maturity']!r}.")
        given["maturity"] = timedelta(seconds=given["maturity"])
    created = await call.service.write(_create_model, call, given)
    return JSONResponse((await _describe(call, [call.model]))[0], 201 if created else 200)


def _check_setting(name: str, value: Any) -> None:
    """Check the type of a setting; `Monitor` checks its value."""
    schema = SETTINGS[name]
    if schema.get("type") == "array":
        valid, need = (
            isinstance(value, list) and all(isinstance(v, (str, int, float)) for v in value),
            "a list of values",
        )
    elif schema.get("type") == "number":
        valid, need = is_number(value), "a number"
    elif "enum" in schema:
        valid, need = isinstance(value, str), "text"
    else:
        valid, need = isinstance(value, str) or is_number(value), "text or a whole number"
    if not valid:
        raise InputError(Argument(name) + f" must be {need}; got {str(value)[:40]!r}.")


def _create_model(call: Call, given: dict[str, Any]) -> bool:
    """Create a model; return False if it exists."""
    store = call.service.store
    with store.transaction():
        exists = call.model in store.models()
        monitor = Monitor(store, model=call.model, **given)
        if not exists:
            record_audit(store, call.access.who, "create model", call.model, settings=monitor.settings.to_dict())
    return not exists


async def _delete(call: Call) -> Response:
    await call.act("delete model", lambda monitor, detail: monitor.delete(call.model))
    call.service.forget(call.model)
    return Response(status_code=204)


async def _close(call: Call) -> Response:
    until = (await _json(call, "until")).get("until")
    return _receipt(call, await call.act("close windows", lambda monitor, detail: monitor.close(until), until=until))


def _number(call: Call, name: str) -> int:
    text = str(call.request.path_params[name])
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ServiceProblem(404, f"There is no {name} {text[:40]!r}.", argument=name)
    return int(text)


async def _acknowledge(call: Call) -> Response:
    number, reason = _number(call, "alarm"), (await _json(call, required=("reason",)))["reason"]

    def acknowledge(monitor: Monitor, detail: Any) -> None:
        if number not in {alarm.id for alarm in monitor.alarms()}:
            raise ServiceProblem(404, f"The model must have the alarm; it has no alarm {number}.", argument="alarm")
        monitor.acknowledge(number, reason)

    await call.act("acknowledge alarm", acknowledge, alarm=number, reason=reason)
    return JSONResponse(next(alarm for alarm in await call.read(Monitor.alarms) if alarm.id == number).to_dict())


async def _silence(call: Call) -> Response:
    given = await _json(call, required=("until", "reason"))

    def silence(monitor: Monitor, detail: dict[str, Any]) -> Any:
        made = silence_model(monitor.store, call.model, given["until"], given["reason"], call.access.who)
        detail |= {"silence": made.id, "until": made.until.isoformat(), "reason": given["reason"]}
        return made

    return JSONResponse((await call.act("silence model", silence)).to_dict(), 201)


async def _end_silence(call: Call) -> Response:
    number = _number(call, "silence")

    def end(monitor: Monitor, detail: Any) -> None:
        try:
            end_silence(monitor.store, call.model, number)
        except InputError as error:
            raise ServiceProblem(404, str(error), argument="silence") from error

    await call.act("end silence", end, silence=number)
    return Response(status_code=204)


async def _audit(call: Call) -> Response:
    if call.access.token is not None and call.access.token.models is not None:
        raise ServiceProblem(403, "The audit log needs a token with the scope 'admin' for all models.")
    entries = await call.service.read(read_audit, call.service.store, _position(call), call.query["limit"] + 1)
    return _page(call, entries)


# The table of endpoints.

_MODEL = "/v1/models/{model}"
_VERSION = Parameter("version", _TEXT, "Version of the model, by default the latest.")
_LIMIT = Parameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "Most items of the answer."
)
_CURSOR = Parameter("cursor", _TEXT, "The `next_cursor` of the answer before; leave it out for the first.")
_GROUP = Parameter("group", _TEXT, "A group, as the status shows it, or its label in JSON; by default all rows.")
_SINCE = Parameter("since", _TEXT, "Start of the first window, ISO 8601.")
_UNTIL = Parameter("until", _TEXT, "Windows start before this time, ISO 8601.")
_GROUP_COLUMNS = Parameter(
    "group",
    {"type": "array", "items": _TEXT},
    "For CSV and Arrow: the column of the group; repeat it for several. Default: the column `group`, if there is one.",
)
_ONE_GROUP = Parameter("group", _TEXT, "For CSV and Arrow: the group of all rows.")
_TABLE_TIME = Parameter("time", _TEXT, "For CSV and Arrow without a column `time`: the time of all rows.")
_TABLE_VERSION = Parameter("version", _TEXT, "For CSV and Arrow: the version of the model.")
_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 500},
    "Id of the batch. A known batch is not stored again, so a request can be repeated after a failure.",
    where="header",
)


def _answer(status: int, description: str, schema: Any = None, kind: str = JSON) -> dict[int, dict[str, Any]]:
    content = {} if schema is None else {"content": {kind: {"schema": schema}}}
    return {status: {"description": description, **content}}


_STORED = {
    **_answer(201, "The rows are stored: they are durable.", ref("Receipt")),
    **_answer(200, "The batch was stored before; nothing was stored.", ref("Receipt")),
}


def _read(path: str, name: str, summary: str, handler: Any, schema: Any, *parameters: Parameter) -> Endpoint:
    return Endpoint("GET", path, name, "read", summary, handler, parameters, answers=_answer(200, summary, schema))


def _write(
    path: str, name: str, summary: str, columns: Columns, schema: str, store: Callable[..., Receipt]
) -> Endpoint:
    """Return the endpoint that passes the columns of a body to a function of a monitor."""

    async def handler(call: Call) -> Response:
        kind = media_type(call.request.headers.get("content-type"), (JSON, CSV, ARROW))
        body = await call.request.body()
        reading = (kind, body, columns, call.query, call.service.settings.max_rows)
        given = read_columns(*reading) if len(body) < _SMALL else await call.service.read(read_columns, *reading)
        options = {**given, "batch": _batch(call.request)}
        return _receipt(call, await call.service.write(call.service.with_monitor, call.model, store, **options))

    by = _ONE_GROUP if "group" in columns.constants else _GROUP_COLUMNS
    names = {*columns.required, *columns.optional, *columns.constants}
    parameters = (*(each for each in (by, _TABLE_TIME, _TABLE_VERSION) if each.name in names), _KEY)
    body = {JSON: ref(schema), CSV: _TEXT, ARROW: {"type": "string", "format": "binary"}}
    return Endpoint("POST", f"{_MODEL}/{path}", name, "write", summary, handler, parameters, body, _STORED)


def _admin(
    method: str, path: str, name: str, summary: str, handler: Any, body: str | None = None, answers: Any = None
) -> Endpoint:
    content = {} if body is None else {JSON: ref(body)}
    return Endpoint(
        method, f"{_MODEL}{path}", name, "admin", summary, handler, (), content, answers or _answer(204, "Done.")
    )


ENDPOINTS = [
    _read(
        "/v1/models", "models", "List the models that the token may read", _models, list_page("Model"), _LIMIT, _CURSOR
    ),
    _read(_MODEL, "model", "Settings and revision of a model", _model, ref("Model")),
    _read(f"{_MODEL}/status", "status", "Alarms, evidence and groups", _status, ref("Status"), _VERSION),
    _read(
        f"{_MODEL}/history", "history", "Rows, rates and evidence of each window", _history, ref("History"),
        *(_GROUP, _VERSION, _LIMIT, _CURSOR)
    ),
    _read(
        f"{_MODEL}/evaluation", "evaluate", "Evaluate the rows of some windows once", _evaluation, ref("Evaluation"),
        *(_SINCE, _UNTIL, _VERSION)
    ),
    _read(
        f"{_MODEL}/alarms", "alarms", "Alarms, the first one first", _alarms, list_page("Alarm"), _LIMIT, _CURSOR
    ),
    _read(f"{_MODEL}/silences", "silences", "Silences of the model", _silences, list_page("Silence"), _LIMIT, _CURSOR),
    Endpoint(
        "GET", "/v1/events", "events", "read",
        "Server-sent events: the revision of each model now, and when it changes", _events,
        answers=_answer(200, "Events `revision`; the revision of a deleted model is -1.", _TEXT, _EVENTS)
    ),
    Endpoint(
        "GET", "/v1/health", "health", None, "Whether the service can read its store", _health,
        answers=_answer(200, "It can.", ref("Health"))
    ),
    _write(
        "observations", "observe", "Store outcomes and scores that are known together",
        Columns(("y", "p", "time"), ("group",), ("version",)), "Observations", Monitor.observe
    ),
    _write(
        "predictions", "predict", "Store predictions whose outcomes are not known yet",
        Columns(("id", "p", "time"), ("group",), ("version",)), "Predictions", Monitor.predict
    ),
    _write(
        "outcomes", "outcome", "Store the outcomes of earlier predictions",
        Columns(("id", "y"), (), ("time",)), "Outcomes", Monitor.outcome
    ),
    _write(
        "tables", "add_table", "Store counts per score that were made elsewhere, of one time and group",
        Columns(("score", "n", "k"), (), ("time", "group", "version")), "Table", _add_table
    ),
    _admin(
        "PUT", "", "create", "Create a model with its settings, which never change", _create, "Settings",
        {
            **_answer(201, "The model is created.", ref("Model")),
            **_answer(200, "The model exists with these settings.", ref("Model")),
            **_answer(409, "The model exists with other settings.", ref("Problem"), MEDIA_TYPE),
        }
    ),
    _admin("DELETE", "", "delete", "Delete a model with all its data", _delete),
    _admin(
        "POST", "/close", "close", "Close windows whatever the maturity delay", _close, "Closing",
        _answer(201, "The windows are closed.", ref("Receipt"))
    ),
    _admin(
        "POST", "/alarms/{alarm}/acknowledgement", "acknowledge", "Acknowledge an alarm with a reason",
        _acknowledge, "Acknowledgement", _answer(200, "The alarm.", ref("Alarm"))
    ),
    _admin(
        "POST", "/silences", "silence", "Send no notifications of the alarms of a model until a time",
        _silence, "SilenceRequest", _answer(201, "The silence.", ref("Silence"))
    ),
    _admin("DELETE", "/silences/{silence}", "end_silence", "End a silence now", _end_silence),
    Endpoint(
        "GET", "/v1/audit", "audit", "admin", "Who did what and when", _audit, (_LIMIT, _CURSOR),
        answers=_answer(200, "Entries in order of time.", list_page("AuditEntry"))
    ),
    Endpoint(
        "GET", "/v1/openapi.json", "openapi", None, "This description", _openapi,
        answers=_answer(200, "OpenAPI 3.1.", {"type": "object"})
    ),
    Endpoint(
        "GET", "/metrics", "metrics", "read", "Metrics for Prometheus", _metrics,
        answers=_answer(200, "The text format of Prometheus.", _TEXT, "text/plain")
    ),
]  # fmt: skip


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the service."""
    return describe(ENDPOINTS)


def api_routes() -> list[Route]:
    """Return one route per path; it calls the endpoint of the method."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [Route(path, _dispatch(methods), methods=list(methods)) for path, methods in by_path.items()]


def _dispatch(endpoints: dict[str, Endpoint]) -> Any:
    async def answer(request: Request) -> Response:
        # Starlette adds HEAD to each route with GET, and the server leaves out its body.
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer
