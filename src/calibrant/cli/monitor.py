"""``calibrant monitor``: store rows, show status and history, handle alarms, export and forget."""

import getpass
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.formatting import printable
from calibrant.cli.command_files import check_outputs, write_text
from calibrant.cli.exit_codes import CHECK_FAILED, SUCCESS
from calibrant.cli.inputs import Source
from calibrant.cli.main import CommandGroup
from calibrant.cli.options import Decorator, add_options, force_option, input_options, parse_step

if TYPE_CHECKING:
    from calibrant.monitor.model import Monitor
    from calibrant.monitor.status import Status

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta:
    """Return a duration, such as 90m, 36h, 2d or 1w."""
    found = re.fullmatch(r"\s*([0-9]{1,6})\s*([mhdw])\s*", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration, such as 36h or 2d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def parse_window(text: str) -> str | int:
    """Return a kind of window, or a number of rows."""
    return int(text) if text.isdecimal() else text


store_option: Decorator = click.option(
    "--store", required=True, metavar="STORE", help="A SQLite file, or a URL such as postgresql+psycopg://user@host/db."
)
_model_option = click.option("--model", metavar="NAME", default="default", show_default=True, help="The model.")


def _format_option(*formats: str, help: str | None = None) -> Decorator:
    return click.option("--format", type=click.Choice(formats), default=formats[0], show_default=True, help=help)


_version_option = click.option("--version", metavar="NAME", help="Version of the model. Default: the latest.")
# The options of the settings of a model, by the names of the settings.
_SETTINGS: dict[str, dict[str, Any]] = {
    "window": {"type": parse_window, "show_default": "day", "help": "hour, day, week, or a number of rows."},
    "alpha": {"type": float, "show_default": "0.05", "help": "Probability that a calibrated model ever alarms."},
    "margin": {"type": float, "show_default": "0.1", "help": "Largest log-odds error that does not matter."},
    "dependence": {"metavar": "KIND", "show_default": "window", "help": "window, any or independent."},
    "window_effect": {"type": float, "show_default": "0.2", "help": "Standard deviation of the window effect."},
    "maturity": {"type": parse_duration, "metavar": "TIME", "help": "Keep windows open: 36h, 2d. Default: 0."},
    "resolution": {"type": parse_step, "metavar": "STEP", "help": "Round scores to a grid, such as 2**-20."},
}


_settings_options = add_options(
    *(click.option(f"--{name.replace('_', '-')}", **about) for name, about in _SETTINGS.items())
)


@click.group(cls=CommandGroup)
def monitor() -> None:
    """Monitor calibration over time, with alarms that stay valid however often one looks.

    Rows are stored with a time, and counted by window and group. Exit codes of observe and status: 0 no alarm, 1 alarm,
    2 bad input or store.

    \b
      calibrant monitor observe day.csv --store monitor.db -y outcome -p probability --time made_at --batch 2026-01-31
      calibrant monitor status --store monitor.db
      calibrant monitor report --store monitor.db --html monitor.html
    """


@monitor.command
@input_options(("p",), counted=False)
@store_option
@_model_option
@_version_option
@click.option("--time", required=True, metavar="COLUMN", help="The column of times; times without a zone are UTC.")
@click.option("--group", multiple=True, metavar="COLUMN", help="A column of groups; can be repeated.")
@click.option("--batch", metavar="ID", help="Id of these rows: rows of a known id are not stored again.")
@_settings_options
def observe(
    store: str, model: str, version: str | None, time: str, group: tuple[str, ...], batch: str | None, **given: Any
) -> int:
    """Store the rows of FILES, and close the windows that are complete.

    The settings of a model (--window to --resolution) are stored with its first rows and never change.

    \b
      calibrant monitor observe day.csv --store monitor.db -y outcome -p probability --time made_at --group country
    """
    source = Source.take({**given, "resolution": None})
    settings = {name: given[name] for name in _SETTINGS}
    if len(set(source.forecasts[source.option])) != 1 or source.weighting is not None:
        raise InputError(
            Argument("p") + " must be given once, and rows must have no weights or frequencies.",
            hint="Monitor each score as a model of its own: --model NAME.",
        )
    from calibrant.monitor.model import Monitor
    from calibrant.monitor.model_settings import ModelSettings
    from calibrant.monitor.observations import RowChunk

    rows = source.read_rows(time, *group)
    (forecast,) = rows.models
    rows = rows.without_missing(forecast)
    groups = {name: rows.columns[name].values for name in group}
    by = None if not groups else groups if len(groups) > 1 else groups[group[0]]
    events, scores, times = rows.y.values, rows.values(forecast), rows.columns[time].values
    # Rows are checked before the model is created with its settings.
    chunk = RowChunk.read(ModelSettings().read_rows(events, scores, None), times, by)
    own = Monitor(store, model=model, **settings)
    _check_groups(own, chunk.groups if group else ())
    receipt = own.observe(events, scores, time=times, group=by, batch=batch, version=version)
    if receipt.repeated_batch:
        click.echo(f"batch {batch!r} was stored before; nothing was stored")
        if own.status(version=version).alarm:
            click.echo("ALARM: there is one that nobody has acknowledged")
            return CHECK_FAILED
    else:
        late = f", {receipt.n_late:,} of them late" if receipt.n_late else ""
        click.echo(f"{receipt.n_rows:,} rows stored{late}; {receipt.n_closed:,} windows closed")
    for note in rows.notes:
        click.echo(f"  note: {note.text}")
    for subject in receipt.alarms:
        click.echo(f"ALARM: {'all rows' if subject is None else f'group {printable(str(subject))}'}")
    return CHECK_FAILED if receipt.alarms else SUCCESS


def _check_groups(own: "Monitor", keys: Sequence[str]) -> None:
    """Raise an error for groups of another type than those of the store: CSV has 1 as text, Parquet as a number."""
    from calibrant.monitor.observations import group_label

    stored = [_parts(label) for label in own.groups()]
    for label in map(group_label, keys):
        given = _parts(label)
        for position, part in enumerate(given):
            are_texts = {isinstance(other[position], str) for other in stored if len(other) == len(given)}
            if are_texts and isinstance(part, str) not in are_texts:
                need, got = ("numbers", "text") if isinstance(part, str) else ("text", "a number")
                raise InputError(
                    Argument("group") + f" must hold {need}, as the groups stored for model {own.model!r}; got "
                    f"{got}, {part!r}: it would be another group.",
                    hint="CSV files have text, other formats have types. Convert the column, or use one format.",
                )


def _parts(label: Any) -> tuple[Any, ...]:
    return label if isinstance(label, tuple) else (label,)


@monitor.command
@store_option
@click.option("--model", metavar="NAME", help="The model. Default: all models of the store.")
@_format_option("text", "json", "junit", help="JUnit has a test case per model and group.")
@_version_option
def status(store: str, model: str | None, format: str, version: str | None) -> int:
    """Show alarms and evidence; exit with 1 if there is an alarm that was not acknowledged.

    Alarms of all versions are shown; rates and evidence are those of one version.

    \b
      calibrant monitor status --store monitor.db --model churn --version 2
      calibrant monitor status --store monitor.db --format junit > monitor.xml
    """
    if version is not None and model is None:
        raise InputError(Argument("model") + " must be given with " + Argument("version") + ": each has its own.")
    statuses = [_status(store, name, version) for name in _models(store, model)]
    alarm = any(status.alarm for status in statuses)
    if format == "json":
        models = {status.model: status.to_dict() for status in statuses}
        result = {"schema_version": 2, "result": "monitor", "alarm": alarm, "models": models}
        click.echo(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
    elif format == "junit":
        from calibrant.cli.check import junit_xml

        click.echo(junit_xml([gate for status in statuses for gate in _gates(status)], "calibrant monitor"))
    else:
        click.echo("\n\n".join(printable(repr(status), keep="\n") for status in statuses))
    return CHECK_FAILED if alarm else SUCCESS


@monitor.command
@store_option
@_model_option
@_version_option
@click.option("--group", metavar="LABEL", help="A group, as text or as JSON. Default: all rows.")
@click.option("--event", metavar="LABEL", help="A class or a level of forecasts that are not binary.")
@_format_option("text", "json")
def history(store: str, model: str, version: str | None, group: str | None, event: str | None, format: str) -> None:
    """Show rows, rates and evidence of each window.

    A group of several columns is given as JSON. Of the groups 3 and "3", JSON tells which one: 3 or '"3"'.

    \b
      calibrant monitor history --store monitor.db --group north --format json
      calibrant monitor history --store monitor.db --group '["north", 3]'
    """
    own = _open(store, model)
    chosen = None if group is None else _label(own.groups(), group, "group")
    events = [label for label in own.settings.events.values() if label is not None]  # binary forecasts have none
    windows = own.history(chosen, version=version, event=None if event is None else _label(events, event, "event"))
    click.echo(windows.to_json() if format == "json" else printable(repr(windows), keep="\n"))


@monitor.command
@store_option
@_model_option
@click.option("--html", required=True, metavar="FILE", help="The page to write; - is standard output.")
@force_option
def report(store: str, model: str, html: str, force: bool) -> None:
    """Write status, figure and windows as one self-contained HTML page.

    \b
      calibrant monitor report --store monitor.db --html monitor.html
    """
    check_outputs(html, inputs=(store.rpartition(":///")[2],), force=force)
    write_text(html, _open(store, model).to_html().rstrip("\n"))


@monitor.command
@store_option
@_model_option
@click.option("--folder", required=True, metavar="FOLDER", help="A new or empty folder.")
def export(store: str, model: str, folder: str) -> None:
    """Write settings (JSON), tables, history and alarms (Parquet) to a folder.

    \b
      calibrant monitor export --store monitor.db --folder exported
    """
    for path in _open(store, model).export(folder):
        click.echo(str(path))


def _label(known: list[Any], text: str, name: str) -> Any:
    """Return the label that a text means: the one that is written so, or the one whose JSON it is."""
    from calibrant.monitor.observations import group_key

    by_json = {group_key(label): label for label in known}
    written = [label for label in known if str(label) == text]
    if text in by_json and len(written) != 1:
        return by_json[text]
    if len(written) == 1:
        return written[0]
    keys = ", ".join(by_json if not written else map(group_key, written))
    need = "in JSON, because several labels are written so" if written else "a label of the model"
    raise InputError(Argument(name) + f" must be {need}: {keys or 'it has none'}; got {text!r}.")


def command_line_user() -> str:
    """Return the name of the person at the command line, for the audit log."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"


def check_store(store: str, hint: str) -> None:
    """Raise an error if a store that is a file does not exist: only commands that write rows or tokens create one."""
    from calibrant.monitor.store import store_file

    path = store_file(store)
    if path is not None and not Path(path).is_file():
        raise InputError(f"There is no store {Path(path).name!r}.", hint=hint)


def _models(store: str, model: str | None) -> list[str]:
    """Return the named model, or all; an error if there is none. Reading creates neither store nor model."""
    from calibrant.monitor.store import Store

    check_store(store, "`calibrant monitor observe` creates one.")
    known = Store(store).models()
    if not known and model is None:
        raise InputError("The store has no model.", hint="`calibrant monitor observe` stores the rows of one.")
    if model is not None and model not in known:
        shown = ", ".join(map(repr, known)) or "none"
        raise InputError(Argument("model") + f" must be a model of the store, which has {shown}; got {model!r}.")
    return known if model is None else [model]


def _open(store: str, model: str) -> "Monitor":
    """Return the monitor of a model that the store has."""
    from calibrant.monitor.model import Monitor

    return Monitor(store, model=_models(store, model)[0])


def _status(store: str, model: str, version: str | None) -> "Status":
    """Return the status of a model; an error about what the store has of it names the model."""
    from calibrant.monitor.model import Monitor
    from calibrant.monitor.schema import StoreError

    try:
        return Monitor(store, model=model).status(version=version)
    except StoreError as error:
        raise StoreError(f"Model {model!r} cannot be read; --model shows the others. {error}") from error


def _gates(status: "Status") -> list[Any]:
    """Return one gate for all rows and one per group."""
    from calibrant.cli.check import Gate

    alarms = {alarm.group: alarm for alarm in status.open_alarms}
    gates = []
    for group in dict.fromkeys([None, *status.groups, *alarms]):
        alarm = alarms.get(group)
        text = "no alarm" if alarm is None else f"alarm raised by window {alarm.window:%Y-%m-%d %H:%M}"
        name = None if group is None else f"group = {group}"
        gates.append(Gate(status.model, name, "must have no alarm", alarm is None, text))
    return gates


@monitor.command
@store_option
@_model_option
@click.option("--alarm", type=int, required=True, metavar="ID", help="The number of the alarm, as status shows it.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is stored.")
def acknowledge(store: str, model: str, alarm: int, reason: str) -> None:
    """Acknowledge an alarm with a reason. It stays in the list of alarms.

    \b
      calibrant monitor acknowledge --store monitor.db --model churn --alarm 3 --reason "new price list"
    """
    own = _open(store, model)
    with own.store.act(command_line_user(), "acknowledge alarm", model, alarm=alarm, reason=reason):
        own.acknowledge(alarm, reason)
    click.echo(f"alarm {alarm} is acknowledged")


@monitor.command
@store_option
@_model_option
@click.option("--for", "duration", type=parse_duration, metavar="TIME", help="How long: 90m, 36h, 2d.")
@click.option("--reason", metavar="TEXT", help="Why; it is stored.")
@click.option("--end", type=int, metavar="ID", help="End this silence now.")
def silence(store: str, model: str, duration: timedelta | None, reason: str | None, end: int | None) -> None:
    """Send no notifications of a model's alarms for some time; without options list its silences.

    Alarms are raised and listed as before. Those that nobody acknowledged are sent when the silence is over.

    \b
      calibrant monitor silence --store monitor.db --model churn --for 2d --reason "migration of the labels"
      calibrant monitor silence --store monitor.db --model churn --end 1
    """
    opened, who = _open(store, model).store, command_line_user()
    from calibrant.monitor.alarm_log import end_silence, list_silences, silence_model

    if end is not None:
        with opened.act(who, "end silence", model, silence=end):
            end_silence(opened, model, end)
        click.echo(f"silence {end} is over")
    elif duration is not None:
        if reason is None:
            raise InputError(Argument("reason") + " must be given.")
        with opened.act(who, "silence model", model) as detail:
            made = silence_model(opened, model, datetime.now(UTC) + duration, reason, who)
            detail |= {"silence": made.id, "until": made.until.isoformat(), "reason": reason}
        click.echo(f"silence {made.id} until {made.until:%Y-%m-%d %H:%M} UTC")
    else:
        for listed in list_silences(opened, model):
            state, until = "active" if listed.active else "over", f"{listed.until:%Y-%m-%d %H:%M} UTC"
            click.echo(f"silence {listed.id}: {state}, until {until}: {printable(listed.reason)}")


@monitor.command
@store_option
@_model_option
@click.option("--before", required=True, metavar="TIME", help="End of the last window to merge, such as 2026-01-31.")
def forget(store: str, model: str, before: str) -> None:
    """Merge the tables of old windows; delete old predictions and the ids of old batches. Evidence stays.

    \b
      calibrant monitor forget --store monitor.db --model churn --before 2026-01-31
    """
    own = _open(store, model)
    with own.store.act(command_line_user(), "forget windows", model, before=before):
        n_merged = own.forget(before)
    click.echo(f"{n_merged:,} tables were merged")


@monitor.command
@store_option
@_model_option
@click.option("--resolution", required=True, type=parse_step, metavar="STEP", help="Such as 2**-20.")
def compact(store: str, model: str, resolution: float) -> None:
    """Round the scores of closed windows, which takes less space. Evidence stays.

    \b
      calibrant monitor compact --store monitor.db --model churn --resolution 2**-20
    """
    own = _open(store, model)
    with own.store.act(command_line_user(), "compact windows", model, resolution=resolution):
        before, after = own.compact(resolution)
    click.echo(f"{before:,} distinct scores became {after:,}")


@monitor.command
@store_option
@click.option("--model", required=True, metavar="NAME", help="The model.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(store: str, model: str, yes: bool) -> None:
    """Delete a model with all its data.

    \b
      calibrant monitor delete --store monitor.db --model churn
    """
    from calibrant.monitor.store import Store

    _models(store, model)  # its content may be damaged, so it is not opened
    opened = Store(store)
    if not yes:
        click.confirm(f"Delete model {printable(model)!r} with all its data?", abort=True, err=True)
    with opened.act(command_line_user(), "delete model", model):
        opened.delete(model)
    click.echo(f"model {printable(model)} is deleted")
