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
from calibrant.monitor.alarms import end_silence, list_silences, silence_model
from calibrant.monitor.model import Monitor
from calibrant.monitor.observations import group_key
from calibrant.monitor.service.openapi import SETTINGS, Answer, Call, Endpoint, Parameter, describe, list_page, ref
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.prometheus_metrics import METRICS_TYPE, scrape
from calibrant.monitor.service.request_bodies import ARROW, CSV, JSON, Columns, media_type, read_columns, read_object
from calibrant.monitor.status import Receipt
from calibrant.monitor.store import read_audit, record_audit
from calibrant.tables.score_table import ScoreTable
from calibrant.versions import __version__

__all__ = [
    "ADMIN_ENDPOINTS",
    "CURSOR",
    "ENDPOINTS",
    "LIMIT",
    "READ_ENDPOINTS",
    "WRITE_ENDPOINTS",
    "api_routes",
    "openapi",
    "page",
    "receipt_response",
]

EVENTS = "text/event-stream"
_VERSION = Parameter("version", {"type": "string"}, "Version of the model, by default the latest.")
LIMIT = Parameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "Most items of the answer."
)
CURSOR = Parameter("cursor", {"type": "string"}, "The `next_cursor` of the answer before; leave it out for the first.")
_GROUP = Parameter(
    "group", {"type": "string"}, "A group, as the status shows it, or its label in JSON; by default all rows."
)
_SINCE = Parameter("since", {"type": "string"}, "Start of the first window, ISO 8601.")
_UNTIL = Parameter("until", {"type": "string"}, "Windows start before this time, ISO 8601.")


def page(items: list[Any], limit: int, cursor: str | None) -> Response:
    """Return one page of a list whose items after `limit` are cut; `cursor` is that of the next page."""
    return JSONResponse({"items": items[:limit], "next_cursor": cursor if len(items) > limit else None})


def position(cursor: str | None) -> int:
    """Return a cursor that is a number; 0 without one."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise InputError(Argument("cursor") + f" must be the next_cursor of an earlier answer; got {cursor[:40]!r}.")
    return int(cursor)


async def _models(call: Call) -> Response:
    limit, after = call.query["limit"], call.query["cursor"] or ""
    names = [name for name in await call.service.models(call.access) if name > after][: limit + 1]
    revisions = await call.service.read(call.service.revisions)
    items = []
    for name in names[:limit]:
        monitor = await call.service.monitor(name)
        items.append({"name": name, "settings": monitor.settings.to_dict(), "revision": revisions.get(name, 0)})
    return page([*items, *names[limit:]], limit, names[limit - 1] if len(names) > limit else None)


async def _model(call: Call) -> Response:
    monitor = await call.service.monitor(call.model)
    revisions = await call.service.read(call.service.revisions)
    values = {"name": call.model, "settings": monitor.settings.to_dict(), "revision": revisions.get(call.model, 0)}
    return JSONResponse(values)


async def _status(call: Call) -> Response:
    found = await call.on_model(Monitor.status, version=call.query["version"])
    return JSONResponse(found.to_dict())


async def _history(call: Call) -> Response:
    limit, start = call.query["limit"], position(call.query["cursor"])
    found = (await call.on_model(_read_history, call.query["group"], call.query["version"])).to_dict()
    windows = found["windows"]
    found["windows"] = windows[start : start + limit]
    found["next_cursor"] = str(start + limit) if start + limit < len(windows) else None
    return JSONResponse(found)


def _read_history(monitor: Monitor, group: str | None, version: str | None) -> Any:
    """Return the history; a group is named as text, or in JSON where several labels are written so: 1 and "1"."""
    if group is None:
        return monitor.history(version=version)
    known = monitor.groups()
    written, by_key = [label for label in known if str(label) == group], {group_key(label): label for label in known}
    label = written[0] if len(written) == 1 else by_key.get(group, group)
    return monitor.history(label, version=version)


async def _evaluation(call: Call) -> Response:
    names = ("since", "until", "version")
    options = {name: call.query[name] for name in names}
    found = await call.service.compute(call.service.with_monitor, call.model, Monitor.evaluate, **options)
    return JSONResponse(await call.service.compute(found.to_dict))


async def _alarms(call: Call) -> Response:
    limit, after = call.query["limit"], position(call.query["cursor"])
    found = [alarm for alarm in await call.on_model(Monitor.alarms) if alarm.id > after][: limit + 1]
    return page([a.to_dict() for a in found], limit, str(found[:limit][-1].id) if found else None)


async def _silences(call: Call) -> Response:
    limit, after = call.query["limit"], position(call.query["cursor"])
    await call.service.monitor(call.model)
    found = [s for s in await call.service.read(list_silences, call.service.store, call.model) if s.id > after]
    return page([s.to_dict() for s in found[: limit + 1]], limit, str(found[:limit][-1].id) if found else None)


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

    return StreamingResponse(service.events.stream(call.access.sees, valid), media_type=EVENTS)


async def _health(call: Call) -> Response:
    if call.service.events.stopping.is_set():
        raise ServiceProblem(503, "The service is stopping.", headers={"Retry-After": "10"})
    await call.service.read(call.service.revisions)
    return JSONResponse({"status": "ok", "version": __version__})


def _read(path: str, name: str, summary: str, handler: Any, schema: Any, *parameters: Parameter) -> Endpoint:
    answers = {200: Answer(summary, {JSON: schema})}
    return Endpoint("GET", path, name, "read", summary, handler, parameters, answers=answers)


_OWN = "/v1/models/{model}"
READ_ENDPOINTS = [
    _read(
        "/v1/models", "models", "List the models that the token may read", _models, list_page("Model"), LIMIT, CURSOR
    ),
    _read(_OWN, "model", "Settings and revision of a model", _model, ref("Model")),
    _read(f"{_OWN}/status", "status", "Alarms, evidence and groups", _status, ref("Status"), _VERSION),
    _read(
        f"{_OWN}/history",
        "history",
        "Rows, rates and evidence of each window",
        _history,
        ref("History"),
        _GROUP,
        _VERSION,
        LIMIT,
        CURSOR,
    ),
    _read(
        f"{_OWN}/evaluation",
        "evaluate",
        "Evaluate the rows of some windows once",
        _evaluation,
        ref("Evaluation"),
        _SINCE,
        _UNTIL,
        _VERSION,
    ),
    _read(
        f"{_OWN}/alarms",
        "alarms",
        "Alarms, the first one first",
        _alarms,
        list_page("Alarm"),
        LIMIT,
        CURSOR,
    ),
    _read(f"{_OWN}/silences", "silences", "Silences of the model", _silences, list_page("Silence"), LIMIT, CURSOR),
    Endpoint(
        "GET",
        "/v1/events",
        "events",
        "read",
        "Server-sent events: the revision of each model now, and when it changes",
        _events,
        answers={
            200: Answer(
                "Events `revision`; the revision of a deleted model is -1.",
                {EVENTS: {"type": "string"}},
            )
        },
    ),
    Endpoint(
        "GET",
        "/v1/health",
        "health",
        None,
        "Whether the service can read its store",
        _health,
        answers={200: Answer("It can.", {JSON: ref("Health")})},
    ),
]


_SMALL = 2**16
_GROUP_COLUMNS = Parameter(
    "group",
    {"type": "array", "items": {"type": "string"}},
    "For CSV and Arrow: the column of the group; repeat it for several. Default: the column `group`, if there is one.",
)
_ONE_GROUP = Parameter("group", {"type": "string"}, "For CSV and Arrow: the group of all rows.")
_TABLE_TIME = Parameter("time", {"type": "string"}, "For CSV and Arrow without a column `time`: the time of all rows.")
_TABLE_VERSION = Parameter("version", {"type": "string"}, "For CSV and Arrow: the version of the model.")
_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 500},
    "Id of the batch. A known batch is not stored again, so a request can be repeated after a failure.",
    where="header",
)
_STORED = {
    201: Answer("The rows are stored: they are durable.", {JSON: ref("Receipt")}),
    200: Answer("The batch was stored before; nothing was stored.", {JSON: ref("Receipt")}),
}


def receipt_response(receipt: Receipt) -> Response:
    """Return the answer for stored rows."""
    values = {**dataclasses.asdict(receipt), "alarms": [None if g is None else json_label(g) for g in receipt.alarms]}
    return JSONResponse(values, 200 if receipt.repeated_batch else 201)


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
        receipt = await call.service.write(call.service.with_monitor, call.model, store, **options)
        call.service.stored(call.model, receipt)
        return receipt_response(receipt)

    by = _ONE_GROUP if "group" in columns.constants else _GROUP_COLUMNS
    names = {*columns.required, *columns.optional, *columns.constants}
    return Endpoint(
        "POST",
        f"/v1/models/{{model}}/{path}",
        name,
        "write",
        summary,
        handler,
        parameters=(*(each for each in (by, _TABLE_TIME, _TABLE_VERSION) if each.name in names), _KEY),
        body={JSON: ref(schema), CSV: {"type": "string"}, ARROW: {"type": "string", "format": "binary"}},
        answers=_STORED,
    )


def _batch(request: Request) -> str | None:
    found = request.headers.getlist("idempotency-key")
    if len(found) > 1:
        raise InputError(Argument("batch") + " must be given once.")
    if not found:
        return None
    try:  # headers arrive as Latin-1
        return found[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return found[0]


def _add_table(monitor: Monitor, *, score: Any, n: Any, k: Any, **options: Any) -> Receipt:
    return monitor.add_table(ScoreTable.from_counts(score, n, k), **options)


WRITE_ENDPOINTS = [
    _write(
        "observations",
        "observe",
        "Store outcomes and scores that are known together",
        Columns(("y", "p", "time"), ("group",), ("version",)),
        "Observations",
        Monitor.observe,
    ),
    _write(
        "predictions",
        "predict",
        "Store predictions whose outcomes are not known yet",
        Columns(("id", "p", "time"), ("group",), ("version",)),
        "Predictions",
        Monitor.predict,
    ),
    _write(
        "outcomes",
        "outcome",
        "Store the outcomes of earlier predictions",
        Columns(("id", "y"), (), ("time",)),
        "Outcomes",
        Monitor.outcome,
    ),
    _write(
        "tables",
        "add_table",
        "Store counts per score that were made elsewhere, of one time and group",
        Columns(("score", "n", "k"), (), ("time", "group", "version")),
        "Table",
        _add_table,
    ),
]


async def _json(call: Call, *known: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object of the body, in which texts are texts."""
    media_type(call.request.headers.get("content-type"), (JSON,))
    found = read_object(await call.request.body(), known)
    for name in required:
        if not isinstance(found.get(name), str):
            raise InputError(Argument(name) + " must be given as text.")
    return {name: value for name, value in found.items() if value is not None}


async def _create(call: Call) -> Response:
    given = await _json(call, *SETTINGS)
    for name, value in given.items():
        _check_setting(name, value)
    if "maturity" in given:
        if not 0 <= given["maturity"] <= SETTINGS["maturity"]["maximum"]:
            raise InputError(Argument("maturity") + f" must be a number of seconds; got {given['maturity']!r}.")
        given["maturity"] = timedelta(seconds=given["maturity"])
    created = await call.service.write(_create_model, call, given)
    monitor = await call.service.monitor(call.model)
    revision = (await call.service.read(call.service.revisions)).get(call.model, 0)
    values = {"name": call.model, "settings": monitor.settings.to_dict(), "revision": revision}
    return JSONResponse(values, 201 if created else 200)


def _check_setting(name: str, value: Any) -> None:
    """Check the type of a setting; `Monitor` checks its value."""
    text, several = name in ("window", "dependence", "kind"), name in ("classes", "levels")
    if text and isinstance(value, str):
        return
    if several and isinstance(value, list) and all(isinstance(each, (str, int, float)) for each in value):
        return
    if several or name in ("dependence", "kind") or not is_number(value):
        kinds = {"window": "text or a whole number", "dependence": "text", "kind": "text"}
        kind = "a list of values" if several else kinds.get(name, "a number")
        raise InputError(Argument(name) + f" must be {kind}; got {str(value)[:40]!r}.")


def _create_model(call: Call, given: dict[str, Any]) -> bool:
    store = call.service.store
    with store.transaction():
        exists = call.model in store.models()
        monitor = Monitor(store, model=call.model, **given)
        if not exists:
            record_audit(store, call.access.who, "create model", call.model, settings=monitor.settings.to_dict())
    return not exists


async def _delete(call: Call) -> Response:
    await call.service.write(_delete_model, call)
    return Response(status_code=204)


def _delete_model(call: Call) -> None:
    with call.service.store.transaction():
        call.service.open(call.model).delete(call.model)
        record_audit(call.service.store, call.access.who, "delete model", call.model)
    call.service.forget(call.model)


async def _close(call: Call) -> Response:
    given = await _json(call, "until")
    receipt = await call.service.write(_close_windows, call, given.get("until"))
    call.service.stored(call.model, receipt)
    return receipt_response(receipt)


def _close_windows(call: Call, until: Any) -> Any:
    with call.service.store.transaction():
        receipt = call.service.open(call.model).close(until)
        record_audit(call.service.store, call.access.who, "close windows", call.model, until=until)
    return receipt


def _number(call: Call, name: str) -> int:
    text = str(call.request.path_params[name])
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ServiceProblem(404, f"There is no {name} {text[:40]!r}.", argument=name)
    return int(text)


async def _acknowledge(call: Call) -> Response:
    number, given = _number(call, "alarm"), await _json(call, "reason", required=("reason",))
    await call.service.write(_acknowledge_alarm, call, number, given["reason"])
    found = next(each for each in await call.on_model(Monitor.alarms) if each.id == number)
    return JSONResponse(found.to_dict())


def _acknowledge_alarm(call: Call, number: int, reason: str) -> None:
    with call.service.store.transaction():
        monitor = call.service.open(call.model)
        if number not in {alarm.id for alarm in monitor.alarms()}:
            raise ServiceProblem(404, f"The model must have the alarm; it has no alarm {number}.", argument="alarm")
        monitor.acknowledge(number, reason)
        record_audit(call.service.store, call.access.who, "acknowledge alarm", call.model, alarm=number, reason=reason)


async def _silence(call: Call) -> Response:
    given = await _json(call, "until", "reason", required=("until", "reason"))
    found = await call.service.write(_silence_model, call, given["until"], given["reason"])
    return JSONResponse(found.to_dict(), 201)


def _silence_model(call: Call, until: str, reason: str) -> Any:
    with call.service.store.transaction():
        call.service.open(call.model)
        found = silence_model(call.service.store, call.model, until, reason, call.access.who)
        detail = {"silence": found.id, "until": found.until.isoformat(), "reason": reason}
        record_audit(call.service.store, call.access.who, "silence model", call.model, **detail)
    return found


async def _end_silence(call: Call) -> Response:
    number = _number(call, "silence")
    await call.service.write(_end_silence_of, call, number)
    return Response(status_code=204)


def _end_silence_of(call: Call, number: int) -> None:
    with call.service.store.transaction():
        call.service.open(call.model)
        try:
            end_silence(call.service.store, call.model, number)
        except InputError as error:
            raise ServiceProblem(404, str(error), argument="silence") from error
        record_audit(call.service.store, call.access.who, "end silence", call.model, silence=number)


async def _audit(call: Call) -> Response:
    if call.access.token is not None and call.access.token.models is not None:
        raise ServiceProblem(403, "The audit log needs a token with the scope 'admin' for all models.")
    limit = call.query["limit"]
    found = await call.service.read(read_audit, call.service.store, position(call.query["cursor"]), limit + 1)
    return page([each.to_dict() for each in found], limit, str(found[:limit][-1].id) if found else None)


def _admin(method: str, path: str, name: str, summary: str, handler: Any, body: str | None, answers: Any) -> Endpoint:
    content = {} if body is None else {JSON: ref(body)}
    return Endpoint(method, f"/v1/models/{{model}}{path}", name, "admin", summary, handler, (), content, answers)


_DONE = {204: Answer("Done.")}
ADMIN_ENDPOINTS = [
    _admin(
        "PUT",
        "",
        "create",
        "Create a model with its settings, which never change",
        _create,
        "Settings",
        {
            201: Answer("The model is created.", {JSON: ref("Model")}),
            200: Answer("The model exists with these settings.", {JSON: ref("Model")}),
            409: Answer("The model exists with other settings.", {"application/problem+json": ref("Problem")}),
        },
    ),
    _admin("DELETE", "", "delete", "Delete a model with all its data", _delete, None, _DONE),
    _admin(
        "POST",
        "/close",
        "close",
        "Close windows whatever the maturity delay",
        _close,
        "Closing",
        {201: Answer("The windows are closed.", {JSON: ref("Receipt")})},
    ),
    _admin(
        "POST",
        "/alarms/{alarm}/acknowledgement",
        "acknowledge",
        "Acknowledge an alarm with a reason",
        _acknowledge,
        "Acknowledgement",
        {200: Answer("The alarm.", {JSON: ref("Alarm")})},
    ),
    _admin(
        "POST",
        "/silences",
        "silence",
        "Send no notifications of the alarms of a model until a time",
        _silence,
        "SilenceRequest",
        {201: Answer("The silence.", {JSON: ref("Silence")})},
    ),
    _admin("DELETE", "/silences/{silence}", "end_silence", "End a silence now", _end_silence, None, _DONE),
    Endpoint(
        "GET",
        "/v1/audit",
        "audit",
        "admin",
        "Who did what and when",
        _audit,
        (LIMIT, CURSOR),
        answers={200: Answer("Entries in order of time.", {JSON: list_page("AuditEntry")})},
    ),
]


async def _openapi(call: Call) -> Response:
    return JSONResponse(openapi())


async def _metrics(call: Call) -> Response:
    text = await call.service.read(scrape, call.service, call.access)
    return Response(text, media_type=METRICS_TYPE)


ENDPOINTS = [
    *READ_ENDPOINTS,
    *WRITE_ENDPOINTS,
    *ADMIN_ENDPOINTS,
    Endpoint(
        "GET",
        "/v1/openapi.json",
        "openapi",
        None,
        "This description",
        _openapi,
        answers={200: Answer("OpenAPI 3.1.", {JSON: {"type": "object"}})},
    ),
    Endpoint(
        "GET",
        "/metrics",
        "metrics",
        "read",
        "Metrics for Prometheus",
        _metrics,
        answers={200: Answer("The text format of Prometheus.", {"text/plain": {"type": "string"}})},
    ),
]


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the service."""
    return describe(ENDPOINTS)


def api_routes() -> list[Route]:
    """Return one route per path; it calls the endpoint of the method."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in ENDPOINTS:
        by_path.setdefault(each.path, {})[each.method] = each
    return [Route(path, _dispatch(own), methods=list(own)) for path, own in by_path.items()]


def _dispatch(own: dict[str, Endpoint]) -> Any:
    async def answer(request: Request) -> Response:
        # Starlette adds HEAD to each route with GET, and the server leaves out its body.
        return await own["GET" if request.method == "HEAD" else request.method](request)

    return answer
