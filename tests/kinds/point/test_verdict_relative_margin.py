"""Margins that are a share of the mean outcome, and means of outcomes with long tails."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import InputError
from calibrant.inference.regression.tail_skewness import _gini, tail_skewness
from calibrant.tables.mean_table import MeanTable


def evaluate(y, p, **options):
    return cb.evaluate(y, cb.Point(p), n_resamples=0, **options)


def claims(seed, n=200_000):
    rng = np.random.default_rng(seed)
    rate = 0.085 * np.exp(0.4 * rng.normal(size=n) - 0.08)
    return rng.poisson(rate), rate


def losses(seed, n=100_000):
    """Zero-inflated gamma outcomes with mean `m`."""
    rng = np.random.default_rng(seed)
    m = np.exp(0.05 * rng.normal(size=n))
    return m * rng.gamma(0.3, 1 / 0.3, n) * (rng.random(n) < 0.3) / 0.3, m


@pytest.mark.parametrize("factor", [1.15, 0.85])
def test_rates_that_are_15_percent_wrong_are_not_negligible(factor):
    for seed in range(5):
        y, rate = claims(seed)
        assert evaluate(y, factor * rate).verdict == "miscalibrated"


@pytest.mark.parametrize("factor", [1.2, 0.8])
def test_losses_that_are_20_percent_wrong_are_not_negligible(factor):
    for seed in range(5):
        y, m = losses(seed)
        assert evaluate(y, factor * m).verdict == "miscalibrated"


def test_calibrated_rates_are_called_calibrated_and_the_sentence_states_the_margin():
    y, rate = claims(0)
    found = evaluate(y, rate)
    assert found.verdict == "calibrated"
    assert found.settings.margin == cb.RelativeMargin(0.05)
    assert "margin 5 %" in found.details.headline(found)
    assert "within the margin of 5 % of the mean outcome" in repr(found)
    assert found.to_dict()["settings"]["margin"] == {"relative": 0.05}


def test_a_deviation_at_the_margin_is_seldom_called_negligible():
    within = 0
    for seed in range(60):
        y, rate = claims(seed, 20_000)
        within += evaluate(y, 1.3 * rate, margin=cb.RelativeMargin(0.3)).decision.deviation.within
    assert within <= 7  # the root mean square is a little above 30 % of the mean; at most 3 expected


def test_outcomes_far_from_0_have_a_margin_in_standard_deviations():
    """A temperature in kelvin that is 3 % too high is far off."""
    rng = np.random.default_rng(1)
    mean = 300 + 10 * rng.normal(size=5000)
    found = evaluate(mean + rng.normal(size=5000), mean + 5)
    assert found.verdict == "miscalibrated"
    assert found.settings.margin == 0.05
    assert found.decision.deviation.unit == "standard deviations of the outcome"


def test_given_margins_keep_their_unit():
    y, rate = claims(2, 5000)
    for margin, unit in ((0.05, "standard deviations of the outcome"), (cb.RelativeMargin(0.1), "of the mean outcome")):
        deviation = evaluate(y, rate, margin=margin).decision.deviation
        assert deviation.unit == unit
        assert deviation.margin == (margin if isinstance(margin, float) else margin.value)


def test_relative_margins_of_negative_outcomes_are_refused():
    with pytest.raises(InputError, match="non-negative outcomes; got -1"):
        evaluate([1.0, -1.0, 2.0] * 10, [1.0, 0.0, 2.0] * 10, margin=cb.RelativeMargin(0.05))
    for value in (0, 1.0, True, "5 %"):
        with pytest.raises(InputError, match="must lie between 0 and 1"):
            cb.RelativeMargin(value)
    with pytest.raises(InputError, match="margin must be a positive number"):
        cb.evaluate([0, 1] * 10, [0.5] * 20, margin=cb.RelativeMargin(0.05))


@pytest.mark.parametrize(("n", "sigma"), [(50, 1.0), (50, 2.2), (100, 1.5), (100, 2.2), (200, 2.0), (500, 2.2)])
def test_calibrated_means_of_skewed_outcomes_are_seldom_called_miscalibrated(n, sigma):
    rng, wrong = np.random.default_rng([n, int(10 * sigma)]), 0
    for _ in range(150):
        m = np.exp(rng.normal(size=n))
        wrong += evaluate(m * np.exp(sigma * rng.normal(size=n) - sigma**2 / 2), m).verdict == "miscalibrated"
    assert wrong <= 16  # 9 at 6 %, sd 2.9


def test_means_of_outcomes_with_short_tails_are_still_tested():
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        m = np.exp(rng.normal(size=200))
        found += "overestimates" in evaluate(m * rng.gamma(4, 0.25, 200), 1.4 * m).direction
    assert found >= 37


def test_the_gini_index_counts_frequencies_as_rows():
    rng = np.random.default_rng(4)
    values, n = rng.gamma(1.0, 1.0, 30), rng.integers(1, 4, 30)
    rows = np.repeat(values, n)
    slow = np.abs(rows[:, None] - rows).sum() / (2 * rows.size * (rows.size - 1) * rows.mean())
    assert _gini(values, n.astype(float)) == pytest.approx(slow)
    assert _gini(rows, np.ones(rows.size)) == pytest.approx(slow)
    y, p = rng.gamma(1.0, 1.0, 30), rng.gamma(3.0, 1.0, 30)
    counted = tail_skewness(MeanTable.from_arrays(y, p, frequency=n), None)
    repeated = tail_skewness(MeanTable.from_arrays(np.repeat(y, n), np.repeat(p, n)), None)
    assert counted.skewness == pytest.approx(repeated.skewness)
    assert counted.skewness_of_sum == pytest.approx(repeated.skewness_of_sum)


@pytest.mark.parametrize(("sigma", "skewness"), [(0.5, 1.75), (1.0, 6.18), (1.5, 33.5)])
def test_the_skewness_of_lognormal_errors_is_that_of_the_distribution(sigma, skewness):
    rng = np.random.default_rng(5)
    m = np.exp(0.5 * rng.normal(size=400_000))
    tail = tail_skewness(MeanTable.from_arrays(m * np.exp(sigma * rng.normal(size=m.size) - sigma**2 / 2), m), None)
    assert -tail.skewness == pytest.approx(skewness, rel=0.35)
    assert tail.power == pytest.approx(2.0, abs=0.3)


def test_counts_have_the_variance_of_their_mean():
    y, rate = claims(6)
    tail = tail_skewness(MeanTable.from_arrays(y.astype(float), rate), None)
    assert tail.power == pytest.approx(1.0, abs=0.15)
    assert abs(tail.skewness) < 1  # single events do not make a long tail


def test_the_unit_of_outcomes_does_not_matter():
    rng = np.random.default_rng(7)
    m = np.exp(rng.normal(size=300))
    y = m * np.exp(0.8 * rng.normal(size=300) - 0.32)
    for unit in (1e-60, 1e60):
        found, other = evaluate(y, m), evaluate(unit * y, unit * m)
        assert (found.verdict, found.direction) == (other.verdict, other.direction)
        assert other.pvalue == pytest.approx(found.pvalue, rel=1e-6)
