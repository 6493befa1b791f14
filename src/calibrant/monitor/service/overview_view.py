"""The list of models: what its page shows, as plain data."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from calibrant.monitor.model_summaries import ModelSummary
from calibrant.monitor.service.page_links import PageLinks
from calibrant.monitor.time_windows import window_text

__all__ = ["NO_VALUE", "SORTS", "evidence_share", "overview_view", "percent", "sparkline"]

NO_VALUE = "\N{EN DASH}"
_MODELS_PER_PAGE = 50
_SHOWN_GROUPS = 3
_TONES = {"alarm": "bad", "acknowledged": "open", "no alarm": "good", "no evidence": "plain"}
_WORST_FIRST = {state: place for place, state in enumerate(_TONES)}

# Name and heading of each order, and its key; models without a value come last.
SORTS: dict[str, tuple[str, Callable[[ModelSummary], Any]]] = {
    "state": ("state", lambda m: (_WORST_FIRST[m.state], -evidence_share(m), m.model.casefold())),
    "name": ("model", lambda m: m.model.casefold()),
    "evidence": ("evidence", lambda m: -evidence_share(m)),
    "window": ("last closed window", lambda m: math.inf if m.last_window is None else -m.last_window.timestamp()),
    "rows": ("rows", lambda m: -m.n_rows),
    "unlabelled": ("unlabelled", lambda m: math.inf if math.isnan(m.unlabelled) else -m.unlabelled),
}


def overview_view(
    summaries: Sequence[ModelSummary], links: PageLinks, *, search: str = "", sort: str = "state", page: int = 1
) -> dict[str, Any]:
    """Return the data of the page: the models whose name contains `search`, in an order, `page` of them."""
    sort = sort if sort in SORTS else "state"
    found = sorted((m for m in summaries if search.casefold() in m.model.casefold()), key=SORTS[sort][1])
    pages = max(1, math.ceil(len(found) / _MODELS_PER_PAGE))
    page = min(max(page, 1), pages)
    shown = found[(page - 1) * _MODELS_PER_PAGE : page * _MODELS_PER_PAGE]
    alarms = sum(m.state == "alarm" for m in summaries)
    return {
        "headline": _headline(alarms, len(summaries)),
        "tone": "bad" if alarms else "good" if summaries else "plain",
        "n_alarms": alarms,
        "n_models": len(summaries),
        "n_found": len(found),
        "rows": [_row(m, links) for m in shown],
        "headings": {
            name: {"text": text, "link": links.overview(q=search, sort=name), "current": name == sort}
            for name, (text, _) in SORTS.items()
        },
        "search": search,
        "sort": sort,
        "hidden": links.hidden(),
        "pages": [
            {"number": i, "link": links.overview(q=search, sort=sort, page=i), "current": i == page}
            for i in range(1, pages + 1)
        ],
        "clear": links.overview(sort=sort),
    }


def _headline(alarms: int, models: int) -> str:
    if not models:
        return "No model is monitored"
    if models == 1:
        return "Alarm" if alarms else "No alarm"
    return f"Alarm for {alarms:,} of {models:,} models" if alarms else f"No alarm for {models:,} models"


def _row(m: ModelSummary, links: PageLinks) -> dict[str, Any]:
    groups = [str(group) for group in m.alarms if group is not None]
    more = len(groups) - _SHOWN_GROUPS
    return {
        "name": m.model,
        "link": links.model(m.model),
        "state": m.state,
        "tone": _TONES[m.state],
        "evidence": f"{m.log_e_value:.2f}" if m.n_windows else NO_VALUE,
        "threshold": f"{m.threshold:.2f}",
        "share": evidence_share(m),
        "spark": sparkline(m.evidence, m.threshold),
        "last_window": NO_VALUE if m.last_window is None else window_text(m.last_window, m.window),
        "rows": f"{m.n_rows:,}",
        "open_rows": f"{m.n_open_rows:,}",
        "predicted": percent(m.predicted),
        "observed": percent(m.observed),
        "unlabelled": percent(m.unlabelled, 1),
        "silenced": None if m.silenced is None or m.silenced <= datetime.now(UTC) else f"{m.silenced:%Y-%m-%d %H:%M}",
        "groups": groups[:_SHOWN_GROUPS],
        "more_groups": max(more, 0),
    }


def evidence_share(m: Any) -> float:
    """Return the log e-value as a share of its threshold, from 0 to 1."""
    return min(max(m.log_e_value / m.threshold, 0.0), 1.0) if math.isfinite(m.log_e_value) else 1.0


def percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage; a dash if there is none."""
    return f"{100 * share:.{digits}f} %" if math.isfinite(share) else NO_VALUE


def sparkline(values: Sequence[float], threshold: float, width: int = 120, height: int = 30) -> dict[str, Any] | None:
    """Return the points of a small curve, the height of the threshold and the last point; None for fewer than two.

    Values beyond twice the threshold are drawn there, so that the way to the threshold stays visible.
    """
    if len(values) < 2:
        return None
    top = 2 * threshold
    drawn = [min(max(value, -0.5 * threshold), top) for value in values]
    low, high = min(0.0, *drawn), max(threshold, *drawn)
    margin = 3.0

    def y(value: float) -> float:
        return round(margin + (height - 2 * margin) * (high - value) / (high - low), 1)

    xs = [round(margin + (width - 2 * margin) * i / (len(drawn) - 1), 1) for i in range(len(drawn))]
    points = " ".join(f"{x:g},{y(value):g}" for x, value in zip(xs, drawn, strict=True))
    last = {"x": xs[-1], "y": y(drawn[-1])}
    return {"width": width, "height": height, "points": points, "threshold": y(threshold), "last": last}
