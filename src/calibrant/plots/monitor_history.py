"""`MonitorDisplay`: predicted and observed rates over time, and the evidence against calibration below them."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import FigureBase

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant.metrics.significance import clopper_pearson
from calibrant.plots import canvas
from calibrant.plots.display import Display

_MANY_WINDOWS = 120  # more are drawn finer
_SMOOTHED = 60  # with more windows, the observed rate of several windows together is drawn too
_FIRST_DAY, _LAST_DAY = -719_000.0, 2_900_000.0  # matplotlib draws the years 1 to 9999
_GAP = 3.5  # times the usual distance between windows: the line of predictions ends there


@dataclass(eq=False, repr=False)
class MonitorDisplay(Display):
    """Rates and evidence of a monitored model over time; `Monitor.plot` and `History.plot` create it.

    Above, the mean score and the event rate of each window with its exact 95 % confidence interval; of more than 60
    windows also the event rate of several windows together. Below, the log e-value of all windows so far, the threshold
    of an alarm, and the estimated time of the change with its interval. The threshold of a group depends on the other
    groups, because they are tested together.

    Attributes
    ----------
    history : History
    figure_, rates_, evidence_
        After drawing: the figure and the axes of both panels. `data` has one row per window.

    See Also
    --------
    Monitor

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> monitor = cb.Monitor(f"{folder.name}/store.db", window="day")
    >>> for day in range(1, 4):
    ...     p = rng.random(200)
    ...     stored = monitor.observe(rng.random(200) < p, p, time=f"2026-01-{day:02}")
    >>> display = monitor.plot()
    >>> len(display.data())
    3
    >>> folder.cleanup()
    """

    history: Any

    @classmethod
    def from_history(cls, history: Any) -> "MonitorDisplay":
        """Return the display of a history, which must have at least one window.

        Parameters
        ----------
        history : History
            Result of `Monitor.history`.

        Returns
        -------
        MonitorDisplay
        """
        if not len(history):
            raise InputError("history must have at least one window to be drawn; got none.")
        return cls(history)

    def plot(self, *, fig: FigureBase | None = None) -> Self:
        """Draw in `fig`, or in a new figure.

        Parameters
        ----------
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        MonitorDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.figure_, grid = canvas.panels(None, fig, heights=(1.35, 1.0), size=(9.0, 5.8))
        self.rates_: Axes = self.figure_.add_subplot(grid[0, 0])
        self.evidence_: Axes = self.figure_.add_subplot(grid[1, 0], sharex=self.rates_)
        self._draw_rates()
        self._draw_evidence()
        for ax in (self.rates_, self.evidence_):
            self._mark_change(ax)
            canvas.dress(ax)
            ax.margins(x=0.02)
        low, high = self.rates_.get_xlim()
        self.rates_.set_xlim(max(low, _FIRST_DAY), min(high, _LAST_DAY))
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        self.evidence_.xaxis.set_major_locator(locator)
        self.evidence_.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        self.rates_.tick_params(labelbottom=False)
        return self

    def _draw_rates(self) -> None:
        ax, values = self.rates_, self._values()
        x, low, high = values["start"], 100 * values["low"], 100 * values["high"]
        observed, predicted = 100 * values["observed"], 100 * values["predicted"]
        colour, many = canvas.event_colour(), len(x) > _MANY_WINDOWS
        ax.vlines(x, low, high, color=colour, lw=0.5 if many else 0.9, alpha=0.25 if many else 0.45)
        style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 2.2 if many else 3.2, "mew": 0}
        (rate,) = ax.plot(x, observed, color=colour, gid="monitor-observed", **style)
        (mean,) = ax.plot(*_with_gaps(x, predicted), color=canvas.model_colours(1)[0], lw=1.6, gid="monitor-predicted")
        first, second, what = self.history.rate_words
        handles, labels = [mean, rate], [first, f"{second}, with 95 % CI of each window"]
        if len(x) > _SMOOTHED:
            count = -(-len(x) // 20)
            pooled = 100 * self._pooled(count)
            handles += ax.plot(*_with_gaps(x, pooled), color=colour, lw=1.6, gid="monitor-pooled")
            labels.append(f"{second}, {count} windows together")
        ax.set_ylabel(f"{what} (%)" if len(what) < 20 else "coverage (%)")
        # Windows of few rows have extreme rates; they may be cut off.
        n = np.array([w.n_rows for w in self.history.windows])
        large = n >= np.median(n) / 4
        reach = np.concatenate([observed[large], predicted])
        pad = 0.25 * max(float(np.ptp(reach)), 1e-3)
        ax.set_ylim(max(0.0, float(reach.min()) - pad), min(100.0, float(reach.max()) + pad))
        canvas.legend_above(ax, self._title(), handles, labels)

    def _pooled(self, count: int) -> Floats:
        """Return the event rate of each window together with its neighbours, `count` windows in all."""
        n, k = (
            np.array([getattr(w, name) for w in self.history.windows], dtype=np.float64)
            for name in ("n_rows", "n_events")
        )
        position = np.arange(n.size)
        low, high = np.maximum(position - count // 2, 0), np.minimum(position + (count + 1) // 2, n.size)
        sums = (np.concatenate([[0.0], np.cumsum(column)]) for column in (k, n))
        events, rows = (total[high] - total[low] for total in sums)
        return np.asarray(events / rows)

    def _draw_evidence(self) -> None:
        ax, values = self.evidence_, self._values()
        closed = ~np.isnan(values["log_e_value"])
        x, log_e = values["start"][closed], values["log_e_value"][closed]
        ax.plot(x, log_e, color=canvas.blend(0.85), lw=1.5, gid="monitor-evidence")
        limits = values["threshold"][closed]
        style: dict[str, Any] = {"color": canvas.REJECTED, "lw": 1.2, "ls": (0, (5, 3)), "gid": "monitor-threshold"}
        if np.ptp(limits) > 0 if limits.size else False:  # the joint rule of groups: others move the threshold
            ax.step(x, limits, where="mid", **style)
        else:
            ax.axhline(self.history.threshold, **style)
        place = 0, limits[0] if limits.size else self.history.threshold
        words: dict[str, Any] = {"textcoords": "offset points", "color": canvas.REJECTED, "fontsize": "small"}
        ax.annotate(self._threshold_words(), place, (4, 3), ("axes fraction", "data"), **words)
        first = self._first_alarm()
        if first is not None:
            at = int(np.flatnonzero(x == _days(first))[0])
            style = {"ls": "", "marker": "o", "ms": 6, "color": canvas.REJECTED, "clip_on": False}
            ax.plot(x[at], log_e[at], gid="monitor-alarm", **style)
        top = max(self.history.threshold, float(log_e.max(initial=0.0)), float(limits.max(initial=0.0)))
        low = min(0.0, float(log_e.min(initial=0.0)))
        ax.set_ylim(low - 0.06 * (top - low), top + 0.16 * (top - low))
        ax.set_ylabel("log e-value")

    def _mark_change(self, ax: Axes) -> None:
        change = self.history.change_point
        if change is None:
            return
        ax.axvspan(_days(change.low), _days(change.high), color=canvas.ACCEPTED, alpha=0.3, lw=0)
        ax.axvline(_days(change.window), color=canvas.blend(0.6), lw=1.0, ls=(0, (1.5, 1.5)))
        if ax is self.evidence_:
            late = _days(change.window) > np.mean(self._values()["start"])
            style: dict[str, Any] = {"fontsize": "small", "color": canvas.blend(0.75), "va": "top"}
            style |= {"ha": "right" if late else "left", "textcoords": "offset points"}
            place = (_days(change.window), 1), (-4 if late else 4, -2), ("data", "axes fraction")
            ax.annotate("estimated change", *place, **style)

    def _first_alarm(self) -> datetime | None:
        return next((w.start for w in self.history.windows if w.alarm and w.closed), None)

    def _threshold_words(self) -> str:
        level = f"{self.history.threshold:.2f}"
        if self.history.event is not None:
            return f"alarm by this event alone: {level}"
        if self.history.group is None:
            return f"alarm: {level}"
        return f"alarm, given the other groups ({level} at the end)"

    def _title(self) -> str:
        first = self._first_alarm()
        none = "no alarm" if self.history.group is not None else "no alarm of all rows"
        state = none if first is None else f"alarm raised by the window of {first:%Y-%m-%d}"
        return f"Model {self.history.model}{self.history.subject}: {state}"

    def _values(self) -> dict[str, Floats]:
        windows = self.history.windows
        names = ("predicted", "observed", "log_e_value", "threshold")
        n, k = (np.array([getattr(w, name) for w in windows]) for name in ("n_rows", "n_events"))
        low, high = clopper_pearson(k, n)
        columns = {name: np.array([getattr(w, name) for w in windows], dtype=np.float64) for name in names}
        starts = np.array([_days(w.start) for w in windows], dtype=np.float64)
        return {"start": starts, **columns, "low": low, "high": high}

    def _columns(self) -> dict[str, Any]:
        return {**self._values(), "start": [w.start.isoformat() for w in self.history.windows]}

    def __repr__(self) -> str:
        return f"MonitorDisplay({len(self.history.windows):,} windows, {self._title()})"

    def alt_text(self) -> str:
        closed = [w.log_e_value for w in self.history.windows if not math.isnan(w.log_e_value)]
        last = f"the log e-value ends at {closed[-1]:.2f}" if closed else "no window is closed"
        return (
            f"{self._title()}. Predicted and observed rates of {len(self.history.windows):,} windows; {last}, an alarm "
            f"is raised at {self.history.threshold:.2f}."
        )


def _with_gaps(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the points of a line with a missing point where windows are far apart."""
    step = np.diff(x)
    after = np.flatnonzero(step > _GAP * np.median(step)) + 1 if step.size else np.empty(0, dtype=np.int64)
    return np.insert(x, after, np.nan), np.insert(y, after, np.nan)


def _days(moment: datetime) -> float:
    """Return the days since 1970, as matplotlib counts them."""
    return moment.timestamp() / 86_400
