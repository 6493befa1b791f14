"""`calibration_curve`: the event rate as a function of the score, with pointwise and simultaneous bands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError, Note, check_option, check_resample_count, check_share, join_notes
from calibrant._support.logistic import EPS
from calibrant._support.plain_data import columns, frame_from_columns, plain
from calibrant._support.random_streams import RandomState, Stream, seed_sequence, stream_key
from calibrant.inference.curves.fitted_curves import FittedCurve, fit_local, fit_spline
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import read_rows
from calibrant.inference.tails import student_quantile
from calibrant.metrics.bins import PAVA
from calibrant.metrics.smooth_errors import SmoothErrors, score_groups, smooth_errors
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, event_squares, row_squares

CurveMethod: TypeAlias = Literal["spline", "local", "isotonic"]

_PURPOSE = 2  # of the random stream; the replicates of the bootstrap and the null have 0 and 1
_POINTS = 51  # of the grid at equal shares of the rows, and as many at equal distances


class CurveResult:
    """The base of calibration curves and belts: their columns as a frame, and their diagram."""

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per point of the grid.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return frame_from_columns({name: column.tolist() for name, column in self._columns().items()}, backend)

    def plot(self, **options: Any) -> Any:
        """Draw the curve; options as for `calibrant.plots.CalibrationCurveDisplay.plot`.

        Parameters
        ----------
        **options
            Those of `calibrant.plots.CalibrationCurveDisplay.plot`.

        Returns
        -------
        CalibrationCurveDisplay
            The display, drawn.
        """
        from calibrant.plots import CalibrationCurveDisplay

        return CalibrationCurveDisplay(dict[str, Any](model=self)).plot(**options)

    def _columns(self) -> dict[str, Floats]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationCurve(CurveResult):
    """A calibration curve with its bands; see `calibration_curve`.

    Attributes
    ----------
    score, estimate : ndarray
        Points of the grid, and the estimated event rate there.
    low, high : ndarray
        Simultaneous band: contains the whole curve with probability `level`.
    pointwise_low, pointwise_high : ndarray or None
        Confidence interval of each point by itself; None for the isotonic curve.
    level : float
    method : str
    errors : SmoothErrors
        ICI, E50, E90 and Emax: distances of the scores to this curve.
    settings : mapping
        What reproduces the curve: knots and coefficients, or span and degree.
    n_rows : float
    notes : tuple of Note
    crowds_end : bool
        Whether at least 80 % of the rows have scores within 0.1 of 0, or of 1: displays then choose logit axes.

    See Also
    --------
    calibration_curve, CalibrationBelt

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.inference import calibration_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> curve = calibration_curve(rng.random(2000) < p**2, p)
    >>> curve.contains_diagonal, round(curve.errors.emax, 2)
    (False, 0.26)
    """

    score: Floats
    estimate: Floats
    low: Floats
    high: Floats
    pointwise_low: Floats | None
    pointwise_high: Floats | None
    level: float
    method: str
    errors: SmoothErrors
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_rows: float = 0
    notes: tuple[Note, ...] = ()
    crowds_end: bool = False

    @property
    def diagonal(self) -> Floats:
        """The event rate of a calibrated model at each point: its score, clipped where the curve clips scores."""
        return np.clip(self.score, EPS, 1 - EPS) if self.method == "spline" else self.score

    @property
    def contains_diagonal(self) -> bool:
        """Whether a calibrated model lies inside the simultaneous band, at all points of the grid."""
        return bool(((self.low <= self.diagonal) & (self.diagonal <= self.high)).all())

    @property
    def bands(self) -> dict[str, tuple[Floats, Floats]]:
        """The bands by name, from the widest to the narrowest."""
        bands = {f"{100 * self.level:g} % simultaneous band": (self.low, self.high)}
        if self.pointwise_low is not None and self.pointwise_high is not None:
            bands[f"{100 * self.level:g} % pointwise band"] = (self.pointwise_low, self.pointwise_high)
        return bands

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self, skip=("errors",)) | columns(self._columns()) | {"errors": plain(self.errors)}

    def _columns(self) -> dict[str, Floats]:
        names = ("score", "estimate", "low", "high", "pointwise_low", "pointwise_high")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def __repr__(self) -> str:
        inside = "contains" if self.contains_diagonal else "does not contain"
        return (
            f"CalibrationCurve({self.method}: ICI {self.errors.ici:.4f}, Emax {self.errors.emax:.4f}; the "
            f"{100 * self.level:g} % simultaneous band {inside} the diagonal)"
        )


def calibration_curve(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    method: CurveMethod = "spline",
    n_knots: int | None = None,
    span: float | None = None,
    degree: int | None = None,
    at: Column | None = None,
    cluster: Column | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    random_state: RandomState = 0,
    **rows: Unpack[RowOptions],
) -> CalibrationCurve:
    r"""Event rate as a function of the score, with a pointwise and a simultaneous confidence band.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    method : {"spline", "local", "isotonic"}, default="spline"
        ``"spline"``: logistic regression on a restricted cubic spline of the logit of the score. ``"local"``: local
        regression (loess) of the outcomes on the scores. ``"isotonic"``: the rising step function of least squares
        (PAV).
    n_knots : int, optional
        Of the spline, from 3 to 7, at fixed quantiles of the scores. By default 5, or 4 or 3 where the outcomes do not
        determine a curve with more, because a part of it separates them; a note says so.
    span : float, optional
        Of the local regression, by default 0.75; see `calibrant.metrics.LocalRegression`.
    degree : int, optional
        Of the local regression, by default 2. An option of another method is an error.
    at : column of scores, optional
        Points of the grid; by default 51 quantiles of the scores and 51 points at equal distances, from the lowest to
        the highest score. The simultaneous band holds for these points.
    cluster : column, optional
        Rows of one cluster may depend on each other.
    confidence_level : float, default=0.95
    n_resamples, random_state
        Gaussian draws for the quantile of the simultaneous band; the isotonic band needs none.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    CalibrationCurve

    See Also
    --------
    CalibrationCurve, calibration_belt, CalibrationCurveDisplay

    Notes
    -----
    Spline: knots at the quantiles of Harrell (2015), as in R's ``rms::rcs``; scores are clipped to [2**-24, 1 -
    2**-24]. The band is symmetric on the log-odds scale. Independent rows have the covariance of Bernoulli outcomes, as
    in R; weights and clusters a robust (sandwich) covariance, with Student's distribution and the factor
    G / (G - parameters) for G clusters.

    Local: the curve is that of R's ``loess(surface="direct")``. Its bands are for the event rate, not for the smoothed
    rate: their centre is the curve less an estimate of its bias, that is the spline above plus the local regression of
    the residuals of that spline, and their width contains the error of both. With fewer than 200 rows of either outcome
    the bands are those of the spline, because its own would cover too little; a note says so. A note counts the points
    where the curve lies outside its band; where the outcomes determine no spline, the bands ignore the bias, and a note
    says so.

    The half-width of the simultaneous band is a multiple of the standard error: the quantile of the largest absolute
    value over the grid of a Gaussian process with the same correlation (sup-t band). Smooth bands do not cover a curve
    that the spline cannot follow, such as a wave; with many rows draw the isotonic band too. Scores of 0 and 1 become
    logits of -16.6 and 16.6, so one such row with the unexpected outcome can move the spline everywhere.

    Isotonic: the band of Dimitriadis et al. (2023) from exact binomial limits holds for any number of rows if the curve
    rises; it is conservative, and there is no pointwise band. With weights or clusters the limits are those of Korn and
    Graubard (1998) for surveys, exact limits of the effective number of rows: approximate, and still conservative,
    because they hold jointly by Bonferroni.

    References
    ----------
    .. [1] Austin & Steyerberg (2014), "Graphical assessment of internal and external calibration of logistic regression
       models by using loess smoothers".
    .. [2] Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023), "Honest calibration assessment for binary outcome
       predictions".
    .. [3] Korn & Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
       estimated from survey data".
    .. [4] Montiel Olea & Plagborg-Møller (2019), "Simultaneous confidence bands: theory, implementation, and an
       application to SVARs".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> curve = calibration_curve(rng.random(2000) < p**2, p)
    >>> curve
    CalibrationCurve(spline: ICI 0.1690, Emax 0.2574; the 95 % simultaneous band does not contain the diagonal)
    >>> calibration_curve(rng.random(2000) < p, p, method="isotonic").contains_diagonal
    True
    """
    check_option("method", method, get_args(CurveMethod))
    _check_method_options(method, n_knots=n_knots, span=span, degree=degree)
    level = check_share("confidence_level", confidence_level)
    check_resample_count(n_resamples)
    design = Design(*read_rows(y_true, y_prob, cluster, rows))
    grid = curve_grid(design.table, at)
    if method == "isotonic":
        return _isotonic(design, grid, level)
    if method == "local":
        fit = fit_local(design, grid, 0.75 if span is None else span, 2 if degree is None else degree)
    else:
        fit = fit_spline(design, grid, n_knots)
    return _with_bands(design, grid, fit, method, level, n_resamples, random_state)


def _check_method_options(method: str, **given: Any) -> None:
    """Refuse options that the method would ignore."""
    owners = {"n_knots": "spline", "span": "local", "degree": "local"}
    for name, value in given.items():
        if value is not None and owners[name] != method:
            raise InputError(
                f"{name} must be None with method={method!r}, which does not use it; got {value!r}.",
                hint=f"Pass method={owners[name]!r}, or leave {name} out.",
                argument=name,
                value=value,
            )


def spline_curve(design: Design, level: float, n_resamples: int = 999) -> CalibrationCurve | None:
    """Return the spline curve that evaluations show; None where there is none."""
    grid = curve_grid(design.table, None)
    try:
        fit = fit_spline(design, grid)
    except InputError:  # too few scores, or outcomes that a threshold separates
        return None
    return _with_bands(design, grid, fit, "spline", level, n_resamples, 0)


def _with_bands(
    design: Design, grid: Floats, fit: FittedCurve, method: str, level: float, n_resamples: int, state: RandomState
) -> CalibrationCurve:
    table, alone = design.table, student_quantile((1 + level) / 2, fit.degrees)
    whole = max(alone, supremum_quantile(fit.factor, fit.degrees, level, n_resamples, state))

    def limits(reach: float) -> tuple[Floats, Floats]:
        return fit.probability(fit.value - reach * fit.error), fit.probability(fit.value + reach * fit.error)

    bands = (*limits(whole), *limits(alone))
    notes = join_notes(table.notes, (*fit.notes, *_outside(fit.estimate, bands[0], bands[1])))
    errors = smooth_errors(table, fit.at_scores, "loess" if method == "local" else method)
    settings = fit.settings | {"multiple": whole, "n_resamples": n_resamples}
    shared: tuple[Any, ...] = (level, method, errors, settings, table.size, notes, table.crowds_end)
    return CalibrationCurve(grid, fit.estimate, *bands, *shared)


def _outside(estimate: Floats, low: Floats, high: Floats) -> tuple[Note, ...]:
    """Return a note if a curve leaves its own band, which local regression does where its bias is large."""
    count = int(((estimate < low) | (estimate > high)).sum())
    text = "Points of the grid at which the curve lies outside its band, because of the bias of the smoother: {count}."
    return (Note("biased_curve", count, text),) if count else ()


def supremum_quantile(
    factor: Floats, degrees: float, level: float, n_resamples: int, random_state: RandomState
) -> float:
    """Return the quantile of the largest absolute value of a Gaussian vector, divided by its standard deviations.

    `factor` is a root of the covariance. With finite degrees of freedom the vector is multivariate Student.
    """
    error = np.sqrt(np.sum(factor**2, axis=1, keepdims=True))
    varies = error[:, 0] > 0
    if not varies.any():
        return 0.0
    rng = Stream(stream_key(seed_sequence(random_state), _PURPOSE), 0).generator()
    draws = rng.standard_normal((n_resamples, factor.shape[1]))
    largest = np.abs(draws @ (factor[varies] / error[varies]).T).max(axis=1)
    if np.isfinite(degrees):
        largest /= np.sqrt(rng.chisquare(degrees, n_resamples) / degrees)
    return float(np.quantile(largest, level))


def _isotonic(design: Design, grid: Floats, level: float) -> CalibrationCurve:
    table = design.table
    blocks = PAVA()(table)
    at_scores = blocks.rate[blocks.labels]
    estimate = at_scores[np.maximum(np.searchsorted(table.score, grid, side="right") - 1, 0)]
    errors = smooth_errors(table, at_scores, "isotonic")
    exact = design.is_independent
    band = isotonic_band(table, grid, level) if exact else robust_isotonic_band(design, grid, level)
    shared: tuple[Any, ...] = (level, "isotonic", errors, {}, table.size, table.notes, table.crowds_end)
    return CalibrationCurve(grid, estimate, *band, None, None, *shared)


def curve_grid(table: ScoreTable, at: Column | None) -> Floats:
    """Return the points of a curve: those given, sorted, or quantiles and equidistant points of the scores."""
    if at is not None:
        column = _columns.read(at, "at")
        _columns.refuse_missing([column])
        return np.unique(_columns.scores(column).values)
    upto = np.cumsum(table.n, dtype=np.float64)
    ranks = np.searchsorted(upto, np.linspace(0, 1, _POINTS) * upto[-1] * (1 - 1e-12))
    even = np.linspace(table.score[0], table.score[-1], _POINTS)
    points = np.union1d(table.score[np.minimum(ranks, len(table) - 1)], even)
    # Points that differ only by rounding are one point.
    return np.asarray(points[np.append(True, np.diff(points) > 1e-12)])


_MOST_GROUPS = 400
_MOST_ROBUST_GROUPS = 50  # approximate limits must not reach far into the tails


def isotonic_band(table: ScoreTable, at: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the limits at each point of a band that contains the whole curve, if the curve rises.

    For each run of neighbouring scores the exact (Clopper and Pearson) limits of its event rate hold jointly with
    probability `level`, by Bonferroni over all m (m + 1) limits of m scores. A rising curve lies above the lower limit
    of each run that ends at or before the point, and below the upper limit of each run that starts at or after it.
    With more than 400 scores the runs are those of 400 groups of neighbouring scores, which depend on no outcome; the
    band stays valid. Runs that start or end without an event cannot give the highest lower limit, and are skipped.
    """
    start = score_groups(len(table), _MOST_GROUPS)
    n, k = np.add.reduceat(table.n, start), np.add.reduceat(table.k, start)
    first, last = table.score[start], table.score[np.append(start[1:], len(table)) - 1]
    tail = (1 - level) / (start.size * (start.size + 1))
    lowest = _highest_lower_limits(n, k, tail)
    mirrored = _highest_lower_limits(n[::-1], (n - k)[::-1], tail)[::-1]
    return _at_points(lowest, 1 - mirrored, first, last, at)


def _highest_lower_limits(n: Ints, k: Ints, tail: float) -> Floats:
    """Return for each group the highest lower limit of runs that end with it or before it."""
    from scipy.special import betaincinv

    limits = np.zeros(n.size)
    ends = np.flatnonzero(k > 0)
    rows, events = (np.concatenate([[0], np.cumsum(column)]) for column in (n, k))
    for end in ends:
        starts = ends[ends <= end]
        total, hits = rows[end + 1] - rows[starts], events[end + 1] - events[starts]
        limits[end] = float(betaincinv(hits, total - hits + 1, tail).max())
    return np.asarray(np.maximum.accumulate(limits))


def robust_isotonic_band(design: Design, at: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the same limits for weights or clusters, from approximate limits of each run.

    The limits are those of Korn and Graubard (1998) for proportions of surveys: exact binomial limits of the effective
    number of rows, which has the same variance, and which is reduced by the squared ratio of the quantiles of the
    normal and Student's distribution. The runs are those of 50 groups of neighbouring scores at most.
    """
    from scipy.special import betaincinv

    table = design.table
    start = score_groups(len(table), _MOST_ROBUST_GROUPS)
    first, last = table.score[start], table.score[np.append(start[1:], len(table)) - 1]
    tail = (1 - level) / (start.size * (start.size + 1))
    rate, size = _effective_runs(design, start, tail)
    events = rate * size
    exists = np.triu(np.ones(rate.shape, dtype=bool))
    lower = np.where(exists & (events > 0), betaincinv(np.maximum(events, 1e-300), size - events + 1, tail), 0.0)
    upper = np.where(exists & (events < size), betaincinv(events + 1, np.maximum(size - events, 1e-300), 1 - tail), 1.0)
    lowest = np.maximum.accumulate(lower.max(axis=0))
    highest = np.minimum.accumulate(upper.min(axis=1)[::-1])[::-1]
    return _at_points(lowest, highest, first, last, at)


def _effective_runs(design: Design, start: Ints, tail: float) -> tuple[Floats, Floats]:
    """Return event rate and effective number of rows of the run from group i to group j, at [i, j].

    The variance contains one more row of each outcome, with the mean weight of its kind, and it is at least that of a
    run with the design effect of all rows: a run without an event shows no variance.
    """
    from scipy.special import ndtri, stdtrit

    table = design.table
    n, k = (_run_sums(np.add.reduceat(column, start)) for column in (table.n, table.k))
    weights = _mean_weights(table)
    more = n + weights.sum()
    shrunk = (k + weights[0]) / more
    added = weights[0] ** 2 * (1 - shrunk) ** 2 + weights[1] ** 2 * shrunk**2
    variance = _run_variances(design, start, shrunk) + added
    size = shrunk * (1 - shrunk) * more**2 / variance
    size = np.minimum(size, size[0, -1] * n / n[0, -1])
    ratio = ndtri(tail) / stdtrit(design.degrees, tail)
    return k / n, np.maximum(size * min(float(ratio**2), 1.0), 1e-9)


def _run_sums(column: Floats | Ints) -> Floats:
    """Return the sum from group i to group j at [i, j]; sums of empty runs, below the diagonal, are the first value."""
    # Each run is added up by itself: differences of sums would lose small weights beside huge ones.
    every = np.triu(np.tile(np.asarray(column, dtype=np.float64), (column.size, 1)))
    return np.asarray(np.where(np.triu(np.ones(every.shape, dtype=bool)), np.cumsum(every, axis=1), column[0]))


def _mean_weights(table: ScoreTable) -> Floats:
    """Return the mean weight of rows with the event and of others, each row counted by its weight; 1 for counts."""
    squares = event_squares(table)
    pairs = ((squares.sum(), table.k.sum()), ((row_squares(table) - squares).sum(), (table.n - table.k).sum()))
    means = np.array([float(square / total) if total > 0 else float(table.n.max()) for square, total in pairs])
    return np.asarray(np.maximum(means, 1e-9 * means.max()))


def _run_variances(design: Design, start: Ints, rate: Floats) -> Floats:
    """Return the variance of the sum of weight * (event - rate) of each run, by rows or by clusters."""
    table = design.table
    if design.rows is None:
        events = _run_sums(np.add.reduceat(event_squares(table), start))
        every = _run_sums(np.add.reduceat(row_squares(table), start))
        return np.asarray(events * (1 - rate) ** 2 + (every - events) * rate**2)
    label = np.searchsorted(start, design.rows.places[0], side="right") - 1
    weight = np.ones(label.size) if design.rows.weight is None else design.rows.weight.astype(np.float64)
    sums = [_cluster_sums(design, label, weight * column, start.size) for column in (design.rows.event, 1.0)]
    kk, kn, nn = (_distances(sums[i], sums[j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    clusters = design.rows.n_draws
    robust = (kk - 2 * rate * kn + rate**2 * nn) * (clusters / (clusters - 1))
    return np.maximum(robust, 0.0)


def _cluster_sums(design: Design, label: Ints, value: Floats, groups: int) -> Floats:
    """Return sums up to each group of scores, (groups + 1) x clusters."""
    assert design.rows is not None
    assert design.rows.cluster is not None
    size = groups * design.rows.n_draws
    cells = np.bincount(label * design.rows.n_draws + design.rows.cluster, weights=value, minlength=size)
    upto = np.cumsum(cells.reshape(groups, -1), axis=0)
    return np.concatenate([np.zeros((1, design.rows.n_draws)), upto])


def _distances(one: Floats, other: Floats) -> Floats:
    """Return at [i, j] the sum over clusters of the products of two sums from group i to group j."""
    products = one @ other.T
    alone = np.diag(products)
    return np.asarray(alone[None, 1:] + alone[:-1, None] - products[:-1, 1:] - products[1:, :-1].T)


def _at_points(lowest: Floats, highest: Floats, first: Floats, last: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Return the limits at points: of the groups that end at or before a point, and that start at or after it."""
    below = np.searchsorted(last, at, side="right") - 1
    above = np.searchsorted(first, at, side="left")
    low = np.where(below >= 0, lowest[np.maximum(below, 0)], 0.0)
    high = np.where(above < first.size, highest[np.minimum(above, first.size - 1)], 1.0)
    return low, high
