"""``calibrant serve``: run the service and manage its tokens; ``calibrant demo --monitor`` serves a simulated month."""

import json
import os
import re
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import InputError
from calibrant._support.formatting import printable, text_table
from calibrant.cli.demo import digit_scores
from calibrant.cli.main import CommandGroup
from calibrant.cli.monitor import check_store, command_line_user, parse_duration, store_option

if TYPE_CHECKING:
    from calibrant.monitor.client import MonitorClient
    from calibrant.monitor.service.access_tokens import TokenBook


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--store", metavar="STORE", help="A SQLite file, or a URL such as postgresql+psycopg://user@host/db.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; tokens if not loopback.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 is any free port.")
@click.option("--config", metavar="FILE", help="A TOML file with webhooks, e-mail and limits.")
@click.option("--max-body", type=click.IntRange(min=1024), metavar="BYTES", help="Largest body.  [default: 16 MiB]")
@click.option("--max-queue", type=click.IntRange(min=1), metavar="N", help="Most waiting requests.  [default: 64]")
@click.pass_context
def serve(context: click.Context, /, store: str | None, config: str | None, **given: Any) -> None:
    """Serve the models of a store over HTTP: an API, pages, alarms and metrics.

    Without tokens the service answers programs on this machine only. SIGINT and SIGTERM stop it after its running
    requests.

    \b
      calibrant serve --store monitor.db
      calibrant serve token create --store monitor.db --name scoring --scope write --model churn
      calibrant serve --store monitor.db --host 0.0.0.0
    """
    if context.invoked_subcommand is not None:
        return
    if store is None:
        raise click.UsageError("Missing option '--store'.")
    from calibrant.monitor.service.server import serve as run
    from calibrant.monitor.service.service_settings import read_settings

    settings = read_settings(config, store=store, **{name: value for name, value in given.items() if value is not None})
    run(settings, announce=lambda address: click.echo(f"Calibrant serves {address} (stop with Ctrl-C)"))


@serve.group(cls=CommandGroup)
def token() -> None:
    """Create, list, rotate and revoke access tokens.

    The store holds a hash of each token. A token is shown once, when it is created.
    """


_id_argument = click.argument("id")


@token.command
@store_option
@click.option("--name", required=True, metavar="TEXT", help="What the token is for.")
@click.option("--scope", required=True, type=click.Choice(["read", "write", "admin"]), help="What it may do.")
@click.option("--model", multiple=True, metavar="NAME", help="Valid for this model; can be repeated. Default: all.")
@click.option("--expires", type=parse_duration, metavar="TIME", help="Valid for this time: 36h, 90d. Default: always.")
def create(store: str, name: str, scope: str, model: tuple[str, ...], expires: timedelta | None) -> None:
    """Create a token and print it. It is not stored and cannot be shown again.

    \b
      calibrant serve token create --store monitor.db --name dashboard --scope read --expires 90d
    """
    book = _book(store)
    with book.store.act(command_line_user(), "create token") as detail:
        text, made = book.create(name, scope, model, expires)
        detail |= {"token": made.id, "scope": scope, "models": list(model) or None}
    click.echo(text)


@token.command("list")
@store_option
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_tokens(store: str, format: str) -> None:
    """List the tokens without their secrets."""
    from calibrant.monitor.schema import now

    rows = [
        {
            "id": token.id,
            "name": token.name,
            "scope": token.scope,
            "models": None if token.models is None else list(token.models),
            "created": token.created.isoformat(timespec="seconds"),
            "expires": None if token.expires is None else token.expires.isoformat(timespec="seconds"),
            "state": token.state(now()),
        }
        for token in _known_book(store).list()
    ]
    if format == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    names = ("id", "name", "scope", "models", "expires", "state")
    shown = [[_cell(row[name], name) for name in names] for row in rows]
    click.echo("\n".join(text_table([list(names), *shown], left=range(len(names)))) if rows else "no tokens")


def _cell(value: Any, name: str) -> str:
    if value is None:
        return "all" if name == "models" else "never"
    return ", ".join(value) if isinstance(value, list) else printable(str(value))


@token.command
@_id_argument
@store_option
@click.option("--grace", type=parse_duration, default="0m", metavar="TIME", help="The old token stays valid: 1h, 2d.")
def rotate(id: str, store: str, grace: timedelta) -> None:
    """Replace a token by a new one with the same name, scope and models, and print it."""
    book = _known_book(store)
    with book.store.act(command_line_user(), "rotate token", token=id) as detail:
        text, made = book.rotate(id, grace)
        detail |= {"new": made.id, "grace_seconds": grace.total_seconds()}
    click.echo(text)


@token.command
@_id_argument
@store_option
def revoke(id: str, store: str) -> None:
    """Make a token invalid at once."""
    book = _known_book(store)
    with book.store.act(command_line_user(), "revoke token", token=id):
        made = book.revoke(id)
    click.echo(f"token {made.id} ({printable(made.name)}) is revoked")


def _book(store: str) -> "TokenBook":
    from calibrant.monitor.service.access_tokens import TokenBook
    from calibrant.monitor.store import Store

    return TokenBook(Store(store))


def _known_book(store: str) -> "TokenBook":
    """Return the tokens of a store that exists."""
    check_store(store, "`calibrant serve token create` creates one.")
    return _book(store)


STORE = "monitor.db"
_FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
_DAYS = 31
_DRIFT = 14  # from 15 March on
_ROWS = 800
_KEPT = 0.3  # share of rows without the event that still arrive after the drift
_WINDOW_EFFECT = 0.05  # the rows of a day are drawn independently
_MATURITY = timedelta(days=2)
_LABELLED = 0.97


@dataclass(frozen=True)
class _Simulation:
    """Days of rows, drawn with replacement from the digits and their out-of-fold scores."""

    digits: dict[str, Any]
    rng: Any

    def day(self, score: str, *, filtered: bool = False) -> dict[str, Any]:
        """Return outcomes, scores and groups of a day; a filter keeps fewer rows without the event."""
        import numpy as np

        events = self.digits["is_8"].astype(int)
        weight = np.where(events, 1.0, _KEPT if filtered else 1.0)
        rows = self.rng.choice(events.size, _ROWS, p=weight / weight.sum())
        return {"y": events[rows], "p": self.digits[score][rows], "group": self.digits["ink"][rows]}


def run_monitor_demo(place: Path, *, browser: bool, duration: float | None) -> None:
    """Serve a new store, post a month of rows, and keep the pages open for `duration` seconds or until Ctrl-C."""
    import numpy as np

    click.echo("Fitting a forest and a logistic model to handwritten digits; the logistic one is recalibrated ...")
    simulation = _Simulation(_recalibrated(digit_scores()), np.random.default_rng(1))
    address = None
    try:
        with _served(place / STORE) as address:
            click.echo(f"\nThe pages: {address}\n")
            _post_month(simulation, address, open_page=browser and _has_display(), pause=0.4 if _is_watched() else 0.0)
            click.echo(f"\nThe page of the model that drifts: {address}/model?name=digits-filtered")
            click.echo("It shows when the change happened, in which groups, and what to do next.")
            _wait(duration)
    except KeyboardInterrupt:  # after the server has ended, or the interruption would count as lost while it ends
        if address is None:
            raise
        click.echo("\nStopped.")
    click.echo(f"The store, to serve again: calibrant serve --store {place / STORE}")


def _recalibrated(digits: dict[str, Any]) -> dict[str, Any]:
    """Recalibrate the logistic model in each group of the digits; the forest stays as it is."""
    import numpy as np

    from calibrant.calibrators.isotonic import Isotonic

    scores, events = digits["logistic"].copy(), digits["is_8"].astype(int)
    for group in np.unique(digits["ink"]):
        own = digits["ink"] == group
        scores[own] = Isotonic().fit(scores[own], events[own])(scores[own])
    return {**digits, "logistic": scores}


@contextmanager
def _served(store: Path) -> Iterator[str]:
    """Run ``calibrant serve`` on a free port of loopback; yield its address, and stop it at the end."""
    command = [sys.executable, "-m", "calibrant", "serve", "--store", str(store), "--port", "0"]
    log = store.with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield _address(server, log)
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            assert server.stdout is not None
            server.stdout.close()


def _address(server: "subprocess.Popen[str]", log: Path) -> str:
    """Return the address that the server prints when it answers."""
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    if found is None:
        text = log.read_text(encoding="utf-8").strip().splitlines()
        raise InputError(f"The service must start; it did not: {text[-1] if text else 'no message'}.")
    return found.group()


def _post_month(simulation: _Simulation, address: str, *, open_page: bool, pause: float) -> None:
    from calibrant.monitor.client import MonitorClient

    clients = {name: MonitorClient(address, model=f"digits-{name}") for name in ("forest", "logistic", "filtered")}
    for name, client in clients.items():
        delay = _MATURITY if name == "logistic" else timedelta(0)
        client.create(window="day", maturity=delay, window_effect=_WINDOW_EFFECT)
    waiting: list[tuple[list[str], Any]] = []
    for number in range(_DAYS):
        day = _FIRST_DAY + number * timedelta(days=1)
        if number == _DRIFT:
            click.secho(f"{day:%d %B}: a filter upstream drops 7 of 10 digits that are not an 8.", fg="yellow")
        _post(clients["forest"], day, simulation.day("forest"))
        _post(clients["filtered"], day, simulation.day("logistic", filtered=number >= _DRIFT))
        _predict(clients["logistic"], day, simulation.day("logistic"), waiting, simulation.rng)
        if number == 0 and open_page:
            webbrowser.open(f"{address}/")
        time.sleep(pause)


def _post(client: "MonitorClient", day: datetime, rows: dict[str, Any]) -> None:
    """Post rows with their outcomes, and print the alarms that they raise."""
    receipt = client.observe(rows["y"], rows["p"], time=day, group=rows["group"], batch=f"{day:%Y-%m-%d}")
    for group in receipt.alarms:
        subject = "all rows" if group is None else f"group {group}"
        click.secho(f"{day:%d %B}: alarm for {client.model}, {subject}", fg="red")


def _predict(
    client: "MonitorClient", day: datetime, rows: dict[str, Any], waiting: list[tuple[list[str], Any]], rng: Any
) -> None:
    """Post predictions of a day, and the outcomes that are known of two days before."""
    ids = [f"{day:%Y%m%d}-{i}" for i in range(_ROWS)]
    client.predict(ids, rows["p"], time=day, group=rows["group"])
    waiting.append((ids, rows["y"]))
    if len(waiting) > _MATURITY.days - 1:
        known, events = waiting.pop(0)
        chosen = rng.random(len(known)) < _LABELLED
        client.outcome([each for each, take in zip(known, chosen, strict=True) if take], events[chosen])


def _is_watched() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _has_display() -> bool:
    """Return whether a person at a terminal would see a browser."""
    graphical = sys.platform in ("darwin", "win32") or any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    return _is_watched() and graphical


def _wait(duration: float | None) -> None:
    """Wait for the time, or until Ctrl-C."""
    if duration is None:
        click.echo("\nStop with Ctrl-C.")
    end = None if duration is None else time.monotonic() + duration
    while end is None or time.monotonic() < end:
        time.sleep(0.2 if end is None else max(0.0, min(0.2, end - time.monotonic())))
