"""The tests behind the verdict on class probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Bools, Floats, Ints, dot, gram
from calibrant._support.lazy import cached_property
from calibrant.inference.binary_components import IMPOSSIBLE, binary_components
from calibrant.inference.design import Design
from calibrant.inference.residual_tests import cluster_t_test, covariance_traces
from calibrant.inference.tails import quadratic_tail, student_two_sided
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.results.verdict import TestResult
from calibrant.tables.score_table import squared_residuals

# Up to this number of classes, covariances between bins of two classes are counted; for more they are bounded.
_MAX_CLASSES_COUNTED = 32
# Number of clusters per block of a sum.
_CLUSTER_BLOCK = 1024
_NOTHING = 1e-300
_ROUNDING = 1e-9
# With fewer degrees of freedom, hardly an event is expected. (Two classes have at most one.)
_MIN_DF = 0.5


@dataclass(frozen=True, eq=False)
class ClassBinSums:
    """Sums over the rows of each bin.

    Attributes
    ----------
    residual, observed : ndarray
        r, the sum of residuals, and s, that of their squares.
    information, variance : ndarray
        V, the sum of p (1 - p), and v, the variance of r: the same for counts.
    fourth : ndarray
        The sum of squared variances of rows.
    skewness, kurtosis : ndarray
        Those of an event divided by its variance: means of 1 - 2 p and of 1 - 6 p (1 - p) by information.
    error, chance : ndarray
        V^2 d^2, where d is the log-odds error, and its part that is due to chance.
    """

    residual: Floats
    observed: Floats
    information: Floats
    variance: Floats
    fourth: Floats
    skewness: Floats
    kurtosis: Floats
    error: Floats
    chance: Floats

    @classmethod
    def from_bins(cls, bins: LogOddsBins) -> "ClassBinSums":
        """Sum over the bins of one class."""
        table, p, total = bins.table, bins.table.score, np.maximum(bins.information, _NOTHING)
        variance, own = bins.variance(), bins.scores.information
        typical = np.where(bins.information > 0, variance / total, 0.0)  # mean weight of a row
        d, curvature = bins.error, np.maximum(bins.fitted_curvature, _NOTHING)
        return cls(
            bins.residual,
            bins.total(squared_residuals(table, p)),
            bins.information,
            variance,
            np.minimum(bins.total(own * p * (1 - p)) * typical**3, variance**2),
            bins.total(own * (1 - 2 * p)) / total,
            bins.total(own * (1 - 6 * p * (1 - p))) / total,
            bins.information**2 * d**2,
            bins.information**2 * bins.fitted_variance / curvature**2,
        )

    @classmethod
    def join(cls, parts: Sequence["ClassBinSums"]) -> "ClassBinSums":
        """Join the sums of the bins of all classes."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


@dataclass(frozen=True, eq=False)
class BinsOfClass:
    """The bins of one class: their sums, those of clusters, and for few classes the bin of each row."""

    bins: ClassBinSums
    clusters: NDArray[np.float32] | None
    labels: NDArray[np.int16] | None

    @classmethod
    def from_design(cls, rows: ClassRows, design: Design, bins: LogOddsBins, place: Ints) -> "BinsOfClass":
        """Sum over the bins of a class; `place` is the place of each row in its table."""
        clusters = None
        if rows.cluster is not None:
            clusters = design.cluster_bin_sums(bins, design.table.score).astype(np.float32)
        counted = rows.n_classes <= _MAX_CLASSES_COUNTED
        return cls(ClassBinSums.from_bins(bins), clusters, bins.labels[place].astype(np.int16) if counted else None)


@dataclass(frozen=True, eq=False)
class Cells:
    """The bins of all classes, and the distribution of a quadratic form in their residual sums.

    The form is U = sum of a (r^2 - s) over cells, where r is a cell's residual sum, s the sum of squared residuals of
    its rows and a = 1 / (V + v / V); V is the information and v the variance of r. Without the squares of single rows
    its expectation is the sum of a (E r)^2, whatever the variance of the outcomes: 0 if calibrated. The weight a is
    about 1 / V, less for cells that expect hardly an event, so that these do not decide.

    Attributes
    ----------
    bins : ClassBinSums
    owner : ndarray of int
        The class of each cell.
    off_diagonal : float
        Sum of a a' cov(r, r')^2 over cells of different classes.
    degrees : float
        Degrees of freedom of a variance.
    clusters : ndarray of shape (clusters, cells) or None
        Residual sums of clusters.
    """

    bins: ClassBinSums
    owner: Ints
    off_diagonal: float
    degrees: float = np.inf
    clusters: NDArray[np.float32] | None = None

    @classmethod
    def from_classes(cls, rows: ClassRows, parts: Sequence[BinsOfClass]) -> "Cells":
        """Join the bins of all classes."""
        bins = ClassBinSums.join([part.bins for part in parts])
        owner = np.repeat(np.arange(len(parts)), [part.bins.residual.size for part in parts])
        scale = shrunken(bins)
        labels = [part.labels for part in parts if part.labels is not None]
        counted = len(labels) == len(parts)
        off = _counted(rows, labels, owner, scale) if counted else _bounded(rows, owner, bins.variance, scale)
        sums = [part.clusters for part in parts if part.clusters is not None]
        return cls(bins, owner, off, rows.degrees, np.concatenate(sums, axis=1) if sums else None)

    def __len__(self) -> int:
        return self.owner.size

    @cached_property
    def scale(self) -> Floats:
        """The weight a of each cell."""
        return shrunken(self.bins)

    @cached_property
    def form(self) -> float:
        """U."""
        return float(np.sum(self.scale * (self.bins.residual**2 - self.bins.observed)))

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of a scaled chi-squared variable with the variance and skewness of U if calibrated."""
        a, v = self.scale, self.bins.variance
        first, second = float(np.sum(a * v)), float(np.sum((a * v) ** 2))
        if not second > 0:
            return 0.0, 0.0
        ratio = 1 + self.off_diagonal / second
        squared = ratio * float(np.sum(a**2 * (v**2 - self.bins.fourth)))
        if squared <= _ROUNDING * second:  # single rows have no pairs
            return 0.0, 0.0
        few = (self.bins.skewness / np.maximum(self.bins.information, _NOTHING)) ** 2  # events are few and skewed
        third = ratio**2 * (8 * second**2 / first + 4 * float(np.sum(a**3 * v**4 * few)))
        # c chi-squared(nu) has mean c nu, variance 2 c^2 nu and third cumulant 8 c^3 nu.
        return 8 * squared**2 / third, 2 * squared

    @cached_property
    def matrix(self) -> Floats:
        """Covariance of the residual sums of clusters, times the root of a on both sides."""
        assert self.clusters is not None
        count, root = self.clusters.shape[0], np.sqrt(self.scale)
        mean = self.clusters.mean(axis=0, dtype=np.float64)
        found = np.zeros((len(self), len(self)))
        for start in range(0, count, _CLUSTER_BLOCK):
            scaled = (self.clusters[start : start + _CLUSTER_BLOCK] - mean) * root
            found += gram(scaled, scaled)
        found *= count / (count - 1)
        return found

    def component(self, name: str) -> TestResult:
        """Return the test of U.

        With clusters the p-value is at least that of the sum of a r^2 with the covariance of their sums.
        """
        mean, variance = self.moments
        if not variance > 0:
            return TestResult(0.0, 1.0, name, df=0.0)
        statistic, df = max(self.form + mean, 0.0), 2 * mean**2 / variance
        if df >= _MIN_DF:
            alone = quadratic_tail(statistic, mean, variance, self.degrees if self.clusters is None else np.inf)
        else:  # Cantelli's inequality
            alone = variance / (variance + self.form**2) if self.form > 0 else 1.0
        if self.clusters is None:
            return TestResult(statistic, alone, name, df=df)
        trace, squared = covariance_traces(self.matrix, self.degrees)
        total = float(np.sum(self.scale * self.bins.residual**2))
        pvalue = quadratic_tail(total, trace, 2 * squared, self.degrees) if squared > 0 else 1.0
        return TestResult(total, max(pvalue, alone), name, df=trace**2 / squared if squared > 0 else 0.0)


def shrunken(bins: ClassBinSums) -> Floats:
    """Return the weight a of each cell: 1 / (V + v / V), for counts 1 / (V + 1)."""
    safe = np.maximum(bins.information, _NOTHING)
    return np.asarray(np.where(bins.information > 0, 1 / (safe + bins.variance / safe), 0.0), dtype=np.float64)


def _counted(rows: ClassRows, labels: Sequence[NDArray[np.int16]], owner: Ints, scale: Floats) -> float:
    """Return the sum of a a' cov(r, r')^2 over pairs of bins of different classes."""
    starts = np.searchsorted(owner, np.arange(len(labels) + 1))
    mean = rows.mean_weights
    typical = rows.proba @ mean if rows.importance else None
    found = 0.0
    for c, of_c in enumerate(labels):
        p, code, a = rows.counts * rows.proba[:, c], of_c.astype(np.int64), scale[starts[c] : starts[c + 1]]
        for d in range(c):
            b = scale[starts[d] : starts[d + 1]]
            product = p * rows.proba[:, d]
            if typical is not None:
                product = product * (mean[c] + mean[d] - typical)
            table = np.bincount(code * b.size + labels[d], product, a.size * b.size)
            found += 2 * float(a @ table.reshape(a.size, b.size) ** 2 @ b)
    return found


def _bounded(rows: ClassRows, owner: Ints, variance: Floats, scale: Floats) -> float:
    """Return an upper bound of that sum, reached where classes have the same bins."""
    count = rows.n_classes
    bins = np.bincount(owner, minlength=count)
    weight = np.bincount(owner, (scale * variance) ** 2, count) / np.maximum(bins, 1)  # of each bin, squared
    total = np.bincount(owner, variance, count)
    root = np.sqrt(np.divide(np.sqrt(weight), total, out=np.zeros(count), where=total > 0))
    squares = (rows.class_covariance * np.outer(root, root)) ** 2
    squares *= np.minimum.outer(bins, bins)
    return float(squares.sum() - np.trace(squares))


def impossible_outcomes(rows: ClassRows) -> list[TestResult]:
    """Return the test of rows whose class has probability 0, if there are any: calibration is impossible."""
    count = float(rows.counts[rows.own == 0].sum())
    return [TestResult(count, 0.0, IMPOSSIBLE)] if count > 0 else []


def top_label_deviation(rows: ClassRows) -> list[TestResult]:
    """Return the test of the highest probability over bins.

    The event is that the row's class is among those of the highest probability, and the score is their sum: the order
    of classes with equal probabilities does not matter.
    """
    highest, event = np.zeros(rows.code.size), np.zeros(rows.code.size, dtype=bool)
    for block, p in rows.blocks():
        top = p.max(axis=1)
        highest[block] = np.minimum(np.count_nonzero(p == top[:, None], axis=1) * top, 1.0)
        event[block] = rows.own[block] == top
    design, _ = rows.design(event, highest)
    found = [each for each in binary_components(design) if each.name == "deviation over bins"]
    return [replace(each, name="top-label deviation over bins") for each in found]


# Steps of the fit of class shifts, and the largest of them.
_MAX_STEPS = 12
_LARGEST_STEP = 2.0
# The fit ends where no shift moves by more than this share of its standard error.
_SMALL_STEP = 0.05
_STEP = 2.0**-53


def temperature(rows: ClassRows, whole: Cells, shifted: Bools) -> list[TestResult]:
    """Return the score test of the temperature: of the exponent 1 of the probabilities, with any shifts of classes.

    The score is the sum of log P of the row's class less its expectation. Shifts of classes are estimated first, those
    of `shifted` classes freely and others as random effects, and the score is made orthogonal to them, so that errors
    of their estimates hardly matter. Its variance is the larger of that of the model and that of the squared residuals.
    """
    shifts = class_shifts(rows, whole, shifted)
    contrast = _orthogonal(rows, shifts)
    residual = np.zeros(rows.code.size)
    model = third = 0.0
    for block, p in rows.blocks():
        logs = np.log(np.maximum(p, _STEP))
        q = _moved(p, logs, shifts)
        x = logs - contrast
        x -= np.einsum("ij,ij->i", q, x)[:, None]
        counts, mean = rows.counts[block], rows.mean_weights
        residual[block] = x[np.arange(len(p)), rows.code[block]]
        q *= x
        q *= x
        model += dot(counts, q @ mean)
        q *= x
        third += dot(counts, q @ mean**2)
    variance = max(model, dot(rows.squares, residual**2))
    if not variance > 1e-12 * whole.bins.information.sum():  # equal probabilities of all classes have no temperature
        return []
    score = dot(rows.counts, residual)
    statistic = score / variance**0.5
    pvalue = skewed_two_sided(statistic, third / variance**1.5, rows.degrees if rows.cluster is None else np.inf)
    if rows.cluster is not None:
        sums = rows.cluster_sums(residual)
        statistic, clustered = cluster_t_test(sums)
        pvalue = max(pvalue, clustered, student_two_sided(statistic, _few_degrees(sums.size)))
    return [TestResult(statistic, pvalue, "temperature", direction="underconfident" if score > 0 else "overconfident")]


def _few_degrees(clusters: int) -> float:
    """Return the degrees of freedom of skewed cluster sums: a third for 20 clusters, all of them from 60 on."""
    share = min(max((clusters - 20) / 40, 0.0), 1.0)
    return (clusters - 1) * (1 + 2 * share) / 3


def class_shifts(rows: ClassRows, whole: Cells, shifted: Bools) -> Floats | None:
    """Return the shifts of the log-probabilities of classes that predict their rates; None where none is seen.

    Shifts are normal random effects, whose variance is that seen over all classes, except those of `shifted` classes.
    """
    spread = max(whole.form, 0.0) / max(float(np.sum(whole.scale * whole.bins.information**2)), _NOTHING)
    if spread == 0 and not shifted.any():
        return None
    penalty = np.where(shifted, 0.0, 1 / max(spread, 1e-12))
    half = 0.5 * rows.mean_weights
    observed = np.maximum(np.bincount(rows.code, rows.counts, rows.n_classes), half)
    shifts = np.zeros(rows.n_classes)
    for _ in range(_MAX_STEPS):
        expected, squares = np.zeros((2, rows.n_classes))
        single = shifts.astype(np.float32)  # half the digits suffice for steps
        for block, p in rows.blocks():
            q = _moved(p, np.log(np.maximum(p, _STEP, dtype=np.float32)), single)
            counts = rows.counts[block].astype(np.float32)
            expected += gram(counts[:, None], q)[0]
            q *= q
            squares += gram(counts[:, None], q)[0]
        information = np.maximum(expected - squares, 0.0)
        wanted = np.maximum(observed - penalty * shifts, 1e-3 * observed)
        reach = expected / np.maximum(2 * information + penalty, _NOTHING)
        step = np.log(wanted / np.maximum(expected, _NOTHING)) * reach
        step = np.where(expected > 0, np.clip(step, -_LARGEST_STEP, _LARGEST_STEP), 0.0)
        shifts = shifts + step
        if np.all(np.abs(step) * np.sqrt(information + penalty) < _SMALL_STEP):
            break
    return shifts


def _moved(p: Floats, logs: Any, shifts: Any) -> Any:
    """Return the probabilities after the shifts of classes."""
    if shifts is None:
        return p.copy()
    q = logs + shifts
    q -= q.max(axis=1, keepdims=True)
    np.exp(q, out=q)
    q /= q.sum(axis=1, keepdims=True)
    return q


def _orthogonal(rows: ClassRows, shifts: Floats | None) -> Floats:
    """Return what to subtract from log P of each class so that the score does not depend on small shifts of classes."""
    expected, slope = np.zeros((2, rows.n_classes))
    products = np.zeros((rows.n_classes, rows.n_classes)) if shifts is not None else rows.products
    for block, p in rows.blocks():
        counts, logs = rows.counts[block], np.log(np.maximum(p, _STEP))
        q = _moved(p, logs, shifts)
        logs -= np.einsum("ij,ij->i", q, logs)[:, None]
        expected += gram(counts[:, None], q)[0]
        slope += np.einsum("i,ij,ij->j", counts, q, logs)
        if shifts is not None:
            q *= np.sqrt(counts[:, None])
            products += gram(q, q)
    hessian = np.diag(expected) - products
    # A shift of all classes changes nothing, and a class of probability 0 has none.
    hessian += expected.sum() / rows.n_classes**2
    hessian[np.diag_indices_from(hessian)] += 1e-9 * expected + (expected == 0)
    return np.asarray(np.linalg.solve(hessian, slope), dtype=np.float64)


def skewed_two_sided(statistic: float, skewness: float, degrees: float = np.inf) -> float:
    """Return twice the tail of a standardized sum with this skewness.

    On the heavy side the tail is that of a gamma distribution, and at least Student's. On the light side it is that of
    Student's with the first term of Cornish and Fisher's expansion, which never ends.
    """
    from scipy.special import chdtrc

    size, skew = abs(statistic), abs(skewness)
    if statistic * skewness <= 0:
        return student_two_sided(size + skew * max(size**2 - 1, 0.0) / 6, degrees)
    plain = student_two_sided(size, degrees)
    if skew < 1e-6:
        return plain
    nu = 8 / skew**2
    return min(1.0, max(plain, 2 * float(chdtrc(nu, nu + size * np.sqrt(2 * nu)))))
