"""``calibrant``: the group of commands, and how one runs. A command is imported when it runs: ``--help`` is fast."""

import gc
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, NoReturn

try:
    import click
except ModuleNotFoundError:  # pragma: no cover  (an installation without the extra)
    sys.exit('The command line needs click and rich: pip install "calibrant[cli]".')

from calibrant._support.errors import Argument, InputError, nearest
from calibrant.cli.exit_codes import INTERRUPTED, SUCCESS, print_error, report_error
from calibrant.cli.interruptions import watched_signals

_OBJECTS_BETWEEN_COLLECTIONS = 300_000  # imports make many objects, and all of them stay

# `scipy.special` imports all public names of NumPy, and with them these modules and what they load. No command uses
# them; to load them at their first use halves the time of its import.
_UNUSED_MODULES = ("numpy.f2py", "numpy.testing", "numpy.ma")

COMMANDS = {
    "evaluate": "Evaluate the calibration of forecasts: metrics, tests, a verdict.",
    "compare": "Compare the calibration of several forecasts on the same rows.",
    "audit": "Find segments of rows in which forecasts are miscalibrated.",
    "check": "Check forecasts in CI: exit with 1 if they are miscalibrated or exceed a threshold.",
    "fit": "Fit a calibrator to forecasts and outcomes, and save it to a file.",
    "apply": "Apply a calibrator to the forecasts in a file.",
    "export": "Export a calibrator as SQL or ONNX.",
    "monitor": "Monitor calibration over time: store rows, show the status, exit with 1 on an alarm.",
    "serve": "Serve monitored models over HTTP: an API, pages, alarms, metrics; manage access tokens.",
    "demo": "Run the commands on two models of handwritten digits, offline.",
}


# A command is a function in the module of its name, or in one of these.
_MODULES = {"compare": "evaluate", "audit": "evaluate", "fit": "calibrate", "apply": "calibrate", "export": "calibrate"}


class CommandGroup(click.Group):
    """A group of commands. Errors about input name the options of the command that ran."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise click.Abort from None  # without the blank line that click prints
        except InputError as error:
            name = context.invoked_subcommand  # None: the group itself ran
            command = self if name is None else self.get_command(context, name)
            flags = {} if command is None else {str(option.name): _flag(option) for option in command.params}
            raise click.ClickException(error.write(lambda argument: write_option(argument, flags))) from error


def _flag(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name


def write_option(argument: Argument, flags: Mapping[str, str]) -> str:
    """Write an argument as the option of a command; as in Python if the command has no such option."""
    if argument.name not in flags:
        return str(argument)
    value = "" if argument.value is None else f" {shlex.quote(str(argument.value))}"
    return f"{flags[argument.name]}{value}"


class _Commands(CommandGroup):
    """Commands that are imported when they run."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"calibrant.cli.{_MODULES.get(name, name)}"), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command {args[0]!r}.{nearest(args[0], list(COMMANDS))}")
        return super().resolve_command(context, args)


def _print_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from calibrant._support.kernel_choice import describe_kernel
    from calibrant.versions import __version__

    click.echo(f"calibrant {__version__}, kernel: {describe_kernel()}")
    context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def calibrant() -> None:
    """Measure, test and improve the calibration of predictions.

    The commands read predictions from files: Parquet, CSV, JSON lines, folders; - is standard input.

    \b
      calibrant evaluate scores.csv --label outcome --score probability
      calibrant evaluate prices.csv --outcome price --point predicted
      calibrant demo

    Exit codes: 0 success, 1 check failed or alarm, 2 bad input, 3 internal error, 4 out of memory.
    """


class _DeferringFinder:
    """Finds the unused modules as Python does, but loads them when one of their names is used."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _UNUSED_MODULES else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit; after an interruption at once, without waiting for threads that still compute."""
    sys.meta_path.insert(0, _DeferringFinder)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        code = run(arguments)
    except KeyboardInterrupt:  # a further signal, after the command
        code = INTERRUPTED
    if code > 128:
        os._exit(code)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command is complete
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code. Tracebacks are shown only if CALIBRANT_DEBUG is set."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # characters that the terminal cannot encode
    with watched_signals() as received:
        try:
            code = calibrant.main(args=arguments, prog_name="calibrant", standalone_mode=False)
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()
            return code if isinstance(code, int) else SUCCESS
        except BaseException as error:
            if received or isinstance(error, (click.Abort, KeyboardInterrupt)):
                return print_error("interrupted", 128 + received[0] if received else INTERRUPTED)
            return report_error(error)
