"""Requests drawn from the OpenAPI description of the service: valid ones, changed ones and noise."""

import http.client
import json
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

# Names of models: two that exist, and others.
MODELS = ["m", "rows", "none", "a/b", "..", "%", "ü", "x" * 600, " ", "\x7f", "'; DROP TABLE calibrant_models; --"]
_NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 0.5, 1e308, -0.0, 2**63, 2**64, 10**400, 1e-320]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
_TIMES = st.one_of(
    st.sampled_from(["2026-01-01", "2026-01-31T08:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]),
    st.dates().map(str),
    st.datetimes().map(str),
    st.sampled_from(["yesterday", "", "2026-13-01", "1e9", "2026-01-01T00:00:00+99:99", "\ud800"]),
)
_TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(["", "\0", "x" * 501, "\u202e", "<script>", "🦆"]), _TIMES)
_VALUES = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)
NOISE = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=10,
)


@dataclass(frozen=True)
class Drawn:
    """A request, and the operation that it is meant for."""

    operation: str
    method: str
    target: str
    body: bytes | None
    headers: dict[str, str] = field(default_factory=dict)


def _resolve(schema, description):
    if "$ref" in schema:
        return description["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def from_schema(schema, description):
    """Return a strategy of values that a schema allows."""
    schema = _resolve(schema, description)
    if "anyOf" in schema:
        return st.one_of([from_schema(each, description) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return st.one_of([_of_type(kind, schema, description) for kind in kinds])


def _of_type(kind, schema, description):
    low, high = schema.get("minimum"), schema.get("maximum")
    if kind == "object" and "additionalProperties" in schema and not schema.get("properties"):
        return st.dictionaries(_TEXTS, from_schema(schema["additionalProperties"], description), min_size=1, max_size=3)
    if kind == "object":
        parts = {name: from_schema(each, description) for name, each in schema.get("properties", {}).items()}
        needed = set(schema.get("required", ()))
        optional = {name: part for name, part in parts.items() if name not in needed}
        return st.fixed_dictionaries({n: p for n, p in parts.items() if n in needed}, optional=optional)
    if kind == "array":
        return st.lists(from_schema(schema["items"], description), min_size=schema.get("minItems", 0), max_size=4)
    simple = {
        "boolean": st.booleans(),
        "null": st.none(),
        "integer": st.integers(low, high),
        "number": st.floats(low, high, allow_nan=False, allow_infinity=False),
    }
    if kind in simple:
        return simple[kind]
    return _TIMES if "ISO 8601" in schema.get("description", "") else st.one_of(_TEXTS, st.sampled_from(["m", "1"]))


@st.composite
def requests(draw, description):
    """Draw a request to one of the operations."""
    operations = [
        (path, method, each)
        for path, own in description["paths"].items()
        for method, each in own.items()
        if each["operationId"] not in ("events",)  # a stream does not end
    ]
    path, method, operation = draw(st.sampled_from(operations))
    values = {"model": draw(st.sampled_from(MODELS)), "alarm": draw(_VALUES), "silence": draw(_VALUES)}
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(str(value).encode("utf-8", "replace"), safe=""))
    query, headers = _draw_parameters(draw, operation, description)
    body = None
    if "requestBody" in operation:
        kind, body = _draw_body(draw, operation["requestBody"]["content"], description)
        headers["Content-Type"] = kind
    elif draw(st.integers(0, 9)) == 0:
        body = draw(st.binary(max_size=50))
    target = path + (f"?{urlencode(query, errors='replace')}" if query else "")
    return Drawn(operation["operationId"], method.upper(), target, body, headers)


def _draw_parameters(draw, operation, description):
    query, headers = [], {}
    for each in operation["parameters"]:
        if each["in"] == "path" or not draw(st.booleans()):
            continue
        value = draw(st.one_of(from_schema(each["schema"], description), _VALUES))
        if each["in"] == "header":
            headers[each["name"]] = "".join(c for c in str(value) if c.isprintable() and ord(c) < 256) or "k"
        else:
            query += [(each["name"], str(v)) for v in (value if isinstance(value, list) else [value])]
    if draw(st.integers(0, 19)) == 0:
        query.append((draw(_TEXTS), draw(_TEXTS)))
    return query, headers


def _draw_body(draw, content, description):
    kind = draw(st.sampled_from(list(content)))
    if kind == "text/csv":
        header = draw(st.sampled_from(["y,p,time", "id,p,time,group", "id,y", "score,n,k", "y,y", "", "a,b"]))
        cells = st.one_of(_NUMBERS, _TIMES, _TEXTS).map(str)
        lines = draw(st.lists(st.lists(cells, max_size=5).map(",".join), max_size=4))
        return kind, "\n".join([header, *lines]).encode("utf-8", "replace")
    if kind != "application/json":
        return kind, draw(st.binary(max_size=200))
    value = draw(from_schema(content[kind]["schema"], description))
    change = draw(st.integers(0, 9))
    if change < 3 and value:
        value = {**value, draw(st.sampled_from(sorted(value))): draw(NOISE)}
    elif change == 3:
        value = draw(NOISE)
    elif change == 4:
        return draw(st.sampled_from([kind, "text/plain", "", "application/json; charset=x"])), draw(
            st.binary(max_size=50)
        )
    return kind, json.dumps(value).encode()


def send(connection, drawn):
    """Send a request; return status, media type and body."""
    connection.request(drawn.method, drawn.target, drawn.body, drawn.headers)
    answer = connection.getresponse()
    return answer.status, answer.headers.get_content_type(), answer.read()


def check(description, drawn, status, kind, body):
    """Check an answer against the description: a documented status with its media type and its required members."""
    assert status < 500, (status, body)
    if status == 405 or (status == 404 and kind == "application/problem+json"):
        return
    path = next(
        p for p, own in description["paths"].items() for o in own.values() if o["operationId"] == drawn.operation
    )
    responses = description["paths"][path][drawn.method.lower()]["responses"]
    if status == 404 and kind != "application/problem+json":
        return  # the name of the model changed the path: it is one of a page
    assert str(status) in responses, (status, body)
    content = responses[str(status)].get("content", {})
    if not content:
        assert body == b""
        return
    assert kind in content, kind
    if "json" in kind:
        found = json.loads(body)
        schema = _resolve(content[kind]["schema"], description)
        assert set(schema.get("required", ())) <= set(found), found


def connect(url):
    """Return a connection to a service."""
    host, port = url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=60)
