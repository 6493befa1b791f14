"""Intervals by the bootstrap, the null reference, and equivalence within a margin: for any metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.random import SFC64, SeedSequence

from calibrant._support.arrays import read_only
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.json_values import number, plain
from calibrant._support.options import check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Bools, Column, Floats
from calibrant.inference import resampling
from calibrant.inference.design import Design
from calibrant.inference.relevance import LogOddsDeviation
from calibrant.inference.resampling import Measure, PairedRows
from calibrant.metrics.gce import GCE
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.partition import Partition
from calibrant.tables.rows import table_of
from calibrant.tables.score_table import ScoreTable

__all__ = ["Equivalence", "Interval", "Null", "equivalence", "interval", "null"]

# The bootstrap of TCE spreads too little where bins follow the outcomes; by this factor, as the coverage study found.
_WIDENED = 1.2

Alternative: TypeAlias = Literal["greater", "two-sided"]


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval; see `interval`."""

    metric: str
    value: float
    low: float
    high: float
    level: float
    method: str
    unit: str
    n_resamples: int
    spec: Mapping[str, Any] = field(repr=False)
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


@dataclass(frozen=True)
class Null:
    """Null distribution of a metric; see `null`."""

    metric: str
    value: float
    expected: float
    low: float
    high: float
    pvalue: float
    alternative: Alternative
    level: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any] = field(repr=False)
    notes: tuple[Note, ...] = ()
    replicates: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def excess(self) -> float:
        """The value minus the value expected if the model is calibrated."""
        return self.value - self.expected

    def to_dict(self) -> dict[str, Any]:
        """Everything but the replicates as plain data for JSON."""
        return {**plain(self), **number("excess", self.excess)}


@dataclass(frozen=True)
class Equivalence:
    """Whether a metric is shown to lie within a margin; see `equivalence`."""

    metric: str
    value: float
    margin: float
    pvalue: float
    alpha: float
    bound: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any] = field(repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def within(self) -> bool:
        """Whether the data show that the metric lies within the margin: pvalue <= alpha."""
        return self.pvalue <= self.alpha

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {**plain(self), "within": self.within}


@dataclass(frozen=True)
class Spread:
    """The replicates of one metric, from which limits and p-values are read.

    The metric declares its kind of limits (`interval_method`). Upper limits lie above the value by the larger of the
    bootstrap's two reaches, times `_safety`. All limits are clipped to the metric's range and contain the value. The
    coverage study (docs/inference) chose between the kinds. With v the value and u_0, u_1 the upper quantiles of null
    and bootstrap:

    - ``anchored`` for means of gaps, which are biased upwards and whose bootstrap doubles that bias. Between the
      calibrated model (t = 0) and the data (t = 1) lies a world with t times the gaps, in which upper quantiles are
      about sqrt(u_0^2 + t^2 (u_1^2 - u_0^2)). The lower limit is the metric t v of the world whose upper quantile is
      v: 0 where a calibrated model could have given the value. It is at most v less the bootstrap's bias and reach.
    - ``triangle`` for largest gaps, isotonic fits and smooth ECE, whose bias the bootstrap does not show: by the
      triangle inequality the value exceeds the true one by at most the metric of the noise alone, so the lower limit
      is v - u_0.
    - ``centred`` for estimates without bias whose bootstrap has one: reaches are measured from the bootstrap's mean.
    - ``arcsine`` for TCE: centred, on the scale of arcsin(sqrt(TCE / 100)), with 1.2 times the reach. Its target
      is its mean over samples of this size.
    - ``inversion`` for the log-odds error: no replicates; see `calibrant.inference.relevance`.
    - ``symmetric`` for everything else: reaches are measured from the value.

    Metrics of squared gaps (`degree` 2) are treated on the scale of their roots.
    """

    metric: Measure
    value: float
    bootstrap: Floats
    null: Floats
    table: ScoreTable
    notes: tuple[Note, ...] = ()
    exists: bool = True
    rows: PairedRows | None = None

    @property
    def method(self) -> str:
        """Kind of limits; "none" where no interval exists."""
        return "none" if self.refusal else method_of(self.metric)

    @cached_property
    def refusal(self) -> str:
        """Why no interval exists; empty where one does."""
        name, fewest = self.metric.name, getattr(self.metric, "min_class_size", 0)
        if self._rarer < fewest:
            unit = "clusters with and without the event" if self._clustered else "rows of each class"
            return (
                f"{name} needs {unit} for an interval, at least {fewest}; got {self._rarer:.3g} of the rarer kind. "
                "Collect more rows, or report the value alone."
            )
        reason = getattr(self.metric, "interval_refusal", lambda table: "")(self.table)
        if not reason and method_of(self.metric) in _NEED_THE_NULL and not self.null.size:
            return f"{name} has no null distribution for weights or clusters, and so no interval. Use ace instead."
        return str(reason)

    @property
    def _clustered(self) -> bool:
        return self.rows is not None and self.rows.cluster is not None

    @cached_property
    def _rarer(self) -> float:
        """Independent observations of the rarer outcome: rows, effective rows, or clusters that have it."""
        if self.rows is not None and self.rows.cluster is not None:
            with_event, without = (self.rows.cluster[self.rows.event == outcome] for outcome in (1, 0))
            return float(min(np.unique(with_event).size, np.unique(without).size))
        k, n = float(self.table.positives), float(self.table.size)
        if self.table.w2 is None:
            return min(k, n - k)
        k2, w2 = float(np.sum(resampling.event_squares(self.table))), float(np.sum(self.table.w2))
        pairs = ((k, k2), (n - k, w2 - k2))
        return min(total**2 / squares if squares > 0 else 0.0 for total, squares in pairs)

    def _safety(self, tail: float) -> float:
        """Factor of all reaches: the bootstrap spreads too little where the rarer outcome was seen few times.

        m observations have m - 1 degrees of freedom (Student), and exact limits of a count of m lie about
        1 + 1 / sqrt(m) times as far away as normal ones. Clusters that have the outcome are at most all clusters, so
        that few clusters widen the limits at least by Student's quantile.
        """
        from scipy.special import ndtri, stdtrit

        m = max(self._rarer, 1.0)
        student = float(stdtrit(max(m - 1, 1.0), 1 - tail) / ndtri(1 - tail)) if tail < 0.5 else 1.0
        return max(student, 1 + 1 / float(np.sqrt(m)))

    @cached_property
    def _noise(self) -> float:
        """How many times the noise of the data is that of a calibrated model, at least 1.

        Of a model that underestimates, outcomes vary more than its scores expect: by the Brier score over the expected
        one. The null of weights and clusters already has the variance of the data.
        """
        expected = float(np.sum(self.table.n * self.table.score * (1 - self.table.score)))
        # Where next to no noise is expected, no replicate of the null has any, and the quotient may overflow.
        if self.table.importance or self._clustered or expected < 1e-200:
            return 1.0
        p, n, k = self.table.score, self.table.n, self.table.k
        return float(np.sqrt(max(1.0, np.sum(k * (1 - p) ** 2 + (n - k) * p**2) / max(expected, 1e-290))))

    def limits(self, level: float) -> tuple[float, float]:
        """Lower and upper limit of the interval of this level; NaN where none exists."""
        if self.refusal:
            return float("nan"), float("nan")
        low, high = METHODS[self.method](self, (1 - level) / 2)
        least, most = getattr(self.metric, "range", (-np.inf, np.inf))
        low, high = (min(max(limit, least), most) for limit in (low, high))
        return min(low, self.value), max(high, self.value)  # an estimate may lie outside the range of its target

    def anchored(self, tail: float) -> tuple[float, float]:
        value, null, low, high, reach = self._roots(tail)
        if value <= null:
            low = 0.0
        else:
            share = (value**2 - null**2) / (high**2 - null**2) if high**2 > null**2 else 1.0
            low = min(low, value * float(np.sqrt(min(share, 1.0))))
        return self._powers(low, value + reach, tail)

    def triangle(self, tail: float) -> tuple[float, float]:
        value, null, _, _, reach = self._roots(tail)
        return self._powers(value - null, value + reach, tail)

    def _roots(self, tail: float) -> tuple[float, float, float, float, float]:
        """On the scale of gaps: value, quantile of the null, value less bias and reach, bootstrap quantile, reach."""
        root = 1 / getattr(self.metric, "degree", 1.0)
        value, again, right = (np.maximum(each, 0.0) ** root for each in (self.value, self.bootstrap, self.null))
        (null,) = _quantiles(right, (1 - tail,))
        low, high = _quantiles(again, (tail, 1 - tail))
        mean = float(np.mean(again))
        reach = self._safety(tail) * max(mean - low, high - mean)
        bias = max(mean - float(value), 0.0)
        return float(value), self._noise * null, float(value) - bias - reach, high, reach

    def _powers(self, low: float, high: float, tail: float) -> tuple[float, float]:
        degree = getattr(self.metric, "degree", 1.0)
        return max(low, 0.0) ** degree, max(high, 0.0) ** degree + self._hidden(tail)

    def centred(self, tail: float) -> tuple[float, float]:
        low, high = _quantiles(self.bootstrap - np.mean(self.bootstrap), (tail, 1 - tail))
        reach = self._safety(tail) * max(-low, high) + self._hidden(tail)
        return self.value - reach, self.value + reach

    def arcsine(self, tail: float) -> tuple[float, float]:
        angles = _to_arcsine(self.bootstrap)
        low, high = _quantiles(angles - np.mean(angles), (tail, 1 - tail))
        few = self._safety(tail) if self._clustered else 1.0
        value, reach = float(_to_arcsine(self.value)), _WIDENED * few * max(-low, high)
        if np.ptp(self.bootstrap) == 0:  # at 0 or 100 %: as far as outcomes of so many bins may hide
            reach = float(_to_arcsine(100 * _none_of(self._n_bins(), tail)))
        return _from_arcsine(value - reach), _from_arcsine(value + reach)

    def symmetric(self, tail: float) -> tuple[float, float]:
        low, high = _quantiles(self.bootstrap, (tail, 1 - tail))
        if not np.isfinite(self.value):
            return min(low, self.value), max(high, self.value)
        reach = self._safety(tail) * max(self.value - low, high - self.value) + self._hidden(tail)
        return self.value - reach, self.value + reach

    def inversion(self, tail: float) -> tuple[float, float]:
        return self._deviation.lower(tail), self._deviation.upper(tail)

    @cached_property
    def _deviation(self) -> LogOddsDeviation:
        clustered = self.rows if self._clustered else None
        return LogOddsDeviation(Design(self.table, clustered))

    def _n_bins(self) -> int:
        return len(self.metric.bins(self.table)) if isinstance(self.metric, GCE) else 1

    def _hidden(self, tail: float) -> float:
        """What bins without an event, or without anything else, may hide: there the bootstrap does not move.

        Of n rows without an event the rate is below 1 - tail^(1/n) (Clopper and Pearson); rows of all such bins count
        as one group. A metric of other than sums over bins is looked at as one bin.
        """
        if isinstance(self.metric, GCE) and self.metric.measures_gaps and self.metric.needs_sums_only:
            return self._hidden_in_bins(self.metric, tail)
        if self._rarer > 0 or not np.isfinite(getattr(self.metric, "range", (-np.inf, np.inf))).all():
            return 0.0
        limit = _none_of(self._independent(np.ones(len(self.table), dtype=bool)), tail)
        return float(limit ** getattr(self.metric, "degree", 1.0))

    def _hidden_in_bins(self, metric: GCE, tail: float) -> float:
        bins, pure_bins = self._pure_bins
        if not pure_bins:
            return 0.0
        limit = np.zeros(len(bins))
        for pure, size in pure_bins:
            limit[pure] = _none_of(size, tail)
        # Gaps of that size: a score of 0 where no row has the event, of 1 where every row has it.
        everything = bins.k == bins.n
        rate = np.where(everything, 1 - limit, limit)
        rate[limit == 0] = 0.0
        moved = bins.with_sums(bins.n, bins.n * rate, bins.n * everything * (limit > 0))
        return float(metric.norm(metric.loss(moved), moved.n))

    @cached_property
    def _pure_bins(self) -> tuple[Partition, list[tuple[Bools, float]]]:
        """The bins of a `GCE`; which of them have no event, or nothing else; and their independent observations."""
        assert isinstance(self.metric, GCE)
        bins = self.metric.bins(self.table)
        kinds = [pure for pure in (bins.k == 0, bins.k == bins.n) if pure.any()]
        return bins, [(pure, self._independent(pure[bins.labels])) for pure in kinds]

    def _independent(self, scores: Bools) -> float:
        """Independent observations behind some of the scores: rows, effective rows, or clusters."""
        if self.rows is not None and self.rows.cluster is not None:
            return float(np.unique(self.rows.cluster[scores[self.rows.places[0]]]).size)
        n, w2 = self.table.n[scores], self.table.w2
        return float(n.sum() if w2 is None else n.sum() ** 2 / w2[scores].sum())

    def chance_beyond(self, margin: float) -> float:
        """p-value of the hypothesis that the metric reaches the margin, on either side of 0 where it has two.

        The smallest tail whose limits lie within the margin, by halving; not below what the replicates can show.
        """
        if self.method == "inversion":
            return self._deviation.pvalue(margin)
        least, most = 1 / (1 + self.bootstrap.size), 0.5
        if self._bound(least) < margin:
            return least
        if self._bound(most) >= margin:
            return 1.0
        while most - least > 1e-6:
            middle = (least + most) / 2
            least, most = (least, middle) if self._bound(middle) < margin else (middle, most)
        return most

    def _bound(self, tail: float) -> float:
        low, high = self.limits(1 - 2 * tail)
        return high if self.metric.measures_gaps else max(high, -low)

    def null_pvalue(self, alternative: Alternative) -> float:
        """p-value of the hypothesis that the model is calibrated. Ties within 1e-12 count as at least as extreme."""
        if not self.null.size:
            return float("nan")
        slack = 1e-12 * max(1.0, abs(self.value))
        above = _share(self.null >= self.value - slack)
        if alternative == "greater":
            return above
        return min(1.0, 2 * min(above, _share(self.null <= self.value + slack)))

    def to_interval(self, level: float) -> Interval:
        low, high = self.limits(level)
        m, notes = self.metric, self.notes
        if self.refusal:
            notes = (*notes, Note("no_interval", 1, self.refusal))
        return Interval(m.name, self.value, low, high, level, self.method, m.unit, self.bootstrap.size, m.spec, notes)

    def to_null(self, level: float, alternative: Alternative | None = None) -> Null:
        side = alternative_of(self.metric) if alternative is None else alternative
        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = _quantiles(self.null, tails) if self.null.size else (float("nan"), float("nan"))
        return Null(
            metric=self.metric.name,
            value=self.value,
            expected=float(np.mean(self.null)) if self.null.size else float("nan"),
            low=low,
            high=high,
            pvalue=self.null_pvalue(side),
            alternative=side,
            level=level,
            unit=self.metric.unit,
            n_resamples=self.null.size,
            spec=self.metric.spec,
            notes=self.notes,
            replicates=read_only(self.null),
        )

    def to_equivalence(self, margin: float, alpha: float) -> Equivalence:
        m = self.metric
        self.check_interval()
        inverted = self.method == "inversion"
        return Equivalence(
            m.name,
            self.value,
            margin,
            self.chance_beyond(margin),
            alpha,
            self._deviation.upper(alpha, margin) if inverted else self._bound(alpha),
            m.unit,
            self.bootstrap.size,
            m.spec,
            self.notes,
        )

    def check_interval(self) -> None:
        """Raise the reason why no interval exists, if there is one."""
        if self.refusal:
            raise InputError(self.refusal, argument="metric", value=self.metric.name)


METHODS: dict[str, Callable[[Spread, float], tuple[float, float]]] = {
    "inversion": Spread.inversion,
    "anchored": Spread.anchored,
    "triangle": Spread.triangle,
    "centred": Spread.centred,
    "arcsine": Spread.arcsine,
    "symmetric": Spread.symmetric,
}
_NEED_THE_NULL = ("anchored", "triangle")


def _none_of(size: float, tail: float) -> float:
    """The largest rate with which `size` rows are all without the event, with the chance `tail`."""
    return float(1 - tail ** (1 / size))


def _to_arcsine(percent: Any) -> Any:
    """The scale on which the spread of a percentage does not depend on the percentage."""
    return np.arcsin(np.sqrt(np.clip(percent, 0, 100) / 100))


def _from_arcsine(angle: float) -> float:
    return float(100 * np.sin(np.clip(angle, 0, np.pi / 2)) ** 2)


def _quantiles(values: Floats, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Quantiles, between two values by nearness; where some are infinite (log loss), the nearest value."""
    method: Any = "linear" if np.isfinite(values).all() else "nearest"
    return tuple(float(v) for v in np.quantile(values, shares, method=method))


def _share(beyond: Any) -> float:
    """p-value of a resampling test: the data themselves are one of the replicates."""
    return float((1 + np.count_nonzero(beyond)) / (1 + beyond.size))


def method_of(metric: Measure) -> str:
    """The kind of limits that a metric declares; see `Spread`."""
    default = "anchored" if metric.measures_gaps else "symmetric"
    method = str(getattr(metric, "interval_method", default))
    if method not in METHODS:
        raise InputError(
            f"interval_method must be one of {', '.join(METHODS)}; got {method!r} of {metric.name}.",
            argument="metric",
            value=method,
        )
    return method


def alternative_of(metric: Measure) -> Alternative:
    """Which readings speak against calibration: high ones of metrics of gaps, extreme ones of all others."""
    return "greater" if metric.measures_gaps else "two-sided"


def spreads(
    metrics: list[Measure],
    table: ScoreTable,
    *,
    seed: SeedSequence,
    n_resamples: int,
    bootstrap: bool = True,
    null: bool = True,
    null_only: Sequence[Measure] = (),
    rows: PairedRows | None = None,
    threads: bool | None = None,
    show: bool | None = None,
    skip_missing: bool = False,
) -> list[Spread]:
    """A `Spread` for each metric, all from the same replicates, and for others from the null alone.

    Threads by default where rows are many. A metric that exists in fewer than half of the replicates is an error, or,
    with `skip_missing`, marked as one that does not. A null that needs counts is empty for weights and clusters.
    """
    common: dict[str, Any] = {
        "n_resamples": n_resamples,
        "seed": seed,
        "threads": table.size >= resampling.THREADS_FROM if threads is None else threads,
        "show": show,
    }
    everything = [*metrics, *null_only]
    values = [metric.value(table) for metric in everything]
    drawn = right = np.empty((0, len(everything)))
    if bootstrap:
        one = resampling.bootstrap_values(table, metrics)
        if rows is not None:
            one = partial(_values_of_rows, rows, metrics)
        drawn = resampling.replicates(one, purpose="bootstrap", **common)
    if null:
        sampler = resampling.null(table, rows)
        right = resampling.replicates(
            lambda bits: resampling.values(everything, sampler(bits)), purpose="null", **common
        )
    moved_sums = table.importance or (rows is not None and rows.cluster is not None)
    found = []
    for j, (metric, value) in enumerate(zip(everything, values, strict=True)):
        again = drawn[:, j] if j < drawn.shape[1] else np.empty(0)
        calibrated, lost = right[:, j], tuple[Note, ...]()
        if moved_sums and (_needs_counts(metric) or np.isnan(calibrated).any()):
            calibrated, lost = np.empty(0), (Note("no_null", 1, _NO_NULL.format(name=metric.name)),)
        if skip_missing and not (resampling.mostly_exist(again) and resampling.mostly_exist(calibrated)):
            found.append(Spread(metric, value, again, calibrated, table, exists=False, rows=rows))
            continue
        (again, few), (calibrated, more) = (resampling.existing(c, metric.name) for c in (again, calibrated))
        found.append(
            Spread(metric, value, again, calibrated, table, join_notes(table.notes, few, more, lost), rows=rows)
        )
    return found


def _needs_counts(metric: Measure) -> bool:
    """Whether the loss of a metric declares that it tests counts."""
    return bool(getattr(getattr(metric, "loss", None), "needs_counts", False))


_NO_NULL = "{name} needs counts, so with importance weights or clusters its null distribution is undefined."


def _bootstrapped(metric: Measure, table: ScoreTable, rows: PairedRows | None, **draws: Any) -> Spread:
    """The bootstrap of one metric, with the null where its limits need it."""
    # Known before any replicate: too few rows of a class, or scores without ties.
    Spread(metric, float("nan"), np.empty(0), np.zeros(1), table, rows=rows).check_interval()
    method = method_of(metric)
    draws |= {"bootstrap": method != "inversion", "null": method in _NEED_THE_NULL}
    (spread,) = spreads([metric], table, rows=rows, **draws)
    spread.check_interval()
    return spread


def _values_of_rows(rows: PairedRows, metrics: Sequence[Measure], bits: SFC64) -> list[float]:
    (table,) = rows(bits)
    return resampling.values(metrics, table)


def interval(
    metric: MetricLike,
    table: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Interval:
    """Confidence interval of any metric, by the bootstrap.

    Parameters
    ----------
    metric : metric object, its function or class, or a name in `METRICS`
        ``ECE(n_bins=15)``, ``brier``, ``"brier"``.
    table : ScoreTable, or y_true with y_prob
        Rows are read with the options of `ScoreTable.from_arrays`.
    confidence_level : float, default=0.95
    n_resamples : int, default=999
        Replicates; metrics of gaps draw as many again from the null.
    random_state : int, Generator or None
        The same seed gives the same bytes on both kernels and any number of threads.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are drawn together. Needs y_true and y_prob, not a table, and at least
        10 clusters.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.

    Returns
    -------
    Interval
        ``low``, ``high``, ``level``, ``method``, ``value``.

    Notes
    -----
    The target: for metrics over bins (ECE, ACE, MCE ...) the value of the population over the bins of the sample, those
    that hold rows; for TCE, which has none that does not depend on the number of rows, its mean over samples of this
    size; for all others the value of the population. The metric declares its kind of limits (``interval_method``), by
    a study of coverage: see "Inference" in the documentation. Limits lie in the range of the metric and contain the
    value.

    A metric without a trustworthy interval raises an `InputError` that says why: `auc` with fewer than 10 rows of a
    class, `stratified_brier` with fewer than 20, `log_loss` and `oe_ratio` with none, `calloss` where more than 10 % of
    rows have a score of their own.

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [300, 300, 300], [100, 160, 210])
    >>> found = interval(ECE(), table, random_state=0)
    >>> bool(found.low < found.value < found.high), found.method
    (True, 'anchored')
    """
    measured = as_metric(metric)
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    counted, paired = read_rows(table, y_prob, cluster, rows)
    spread = _bootstrapped(measured, counted, paired, seed=seed, n_resamples=n_resamples, show=progress)
    return spread.to_interval(level)


def null(
    metric: MetricLike,
    table: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    alternative: Alternative | None = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Null:
    """Null distribution of a metric: its values if the model is calibrated, over the same kind of bins.

    Parameters
    ----------
    metric, table, y_prob, n_resamples, random_state, progress
        See `interval`.
    confidence_level : float, default=0.95
        Of the null range, the middle of the distribution.
    alternative : {"greater", "two-sided"}, optional
        Which values speak against the model. By default high ones for metrics of gaps, extreme ones for all others
        (a Brier score can be lower than that of a calibrated model too, by scores that are too flat).
    cluster : column, optional
        Outcomes of one cluster may depend on each other. Needs y_true and y_prob, not a table.

    Returns
    -------
    Null
        ``expected``, the null range ``low`` to ``high``, ``pvalue``, and ``excess``, the value minus ``expected``.

    Notes
    -----
    For counts, outcomes are drawn from the scores, and the p-value, (1 + replicates at least as extreme) /
    (1 + replicates), is exact: under the null the data are one more replicate. With importance weights or clusters,
    residuals keep their sizes and get random signs (one per score, one per cluster), which holds for many rows or
    clusters. A metric that needs counts (TCE with the exact test, calbin) then has no null: its numbers are NaN, and a
    note says why.

    Examples
    --------
    >>> from calibrant import TCE
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = null(TCE(), rng.random(2000) < p, p, random_state=0)
    >>> bool(found.low <= found.value <= found.high), found.pvalue > 0.05
    (True, True)
    """
    measured = as_metric(metric)
    if not getattr(measured, "has_null", True):
        raise InputError(
            f"metric must have a null distribution; got {measured.name}, which declares that none exists.",
            hint="Use calibrant.interval.",
            argument="metric",
            value=metric,
        )
    if alternative not in (None, "greater", "two-sided"):
        raise InputError(
            f"alternative must be 'greater' or 'two-sided'; it is {alternative!r}.", argument="alternative"
        )
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    counted, paired = read_rows(table, y_prob, cluster, rows)
    (spread,) = spreads(
        [measured], counted, seed=seed, n_resamples=n_resamples, bootstrap=False, rows=paired, show=progress
    )
    return spread.to_null(level, alternative)


def equivalence(
    metric: MetricLike,
    table: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    margin: float,
    alpha: float = 0.05,
    n_resamples: int = 999,
    random_state: RandomState = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Equivalence:
    """Equivalence test: the hypothesis is that the metric is at least as large as the margin.

    With many rows every model has a significant deviation, however small; a small p-value here shows that the metric
    lies within the margin.

    Parameters
    ----------
    metric, table, y_prob, n_resamples, random_state, cluster, progress
        See `interval`.
    margin : float
        In the metric's unit: 0.01 for ECE is one percentage point, 10 for TCE is 10 %. A metric with a sign, such as
        the bias, must lie between -margin and margin.
    alpha : float, default=0.05

    Returns
    -------
    Equivalence
        ``pvalue``; ``within``, whether it is at most alpha; ``bound``, the upper limit at level 1 - alpha, which is
        below the margin where `within` holds (but for the steps of resampling).

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [30_000, 30_000, 30_000], [6_050, 15_020, 24_060])
    >>> equivalence(ECE(), table, margin=0.01, random_state=0).within
    True
    """
    measured = as_metric(metric)
    check_margin(margin, alpha, n_resamples)
    seed = seed_sequence(random_state)
    counted, paired = read_rows(table, y_prob, cluster, rows)
    spread = _bootstrapped(measured, counted, paired, seed=seed, n_resamples=n_resamples, show=progress)
    return spread.to_equivalence(margin, alpha)


def check_margin(margin: float, alpha: float, n_resamples: int) -> None:
    """What a test of equivalence needs: a positive margin, an alpha below 0.5, and draws enough for it."""
    if not margin > 0:
        raise InputError(f"margin must be positive; it is {margin!r}.", argument="margin", value=margin)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(f"alpha must lie below 0.5; it is {alpha!r}.", argument="alpha", value=alpha)
    resampling.check_resamples(n_resamples, alpha)


def read_rows(
    table: ScoreTable | Column, y_prob: Column | None, cluster: Column | None, rows: dict[str, Any]
) -> tuple[ScoreTable, PairedRows | None]:
    """The table, and the rows themselves where some belong together."""
    if cluster is None:
        return table_of(table, y_prob, rows), None
    if isinstance(table, ScoreTable) or y_prob is None:
        raise InputError(
            "Clusters need rows: a ScoreTable no longer knows which belong together.",
            hint="Pass y_true, y_prob and cluster.",
            argument="cluster",
        )
    paired, tables = PairedRows.read(table, [y_prob], cluster=cluster, **rows)
    resampling.check_clusters(paired.n_draws)
    return tables[0], paired
