"""Endpoints that store rows: observations, predictions, outcomes and tables."""

import dataclasses
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from calibrant._support.errors import Argument, InputError
from calibrant._support.plain_data import label as json_label
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.service.endpoint import Answer, Call, Endpoint, Parameter
from calibrant.monitor.service.request_bodies import ARROW, CSV, JSON, Columns, media_type, read_columns
from calibrant.monitor.service.schemas import ref
from calibrant.monitor.status import Receipt
from calibrant.tables.score_table import ScoreTable

__all__ = ["WRITE_ENDPOINTS", "receipt_response"]

_SMALL = 2**16
_GROUP = Parameter(
    "group",
    {"type": "array", "items": {"type": "string"}},
    "For CSV and Arrow: the column of the group; repeat it for several. Default: the column `group`, if there is one.",
)
_ONE_GROUP = Parameter("group", {"type": "string"}, "For CSV and Arrow: the group of all rows.")
_TIME = Parameter("time", {"type": "string"}, "For CSV and Arrow without a column `time`: the time of all rows.")
_VERSION = Parameter("version", {"type": "string"}, "For CSV and Arrow: the version of the model.")
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


def _endpoint(
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

    by = _ONE_GROUP if "group" in columns.constants else _GROUP
    names = {*columns.required, *columns.optional, *columns.constants}
    return Endpoint(
        "POST",
        f"/v1/models/{{model}}/{path}",
        name,
        "write",
        summary,
        handler,
        parameters=(*(each for each in (by, _TIME, _VERSION) if each.name in names), _KEY),
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
    _endpoint(
        "observations",
        "observe",
        "Store outcomes and scores that are known together",
        Columns(("y", "p", "time"), ("group",), ("version",)),
        "Observations",
        Monitor.observe,
    ),
    _endpoint(
        "predictions",
        "predict",
        "Store predictions whose outcomes are not known yet",
        Columns(("id", "p", "time"), ("group",), ("version",)),
        "Predictions",
        Monitor.predict,
    ),
    _endpoint(
        "outcomes",
        "outcome",
        "Store the outcomes of earlier predictions",
        Columns(("id", "y"), (), ("time",)),
        "Outcomes",
        Monitor.outcome,
    ),
    _endpoint(
        "tables",
        "add_table",
        "Store counts per score that were made elsewhere, of one time and group",
        Columns(("score", "n", "k"), (), ("time", "group", "version")),
        "Table",
        _add_table,
    ),
]
