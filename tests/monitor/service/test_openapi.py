"""The OpenAPI description: it matches the routes, and no drawn request is an internal error."""

import contextlib
import os
import re

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.monitor.service.app import create_app
from calibrant.monitor.service.endpoints import ENDPOINTS, openapi
from calibrant.monitor.service.service_settings import ServiceSettings
from tests.monitor.service import service_requests

# make fuzz NAME=service draws 10,000 requests per store.
N_REQUESTS = int(os.environ.get("CALIBRANT_SERVICE_REQUESTS", "120"))


def test_the_description_has_each_route_and_no_other(path):
    app = create_app(ServiceSettings(path))
    described = {
        (route, method.upper()) for route, own in openapi()["paths"].items() for method in own if route != "/metrics"
    }
    served = {
        (route.path, method)
        for route in app.routes
        for method in route.methods - {"HEAD"}
        if route.path.startswith("/v1/")
    }
    assert described == served
    assert "/metrics" in openapi()["paths"]
    app.state.service._close()


def test_references_operations_and_parameters_are_sound():
    text = str(openapi())
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in openapi()["components"]["schemas"]
    names = [each["operationId"] for own in openapi()["paths"].values() for each in own.values()]
    assert len(set(names)) == len(names) == len(ENDPOINTS)
    for path, own in openapi()["paths"].items():
        for each in own.values():
            in_path = [p["name"] for p in each["parameters"] if p["in"] == "path"]
            assert in_path == re.findall(r"{(\w+)}", path)
            assert {"400", "503"} <= set(each["responses"])


def test_the_schema_of_settings_has_the_settings_of_a_model(path):
    from calibrant.monitor.model_settings import ModelSettings

    assert set(openapi()["components"]["schemas"]["Settings"]["properties"]) == set(ModelSettings().to_dict())
    for name, schema in openapi()["components"]["schemas"]["Settings"]["properties"].items():
        assert schema.get("default") == ModelSettings().to_dict()[name]


def test_no_drawn_request_is_an_internal_error(service):
    """Requests drawn from the description get a documented answer."""
    description = openapi()
    cb.Monitor(service.settings.store, model="m")
    cb.Monitor(service.settings.store, model="rows", window=5).observe([0, 1] * 20, [0.2] * 40, time="2026-01-01")
    connection = service_requests.connect(service.url)

    @settings(
        max_examples=N_REQUESTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=N_REQUESTS < 1000,
        phases=[hypothesis.Phase.generate],
    )
    @given(st.data())
    def run(data):
        drawn = data.draw(service_requests.requests(description))
        service_requests.check(description, drawn, *service_requests.send(connection, drawn))

    with contextlib.closing(connection):
        run()


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/models/m/observations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET /v1/models/%ff%fe/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/models/%/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //evil.example/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
        b"GET /v1/models?token=%ff&token=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /v1/models?cursor=" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_broken_requests_are_client_errors(service, request_line):
    import socket

    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request_line)
        connection.shutdown(socket.SHUT_WR)
        status = connection.recv(12)
    assert status[:9] in (b"HTTP/1.1 ", b"")
    assert status[9:10] in (b"2", b"4", b""), status
    assert service.request("GET", "/v1/health").status == 200
