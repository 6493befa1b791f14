"""The name of the person at the command line."""

import getpass

__all__ = ["command_line_user"]


def command_line_user() -> str:
    """Return the name of the person at the command line, for the audit log."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"
