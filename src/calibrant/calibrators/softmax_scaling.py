"""Calibrators that scale log-probabilities before a softmax: temperature, vector, matrix and Dirichlet."""

from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import Argument, InputError, Note, check_option
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators.class_maps import ClassMap, Softmax
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.multinomial import Problem, log_probabilities, temperature_slope

__all__ = ["Dirichlet", "MatrixScaling", "SoftmaxTemperature", "VectorScaling"]


class _SoftmaxScaling(ProbabilityMap):
    """Fits a map of kind `Softmax`, with weights of `_dimensions` dimensions, to log-probabilities."""

    map_kinds: ClassVar[tuple[str, ...]] = ("softmax",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)
    _dimensions: ClassVar[int]

    eps: float

    def accepts_map(self, map_: Any) -> bool:
        right = super().accepts_map(map_) and map_.weights.ndim == self._dimensions
        return bool(right and map_.eps == self.eps)

    def _log_probabilities(self, matrix: Floats, weight: Floats) -> Floats:
        """Return log-probabilities, and count the rows with one that was clipped."""
        check_eps(self.eps)
        clipped = (matrix < self.eps).any(axis=1) & (weight > 0)
        self.n_clipped_ = float(weight[clipped].sum())
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
        weights: Floats = self.map_.weights
        return weights

    @property
    def biases_(self) -> Floats:
        """Bias of each class."""
        biases: Floats = self.map_.biases
        return biases


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

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def accepts_map(self, map_: Any) -> bool:
        return bool(super().accepts_map(map_) and map_.weights >= 0 and not map_.biases.any())

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        z = self._log_probabilities(matrix, weight)
        own = z[np.arange(code.size), code]
        if (own == z.max(axis=1)).all() and (z != z[:, :1]).any():
            raise InputError(
                "y must differ from the most probable class in some row; got none, so that the lower the temperature, "
                "the better.",
                hint="Use OneVsRest(), whose targets are smoothed.",
                argument="y",
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

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        return self._fit_theta(matrix, code, weight, np.zeros((matrix.shape[1], 2)))


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

    def __init__(self, *, l2: float = 0.0, eps: float = EPS) -> None:
        self.l2 = l2
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        n_classes = matrix.shape[1]
        penalty = np.zeros((n_classes, n_classes + 1))
        penalty[:, :-1] = 2 * check_penalty("l2", self.l2) / n_classes**2
        return self._fit_theta(matrix, code, weight, penalty)


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

    def __init__(
        self,
        *,
        reg_lambda: float = 1.0,
        reg_mu: float | None = None,
        penalty: Literal["odir", "l2"] = "odir",
        eps: float = EPS,
    ) -> None:
        self.reg_lambda = reg_lambda
        self.reg_mu = reg_mu
        self.penalty = penalty
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_option("penalty", self.penalty, ("odir", "l2"))
        n_classes = matrix.shape[1]
        reg_lambda = check_penalty("reg_lambda", self.reg_lambda)
        reg_mu = reg_lambda if self.reg_mu is None else check_penalty("reg_mu", self.reg_mu)
        penalised = np.ones((n_classes, n_classes)) - (np.eye(n_classes) if self.penalty == "odir" else 0)
        slopes = 2 * reg_lambda * penalised / penalised.sum()
        penalty = np.column_stack([slopes, np.full(n_classes, 2 * reg_mu / n_classes)])
        return self._fit_theta(matrix, code, weight, penalty)


def check_penalty(name: str, value: float) -> float:
    """Return a penalty: a finite number, at least 0."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and 0 <= value < np.inf:
        return float(value)
    raise InputError(Argument(name) + f" must be a finite number of at least 0; got {value!r}.", value=value)
