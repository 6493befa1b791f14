"""Calibrators of the probabilities of several classes."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.errors import CalibrantWarning, InputError, Note, join_notes
from calibrant._support.logits import EPS, check_eps
from calibrant._support.typing import Column, Floats, Ints
from calibrant.calibrators.score_map import ScoreMap, label_array
from calibrant.calibrators.sigmoid import Platt
from calibrant.metrics.multiclass import check_sums, probability_columns

__all__ = ["OneVsRest", "ProbabilityMap", "SoftmaxTemperature", "VectorScaling"]


class ProbabilityMap(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibrator of a matrix with one column a class; a kind of it says what it learns and how it maps."""

    @property
    def takes_any_score(self) -> bool:
        """Whether scores may be any finite numbers; else rows are probabilities."""
        return False

    def fit(
        self, X: Any, y: Column, sample_weight: Column | None = None, *, classes: Sequence[Any] | None = None
    ) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : matrix of n rows, one column a class
        y : column of n labels
        sample_weight : column of n weights, optional
        classes : sequence of labels, optional
            The class of every column; by default the labels of `y`, sorted.

        Returns
        -------
        self
        """
        column = _columns.read(y, "y")
        _columns.refuse_missing([column])
        _columns.check_alignment({"X": X, "y": y, "sample_weight": sample_weight})
        names = _columns.classes(column) if classes is None else _columns.check_classes(classes)
        code = _columns.codes(column, names)
        matrix, notes = self._read(X, len(names))
        _columns.check_lengths([column, _columns.Column("X", matrix)])
        weight = np.ones(code.size) if sample_weight is None else _columns.weights_beside(sample_weight, column)
        if not weight.any():
            raise InputError("X holds no rows, or sample_weight is 0 (zero) in all of them.", argument="X")
        used = weight > 0
        self.notes_: tuple[Note, ...] = column.notes + notes
        self._fit_rows(matrix[used], code[used], weight[used])
        self.classes_, self.n_features_in_ = label_array(names), len(names)
        return self

    def _read(self, X: Any, n_classes: int) -> tuple[Floats, tuple[Note, ...]]:
        """The matrix, checked, and what was noted."""
        if self.takes_any_score:
            read = [_columns.finite(_columns.read(column, "X")) for column in np.ma.asanyarray(X).T]
        else:
            read, _ = probability_columns(X)
        if len(read) != n_classes:
            raise InputError(
                f"X must have one column for each of the {n_classes} classes; it has {len(read)}.",
                hint="Pass classes=, the class of every column in order, where y lacks one.",
                argument="X",
            )
        _columns.refuse_missing(read)
        matrix = np.column_stack([column.values for column in read])
        notes = join_notes(*(column.notes for column in read))
        if self.takes_any_score:
            return matrix, notes
        return matrix, notes + check_sums(matrix, any(note.code == "float16" for note in notes))

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> None:
        raise NotImplementedError

    def _map(self, matrix: Floats) -> Floats:
        raise NotImplementedError

    def __call__(self, X: Any) -> Floats:
        """The calibrated probabilities: rows in the order given, columns in that of `classes_`."""
        check_is_fitted(self)
        matrix, notes = self._read(X, len(self.classes_))
        for note in notes:
            if note.code == "clipped":
                warnings.warn(note.text, CalibrantWarning, stacklevel=2)
        return self._map(matrix)

    def predict_proba(self, X: Any) -> Floats:
        """The same as calling it."""
        return self(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row; the first of equally likely ones."""
        likeliest = self(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels


class OneVsRest(ProbabilityMap):
    """A score map for every class against all others; the results are divided by their sum.

    Where every class gets 0 (which only maps that give 0 can do) all get the same.

    Parameters
    ----------
    calibrator : score map, default=Platt()
        Cloned for every class.

    Attributes
    ----------
    calibrators_ : list of fitted score maps, one a class

    Examples
    --------
    >>> proba = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    >>> OneVsRest().fit(proba, ["a", "b", "c", "a"])(proba).sum(axis=1)
    array([1., 1., 1., 1.])
    """

    def __init__(self, calibrator: ScoreMap | None = None) -> None:
        self.calibrator = calibrator

    @property
    def takes_any_score(self) -> bool:
        return self.calibrator is not None and self.calibrator.takes_any_score

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> None:
        calibrator = Platt() if self.calibrator is None else self.calibrator
        self.calibrators_ = [
            clone(calibrator).fit(matrix[:, j], (code == j).astype(np.int8), weight) for j in range(matrix.shape[1])
        ]

    def _map(self, matrix: Floats) -> Floats:
        raw = np.column_stack([each.map_(column) for each, column in zip(self.calibrators_, matrix.T, strict=True)])
        total = raw.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(total > 0, raw / total, 1 / matrix.shape[1]))


class SoftmaxTemperature(ProbabilityMap):
    r"""Temperature scaling for several classes: the softmax of ln p / T, with T > 0 of the greatest likelihood.

    Parameters
    ----------
    eps : float, default=2**-24
        How near to 0 probabilities may lie; nearer ones are read as so near.

    Attributes
    ----------
    temperature_ : float
        Infinite where no T > 0 is better than equal probabilities.

    Notes
    -----
    Logits are known up to a constant from their softmax, so probabilities serve as well.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]])
    >>> SoftmaxTemperature().fit(proba, [0, 1, 2, 1]).temperature_ > 1  # sure, and once wrong
    True
    """

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> None:
        from scipy.optimize import brentq

        check_eps(self.eps)
        z = _logs(matrix, self.eps)
        own = _chosen(z, code)
        if (own == z.max(axis=1)).all() and (z != z[:, :1]).any():
            raise InputError(
                "Every row's own class is the likeliest, so no temperature fits best: the lower the better.",
                hint="Use OneVsRest(), whose targets are smoothed.",
            )
        mean = float(np.average(own, weights=weight))

        def derivative(slope: float) -> float:
            return mean - float(np.average((softmax(slope * z) * z).sum(axis=1), weights=weight))

        # Concave in the slope 1 / T: the derivative falls.
        self.slope_ = 0.0
        if derivative(0.0) > 0:
            high = 1.0
            while derivative(high) > 0:
                high *= 2
            self.slope_ = float(brentq(derivative, 0.0, high, xtol=1e-14, rtol=1e-14))
        self.temperature_ = 1 / self.slope_ if self.slope_ else float("inf")

    def _map(self, matrix: Floats) -> Floats:
        return softmax(self.slope_ * _logs(matrix, self.eps))


class VectorScaling(ProbabilityMap):
    r"""Vector scaling: the softmax of w_c ln p_c + b_c, by maximum likelihood.

    Parameters
    ----------
    eps : float, default=2**-24
        How near to 0 probabilities may lie; nearer ones are read as so near.

    Attributes
    ----------
    weights_, biases_ : ndarray
        w and b of every class; the biases sum to 0.

    References
    ----------
    .. [1] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".
    """

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> None:
        from scipy.optimize import minimize

        check_eps(self.eps)
        z = _logs(matrix, self.eps)
        n_classes, share = matrix.shape[1], weight / weight.sum()
        own = np.zeros_like(z)
        own[np.arange(code.size), code] = 1.0

        def loss(parameters: Floats) -> tuple[float, Floats]:
            logits = z * parameters[:n_classes] + parameters[n_classes:]
            top = logits.max(axis=1)
            total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
            excess = (softmax(logits) - own) * share[:, None]
            gradient = np.concatenate([(excess * z).sum(axis=0), excess.sum(axis=0)])
            return float(np.sum(share * (total - _chosen(logits, code)))), gradient

        start = np.concatenate([np.ones(n_classes), np.zeros(n_classes)])
        found = minimize(
            loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
        )
        right = (z * found.x[:n_classes] + found.x[n_classes:]).argmax(axis=1) == code
        if not np.isfinite(found.x).all() or np.abs(found.x).max() > 1e4 or right.all():
            raise InputError(
                "The fit of the weights did not converge: a class is almost separated from the others.",
                hint="Use SoftmaxTemperature, or OneVsRest.",
            )
        self.weights_ = found.x[:n_classes]
        self.biases_ = found.x[n_classes:] - found.x[n_classes:].mean()

    def _map(self, matrix: Floats) -> Floats:
        return softmax(_logs(matrix, self.eps) * self.weights_ + self.biases_)


def softmax(logits: Floats) -> Floats:
    """Exponentials divided by their sum, row by row."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _logs(matrix: Floats, eps: float) -> Floats:
    logs: Floats = np.log(np.maximum(matrix, eps))
    return logs


def _chosen(matrix: Floats, code: Ints) -> Floats:
    return matrix[np.arange(code.size), code]
