"""`estimate_event_rate`: the event rate of rows without outcomes, from their scores and from rows with outcomes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, Note, check_option, check_share, join_notes
from calibrant._support.formatting import p_text
from calibrant._support.logistic import EPS, expit, log_likelihood, logit
from calibrant._support.plain_data import plain
from calibrant._support.roots import find_root
from calibrant.inference.power import table_of_scores
from calibrant.metrics.log_odds import Logits, count_clipped
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, need_both_classes, read_score_table

EventRateMethod: TypeAlias = Literal["em", "bbse"]

_FEWEST_PER_BIN = 20
_MOST_BINS = 10
_TINY = 1e-12
DOUBTFUL = 0.01  # p-value below which the assumption, or the calibration of the reference rows, is in doubt


@dataclass(frozen=True, repr=False)
class EventRate:
    """An estimated event rate; see `estimate_event_rate`.

    Attributes
    ----------
    value, low, high : float
        Event rate of the new rows, with its confidence interval.
    level : float
    method : str
    reference_rate : float
        Event rate of the rows with outcomes.
    check : TestResult
        Test of the assumption that the scores of events, and of other rows, have the distributions of the reference
        rows. A small p-value says that the assumption does not hold, and that the estimate is not valid.
    n_rows, n_reference : float
    notes : tuple of Note

    See Also
    --------
    estimate_event_rate

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from calibrant.inference import estimate_event_rate
    >>> rng = np.random.default_rng(0)
    >>> y, new = rng.random(4000) < 0.2, rng.random(4000) < 0.4
    >>> rate = estimate_event_rate(y, expit(rng.normal(-2 + 2 * y, 1)), new_scores=expit(rng.normal(-2 + 2 * new, 1)))
    >>> round(rate.value, 2), round(rate.reference_rate, 2)
    (0.4, 0.21)
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    reference_rate: float
    check: TestResult
    n_rows: float
    n_reference: float
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self, skip=("check",)) | {"check": self.check.to_dict()}

    def __repr__(self) -> str:
        interval = f"{100 * self.level:g} % CI {100 * self.low:.4g} to {100 * self.high:.4g} %"
        check = "not possible, too few rows" if math.isnan(self.check.pvalue) else p_text(self.check.pvalue)
        return (
            f"EventRate({100 * self.value:.4g} %, {interval}; reference {100 * self.reference_rate:.4g} %; "
            f"check of the assumption: {check})"
        )

    @property
    def miscalibrated_reference(self) -> bool:
        """Whether the scores of the reference rows are miscalibrated, so that a change of their odds is not enough."""
        return any(note.code == "miscalibrated_reference" for note in self.notes)


def estimate_event_rate(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    new_scores: Column,
    method: EventRateMethod = "em",
    recalibrate: bool = True,
    threshold: float | None = None,
    confidence_level: float = 0.95,
    **rows: Unpack[RowOptions],
) -> EventRate:
    r"""Estimate the event rate of new rows from their scores alone, if only the class proportions have changed.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and scores of reference rows, which the model was not fitted on; or one `ScoreTable`.
    new_scores : column
        Scores of the new rows, whose outcomes are not known.
    method : {"em", "bbse"}, default="em"
        ``"em"``: the maximum of the likelihood of the new scores, to which the algorithm of Saerens et al. (2002)
        converges. ``"bbse"``: black box shift estimation of Lipton et al. (2018), from the share of new scores that
        reach a threshold. EM is more precise; BBSE does not use the values of the scores as probabilities.
    recalibrate : bool, default=True
        For EM: first recalibrate the scores by Cox's logistic regression on the reference rows. EM is biased if scores
        are not calibrated on the reference rows.
    threshold : float, optional
        Of BBSE; by default the score at which Cox's recalibration on the reference rows gives their event rate. There
        the shares of events and of other rows that reach it differ most.
    confidence_level : float, default=0.95
    frequency, pos_label, missing
        Options for reading reference rows; see `ScoreTable.from_arrays`.
    sample_weight : None
        Must be None: the event rate is estimated from counts.

    Returns
    -------
    EventRate
        ``PriorShift(prevalence=rate.value, trained_prevalence=rate.reference_rate)`` corrects the scores, and
        ``PriorShift.from_scores`` does both.

    See Also
    --------
    EventRate, PriorShift

    Notes
    -----
    Assumption: the scores of events have the same distribution in both sets of rows, and so have those of other rows.
    EM also assumes that the log-odds of the event are a line in the logit of the score, which Cox's recalibration
    fits: with another shape of the calibration curve EM is biased, BBSE is not, and the check cannot tell. A note says
    if the scores of the reference rows are miscalibrated.

    EM maximises the mean of log(1 + r (L - 1)) over r, L the likelihood ratio of the score. Its interval is that of
    the likelihood ratio, divided by the factor by which the reference rows increase the variance of the estimate.
    BBSE: r = (s - b) / (a - b), s the share of new scores that reach the threshold, a and b those of events and other
    rows of the reference; its interval is Fieller's.

    The check divides the scores into at most ten bins, at quantiles of the mean of the class distributions of the
    reference rows and with at least 20 events each, and compares the shares of the new rows with the best mixture of
    the shares of events and other rows (minimum chi-squared, number of bins less 2 degrees of freedom). It cannot
    detect changes that look like a change of the event rate, and with few events its power is low.

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
       probabilities".
    .. [2] Lipton, Wang & Smola (2018), "Detecting and correcting for label shift with black box predictors".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(4000) < 0.2
    >>> p = expit(rng.normal(-2 + 2 * y, 1))
    >>> new = rng.random(4000) < 0.4
    >>> rate = estimate_event_rate(y, p, new_scores=expit(rng.normal(-2 + 2 * new, 1)))
    >>> rate.low < 0.4 < rate.high, rate.check.pvalue > 0.05
    (True, True)
    """
    check_option("method", method, get_args(EventRateMethod))
    level = check_share("confidence_level", confidence_level)
    table = _read_reference(y_true, y_prob, rows)
    new = table_of_scores(new_scores, "new_scores")
    if not len(new):
        raise InputError("new_scores must have at least one row; got none.", argument="new_scores")
    if method == "bbse":
        cut = _youden_threshold(table) if threshold is None else check_share("threshold", threshold)
        value, low, high = _bbse(table, new, cut, level)
    else:
        value, low, high = _em(table, new, level, recalibrate=recalibrate)
    sizes = float(new.size), float(table.size)
    notes = join_notes(table.notes, count_clipped(new, EPS)[1], _miscalibration(table))
    return EventRate(value, low, high, level, method, table.prevalence, _check(table, new), *sizes, notes)


def _miscalibration(table: ScoreTable) -> tuple[Note, ...]:
    """Return a note if Cox's line of the reference rows differs from the diagonal, by a likelihood ratio at 1 %."""
    from scipy.special import chdtrc

    x = logit(table.score, EPS)
    line = Logits.from_table(table, EPS).fit(table)
    if line is None:
        return ()
    gain = 2 * (log_likelihood(line[0] * x + line[1], table.n, table.k) - log_likelihood(x, table.n, table.k))
    if chdtrc(2, max(gain, 0.0)) >= DOUBTFUL:
        return ()
    mean = float(np.sum(table.n * table.score)) / float(table.size)
    rates = f"mean score {100 * mean:.3g} %, event rate {100 * table.prevalence:.3g} %"
    text = f"The scores of the reference rows are miscalibrated: {rates}, slope {line[0]:.3g}."
    return (Note("miscalibrated_reference", 1, text),)


def _read_reference(y_true: Any, y_prob: Any, rows: RowOptions) -> ScoreTable:
    table = read_score_table(y_true, y_prob, rows)
    need_both_classes(table, "estimate_event_rate")
    if table.importance:
        raise InputError(
            "sample_weight must be None: the event rate is estimated from counts; got importance weights.",
            hint="Pass frequency= for repeated rows.",
            argument="sample_weight",
        )
    return table


def _em(table: ScoreTable, new: ScoreTable, level: float, *, recalibrate: bool) -> tuple[float, float, float]:
    """Return the estimate of maximum likelihood and its limits."""
    from scipy.special import ndtri

    line = _reference_line(table) if recalibrate else (1.0, 0.0)
    x, z = logit(new.score, EPS), float(ndtri((1 + level) / 2))
    rate = table.prevalence
    ratio = np.exp(line[1] + line[0] * x) * (1 - rate) / rate
    share = new.n / float(new.size)

    def slope(r: float) -> float:
        return float(np.sum(share * (ratio - 1) / (1 + r * (ratio - 1))))

    value = _maximum(slope)
    term = (ratio - 1) / (1 + value * (ratio - 1))
    alone = float(np.sum(share * term**2)) / float(new.size)
    # The derivative of the equation with respect to log L, and the influence of the reference rows on log L.
    by_log_ratio = share * ratio / (1 + value * (ratio - 1)) ** 2
    slopes = float(by_log_ratio @ x), float(by_log_ratio.sum())
    added = _reference_variance(table, line, slopes, recalibrate=recalibrate)
    return value, *_likelihood_limits(ratio, new, value, z**2 * (alone + added) / alone)


def _maximum(slope: Callable[[float], float]) -> float:
    """Return the rate in [0, 1] at which the likelihood is greatest, by its falling derivative."""
    if slope(0.0) <= 0:
        return 0.0
    return 1.0 if slope(1 - _TINY) >= 0 else find_root(slope, 0.0, 1 - _TINY)


def _likelihood_limits(ratio: Floats, new: ScoreTable, value: float, most: float) -> tuple[float, float]:
    """Return the rates at which twice the log likelihood is lower than its maximum by `most`."""
    n = new.n.astype(np.float64)

    def excess(r: float) -> float:
        return 2 * float(np.sum(n * (np.log1p(value * (ratio - 1)) - np.log1p(r * (ratio - 1))))) - most

    low = find_root(excess, 0.0, value) if value > 0 and excess(0.0) > 0 else 0.0
    top = 1 - _TINY
    high = find_root(excess, value, top) if value < top and excess(top) > 0 else 1.0
    return low, high


def _reference_line(table: ScoreTable) -> tuple[float, float]:
    line = Logits.from_table(table, EPS).fit(table)
    if line is None:
        raise InputError(
            "y_true and y_prob must have two scores and no threshold that separates the outcomes; they do not.",
            hint="Pass recalibrate=False, or method='bbse'.",
            argument="y_prob",
        )
    return line


def _reference_variance(
    table: ScoreTable, line: tuple[float, float], slopes: tuple[float, float], *, recalibrate: bool
) -> float:
    """Return the variance that the reference rows add to the estimating equation.

    log L is a x + b - logit(event rate); `slopes` are the derivatives of the equation by a and b. Each row has its
    influence on the line and on the event rate.
    """
    x, rate, size = logit(table.score, EPS), table.prevalence, float(table.size)
    by_rate = -slopes[1] / (rate * (1 - rate)) / size
    influence = {y: np.full(len(table), by_rate * (y - rate)) for y in (0, 1)}
    if recalibrate:
        q = expit(line[1] + line[0] * x)
        columns = np.stack([x, np.ones(len(table))])
        effect = np.array(slopes) @ np.linalg.inv((columns * (table.n * q * (1 - q))) @ columns.T) @ columns
        influence = {y: of_rate + effect * (y - q) for y, of_rate in influence.items()}
    return float(np.sum(table.k * influence[1] ** 2 + (table.n - table.k) * influence[0] ** 2))


def _bbse(table: ScoreTable, new: ScoreTable, cut: float, level: float) -> tuple[float, float, float]:
    """Return the estimate by the shares of scores that reach the threshold, and Fieller's limits."""
    from scipy.special import ndtri

    reached, z = table.score >= cut, float(ndtri((1 + level) / 2))
    events, others = float(table.positives), float(table.size - table.positives)
    a, b = float(table.k[reached].sum()) / events, float((table.n - table.k)[reached].sum()) / others
    s, m = float(new.n[new.score >= cut].sum()) / float(new.size), float(new.size)
    if not a > b:
        raise InputError(
            f"threshold must be reached by a larger share of events than of other rows; got {a:.4g} and {b:.4g}.",
            hint="Pass another threshold; scores that do not discriminate carry no information about the event rate.",
            argument="threshold",
            value=cut,
        )
    value = float(np.clip((s - b) / (a - b), 0.0, 1.0))
    of_new, of_a, of_b = _share_variance(s, m), _share_variance(a, events), _share_variance(b, others)
    # (s - b - r (a - b))^2 = z^2 (V(s) + r^2 V(a) + (1 - r)^2 V(b)), a quadratic equation in r.
    square = (a - b) ** 2 - z**2 * (of_a + of_b)
    linear = -2 * (s - b) * (a - b) + 2 * z**2 * of_b
    constant = (s - b) ** 2 - z**2 * (of_new + of_b)
    root = linear**2 - 4 * square * constant
    if square <= 0 or root < 0:
        return value, 0.0, 1.0
    low, high = (np.clip((-linear + side * root**0.5) / (2 * square), 0.0, 1.0) for side in (-1, 1))
    return value, float(min(low, value)), float(max(high, value))


def _youden_threshold(table: ScoreTable) -> float:
    slope, intercept = _reference_line(table)
    if slope <= 0:
        raise InputError(
            f"y_prob must rise with the event rate on the reference rows; got a calibration slope of {slope:.4g}.",
            hint="Scores that do not discriminate carry no information about the event rate.",
            argument="y_prob",
        )
    rate = table.prevalence
    return float(expit(np.array([(np.log(rate / (1 - rate)) - intercept) / slope]))[0])


def _share_variance(share: float, size: float) -> float:
    """Return the variance of a share, with two rows more on each side, so that it is never 0."""
    moved = (share * size + 2) / (size + 4)
    return moved * (1 - moved) / size


def _check(table: ScoreTable, new: ScoreTable) -> TestResult:
    """Return the test that the new scores are a mixture of those of events and of other rows of the reference."""
    from scipy.special import chdtrc

    name = "unchanged class-conditional scores"
    rarest = min(float(table.positives), float(table.size - table.positives), float(new.size))
    count = int(min(_MOST_BINS, rarest // _FEWEST_PER_BIN))
    # Edges at quantiles of the mean of both class distributions: rare events have as many bins as the others.
    both = table.k / float(table.positives) + (table.n - table.k) / float(table.size - table.positives)
    upto = np.cumsum(both) / 2
    cuts = np.unique(table.score[np.searchsorted(upto, np.arange(1, max(count, 1)) / max(count, 1))])
    place, new_place = (np.searchsorted(cuts, rows.score, side="left") for rows in (table, new))
    counts = [
        np.bincount(bins, weights=weights, minlength=cuts.size + 1)
        for bins, weights in ((new_place, new.n), (place, table.k), (place, table.n - table.k))
    ]
    used = np.minimum(counts[1] + counts[2], counts[0] + counts[1] + counts[2]) > 0
    shares = [column[used] / column.sum() for column in counts]
    if used.sum() < 3:
        text = "Bins of scores, too few for the check of the assumption: {count}."
        note = Note("too_few_bins", int(used.sum()), text)
        return TestResult(float("nan"), float("nan"), name, df=0.0, notes=(note,))
    statistic = _mixture_distance(shares, [column.sum() for column in counts])
    df = float(used.sum() - 2)
    return TestResult(statistic, float(chdtrc(df, statistic)), name, df=df)


def _mixture_distance(shares: list[Floats], sizes: list[float]) -> float:
    """Return the smallest chi-squared distance between shares and a mixture of two others, over the mixing rate."""
    new, events, others = shares
    side, rate = events - others, 0.5
    for _ in range(50):  # the covariance depends on the rate
        weights = (1.0, rate**2, (1 - rate) ** 2)
        covariance = sum(
            w / size * (np.diag(_kept(share, size)) - np.outer(_kept(share, size), _kept(share, size)))
            for w, share, size in zip(weights, shares, sizes, strict=True)
        )
        inverse = np.linalg.pinv(covariance, rcond=1e-10)
        last, rate = rate, float(np.clip(side @ inverse @ (new - others) / (side @ inverse @ side), 0.0, 1.0))
        if abs(rate - last) < 1e-10:
            break
    away = new - others - rate * side
    return float(away @ inverse @ away)


def _kept(share: Floats, size: float) -> Floats:
    """Return shares with half a row more in each bin, for the covariance."""
    return np.asarray((share * size + 0.5) / (size + 0.5 * share.size))
