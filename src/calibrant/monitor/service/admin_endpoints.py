"""Endpoints that administer: create, close and delete models, acknowledge and silence alarms, read the audit log."""

from datetime import timedelta
from typing import Any

from starlette.responses import JSONResponse, Response

from calibrant._support.errors import Argument, InputError, is_number
from calibrant.monitor.audit_log import read_audit, record_audit
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.service.endpoint import Answer, Call, Endpoint
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.read_endpoints import CURSOR, LIMIT, page, position
from calibrant.monitor.service.request_bodies import JSON, media_type, read_object
from calibrant.monitor.service.schemas import SETTINGS, list_page, ref
from calibrant.monitor.service.write_endpoints import receipt_response
from calibrant.monitor.silences import end_silence, silence_model

__all__ = ["ADMIN_ENDPOINTS"]


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
