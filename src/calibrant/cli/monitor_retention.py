"""``calibrant monitor forget``, ``compact`` and ``delete``: less data in the store."""

import click

from calibrant._support.formatting import printable
from calibrant.cli.monitor import existing_model, model_option, store_of_model, store_option
from calibrant.cli.options import parse_step
from calibrant.cli.user_name import command_line_user

__all__ = ["compact", "delete", "forget"]


@click.command
@store_option
@model_option
@click.option("--before", required=True, metavar="TIME", help="End of the last window to merge, such as 2026-01-31.")
def forget(store: str, model: str, before: str) -> None:
    """Merge the tables of old windows; delete old predictions and the ids of old batches. Evidence stays.

    \b
      calibrant monitor forget --store monitor.db --model churn --before 2026-01-31
    """
    from calibrant.monitor.audit_log import record_audit

    own = existing_model(store, model)
    with own.store.transaction():
        merged = own.forget(before)
        record_audit(own.store, command_line_user(), "forget windows", model, before=before)
    click.echo(f"{merged:,} tables were merged")


@click.command
@store_option
@model_option
@click.option("--resolution", required=True, type=parse_step, metavar="STEP", help="Such as 2**-20.")
def compact(store: str, model: str, resolution: float) -> None:
    """Round the scores of closed windows, which takes less space. Evidence stays.

    \b
      calibrant monitor compact --store monitor.db --model churn --resolution 2**-20
    """
    from calibrant.monitor.audit_log import record_audit

    own = existing_model(store, model)
    with own.store.transaction():
        before, after = own.compact(resolution)
        record_audit(own.store, command_line_user(), "compact windows", model, resolution=resolution)
    click.echo(f"{before:,} distinct scores became {after:,}")


@click.command
@store_option
@click.option("--model", required=True, metavar="NAME", help="The model.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(store: str, model: str, yes: bool) -> None:
    """Delete a model with all its data.

    \b
      calibrant monitor delete --store monitor.db --model churn
    """
    from calibrant.monitor.audit_log import record_audit

    own = store_of_model(store, model)
    if not yes:
        click.confirm(f"Delete model {printable(model)!r} with all its data?", abort=True, err=True)
    with own.transaction():
        own.delete(model)
        record_audit(own, command_line_user(), "delete model", model)
    click.echo(f"model {printable(model)} is deleted")
