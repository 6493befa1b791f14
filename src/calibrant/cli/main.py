"""``calibrant``: the command, its commands, and what an error looks like and exits with.

Exit codes: 0 fine, 1 a gate failed, 2 bad input or usage, 3 an error inside Calibrant. Nothing heavy is imported before
a command runs, so that ``--help`` answers at once.
"""

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

try:
    import click
except ModuleNotFoundError:  # pragma: no cover  (an installation without the extra)
    sys.exit('The command line needs click and rich: pip install "calibrant[cli]".')

if TYPE_CHECKING:
    from calibrant._support.errors import InputError

__all__ = ["main"]

OK, GATE_FAILED, BAD_INPUT, INTERNAL = 0, 1, 2, 3
INTERRUPTED, CLOSED_PIPE = 130, 141  # as a shell has it

# Each in a module of its own, imported when it is run or asked for help.
_COMMANDS = {
    "evaluate": ("evaluate", "Can the scores in these files be believed? Metrics, intervals, a verdict."),
    "compare": ("compare", "Which of several scores is better calibrated, on the same rows?"),
    "check": ("check", "A gate for CI: exit 1 when scores are miscalibrated, or past a threshold."),
    "fit": ("repair", "Learn a calibrator from scores and outcomes, and keep it in a file."),
    "apply": ("repair", "Calibrate the scores in a file."),
    "export": ("repair", "A calibrator as SQL or ONNX."),
    "demo": ("demo", "The whole story on handwritten digits, offline."),
}


class _Commands(click.Group):
    """Commands that are imported when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"calibrant.cli.{_COMMANDS[name][0]}"), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from calibrant._support.errors import nearest

            raise click.UsageError(f"There is no command {args[0]!r}.{nearest(args[0], list(_COMMANDS))}")
        return super().resolve_command(context, args)


def _version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from calibrant._kernels import KERNEL
    from calibrant.versions import __version__

    click.echo(f"calibrant {__version__} ({KERNEL} kernel)")
    context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show it and exit.")
def calibrant() -> None:
    """Can the probabilities that a model prints be believed?

    Commands read predictions from files: Parquet, CSV, JSON lines, folders; - is standard input. A first look:

    \b
      calibrant evaluate scores.csv --label happened --score probability
      calibrant demo

    Exit codes: 0 fine, 1 the gate of check failed, 2 bad input, 3 an error inside calibrant.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line, and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line: the exit code. Users never see a traceback, unless they set CALIBRANT_DEBUG."""
    from calibrant._support.errors import InputError

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal has no letters for
    try:
        code = calibrant.main(args=arguments, prog_name="calibrant", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except InputError as error:
        return _failed(as_options(error), BAD_INPUT)
    except ModuleNotFoundError as error:
        if "pip install" not in str(error):
            return _internal(error)
        return _failed(str(error), BAD_INPUT)
    except (BrokenPipeError, SystemExit):  # click and rich exit when whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE
    except OSError as error:
        about = f": {os.path.basename(error.filename)}" if isinstance(error.filename, str) else ""
        return _failed(f"{error.strerror or error}{about}", BAD_INPUT)
    except Exception as error:
        return _internal(error)


_OPTIONS = {
    "n_resamples": "--replicates",
    "random_state": "--seed",
    "confidence_level": "--confidence",
    "n_bins": "--bins",
    "margin": "--margin",
    "alpha": "--alpha",
    "pos_label": "--pos-label",
    "sample_weight": "--weight",
    "frequency": "--frequency",
}


def as_options(error: "InputError") -> str:
    """What the library says of its arguments, said of the command's options: missing='drop' is --missing drop."""
    said = str(error).removesuffix(error.hint)
    option = _OPTIONS.get(error.argument or "")
    if option and said.startswith(f"{error.argument} "):
        said = option + said.removeprefix(str(error.argument))
    hint = error.hint.replace("format='parquet', 'csv' or 'json'", "--format parquet, csv or json")
    hint = re.sub(
        r"\b(missing|pos_label)=(?:'([^']*)'|(\S+))",
        lambda found: f"--{found[1].replace('_', '-')} {found[2] or found[3]}",
        hint,
    )
    hint = hint.replace("resolution=2**-20", "--resolution 2**-20").replace(" on the command line", "")
    hint = re.sub(r"\bsample_weight\b", "--weight", hint)
    hint = hint.replace("with pos_label.", "with --pos-label.").replace(
        "Mind the type: the text '1' is not the number 1.", "Mind capital letters and blanks."
    )
    return said + hint


def _failed(text: str, code: int) -> int:
    shown = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    click.echo(f"calibrant: {shown}", err=True)
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("CALIBRANT_DEBUG"):
        raise error
    text = f"an error inside calibrant, which should not happen: {type(error).__name__}: {error}"
    return _failed(f"{text}\nSet CALIBRANT_DEBUG=1 to see where; please report it.", INTERNAL)
