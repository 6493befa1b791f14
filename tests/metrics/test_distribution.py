"""Predictive distributions: PIT, tests of uniformity, coverage and scores, against golden values, oracles and laws."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant.inference.regression.uniformity import ad_limit, ad_pvalue
from calibrant.kinds.base import forecast_kind

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

HERE = Path(__file__).parents[1] / "golden"
CHAPTER = json.loads((HERE / "expected.json").read_text())["cost_bella"]["anderson_darling_pit"]
GOLDEN = json.loads((HERE / "numbers.json").read_text())
FROZEN = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}
levels = st.lists(st.floats(1e-9, 1 - 1e-9), min_size=1, max_size=40)

MEAN, SD = FROZEN["mean"], FROZEN["sd"]
# A forecast of every kind, with and without densities, repaired ones too.
KINDS = {
    "Gaussian": rg.Gaussian(MEAN, SD),
    "t": rg.Frozen(stats.t(3, loc=MEAN, scale=SD)),
    "gamma": rg.Frozen(stats.gamma(2.5, loc=MEAN - 6, scale=SD)),
    "Quantiles": rg.Quantiles(FROZEN["levels"], FROZEN["quantiles"]),
    "Samples": rg.Samples(FROZEN["draws"]),
    "Stretched": rg.Stretched(rg.Frozen(stats.gamma(2.5, loc=MEAN - 6, scale=SD)), 1.7, 0.4),
    "Warped": rg.Warped(rg.Gaussian(MEAN, SD), rg.SinhArcsinh(0.3, 1.4, -0.2, 0.8)),
    "Poisson": rg.Frozen(stats.poisson(np.full(MEAN.size, 4.5))),
}
CONTINUOUS = ("Gaussian", "t", "gamma", "Stretched", "Warped")


def evaluate(y, p=None, **options):
    """Evaluate numbers as point predictions, and forecasts as they are."""
    numbers = p is not None and forecast_kind(y, p) != "distribution"
    return cb.evaluate(y, cb.Point(p) if numbers else p, **options)


# Anderson and Darling


@pytest.mark.parametrize("case", CHAPTER, ids=lambda case: f"n={len(case['u'])}")
def test_a_squared_is_golden(case):
    assert rg.anderson_darling(case["u"]).statistic == pytest.approx(case["A2"], rel=1e-12)


@given(levels)
def test_a_squared_is_the_integral_that_defines_it(u):
    """n times the integral of (F_n(x) - x)^2 / (x (1 - x)), piece by piece."""
    u = np.sort(u)
    n = len(u)
    ends = np.concatenate([[0.0], u, [1.0]])

    def primitive(x, c):  # of (c - x)^2 / (x (1 - x)), which at 0 and 1 is used with c = 0 and c = 1 alone
        first = 0.0 if c == 0 else c**2 * math.log(x)
        last = 0.0 if c == 1 else (1 - c) ** 2 * math.log1p(-x)
        return first - last - x

    area = sum(primitive(ends[i + 1], i / n) - primitive(ends[i], i / n) for i in range(n + 1))
    assert rg.anderson_darling(u).statistic == pytest.approx(n * area, rel=1e-9, abs=1e-9)


def test_p_values_are_those_of_r():
    """goftest::pAD, itself an approximation: from five rows on within 0.0005."""
    frozen = GOLDEN["goftest"]
    for n, row in zip(frozen["sizes"], frozen["pvalues"], strict=True):
        ours = [ad_pvalue(z, n) for z in frozen["statistics"]]
        assert ours == pytest.approx(row, abs=2e-4), n


@pytest.mark.parametrize("n", [1, 5, 12])
def test_p_values_are_those_of_a_simulation(n):
    rng = np.random.default_rng(n)
    u = np.sort(rng.random((400_000, n)), axis=1)
    a2 = -n - (np.log(u) + np.log1p(-u[:, ::-1])) @ (2 * np.arange(1, n + 1) - 1) / n
    for z in (0.5, 1, 2, 3, 4.5, 6):
        share = np.mean(a2 >= z)
        assert ad_pvalue(z, n) == pytest.approx(share, abs=4.5 * math.sqrt(share / 400_000) + 3e-4), z


def test_the_limiting_distribution_is_that_of_its_characteristic_function():
    """A^2 is the sum of chi-squared variables over j (j + 1), whose characteristic function has a closed form."""

    def integrand(t, z):
        root = np.sqrt(1 + 8j * t)
        phi = np.sqrt(2j * np.pi * t / -np.cos(np.pi / 2 * root)) if t else 1.0
        return (np.exp(-1j * t * z) * phi).imag / t

    # Continuity of the square root: compare with the product of its factors instead.
    def product(t, z):
        j = np.arange(1, 4000)
        log_phi = -0.5 * np.sum(np.log(1 - 2j * t / (j * (j + 1)))) + 1j * t / 4000
        return (np.exp(-1j * t * z + log_phi)).imag / t

    for z in (0.8, 2.492):
        below = 0.5 - integrate.quad(product, 1e-9, 120, args=(z,), limit=2000)[0] / np.pi
        assert ad_limit(z) == pytest.approx(below, abs=2e-5)


def test_p_values_fall_without_a_jump():
    z = np.linspace(0.05, 60, 3000)
    for n in (1, 7, 1000):
        p = np.array([ad_pvalue(v, n) for v in z])
        assert (np.diff(p) <= 1e-9).all()
        assert ((p >= 0) & (p <= 1)).all()
        tail = p[z > 5]
        assert (tail[1:] / tail[:-1] > 0.9).all()


def test_ends_of_the_scale_are_counted_alike_and_finite():
    found = rg.anderson_darling([0.0, 0.3, 0.7, 1.0])
    assert math.isfinite(found.statistic)
    assert found.notes[0].count == 2
    low, high = rg.anderson_darling([0.0, 0.3, 0.6]), rg.anderson_darling([1.0, 0.7, 0.4])
    assert low.statistic == pytest.approx(high.statistic)
    assert rg.anderson_darling(np.full(2000, 1e-9)).pvalue < 1e-300
    one_far = rg.anderson_darling(np.append(np.arange(1, 1000) / 1000, 1.0))
    assert one_far.statistic < 0.2  # one outcome far out is no reason to reject a thousand


def test_other_tests_are_scipys(rng):
    u = rng.random(200) ** 1.2
    ks = stats.kstest(u, "uniform")
    assert tuple(rg.kolmogorov_smirnov(u)) == pytest.approx((ks.statistic, ks.pvalue))
    counts = np.histogram(u, bins=8, range=(0, 1))[0]
    chi = stats.chisquare(counts)
    found = rg.chi_square(u, n_bins=8)
    assert tuple(found) == pytest.approx((chi.statistic, chi.pvalue))
    assert found.df == 7
    assert found.resampling_pvalue is None
    few = rg.chi_square(u[:20], n_bins=8)
    assert 0 < few.resampling_pvalue <= 1
    assert "resampling_pvalue" in few.notes[0].text
    cells = rg.chi_square([0.05, 0.5, 0.95, 0.96], edges=[0.1, 0.9])
    assert cells.df == 2


@given(levels)
def test_miscalibration_is_the_area_between_the_curves(u):
    x = (np.arange(20_000) + 0.5) / 20_000
    share = np.searchsorted(np.sort(u), x, side="right") / len(u)
    assert rg.miscalibration(u) == pytest.approx(np.mean(np.abs(share - x)), abs=2e-4)


# Forecasts


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_densities_quantiles_and_distribution_functions_agree(kind):
    forecast, q = KINDS[kind], np.array([0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999])
    values = forecast.quantile(q)
    for i, level in enumerate(q):
        low, high = forecast.cells(values[:, i])
        assert low == pytest.approx(np.full(len(forecast), level), rel=1e-6)
        assert np.array_equal(low, high)
    # The density is the slope of the distribution function.
    middle, step = values[:, 3], 1e-5 * (values[:, 4] - values[:, 2])
    slope = (forecast.cells(middle + step)[0] - forecast.cells(middle - step)[0]) / (2 * step)
    assert np.exp(forecast.log_density(middle)) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_are_nondecreasing_and_subsets_agree(kind):
    forecast = KINDS[kind]
    q = np.array([0.1, 0.25, 0.5, 0.9])
    values = forecast.quantile(q)
    assert values.shape == (len(forecast), 4)
    assert (np.diff(values, axis=1) >= 0).all()
    assert np.array_equal(forecast.quantile(0.25), values[:, 1])
    y = np.round(FROZEN["y"])
    rows = np.array([5, 3, 60])
    part = forecast.part(rows)
    assert len(part) == 3
    assert part.quantile(q) == pytest.approx(values[rows])
    assert part.crps(y[rows]) == pytest.approx(forecast.crps(y)[rows])
    assert part.point() == pytest.approx(forecast.point()[rows])
    mask = np.zeros(len(forecast), dtype=bool)
    mask[[3, 5, 60]] = True
    assert len(forecast.part(mask)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_crps_is_the_integral_of_the_squared_distance(kind):
    forecast = KINDS[kind].part(np.arange(6))
    y = FROZEN["y"][:6]
    found = forecast.crps(y)
    if kind == "Quantiles":
        by_hand = [2 * np.mean([rg.pinball(y[[i]], forecast.values[[i], j], level=level)
                                for j, level in enumerate(forecast.levels)]) for i in range(6)]  # fmt: skip
        assert found == pytest.approx(by_hand)
        return
    for i in range(6):
        one = forecast.part([i])

        centre, reach = float(one.point()[0]), 60 * float(one.quantile(0.84)[0] - one.quantile(0.16)[0] + 1)
        grid = np.unique(np.concatenate([np.linspace(centre - reach, centre + reach, 40_001), [y[i]]]))
        middle = (grid[1:] + grid[:-1]) / 2
        if kind == "Samples":
            share = np.searchsorted(one.members[0], middle, side="right") / one.members.shape[1]
        else:
            share = one.part(np.zeros(middle.size, dtype=int)).cells(middle)[1]
        squared = (share - (middle >= y[i])) ** 2
        assert found[i] == pytest.approx(float(squared @ np.diff(grid)), rel=2e-2 if kind == "t" else 4e-3)


def test_scores_are_those_of_scoringrules():
    y, frozen = FROZEN["y"], {name: np.array(v) for name, v in GOLDEN["scoringrules"].items()}
    positive, counts, n = FROZEN["positive"], FROZEN["counts"], MEAN.size
    found = {
        "normal": rg.Gaussian(MEAN, SD).crps(y),
        "t3": rg.Frozen(stats.t(3, loc=MEAN, scale=SD)).crps(y),
        "logistic": rg.Frozen(stats.logistic(MEAN, SD)).crps(y),
        "gamma": rg.Frozen(stats.gamma(2.5, scale=2), n).crps(positive),
        "gamma of all": rg.Frozen(stats.gamma(2.5, scale=2), n).crps(y - 12),
        "lognormal": rg.Frozen(stats.lognorm(0.7, scale=math.e), n).crps(positive),
        "poisson": rg.Frozen(stats.poisson(4.5), n).crps(counts.astype(float)),
        "ensemble": rg.Samples(FROZEN["draws"]).crps(y),
        "quantiles": rg.Quantiles(FROZEN["levels"], FROZEN["quantiles"]).crps(y),
        "nll": -rg.Gaussian(MEAN, SD).log_density(y),
    }
    assert set(found) == set(frozen)
    for name, values in found.items():
        assert values == pytest.approx(frozen[name], abs=1e-9), name


def test_measures_are_those_of_uncertainty_toolbox():
    y, forecast, frozen = FROZEN["y"], rg.Gaussian(MEAN, SD), GOLDEN["uncertainty_toolbox"]
    assert rg.nll(y, forecast) == pytest.approx(frozen["nll"], abs=1e-9)
    assert rg.crps(y, forecast) == pytest.approx(frozen["crps"], abs=1e-9)
    hundredths = np.linspace(0.01, 0.99, 99)
    pinball = [rg.pinball(y, forecast.quantile(q), level=q) for q in hundredths]
    assert np.mean(pinball) == pytest.approx(frozen["check_score"], abs=1e-9)
    intervals = [rg.interval_score(y, forecast, level=q) for q in hundredths]
    assert np.mean(intervals) == pytest.approx(frozen["interval_score"], abs=1e-9)
    # Theirs averages over 100 levels from 0 to 1, at whose ends nothing can be wrong.
    covered = rg.coverage(y, forecast, levels=np.linspace(0, 1, 100)[1:-1])
    assert 98 * covered.mean_absolute / 100 == pytest.approx(frozen["mean_absolute_calibration_error"], abs=1e-9)


def test_cells_of_quantiles_follow_their_convention():
    forecast = rg.Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 2.0]] * 5)
    low, high = forecast.cells(np.array([0.5, 1.0, 1.5, 2.0, 9.0]))
    assert low.tolist() == [0.0, 0.0, 0.1, 0.1, 0.9]
    assert high.tolist() == [0.1, 0.1, 0.5, 0.9, 1.0]


def test_cells_of_samples_count_ranks_and_ties():
    low, high = rg.Samples([[1.0, 2.0, 2.0, 4.0]] * 3).cells(np.array([0.0, 2.0, 3.0]))
    assert low == pytest.approx([0, 0.2, 0.6])
    assert high == pytest.approx([0.2, 0.8, 0.8])


def right(kind, rng, n):
    """Outcomes drawn from forecasts of this kind."""
    mean, sd = rng.normal(size=n), np.exp(rng.normal(size=n) / 2)
    if kind == "Samples":
        draws = mean[:, None] + sd[:, None] * rng.standard_t(4, size=(n, 10))
        return draws[:, 0], rg.Samples(draws[:, 1:])
    if kind == "Poisson":
        rate = np.exp(mean)
        return rng.poisson(rate).astype(float), stats.poisson(rate)
    y = mean + sd * rng.normal(size=n)
    if kind == "Quantiles":
        q = np.array([0.02, 0.3, 0.5, 0.95])
        return y, rg.Quantiles(q, mean[:, None] + sd[:, None] * stats.norm.ppf(q))
    return y, rg.Gaussian(mean, sd)


@pytest.mark.parametrize("kind", ["Gaussian", "Quantiles", "Samples", "Poisson"])
def test_pit_values_of_calibrated_forecasts_are_uniform(kind, rng):
    y, forecast = right(kind, rng, 20_000)
    u = rg.pit(y, forecast)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert np.array_equal(u, rg.pit(y, forecast))  # the same seed
    if kind != "Gaussian":
        assert not np.array_equal(u, rg.pit(y, forecast, random_state=1))
        assert stats.kstest(rg.pit(y, forecast, randomized=False), "uniform").pvalue < 1e-3


def test_normal_scores_are_precise_in_both_tails():
    z = np.array([-30.0, -9.0, 0.0, 9.0, 30.0])
    assert rg.Gaussian(np.zeros(5), 1.0).normal_score(z) == pytest.approx(z)
    assert rg.Frozen(stats.norm(np.zeros(5), 1.0)).normal_score(z) == pytest.approx(z, rel=1e-9)


# Coverage


def test_coverage_counts_outcomes_inside_closed_intervals():
    forecast = rg.Quantiles([0.05, 0.5, 0.95], [[0.0, 1.0, 2.0]] * 5)
    found = rg.coverage([-1.0, 0.0, 1.0, 2.0, 2.5], forecast)
    assert found.per_level["level"].tolist() == [0.9]
    assert found.per_level["observed"].tolist() == [0.6]
    assert found.per_level["width"].tolist() == [2.0]
    exact = stats.binomtest(3, 5, 0.9)
    assert found.per_level["pvalue"][0] == pytest.approx(exact.pvalue)
    interval = exact.proportion_ci(0.95)
    assert (found.per_level["low"][0], found.per_level["high"][0]) == pytest.approx((interval.low, interval.high))
    assert "90 %" in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_quantile_forecasts_are_not_extrapolated():
    forecast = rg.Quantiles([0.1, 0.9], [[0.0, 1.0]])
    with pytest.raises(InputError, match=r"level must lie between 0.1 and 0.9"):
        forecast.quantile(0.95)
    with pytest.raises(InputError, match="no density"):
        rg.nll([0.5], forecast)
    with pytest.raises(InputError, match="no density"):
        rg.nll([0.5], rg.Samples([[0.0, 1.0]]))
    with pytest.raises(InputError, match=r"level must lie between 0.2 and 0.8 for 4 members"):
        rg.Samples([[0.0, 1.0, 2.0, 3.0]]).quantile(0.9)
    with pytest.raises(
        InputError, match="must hold two quantiles that are the ends of a central interval; got levels 0.1, 0.8"
    ):
        rg.coverage([0.5], rg.Quantiles([0.1, 0.8], [[0.0, 1.0]]))
    assert forecast.quantile([0.1, 0.5]) == pytest.approx(np.array([[0.0, 0.5]]))


def test_an_evaluation_of_forecasts_has_both_kinds_of_measures():
    rng = np.random.default_rng(1)
    mean = rng.gamma(4, 1, 1500)
    y = mean + rng.normal(size=1500)
    narrow = evaluate(y, rg.Gaussian(mean, 0.5), n_resamples=0)
    assert (narrow.verdict, narrow.direction, narrow.kind) == ("miscalibrated", "overconfident", "distribution")
    assert evaluate(y, rg.Gaussian(mean, 2.0), n_resamples=0).direction == "underconfident"
    assert narrow.breakdowns["coverage"].per_level["observed"][1] < 0.7
    assert narrow["NLL"].value == pytest.approx(rg.nll(y, rg.Gaussian(mean, 0.5)))
    crps = narrow["CRPS"].interval
    assert crps.low < crps.value < crps.high
    assert crps.value == pytest.approx(rg.crps(y, rg.Gaussian(mean, 0.5)))
    fine = evaluate(y, stats.norm(mean, 1.0), by=np.where(mean > 4, "a", "b"), n_resamples=0)
    assert fine.verdict == "inconclusive"
    assert [len(part.details.other_tests) for part in fine.groups.values()] == [3, 3]
    q = evaluate(y, rg.Quantiles([0.5], mean[:, None]), n_resamples=0)
    assert list(q.breakdowns) == ["bias by bin"]
    assert "NLL" not in q.metrics
    json.dumps(fine.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="sample_weight must be omitted with predictive distributions"):
        evaluate(y, rg.Gaussian(mean, 1.0), sample_weight=np.ones(1500))


# Input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rg.Gaussian([1.0], [0.0]), "sd must be positive; row 0"),
        (lambda: rg.Gaussian([1.0, 2.0], [1.0, float("nan")]), "sd has 1 missing value"),
        (lambda: rg.Gaussian([1.0, 2.0], [1.0, 1.0, 1.0]), "has 3 rows, mean has 2"),
        (lambda: rg.Quantiles([0.5, 0.1], [[1.0, 2.0]]), "increase strictly"),
        (lambda: rg.Quantiles([0.1, 0.5], [[2.0, 1.0]]), "must not decrease within a row; 1 rows cross"),
        (lambda: rg.Quantiles([0.0, 0.5], [[2.0, 1.0]]), "between 0 and 1"),
        (lambda: rg.Samples([1.0, 2.0]), "got shape"),
        (lambda: rg.Samples([[1.0, 2.0], [3.0]]), "equally long rows"),
        (lambda: rg.Gaussian([], []), "at least one row"),
        (lambda: rg.Samples([[1.0, float("inf")]]), "row 0, column 1"),
        (lambda: rg.Samples([["a", "b"]]), "must hold numbers"),
        (lambda: rg.Frozen(stats.norm), "must be a frozen distribution"),
        (lambda: rg.pit([1.0, 2.0], rg.Gaussian([1.0, 2.0, 3.0], 1.0)), "has 3 rows, y_true has 2"),
        (lambda: rg.pit([1.0, float("nan")], rg.Gaussian([1.0, 2.0], 1.0)), "missing value"),
        (lambda: rg.pit([1.0], [0.5]), "forecast must be Gaussian"),
        (lambda: rg.pit([], rg.Gaussian([1.0], 1.0)), "no rows"),
        (lambda: rg.anderson_darling([0.5, 1.5]), "must lie in"),
        (lambda: rg.anderson_darling([]), "at least one value"),
        (lambda: rg.chi_square([0.5], n_bins=1), "at least 2"),
        (lambda: rg.chi_square([0.5], edges=[0.5, 0.2]), "rise strictly"),
        (lambda: rg.coverage([1.0], rg.Gaussian([1.0], 1.0), levels=[90]), "between 0 and 1"),
        (lambda: rg.sharpness(rg.Gaussian([1.0], 1.0), level=1), "level"),
        (lambda: rg.pinball([1.0], [1.0, 2.0], level=0.5), "has 2 rows"),
        (lambda: rg.Gaussian([1.0], 1.0).quantile(1.0), "between 0 and 1"),
        (lambda: rg.Stretched(rg.Gaussian([1.0], 1.0), 0.0), "factor must be positive"),
    ],
)
def test_bad_input_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_quantiles_of_recalibrated_forecasts_are_precise_in_the_upper_tail():
    """A map that widens ten times asks the base for levels that a double takes for 1."""
    wide = rg.Warped(rg.Gaussian([0.0], 0.1), rg.SinhArcsinh(scale=10.0))
    assert wide.quantile([0.001, 0.05, 0.95, 0.999])[0] == pytest.approx(stats.norm.ppf([0.001, 0.05, 0.95, 0.999]))
    frozen = rg.Warped(rg.Frozen(stats.norm([0.0], 0.1)), rg.SinhArcsinh(scale=10.0))
    assert frozen.quantile([0.05, 0.95])[0] == pytest.approx(stats.norm.ppf([0.05, 0.95]))
    y = np.random.default_rng(0).normal(size=4000)
    narrow = rg.Gaussian(0 * y, 0.1)
    for make in (rg.PITRecalibrator, rg.ParetoRecalibrator):
        new = make().fit(narrow, y)(narrow)
        assert rg.coverage(y, new, levels=[0.9]).per_level["observed"][0] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("y", [-40.0, -9.0, 9.0, 40.0])
def test_crps_far_out_is_the_distance(y):
    assert rg.crps([y], stats.norm(0, 1)) == pytest.approx(rg.crps([y], rg.Gaussian([0.0], 1.0)), rel=1e-9)
    assert rg.crps([abs(y)], stats.expon()) == pytest.approx(abs(y) - 1.5 + 2 * math.exp(-abs(y)), rel=1e-9)
    assert rg.crps([abs(y) * 1e6], stats.poisson(3.0)) == pytest.approx(abs(y) * 1e6 - 3, rel=1e-6)


def test_distributions_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="the median of row 1 is not finite"):
        rg.crps([0.0, 1.0], stats.norm([0.0, 1.0], [1.0, -1.0]))
    with pytest.raises(InputError, match="must need at most 100,000 terms"):
        rg.crps([3.0], stats.zipf(2.0))
    with pytest.raises(InputError, match="fraction"):
        rg.crps([3.0], stats.poisson(3.3, loc=0.5))
    for make in (rg.PITRecalibrator, rg.ParetoRecalibrator, rg.VarianceScaling):
        with pytest.raises(InputError, match="got a discrete distribution"):
            make().fit(stats.poisson(3.0), np.arange(30.0))
    masked = np.ma.array([[1.0, 2.0, 999.0]], mask=[[0, 0, 1]])
    with pytest.raises(InputError, match="finite numbers; row 0, column 2"):
        rg.Samples(masked)
    cells = np.array([[1, 2.5]], dtype=object)
    assert rg.Samples(cells).members.tolist() == [[1.0, 2.5]]
    assert rg.Frozen(stats.norm([0.0], [1.0, 2.0, 3.0])).part([0, 1]).quantile(0.5).tolist() == [0.0, 0.0]


def test_impossible_outcomes_have_an_infinite_nll():
    rng = np.random.default_rng(0)
    cal = rg.PITRecalibrator().fit(stats.expon(np.zeros(500)), 1.3 * rng.exponential(size=500))
    assert rg.nll([-1.0, 1.0], cal(stats.expon())) == math.inf


def test_float32_levels_are_those_they_were_written_as():
    q = np.array([0.05, 0.5, 0.95], dtype=np.float32)
    assert rg.coverage([1.0, 2.0], rg.Quantiles(q, [[0.0, 1.0, 1.5]] * 2)).per_level["observed"].tolist() == [0.5]


def test_pandas_indexes_of_outcomes_and_forecasts_must_agree():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    mean = pd.Series([1.0, 2.0], index=["a", "b"])
    y = pd.Series([1.0, 2.0], index=["b", "a"])
    for forecast in (rg.Gaussian(mean, 1.0), rg.Samples(pd.DataFrame({"x": mean, "z": mean + 1}))):
        with pytest.raises(InputError, match="indexes"):
            rg.pit(y, forecast)
        assert rg.pit(y[["b", "a"]].set_axis(["a", "b"]), forecast).shape == (2,)


def test_coverage_of_small_ensembles_uses_their_own_levels(rng):
    y, draws = rng.normal(size=5000), rng.normal(size=(5000, 10))
    found = rg.coverage(y, rg.Samples(draws))
    assert found.per_level["level"] == pytest.approx([5 / 11, 9 / 11])  # between two draws
    for m in (2, 3, 4, 19):
        few = rg.coverage(y, rg.Samples(rng.normal(size=(5000, m))))
        assert (few.per_level["pvalue"] > 1e-3).all(), m
    assert (found.per_level["pvalue"] > 1e-3).all()


def test_medians_are_not_judged_as_means():
    rng = np.random.default_rng(0)
    a, q = rng.uniform(1, 3, 1000), np.arange(1, 20) / 20
    y = rng.gamma(a)
    found = evaluate(y, rg.Quantiles(q, stats.gamma(a[:, None]).ppf(q)))
    assert found.verdict == "inconclusive"
    deciding = [name for name, test in found.tests.items() if test.adjusted_pvalue is not None]
    assert deciding == list(found.decision.omnibus.components) == ["median", "PIT", "coverage", "coverage by width"]
    assert [*found.tests][4:] == ["Anderson-Darling", "Kolmogorov-Smirnov", "chi-squared"]
    assert any("medians" in note.text for note in found.notes)
    heavy = rg.Frozen(stats.invgamma(np.full(10, 0.9)))
    assert not heavy.point_is_mean
    assert heavy.point() == pytest.approx(stats.invgamma.median(0.9))


@pytest.mark.slow
def test_verdicts_on_distributions_are_adjusted_for_groups(rng):
    wrong = 0
    for _ in range(40):
        y = rng.normal(size=500)
        found = evaluate(y, rg.Gaussian(0 * y, 1.0), by=np.arange(500) % 10, n_resamples=0)
        wrong += any(part.verdict == "miscalibrated" for part in found.groups.values())
    assert wrong <= 7


@pytest.mark.slow
def test_distributions_in_clusters_are_tested_on_cluster_sums(rng):
    shop = np.repeat(np.arange(100), 10)
    wrong = alone = found = 0
    for _ in range(150):
        y = 0.7 * rng.normal(size=100)[shop] + 0.714 * rng.normal(size=1000)
        calibrated = rg.Gaussian(0 * y, 1.0)
        wrong += evaluate(y, calibrated, cluster=shop, n_resamples=0).pvalue <= 0.05
        alone += evaluate(y, calibrated, n_resamples=0).pvalue <= 0.05
        narrow = evaluate(y, rg.Gaussian(0 * y, 0.7), cluster=shop, n_resamples=0)
        found += narrow.verdict == "miscalibrated" and "overconfident" in narrow.direction
    assert wrong <= 14
    assert alone >= 60
    assert found >= 145


@pytest.mark.parametrize("members", [5, 10, 50])
@pytest.mark.parametrize("rows", [500, 2000])
@pytest.mark.slow
def test_calibrated_ensembles_of_few_members_are_not_rejected(members, rows, rng):
    wrong = 0
    for seed in range(150):
        mean = rng.normal(size=rows)
        forecast = rg.Samples(mean[:, None] + rng.normal(size=(rows, members)))
        y = mean + rng.normal(size=rows)
        wrong += evaluate(y, forecast, n_resamples=0, random_state=seed).pvalue <= 0.05
    assert wrong <= 14


def test_miscalibrated_ensembles_are_found(rng):
    mean = rng.normal(size=2000)
    y, noise = mean + rng.normal(size=2000), rng.normal(size=(2000, 10))
    assert evaluate(y, rg.Samples(mean[:, None] + 0.7 * noise), n_resamples=0).direction == "overconfident"
    shifted = evaluate(y, rg.Samples(mean[:, None] + 0.3 + noise), n_resamples=0)
    assert "overestimates" in shifted.direction
    wide = evaluate(y, rg.Samples(1.5 * mean[:, None] + noise), n_resamples=0)
    assert wide.decision.omnibus.components["slope"].direction == "overconfident"
    assert wide.tests["slope"].adjusted_pvalue < 0.001
    again = evaluate(y, rg.Samples(1.5 * mean[:, None] + noise), n_resamples=0)
    assert repr(again) == repr(wide)


def test_quantiles_whose_outer_levels_are_too_narrow_are_miscalibrated(rng):
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    at = stats.norm.ppf(levels) * [0.9, 1, 1, 1, 0.9]
    found = 0
    for _ in range(50):
        mean = rng.normal(size=2000)
        y = mean + rng.normal(size=2000)
        result = evaluate(y, rg.Quantiles(levels, mean[:, None] + at), n_resamples=0)
        found += result.verdict == "miscalibrated"
        if result.breakdowns["coverage"].per_level["pvalue"].min() < 1e-4:
            assert result.verdict == "miscalibrated"
    assert found >= 48


def test_one_sided_quantiles_are_judged_by_their_levels(rng):
    mean = rng.normal(size=3000)
    y, levels = mean + rng.normal(size=3000), np.array([0.8, 0.9])
    good = evaluate(y, rg.Quantiles([0.5, *levels], mean[:, None] + stats.norm.ppf([0.5, *levels])), n_resamples=0)
    low = rg.Quantiles([0.5, *levels], mean[:, None] + stats.norm.ppf([0.5, *levels]) - 0.2)
    assert good.pvalue > 0.05
    found = evaluate(y, low, n_resamples=0)
    assert found.verdict == "miscalibrated"
    assert "coverage" not in found.breakdowns
    assert "underestimates" in found.direction


def test_the_coverage_error_has_bounds(rng):
    mean = rng.normal(size=40_000)
    y = mean + rng.normal(size=40_000)
    assert evaluate(y, rg.Gaussian(mean, 1.0), n_resamples=0).verdict in ("calibrated", "negligible")
    narrow = evaluate(y, rg.Gaussian(mean, 0.8), n_resamples=0).equivalence
    q = np.arange(1, 20) / 20
    truth = np.mean(np.abs(stats.norm.cdf(0.8 * stats.norm.ppf(q)) - q))
    assert narrow.value == pytest.approx(truth, abs=0.004)
    assert narrow.low < truth < narrow.high


@pytest.mark.slow
def test_discrete_forecasts_are_judged_by_randomised_pit_values(rng):
    wrong = 0
    for seed in range(100):
        rate = np.exp(rng.normal(size=500) / 2)
        result = evaluate(rng.poisson(rate).astype(float), stats.poisson(rate), n_resamples=0, random_state=seed)
        wrong += result.pvalue <= 0.05
    assert wrong <= 11


def test_the_end_of_a_bounded_support_has_a_likelihood():
    rng = np.random.default_rng(0)
    u = stats.uniform(np.zeros(200), 1.0)
    for make in (rg.PITRecalibrator, rg.ParetoRecalibrator):
        cal = make().fit(u, rng.beta(2, 2, 200))
        assert not math.isnan(rg.nll([0.0, 0.5, 1.0], cal(stats.uniform(np.zeros(3), 1.0))))


def test_tails_too_heavy_for_crps_make_it_infinite():
    assert rg.crps([1.0], stats.levy([0.0])) == math.inf
    assert math.isfinite(rg.crps([1.0], stats.t([0.8])))
    assert math.isfinite(rg.crps([1.0], stats.cauchy([0.0])))


def test_recalibrators_accept_scipy_distributions_and_keep_the_index():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    assert rg.Stretched(stats.norm([0.0, 1.0]), 2.0).quantile(0.5).tolist() == [0.0, 1.0]
    assert rg.Warped(stats.norm([0.0, 1.0]), rg.SinhArcsinh()).quantile(0.5) == pytest.approx([0.0, 1.0])
    assert rg.crps([1.0, 2.0], stats.norm([0.0])) == pytest.approx(rg.crps([1.0, 2.0], stats.norm(0.0)))
    twice = rg.Stretched(rg.Stretched(KINDS["Quantiles"], 2.0), 2.0)
    with pytest.raises(InputError, match="known distribution function for a map of levels; got Quantiles"):
        rg.Warped(twice, rg.SinhArcsinh())
    index = pd.Index(list("abcdefghij"))
    forecast = rg.Gaussian(pd.Series(np.zeros(10), index=index), 1.0)
    y = pd.Series(np.linspace(-2, 2, 10), index=index[::-1])
    for other in (rg.VarianceScaling().fit(forecast, y.to_numpy())(forecast), rg.Stretched(forecast, 2.0)):
        with pytest.raises(InputError, match="indexes"):
            rg.crps(y, other)
    assert rg.Gaussian([1.0, 2.0], 1.0).index is None


def test_notes_of_float_functions_become_warnings():
    with pytest.warns(CalibrantWarning, match="clipped"):
        rg.miscalibration([0.2, 1 + 1e-9])
    with pytest.warns(CalibrantWarning, match="one column"):
        rg.crps(np.ones((3, 1)), rg.Gaussian(np.zeros(3), 1.0))


def test_one_distribution_may_serve_all_rows():
    y = np.array([1.0, 2.0, 3.0])
    assert rg.pit(y, stats.norm(2, 1)) == pytest.approx(rg.pit(y, rg.Gaussian(2.0, 1.0)))
    assert rg.crps(y, stats.norm(2, 1)) == pytest.approx(rg.crps(y, rg.Gaussian([2.0], 1.0)))


def test_an_ensemble_is_tested_up_to_its_widest_interval():
    """With 15 members intervals of 80 % round to 75 %, and those of 90 and 95 % to 87.5 %, between the outermost."""
    rng = np.random.default_rng(1)
    mean = rng.normal(size=300)
    found = cb.evaluate(mean + rng.normal(size=300), rg.Samples(mean[:, None] + rng.normal(size=(300, 15))))
    assert found.decision.omnibus.components["coverage"].method.startswith("3 central intervals")
    assert found.breakdowns["coverage"].per_level["level"].tolist() == [0.5, 0.75]


def test_the_crps_of_a_tiny_sd_is_the_absolute_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rg.Gaussian([0.0, 1.0, 1.0], [1e-310, 1e-310, 1e-300]).crps(np.array([2.0, 1.0, -1.0]))
    assert found == pytest.approx([2.0, 0.0, 2.0])


def test_levels_that_are_not_a_sequence_of_numbers_are_refused():
    with pytest.raises(InputError, match=r"must lie between 0 and 1; got \['a', 'b'\]"):
        rg.Quantiles(["a", "b"], np.zeros((5, 2)))
    with pytest.raises(InputError, match=r"got shape \(5, 2\)\. Pass Quantiles\(levels, values\), in this order"):
        rg.Quantiles(np.zeros((5, 2)), [0.1, 0.9])


def test_an_array_for_missing_is_refused():
    with pytest.raises(InputError, match="missing must be 'raise' or 'drop'; got array"):
        cb.ece([0, 1], [0.2, 0.7], missing=np.array([1, 2]))
