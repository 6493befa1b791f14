"""`CostDisplay`: expected calibration cost against the ratio of the two unit costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.intervals import interval_limits
from calibrant.inference.resampling import Replicates, resample_metrics
from calibrant.inference.table_sample import TableSample
from calibrant.metrics.bins import Bins, EqualWidth
from calibrant.metrics.calibration_errors import ECC
from calibrant.metrics.costs import Cost, LinearCost
from calibrant.metrics.gce import GCE
from calibrant.metrics.metric import has_bins
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, named_results, read_tables, result_table, shared_metric, stacked
from calibrant.tables.rows import RowOptions

_RATIOS = tuple(float(r) for r in np.geomspace(0.05, 20, 61))


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Costs of one model: of overestimation and underestimation at unit cost 1, and the CI of ECC per ratio."""

    over: float
    under: float
    low: Floats | None = None
    high: Floats | None = None


@dataclass(eq=False, repr=False)
class CostDisplay(ScoreDisplay):
    r"""Expected calibration cost against the ratio of unit costs, C_u / C_o.

    The ratio of the unit cost of underestimation, C_u, to that of overestimation, C_o, is rarely known exactly. The
    curve shows ECC for each ratio, and which model has the lowest cost. Unit costs have the mean 1, so that all ratios
    share one scale and at ratio 1 linear ECC equals ECE:

    .. math::

       C_o = \frac{2}{1 + r}, \quad C_u = \frac{2 r}{1 + r}, \quad r = C_u / C_o

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    curves : mapping of name to CostCurve
    ratios : ndarray
    confidence_level : float
    figure_, ax_ : Figure, Axes
    lines_, bands_ : mappings of name to artists
        With the id (gid) ``cost-<model>-line`` and ``cost-<model>-interval``. `data` has one row per model and ratio.

    See Also
    --------
    ecc, decisions, DecisionCurveDisplay

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.2, 0.8], [10, 10], [4, 7])
    >>> display = CostDisplay.from_predictions(table, ratios=[1.0, 3.0], n_resamples=0, fig=Figure())
    >>> display.lines_["model"].get_ydata().round(3)
    array([0.15 , 0.175])
    """

    _size = (6.4, 4.4)
    _takes_several = True

    curves: Mapping[str, CostCurve]
    ratios: Floats
    confidence_level: float = 0.95

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        cost: Callable[..., Any] = LinearCost,
        bins: Bins = EqualWidth(10),  # noqa: B008  (frozen)
        ratios: Any = _RATIOS,
        n_resamples: int = 199,
        confidence_level: float = 0.95,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "CostDisplay":
        """Compute the costs and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities, or a mapping of name to predictions for several models; or one
            `ScoreTable`, or a mapping of them.
        cost : callable, default=LinearCost
            A cost of `calibrant.costs`, whose own unit costs are ignored, or a callable that returns one:
            ``cost(over=..., under=...)``, such as ``ExponentialCost`` and ``partial(PowerCost, 2)``. The cost must be
            proportional to the two unit costs, as all of `calibrant.costs` are.
        bins : callable, default=EqualWidth(10)
        ratios : sequence of float
            C_u / C_o, from 1/20 to 20 by default.
        n_resamples : int, default=199
            Replicates of the confidence intervals; 0 skips them.
        confidence_level, random_state
            Of the intervals; see `calibrant.interval`.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        CostDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        level = check_share("confidence_level", confidence_level)
        asked = np.sort(np.asarray(ratios, dtype=np.float64))
        if asked.ndim != 1 or not asked.size or not ((asked > 0) & np.isfinite(asked)).all():
            raise InputError("ratios must be positive and finite, at least one.", value=ratios)
        family = _family(cost) if is_dataclass(cost) and not isinstance(cost, type) else cost

        def metric(over: float, under: float) -> GCE:
            return ECC(family(over=over, under=under), bins=bins)

        curves = {}
        for name, table in read_tables(y_true, y_prob, rows).items():
            metrics: list[Any] = [metric(1, 0), metric(0, 1)]
            if not n_resamples:
                curves[name] = CostCurve(*(one.value(table) for one in metrics))
                continue
            sample = TableSample(table)
            a, b = resample_metrics(metrics, sample, seed=seed_sequence(random_state), n_resamples=n_resamples)
            limits = []
            for over, under in zip(*_units(asked), strict=True):
                # ECC is linear in the unit costs, in the data and in each replicate.
                value, bootstrap, null = (
                    over * getattr(a, part) + under * getattr(b, part) for part in ("value", "bootstrap", "null")
                )
                both = Replicates(metric(float(over), float(under)), value, bootstrap, null, sample)
                limits.append(interval_limits(both, level))
            low, high = np.array(limits).T
            curves[name] = CostCurve(a.value, b.value, low, high)
        return cls(curves, asked, level).plot(ax=ax, fig=fig)

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> "CostDisplay":
        """Draw the costs of the table of a result, with the bins and the kind of cost of its metric.

        Options as for `from_predictions`. Metrics without bins or without a cost use the defaults.

        Parameters
        ----------
        breakdown : MetricValue or Breakdown
            Result of a metric, with its table.
        **options
            Those of `from_predictions`.

        Returns
        -------
        CostDisplay
            The display, drawn.
        """
        results = named_results(breakdown)
        metric = shared_metric(results.values())
        if has_bins(metric):
            options.setdefault("bins", metric.bins)
            if hasattr(metric.loss, "cost"):
                options.setdefault("cost", _family(metric.loss.cost))
        return cls.from_predictions({name: result_table(each) for name, each in results.items()}, **options)

    def values(self, name: str) -> Floats:
        """Return ECC of one model at each ratio.

        Parameters
        ----------
        name : str
            Name of the model; "model" if there is one.

        Returns
        -------
        array
            One value per ratio.
        """
        over, under = _units(self.ratios)
        return over * self.curves[name].over + under * self.curves[name].under

    def _draw(self) -> None:
        ax, ids, colours = self.ax_, canvas.ids_by_name(self.curves), canvas.model_colours(len(self.curves))
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, Artist] = {}
        for i, (name, curve) in enumerate(self.curves.items()):
            if curve.low is not None and curve.high is not None:
                style: dict[str, Any] = {"alpha": 0.15, "lw": 0, "gid": f"cost-{ids[name]}-interval"}
                self.bands_[name] = ax.fill_between(self.ratios, curve.low, curve.high, color=colours[i], **style)
            style = {"lw": 1.8, "ls": canvas.dash(i), "gid": f"cost-{ids[name]}-line"}
            marker = "o" if self.ratios.size == 1 else None
            (self.lines_[name],) = ax.plot(self.ratios, self.values(name), color=colours[i], marker=marker, **style)
        low, high = float(self.ratios.min()), float(self.ratios.max())
        ticks = _ticks(low, high)
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticks(ticks, [f"1 : {1 / t:.6g}" if t < 1 else f"{t:.6g} : 1" for t in ticks])
        if low < 1 < high:
            ax.axvline(1, **canvas.dashes(0.4, zorder=0.5))
        ax.set_ylim(bottom=0)
        canvas.dress(ax, xlabel="unit cost of underestimation : of overestimation", ylabel="expected calibration cost")
        if len(self.curves) > 1:
            canvas.legend(ax, list(self.lines_.values()), [canvas.shorten(name) for name in self.lines_])
        bands = f"; bands: {100 * self.confidence_level:g} % CI" if self.bands_ else ""
        canvas.draw_title(ax, "ECC by the ratio of unit costs", f"unit costs have the mean 1{bands}")

    def _columns(self) -> dict[str, Any]:
        over, under = _units(self.ratios)
        parts = {}
        for name, curve in self.curves.items():
            parts[name] = {"ratio": self.ratios, "over": over, "under": under, "ecc": self.values(name)}
            if curve.low is not None and curve.high is not None:
                parts[name] |= {"low": curve.low, "high": curve.high}
        return stacked("model", parts)

    def __repr__(self) -> str:
        return (
            f"CostDisplay({canvas.join_short(list(self.curves))}; ratios {self.ratios[0]:.3g} to {self.ratios[-1]:.3g})"
        )

    def alt_text(self) -> str:
        costs = {name: self.values(name)[[0, -1]] for name in self.curves}
        each = "; ".join(f"{'' if n == 'model' else n + ' '}from {a:.4f} to {z:.4f}" for n, (a, z) in costs.items())
        best = ""
        if len(costs) > 1:
            first, last = (list(costs)[end] for end in np.argmin(list(costs.values()), axis=0))
            best = f"; lowest for {first} at both ends" if first == last else f"; lowest for {first}, then for {last}"
        return (
            f"Expected calibration cost, where underestimation costs {self.ratios[0]:g} to "
            f"{self.ratios[-1]:g} times as much as overestimation: {each}{best}."
        )


def _family(cost: Cost) -> Callable[..., Cost]:
    """Return a function of the two unit costs that gives a cost of this kind."""
    settings = {f.name for f in fields(cost)} if is_dataclass(cost) else set()
    if not {"over", "under"} <= settings:
        raise InputError(
            f"cost must have the unit costs over and under; got {cost!r}.",
            hint="Pass cost=, a function of over and under that returns a cost.",
        )
    kind: Any = type(cost)
    return partial(kind, **{name: getattr(cost, name) for name in settings - {"over", "under"}})


def _ticks(low: float, high: float) -> list[float]:
    """Return those of 1, 2 and 5 times powers of ten that fit between the ends; the ends if none does."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = [m * d for d in decades for m in (1, 2, 5) if low * 0.999 <= m * d <= high * 1.001]
    room, found = np.log(high / low) / 9, list[float]()
    for t in sorted(every, key=lambda t: (abs(np.log(t)) > 1e-9, t)):  # 1 : 1 first
        if all(abs(np.log(t / other)) >= room * 0.999 for other in found):
            found.append(float(t))
    return sorted(found) or sorted({low, high})


def _units(ratios: Floats) -> tuple[Floats, Floats]:
    """Return the unit costs of overestimation and underestimation, with the mean 1."""
    return 2 / (1 + ratios), 2 * ratios / (1 + ratios)
