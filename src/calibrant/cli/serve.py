"""``calibrant serve``: run the service, and manage its tokens."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.formatting import printable, text_table
from calibrant.cli.command_group import CommandGroup
from calibrant.cli.monitor import check_store, parse_duration, store_option
from calibrant.cli.user_name import command_line_user

if TYPE_CHECKING:
    from calibrant.monitor.service.access_tokens import TokenBook

__all__ = ["serve"]


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
    from calibrant.monitor.service.configuration import read_settings
    from calibrant.monitor.service.server import serve as run

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
    with book.store.transaction():
        text, made = book.create(name, scope, model, expires)
        _record(book, "create token", made.id, scope=scope, models=list(model) or None)
    click.echo(text)


@token.command("list")
@store_option
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_tokens(store: str, format: str) -> None:
    """List the tokens without their secrets."""
    from calibrant.monitor.schema import now

    found = _known_book(store).list()
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "scope": each.scope,
            "models": None if each.models is None else list(each.models),
            "created": each.created.isoformat(timespec="seconds"),
            "expires": None if each.expires is None else each.expires.isoformat(timespec="seconds"),
            "state": each.state(now()),
        }
        for each in found
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
    with book.store.transaction():
        text, made = book.rotate(id, grace)
        _record(book, "rotate token", id, new=made.id, grace_seconds=grace.total_seconds())
    click.echo(text)


@token.command
@_id_argument
@store_option
def revoke(id: str, store: str) -> None:
    """Make a token invalid at once."""
    book = _known_book(store)
    with book.store.transaction():
        made = book.revoke(id)
        _record(book, "revoke token", made.id)
    click.echo(f"token {made.id} ({printable(made.name)}) is revoked")


def _book(store: str) -> "TokenBook":
    from calibrant.monitor.service.access_tokens import TokenBook
    from calibrant.monitor.store import Store

    return TokenBook(Store(store))


def _known_book(store: str) -> "TokenBook":
    """Return the tokens of a store that exists."""
    check_store(store, "`calibrant serve token create` creates one.")
    return _book(store)


def _record(book: "TokenBook", action: str, token_id: str, **detail: object) -> None:
    from calibrant.monitor.audit_log import record_audit

    record_audit(book.store, command_line_user(), action, None, token=token_id, **detail)
