"""`LogitSpline`: a smooth curve of the log-odds, shrunk towards leaving the scores alone by the evidence."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import check_count, check_share
from calibrant._support.logistic import EPS, check_eps, expit, logit
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.score_table import ScoreTable

_EPS = 2.0**-40  # log-odds of doubles as close to 1 still have four digits
_CELL = 1 / 16  # width in log-odds of the cells that many scores are grouped into
_MOST_SCORES = 512  # distinct scores that are not grouped
_LINE_PRECISIONS = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # of the change of intercept and slope
_CURVE_PRECISIONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e5)  # of the curvature
_LEAST_GAP = 0.01  # of neighbouring knots, in units of u
_DECREASE = 1e-7  # of the objective, at which Newton's method ends
_LEAST_SPREAD = 0.1  # of log-odds, the unit of the slope where all scores are nearly equal
_END_ROWS = 1.0  # rows that the prior of the levels of 0 and 1 is worth
_NEGLIGIBLE = 1e-6  # share of the evidence below which precisions are left out
_FINER = 4  # parts of each interval between knots where a falling curve is made level
_FARTHEST = 700.0  # log-odds, beyond which an exponential overflows
_STEPS = 60
_HALVINGS = 30


@dataclass(eq=False, repr=False, kw_only=True)
class LogitSpline(ScoreMap):
    r"""A smooth curve of the log-odds that leaves calibrated scores alone: the recommended calibrator of one score.

    .. math::

       \operatorname{logit} q = z + a + b u + s(u), \qquad z = \operatorname{logit} p, \qquad
       u = \frac{z - \bar z}{\operatorname{sd} z}

    with s a natural cubic spline without a linear part. Intercept, slope and curve have normal priors around 0, that
    is, around the scores as they are:

    .. math::

       a, b \sim N(0, 1 / \lambda), \qquad s \sim N, \quad \text{density} \propto \exp\left(-\tfrac{\gamma}{2} \int
       s''(u)^2 \, du\right)

    The data choose the strengths: the maps of 7 values of :math:`\lambda` from 0.01 to 10⁴ and 11 of :math:`\gamma`
    from 0.01 to 10⁵ are averaged (on the scale of log-odds) by their evidence, the Laplace approximation of the
    marginal likelihood.

    Parameters
    ----------
    monotone : bool, default=True
        Where the curve falls, it becomes level: its points are pooled (isotonic regression of probabilities, weighted
        by the rows around them), and its slopes are limited so that no piece falls. False keeps the curve.
    n_knots : int, default=16
        Largest number of knots; with fewer distinct scores, each is a knot.
    from_logits : bool, default=False
        False: scores are probabilities. True: scores are log-odds or other margins, any finite numbers, and z is the
        score itself.
    eps : float, default=2**-40
        Scores of at most eps count as 0, and those of at least 1 - eps as 1.

    Attributes
    ----------
    map_, classes_, notes_
        As for all calibrators of one score.

    See Also
    --------
    Isotonic, Beta, Platt

    Notes
    -----
    The fit needs no cross-validation, and separated classes, one class, ties and few distinct scores need no special
    treatment: the prior makes the optimum finite. It uses the table of distinct scores; more than 512 of them are
    grouped into cells of 1/16 in log-odds, which changes a fitted probability by less than a fifth of its standard
    error. Beyond the fitted scores the curve goes on as a straight line in log-odds.

    Calibrated log-odds exceed ln(2 (N + 1)) in size, with N rows, only as far as the score itself does: separated
    classes do not make the map certain.

    Scores of exactly 0 and 1 have no log-odds. Their rows do not enter the curve; each of the two has a level of its
    own, :math:`(k + q) / (n + 1)` for k events among n rows, where q is the value of the curve halfway between the end
    and the nearest fitted score. Without such rows, the level is that of a line to the logit of 2⁻²⁴, no steeper than
    the scores themselves. If `monotone`, levels with rows take part in the pooling, and the curve bends before it
    passes a level.

    `band` returns the uncertainty of the map. Its normal distribution of the log-odds has the variance within and
    between the maps that are averaged.

    References
    ----------
    .. [1] Wahba (1990), "Spline models for observational data".
    .. [2] MacKay (1992), "Bayesian interpolation".
    .. [3] Lin & Dunson (2014), "Bayesian monotone regression using Gaussian process projection".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2 / (p**2 + (1 - p) ** 2)  # log-odds twice as large
    >>> cal = LogitSpline().fit(p, y)
    >>> cal([0.2, 0.5, 0.8]).round(2)
    array([0.06, 0.49, 0.93])
    >>> low, high = cal.band([0.2, 0.5, 0.8])
    >>> low.round(2), high.round(2)
    (array([0.05, 0.46, 0.91]), array([0.08, 0.53, 0.95]))
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("logit_cubic",)
    is_increasing: ClassVar[bool] = False  # depends on `monotone`, which `accepts_map` checks
    suits_each_class: ClassVar[bool] = True

    monotone: bool = True
    n_knots: int = 16
    from_logits: bool = False
    eps: float = _EPS

    @property
    def accepts_any_score(self) -> bool:
        return bool(self.from_logits)

    def accepts_map(self, map_: maps.LogitCubic) -> bool:
        on = "score" if self.from_logits else "logit"
        return map_.eps == self.eps and map_.on == on and (map_.is_increasing or not self.monotone)

    def band(self, score: Column, *, confidence_level: float = 0.95) -> tuple[Floats, Floats]:
        """Return pointwise limits of the calibrated probability of each score.

        Parameters
        ----------
        score : column of n scores
            As for a call.
        confidence_level : float, default=0.95
            Posterior probability of each interval.

        Returns
        -------
        low, high : ndarray of shape (n,)
        """
        check_share("confidence_level", confidence_level)
        scores = self._read_scores(score)
        middle, error = self.map_.log_odds(scores), self.map_.standard_error(scores)
        reach = float(ndtri((1 + confidence_level) / 2)) * error
        return expit(middle - reach), expit(middle + reach)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_count("n_knots", self.n_knots)
        check_eps(self.eps)
        rows = _Rows.of_margins(table) if self.from_logits else _Rows.of_probabilities(table, self.eps)
        posterior = _Posterior.fit(rows, self.n_knots)
        curve = _Curve(posterior.points, *posterior.curve(posterior.points))
        levels = [rows.level(end, posterior) for end in (0, 1)]
        if (self.monotone and _falls(curve, levels)) or (rows.bound(curve) != curve.y).any():
            curve = _refine(posterior)
            if self.monotone:
                curve, levels = _pool(curve, levels, rows)
            curve = _bound(curve, rows, monotone=self.monotone)
        if self.from_logits:
            return maps.LogitCubic(*curve.points, np.empty(0), np.empty(0), "score", self.eps, "real")
        low = levels[0] or _unseen_level(curve, self.eps)
        high = levels[1] or _unseen_level(curve.mirrored(), self.eps).mirrored()
        if self.monotone:
            low, high = (
                replace(low, value=min(low.value, float(curve.y[0]))),
                replace(high, value=max(high.value, float(curve.y[-1]))),
            )
            curve = _bend(_bend(curve, low).mirrored(), high.mirrored()).mirrored()
        ends, end_errors = np.array([low.value, high.value]), np.array([low.error, high.error])
        return maps.LogitCubic(*curve.points, ends, end_errors, "logit", self.eps)


@dataclass(frozen=True)
class _Level:
    """The log-odds of scores of exactly 0 or 1, its standard error, and the number of such rows."""

    value: float
    error: float
    n: float

    def mirrored(self) -> "_Level":
        """Return the level of the other end, turned by half a turn."""
        return replace(self, value=-self.value)


@dataclass(frozen=True)
class _Curve:
    """Points of a curve of log-odds: cubic polynomials with these slopes, and posterior variances."""

    x: Floats
    y: Floats
    slope: Floats
    variance: Floats

    @property
    def points(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The fields of the map."""
        return self.x, self.y, self.slope, np.sqrt(self.variance)

    def mirrored(self) -> "_Curve":
        """Return the curve turned by half a turn, so that its last point is the first."""
        return _Curve(-self.x[::-1], -self.y[::-1], self.slope[::-1], self.variance[::-1])


@dataclass(frozen=True)
class _Rows:
    """Rows and events by log-odds z, which rise, and those with a score of 0 and of 1."""

    z: Floats
    n: Floats
    k: Floats
    ends: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))  # (n, k) of 0 and of 1
    halfway: tuple[float, float] = (0.0, 0.0)  # log-odds halfway from the outermost scores to 0 and to 1

    @classmethod
    def of_probabilities(cls, table: ScoreTable, eps: float) -> "_Rows":
        score, n, k = table.score, table.n.astype(np.float64), table.k.astype(np.float64)
        first, last = np.searchsorted(score, eps, side="right"), np.searchsorted(score, 1 - eps)
        zero, one = ((float(n[a:b].sum()), float(k[a:b].sum())) for a, b in ((0, first), (last, len(table))))
        score, n, k = score[first:last], n[first:last], k[first:last]
        if score.size > _MOST_SCORES:
            reach = math.ceil(-logit(np.array([eps]), eps)[0] / _CELL)
            score, n, k = _merge(score, n, k, np.searchsorted(score, expit(_CELL * np.arange(-reach, reach + 1))))
        low, high = (score[0], score[-1]) if score.size else (0.5, 0.5)
        halfway = logit(np.array([low / 2, 1 - (1 - high) / 2]), eps).tolist()
        return cls(logit(score, eps), n, k, (zero, one), (halfway[0], halfway[1]))

    @classmethod
    def of_margins(cls, table: ScoreTable) -> "_Rows":
        score, n, k = table.score, table.n.astype(np.float64), table.k.astype(np.float64)
        if score.size > _MOST_SCORES:
            score, n, k = _merge(score, n, k, np.arange(_MOST_SCORES) * score.size // _MOST_SCORES)
        return cls(score, n, k)

    @property
    def total(self) -> float:
        """Number of rows, those with a score of 0 or 1 among them."""
        return float(self.n.sum()) + self.ends[0][0] + self.ends[1][0]

    def bound(self, curve: _Curve) -> Floats:
        """Return the log-odds of a curve, no surer than both the scores and what the rows can support."""
        most = math.log(2 * (self.total + 1))
        return np.clip(curve.y, np.minimum(curve.x, -most), np.maximum(curve.x, most))

    def level(self, end: int, posterior: "_Posterior") -> _Level | None:
        """Return the level of the scores 0 (`end` is 0) or 1, shrunk towards the curve; None without such rows."""
        n, k = self.ends[end]
        if not n:
            return None
        prior = float(expit(posterior.curve(np.array([self.halfway[end]]))[0])[0])
        events, others = k + _END_ROWS * prior, n - k + _END_ROWS * (1 - prior)
        events, others = max(events, sys.float_info.min), max(others, sys.float_info.min)
        return _Level(math.log(events) - math.log(others), math.sqrt(1 / events + 1 / others), n)


def _merge(score: Floats, n: Floats, k: Floats, starts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return mean scores, rows and events of runs of scores, which begin at `starts`."""
    start = np.unique(np.append(0, starts))
    start = start[start < score.size]
    rows = np.add.reduceat(n, start)
    mean = np.add.reduceat(n * score, start) / rows
    # Rounding error must not move a mean outside of its run.
    mean = np.clip(mean, score[start], score[np.append(start[1:], score.size) - 1])
    return mean, rows, np.add.reduceat(k, start)


@dataclass(frozen=True)
class _Posterior:
    """Normal posteriors of the weights of the columns (intercept, slope, curve), one for each pair of precisions."""

    basis: "_Basis"
    share: Floats  # of the evidence
    weights: Floats  # of shape (pairs, columns)
    covariance: Floats  # of shape (pairs, columns, columns)

    @classmethod
    def fit(cls, rows: _Rows, n_knots: int) -> "_Posterior":
        basis = _Basis.of_rows(rows, n_knots)
        columns = basis(rows.z)[0]
        n_curve = columns.shape[1] - 2
        pairs = product(_LINE_PRECISIONS, _CURVE_PRECISIONS if n_curve else (1.0,))
        precision = np.array([[line, line, *[curve] * n_curve] for line, curve in pairs])
        # All begin at the mode of precisions in the middle, which is nearer than 0.
        middle = _laplace(columns, rows, precision[[len(precision) // 2]], np.zeros(columns.shape[1]))[0]
        weights, hessian, evidence = _laplace(columns, rows, precision, middle)
        share = np.exp(evidence - evidence.max())
        kept = share > _NEGLIGIBLE * share.sum()
        return cls(basis, share[kept] / share[kept].sum(), weights[kept], np.linalg.inv(hessian[kept]))

    @property
    def points(self) -> Floats:
        """Log-odds between which the curve is a cubic polynomial."""
        return self.basis.middle + self.basis.scale * self.basis.knots

    def curve(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the posterior mean of the calibrated log-odds at z, its slope, and the posterior variance."""
        columns, slopes = self.basis(z)
        changes = self.weights @ columns.T
        change = self.share @ changes
        within = np.einsum("mi,gij,mj->gm", columns, self.covariance, columns)
        variance = self.share @ (within + (changes - change) ** 2)
        return z + change, 1 + slopes @ (self.share @ self.weights), np.maximum(variance, 0.0)


@dataclass(frozen=True)
class _Basis:
    """Columns whose weights are independent a priori: 1, u, and natural cubic splines of u without a linear part."""

    middle: float
    scale: float
    knots: Floats  # in u
    splines: CubicSpline | None  # those with the value 1 at one knot and 0 at the others
    mixture: Floats  # of these, one column for each spline of the basis
    line: Floats  # that is subtracted from each spline of the basis: intercepts and slopes

    @classmethod
    def of_rows(cls, rows: _Rows, n_knots: int) -> "_Basis":
        z, n = rows.z, rows.n
        if not z.size:  # all scores are 0 or 1
            return cls(0.0, 1.0, np.array([-1.0, 1.0]), None, np.empty((2, 0)), np.empty((2, 0)))
        middle = float(np.average(z, weights=n))
        scale = max(float(np.sqrt(np.average((z - middle) ** 2, weights=n))), _LEAST_SPREAD)
        u = (z - middle) / scale
        knots = _choose_knots(u, n_knots)
        if knots.size < 3:
            are_apart = u[-1] - u[0] >= _LEAST_GAP
            ends = np.array([u[0], u[-1]]) if are_apart else np.array([u[0] - 1, u[0] + 1])
            return cls(middle, scale, ends, None, np.empty((2, 0)), np.empty((2, 0)))
        splines = CubicSpline(knots, np.eye(knots.size), bc_type="natural")
        curvature, gap = splines(knots, 2), np.diff(knots)
        left, right = curvature[:-1], curvature[1:]
        # The integral of products of second derivatives, which are straight lines between knots.
        penalty = sum(
            np.einsum("h,hi,hj->ij", gap / 6, a, b)
            for a, b in ((left, left), (left, left), (right, right), (right, right), (left, right), (right, left))
        )
        values, vectors = np.linalg.eigh(penalty)
        mixture = vectors[:, 2:] / np.sqrt(values[2:])  # the first two are those of straight lines
        root = np.sqrt(n / n.sum())[:, None]
        straight = np.column_stack([np.ones_like(u), u])
        line = np.linalg.lstsq(straight * root, splines(u) @ mixture * root, rcond=None)[0]
        return cls(middle, scale, knots, splines, mixture, line)

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the columns at log-odds z, and their derivatives; beyond the knots the columns are straight lines."""
        u = (z - self.middle) / self.scale
        straight = np.column_stack([np.ones_like(u), u])
        if self.splines is None:
            return straight, np.tile([0.0, 1 / self.scale], (u.size, 1))
        inside = np.clip(u, self.knots[0], self.knots[-1])
        slopes = self.splines(inside, 1)
        curves = (self.splines(inside) + (u - inside)[:, None] * slopes) @ self.mixture - straight @ self.line
        slopes = slopes @ self.mixture - self.line[1]
        derivatives = np.column_stack([np.zeros_like(u), np.ones_like(u), slopes]) / self.scale
        return np.column_stack([straight, curves]), derivatives


def _choose_knots(u: Floats, most: int) -> Floats:
    """Return the distinct values, or `most` knots: half of them equally spaced, half at equal shares of the values."""
    if u.size > most:
        half = np.linspace(0, 1, most - most // 2)
        u = np.unique(np.concatenate([u[0] + half * (u[-1] - u[0]), np.quantile(u, np.linspace(0, 1, most // 2 + 2))]))
    kept = [u[0]]
    for value in u[1:]:
        if value - kept[-1] >= _LEAST_GAP:
            kept.append(value)
    kept[-1] = max(kept[-1], u[-1])
    return np.array(kept)


def _laplace(columns: Floats, rows: _Rows, precision: Floats, start: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for each row of precisions the mode of the weights, the Hessian there, and the logarithm of the evidence.

    Newton's method, for all rows of precisions at once; a step that does not lower the objective is halved. The
    evidence is Laplace's approximation, without a constant.
    """
    n_weights = columns.shape[1]
    squares = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), n_weights**2)
    places = np.arange(n_weights)
    weights = np.tile(start, (len(precision), 1))

    def objective(weights: Floats) -> Floats:
        eta = rows.z + weights @ columns.T
        size = np.abs(eta)
        loss = rows.n * np.log1p(np.exp(-size)) + np.where(eta > 0, rows.n - rows.k, rows.k) * size
        return np.asarray(loss.sum(axis=1) + (precision * weights**2).sum(axis=1) / 2)

    value = objective(weights)
    for _ in range(_STEPS):
        q = expit((rows.z + weights @ columns.T).ravel()).reshape(len(precision), -1)
        gradient = (rows.n * q - rows.k) @ columns + precision * weights
        hessian = ((rows.n * q * (1 - q)) @ squares).reshape(-1, n_weights, n_weights)
        hessian[:, places, places] += precision
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        decrease = (step * gradient).sum(axis=1)
        size = np.ones(len(precision))
        for _ in range(_HALVINGS):
            new = objective(weights - size[:, None] * step)
            if not (longer := new > value + 1e-9 * (1 + np.abs(value))).any():
                break
            size = np.where(longer, size / 2, size)
        weights, value = weights - size[:, None] * step, new
        if decrease.max() <= _DECREASE:
            break
    evidence = -value + np.log(precision).sum(axis=1) / 2 - np.linalg.slogdet(hessian)[1] / 2
    return weights, hessian, evidence


def _falls(curve: _Curve, levels: Sequence[_Level | None]) -> bool:
    """Return whether a greater score has a lower value."""
    low, high = levels
    values = np.concatenate([[low.value] if low else [], curve.y, [high.value] if high else []])
    return bool((np.diff(values) < 0).any() or not maps.Cubic(curve.x, curve.y, curve.slope).rises)


def _refine(posterior: _Posterior) -> _Curve:
    """Return the curve with more points."""
    knots = posterior.points
    x = np.append((knots[:-1, None] + np.diff(knots)[:, None] * np.arange(_FINER) / _FINER).ravel(), knots[-1])
    return _Curve(x, *posterior.curve(x))


def _bound(curve: _Curve, rows: _Rows, *, monotone: bool) -> _Curve:
    """Return the curve with values that are bounded by `_Rows.bound`, and with slopes that belong to them."""
    y = rows.bound(curve)
    chord = np.diff(y) / np.diff(curve.x)
    left, right = np.append(chord[0], chord), np.append(chord, chord[-1])
    slope = np.where(y == curve.y, curve.slope, np.clip((left + right) / 2, -1.0, 1.0))
    if monotone:  # a cubic piece does not fall if both slopes are at most three times that of its chord
        slope = np.clip(slope, 0.0, 3 * np.minimum(left, right))
    return replace(curve, y=y, slope=slope)


def _pool(curve: _Curve, levels: Sequence[_Level | None], rows: _Rows) -> tuple[_Curve, list[_Level | None]]:
    """Return the isotonic regression of points of the curve and of the levels, weighted by the rows around them."""
    (low, high), x = levels, curve.x
    near = np.zeros(x.size)
    np.add.at(near, np.searchsorted((x[1:] + x[:-1]) / 2, rows.z), rows.n)
    near += max(float(near.sum()), sys.float_info.min) / (1000 * x.size)  # also where no rows are
    values = np.concatenate([[low.value] if low else [], curve.y, [high.value] if high else []])
    weights = np.concatenate([[low.n] if low else [], near, [high.n] if high else []])
    # Probabilities are pooled, so that their mean does not change; that of 1 - q is as accurate as that of q.
    values = np.clip(values, -_FARTHEST, _FARTHEST)
    events = isotonic_regression(expit(values), sample_weight=weights)
    others = isotonic_regression(expit(-values), sample_weight=weights, increasing=False)
    values = np.log(events) - np.log(others)
    if low is not None:
        low, values = replace(low, value=float(values[0])), values[1:]
    if high is not None:
        high, values = replace(high, value=float(values[-1])), values[:-1]
    return replace(curve, y=values), [low, high]


def _unseen_level(curve: _Curve, eps: float) -> _Level:
    """Return the level of the score 0 without rows: a line to the logit of 2**-24, no steeper than the scores."""
    distance = max(0.0, curve.x[0] - float(logit(np.array([0.0]), max(eps, EPS))[0]))
    slope = min(max(float(curve.slope[0]), 0.0), 1.0)
    return _Level(float(curve.y[0]) - slope * distance, math.sqrt(curve.variance[0]), 0.0)


def _bend(curve: _Curve, level: _Level) -> _Curve:
    """Return the curve with a bend below its first point, after which it is level, if it would fall below the level."""
    if curve.slope[0] == 0:
        return curve
    assert level.value <= curve.y[0]
    # To a point twice as far as the line needs, so that the cubic piece, whose chord is half as steep, rises.
    x = curve.x[0] - 2 * (curve.y[0] - level.value) / curve.slope[0]
    if curve.x[0] - x < _LEAST_GAP * _LEAST_SPREAD:
        return replace(curve, slope=np.append(0.0, curve.slope[1:]))
    added = (x, level.value, 0.0, level.error**2)
    fields = (curve.x, curve.y, curve.slope, curve.variance)
    return _Curve(*(np.append(value, column) for value, column in zip(added, fields, strict=True)))
