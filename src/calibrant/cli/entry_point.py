"""The entry point of the command ``calibrant``: signals and standard streams are ready before anything is imported."""

# The module signal imports others, during which a signal would print a traceback.
import _signal  # type: ignore[import-not-found]
import os
import sys


def main() -> None:
    """Run the command line and exit. A signal ends the process at once until a command runs, which removes its files.

    Signals that the process ignores stay ignored.
    """
    for number in (_signal.SIGINT, _signal.SIGTERM):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _stop)
    _fill_closed_handles()
    from calibrant.cli.main import main as run_command

    run_command()


def _stop(number: int, frame: object) -> None:
    try:
        if sys.stderr is not None:
            os.write(2, b"calibrant: interrupted\n")
    finally:  # standard error may be full
        os._exit(128 + number)


def _fill_closed_handles() -> None:
    """Open the null device as standard input, output and error where they are closed.

    The next file that is opened would get the handle of a closed stream, and text of a library would be written to it.
    """
    handle = os.open(os.devnull, os.O_RDWR)
    while handle <= 2:
        handle = os.open(os.devnull, os.O_RDWR)
    os.close(handle)
