"""Laws of scale and of range: counts up to 2^53, and limits that a metric can have."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import chdtrc, gamma, ndtr
from scipy.stats import t as student

import calibrant as cb
from calibrant.inference.tails import noncentral_chi2_cdf
from calibrant.metrics import METRICS

SCORE = [0.0, 0.02, 0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 0.97, 1.0]
N = [4, 50, 60, 70, 80, 60, 70, 90, 40, 5]
K = [0, 2, 9, 15, 44, 30, 50, 84, 39, 5]
LARGEST = (2**53 - 1) // sum(N)
FACTORS = [1, 10**3, 10**6, 10**9, 10**12, LARGEST]
EXACT = [Fraction(p) for p in SCORE]


def table(factor):
    return cb.ScoreTable.from_counts(SCORE, [n * factor for n in N], [k * factor for k in K])


# Their value is that of the rates, whatever the number of rows. The others test counts, correct a bias, or smooth.
OF_RATES = [name for name in METRICS if getattr(METRICS[name](), "kind", "binary") == "binary"]
OF_RATES = [name for name in OF_RATES if name not in ("tce", "debiased_sce", "calbin", "log_odds_error")]


@pytest.mark.parametrize("name", OF_RATES)
def test_a_metric_of_rates_does_not_depend_on_the_number_of_rows(name):
    metric = METRICS[name]()
    expected = float(metric(table(1)))
    for factor in FACTORS[1:]:
        assert float(metric(table(factor))) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_metrics_of_many_rows_are_those_of_exact_arithmetic():
    size = sum(N)
    brier = sum(k * (1 - p) ** 2 + (n - k) * p**2 for p, n, k in zip(EXACT, N, K, strict=True)) / size
    bias = sum(n * p - k for p, n, k in zip(EXACT, N, K, strict=True)) / size
    bins: dict[int, Fraction] = {}
    for p, n, k in zip(EXACT, N, K, strict=True):
        b = min(int(float(p) * 10), 9)
        bins[b] = bins.get(b, Fraction(0)) + n * p - k
    ece = sum(abs(gap) for gap in bins.values()) / size
    for factor in FACTORS:
        assert cb.brier(table(factor)) == pytest.approx(float(brier), rel=1e-14)
        assert cb.ece(table(factor)) == pytest.approx(float(ece), rel=1e-12)
        assert float(METRICS["bias"]()(table(factor))) == pytest.approx(float(bias), rel=1e-10)


@pytest.mark.parametrize("factor", FACTORS)
def test_statistics_of_many_rows_are_those_of_exact_arithmetic(factor):
    given, groups = table(factor), cb.bins.EqualWidth(10)
    start = groups(given).start.tolist()
    h = Fraction(0)
    for first, end in zip(start, [*start[1:], len(SCORE)], strict=True):
        rows = range(first, end)
        n, k = (factor * sum(column[i] for i in rows) for column in (N, K))
        expected = factor * sum(N[i] * EXACT[i] for i in rows)
        h += (k - expected) ** 2 / (expected * (1 - expected / n))
    found = cb.inference.hosmer_lemeshow(given, bins=groups)
    assert found.statistic == pytest.approx(float(h), rel=1e-9)
    assert found.pvalue == pytest.approx(float(chdtrc(len(start), float(h))), rel=1e-6, abs=1e-300)
    top = sum((k - n * p) * (1 - 2 * p) for p, n, k in zip(EXACT, N, K, strict=True)) * factor
    spread = sum(n * (1 - 2 * p) ** 2 * p * (1 - p) for p, n in zip(EXACT, N, strict=True)) * factor
    z = float(top) / float(spread) ** 0.5
    assert cb.inference.spiegelhalter(given).statistic == pytest.approx(z, rel=1e-9)
    assert cb.inference.spiegelhalter(given).pvalue == pytest.approx(2 * float(ndtr(-abs(z))), rel=1e-6, abs=1e-300)
    assert cb.inference.ecce_test(given).statistic == pytest.approx(
        cb.inference.ecce_test(table(1)).statistic * factor**0.5, rel=1e-9
    )
    one = cb.inference.slope_intercept_test(table(1)).statistic
    assert cb.inference.slope_intercept_test(given).statistic == pytest.approx(one * factor, rel=1e-6)


@pytest.mark.parametrize("rows", [2 * 10**9, 3 * 10**9, 4 * 10**9, 10**10, 10**12, 2**49])
def test_hosmer_and_lemeshow_reject_five_percent_of_calibrated_tables_of_any_size(rows):
    """Groups of more than 3.04e9 rows gave p = 1, NaN or 0.02."""
    rng = np.random.default_rng(rows % 1000)
    score = np.linspace(0.05, 0.95, 10)
    pvalues = []
    for _ in range(200):
        k = np.rint(rows * score + rng.normal(size=10) * np.sqrt(rows * score * (1 - score))).astype(np.int64)
        counted = cb.ScoreTable.from_counts(score, np.full(10, rows), k)
        pvalues.append(cb.inference.hosmer_lemeshow(counted).pvalue)
    assert 0.01 < np.mean(np.array(pvalues) <= 0.05) < 0.1
    assert 0.4 < np.mean(pvalues) < 0.6


@pytest.mark.parametrize("name", ["binning_average", "temperature", "beta", "isotonic", "platt", "venn_abers"])
def test_calibrators_of_many_rows_converge(name):
    pytest.importorskip("sklearn")
    places = [0.05, 0.3, 0.5, 0.77, 0.95]
    found = [cb.calibrators.CALIBRATORS[name]().fit(table(factor))(places) for factor in FACTORS[2:]]
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-5)


@pytest.mark.parametrize("factor", [10**6, 10**9, LARGEST])
@pytest.mark.parametrize("name", ["ece", "bias", "brier", "log_odds_error", "auc"])
def test_intervals_of_many_rows_are_narrow_and_contain_the_value(name, factor):
    found = cb.interval(name, table(factor), random_state=0, n_resamples=99)
    assert found.low <= found.value <= found.high
    width = found.high - found.low
    assert 0 < width < 20 / (factor * sum(N)) ** 0.5 + 1e-12 * abs(found.value)


def noncentral_by_integration(value, degrees, noncentrality):
    """The probability that (Z + root of the noncentrality)^2 and the other squares of the sum are at most the value."""

    def below(c):
        place = (value - c - noncentrality) / (np.sqrt(value - c) + np.sqrt(noncentrality))
        return ndtr(place) * c ** (degrees / 2 - 1.5) * np.exp(-c / 2)

    scale = 2 ** ((degrees - 1) / 2) * gamma((degrees - 1) / 2)
    return quad(below, 0, 60, epsabs=1e-13, limit=200)[0] / scale


@pytest.mark.parametrize("noncentrality", [1e5, 9e6, 1.1e7, 1e9, 1e10, 1e13])
def test_the_noncentral_chi_squared_distribution_of_many_rows(noncentrality):
    for degrees in (3, 8):
        for z in (-3, -1, 0, 2):
            value = noncentrality + degrees + z * 2 * noncentrality**0.5
            found = noncentral_chi2_cdf(value, degrees, noncentrality)
            assert found == pytest.approx(noncentral_by_integration(value, degrees, noncentrality), abs=1e-7)


SMALL = {
    "two rows": ([0, 1], [0.3, 0.6]),
    "two wrong rows": ([1, 0], [0.01, 0.99]),
    "three rows": ([0, 1, 1], [0.2, 0.2, 0.9]),
    "two events": ([1, 1] + [0] * 198, np.linspace(0.001, 0.05, 200)),
    "no event": ([0] * 30, np.linspace(0.01, 0.1, 30)),
    "events only": ([1] * 30, [0.9] * 30),
    "extreme scores": ([0, 1] * 10, [0.0, 1.0] * 10),
}


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("rows", SMALL)
def test_limits_of_intervals_lie_in_the_range_of_the_metric(rows, level):
    for name in (*OF_RATES, "tce", "debiased_sce", "calbin", "log_odds_error"):
        metric = METRICS[name]()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = cb.interval(metric, *SMALL[rows], confidence_level=level, random_state=0, n_resamples=49)
        except cb.InputError:
            continue
        low, high = metric.range
        assert min(low, found.value) <= found.low <= found.value <= found.high <= max(high, found.value), name


@pytest.mark.parametrize("rows", SMALL)
def test_the_bias_implies_an_event_rate_between_0_and_1(rows):
    y, p = SMALL[rows]
    mean, rarer = np.mean(p), min(np.sum(y), len(y) - np.sum(y))
    found = cb.interval("bias", y, p, confidence_level=0.999, random_state=0, n_resamples=99)
    # The mean score of the population is not known either.
    reach = student.ppf(0.9995, max(2 * rarer, 1)) * np.std(p, ddof=1) / np.sqrt(len(p))
    assert max(mean - 1 - reach, -1) <= found.low + 1e-12
    assert found.high - 1e-12 <= min(mean + reach, 1)
    gap = cb.interval("ece", y, p, confidence_level=0.999, random_state=0, n_resamples=99)
    assert gap.high <= max(*p, 1 - min(p))


def test_the_range_of_signed_gaps_follows_from_declared_properties():
    """A mean of signed gaps over any bins is the bias; squares of gaps and largest gaps are not."""
    table = cb.ScoreTable.from_arrays([0, 1, 0, 0], [0.1, 0.3, 0.2, 0.2])
    own = cb.GCE(cb.bins.EqualSize(2), cb.losses.signed_gap, cb.norms.weighted_mean)
    assert own.range_of(table) == METRICS["bias"]().range_of(table) == pytest.approx((-0.8, 0.2))
    largest = cb.GCE(cb.bins.EqualSize(2), cb.losses.signed_gap, cb.norms.sup)
    assert largest.range_of(table) == pytest.approx((0, 0.9))
