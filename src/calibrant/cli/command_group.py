"""`CommandGroup`: a group of commands whose errors about input name the options of the command."""

import shlex
from typing import Any

import click

from calibrant._support.errors import Argument, InputError

__all__ = ["CommandGroup", "write_option"]


class CommandGroup(click.Group):
    """A group of commands. Errors about input name the options of the command that ran."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise click.Abort from None  # without the blank line that click prints
        except InputError as error:
            own = context.invoked_subcommand is None  # a group that does something without a command
            command = self if own else self.get_command(context, str(context.invoked_subcommand))
            names = {} if command is None else {str(each.name): _option_name(each) for each in command.params}
            raise click.ClickException(error.write(lambda argument: write_option(argument, names))) from error


def _option_name(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name


def write_option(argument: Argument, names: dict[str, str]) -> str:
    """Write an argument as the option of a command; as in Python if the command has no such option."""
    if argument.name not in names:
        return str(argument)
    value = "" if argument.value is None else f" {shlex.quote(str(argument.value))}"
    return f"{names[argument.name]}{value}"
