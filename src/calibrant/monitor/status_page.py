"""The page of a monitored model: status, figure, groups and windows as one self-contained HTML page."""

import json
from os import PathLike
from typing import Any

from calibrant.monitor.history import History
from calibrant.monitor.status import Status
from calibrant.report import write_page
from calibrant.report.templates import inline_figure, new_canvas, render
from calibrant.versions import __version__

__all__ = ["monitor_section", "write_status"]


def monitor_section(status: Status, history: History) -> dict[str, Any]:
    """Return what the section of a monitored model shows, here and in the report of an evaluation."""
    figures = []
    if len(history):
        figures.append(inline_figure(history.plot(fig=new_canvas(6.4, 5.2)), "monitor"))
    return {
        "tone": "bad" if status.alarm else "good",
        "headline": status.headline,
        "sentences": status.sentences(),
        "alarms": status.alarm_lines(),
        "figures": figures,
        "groups": status.cells(),
        "windows": history.cells(),
        "notes": [note.text for note in status.notes],
        "settings": json.dumps(dict(status.settings), indent=1),
    }


def write_status(status: Status, history: History, path: str | PathLike[str] | None, *, title: str) -> str:
    """Return the page; write it to `path` if given."""
    section = monitor_section(status, history)
    return write_page(render("monitor_page.html", title=title, version=__version__, monitor=section), path)
