"""`StructuredScaling`: a softmax of log-probabilities, whose weights the data shrink towards the scores."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError
from calibrant.calibrators.class_maps import ClassMap, StructuredSoftmax, check_floor, chunks, log_shares
from calibrant.calibrators.multiclass import ProbabilityMap

_EPS = 2.0**-100
_SLOPES = -5.0, 3.0  # range of the logarithm of the slope
_SLOPE_STEPS = 40
_SLOPE_TOLERANCE = 1e-3
# Precisions of the diagonal, the biases and the off-diagonal weights, for log-probabilities of unit size: those that
# the fit begins with, and the means of their priors, which are worth so many weights.
_PRECISIONS = 5.0, 10.0, 50.0
_PRIOR_WEIGHTS = 0.5
_MIXED_ROWS = 0.25  # rows of equal probabilities, per class
_PRECISION_RANGE = 1e-2, 1e6
_STEPS = 60
_LEAST_STEPS = 6
_SETTLED = 1e-2  # change of the logarithms of the precisions
_STILL = 1e-4  # change of a logit
_HALVINGS = 20
_MOST_FULL = 24  # classes up to which weights off the diagonal are fitted
_CELLS = 2**16  # of a block of rows, which stays in the cache


@dataclass(eq=False, repr=False, kw_only=True)
class StructuredScaling(ProbabilityMap):
    r"""Softmax of a linear function of log-probabilities; the data choose how far it shrinks towards the scores.

    .. math::

       z = \ln\left((1 - m) \operatorname{softmax}(s \ln p) + \frac{m}{K}\right), \qquad
       q = (1 - m) \operatorname{softmax}\left(z + D z + O z + b\right) + \frac{m}{K}

    with a slope s (an inverse temperature), a diagonal matrix D, a matrix O without diagonal, and biases b. The share
    m = c / (N + c), c = K / 4, of N rows bounds z where classes are separated. The recommended calibrator of several
    classes.

    Parameters
    ----------
    off_diagonal : bool, default=True
        Fit O where there are at most 24 classes. Its K (K - 1) weights cannot be told from noise, nor afforded, with
        many classes.
    from_logits : bool, default=False
        False: rows are class probabilities. True: they are logits, any finite numbers, in the place of ln p.
    eps : float, default=2**-100
        Probabilities below `eps` are clipped to it.

    Attributes
    ----------
    temperature_ : float
        1 / s.
    weights_ : ndarray of shape (K,) or (K, K)
        The weights of z: 1 + D, or 1 + D + O times the matrix that subtracts the mean of a row.
    biases_ : ndarray of shape (K,)
        b.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    LogitSpline, SoftmaxTemperature, Dirichlet

    Notes
    -----
    s maximises the likelihood. D, O and b have normal priors with mean 0 and one precision each. A precision is chosen
    by the marginal likelihood (MacKay's fixed point, with the Hessian's blocks of the classes, and a prior worth half
    a weight), so that the fit needs no cross-validation: weights that the rows do not support stay near 0. Separated
    classes, and classes without rows, need no special treatment. With up to 24 classes z is centred before D and O act
    on it. The mode of the weights is found by Newton's method, with more than 24 classes by its blocks of the classes.

    References
    ----------
    .. [1] MacKay (1992), "Bayesian interpolation".
    .. [2] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> cal = StructuredScaling().fit(sharp, y)
    >>> round(cal.temperature_, 1), bool(np.abs(cal(sharp) - truth).max() < 0.05)
    (2.1, True)
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("structured",)

    off_diagonal: bool = True
    from_logits: bool = False
    eps: float = _EPS

    @property
    def accepts_any_score(self) -> bool:
        return bool(self.from_logits)

    def accepts_map(self, map_: Any) -> bool:
        domain = "real" if self.from_logits else "probability"
        is_known = self.off_diagonal or map_.weights.ndim == 1
        return bool(super().accepts_map(map_) and is_known and map_.eps == self.eps and map_.domain == domain)

    @property
    def temperature_(self) -> float:
        """Fitted temperature."""
        return 1 / float(self.map_.slope)

    @property
    def weights_(self) -> Floats:
        """Weights of the log-probabilities."""
        return np.asarray(self.map_.weights)

    @property
    def biases_(self) -> Floats:
        """Bias of each class."""
        return np.asarray(self.map_.biases)

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_floor(self.eps)
        n_classes, domain = matrix.shape[1], "real" if self.from_logits else "probability"
        if n_classes < 2:
            raise InputError("X must have a column for each of at least two classes; got one.", argument="X")
        mixed = _MIXED_ROWS * n_classes
        share = mixed / (float(weight.sum()) + mixed)
        logs = log_shares(matrix, self.eps, domain)
        slope = _fit_slope(logs, code, weight, share)
        z = _mixed_logs(logs, slope, share)
        if self.off_diagonal and n_classes <= _MOST_FULL:
            z -= z.mean(axis=1, keepdims=True)
            scale = _root_mean_square(z, weight)
            theta = _fit_full(z / scale, z, code, weight)
            centred = theta[:, :-1] / scale
            weights = np.eye(n_classes) + centred - centred.mean(axis=1, keepdims=True)
        else:
            scale = _root_mean_square(z, weight)
            theta = _fit_diagonal(z / scale, z, code, weight)
            weights = 1 + theta[:, 0] / scale
        return StructuredSoftmax(slope, weights, theta[:, -1], share, self.eps, domain)


def _root_mean_square(z: Floats, weight: Floats) -> float:
    return max(math.sqrt(float(weight @ np.einsum("ij,ij->i", z, z)) / (float(weight.sum()) * z.shape[1])), 1e-6)


def _mixed_logs(logs: Floats, slope: float, share: float) -> Floats:
    z = np.empty_like(logs)
    for rows in chunks(logs.shape, _CELLS):
        q = np.exp(slope * logs[rows])
        z[rows] = np.log((1 - share) * q / q.sum(axis=1, keepdims=True) + share / q.shape[1])
    return z


def _fit_slope(logs: Floats, code: Ints, weight: Floats, share: float) -> float:
    """Return the slope of least log loss, mixed with a share of equal probabilities: the root of the derivative.

    `logs` are at most 0 in each row, and 0 at its largest.
    """

    def derivative(log_slope: float) -> float:
        slope, total = math.exp(log_slope), 0.0
        for rows in chunks(logs.shape, _CELLS):
            z = logs[rows]
            q = np.exp(slope * z)
            q /= q.sum(axis=1, keepdims=True)
            place = np.arange(len(z)), code[rows]
            observed = (1 - share) * q[place]
            away = z[place] - np.einsum("ij,ij->i", q, z)
            total -= float(weight[rows] @ (observed * away / (observed + share / z.shape[1])))
        return total

    low, high, log_slope, reach = -math.inf, math.inf, 0.0, 0.5
    at_low = at_high = math.nan
    for _ in range(_SLOPE_STEPS):
        value = derivative(log_slope)
        if value > 0:
            high, at_high = log_slope, value
        else:
            low, at_low = log_slope, value
        if high - low < _SLOPE_TOLERANCE or low == _SLOPES[1] or high == _SLOPES[0]:
            break
        if math.isinf(high - low):
            log_slope = min(low + reach, _SLOPES[1]) if math.isinf(high) else max(high - reach, _SLOPES[0])
            reach *= 2
        else:
            log_slope = low - at_low * (high - low) / (at_high - at_low)
            log_slope = min(max(log_slope, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return math.exp(log_slope)


@dataclass
class _Precisions:
    """Precisions of groups of weights; `group` has the number of the group of each weight."""

    group: Ints
    values: Floats

    def update(self, weights: Floats, variances: Floats) -> bool:
        """Set each precision to well-determined weights over their sum of squares; return whether they have settled."""
        determined = np.maximum(1 - self.values[self.group] * variances, 0.0)
        sums = [np.bincount(self.group.ravel(), each.ravel()) for each in (determined, weights**2)]
        prior = np.array(_PRECISIONS[: self.values.size])
        new = np.clip((sums[0] + _PRIOR_WEIGHTS) / (sums[1] + _PRIOR_WEIGHTS / prior), *_PRECISION_RANGE)
        change = np.abs(np.log(new / self.values)).max()
        self.values = new
        return bool(change < _SETTLED)


def _fit_full(u: Floats, z: Floats, code: Ints, weight: Floats) -> Floats:
    """Return weights of all log-probabilities `u` and biases, of shape (K, K + 1), by Newton's method."""
    n_classes = u.shape[1]
    shape = n_classes, n_classes + 1
    group = np.full(shape, 2)
    group[:, :-1][np.eye(n_classes, dtype=bool)], group[:, -1] = 0, 1
    if n_classes == 2:  # centred log-probabilities of two classes are each other's negative
        group[group == 2] = 0
    precisions, theta = _Precisions(group, np.array(_PRECISIONS[: int(group.max()) + 1])), np.zeros(shape)
    x, y = np.column_stack([u, np.ones(len(u))]), (np.arange(len(u)), code)

    def loss(theta: Floats) -> tuple[float, Floats]:
        logits = z + x @ theta.T
        top = logits.max(axis=1)
        q = np.exp(logits - top[:, None])
        total = q.sum(axis=1)
        prior = float(np.sum(precisions.values[group] * theta**2)) / 2
        return float(weight @ (np.log(total) + top - logits[y])) + prior, q / total[:, None]

    q = loss(theta)[1]
    for step in range(_STEPS):
        penalty = precisions.values[group]
        residual = weight[:, None] * q
        residual[y] -= weight
        gradient = residual.T @ x + penalty * theta
        hessian = _hessian(x, q, weight)
        blocks = hessian[np.arange(n_classes), :, np.arange(n_classes), :].copy()
        places = np.arange(shape[1])
        blocks[:, places, places] += penalty
        flat = hessian.reshape(theta.size, theta.size)
        flat[np.diag_indices(theta.size)] += penalty.ravel()
        move = np.linalg.solve(flat, gradient.ravel()).reshape(shape)
        before = loss(theta)[0]
        for _ in range(_HALVINGS):
            value, q = loss(theta - move)
            if value <= before + 1e-10 * abs(before):
                break
            move /= 2
        theta = theta - move
        variances = np.asarray(np.linalg.inv(blocks)[:, places, places], dtype=np.float64)
        is_settled = precisions.update(theta, variances)
        if step >= _LEAST_STEPS and is_settled and np.abs(x @ move.T).max() < _STILL:
            break
    return theta


def _hessian(x: Floats, q: Floats, weight: Floats) -> Floats:
    """Return the Hessian of the log loss: of shape (K, K + 1, K, K + 1)."""
    n_classes, width = q.shape[1], x.shape[1]
    hessian = np.empty((n_classes, width, n_classes, width))
    for a in range(n_classes):
        for b in range(a, n_classes):
            spread = weight * q[:, a] * ((a == b) - q[:, b])
            hessian[a, :, b] = (x * spread[:, None]).T @ x
            hessian[b, :, a] = hessian[a, :, b]
    return hessian


def _fit_diagonal(u: Floats, z: Floats, code: Ints, weight: Floats) -> Floats:
    """Return a weight of its log-probability `u` and a bias for each class, by steps of the blocks of the Hessian."""
    n_classes = u.shape[1]
    group = np.tile([0, 1], (n_classes, 1))
    precisions, theta = _Precisions(group, np.array(_PRECISIONS[:2])), np.zeros((n_classes, 2))
    now = _Sums.of(u, z, code, weight, theta)
    for step in range(_STEPS):
        penalty = precisions.values[group]
        blocks = now.blocks.copy()
        blocks[:, [0, 1], [0, 1]] += penalty
        inverse = np.asarray(np.linalg.inv(blocks), dtype=np.float64)
        move = np.einsum("jab,jb->ja", inverse, now.gradient + penalty * theta)
        before = now.loss + float(np.sum(penalty * theta**2)) / 2
        for _ in range(_HALVINGS):
            now = _Sums.of(u, z, code, weight, theta - move)
            if now.loss + float(np.sum(penalty * (theta - move) ** 2)) / 2 <= before + 1e-10 * abs(before):
                break
            move /= 2
        theta = theta - move
        is_settled = precisions.update(theta, inverse[:, [0, 1], [0, 1]])
        if step >= _LEAST_STEPS and is_settled and np.abs(move).max() < _SETTLED:
            break
    return theta


@dataclass(frozen=True)
class _Sums:
    """Log loss of all rows, its gradient, and the blocks of its Hessian of the classes, by one pass over the rows."""

    loss: float
    gradient: Floats
    blocks: Floats

    @classmethod
    def of(cls, u: Floats, z: Floats, code: Ints, weight: Floats, theta: Floats) -> "_Sums":
        n_classes = u.shape[1]
        loss, gradient, moments = 0.0, np.zeros((2, n_classes)), np.zeros((3, n_classes))
        for rows in chunks(u.shape, _CELLS):
            x, w, place = u[rows], weight[rows], (np.arange(len(u[rows])), code[rows])
            logits = x * theta[:, 0]
            logits += z[rows]
            logits += theta[:, 1]
            top = logits.max(axis=1)
            observed = logits[place].copy()
            logits -= top[:, None]
            q = np.exp(logits, out=logits)
            total = q.sum(axis=1)
            loss += float(w @ (np.log(total) + top - observed))
            q /= total[:, None]
            residual = q * w[:, None]
            spread = residual * (1 - q)
            residual[place] -= w
            gradient += [np.einsum("ij,ij->j", residual, x), residual.sum(axis=0)]
            weighted = spread * x
            moments += [np.einsum("ij,ij->j", weighted, x), weighted.sum(axis=0), spread.sum(axis=0)]
        squares, crossed, plain = moments
        return cls(loss, gradient.T, np.stack([squares, crossed, crossed, plain], axis=1).reshape(n_classes, 2, 2))
