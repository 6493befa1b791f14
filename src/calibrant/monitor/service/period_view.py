"""Two periods of a model side by side: reliability diagram, rates and the verdict of one look at each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from calibrant._support.errors import InputError
from calibrant.evaluation.evaluate import evaluate
from calibrant.kinds.binary.evaluation import LOG_ODDS_ERROR
from calibrant.monitor.history import History
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.service.overview_view import NO_VALUE, percent
from calibrant.monitor.service.page_figures import ResultCache, reliability_figures, table_digest
from calibrant.monitor.time_windows import read_time, to_datetime
from calibrant.results import sentences
from calibrant.results.evaluation import Evaluation
from calibrant.tables.score_table import ScoreTable

__all__ = ["Period", "default_periods", "period_view"]

_FEWEST_WINDOWS = 4
# The interval of the log-odds error and the tests need no replicates; those of other metrics are not shown.
_REPLICATES = 19
NAMES = ("reference period", "period")


@dataclass(frozen=True)
class Period:
    """Windows that start at `since` or later and before `until`; None is no limit."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def read(cls, since: str, until: str, name: str = "") -> "Period":
        """Return the period of two texts, which may be empty."""
        first, last = (
            to_datetime(read_time(text, name + end)) if text.strip() else None
            for text, end in ((since, "since"), (until, "until"))
        )
        if first is not None and last is not None and first >= last:
            raise InputError(
                f"{name}since must lie before {name}until; got {since} and {until}.", argument=f"{name}since"
            )
        return cls(first, last)

    def texts(self, *, hours: bool) -> tuple[str, ...]:
        """Return both limits for inputs of dates, or of dates and hours."""
        form = "%Y-%m-%dT%H:%M" if hours else "%Y-%m-%d"
        return tuple("" if each is None else f"{each:{form}}" for each in (self.since, self.until))


def default_periods(history: History) -> tuple[Period | None, Period]:
    """Return the reference and the period: before and after the estimated change, else before and in the last quarter.

    With few windows there is no reference, and the period is everything.
    """
    change, starts = history.change_point, [w.start for w in history.windows]
    if change is not None and change.window > starts[0]:
        clear = sum(start < change.low for start in starts) >= _FEWEST_WINDOWS
        return Period(None, change.low if clear else change.window), Period(change.window, None)
    if len(starts) < _FEWEST_WINDOWS:
        return None, Period()
    cut = starts[-math.ceil(len(starts) / 4)]
    return (Period(None, cut), Period(cut, None)) if cut > starts[0] else (None, Period())


def period_view(
    monitor: Monitor, periods: Mapping[str, Period], cache: ResultCache, *, version: str | None, group: Any = None
) -> dict[str, Any]:
    """Return the figures and one row per period; `error` says why a period cannot be shown."""
    tables, errors = {}, []
    for name, period in periods.items():
        try:
            tables[name] = monitor.table(period.since, period.until, group=group, version=version)
        except InputError as error:
            errors.append(f"{name}: {error}")
    margin = monitor.settings.margin
    evaluations = {
        name: cache.get(("evaluation", table_digest(table), margin), partial(_evaluate, table, margin))
        for name, table in tables.items()
    }
    return {
        "figures": reliability_figures(tables, cache) if tables else {},
        "rows": [_row(name, tables[name], e) for name, e in evaluations.items()],
        "errors": errors,
    }


def _evaluate(table: ScoreTable, margin: float) -> Evaluation:
    return evaluate(table, margin=margin, n_resamples=_REPLICATES)


def _row(name: str, table: ScoreTable, e: Evaluation) -> dict[str, Any]:
    interval = e.metrics[LOG_ODDS_ERROR].interval
    shown = NO_VALUE if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
    return {
        "name": name,
        "verdict": e.verdict,
        "direction": e.direction,
        "tone": sentences.tone(e.verdict),
        "rows": f"{table.size:,}",
        "predicted": percent(float((table.score * table.n).sum() / table.n.sum())),
        "observed": percent(table.prevalence),
        "log_odds_error": f"{e.metrics[LOG_ODDS_ERROR].value:.2f}",
        "interval": shown,
    }
