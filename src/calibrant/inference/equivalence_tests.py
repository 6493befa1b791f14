"""Equivalence tests: is a metric shown to lie within a margin?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import plain
from calibrant._support.option_checks import check_share, is_number
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.short_text import line_html
from calibrant._support.typing import Column
from calibrant.inference.interval_methods import check_interval, interval_limits, interval_method
from calibrant.inference.intervals import bootstrap_metric
from calibrant.inference.replicates import Replicates
from calibrant.inference.resampling import check_resamples
from calibrant.inference.result_text import format_limits, format_pvalues
from calibrant.inference.samples import read_sample
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.table_functions import row_options

__all__ = ["Equivalence", "equivalence"]


@dataclass(frozen=True, repr=False)
class Equivalence:
    """Whether a metric is shown to lie within a margin; see `equivalence`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value, margin : float
        Value of the metric and the margin.
    pvalue : float
        p-value of the hypothesis that the metric is at least the margin.
    alpha : float
        Significance level.
    bound : float
        Upper confidence limit of the metric.
    unit : str
        "%" or "1".
    n_resamples : int
        Number of replicates.
    spec : mapping
        Specification of the metric.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    equivalence, AbsoluteMargin

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.equivalence("ace", table, margin=0.2, n_resamples=199, random_state=0)
    >>> found.within, found.bound < 0.2
    (True, True)
    """

    metric: str
    value: float
    margin: float
    pvalue: float
    alpha: float
    bound: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any]
    notes: tuple[Note, ...] = ()

    @classmethod
    def from_replicates(cls, replicates: Replicates, margin: float, alpha: float) -> "Equivalence":
        """Return the equivalence test at a margin; an error where no interval exists.

        Parameters
        ----------
        replicates : Replicates
            Bootstrap replicates of the metric.
        margin : float
            Bound that the metric is tested to lie below.
        alpha : float
            Significance level.

        Returns
        -------
        Equivalence
        """
        check_interval(replicates)
        metric = replicates.metric
        if interval_method(metric) == "inversion":
            bounds = replicates.sample.error_bounds
            pvalue, bound = bounds.pvalue(margin), bounds.upper(alpha, margin)
        else:
            pvalue, bound = _equivalence_pvalue(replicates, margin), _upper_bound(replicates, alpha)
        size, notes = replicates.bootstrap.size, replicates.notes
        return cls(metric.name, replicates.value, margin, pvalue, alpha, bound, metric.unit, size, metric.spec, notes)

    @property
    def within(self) -> bool:
        """Whether the data show that the metric lies within the margin: pvalue <= alpha."""
        return self.pvalue <= self.alpha

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), "within": self.within}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits(self.unit, self.value, self.value, self.bound, signed=self.value < 0)
        bound = f"upper bound {limits.partition(' to ')[2]}" if limits else "no bound"
        shown = "within" if self.within else "not shown within"
        margin = f"{self.margin:g}{' %' if self.unit == '%' else ''}"
        texts = [f"{self.metric} = {value}", bound, f"{shown} the margin of {margin}"]
        return f"Equivalence({', '.join(texts + format_pvalues(self.pvalue))})"


def _equivalence_pvalue(replicates: Replicates, margin: float) -> float:
    """Return the smallest tail probability whose limits lie within the margin, by bisection.

    It is at least 1 / (1 + replicates), the smallest p-value of a resampling test.
    """
    least, most = 1 / (1 + replicates.bootstrap.size), 0.5
    if _upper_bound(replicates, least) < margin:
        return least
    if _upper_bound(replicates, most) >= margin:
        return 1.0
    while most - least > 1e-6:
        middle = (least + most) / 2
        least, most = (least, middle) if _upper_bound(replicates, middle) < margin else (middle, most)
    return most


def _upper_bound(replicates: Replicates, tail: float) -> float:
    """Return the upper limit; for metrics with a sign that of the absolute value."""
    low, high = interval_limits(replicates, 1 - 2 * tail)
    return high if replicates.metric.measures_gaps else max(high, -low)


@row_options
def equivalence(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
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
    metric, y_true, forecast, n_resamples, random_state, cluster, progress
        See `interval`.
    margin : float
        In the unit of the metric: 0.01 for ECE is one percentage point, 10 for TCE is 10 %. A metric with a sign, such
        as the bias, must lie between -margin and margin.
    alpha : float, default=0.05
        Level of the test, below 0.5.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Equivalence
        ``pvalue``; ``within``, whether it is at most alpha; ``bound``, the upper limit at level 1 - alpha, which is
        below the margin where `within` holds, up to the resolution of the replicates.

    See Also
    --------
    interval, null, Equivalence, AbsoluteMargin

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [30_000, 30_000, 30_000], [6_050, 15_020, 24_060])
    >>> equivalence(ECE(), table, margin=0.01, random_state=0).within
    True
    """
    measured = as_metric(metric)
    _check_options(margin, alpha, n_resamples)
    seed = seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, rows)
    found = bootstrap_metric(measured, sample, seed=seed, n_resamples=n_resamples, show=progress)
    return Equivalence.from_replicates(found, margin, alpha)


def _check_options(margin: float, alpha: float, n_resamples: int) -> None:
    if not (is_number(margin) and margin > 0):
        raise InputError(f"margin must be a positive number; got {margin!r}.", argument="margin", value=margin)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(f"alpha must lie below 0.5; got {alpha!r}.", argument="alpha", value=alpha)
    check_resamples(n_resamples, alpha)
