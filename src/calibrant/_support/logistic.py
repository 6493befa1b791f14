"""Logits, and logistic regression on distinct scores with counts as weights, solved to rounding error."""

from collections.abc import Sequence

import numpy as np

from calibrant._support.arrays import Floats, Weights, in_pieces
from calibrant._support.errors import InputError

EPS = 2.0**-24  # scores are clipped to [EPS, 1 - EPS] before the logit


def logit(score: Floats, eps: float) -> Floats:
    """Return the logits of scores clipped to [eps, 1 - eps]."""

    def of_piece(score: Floats) -> Floats:
        inside = np.clip(score, eps, 1 - eps)
        found: Floats = np.log(inside) - np.log1p(-inside)
        return found

    return in_pieces(of_piece, score)


def expit(x: Floats, out: Floats | None = None) -> Floats:
    """Return 1 / (1 + exp(-x)), the inverse of the logit; in `out` if it is given, which may be x."""
    with np.errstate(over="ignore"):  # 1 / inf is 0, as intended
        return in_pieces(_expit, x, out=out)


def _expit(x: Floats) -> Floats:
    values: Floats = np.negative(x)
    np.exp(values, out=values)
    values += 1
    return np.reciprocal(values, out=values)


def check_eps(eps: float) -> None:
    """Check the bound of `logit`: doubles must distinguish eps from 0 and 1 - eps from 1."""
    if not (isinstance(eps, float) and 2.0**-53 <= eps < 0.5):
        raise InputError(f"eps must be a float in [2**-53, 0.5); got {eps!r}.", argument="eps", value=eps)


_COARSE = 4096  # groups of neighbouring scores in the first steps with many scores
_STEPS = 100
_HALVINGS = 60
_NEAR = 0.01  # a step, in standard deviations of a column, so short that Newton's method does not overshoot
_ONES = np.ones(0)  # represents a column of ones


class NotConvergedError(InputError):
    """The likelihood has no finite maximum, or one so large that doubles cannot distinguish it from infinity.

    See Also
    --------
    InputError

    Examples
    --------
    >>> issubclass(NotConvergedError, InputError)
    True
    """

    __module__ = "calibrant.exceptions"


def fit(columns: Sequence[Floats], n: Weights, k: Weights, start: Sequence[float], *, intercept: bool = True) -> Floats:
    """Return the coefficients of the columns, then the intercept (if any), of greatest likelihood.

    k events among n rows are observed; k need not be an integer. Newton's method halves a step that lowers the
    likelihood; columns are standardised so that the Hessian is well conditioned. `start` holds coefficients in the
    order of the result. The maximum must exist: see `find_separation`.

    With more than 16,384 scores the first steps use groups of neighbouring scores. The last steps use the gradient of
    all scores with the Hessian of the groups; they converge to the same maximum.
    """
    n, k = n.astype(np.float64, copy=False), k.astype(np.float64, copy=False)
    largest = [float(np.abs(x).max()) for x in columns]
    if any(not 1e-100 < size < 1e100 for size in largest if size):  # squares of such numbers overflow or underflow
        return _fit_rescaled(columns, n, k, start, [size or 1.0 for size in largest], intercept=intercept)
    many = n.size > 4 * _COARSE
    few = _group(columns, n, k) if many else (list(columns), n, k)
    centre = [float(np.average(x, weights=few[1])) if intercept else 0.0 for x in few[0]]
    spread = [_spread(x, c, few[1]) for x, c in zip(few[0], centre, strict=True)]

    def standardised(columns: Sequence[Floats]) -> list[Floats]:
        return [(x - c) / s for x, c, s in zip(columns, centre, spread, strict=True)] + [_ONES] * intercept

    begin = [b * s for b, s in zip(start, spread, strict=False)]
    if intercept:
        begin.append(start[-1] + sum(b * c for b, c in zip(start, centre, strict=False)))
    z = standardised(few[0])
    found, curvature = _newton(z, few[1], few[2], _choose_start(z, few[1], few[2], np.array(begin)))
    if many:
        found = _refine(standardised(columns), n, k, found, curvature)
    slopes = [float(b) / s for b, s in zip(found, spread, strict=False)]
    if intercept:
        slopes.append(float(found[-1]) - sum(b * c for b, c in zip(slopes, centre, strict=True)))
    return np.array(slopes, dtype=np.float64)


def _fit_rescaled(
    columns: Sequence[Floats], n: Floats, k: Floats, start: Sequence[float], scale: list[float], *, intercept: bool
) -> Floats:
    """Fit columns divided by their scale, and return the coefficients of the original columns."""
    begun = [b * s for b, s in zip(start, [*scale, 1.0], strict=False)]
    found = fit([x / s for x, s in zip(columns, scale, strict=True)], n, k, begun, intercept=intercept)
    with np.errstate(over="ignore"):
        coefficients: Floats = found / np.array([*scale, 1.0][: found.size])
    if not np.isfinite(coefficients).all():
        raise NotConvergedError("The slope is infinite: scores of both classes are too close to each other.")
    return coefficients


def log_likelihood(eta: Floats, n: Weights, k: Weights) -> float:
    """Return the sum of k ln q + (n - k) ln(1 - q), where logit q = eta.

    The logarithm of the less likely outcome is that of the likelier one minus abs(eta).
    """

    def terms(eta: Floats, n: Weights, k: Weights) -> Floats:
        size = np.abs(eta)
        found: Floats = -n * np.log1p(np.exp(-size)) - np.where(eta > 0, n - k, k) * size
        return found

    return float(np.sum(in_pieces(terms, eta, n, k)))


def find_separation(n: Weights, k: Weights) -> tuple[bool, bool]:
    """Return whether a threshold on the score separates the outcomes: events above it, and events below it."""
    with_event, without = np.flatnonzero(k > 0), np.flatnonzero(k < n)
    if not with_event.size or not without.size:
        return True, True
    return bool(with_event[0] >= without[-1]), bool(with_event[-1] <= without[0])


def clip_and_merge(score: Floats, n: Weights, k: Weights, eps: float) -> tuple[Floats, Weights, Weights]:
    """Clip scores to [eps, 1 - eps] and add up the counts of scores that become equal."""
    low = max(int(np.searchsorted(score, eps, side="right")), 1)
    high = max(min(int(np.searchsorted(score, 1 - eps)), score.size - 1), low - 1)
    start = np.concatenate([[0], np.arange(low, high + 1)]) if high >= low else np.array([0])
    if start.size == score.size:
        return np.clip(score, eps, 1 - eps), n, k
    return np.clip(score[start], eps, 1 - eps), np.add.reduceat(n, start), np.add.reduceat(k, start)


def _choose_start(z: list[Floats], n: Floats, k: Floats, start: Floats) -> Floats:
    """Return the likelier of `start` and slope 0 with the event rate: far from the maximum Newton's method diverges."""
    level = np.zeros(start.size)
    rate = float(k.sum() / n.sum())
    if z[-1] is _ONES and 0 < rate < 1:
        level[-1] = np.log(rate) - np.log1p(-rate)
    both = [log_likelihood(_linear(z, beta, n.size), n, k) for beta in (start, level)]
    return start if both[0] >= both[1] else level


def _newton(z: list[Floats], n: Floats, k: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of greatest likelihood and the curvature there."""
    for _ in range(_STEPS):
        eta = _linear(z, beta, n.size)
        q = expit(eta)
        curvature = _curvature(z, n * q * (1 - q))
        try:
            step = np.linalg.solve(curvature, _gradient(z, k - n * q))
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(step).all():
            break
        if np.abs(step).max() > _NEAR:
            least = log_likelihood(eta, n, k) * (1 + 1e-9)
            for _ in range(_HALVINGS):
                if log_likelihood(_linear(z, beta + step, n.size), n, k) >= least:
                    break
                step /= 2
        beta = beta + step
        # A Newton step squares the error, so after a step of 1e-8 only rounding error is left.
        if np.abs(step).max() <= 1e-8 * max(1.0, np.abs(beta).max()):
            return beta, curvature
    raise NotConvergedError(
        "The logistic fit did not converge: the classes are almost separated, or weights differ too much.",
        hint="Use a calibrator without a slope, such as Isotonic, or more rows.",
    )


def _refine(z: list[Floats], n: Floats, k: Floats, beta: Floats, curvature: Floats) -> Floats:
    """Return the coefficients for all scores, starting from those of groups and with their curvature."""
    last = np.inf
    for _ in range(_STEPS):
        residual = expit(_linear(z, beta, n.size))
        residual *= n
        step = np.linalg.solve(curvature, _gradient(z, np.subtract(k, residual, out=residual)))
        size, last = float(np.abs(step).max()), min(last, float(np.abs(step).max()))
        if size > _NEAR or size > last:
            break  # the curvature of the groups is too inaccurate
        beta = beta + step
        if size <= 1e-10 * max(1.0, np.abs(beta).max()):
            return beta
    return _newton(z, n, k, beta)[0]


def _linear(z: list[Floats], beta: Floats, size: int) -> Floats:
    eta = np.zeros(size) if z[0] is _ONES else beta[0] * z[0]
    for column, b in zip(z, beta, strict=True):
        if column is _ONES:
            eta += b
        elif column is not z[0]:
            eta += b * column
    return eta


def _gradient(z: list[Floats], residual: Floats) -> Floats:
    return np.array([_dot(column, residual) for column in z])


def _curvature(z: list[Floats], weight: Floats) -> Floats:
    curvature = np.empty((len(z), len(z)))
    for i, column in enumerate(z):
        weighted = weight if column is _ONES else weight * column
        for j in range(i, len(z)):
            curvature[i, j] = curvature[j, i] = _dot(z[j], weighted)
    return curvature


def _dot(column: Floats, values: Floats) -> float:
    # Not BLAS: its sums depend on the number of threads.
    return float(np.sum(values if column is _ONES else column * values))


def _spread(x: Floats, centre: float, n: Floats) -> float:
    return float(np.sqrt(np.average((x - centre) ** 2, weights=n))) or 1.0


def _group(columns: Sequence[Floats], n: Floats, k: Floats) -> tuple[list[Floats], Floats, Floats]:
    start = np.arange(_COARSE) * n.size // _COARSE
    total = np.add.reduceat(n, start)
    return [np.add.reduceat(x * n, start) / total for x in columns], total, np.add.reduceat(k, start)
