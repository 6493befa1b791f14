"""`LogOddsShifts`: heterogeneity of log-odds shifts between groups, from sums of independent outcomes 0 and 1."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.hermite_e import hermegauss

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import expit, find_separation, fit
from calibrant.inference.heterogeneity import Moments, Projection

# Shifts of a group from the common line for which its cumulants are interpolated, and the number of nodes. The error of
# the interpolation is below 1e-6 of a row, because the nearest singularity is pi away from the real axis.
_REACH, _NODES = 6.0, 32
_BINS = 24  # of neighbouring scores per group, for cumulants away from the common line
_QUADRATURE = 13  # points of the normal distribution of shifts
_MIN_EVENTS_FOR_SLOPE = 10
_POINTS = 7  # of the distribution of a shift, given events
_LARGEST = 2.0
_FEW_PAIRS = 5.0  # expected pairs of events in one group, so few that the distribution of U is a discrete one


@dataclass(frozen=True)
class CommonLine:
    """Log-odds that all groups have in common: x + shift + (slope - 1) (x - centre), at scores of log-odds x."""

    shift: float
    slope: float
    centre: float
    is_sloped: bool

    def __call__(self, x: Floats) -> Floats:
        """Return the fitted log-odds."""
        return x + self.shift + (self.slope - 1) * (x - self.centre)


def common_line(x: Floats, n: Floats, k: Floats, *, sloped: bool = True) -> CommonLine | None:
    """Fit shift and slope to all rows, sorted by x; the shift alone where few events do not determine the slope.

    None without events, or without rows that lack them.
    """
    total, events = float(n.sum()), float(k.sum())
    if not 0 < events < total:
        return None
    p = expit(x)
    weight = n * p * (1 - p)
    centre = float(np.sum(weight * x) / np.sum(weight))
    enough = sloped and min(events, total - events) >= _MIN_EVENTS_FOR_SLOPE
    if enough and np.ptp(x) > 1e-6 and not any(find_separation(n, k)):
        try:
            slope, level = fit([x - centre], n, k, [1.0, centre])
        except InputError:  # almost separated
            pass
        else:
            return CommonLine(float(level) - centre, float(slope), centre, True)
    return CommonLine(_shift(x, n, events), 1.0, centre, False)


def _shift(x: Floats, n: Floats, events: float) -> float:
    """Return the shift of all log-odds that predicts the number of events: Newton's method within brackets."""
    low, high = -800.0, 800.0
    d = 0.0
    for _ in range(200):
        q = expit(x + d)
        gap, slope = events - float(np.sum(n * q)), float(np.sum(n * q * (1 - q)))
        low, high = (d, high) if gap > 0 else (low, d)
        step = gap / slope if slope > 0 else math.inf
        d, before = (d + step if low < d + step < high else (low + high) / 2), d
        if abs(d - before) <= 1e-12 * (1 + abs(d)):
            break
    return d


def cumulants(n: Floats, q: Floats) -> list[Floats]:
    """Return the first six cumulants of the number of events among n rows with probability q."""
    v, odd = q * (1 - q), 1 - 2 * q
    second = n * v
    return [
        n * q,
        second,
        second * odd,
        second * (1 - 6 * v),
        second * odd * (1 - 12 * v),
        second * (1 - 30 * v + 120 * v**2),
    ]


class LogOddsShifts:
    """Heterogeneity of the log-odds shifts of groups beside a common line, by the exact moments of their events.

    Parameters
    ----------
    x, n, k : ndarray
        Log-odds of the distinct scores of each group, their rows and events; sorted by group.
    start : ndarray
        The first score of each group.
    line : CommonLine
        Fitted to all groups.
    noise : float
        Squared relative error of the variance of sums, where it is estimated.
    """

    largest = _LARGEST

    def __init__(self, x: Floats, n: Floats, k: Floats, start: Ints, line: CommonLine, noise: float = 0.0) -> None:
        self._noise = noise
        self.size, self.line, self._start = start.size, line, start
        self._n, self._eta, self._away = n, line(x), x - line.centre
        self._events = np.add.reduceat(k, start)
        self._rows = np.add.reduceat(n, start)

    @cached_property
    def _at_line(self) -> list[Floats]:
        """Cumulants of the events of each group at the common line."""
        return [np.add.reduceat(each, self._start) for each in cumulants(self._n, expit(self._eta))]

    @cached_property
    def _slope_sums(self) -> tuple[Floats, Floats, float]:
        """Sums of the second and the third cumulant times the distance from the centre, and of squares of it."""
        _, second, third, *_ = cumulants(self._n, expit(self._eta))
        sums = [np.add.reduceat(each * self._away, self._start) for each in (second, third)]
        return sums[0], sums[1], float(np.sum(second * self._away**2))

    @cached_property
    def _fitted_bias(self) -> Floats:
        """How much the variance of each group at the fitted line is larger than at the true one, on average.

        To the second order: by the variance of the fitted log-odds, and by the bias of the fitted parameters.
        """
        _, second, third, fourth, *_ = cumulants(self._n, expit(self._eta))
        columns = np.stack(
            [np.ones(self._away.size), self._away] if self.line.is_sloped else [np.ones(self._away.size)]
        )
        inverse = np.linalg.inv((columns * second) @ columns.T)
        spread = np.einsum("ir,ij,jr->r", columns, inverse, columns)
        bias = -0.5 * inverse @ (columns @ (third * spread))
        found: Floats = np.add.reduceat(0.5 * fourth * spread + third * (bias @ columns), self._start)
        return found

    @cached_property
    def unit(self) -> float:
        """The standard deviation between groups whose expected excess is the standard deviation of U at 0."""
        information = self._at_line[1]
        return float(min((self.moments(0.0).variance / np.sum(information**2) ** 2) ** 0.25, 0.5))

    @cached_property
    def least_pvalue(self) -> float:
        """Lower bound of the p-value where few pairs of events in one group are expected: their Poisson distribution.

        Of events and rows without it, the rarer are counted.
        """
        from scipy.special import pdtrc

        q = expit(self._eta)
        rarer = 2 * self._events.sum() > self._rows.sum()
        q, count = (1 - q, self._rows - self._events) if rarer else (q, self._events)
        expected, squares = (np.add.reduceat(self._n * each, self._start) for each in (q, q**2))
        pairs, observed = float(np.sum(expected**2 - squares)) / 2, float(np.sum(count * (count - 1))) / 2
        if pairs >= _FEW_PAIRS:
            return 0.0
        return float(pdtrc(observed - 1, pairs)) if observed > 0 else 1.0

    def moments(self, sd: float) -> Moments:
        """Return the moments of U."""
        groups = self._at_zero() if sd == 0 else self._at_sd(sd)
        weight, variance, pull = groups.pull**2, groups.variance, groups.pull
        projection = Projection(weight, variance, groups.columns, groups.inverse)
        excess = float(np.sum(groups.square + weight * (projection.loss + (1 - groups.informed) * self._fitted_bias)))
        # The number of events that is fitted also moves the expected squares: derivatives by the parameters, and the
        # covariances of squares with the scores.
        third, fourth, fifth, sixth = groups.higher
        by_slope = weight * self._slope_sums[1] * (1 - groups.informed)
        size = len(groups.inverse)
        moved = np.array([np.sum(weight * groups.change), np.sum(by_slope)])[:size]
        joint = np.array([np.sum(weight * pull * third), np.sum(by_slope)])[:size]
        by = groups.inverse @ moved
        square, cube = projection.traces()
        spread = 2 * square + float(np.sum(weight**2 * fourth)) - 2 * float(by @ joint) + float(by @ moved)
        if self._noise:
            spread += self._noise * float(np.sum(weight * self._at_line[1])) ** 2
        b = float(by[0])
        skew = 8 * cube + float(np.sum(weight**3 * (12 * variance * fourth + 10 * third**2 + sixth)))
        skew -= 3 * b * float(np.sum(weight**2 * pull * (fifth + 8 * variance * third)))
        skew += 3 * b**2 * float(np.sum(weight * pull**2 * (2 * variance**2 + fourth)))
        skew -= b**3 * float(np.sum(pull**3 * third))
        # With one row per group the variance is 0 but for rounding, because the square of an outcome is the outcome.
        least, low = (1e-9 * square, 0.0) if sd == 0 else (0.1 * square, 0.1 * square)
        spread = spread if spread > least else low
        dispersion = float(np.sum(groups.score**2 / (weight * variance))) / max(self.size - 1, 1)
        expected = float(np.sum(weight * (variance - projection.loss)))
        mean = self.line.shift + groups.shift
        return Moments(excess, spread, skew, mean, float(groups.inverse[0, 0]), dispersion, expected)

    def _at_zero(self) -> "_Groups":
        """Return what U at 0 needs: squared sums of residuals beside the common line."""
        mean, variance, *higher = self._at_line
        residual = self._events - mean
        columns, inverse = self._columns(variance, variance)
        ones, none = np.ones(self.size), np.zeros(self.size)
        square = residual**2 - variance
        return _Groups(0.0, residual, square, ones, variance, higher, higher[0], columns, inverse, none)

    def _at_sd(self, sd: float) -> "_Groups":
        """Return what U at a positive standard deviation needs.

        The score of a group with little information is its sum of residuals with the exact moments of its events. That
        of a group with much information is the expectation of its shift, given its events, which is about normal
        where the events are not. Both have expectation 0, and weights in between join them.
        """
        information = self._at_line[1]
        informed = np.clip(np.log2(np.maximum(information, 1e-300)) / 2 - 0.5, 0, 1)
        informed *= np.clip((sd**2 * information - 0.5) / 1.5, 0, 1)
        shift, counted, expected, second, local = self._fitted(sd, informed)
        count, rest = self._marginal(sd, shift), 1 - informed
        by_count, by_shift = 1 / (1 + sd**2 * information), 1 / (1 + sd**2 * local)
        pull = rest * by_count + informed * by_shift
        variance = rest * count.variance + informed * (local + sd**2 * local**2)
        columns, inverse = self._columns(variance, rest * count.derivative + informed * local)
        if self.line.is_sloped:  # a step to the slope that weighs groups by these variances
            tilt = self._slope_sums[0] / information
            within = -float(np.sum(tilt * (self._events - self._at_line[0])))
            residual = rest * counted / by_count + informed * expected / by_shift
            step = inverse @ (columns.T @ (residual / variance) + np.array([0.0, within]))
            change, shift = columns @ step, shift + float(step[0])
            counted, expected = counted - by_count * change, expected - by_shift * change
        square = rest * (counted**2 - by_count**2 * count.variance) + informed * (expected**2 + second - 1 / sd**2)
        score = rest * counted + informed * expected
        higher = [rest * each for each in count.higher]
        return _Groups(shift, score, square, pull, variance, higher, rest * count.change, columns, inverse, informed)

    def _columns(self, variance: Floats, derivative: Floats) -> tuple[Floats, Floats]:
        """Return what the fitted parameters change in the sums of groups, and the inverse of their information."""
        if not self.line.is_sloped:
            return derivative[:, None], np.array([[1 / float(np.sum(derivative**2 / variance))]])
        tilt, _, squares = self._slope_sums
        second = self._at_line[1]
        columns: Floats = np.stack([derivative, tilt * derivative / second], axis=1)
        information: Floats = columns.T @ (columns / variance[:, None])
        information[1, 1] += max(squares - float(np.sum(tilt**2 / second)), 0.0)  # within groups
        return columns, np.asarray(np.linalg.inv(information), dtype=np.float64)

    def _fitted(self, sd: float, informed: Floats) -> tuple[float, Floats, Floats, Floats, Floats]:
        """Return the common shift at which the scores of groups add up to 0.

        Also the scores by counts and by expected shifts, the variance of the shift of each group given its events over
        sd^4, and the information of each group.
        """
        points, weights = hermegauss(_QUADRATURE)
        weights = weights / weights.sum()
        pull, chosen = 1 / (1 + sd**2 * self._at_line[1]), np.flatnonzero(informed > 0)
        shift, expected, second = self._last_shift[0], np.zeros(self.size), np.zeros(self.size)
        for _ in range(20):
            mean, local = (_integrate(each, weights) for each in self._interpolated(slice(1, 3), shift + sd * points))
            counted = pull * (self._events - mean)
            if chosen.size:
                found, variance = self._given_events(sd, shift, chosen)
                expected[chosen], second[chosen] = found / sd**2, variance / sd**4
                local[chosen] = np.maximum(self._at(2, np.full(chosen.size, shift), chosen), 1e-300)
            total = float(np.sum((1 - informed) * counted + informed * expected))
            step = total / float(np.sum(local / (1 + sd**2 * local)))
            if abs(step) < 1e-5:
                break
            shift += min(max(step, -1.0), 1.0)
        self._last_shift[0] = shift
        return shift, counted, expected, second, local

    @cached_property
    def _last_shift(self) -> list[float]:
        """The common shift that was last found, from which the next search begins."""
        return [0.0]

    def _given_events(self, sd: float, shift: float, chosen: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the shifts of groups from the common one, given events: Gauss-Hermite rule."""
        mode, spread = self._mode(sd, shift, chosen)
        points, weights = hermegauss(_POINTS)
        away = mode[:, None] - shift + spread[:, None] * points
        log = -self._at(0, (shift + away).ravel(), np.repeat(chosen, _POINTS)).reshape(away.shape)
        log += self._events[chosen, None] * away - away**2 / (2 * sd**2) + points**2 / 2
        mass: Floats = weights * np.exp(log - log.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        mean: Floats = np.sum(mass * away, axis=1)
        square: Floats = np.sum(mass * away**2, axis=1)
        variance: Floats = np.maximum(square - mean**2, 0.0)
        return mean, variance

    def _mode(self, sd: float, shift: float, chosen: Ints) -> tuple[Floats, Floats]:
        """Return the likeliest shift of groups around a common one, and the standard deviation by its curvature."""
        found, events = np.clip(self._modes[chosen], shift - 6 * sd, shift + 6 * sd), self._events[chosen]
        for _ in range(30):
            curvature = np.maximum(self._at(2, found, chosen), 0.0) + 1 / sd**2
            step = (events - self._at(1, found, chosen) - (found - shift) / sd**2) / curvature
            found = np.clip(found + np.clip(step, -1.0, 1.0), -_REACH, _REACH)
            if np.abs(step).max() < 1e-4:
                break
        self._modes[chosen] = found
        return found, 1 / np.sqrt(curvature)

    @cached_property
    def _modes(self) -> Floats:
        """The likeliest shift of each group where it was last computed, from which the next search begins."""
        return np.zeros(self.size)

    def _marginal(self, sd: float, shift: float) -> "_Counts":
        """Return the moments of the events of groups whose log-odds vary around a common shift."""
        points, weights = hermegauss(_QUADRATURE)
        weights = weights / weights.sum()
        own = list(self._interpolated(slice(1, 7), shift + sd * points))
        mean, derivative = _integrate(own[0], weights), _integrate(own[1], weights)
        change = _integrate(own[2], weights) + 2 * (_integrate(own[0] * own[1], weights) - mean * derivative)
        m2, m3, m4, m5, m6 = (_integrate(each, weights) for each in _moments_around(mean, own))
        higher = [m3, m4 - 3 * m2**2, m5 - 10 * m3 * m2, m6 - 15 * m4 * m2 - 10 * m3**2 + 30 * m2**3]
        return _Counts(mean, m2, higher, derivative, change)

    @cached_property
    def _series(self) -> Floats:
        """Chebyshev coefficients of the cumulant function of each group and of its derivatives, by the shift."""
        x, n, start = _few_scores(self._eta, self._n, self._start)
        nodes = _REACH * np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
        values = np.empty((7, self.size, _NODES))
        for i, node in enumerate(nodes):
            for c, each in enumerate([n * np.logaddexp(0, x + node), *cumulants(n, expit(x + node))]):
                values[c, :, i] = np.add.reduceat(each, start)
        transform = chebyshev.chebvander(nodes / _REACH, _NODES - 1) * (2 / _NODES)
        transform[:, 0] /= 2
        series: Floats = np.einsum("cgi,ij->cgj", values, transform)
        return series

    def _interpolated(self, which: slice, shifts: Floats) -> Floats:
        """Return cumulants of each group at these shifts, the same for all groups."""
        inside = np.clip(shifts / _REACH, -1.0, 1.0)
        values: Floats = np.einsum("cgj,uj->cgu", self._series[which], chebyshev.chebvander(inside, _NODES - 1))
        return values

    def _at(self, cumulant: int, shift: Floats, groups: Ints | slice = slice(None)) -> Floats:
        """Return a cumulant of groups, each at a shift of its own."""
        basis = chebyshev.chebvander(np.clip(shift / _REACH, -1.0, 1.0), _NODES - 1)
        values: Floats = np.einsum("gj,gj->g", self._series[cumulant][groups], basis)
        return values

    def posterior(self, sd: float) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the shift of each group, given its events."""
        found = self.moments(sd)
        common = found.mean - self.line.shift
        certain = max(found.dispersion, 1.0) * found.mean_variance
        if sd == 0:
            return np.full(self.size, found.mean), np.full(self.size, math.sqrt(certain))
        mean, noise = self._given_events(sd, common, np.arange(self.size))
        away = noise / sd**2  # the weight of the common shift
        return found.mean + mean, np.sqrt(noise + away**2 * certain)

    def separate(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return the shift of each group from its own events, with the limits of a score test."""
        from scipy.special import ndtri

        z = float(ndtri((1 + level) / 2))
        return self._solve(0.0), self._solve(z), self._solve(-z)

    def _solve(self, z: float) -> Floats:
        """Return the shift at which the events of each group are z standard deviations above their expectation."""

        def above(shift: Floats) -> Floats:
            spread = np.sqrt(np.maximum(self._at(2, shift), 1e-300))
            return self._events - self._at(1, shift) - z * spread

        low, high = np.full(self.size, -_REACH), np.full(self.size, _REACH)
        # Interpolation is accurate to about 1e-6 of a row, so counts at the ends are compared as counts.
        never = (above(low) <= 1e-3) if z >= 0 else (self._events <= 0) & (above(low) <= 0)
        always = above(high) >= -1e-3 if z <= 0 else (self._events >= self._rows) & (above(high) >= 0)
        for _ in range(40):
            middle = (low + high) / 2
            positive = above(middle) > 0
            low, high = np.where(positive, middle, low), np.where(positive, high, middle)
        found = (low + high) / 2 + self.line.shift
        return np.where(never, -np.inf, np.where(always, np.inf, found))


class _Counts(NamedTuple):
    """Moments of the events of each group: mean, variance, third to sixth cumulant, and derivatives by the shift."""

    mean: Floats
    variance: Floats
    higher: list[Floats]
    derivative: Floats
    change: Floats


class _Groups(NamedTuple):
    """Scores of groups, their centred squares, and the moments of both."""

    shift: float
    score: Floats
    square: Floats
    pull: Floats  # the score is this times a sum of residuals
    variance: Floats  # of that sum
    higher: list[Floats]  # its third to sixth cumulant
    change: Floats  # of the variance by the common shift
    columns: Floats
    inverse: Floats
    informed: Floats


def _integrate(values: Floats, weights: Floats) -> Floats:
    found: Floats = np.einsum("gu,u->g", values, weights)
    return found


def _moments_around(mean: Floats, own: list[Floats]) -> list[Floats]:
    """Return the second to sixth moment around a mean, from cumulants."""
    each = [own[0] - mean[:, None], *own[1:]]
    raw = [np.ones_like(each[0])]
    for order in range(6):
        terms = [math.comb(order, i) * each[i] * raw[order - i] for i in range(order + 1)]
        raw.append(np.sum(terms, axis=0))
    return raw[2:]


def _few_scores(x: Floats, n: Floats, start: Ints) -> tuple[Floats, Floats, Ints]:
    """Merge neighbouring scores of groups with many, so that the expected events stay the same."""
    count = np.diff(np.append(start, x.size))
    if count.max() <= 2 * _BINS:
        return x, n, start
    q = expit(x)
    share = np.cumsum(n * q * (1 - q))
    first = np.repeat(share[start] - (n * q * (1 - q))[start], count)
    total = np.repeat(share[np.append(start[1:], x.size) - 1], count) - first
    label = np.minimum(np.floor((share - first) / total * _BINS * (1 - 1e-12)), _BINS - 1)
    label = np.where(np.repeat(count <= 2 * _BINS, count), np.arange(x.size), label)
    new = np.concatenate([[True], label[1:] != label[:-1]])
    new[start] = True
    at = np.flatnonzero(new)
    rows = np.add.reduceat(n, at)
    mean = np.add.reduceat(n * q, at) / rows
    return np.log(mean) - np.log1p(-mean), rows, np.searchsorted(at, start)
