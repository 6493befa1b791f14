"""Intervals by the bootstrap, the null reference, and equivalence within a margin: for any metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.random import SFC64, SeedSequence

from calibrant._json import number, plain
from calibrant._rows import table_of
from calibrant._typing import Column, Floats
from calibrant.errors import InputError, Note, join_notes
from calibrant.gce import GCE
from calibrant.inference import resampling
from calibrant.inference.resampling import Measure, PairedRows, RandomState, check_metric, check_share
from calibrant.losses import RejectionRate, absolute_gap, debiased_squared_gap
from calibrant.table import ScoreTable, read_only

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
    """What a metric would read if the model were right; see `null`."""

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
        """The value less what a right model reads."""
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

    Three kinds of limits, chosen by the coverage study (docs/inference):

    - ``anchored`` for metrics of gaps, which are biased upwards, by chance alone at a right model, and whose bootstrap
      doubles that bias. With w the value, u_0 and u_1 the upper quantiles of null and bootstrap: between the right
      model (t = 0) and the data (t = 1) lies a world with t times the gaps, in which upper quantiles are about
      sqrt(u_0^2 + t^2 (u_1^2 - u_0^2)). The lower limit is the metric t w of the world whose upper quantile is w: 0
      where a right model could have given the value. The upper limit lies above w by the larger of the bootstrap's two
      reaches from its mean, which leaves the bias in, on the safe side, and by what bins without an event may hide:
      there the bootstrap does not move, and would be sure of what nobody knows.
    - ``centred`` for TCE, whose target is its mean over samples of this size, so that the value itself is without bias,
      while the bootstrap's mean is too high. On the scale of arcsin(sqrt(TCE / 100)) the replicates are moved so
      that their mean is the value; the limits lie on both sides at 1.2 times the larger of their two reaches.
    - ``percentile`` for everything else.
    """

    metric: Measure
    value: float
    bootstrap: Floats
    null: Floats
    table: ScoreTable
    notes: tuple[Note, ...] = ()
    exists: bool = True

    @property
    def method(self) -> str:
        return method_of(self.metric)

    def limits(self, level: float) -> tuple[float, float]:
        """Lower and upper limit of the interval of this level."""
        tails = (1 - level) / 2, (1 + level) / 2
        low, high = _quantiles(self.bootstrap, tails)
        if self.method == "percentile":
            return low, high
        if self.method == "centred":
            offset, value = self._on_the_arcsine_scale()
            below, above = _quantiles(offset, tails)
            reach = _WIDENED * max(-below, above)
            return _from_arcsine(value - reach), _from_arcsine(value + reach)
        return self._anchored_low(high, tails[1]), self._upper(tails[0])

    def _on_the_arcsine_scale(self) -> tuple[Floats, float]:
        """How far replicates lie from their mean, and the value."""
        replicates = _to_arcsine(self.bootstrap)
        return replicates - replicates.mean(), float(_to_arcsine(self.value))

    def _anchored_low(self, high: float, tail: float) -> float:
        (right,) = _quantiles(self.null, (tail,))
        if self.value <= right:
            return 0.0
        share = (self.value**2 - right**2) / (high**2 - right**2) if high > right else 1.0
        return self.value * float(np.sqrt(min(share, 1.0)))

    def _upper(self, tail: float) -> float:
        """Upper limit of a metric of gaps, which the truth exceeds with the chance `tail`."""
        low, high = _quantiles(self.bootstrap, (tail, 1 - tail))
        mean = float(np.mean(self.bootstrap))
        return self.value + max(mean - low, high - mean) + self._unseen(tail)

    def _unseen(self, tail: float) -> float:
        """What bins without an event, or without anything else, may hide: there the bootstrap does not move.

        Of n rows without an event the rate is below 1 - tail^(1/n) (Clopper and Pearson); rows of all such bins count
        as one group.
        """
        if not (isinstance(self.metric, GCE) and self.metric.loss is absolute_gap):
            return 0.0
        bins, size = self.metric.bins(self.table), float(self.table.size)
        hidden = (bins.effective_n[pure].sum() for pure in (bins.k == 0, bins.k == bins.n))
        shares = (bins.n[pure].sum() / size for pure in (bins.k == 0, bins.k == bins.n))
        return float(sum(share * (1 - tail ** (1 / n)) for n, share in zip(hidden, shares, strict=True) if n > 0))

    def chance_beyond(self, margin: float) -> float:
        """p-value of the hypothesis that the metric reaches the margin, on either side of 0 where it has two."""
        if self.method == "anchored":
            return self._least_tail(margin)
        if self.method == "centred":
            offset, value = self._on_the_arcsine_scale()
            room = (float(_to_arcsine(margin)) - value) / _WIDENED
            return max(_share(offset >= room), _share(-offset >= room))
        if self.metric.measures_gaps:
            return _share(self.bootstrap >= margin)
        return max(_share(self.bootstrap >= margin), _share(self.bootstrap <= -margin))

    def _least_tail(self, margin: float) -> float:
        """The smallest tail whose upper limit is below the margin, by halving; not below what the draws can show."""
        least, most = 1 / (1 + self.bootstrap.size), 0.5
        if self._upper(least) < margin:
            return least
        if self._upper(most) >= margin:
            return 1.0
        while most - least > 1e-6:
            middle = (least + most) / 2
            least, most = (least, middle) if self._upper(middle) < margin else (middle, most)
        return most

    def null_pvalue(self, alternative: Alternative) -> float:
        """p-value of the hypothesis that the model is right. Ties within 1e-12 count as at least as extreme."""
        slack = 1e-12 * max(1.0, abs(self.value))
        above = _share(self.null >= self.value - slack)
        if alternative == "greater":
            return above
        return min(1.0, 2 * min(above, _share(self.null <= self.value + slack)))

    def to_interval(self, level: float) -> Interval:
        low, high = self.limits(level)
        m = self.metric
        return Interval(
            m.name, self.value, low, high, level, self.method, m.unit, self.bootstrap.size, m.spec, self.notes
        )

    def to_null(self, level: float, alternative: Alternative | None = None) -> Null:
        side = alternative_of(self.metric) if alternative is None else alternative
        low, high = _quantiles(self.null, ((1 - level) / 2, (1 + level) / 2))
        return Null(
            metric=self.metric.name,
            value=self.value,
            expected=float(np.mean(self.null)),
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
        m, (low, high) = self.metric, self.limits(1 - 2 * alpha)
        bound = high if m.measures_gaps else max(high, -low)
        pvalue = self.chance_beyond(margin)
        return Equivalence(
            m.name, self.value, margin, pvalue, alpha, bound, m.unit, self.bootstrap.size, m.spec, self.notes
        )


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
    """p-value of a resampling test: the data themselves are one of the draws."""
    return float((1 + np.count_nonzero(beyond)) / (1 + beyond.size))


def method_of(metric: Measure) -> str:
    """The kind of limits for a metric; see `Spread`."""
    loss = metric.loss if isinstance(metric, GCE) else None
    if isinstance(loss, RejectionRate):
        return "centred"
    return "anchored" if metric.measures_gaps and loss is not debiased_squared_gap else "percentile"


def alternative_of(metric: Measure) -> Alternative:
    """Which readings speak against a right model: high ones of metrics of gaps, extreme ones of all others."""
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
    """A `Spread` for every metric, all from the same draws, and for others from the null alone.

    Threads by default where rows are many. A metric that exists in fewer than half of the replicates is an error, or,
    with `skip_missing`, marked as one that does not.
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
        sampler = resampling.null(table)
        right = resampling.replicates(
            lambda bits: resampling.values(everything, sampler(bits)), purpose="null", **common
        )
    found = []
    for j, (metric, value) in enumerate(zip(everything, values, strict=True)):
        again = drawn[:, j] if j < drawn.shape[1] else np.empty(0)
        if skip_missing and not (resampling.mostly_exist(again) and resampling.mostly_exist(right[:, j])):
            found.append(Spread(metric, value, again, right[:, j], table, exists=False))
            continue
        kept, lost = zip(*(resampling.existing(column, metric.name) for column in (again, right[:, j])), strict=True)
        found.append(Spread(metric, value, kept[0], kept[1], table, join_notes(table.notes, *lost)))
    return found


def _bootstrapped(metric: Measure, table: ScoreTable, rows: PairedRows | None, **draws: Any) -> Spread:
    """The bootstrap of one metric, with the null where its limits need it."""
    (spread,) = spreads([metric], table, null=method_of(metric) == "anchored", rows=rows, **draws)
    return spread


def _values_of_rows(rows: PairedRows, metrics: Sequence[Measure], bits: SFC64) -> list[float]:
    (table,) = rows(bits)
    return resampling.values(metrics, table)


def interval(
    metric: Measure,
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
    metric : metric object
        ``TCE()``, ``ECE(n_bins=15)``, ``METRICS["brier"]()``.
    table : ScoreTable, or y_true with y_prob
        Rows are read with the options of `ScoreTable.from_arrays`.
    confidence_level : float, default=0.95
    n_resamples : int, default=999
        Replicates; metrics of gaps draw as many again from the null.
    random_state : int, Generator or None
        The same seed gives the same bytes on both kernels and any number of threads.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are drawn together. Needs y_true and y_prob, not a table.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.

    Returns
    -------
    Interval
        ``low``, ``high``, ``level``, ``method``, ``value``.

    Notes
    -----
    What is covered: for metrics of gaps (ECE, ACE, RMSCE ...) the value in the population under the same kind of bins;
    for TCE, which has none that does not depend on the number of rows, its mean over samples of this size. The kind of
    interval follows from the metric, by a study of coverage: see "Inference" in the documentation for what holds where.

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [300, 300, 300], [100, 160, 210])
    >>> found = interval(ECE(), table, random_state=0)
    >>> bool(found.low < found.value < found.high), found.method
    (True, 'anchored')
    """
    metric = check_metric(metric)
    level, seed = check_share("confidence_level", confidence_level), resampling.seed_of(random_state)
    counted, paired = read_rows(table, y_prob, cluster, rows)
    spread = _bootstrapped(metric, counted, paired, seed=seed, n_resamples=n_resamples, show=progress)
    return spread.to_interval(level)


def null(
    metric: Measure,
    table: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    alternative: Alternative | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Null:
    """What a metric would read if the model were right: outcomes drawn from the scores, same kind of bins.

    Parameters
    ----------
    metric, table, y_prob, n_resamples, random_state, progress
        See `interval`.
    confidence_level : float, default=0.95
        Of the band, the middle of the distribution.
    alternative : {"greater", "two-sided"}, optional
        Which readings speak against the model. By default high ones for metrics of gaps, extreme ones for all others
        (a Brier score can be lower than a right model's too, by scores that are too timid).

    Returns
    -------
    Null
        ``expected``, the band ``low`` to ``high``, ``pvalue``, and ``excess``, the value less what is expected.

    Notes
    -----
    The p-value, (1 + draws at least as extreme) / (1 + draws), is exact for counts: under the null the data are one
    more draw. With importance weights it is as good as the effective number of rows.

    Examples
    --------
    >>> from calibrant import TCE
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = null(TCE(), rng.random(2000) < p, p, random_state=0)
    >>> bool(found.low <= found.value <= found.high), found.pvalue > 0.05
    (True, True)
    """
    metric = check_metric(metric)
    if alternative not in (None, "greater", "two-sided"):
        raise InputError(
            f"alternative must be 'greater' or 'two-sided'; it is {alternative!r}.", argument="alternative"
        )
    level, seed = check_share("confidence_level", confidence_level), resampling.seed_of(random_state)
    (spread,) = spreads(
        [metric], table_of(table, y_prob, rows), seed=seed, n_resamples=n_resamples, bootstrap=False, show=progress
    )
    return spread.to_null(level, alternative)


def equivalence(
    metric: Measure,
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
    """Is the model calibrated *enough*? Tests the hypothesis that the metric is as large as the margin.

    With many rows every model is miscalibrated beyond doubt, by amounts that matter to nobody; a small p-value here
    says that the metric lies within the margin.

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
        below the margin exactly then (but for the steps of resampling).

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [30_000, 30_000, 30_000], [6_050, 15_020, 24_060])
    >>> equivalence(ECE(), table, margin=0.01, random_state=0).within
    True
    """
    metric = check_metric(metric)
    check_margin(margin, alpha, n_resamples)
    seed = resampling.seed_of(random_state)
    counted, paired = read_rows(table, y_prob, cluster, rows)
    spread = _bootstrapped(metric, counted, paired, seed=seed, n_resamples=n_resamples, show=progress)
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
    return tables[0], paired
