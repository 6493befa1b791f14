"""When a stream changed, and whether its windows vary more than their rows explain."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import InputError, check_share
from calibrant._support.logistic import EPS, expit, logit
from calibrant.inference.sequential.e_values import is_clear
from calibrant.tables.score_table import ScoreTable

MOST_WINDOWS = 1_000  # longer streams are added up to so many windows before a change is looked for
FEWEST_EVENTS = 5.0  # expected events, and other rows, of a window whose variation is measured
FEWEST_PAIRS = 10
STEPS = 12


@dataclass(frozen=True)
class WindowSums:
    """Sums of the windows of a stream, one entry per window in the order of time.

    Attributes
    ----------
    rows, events, expected : arrays
        Numbers of rows and events, and sums of scores.
    information : array
        Sums of p (1 - p).
    squared : array
        Sums of squared expected rows of the rarer outcome, of one window the square itself; of the more common outcome
        where the mean score lies between 40 and 60 %.

    See Also
    --------
    change_point, dispersion

    Examples
    --------
    >>> import calibrant as cb
    >>> sums = WindowSums.from_tables([cb.ScoreTable.from_counts([0.2], [500], [k]) for k in (100, 130)])
    >>> sums.rows, sums.events, sums.expected
    (array([500., 500.]), array([100., 130.]), array([100., 100.]))
    """

    rows: Floats
    events: Floats
    expected: Floats
    information: Floats
    squared: Floats

    @classmethod
    def from_columns(cls, rows: Floats, events: Floats, expected: Floats, information: Floats) -> "WindowSums":
        """Return the sums of windows.

        Parameters
        ----------
        rows, events, expected, information : array
            Number of rows, number of events, sum of p and sum of p (1 - p) of each window.

        Returns
        -------
        WindowSums
        """
        columns = [np.asarray(column, dtype=np.float64) for column in (rows, events, expected, information)]
        if any(c.ndim != 1 or c.shape != columns[0].shape or not np.isfinite(c).all() for c in columns):
            raise InputError("Sums of windows must be equally long columns of finite numbers.", argument="rows")
        rows, expected = columns[0], columns[2]
        side = np.where(_by_event(expected / np.maximum(rows, 1)), expected, rows - expected)
        return cls(rows, columns[1], expected, columns[3], side**2)

    @classmethod
    def from_tables(cls, tables: list[ScoreTable]) -> "WindowSums":
        """Return the sums of tables, one per window.

        Parameters
        ----------
        tables : list of ScoreTable
            One table per window, in the order of time.

        Returns
        -------
        WindowSums
        """
        sums = [(t.n.sum(), t.k.sum(), t.n @ t.score, t.n @ (t.score * (1 - t.score))) for t in tables]
        return cls.from_columns(*np.array(sums, dtype=np.float64).reshape(-1, 4).T)

    def __len__(self) -> int:
        return self.rows.size

    def added(self, first: Ints) -> "WindowSums":
        """Return the windows added up in runs that begin at `first`.

        Parameters
        ----------
        first : array of int
            Position of the first window of each run.

        Returns
        -------
        WindowSums
            One entry per run.
        """
        return WindowSums(*[np.add.reduceat(column, first) for column in vars(self).values()])

    def part(self, windows: Bools | Ints) -> "WindowSums":
        """Return some of the windows.

        Parameters
        ----------
        windows : array
            Mask or positions.

        Returns
        -------
        WindowSums
        """
        return WindowSums(*[column[windows] for column in vars(self).values()])


@dataclass(frozen=True)
class ChangePoint:
    """The first window after a change of the log-odds error, counted from 0, with a confidence interval.

    Attributes
    ----------
    index : int
        The window.
    low, high : int
        Limits of the confidence interval.

    See Also
    --------
    change_point

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.inference import WindowSums, change_point
    >>> tables = [cb.ScoreTable.from_counts([0.2], [500], [k]) for k in [100] * 5 + [160] * 5]
    >>> change = change_point(WindowSums.from_tables(tables))
    >>> change.index, change.low, change.high
    (5, 5, 5)
    """

    index: int
    low: int
    high: int


def change_point(sums: WindowSums, *, window_effect: float = 0.0, alpha: float = 0.05) -> ChangePoint | None:
    """Return the most likely window of one change of the log-odds error; None with fewer than two windows of rows.

    Parameters
    ----------
    sums : WindowSums
    window_effect : float, default 0.0
        Standard deviation of the effect of a window, relative to the rate of the rarer outcome.
    alpha : float, default 0.05
        One minus the confidence level.

    Returns
    -------
    ChangePoint or None
        The window with its confidence interval.

    See Also
    --------
    ChangePoint, WindowSums, dispersion

    Notes
    -----
    Before and from s on, the log-odds of the windows' mean scores are shifted by one number each, fitted by maximum
    likelihood of binomial counts; windows weigh less if their stated effects vary more than their rows. The best s is
    the estimate. The interval holds every s whose log-likelihood is within -log(1 - sqrt(1 - alpha)) of the best, the
    large-sample limit for one change between two constant errors. Of more than 1,000 windows neighbours are added up.

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> before = [ScoreTable.from_counts([0.2], [500], [100])] * 5
    >>> after = [ScoreTable.from_counts([0.2], [500], [160])] * 5
    >>> change_point(WindowSums.from_tables(before + after)).index
    5
    """
    check_share("alpha", alpha)
    used = np.flatnonzero(sums.information > 0)
    if used.size < 2:
        return None
    step = -(-used.size // MOST_WINDOWS)
    first = np.arange(0, used.size, step)
    likelihood = _likelihoods(sums.part(used).added(first), window_effect)
    if likelihood.size == 0:
        return None
    near = np.flatnonzero(likelihood >= likelihood.max() + np.log1p(-np.sqrt(1 - alpha)))
    # Entry i is a change before run i + 1. Where windows were added up, it may lie anywhere after the start of run i.
    best, last = first[1 + np.argmax(likelihood)], first[1 + near[-1]]
    earliest = first[near[0]] + 1
    return ChangePoint(*(int(used[i]) for i in (best, earliest, last)))


def _likelihoods(sums: WindowSums, window_effect: float) -> Floats:
    """Return the log-likelihood of a change before each window but the first."""
    score = logit(sums.expected / sums.rows, EPS)
    weight = sums.information / (sums.information + window_effect**2 * sums.squared)
    count = len(sums)
    before = np.arange(count)[None, :] < np.arange(1, count)[:, None]
    return _fitted(sums, score, weight * before) + _fitted(sums, score, weight * ~before)


def _fitted(sums: WindowSums, score: Floats, weight: Floats) -> Floats:
    """Return the weighted log-likelihood at the best shift, one per row of weights."""
    shift = np.zeros(len(weight))
    for _ in range(STEPS):
        rate = expit(score + shift[:, None])
        slope = np.sum(weight * (sums.events - sums.rows * rate), axis=1)
        curvature = np.sum(weight * sums.rows * rate * (1 - rate), axis=1)
        shift = np.clip(shift + np.clip(slope / np.maximum(curvature, 1e-300), -2, 2), -30, 30)
    linear = score + shift[:, None]
    return np.asarray(np.sum(weight * (sums.events * linear - sums.rows * np.logaddexp(0, linear)), axis=1))


@dataclass(frozen=True)
class Dispersion:
    """How much windows vary, compared with independent rows and a stated effect of the window.

    Attributes
    ----------
    ratio : float
        Observed over stated variance of the differences between neighbouring windows.
    window_effect : float
        Estimated standard deviation of the effect of a window, relative to the rate of the rarer outcome; 0 where none
        is significant.
    pvalue : float
        Of the hypothesis that the windows vary as stated. Approximate; effects with heavy tails make it too small.
    correlation : float
        Correlation of the residuals of neighbouring windows. Effects that last, drifts and changes make it positive.

    See Also
    --------
    dispersion

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.inference import WindowSums, dispersion
    >>> tables = [cb.ScoreTable.from_counts([0.2], [500], [k]) for k in [60, 140, 80, 120] * 6]
    >>> windows = dispersion(WindowSums.from_tables(tables))
    >>> windows.ratio > 1, windows.pvalue < 0.05
    (True, True)
    """

    ratio: float
    window_effect: float
    pvalue: float
    correlation: float


def dispersion(sums: WindowSums, *, window_effect: float = 0.0) -> Dispersion | None:
    """Compare the variation of windows with that of independent rows and a stated effect of the window.

    Neighbouring windows are compared in pairs, so that a slow drift does not count; of the two ways to form pairs the
    one with less variation decides, so that one change does not count either. Windows are first added up until five
    events and five other rows are expected in each. Returns None with fewer than ten pairs.

    Parameters
    ----------
    sums : WindowSums
    window_effect : float, default 0.0
        The stated standard deviation of the effect of a window, relative to the rate of the rarer outcome.

    Returns
    -------
    Dispersion or None
        Ratio of the variation, with its test.

    See Also
    --------
    Dispersion, WindowSums, change_point

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> windows = [ScoreTable.from_counts([0.2], [500], [k]) for k in [90, 110] * 12]
    >>> dispersion(WindowSums.from_tables(windows)) is not None
    True
    """
    full = _with_enough_events(sums)
    if len(full) < 2 * FEWEST_PAIRS + 1:
        return None
    pairings = [_Pairs.from_windows(full, start) for start in (0, 1)]
    stated = min((pairs.test(window_effect) for pairs in pairings), key=lambda test: -test[1])
    none = max(pairs.test(0.0)[1] for pairs in pairings)
    effect = min(pairs.effect() for pairs in pairings) if none <= 0.05 else 0.0
    standard = (full.events - full.expected) / np.sqrt(full.information + window_effect**2 * full.squared)
    correlation = float(np.corrcoef(standard[:-1], standard[1:])[0, 1]) if np.ptp(standard) > 0 else 0.0
    return Dispersion(stated[0], effect, stated[1], correlation)


def _by_event(mean: Floats) -> Bools:
    """Return whether effects are relative to the event: the rarer outcome, or the other one if neither is clear."""
    return np.where(is_clear(mean), mean < 0.5, mean >= 0.5)


def _with_enough_events(sums: WindowSums) -> WindowSums:
    """Add up windows until each expects enough events and other rows."""
    first, events, others = [], np.inf, np.inf
    for i in range(len(sums)):
        if min(events, others) >= FEWEST_EVENTS:
            first.append(i)
            events = others = 0.0
        events += sums.expected[i]
        others += sums.rows[i] - sums.expected[i]
    if not first:
        return sums.part(np.zeros(len(sums), dtype=bool))
    added = sums.added(np.array(first))
    whole = np.ones(len(added), dtype=bool)
    whole[-1] = min(events, others) >= FEWEST_EVENTS
    return added.part(whole)


@dataclass(frozen=True)
class _Pairs:
    """Differences of neighbouring windows in log-odds: squared, their variance by rows, and by effects of SD 1."""

    squared: Floats
    rows: Floats
    effects: Floats
    kurtosis: Floats

    @classmethod
    def from_windows(cls, sums: WindowSums, start: int) -> "_Pairs":
        last = start + (len(sums) - start) // 2 * 2
        pairs = np.arange(start, last).reshape(-1, 2)
        rows, information = sums.rows[pairs], sums.information[pairs]
        # Rows vary by the rate that the pair shows, not by the one that the scores predict.
        rate, score = (c[pairs].sum(axis=1) / rows.sum(axis=1) for c in (sums.events, sums.expected))
        scale = (rate * (1 - rate) / (score * (1 - score)))[:, None]
        variance = scale / information
        side = np.where(_by_event(score), rate / score, (1 - rate) / (1 - score))
        effects = side[:, None] ** 2 * sums.squared[pairs] / information**2
        residual = (sums.events[pairs] - sums.expected[pairs]) / information
        return cls(
            squared=np.diff(residual, axis=1)[:, 0] ** 2,
            rows=variance.sum(axis=1),
            effects=effects.sum(axis=1),
            kurtosis=np.sum(variance**2 / np.maximum(scale * information, 1e-300), axis=1),
        )

    def test(self, window_effect: float) -> tuple[float, float]:
        """Return observed over stated variance, and the p-value of "as stated"."""
        from scipy.special import gammaincc

        used = self.rows > 0
        stated = (self.rows + window_effect**2 * self.effects)[used]
        total, mean = float(np.sum(self.squared[used] / stated)), float(used.sum())
        variance = float(np.sum(2 + self.kurtosis[used] / stated**2))  # a gamma variable with these moments
        return total / mean, float(gammaincc(mean**2 / variance, total * mean / variance))

    def effect(self) -> float:
        """Return the estimated standard deviation of the effects; pairs with much information weigh more."""
        used = self.rows > 0
        weight = self.effects[used] / self.rows[used] ** 2
        squared = float(weight @ (self.squared - self.rows)[used]) / float(weight @ self.effects[used])
        return float(max(0.0, squared) ** 0.5)
