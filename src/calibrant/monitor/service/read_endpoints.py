"""Endpoints that read: models, status, history, evaluation, alarms, events, health."""

from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from calibrant._support.errors import Argument, InputError
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.observations import group_key
from calibrant.monitor.service.endpoint import Answer, Call, Endpoint, Parameter
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.request_bodies import JSON
from calibrant.monitor.service.schemas import list_page, ref
from calibrant.monitor.silences import list_silences
from calibrant.versions import __version__

__all__ = ["CURSOR", "LIMIT", "READ_ENDPOINTS", "page"]

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
