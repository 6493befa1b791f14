"""``calibrant monitor acknowledge`` and ``calibrant monitor silence``."""

from datetime import UTC, datetime, timedelta

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.formatting import printable
from calibrant.cli.monitor import existing_model, model_option, parse_duration, store_option
from calibrant.cli.user_name import command_line_user

__all__ = ["acknowledge", "silence"]

_reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why; it is stored.")


@click.command
@store_option
@model_option
@click.option("--alarm", type=int, required=True, metavar="ID", help="The number of the alarm, as status shows it.")
@_reason_option
def acknowledge(store: str, model: str, alarm: int, reason: str) -> None:
    """Acknowledge an alarm with a reason. It stays in the list of alarms.

    \b
      calibrant monitor acknowledge --store monitor.db --model churn --alarm 3 --reason "new price list"
    """
    own = existing_model(store, model)
    from calibrant.monitor.audit_log import record_audit

    with own.store.transaction():
        own.acknowledge(alarm, reason)
        record_audit(own.store, command_line_user(), "acknowledge alarm", model, alarm=alarm, reason=reason)
    click.echo(f"alarm {alarm} is acknowledged")


@click.command
@store_option
@model_option
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
    own = existing_model(store, model).store
    from calibrant.monitor.audit_log import record_audit
    from calibrant.monitor.silences import end_silence, list_silences, silence_model

    who = command_line_user()
    if end is not None:
        with own.transaction():
            end_silence(own, model, end)
            record_audit(own, who, "end silence", model, silence=end)
        click.echo(f"silence {end} is over")
    elif duration is not None:
        if reason is None:
            raise InputError(Argument("reason") + " must be given.")
        with own.transaction():
            found = silence_model(own, model, datetime.now(UTC) + duration, reason, who)
            detail = {"silence": found.id, "until": found.until.isoformat(), "reason": reason}
            record_audit(own, who, "silence model", model, **detail)
        click.echo(f"silence {found.id} until {found.until:%Y-%m-%d %H:%M} UTC")
    else:
        for each in list_silences(own, model):
            state = "active" if each.active else "over"
            click.echo(f"silence {each.id}: {state}, until {each.until:%Y-%m-%d %H:%M} UTC: {printable(each.reason)}")
