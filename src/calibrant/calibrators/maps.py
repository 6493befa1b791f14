"""Maps from scores to probabilities: what calibrators learn, and all that a deployment needs of them.

Five kinds serve every calibrator. They are plain numbers, so files, SQL and ONNX need to know five things and no
estimator. Each is checked when it is made: whoever holds one holds a map into [0, 1].
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import read_only
from calibrant._support.errors import InputError
from calibrant._support.logits import EPS, check_eps, expit, logit
from calibrant._support.typing import Floats

__all__ = ["MAPS", "Beta", "Logistic", "Map", "Odds", "Segments", "Steps", "from_dict"]


class Map(Protocol):
    """A function of scores. `kind` names it; `probabilities` says that its scores must lie in [0, 1]."""

    kind: ClassVar[str]

    @property
    def probabilities(self) -> bool: ...

    @property
    def is_increasing(self) -> bool:
        """Whether a higher score never gets a lower probability."""

    def __call__(self, score: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Steps:
    """One value a bin: a score s lies in bin j when ``edges[j-1] <= s < edges[j]``.

    >>> Steps([0.5], [0.1, 0.7])(np.array([0.0, 0.5, 1.0]))
    array([0.1, 0.7, 0.7])
    """

    edges: Floats
    values: Floats

    kind: ClassVar[str] = "steps"
    probabilities: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _freeze(self, "edges", "values")
        _check_rising(self.kind, "edges", self.edges)
        _check_shares(self.kind, "values", self.values)
        if self.values.size != self.edges.size + 1:
            raise InputError(f"A map of steps with {self.edges.size} edges needs one value more; {self.values.size}.")

    @property
    def is_increasing(self) -> bool:
        return bool((np.diff(self.values) >= 0).all())

    def __call__(self, score: Floats) -> Floats:
        return self.values[_kernels.locate(self.edges, score)]


@dataclass(frozen=True, eq=False)
class Segments:
    """Straight lines between points, level beyond the first and the last.

    >>> Segments([0.2, 0.6], [0.0, 1.0])(np.array([0.1, 0.4, 0.9]))
    array([0. , 0.5, 1. ])
    """

    x: Floats
    y: Floats

    kind: ClassVar[str] = "segments"
    probabilities: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _freeze(self, "x", "y")
        _check_rising(self.kind, "x", self.x)
        _check_shares(self.kind, "y", self.y)
        if self.x.size != self.y.size or not self.x.size:
            raise InputError(f"A map of segments needs as many x as y, and one at least; {self.x.size}, {self.y.size}.")

    @property
    def is_increasing(self) -> bool:
        return bool((np.diff(self.y) >= 0).all())

    def __call__(self, score: Floats) -> Floats:
        # np.interp may pass a point's value by a rounding; each step here keeps the order of scores exactly.
        last = self.x.size - 1
        left = np.clip(_kernels.locate(self.x, score) - 1, 0, max(last - 1, 0))
        right = np.minimum(left + 1, last)
        inside = np.clip(score, self.x[0], self.x[-1])
        width = np.where(right > left, self.x[right] - self.x[left], 1.0)
        rise = self.y[right] - self.y[left]
        reached = self.y[left] + (inside - self.x[left]) / width * rise
        low, high = np.minimum(self.y[left], self.y[right]), np.maximum(self.y[left], self.y[right])
        return np.clip(reached, low, high)


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

    kind: ClassVar[str] = "logistic"

    def __post_init__(self) -> None:
        _check_finite(self, "slope", "intercept")
        check_eps(self.eps)
        if self.on not in ("logit", "score"):
            raise InputError(f"on must be 'logit' or 'score'; it is {self.on!r}.", argument="on", value=self.on)

    @property
    def probabilities(self) -> bool:
        return self.on == "logit"

    @property
    def is_increasing(self) -> bool:
        return self.slope >= 0

    def __call__(self, score: Floats) -> Floats:
        eta = logit(score, self.eps) if self.probabilities else score.astype(np.float64)
        eta *= self.slope
        eta += self.intercept
        return expit(eta)


@dataclass(frozen=True, eq=False)
class Beta:
    """Beta calibration: ``logit q = a ln p - b ln(1 - p) + c``, the score p kept `eps` away from 0 and 1.

    >>> Beta(1.0, 1.0, 0.0)(np.array([0.25, 0.5]))
    array([0.25, 0.5 ])
    """

    a: float
    b: float
    c: float
    eps: float = EPS

    kind: ClassVar[str] = "beta"
    probabilities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_finite(self, "a", "b", "c")
        check_eps(self.eps)

    @property
    def is_increasing(self) -> bool:
        return self.a >= 0 and self.b >= 0

    def __call__(self, score: Floats) -> Floats:
        inside = np.clip(score, self.eps, 1 - self.eps)
        return expit(self.a * np.log(inside) - self.b * np.log1p(-inside) + self.c)


@dataclass(frozen=True, eq=False)
class Odds:
    """Odds multiplied by a ratio: ``ratio p / (ratio p + 1 - p)``; 0 stays 0 and 1 stays 1.

    >>> Odds(0.5)(np.array([0.0, 0.5, 1.0])).round(3)
    array([0.   , 0.333, 1.   ])
    """

    ratio: float

    kind: ClassVar[str] = "odds"
    probabilities: ClassVar[bool] = True
    is_increasing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_finite(self, "ratio")
        if not self.ratio > 0:
            raise InputError(f"A ratio of odds must be positive; it is {self.ratio!r}.", value=self.ratio)

    def __call__(self, score: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):  # 1 / inf is the 0 that is meant
            return 1 / (1 + (1 - score) / (self.ratio * score))  # each step keeps the order of scores


MAPS: dict[str, Any] = {each.kind: each for each in (Steps, Segments, Logistic, Beta, Odds)}


def to_dict(map_: Map) -> dict[str, Any]:
    """The map as plain data for JSON, whose numbers come back bit by bit."""
    data: dict[str, Any] = {"kind": map_.kind}
    for field in fields(map_):  # type: ignore[arg-type]
        value = getattr(map_, field.name)
        data[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return data


def from_dict(data: Mapping[str, Any]) -> Map:
    """The map that `to_dict` describes, checked as any other."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in MAPS:
        raise InputError(f"A map must be of a kind among {', '.join(MAPS)}; it is {kind!r}.", value=kind)
    names = [field.name for field in fields(MAPS[kind])]
    given = [name for name in data if name != "kind"]
    if sorted(names) != sorted(given):
        raise InputError(f"A map of {kind} has the fields {', '.join(names)}; found {', '.join(map(str, given))}.")
    built: Map = MAPS[kind](**{name: data[name] for name in names})
    return built


def between(score: Floats, start: Any) -> Floats:
    """Edges that part neighbouring runs of scores, which begin at `start`: halfway from one to the next.

    The edge belongs to the run above it. Between two scores with no number between them it is the upper one.
    """
    below, above = score[start[1:] - 1], score[start[1:]]
    middle = below / 2 + above / 2  # halved first: the sum of two large scores is infinite
    edges: Floats = np.where(middle > below, middle, above)
    return edges


def _freeze(map_: Any, *names: str) -> None:
    for name in names:
        try:
            given = np.asarray(getattr(map_, name))
            array = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name} of a map of {map_.kind} must hold numbers.") from error
        if given.size and given.dtype.kind not in "iuf":
            raise InputError(f"{name} of a map of {map_.kind} must hold numbers; their type is {given.dtype}.")
        if array.ndim != 1:
            raise InputError(f"{name} of a map of {map_.kind} must be one column; its shape is {array.shape}.")
        object.__setattr__(map_, name, read_only(array))


def _check_rising(kind: str, name: str, values: Floats) -> None:
    if not (np.isfinite(values).all() and (np.diff(values) > 0).all()):
        raise InputError(f"{name} of a map of {kind} must be finite and rise.")


def _check_shares(kind: str, name: str, values: Floats) -> None:
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"{name} of a map of {kind} must lie in [0, 1].")


def _check_finite(map_: Any, *names: str) -> None:
    for name in names:
        value = getattr(map_, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not abs(value) <= sys.float_info.max:
            raise InputError(f"{name} of a map of {map_.kind} must be a finite number; it is {value!r}.", value=value)
