"""Maps from class probabilities to calibrated class probabilities.

Like the maps of one score (`maps`), they are plain numbers, checked when they are made. Files, SQL and ONNX read them
and need no estimator.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators import maps

DOMAINS = ("probability", "real")
_COUPLING_STEPS = 100
_LARGEST = 1e100  # sums of products of such numbers with logarithms are finite
_LARGEST_RATIO = 1e9  # with larger ratios the equations of the coupling are singular in doubles
_LARGEST_SLOPE = 64.0  # powers of 1 / K are doubles
_LEAST_FLOOR = 2.0**-500
_CELLS = 2**21  # of a matrix that are worked on at once
_PAIR_CELLS = 2**23  # the same for probabilities of pairs


class ClassMap(Protocol):
    """A function of matrices with one column per class. `kind` names it."""

    kind: ClassVar[str]

    @property
    def domain(self) -> str:
        """``"probability"``: rows are probabilities of sum 1; ``"real"``: any finite numbers."""

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None if the map takes any number."""

    def __call__(self, proba: Floats) -> Floats: ...

    def formula(self, columns: Any) -> Any:
        """Return the map of an expression of class probabilities; None if it has no closed form."""


@dataclass(frozen=True, eq=False)
class Softmax:
    r"""Softmax of a linear function of log-probabilities: ``softmax(W ln p + b)``, p at least `eps`.

    `weights` is one number (temperature scaling), one number per class (a diagonal W), or a matrix.

    >>> Softmax(0.5, [0.0, 0.0])(np.array([[0.8, 0.2]])).round(3)
    array([[0.667, 0.333]])
    """

    weights: Floats
    biases: Floats
    eps: float = EPS

    kind: ClassVar[str] = "softmax"
    domain: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        check_eps(self.eps)
        for name in ("weights", "biases"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        size = self.biases.size
        shapes = {(), (size,), (size, size)}
        if self.biases.ndim != 1 or size < 2 or self.weights.shape not in shapes:
            raise InputError(
                f"A softmax map must have a bias per class and weights of shape (), (K,) or (K, K); got biases of "
                f"shape {self.biases.shape} and weights of shape {self.weights.shape}."
            )

    @property
    def n_classes(self) -> int:
        return self.biases.size

    def __call__(self, proba: Floats) -> Floats:
        calibrated = np.empty(proba.shape)
        for rows in chunks((len(proba), self.n_classes)):
            z = log_probabilities(proba[rows], self.eps)
            # einsum, not BLAS: the value of a row must not depend on the rows beside it.
            moved = z * self.weights if self.weights.ndim < 2 else np.einsum("ik,jk->ij", z, self.weights)
            calibrated[rows] = softmax(moved + self.biases)
        return calibrated

    def formula(self, columns: Any) -> Any:
        return columns.softmax(self.weights, self.biases, self.eps)


@dataclass(frozen=True, eq=False)
class StructuredSoftmax:
    r"""Softmax of a linear function of log-probabilities that are scaled, and mixed with equal probabilities, before.

    With the share m and K classes: :math:`z = \ln((1 - m) \operatorname{softmax}(s \ln p) + m / K)`, p at least
    `eps`, and :math:`(1 - m) \operatorname{softmax}(W z + b) + m / K`. `weights` is the diagonal of W, or W. In the
    domain "real", scores take the place of ln p.

    >>> StructuredSoftmax(0.5, [1.0, 1.0], [0.0, 0.0], 1e-9)(np.array([[0.8, 0.2]])).round(3)
    array([[0.667, 0.333]])
    """

    slope: float
    weights: Floats
    biases: Floats
    share: float
    eps: float = EPS
    domain: str = "probability"

    kind: ClassVar[str] = "structured"

    def __post_init__(self) -> None:
        check_floor(self.eps)
        for name in ("weights", "biases"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        for name in ("slope", "share"):
            object.__setattr__(self, name, float(_numbers(name, getattr(self, name))))
        size = self.biases.size
        if self.biases.ndim != 1 or size < 2 or self.weights.shape not in {(size,), (size, size)}:
            raise InputError(
                f"A structured map must have a bias per class and weights of shape (K,) or (K, K); got biases of shape "
                f"{self.biases.shape} and weights of shape {self.weights.shape}."
            )
        if not (0 <= self.slope <= _LARGEST_SLOPE and 0 < self.share < 1) or self.domain not in DOMAINS:
            raise InputError(
                f"A structured map must have a slope in [0, {_LARGEST_SLOPE:g}], a share in (0, 1) and a domain of "
                f"{' or '.join(DOMAINS)}; got {self.slope:g}, {self.share:g} and {self.domain!r}."
            )

    @property
    def n_classes(self) -> int:
        return self.biases.size

    def __call__(self, proba: Floats) -> Floats:
        calibrated, share = np.empty(proba.shape), self.share
        for rows in chunks((len(proba), self.n_classes)):
            scaled = softmax(self.slope * log_shares(proba[rows], self.eps, self.domain))
            z = np.log((1 - share) * scaled + share / self.n_classes)
            moved = z * self.weights if self.weights.ndim < 2 else np.einsum("ik,jk->ij", z, self.weights)
            calibrated[rows] = (1 - share) * softmax(moved + self.biases) + share / self.n_classes
        return calibrated

    def formula(self, columns: Any) -> Any:
        return columns.structured(self)


@dataclass(frozen=True, eq=False)
class Normalised:
    """One map of a score per class; the results are divided by their sum. Where all are 0, all classes get 1 / K.

    >>> half = maps.Odds(0.5)
    >>> Normalised([half, half])(np.array([[0.8, 0.2]])).round(3)
    array([[0.857, 0.143]])
    """

    per_class: Sequence[maps.Map]
    domain: str = "probability"

    kind: ClassVar[str] = "normalised"

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_class", _maps(self, "per_class"))
        if self.n_classes < 2 or self.domain not in DOMAINS:
            raise InputError(
                f"A normalised map must have maps of two or more classes and a domain of {' or '.join(DOMAINS)}; got "
                f"{self.n_classes} maps and {self.domain!r}."
            )

    @property
    def n_classes(self) -> int:
        return len(self.per_class)

    def __call__(self, proba: Floats) -> Floats:
        raw = np.column_stack([map_(column) for map_, column in zip(self.per_class, proba.T, strict=True)])
        total = raw.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(total > 0, raw / total, 1 / raw.shape[1]))

    def formula(self, columns: Any) -> Any:
        return columns.normalised(self.per_class)


@dataclass(frozen=True, eq=False)
class TopLabel:
    """A map of the highest probability of each row; the other classes share the rest in their old proportions.

    Of equal highest probabilities the first column counts. Where the other probabilities are all 0 they share equally.

    >>> TopLabel(maps.Odds(0.5))(np.array([[0.6, 0.3, 0.1]])).round(4)
    array([[0.4286, 0.4286, 0.1429]])
    """

    confidence: maps.Map

    kind: ClassVar[str] = "top_label"
    domain: ClassVar[str] = "probability"
    n_classes: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", _map(self.confidence))

    def __call__(self, proba: Floats) -> Floats:
        row, top = np.arange(len(proba)), proba.argmax(axis=1)
        calibrated = self.confidence(proba[row, top])
        others = proba.copy()
        others[row, top] = 0.0
        rest = others.sum(axis=1)
        others[rest == 0] = 1.0
        others[row, top] = 0.0
        others *= ((1 - calibrated) / np.where(rest > 0, rest, proba.shape[1] - 1))[:, None]
        others[row, top] = calibrated
        return others

    def formula(self, columns: Any) -> Any:
        return columns.top_label(self.confidence)


@dataclass(frozen=True, eq=False)
class Coupling:
    r"""Pairwise coupling: class probabilities that fit the calibrated probabilities of all pairs best.

    Pair (i, j), i < j, has a map of :math:`p_i / (p_i + p_j)` to :math:`r_{ij}`, p at least `eps`. The result
    maximises :math:`\sum_{i \ne j} n_{ij} r_{ij} \ln \frac{q_i}{q_i + q_j}` row by row, with :math:`n_{ij}` the entry
    of `sizes` and :math:`r_{ij}` kept `eps` away from 0 and 1.

    `per_pair` and `sizes` are in the order (0, 1), (0, 2), ..., (1, 2), ...

    >>> Coupling([maps.Odds(1.0)] * 3, [1.0, 1.0, 1.0])(np.array([[0.7, 0.2, 0.1]])).round(6)
    array([[0.7, 0.2, 0.1]])
    """

    per_pair: Sequence[maps.Map]
    sizes: Floats
    eps: float = EPS

    kind: ClassVar[str] = "coupling"
    domain: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        check_eps(self.eps)
        object.__setattr__(self, "per_pair", _maps(self, "per_pair"))
        object.__setattr__(self, "sizes", _numbers("sizes", self.sizes))
        pairs = self.n_classes * (self.n_classes - 1) // 2
        if len(self.per_pair) != pairs or self.sizes.shape != (pairs,) or not pairs or not (self.sizes > 0).all():
            raise InputError(
                "A coupling must have a map and a positive size for each pair of classes; got "
                f"{len(self.per_pair)} maps and sizes of shape {self.sizes.shape}."
            )
        if self.sizes.max() > _LARGEST_RATIO * self.sizes.min():
            raise InputError(
                f"The sizes of pairs of classes must differ by a factor of at most {_LARGEST_RATIO:g} to be coupled; "
                f"got {self.sizes.min():g} and {self.sizes.max():g}.",
                hint="Leave out the rarest class.",
            )

    @property
    def n_classes(self) -> int:
        return round((1 + math.sqrt(1 + 8 * len(self.per_pair))) / 2)

    def __call__(self, proba: Floats) -> Floats:
        first, second = np.triu_indices(self.n_classes, 1)
        share = self.sizes / self.sizes.sum()
        calibrated = np.empty(proba.shape)
        for rows in chunks((len(proba), first.size), _PAIR_CELLS):
            p = np.maximum(proba[rows], self.eps)
            pairs = np.column_stack(
                [map_(p[:, i] / (p[:, i] + p[:, j])) for map_, i, j in zip(self.per_pair, first, second, strict=True)]
            )
            calibrated[rows] = couple(np.clip(pairs, self.eps, 1 - self.eps), share, self.n_classes)
        return calibrated

    def formula(self, columns: Any) -> None:
        return None


def couple(pairs: Floats, share: Floats, n_classes: int) -> Floats:
    r"""Return class probabilities of rows that fit the probabilities of pairs best.

    `pairs` has a column for each pair i < j, with the probability of i; `share` weighs the pairs. The objective is the
    weighted Kullback-Leibler divergence of Hastie & Tibshirani, whose optimum is unique; their iteration converges to
    it slowly. In the logarithms of the odds it is a logistic regression, and Newton's method solves it. Steps are
    shortened by ln(1 + d) / d, with d the largest change of a log-odds, so that each step improves the objective.
    """
    scores = np.log(_sums_per_class(pairs, 1 - pairs, n_classes))
    left = np.arange(len(pairs))  # each row by itself: converged ones are left as they are
    for _ in range(_COUPLING_STEPS):
        remaining = []
        for rows in chunks((left.size, n_classes**2)):
            some = left[rows]
            step = _coupling_step(scores[some], pairs[some], share)
            change = step.max(axis=1) - step.min(axis=1)
            with np.errstate(invalid="ignore"):
                scores[some] += np.where(change > 0, np.log1p(change) / change, 1.0)[:, None] * step
            remaining.append(some[change > 1e-9])  # the error after the step is about its square
        left = np.concatenate(remaining) if remaining else left
        if not left.size:
            break
    return softmax(scores)


def _sums_per_class(first: Floats, second: Floats, n_classes: int) -> Floats:
    """Return sums over each class's pairs, of the values that belong to the pairs' first and second classes."""
    total = np.empty((len(first), n_classes))
    i, j = np.triu_indices(n_classes, 1)
    for rows in chunks((len(first), n_classes**2)):
        table = np.zeros((len(total[rows]), n_classes, n_classes))
        table[:, i, j], table[:, j, i] = first[rows], second[rows]
        total[rows] = table.sum(axis=2)
    return total


def _coupling_step(scores: Floats, pairs: Floats, share: Floats) -> Floats:
    n_classes = scores.shape[1]
    first, second = np.triu_indices(n_classes, 1)
    expected = 1 / (1 + np.exp(scores[:, second] - scores[:, first]))
    residual, spread = share * (pairs - expected), share * expected * (1 - expected)
    gradient = _sums_per_class(residual, -residual, n_classes)
    hessian = np.zeros((len(pairs), n_classes, n_classes))
    hessian[:, first, second] = hessian[:, second, first] = -spread
    places = np.arange(n_classes)
    hessian[:, places, places] = -hessian.sum(axis=2)
    hessian += 1 / n_classes  # holds the mean, which has no effect
    return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Thresholds:
    r"""One map per cumulative probability of ordered classes; their differences are the class probabilities.

    Where the values of the maps cross, each becomes the mean of the largest value at or below its threshold and the
    smallest at or above it. These rise, and are the values themselves where no values cross. Differences d become
    ``eps + (1 - K eps) d``, at least `eps`.

    >>> Thresholds([maps.Odds(1.0), maps.Odds(0.25)])(np.array([[0.3, 0.5, 0.2]])).round(6)
    array([[0.3, 0.2, 0.5]])
    >>> Thresholds([maps.Odds(1.0), maps.Odds(0.25)])(np.array([[0.6, 0.1, 0.3]])).round(3)
    array([[0.484, 0.   , 0.516]])
    """

    per_threshold: Sequence[maps.Map]
    eps: float = EPS

    kind: ClassVar[str] = "thresholds"
    domain: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        check_eps(self.eps)
        object.__setattr__(self, "per_threshold", _maps(self, "per_threshold"))
        if not self.per_threshold or self.n_classes * self.eps >= 1:
            raise InputError(
                "A map of thresholds must have a map for each class but the highest, and eps below 1 / K for K "
                f"classes; got {len(self.per_threshold)} maps and eps {self.eps}."
            )

    @property
    def n_classes(self) -> int:
        return len(self.per_threshold) + 1

    def __call__(self, proba: Floats) -> Floats:
        below = np.minimum(np.cumsum(proba, axis=1), 1.0).T
        raw = np.column_stack([map_(column) for map_, column in zip(self.per_threshold, below, strict=False)])
        rising = np.maximum.accumulate(raw, axis=1)
        rising += np.minimum.accumulate(raw[:, ::-1], axis=1)[:, ::-1]
        steps = np.diff(rising / 2, axis=1, prepend=0.0, append=1.0)
        return np.asarray(self.eps + (1 - self.n_classes * self.eps) * steps)

    def formula(self, columns: Any) -> Any:
        return columns.thresholds(self.per_threshold, self.eps)


CLASS_MAPS: dict[str, Any] = {
    class_.kind: class_ for class_ in (Softmax, StructuredSoftmax, Normalised, TopLabel, Coupling, Thresholds)
}


def softmax(logits: Floats) -> Floats:
    """Return exponentials divided by their sum, row by row."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def log_probabilities(proba: Floats, eps: float) -> Floats:
    """Return logarithms of probabilities, those below `eps` clipped to it."""
    return np.asarray(np.log(np.maximum(proba, eps)))


def check_floor(eps: float) -> None:
    """Check the smallest probability whose logarithm is taken; its complement may round to 1."""
    if not (isinstance(eps, float) and _LEAST_FLOOR <= eps < 0.5):
        raise InputError(f"eps must be a float in [2**-500, 0.5); got {eps!r}.", argument="eps", value=eps)


def log_shares(scores: Floats, eps: float, domain: str) -> Floats:
    """Return logarithms of probabilities, at least `eps`, or other scores, less the largest of each row."""
    logs = log_probabilities(scores, eps) if domain == "probability" else scores
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def chunks(shape: tuple[int, int], cells: int = _CELLS) -> list[slice]:
    """Return slices of rows, each of at most `cells` cells, so that temporary arrays stay small."""
    rows = max(1, cells // shape[1])
    return [slice(start, start + rows) for start in range(0, shape[0], rows)]


def _map(map_: Any) -> Any:
    """Return a map of one number, given as such or as plain data."""
    return map_ if is_dataclass(map_) else maps.from_dict(map_)


def _maps(owner: Any, name: str) -> tuple[Any, ...]:
    values = getattr(owner, name)
    if not isinstance(values, (list, tuple)):
        raise InputError(f"{name} of a {owner.kind} map must be a list; got {values!r}.")
    return tuple(map(_map, values))


def _numbers(name: str, values: Any) -> Floats:
    array = maps.numbers(values, name, "a map of classes")
    if not (np.abs(array) <= _LARGEST).all():
        raise InputError(f"{name} of a map of classes must hold finite numbers of at most {_LARGEST:g} in size.")
    return array
