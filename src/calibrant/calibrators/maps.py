"""Maps of one number: the fitted part of a calibrator or recalibrator.

A few kinds serve all calibrators, of probabilities, of point predictions and of predictive distributions. Each holds
plain numbers, which are checked when it is made, and states its formula. Files, SQL and ONNX read maps and need no
estimator.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints, in_pieces, read_only
from calibrant._support.errors import Argument, InputError, check_option
from calibrant._support.logistic import EPS, check_eps, expit, logit

# "probability": numbers in [0, 1]; "real": any finite numbers. Values outside the domain are an InputError in Python,
# NULL in SQL and NaN in ONNX.
Domain: TypeAlias = Literal["probability", "real"]
_DOMAINS = ("probability", "real")

_EVERY = (-math.inf, math.inf)
_LARGEST = 1e300  # of a coefficient: times the logit of any score it is finite
_UNIT = (0.0, 1.0)
_LARGEST_LOG_ODDS = 1e100  # of a curve, so that its line is finite
_FAR = 1000.0  # times the width of a curve of margins, beyond which it is level


class Expression(ABC):
    """An expression of a language to which maps are exported, SQL or ONNX; operators and methods make larger ones."""

    @abstractmethod
    def join(self, sign: str, left: "Expression | float", right: "Expression | float") -> "Expression":
        """Return ``left sign right``, with the sign +, -, * or /."""

    def __add__(self, other: "Expression | float") -> "Expression":
        return self.join("+", self, other)

    def __radd__(self, other: float) -> "Expression":
        return self.join("+", other, self)

    def __sub__(self, other: "Expression | float") -> "Expression":
        return self.join("-", self, other)

    def __rsub__(self, other: float) -> "Expression":
        return self.join("-", other, self)

    def __mul__(self, other: "Expression | float") -> "Expression":
        return self.join("*", self, other)

    def __rmul__(self, other: float) -> "Expression":
        return self.join("*", other, self)

    def __truediv__(self, other: "Expression | float") -> "Expression":
        return self.join("/", self, other)

    @abstractmethod
    def log(self) -> "Expression":
        """Return the natural logarithm."""

    @abstractmethod
    def sigmoid(self) -> "Expression":
        """Return ``1 / (1 + exp(-x))``, without overflow."""

    @abstractmethod
    def clip(self, low: float, high: float) -> "Expression":
        """Return the number, moved to the nearer end where it lies outside [low, high]."""

    def normal(self) -> "Expression":
        """Return the number, or 0 where its products would underflow and an engine would fail."""
        return self

    @abstractmethod
    def look_up(self, edges: Floats, values: Floats) -> "Expression":
        """Return the value of the bin that holds the number: bin j if ``edges[j-1] <= x < edges[j]``."""

    @abstractmethod
    def pieces(
        self,
        edges: Floats,
        columns: Sequence[Floats],
        piece: Callable[..., "Expression"],
        ends: "tuple[Expression | float, Expression | float]",
    ) -> "Expression":
        """Return the piece between the edges around the number, or an end: what lies below or above all edges.

        `piece` is a function of one number per column, for each two neighbouring edges.
        """


class Map(Protocol):
    """A function of one number; `kind` names it."""

    kind: ClassVar[str]

    def formula(self, x: Expression) -> Expression:
        """Return the map of an expression of a number of its domain."""

    @property
    def domain(self) -> Domain:
        """Numbers that the map takes."""

    @property
    def is_increasing(self) -> bool:
        """Whether a higher score never gets a lower value."""

    @property
    def range(self) -> tuple[float, float]:
        """Limits of the values."""

    def __call__(self, score: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Steps:
    """One value per bin: a score s lies in bin j if ``edges[j-1] <= s < edges[j]``.

    >>> Steps([0.5], [0.1, 0.7])(np.array([0.0, 0.5, 1.0]))
    array([0.1, 0.7, 0.7])
    """

    edges: Floats
    values: Floats
    domain: Domain = "real"

    kind: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        _check_bins(self, "edges", "values")
        if self.domain == "probability":  # drops bins that no probability reaches
            reached = (self.edges > 0) & (self.edges <= 1)
            first, last = np.count_nonzero(self.edges <= 0), np.count_nonzero(self.edges <= 1)
            object.__setattr__(self, "values", read_only(self.values[first : last + 1]))
            object.__setattr__(self, "edges", read_only(self.edges[reached]))

    @property
    def is_increasing(self) -> bool:
        return bool((np.diff(self.values) >= 0).all())

    @property
    def range(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def __call__(self, score: Floats) -> Floats:
        return self.values[_kernels.locate(self.edges, score)]

    def formula(self, x: Expression) -> Expression:
        return x.look_up(self.edges, self.values)


@dataclass(frozen=True, eq=False)
class Segments:
    """Straight lines between points; beyond the first and the last point level, or along the outermost lines.

    >>> Segments([0.2, 0.6], [0.0, 1.0])(np.array([0.1, 0.4, 0.9]))
    array([0. , 0.5, 1. ])
    >>> Segments([0.0, 1.0], [1.0, 3.0], beyond="line")(np.array([-1.0, 2.0]))
    array([-1.,  5.])
    """

    x: Floats
    y: Floats
    domain: Domain = "real"
    beyond: Literal["level", "line"] = "level"

    kind: ClassVar[str] = "segments"

    def __post_init__(self) -> None:
        _check_points(self, "x", "y", least=1 if self.beyond == "level" else 2)
        check_option("beyond", self.beyond, ("level", "line"))

    @property
    def is_increasing(self) -> bool:
        return bool((np.diff(self.y) >= 0).all())

    @property
    def range(self) -> tuple[float, float]:
        return (float(self.y.min()), float(self.y.max())) if self.beyond == "level" else _EVERY

    def __call__(self, score: Floats) -> Floats:
        # np.interp may exceed the value of a point by rounding; each step here keeps the order of scores exactly.
        last = self.x.size - 1
        left = self._piece(score)
        right = np.minimum(left + 1, last)
        inside = np.clip(score, self.x[0], self.x[-1]) if self.beyond == "level" else score
        width = np.where(right > left, self.x[right] - self.x[left], 1.0)
        rise = self.y[right] - self.y[left]
        values: Floats = self.y[left] + (inside - self.x[left]) / width * rise
        if self.beyond == "line":
            return values
        low, high = np.minimum(self.y[left], self.y[right]), np.maximum(self.y[left], self.y[right])
        return np.clip(values, low, high)

    def formula(self, x: Expression) -> Expression:
        columns = (self.x[:-1], np.diff(self.x), self.y[:-1], np.diff(self.y))

        def line(start: Any, width: Any, height: Any, rise: Any) -> Expression:
            inside: Expression = height + (x.normal() - start) / width * rise
            return inside

        if self.beyond == "level":
            return x.pieces(self.x, columns, line, (float(self.y[0]), float(self.y[-1])))
        first, last = (line(*(float(column[end]) for column in columns)) for end in (0, -1))
        return x.pieces(self.x, columns, line, (first, last))

    def _piece(self, score: Floats) -> Ints:
        return np.clip(_kernels.locate(self.x, score) - 1, 0, max(self.x.size - 2, 0))

    def inverse(self, value: Floats) -> Floats:
        """Return the scores that the map gives these values; `y` must rise strictly."""
        return replace(self, x=self.y, y=self.x)(value)

    def log_slope(self, score: Floats) -> Floats:
        """Return the logarithm of the slope; at a point, that of the line to its right."""
        return np.asarray(np.log(np.diff(self.y) / np.diff(self.x))[self._piece(score)])


@dataclass(frozen=True, eq=False)
class Logistic:
    """``1 / (1 + exp(-(slope x + intercept)))`` with x the score, or its logit, kept `eps` away from 0 and 1.

    >>> Logistic(2.0, 0.0)(np.array([0.5, 0.75]))
    array([0.5, 0.9])
    """

    slope: float
    intercept: float
    on: str = "logit"
    eps: float = EPS
    domain: Domain = "probability"

    kind: ClassVar[str] = "logistic"
    range: ClassVar[tuple[float, float]] = _UNIT

    def __post_init__(self) -> None:
        _check_finite(self, "slope", "intercept", largest=_LARGEST)
        check_eps(self.eps)
        check_option("on", self.on, ("logit", "score"))
        check_option("domain", self.domain, _DOMAINS)
        if self.on == "logit" and self.domain != "probability":
            raise InputError("A logistic map of logits must have the domain 'probability'; got 'real'.")

    @property
    def is_increasing(self) -> bool:
        return self.slope >= 0

    def __call__(self, score: Floats) -> Floats:
        eta = logit(score, self.eps) if self.on == "logit" else score.astype(np.float64)
        eta *= self.slope
        eta += self.intercept
        return expit(eta)

    def formula(self, x: Expression) -> Expression:
        if self.on == "logit":
            inside = x.clip(self.eps, 1 - self.eps)
            x = inside.log() - (1 - inside).log()
        elif self.domain == "probability":
            x = x.normal().clip(0.0, 1.0)
        return (float(self.slope) * x + float(self.intercept)).sigmoid()


@dataclass(frozen=True, eq=False)
class BetaMap:
    """Beta calibration: ``logit q = a ln p - b ln(1 - p) + c``, the score p kept `eps` away from 0 and 1.

    >>> BetaMap(1.0, 1.0, 0.0)(np.array([0.25, 0.5]))
    array([0.25, 0.5 ])
    """

    a: float
    b: float
    c: float
    eps: float = EPS

    kind: ClassVar[str] = "beta"
    domain: ClassVar[Domain] = "probability"
    range: ClassVar[tuple[float, float]] = _UNIT

    def __post_init__(self) -> None:
        _check_finite(self, "a", "b", "c", largest=_LARGEST)
        check_eps(self.eps)

    @property
    def is_increasing(self) -> bool:
        return self.a >= 0 and self.b >= 0

    def __call__(self, score: Floats) -> Floats:
        inside = np.clip(score, self.eps, 1 - self.eps)
        return expit(self.a * np.log(inside) - self.b * np.log1p(-inside) + self.c)

    def formula(self, x: Expression) -> Expression:
        inside = x.clip(self.eps, 1 - self.eps)
        a, b, c = map(float, (self.a, self.b, self.c))
        return (a * inside.log() - b * (1 - inside).log() + c).sigmoid()


@dataclass(frozen=True, eq=False)
class Odds:
    """Odds multiplied by a ratio: ``ratio p / (ratio p + 1 - p)``; 0 stays 0 and 1 stays 1.

    >>> Odds(0.5)(np.array([0.0, 0.5, 1.0])).round(3)
    array([0.   , 0.333, 1.   ])
    """

    ratio: float

    kind: ClassVar[str] = "odds"
    domain: ClassVar[Domain] = "probability"
    is_increasing: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = _UNIT

    def __post_init__(self) -> None:
        _check_finite(self, "ratio", positive=("ratio",))

    def __call__(self, score: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):  # 1 / inf is the 0 that is meant
            return 1 / (1 + (1 - score) / (self.ratio * score))  # each step keeps the order of scores

    def formula(self, x: Expression) -> Expression:
        inside = x.normal().clip(0.0, 1.0)
        odds = float(self.ratio) * inside
        return odds / (odds + (1 - inside))


@dataclass(frozen=True)
class Linear:
    """A straight line: ``intercept + slope x``.

    >>> Linear(2.0, 1.0)(np.array([0.0, 10.0]))
    array([ 1., 21.])
    """

    slope: float
    intercept: float

    kind: ClassVar[str] = "linear"
    domain: ClassVar[Domain] = "real"
    range: ClassVar[tuple[float, float]] = _EVERY

    def __post_init__(self) -> None:
        _check_finite(self, "slope", "intercept")

    @property
    def is_increasing(self) -> bool:
        return self.slope >= 0

    def __call__(self, score: Floats) -> Floats:
        return self.intercept + self.slope * score

    def formula(self, x: Expression) -> Expression:
        return float(self.intercept) + float(self.slope) * x.normal()


@dataclass(frozen=True, eq=False)
class Shifts:
    """Adds one number per bin: x lies in bin j if ``edges[j-1] <= x < edges[j]``.

    >>> Shifts([10.0], [1.0, -1.0])(np.array([5.0, 10.0]))
    array([6., 9.])
    """

    edges: Floats
    shifts: Floats

    kind: ClassVar[str] = "shifts"
    domain: ClassVar[Domain] = "real"
    range: ClassVar[tuple[float, float]] = _EVERY

    def __post_init__(self) -> None:
        _check_bins(self, "edges", "shifts")

    @property
    def is_increasing(self) -> bool:
        return bool((np.diff(self.shifts) >= 0).all())

    def __call__(self, score: Floats) -> Floats:
        return np.asarray(score + self.shifts[_kernels.locate(self.edges, score)])

    def formula(self, x: Expression) -> Expression:
        return x + x.look_up(self.edges, self.shifts)


@dataclass(frozen=True, eq=False)
class Cubic:
    """Cubic polynomials between points with given slopes; beyond the first and the last point, their tangents.

    >>> Cubic([0.0, 1.0], [0.0, 1.0], [0.0, 2.0])(np.array([-1.0, 0.5, 2.0]))  # the square
    array([0.  , 0.25, 3.  ])
    """

    x: Floats
    y: Floats
    slope: Floats

    kind: ClassVar[str] = "cubic"
    domain: ClassVar[Domain] = "real"
    is_increasing: ClassVar[bool] = False  # it may rise, but need not
    range: ClassVar[tuple[float, float]] = _EVERY

    def __post_init__(self) -> None:
        _check_points(self, "x", "y", "slope", least=2)

    @property
    def coefficients(self) -> Floats:
        """Coefficients of 1, t, t^2 and t^3 of each piece, t from 0 to 1; of shape (pieces, 4)."""
        width, rise = np.diff(self.x), np.diff(self.y)
        first, last = width * self.slope[:-1], width * self.slope[1:]
        return np.column_stack([self.y[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise])

    def __call__(self, score: Floats) -> Floats:
        left = np.clip(_kernels.locate(self.x, score) - 1, 0, self.x.size - 2)
        t = (score - self.x[left]) / np.diff(self.x)[left]
        c0, c1, c2, c3 = self.coefficients[left].T
        values: Floats = c0 + t * (c1 + t * (c2 + t * c3))
        values = np.where(score < self.x[0], self.y[0] + (score - self.x[0]) * self.slope[0], values)
        return np.where(score >= self.x[-1], self.y[-1] + (score - self.x[-1]) * self.slope[-1], values)

    @property
    def rises(self) -> bool:
        """Whether no piece and no tangent falls, up to rounding error."""
        _, c1, c2, c3 = self.coefficients.T
        with np.errstate(divide="ignore", invalid="ignore"):
            lowest = np.clip(np.nan_to_num(-c2 / (3 * c3), nan=0.0), 0.0, 1.0)
        slopes = np.concatenate([c1 + t * (2 * c2 + t * 3 * c3) for t in (np.zeros(c1.size), lowest, np.ones(c1.size))])
        tolerance = 1e-12 * float(np.abs([c1, c2, c3]).max())
        return bool((slopes >= -tolerance).all() and self.slope[0] >= 0 and self.slope[-1] >= 0)

    def formula(self, x: Expression) -> Expression:
        def cubic(start: Any, width: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Expression:
            t = (x - start) / width
            value: Expression = c0 + t * (c1 + t * (c2 + t * c3))
            return value

        tangents = [float(self.y[end]) + (x - float(self.x[end])) * float(self.slope[end]) for end in (0, -1)]
        columns = (self.x[:-1], np.diff(self.x), *self.coefficients.T)
        return x.pieces(self.x, columns, cubic, (tangents[0], tangents[1]))


@dataclass(frozen=True, eq=False)
class LogitCubic:
    """``1 / (1 + exp(-f(z)))`` with f a `Cubic` and z the logit of the score, or the score itself.

    Scores of at most `eps`, and of at least ``1 - eps``, have log-odds apart from the curve: `ends`. `error` and
    `end_errors` are standard errors of the log-odds. A map of the score itself has no ends.

    >>> map_ = LogitCubic([-1.0, 1.0], [-2.0, 2.0], [2.0, 2.0], [0.1, 0.1], [-9.0, 9.0], [1.0, 1.0])
    >>> map_(np.array([0.5, 0.75])), map_(np.array([0.0, 1.0])).round(4)
    (array([0.5, 0.9]), array([1.000e-04, 9.999e-01]))
    """

    x: Floats
    y: Floats
    slope: Floats
    error: Floats
    ends: Floats
    end_errors: Floats
    on: str = "logit"
    eps: float = EPS
    domain: Domain = "probability"

    kind: ClassVar[str] = "logit_cubic"
    range: ClassVar[tuple[float, float]] = _UNIT

    def __post_init__(self) -> None:
        _check_points(self, "x", "y", "slope", "error", least=2)
        check_eps(self.eps)
        check_option("on", self.on, ("logit", "score"))
        if self.on == "logit" and self.domain != "probability":
            raise InputError("A map of logits must have the domain 'probability'; got 'real'.")
        for name in ("ends", "end_errors"):
            column = numbers(getattr(self, name), name, f"a {self.kind} map")
            if column.shape != ((2,) if self.on == "logit" else (0,)):
                expected = "two numbers" if self.on == "logit" else "no numbers"
                raise InputError(f"{name} of a {self.kind} map must hold {expected}; got {column.size}.", argument=name)
            object.__setattr__(self, name, column)
        with np.errstate(all="ignore"):
            sizes = np.abs(np.concatenate([self._curve.coefficients.ravel(), self.y, self.ends]))
        if not (sizes <= _LARGEST_LOG_ODDS).all() or min(self.error.min(), self.end_errors.min(initial=0.0)) < 0:
            raise InputError(
                f"The log-odds of a {self.kind} map must be at most {_LARGEST_LOG_ODDS:g} in size between its points, "
                "and its errors at least 0; they are not."
            )

    @property
    def _curve(self) -> Cubic:
        return Cubic(self.x, self.y, self.slope)

    @property
    def _reach(self) -> tuple[float, float]:
        """Limits of scores, beyond which the map is level so that its line does not overflow."""
        far = _FAR * (float(self.x[-1]) - float(self.x[0]))
        return float(self.x[0]) - far, float(self.x[-1]) + far

    @property
    def is_increasing(self) -> bool:
        if not self.ends.size:
            return self._curve.rises
        at_eps = self._curve(logit(np.array([0.0, 1.0]), self.eps))
        tolerance = 1e-12 * float(np.abs(at_eps).max())
        in_order = self.ends[0] <= at_eps[0] + tolerance and self.ends[1] >= at_eps[1] - tolerance
        return bool(self._curve.rises and in_order)

    def log_odds(self, score: Floats) -> Floats:
        """Return the calibrated log-odds of scores."""
        if self.on == "score":
            return self._curve(np.clip(score, *self._reach))
        values = self._curve(logit(score, self.eps))
        values[score <= self.eps], values[score >= 1 - self.eps] = self.ends
        return values

    def standard_error(self, score: Floats) -> Floats:
        """Return the standard errors of the calibrated log-odds of scores."""
        if self.on == "score":
            return np.interp(score, self.x, self.error)
        values: Floats = np.interp(logit(score, self.eps), self.x, self.error)
        values[score <= self.eps], values[score >= 1 - self.eps] = self.end_errors
        return values

    def __call__(self, score: Floats) -> Floats:
        return expit(in_pieces(self.log_odds, score))

    def formula(self, x: Expression) -> Expression:
        if self.on == "score":
            return self._curve.formula(x.normal().clip(*self._reach)).sigmoid()
        inside = x.clip(self.eps, 1 - self.eps)
        curve = self._curve.formula(inside.log() - (1 - inside).log())
        edges = np.array([np.nextafter(self.eps, 1.0), 1 - self.eps])
        low, high = map(float, self.ends)
        return x.pieces(edges, [np.zeros(1)], lambda _: curve, (low, high)).sigmoid()


@dataclass(frozen=True)
class SinhArcsinh:
    r"""The map of normal scores :math:`z \mapsto \sinh(\delta \sinh^{-1}((z - \xi) / \eta) - \epsilon)`.

    Jones and Pewsey (2009): location, scale, skewness and weight of the tails. (0, 1, 0, 1) is the identity.

    Attributes
    ----------
    location, scale, skewness, tails : float
        :math:`\xi`, :math:`\eta`, :math:`\epsilon` and :math:`\delta`.

    See Also
    --------
    ParetoRecalibrator, Warped

    Examples
    --------
    >>> import numpy as np
    >>> heavy = SinhArcsinh(0.0, 1.0, 0.0, 0.5)
    >>> heavy(np.array([-2.0, 0.0, 2.0])).round(3), heavy.inverse(heavy(np.array([1.5]))).round(3)
    (array([-0.786,  0.   ,  0.786]), array([1.5]))
    """

    location: float = 0.0
    scale: float = 1.0
    skewness: float = 0.0
    tails: float = 1.0

    kind: ClassVar[str] = "sinh_arcsinh"
    domain: ClassVar[Domain] = "real"
    is_increasing: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = _EVERY

    def __post_init__(self) -> None:
        _check_finite(self, "location", "scale", "skewness", "tails", positive=("scale", "tails"))

    def __call__(self, score: Floats) -> Floats:
        """Return the values of the map.

        Parameters
        ----------
        score : array
            Normal scores.

        Returns
        -------
        array
            One value per score.
        """
        return np.asarray(np.sinh(self.tails * np.arcsinh((score - self.location) / self.scale) - self.skewness))

    def inverse(self, value: Floats) -> Floats:
        """Return the scores that the map gives these values.

        Parameters
        ----------
        value : array
            Values of the map.

        Returns
        -------
        array
            One score per value.
        """
        return np.asarray(self.location + self.scale * np.sinh((np.arcsinh(value) + self.skewness) / self.tails))

    def log_slope(self, score: Floats) -> Floats:
        """Return the logarithm of the slope.

        Parameters
        ----------
        score : array
            Normal scores.

        Returns
        -------
        array
            One logarithm per score.
        """
        x = (score - self.location) / self.scale
        inner = self.tails * np.arcsinh(x) - self.skewness
        twice_cosh = np.logaddexp(inner, -inner)  # its logarithm, without overflow
        return np.asarray(math.log(self.tails / self.scale) + twice_cosh - math.log(2) - 0.5 * np.log1p(x**2))


@dataclass(frozen=True, eq=False)
class QuantileShifts:
    """Adds one number to the quantiles of each level; quantiles that cross are sorted.

    It maps arrays of shape (n, levels).

    >>> QuantileShifts([0.1, 0.9], [-1.0, 2.0])(np.array([[5.0, 6.0]]))
    array([[4., 8.]])
    """

    levels: Floats
    shifts: Floats

    kind: ClassVar[str] = "quantile_shifts"
    domain: ClassVar[Domain] = "real"
    is_increasing: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = _EVERY

    def __post_init__(self) -> None:
        _check_points(self, "levels", "shifts", least=1)
        if not ((self.levels > 0) & (self.levels < 1)).all():
            raise InputError("levels of a quantile_shifts map must lie between 0 and 1.", argument="levels")

    def __call__(self, score: Floats) -> Floats:
        return np.sort(score + self.shifts, axis=1)


MAPS: dict[str, Any] = {
    class_.kind: class_
    for class_ in (
        Steps,
        Segments,
        Logistic,
        BetaMap,
        Odds,
        Linear,
        Shifts,
        Cubic,
        LogitCubic,
        SinhArcsinh,
        QuantileShifts,
    )
}


def restrict(map_: Map, domain: Domain) -> Map:
    """Return the map with this domain; a map that needs probabilities keeps its own."""
    has_choice = any(field.name == "domain" for field in fields(map_))  # type: ignore[arg-type]
    return replace(map_, domain=domain) if has_choice else map_  # type: ignore[type-var]


def to_dict(map_: Any) -> dict[str, Any]:
    """Return a map, of one number or of classes, as plain data for JSON, from which `from_dict` restores it bitwise."""
    return {"kind": map_.kind} | {field.name: _plain(getattr(map_, field.name)) for field in fields(map_)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [to_dict(map_) for map_ in value]
    if is_dataclass(value):
        return to_dict(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def from_dict(data: Any, known: Mapping[str, Any] = MappingProxyType(MAPS)) -> Any:
    """Return the map that `to_dict` describes, checked as any other; `known` are the classes by kind."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in known:
        raise InputError(f"The kind of a map must be one of {', '.join(known)}; got {kind!r}.", value=kind)
    names = [field.name for field in fields(known[kind])]
    values = {name: value for name, value in data.items() if name != "kind"}
    if sorted(names) != sorted(values, key=str):
        raise InputError(f"A {kind} map must have the fields {', '.join(names)}; got {', '.join(map(str, values))}.")
    return known[kind](**values)


def between(score: Floats, start: Any) -> Floats:
    """Return the edges between neighbouring runs of scores, which begin at `start`: halfway from one to the next.

    The edge belongs to the run above it. Where no double lies between two scores it is the upper one.
    """
    below, above = score[start[1:] - 1], score[start[1:]]
    middle = below / 2 + above / 2  # halved first: the sum of two large scores is infinite
    return np.asarray(np.where(middle > below, middle, above))


def numbers(values: Any, name: str, owner: str) -> Floats:
    """Return values as a read-only array of finite doubles; `owner` is the map that has them."""
    try:
        given = np.asarray(values)
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} of {owner} must hold numbers.", argument=name) from error
    if given.size and given.dtype.kind not in "iuf":
        raise InputError(f"{name} of {owner} must hold numbers; got the type {given.dtype}.", argument=name)
    if not np.isfinite(array).all():
        raise InputError(f"{name} of {owner} must hold finite numbers.", argument=name)
    return np.asarray(read_only(array))


def _freeze(map_: Any, first: str, *others: str) -> None:
    """Store the fields as read-only columns, of which the first rises strictly, and check the domain."""
    for name in (first, *others):
        column = numbers(getattr(map_, name), name, f"a {map_.kind} map")
        if column.ndim != 1:
            text = f"{name} of a {map_.kind} map must be one column; got the shape {column.shape}."
            raise InputError(text, argument=name)
        object.__setattr__(map_, name, column)
    check_option("domain", map_.domain, _DOMAINS)
    if not (np.diff(getattr(map_, first)) > 0).all():
        raise InputError(f"{first} of a {map_.kind} map must rise strictly.", argument=first)


def _check_bins(map_: Any, edges: str, values: str) -> None:
    """Freeze edges and values; check that edges rise and that there is one value more."""
    _freeze(map_, edges, values)
    n_edges, n_values = getattr(map_, edges).size, getattr(map_, values).size
    if n_values != n_edges + 1:
        raise InputError(
            f"{values} of a {map_.kind} map must be one more than its edges; got {n_values} for {n_edges} edges.",
            argument=values,
        )


def _check_points(map_: Any, x: str, *others: str, least: int) -> None:
    """Freeze the columns; check that all are equally long, and that the first rises."""
    _freeze(map_, x, *others)
    size = getattr(map_, x).size
    for name in others:
        if getattr(map_, name).size != size or size < least:
            raise InputError(
                f"{x} and {name} of a {map_.kind} map must be equally long, with at least {least} "
                f"value{'s' * (least > 1)}; got {size} and {getattr(map_, name).size}.",
                argument=name,
            )


def _check_finite(map_: Any, *names: str, positive: tuple[str, ...] = (), largest: float = sys.float_info.max) -> None:
    for name in names:
        value = getattr(map_, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not abs(value) <= largest or (name in positive and value <= 0):
            kind = "positive, finite number" if name in positive else "finite number"
            kind = kind if largest == sys.float_info.max else f"number of at most {largest:g} in size"
            raise InputError(
                Argument(name) + f" of a {map_.kind} map must be a {kind}; got {value!r}.", argument=name, value=value
            )
