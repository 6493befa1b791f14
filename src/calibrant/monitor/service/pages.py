"""Pages of the service: the list of models and the page of each, rendered on the server."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from calibrant.monitor.alarm_log import list_silences
from calibrant.monitor.model_queries import ModelState, ModelSummary, read_states, read_summaries
from calibrant.monitor.service.access_tokens import Access, bearer
from calibrant.monitor.service.page_views import ModelRequest, PageLinks, ResultCache, model_view, overview_view
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.store import Store
from calibrant.report.templates import asset, render_served
from calibrant.versions import __version__

# Nothing is inline and nothing comes from elsewhere; a page can be framed by nobody.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_TYPES = {
    "style.css": "text/css",
    "service.css": "text/css",
    "script.js": "text/javascript",
    "service.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_LIVE_HEADER = "x-calibrant-live"  # sent by the script of a page that updates itself
_PAUSES, _LONGEST_PAUSE = 9, 15.0
_YEAR = "public, max-age=31536000, immutable"
_FIRST_ROWS = '{"y": [0, 1, 0], "p": [0.1, 0.7, 0.3], "time": "2026-01-31"}'


def page_routes() -> list[Route]:
    """Return the routes of all pages."""
    pages = _Pages()
    return [
        Route("/", pages.overview, methods=["GET"]),
        Route("/model", pages.model, methods=["GET"]),
        Route("/static/{name}", _static, methods=["GET"]),
    ]


def error_page(request: Request, problem: ServiceProblem) -> Response:
    """Return the page for an error outside of the API."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    values = {"status": problem.status, "title": HTTPStatus(problem.status).phrase, "detail": problem.detail}
    # A refused token is not repeated in links.
    links = PageLinks(_root(request)) if problem.status == HTTPStatus.UNAUTHORIZED else _links(request)
    page = render_served("service_message.html", **values, hidden=kept, **_frame(links))
    headers = {**problem.headers, **_HEADERS, "Cache-Control": "no-store"}
    return Response(page, problem.status, headers, "text/html")


@dataclass(frozen=True)
class _HeldPage:
    """A page, the state of the model that it shows, when it was drawn, and how long that took."""

    page: str
    state: ModelState
    finished: float
    seconds: float

    @property
    def rest(self) -> float:
        """Seconds until a page that updates itself may be drawn again: drawing takes a tenth of the time at most."""
        pause = min(_PAUSES * self.seconds, _LONGEST_PAUSE)
        return max(0.0, self.finished + pause - time.monotonic())


class _Pages:
    """Handlers of the pages; what they drew and read last stays in memory."""

    def __init__(self) -> None:
        self._results = ResultCache()
        self._summaries: dict[str, tuple[ModelState, ModelSummary]] = {}

    async def overview(self, request: Request) -> Response:
        """List the models that the caller may read."""
        service, request.scope["calibrant_operation"] = request.app.state.service, "overview_page"
        access = await service.authorize(request, "read")
        page = await service.read(self._overview, request, access)
        return _answer(request, page)

    async def model(self, request: Request) -> Response:
        """Show one model."""
        service, name = request.app.state.service, request.query_params.get("name", "")
        request.scope["calibrant_operation"] = "model_page"
        access = await service.authorize(request, "read", name)
        monitor = await service.monitor(name)
        state = (await service.read(read_states, service.store)).get(name, ModelState(0, 0, 0))
        listed = await service.read(list_silences, service.store, name)
        silences = tuple(silence for silence in listed if silence.active)
        chosen, links, needs_token = ModelRequest.read(request.query_params), _links(request), access.token is not None

        def draw() -> str:
            view = model_view(monitor, chosen, links, self._results, silences)
            stream = {"events": links.events(), "revision": state.revision, "model_path": f"{links.root}/model"}
            return render_served("service_model.html", **view, **stream, needs_token=needs_token, **_frame(links))

        key = "page", name, chosen, links, silences, needs_token
        held: _HeldPage | None = self._results.peek(key)
        live = _LIVE_HEADER in request.headers
        if held is None or (
            held.state != state and not (live and held.rest > 0 and held.state.n_alarms == state.n_alarms)
        ):
            begun = time.monotonic()
            page = await service.compute(draw)
            held = _HeldPage(page, state, time.monotonic(), time.monotonic() - begun)
            self._results.put(key, held)
        later = {} if held.state == state else {"Calibrant-Refresh": f"{held.rest:.1f}"}
        return _answer(request, held.page, later)

    def _overview(self, request: Request, access: Access) -> str:
        service, given, links = request.app.state.service, request.query_params, _links(request)
        states = {name: state for name, state in read_states(service.store).items() if access.sees(name)}
        search, sort, page = given.get("q", "")[:500], given.get("sort", "state"), given.get("page", "1")
        number = int(page) if page.isdecimal() and len(page) < 9 else 1
        view = overview_view(self._current(service.store, states), links, search=search, sort=sort, page=number)
        return render_served(
            "service_overview.html",
            **view,
            **_frame(links),
            address=str(request.base_url).rstrip("/"),
            needs_token=access.token is not None,
            post_path="/v1/models/churn",
            post_body=_FIRST_ROWS,
            events=links.events(),
            revision=sum(state.revision for state in states.values()),
            home_path=f"{links.root}/",
        )

    def _current(self, store: Store, states: dict[str, ModelState]) -> list[ModelSummary]:
        """Return the summaries of models; only those that changed are read."""
        old = self._summaries
        changed = [name for name, state in states.items() if name not in old or old[name][0] != state]
        fresh = {summary.model: summary for summary in (read_summaries(store, changed) if changed else [])}
        current = {name: fresh.get(name) or old[name][1] for name in states if name in fresh or name in old}
        self._summaries = {**old, **{name: (states[name], summary) for name, summary in current.items()}}
        return list(current.values())


def _frame(links: PageLinks) -> dict[str, Any]:
    """Return what each page has: addresses of style and script, and of the list of models."""
    return {
        "assets": {name: links.asset(name, _digest(name)) for name in _TYPES},
        "home": links.overview(),
        "version": __version__,
    }


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _links(request: Request) -> PageLinks:
    text, in_query = bearer(request)
    return PageLinks(_root(request), text if in_query else None)


def _answer(request: Request, page: str, extra: Mapping[str, str] | None = None) -> Response:
    """Return the page, or status 304 if the caller has it."""
    body = page.encode("utf-8", "backslashreplace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**_HEADERS, "Cache-Control": "no-store", "ETag": tag, **(extra or {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="text/html")


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(asset(name).encode()).hexdigest()[:16]


async def _static(request: Request) -> Response:
    """Return a style sheet, a script or the icon; they hold no data and need no token."""
    request.scope["calibrant_operation"] = "static"
    name = request.path_params["name"]
    if name not in _TYPES:
        raise ServiceProblem(404, "There is no such file.")
    return Response(asset(name), headers={**_HEADERS, "Cache-Control": _YEAR}, media_type=_TYPES[name])
