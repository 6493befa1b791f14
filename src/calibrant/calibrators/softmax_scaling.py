"""Calibrators that scale log-probabilities before a softmax: temperature, vector, matrix and Dirichlet."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import Argument, InputError, Note, check_option
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators.class_maps import ClassMap, Softmax, chunks, log_probabilities, softmax
from calibrant.calibrators.multiclass import ProbabilityMap


class _SoftmaxScaling(ProbabilityMap):
    """Fits a map of kind `Softmax`, with weights of `_dimensions` dimensions, to log-probabilities."""

    map_kinds: ClassVar[tuple[str, ...]] = ("softmax",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)
    _dimensions: ClassVar[int]

    eps: float

    def accepts_map(self, map_: Any) -> bool:
        return bool(super().accepts_map(map_) and map_.weights.ndim == self._dimensions and map_.eps == self.eps)

    def _log_probabilities(self, matrix: Floats, weight: Floats) -> Floats:
        """Return log-probabilities, and count the rows with one that was clipped."""
        check_eps(self.eps)
        clipped = (matrix < self.eps).any(axis=1) & (weight > 0)
        self.n_clipped_: float = float(weight[clipped].sum())
        if self.n_clipped_:
            text = f"Rows with a probability that was clipped to {self.eps:.3g} before its logarithm: {{count}}."
            self.notes_ += (Note("logit_clipped", int(np.count_nonzero(clipped)), text),)
        return log_probabilities(matrix, self.eps)

    def _fit_theta(self, matrix: Floats, code: Ints, weight: Floats, penalty: Floats) -> ClassMap:
        z = self._log_probabilities(matrix, weight)
        theta = Problem(z, code, weight / weight.sum(), penalty, full=self._dimensions == 2).solve()
        weights = theta[:, :-1] if self._dimensions == 2 else theta[:, 0]
        return Softmax(weights, theta[:, -1], self.eps)

    @property
    def weights_(self) -> Floats:
        """Matrix of weights."""
        return np.asarray(self.map_.weights)

    @property
    def biases_(self) -> Floats:
        """Bias of each class."""
        return np.asarray(self.map_.biases)


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxTemperature(_SoftmaxScaling):
    r"""Temperature scaling of class probabilities, by maximum likelihood.

    .. math::

       q = \operatorname{softmax}\left(\frac{\ln p}{T}\right), \qquad T > 0

    T > 1 makes predictions less extreme, T < 1 more extreme. The most probable class does not change.

    Parameters
    ----------
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it.

    Attributes
    ----------
    temperature_ : float
        T. Infinite if no T > 0 is better than equal probabilities.
    slope_ : float
        1 / T.
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    VectorScaling, MatrixScaling, Temperature

    Notes
    -----
    A softmax determines its logits up to a constant per row, which has no effect, so probabilities serve as well as
    logits. Classes without rows are allowed.

    References
    ----------
    .. [1] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> proba = np.array([[0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]])
    >>> SoftmaxTemperature().fit(proba, [0, 1, 2, 1]).temperature_ > 1  # confident, and wrong in the second row
    True
    """

    _dimensions: ClassVar[int] = 0

    eps: float = EPS

    def accepts_map(self, map_: Any) -> bool:
        return bool(super().accepts_map(map_) and map_.weights >= 0 and not map_.biases.any())

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        z = self._log_probabilities(matrix, weight)
        if (z[np.arange(code.size), code] == z.max(axis=1)).all() and (z != z[:, :1]).any():
            raise InputError(
                "y must differ from the most probable class in some row; got none, so that the lower the temperature, "
                "the better.",
                hint="Use OneVsRest(), whose targets are smoothed.",
            )
        slope = temperature_slope(z, code, weight / weight.sum())
        return Softmax(np.array(slope), np.zeros(matrix.shape[1]), self.eps)

    @property
    def slope_(self) -> float:
        """Inverse of the temperature."""
        return float(self.map_.weights)

    @property
    def temperature_(self) -> float:
        """Fitted temperature."""
        return 1 / self.slope_ if self.slope_ else float("inf")


@dataclass(eq=False, repr=False, kw_only=True)
class VectorScaling(_SoftmaxScaling):
    r"""Vector scaling of class probabilities, by maximum likelihood.

    .. math::

       q = \operatorname{softmax}(w_c \ln p_c + b_c)_{c = 1}^{K}

    Parameters
    ----------
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it.

    Attributes
    ----------
    weights_, biases_ : ndarray of shape (K,)
        w and b; the biases sum to 0.
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    SoftmaxTemperature, MatrixScaling, Dirichlet

    Notes
    -----
    The log loss is convex in (w, b); Newton's method minimises it to rounding. Each class must have rows, and no
    classes may be separated: then no finite weights are best.

    References
    ----------
    .. [1] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (proba.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> VectorScaling().fit(proba, y).weights_.round(1)
    array([1., 1., 1.])
    """

    _dimensions: ClassVar[int] = 1
    needs_all_classes: ClassVar[bool] = True

    eps: float = EPS

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        return self._fit_theta(matrix, code, weight, np.zeros((matrix.shape[1], 2)))


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixScaling(_SoftmaxScaling):
    r"""Matrix scaling of class probabilities, by maximum likelihood.

    .. math::

       q = \operatorname{softmax}(W \ln p + b)

    Parameters
    ----------
    l2 : float, default=0.0
        Penalty :math:`\lambda`: :math:`\frac{\lambda}{K^2} \sum_{i,j} w_{ij}^2` is added to the mean log loss. As
        :math:`\lambda` grows, all rows get the class proportions.
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it.

    Attributes
    ----------
    weights_ : ndarray of shape (K, K)
        W. Without a penalty its columns sum to 1, a choice that changes no probability.
    biases_ : ndarray of shape (K,)
        b, of sum 0.
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    VectorScaling, Dirichlet

    Notes
    -----
    The log loss is convex in (W, b); Newton's method minimises it to rounding. Each class must have rows, and without
    a penalty no classes may be separated.

    `Dirichlet` fits the same maps. It penalises the off-diagonal weights and the biases, which keeps the map near
    vector scaling; `MatrixScaling` penalises nothing, or all weights alike. With K classes there are K (K + 1)
    parameters, so without a penalty prefer it to `Dirichlet` only with many rows per class.

    On logits, matrix scaling of Guo et al. has the same formula. Probabilities determine logits up to a constant per
    row; this class takes :math:`\ln p`. For K = 2 it is beta calibration without bounds.

    References
    ----------
    .. [1] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (proba.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> bool(np.abs(MatrixScaling().fit(proba, y)(proba) - proba).max() < 0.1)
    True
    """

    _dimensions: ClassVar[int] = 2
    needs_all_classes: ClassVar[bool] = True

    l2: float = 0.0
    eps: float = EPS

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        n_classes = matrix.shape[1]
        penalty = np.zeros((n_classes, n_classes + 1))
        penalty[:, :-1] = 2 * _check_penalty("l2", self.l2) / n_classes**2
        return self._fit_theta(matrix, code, weight, penalty)


@dataclass(eq=False, repr=False, kw_only=True)
class Dirichlet(_SoftmaxScaling):
    r"""Dirichlet calibration: a softmax of linear functions of log-probabilities, with a penalty.

    .. math::

       q = \operatorname{softmax}(W \ln p + b)

    minimises the mean log loss plus, with ``penalty="odir"`` (off-diagonal and intercept regularisation),

    .. math::

       \frac{\lambda}{K (K - 1)} \sum_{i \ne j} w_{ij}^2 + \frac{\mu}{K} \sum_j b_j^2

    or, with ``penalty="l2"``, :math:`\frac{\lambda}{K^2} \sum_{i,j} w_{ij}^2 + \frac{\mu}{K} \sum_j b_j^2`.

    Parameters
    ----------
    reg_lambda : float, default=1.0
        :math:`\lambda`.
    reg_mu : float, optional
        :math:`\mu`; by default equal to `reg_lambda`.
    penalty : {"odir", "l2"}, default="odir"
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it.

    Attributes
    ----------
    weights_, biases_ : ndarray of shape (K, K) and (K,)
        W and b.
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    MatrixScaling, OneVsRest

    Notes
    -----
    If the probabilities of each class's rows have a Dirichlet distribution, the calibrated probabilities have this
    form. For K = 2 it is beta calibration. The formulas of the penalties are those of the paper, with means over the
    penalised entries; the authors' package sums over them.

    The objective is convex; Newton's method minimises it to rounding. Each class must have rows. ``"odir"`` leaves the
    diagonal free, so separated classes can still lack a finite optimum; ``"l2"`` always has one. The optimum does not
    depend on the order of classes.

    Choose `reg_lambda` by cross-validation where it matters:
    ``AutoCalibrator(calibrators={"weak": Dirichlet(reg_lambda=1e-3), "strong": Dirichlet(reg_lambda=10.0)})``.

    References
    ----------
    .. [1] Kull, Perello-Nieto, Kangsepp, Silva Filho, Song & Flach (2019), "Beyond temperature scaling: Obtaining
       well-calibrated multi-class probabilities with Dirichlet calibration".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> Dirichlet().fit(sharp, y).weights_.diagonal().round(1)
    array([0.5, 0.5, 0.5])
    """

    _dimensions: ClassVar[int] = 2
    needs_all_classes: ClassVar[bool] = True

    reg_lambda: float = 1.0
    reg_mu: float | None = None
    penalty: Literal["odir", "l2"] = "odir"
    eps: float = EPS

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_option("penalty", self.penalty, ("odir", "l2"))
        n_classes = matrix.shape[1]
        reg_lambda = _check_penalty("reg_lambda", self.reg_lambda)
        reg_mu = reg_lambda if self.reg_mu is None else _check_penalty("reg_mu", self.reg_mu)
        penalised = np.ones((n_classes, n_classes)) - (np.eye(n_classes) if self.penalty == "odir" else 0)
        slopes = 2 * reg_lambda * penalised / penalised.sum()
        penalty = np.column_stack([slopes, np.full(n_classes, 2 * reg_mu / n_classes)])
        return self._fit_theta(matrix, code, weight, penalty)


def _check_penalty(name: str, value: float) -> float:
    """Return a penalty: a finite number, at least 0."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and 0 <= value < np.inf:
        return float(value)
    raise InputError(Argument(name) + f" must be a finite number of at least 0; got {value!r}.", value=value)


_STEPS = 200
_HALVINGS = 40
_INNER_STEPS = 2000
_GRADIENT = 1e-10  # largest component of the gradient at the optimum
_FAR = 0.3  # a change of logits after which the preconditioner is computed anew
_NEAR = 0.01  # a change of logits below which a Newton step needs no line search
_STILL = 1e-3  # a change of logits above which a vanishing gradient means an optimum at infinity
_RIDGE = 1e-12  # added to the penalty: columns may be collinear
_SHIFTS = 5


def temperature_slope(z: Floats, code: Ints, share: Floats) -> float:
    """Return the slope s >= 0 of the softmax of s z with the smallest mean log loss; `share` sums to 1.

    Newton's method on the derivative, which falls in s, between bounds that enclose its root.
    """
    observed = float(share @ z[np.arange(code.size), code])

    def derivatives(slope: float) -> tuple[float, float]:
        first, second = observed, 0.0
        for rows in chunks(z.shape):
            q = softmax(slope * z[rows])
            mean = np.einsum("ij,ij->i", q, z[rows])
            square = np.einsum("ij,ij,ij->i", q, z[rows], z[rows])
            first -= float(share[rows] @ mean)
            second -= float(share[rows] @ np.maximum(square - mean**2, 0.0))
        return first, second

    if derivatives(0.0)[0] <= 0:
        return 0.0
    low, high, slope = 0.0, np.inf, 1.0
    for _ in range(_STEPS):
        first, second = derivatives(slope)
        low, high = (slope, high) if first > 0 else (low, slope)
        new = slope - first / second if second < 0 else np.inf
        if not low < new < high:
            new = 2 * slope if high == np.inf else (low + high) / 2
        if abs(new - slope) <= 1e-15 * slope:
            return new
        slope = new
    return slope


@dataclass(frozen=True)
class Problem:
    """Minimise the mean log loss of the softmax of ``W z + b`` plus a penalty ``sum(penalty * theta**2) / 2``.

    theta holds the weights and, in the last column, the intercepts: of shape (K, K + 1) for a full matrix W, of shape
    (K, 2) for a diagonal one. `share` are the weights of rows, of sum 1.

    Newton's method. Each step solves the Hessian's equations by conjugate gradients, which need no Hessian, only its
    products. They are preconditioned by the blocks of the Hessian that belong to one class.
    """

    z: Floats
    code: Ints
    share: Floats
    penalty: Floats
    full: bool
    _observed: Floats = field(init=False)  # sums of z and counts of rows by class, the constant part of the gradient

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", self.penalty + _RIDGE)
        observed = np.zeros(self.penalty.shape)
        for rows in chunks(self.z.shape):
            hit = np.zeros_like(self.z[rows])
            hit[np.arange(len(hit)), self.code[rows]] = self.share[rows]
            observed += self._gather(hit, rows)
        object.__setattr__(self, "_observed", observed)

    def solve(self) -> Floats:
        """Return theta."""
        q = np.empty_like(self.z)
        theta = self._start(q)
        loss, change, first = self._loss(theta, q), np.inf, None
        for _ in range(_STEPS):
            gradient = self._gradient(theta, q)
            size = float(np.abs(gradient).max())
            first = size if first is None else first
            if change > _FAR:
                blocks = self._blocks(q)
            # Tighter as the optimum comes near, so that the steps converge faster than linearly.
            step = self._newton_step(q, -gradient, blocks, min(0.1, max(size / max(first, 1e-300), 1e-6)))
            change = self._change(step)
            if size <= _GRADIENT:
                if change <= _STILL:
                    identity = np.append(np.full(theta.shape[1] - 1, 1 / len(theta)), 0.0)
                    return np.asarray(theta - np.where(self._free(), theta.mean(axis=0) - identity, 0.0))
                break
            theta, loss = self._searched(theta, step, loss, gradient, change, q)
        raise InputError(
            "The fit of the weights did not converge: no finite weights are best, because some classes are separated.",
            hint="Use a larger penalty (Dirichlet), SoftmaxTemperature, or OneVsRest.",
        )

    def _start(self, q: Floats) -> Floats:
        """Return the identity map, its intercepts moved so that mean probabilities are near the class proportions.

        Far below its proportion a class has almost no curvature, and Newton's steps would be far too long.
        """
        n_classes = self.z.shape[1]
        slopes = np.eye(n_classes) if self.full else np.ones((n_classes, 1))
        theta = np.column_stack([slopes, np.zeros(n_classes)])
        proportion = np.bincount(self.code, weights=self.share, minlength=n_classes)
        tried = [(self._loss(theta, q), theta)]
        for _ in range(_SHIFTS):
            theta = theta.copy()
            theta[:, -1] += np.log(proportion + 1e-300) - np.log(self.share @ q + 1e-300)
            theta[:, -1] -= theta[:, -1].mean()
            tried.append((self._loss(theta, q), theta))
        return min(tried, key=lambda pair: pair[0])[1]

    def _logits(self, theta: Floats, rows: slice) -> Floats:
        z = self.z[rows]
        logits: Floats = z @ theta[:, :-1].T if self.full else z * theta[:, 0]
        logits += theta[:, -1]
        return logits

    def _gather(self, values: Floats, rows: slice) -> Floats:
        """Return the sums of ``values * z`` and of `values` per class: the adjoint of `_logits`."""
        z = self.z[rows]
        slopes = values.T @ z if self.full else np.einsum("ij,ij->j", values, z)[:, None]
        return np.column_stack([slopes, values.sum(axis=0)])

    def _loss(self, theta: Floats, q: Floats) -> float:
        """Return the penalised loss, and write the probabilities into `q`."""
        total = float(np.sum(self.penalty * theta**2)) / 2
        for rows in chunks(self.z.shape):
            logits = self._logits(theta, rows)
            of_class = logits[np.arange(len(logits)), self.code[rows]].copy()
            top = logits.max(axis=1, keepdims=True)
            np.exp(np.subtract(logits, top, out=logits), out=q[rows])
            sums = q[rows].sum(axis=1)
            q[rows] /= sums[:, None]
            total += float(self.share[rows] @ (np.log(sums) + top[:, 0] - of_class))
        return total

    def _gradient(self, theta: Floats, q: Floats) -> Floats:
        total: Floats = self.penalty * theta - self._observed
        for rows in chunks(self.z.shape):
            total += self._gather(q[rows] * self.share[rows, None], rows)
        return total

    def _product(self, q: Floats, step: Floats, gauge: Floats) -> Floats:
        """Return the product of the Hessian and a step, with a curvature for sums that no probability depends on."""
        total: Floats = self.penalty * step + gauge * step.sum(axis=0)
        for rows in chunks(self.z.shape):
            moved = self._logits(step, rows)
            moved -= np.einsum("ij,ij->i", q[rows], moved)[:, None]
            moved *= q[rows]
            moved *= self.share[rows, None]
            total += self._gather(moved, rows)
        return total

    def _newton_step(self, q: Floats, target: Floats, blocks: Floats, tolerance: float) -> Floats:
        """Return the solution of Hessian times step = target, by preconditioned conjugate gradients."""
        gauge = np.where(self._free(), np.einsum("jaa->ja", blocks).mean(axis=0), 0.0)
        inverse = np.linalg.inv(blocks)

        def solve(residual: Floats) -> Floats:
            return np.asarray(np.einsum("jab,jb->ja", inverse, residual))

        step, residual = np.zeros_like(target), target.copy()
        scaled = solve(residual)
        direction, power = scaled, float(np.sum(residual * scaled))
        enough = tolerance**2 * power
        for _ in range(_INNER_STEPS):
            product = self._product(q, direction, gauge)
            curvature = float(np.sum(direction * product))
            if not curvature > 0:
                break
            step = step + power / curvature * direction
            residual = residual - power / curvature * product
            scaled = solve(residual)
            last, power = power, float(np.sum(residual * scaled))
            if power <= enough:
                break
            direction = scaled + power / last * direction
        return step

    def _blocks(self, q: Floats) -> Floats:
        """Return the diagonal blocks of the Hessian, one per class, of shape (classes, width, width)."""
        n_classes, width = self.penalty.shape
        blocks = np.zeros((n_classes, width, width))
        for rows in chunks(self.z.shape):
            spread = q[rows] * (1 - q[rows]) * self.share[rows, None]
            z = self.z[rows]
            if self.full:
                columns = np.column_stack([z, np.ones(len(z))])
                for j in range(n_classes):
                    half = columns * np.sqrt(spread[:, j, None])
                    blocks[j] += half.T @ half
            else:
                blocks[:, 0, 0] += np.einsum("ij,ij,ij->j", spread, z, z)
                blocks[:, 0, 1] += np.einsum("ij,ij->j", spread, z)
                blocks[:, 1, 1] += spread.sum(axis=0)
                blocks[:, 1, 0] = blocks[:, 0, 1]
        places = np.arange(width)
        blocks[:, places, places] += self.penalty
        return blocks

    def _change(self, step: Floats) -> float:
        """Return the largest change of a logit, relative to the row's mean, that the step brings about."""
        largest = 0.0
        for rows in chunks(self.z.shape):
            moved = self._logits(step, rows)
            largest = max(largest, float(np.abs(moved - moved.mean(axis=1, keepdims=True)).max()))
        return largest

    def _searched(
        self, theta: Floats, step: Floats, loss: float, gradient: Floats, change: float, q: Floats
    ) -> tuple[Floats, float]:
        """Return theta moved by the step, halved until the loss falls enough, and the loss there."""
        slope = float(np.sum(gradient * step))
        scale = 1.0
        for _ in range(_HALVINGS):
            new = theta + scale * step
            reached = self._loss(new, q)
            if change <= _NEAR or reached <= loss + 1e-4 * scale * slope:
                break
            scale /= 2
        return new, reached

    def _free(self) -> Bools:
        """Return which columns of theta may be moved by a constant without effect: no penalty holds them."""
        free = np.asarray((self.penalty <= _RIDGE).all(axis=0))
        if not self.full:
            free[0] = False  # each weight belongs to a column of its own
        return free
