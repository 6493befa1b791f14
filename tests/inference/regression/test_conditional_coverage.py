"""Coverage by predicted width, and tests of tails."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant.inference.regression.conditional_coverage import TAIL, _compound_tail, _depth, tail_component


def evaluate(y, forecast, **options):
    return cb.evaluate(y, forecast, n_resamples=0, **options)


def test_narrow_intervals_of_a_quarter_of_the_rows_are_not_negligible():
    """The coverage over all rows is right: wide intervals make up for narrow ones."""
    rng = np.random.default_rng(0)
    sd = rng.choice([0.5, 1.2, 2.0], 20_000, p=[0.26, 0.5, 0.24])
    mean = rng.normal(size=20_000)
    found = evaluate(mean + rng.normal(size=20_000), cb.Gaussian(mean, sd))
    assert found.verdict == "miscalibrated"
    assert found.tests["coverage by width"].adjusted_pvalue < 1e-10
    assert found.decision.deviation.name == "coverage error by width"
    assert found.decision.deviation.value == pytest.approx(0.16, abs=0.03)


def test_an_ensemble_that_is_narrow_by_chance_is_not_called_overconfident():
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(60):
        members = rng.normal(size=(1000, 10))
        found = evaluate(rng.normal(size=1000), cb.Samples(members))
        rejected += found.tests["coverage by width"].pvalue <= 0.05
    assert rejected <= 8  # 3 expected


@pytest.mark.parametrize(
    ("draw", "direction"),
    [
        (lambda rng, n: rng.standard_t(5, n) / np.sqrt(5 / 3), "heavy tails"),
        (lambda rng, n: rng.uniform(-1, 1, n) * np.sqrt(3), "light tails"),
    ],
)
def test_tails_have_a_direction(draw, direction):
    rng = np.random.default_rng(2)
    mean = rng.normal(size=4000)
    found = evaluate(mean + draw(rng, 4000), cb.Gaussian(mean, np.ones(4000)))
    assert direction in found.direction.split(", ")


def test_intervals_that_are_too_narrow_are_overconfident_and_nothing_else():
    rng = np.random.default_rng(3)
    mean = rng.normal(size=4000)
    assert evaluate(mean + rng.normal(size=4000), cb.Gaussian(mean, np.full(4000, 0.8))).direction == "overconfident"


def test_the_tail_statistic_is_the_mean_log_depth_of_a_random_number():
    rng = np.random.default_rng(4)
    q = TAIL / 2
    low, high = np.array([0.0, 0.001, 0.02, 0.5, 0.0]), np.array([0.3, 0.002, 0.04, 0.9, 1e-12])
    t = low[:, None] + rng.random((5, 400_000)) * (high - low)[:, None]
    np.testing.assert_allclose(_depth(low, high), np.mean(np.log(q / np.minimum(t, q)), axis=1), rtol=0.01)
    np.testing.assert_allclose(_depth(high, high), np.log(q / np.minimum(high, q)), rtol=1e-9)


@pytest.mark.parametrize("n", [50, 1000])
def test_the_distribution_of_the_tail_statistic_is_that_of_uniform_values(n):
    rng = np.random.default_rng(5)
    u = rng.random((20_000, n))
    total = (_depth(u.ravel(), u.ravel()) + _depth(1 - u.ravel(), 1 - u.ravel())).reshape(u.shape).sum(axis=1)
    for share in (0.5, 0.9, 0.99):
        assert _compound_tail(float(np.quantile(total, share)), n) == pytest.approx(1 - share, abs=0.012)


def test_the_test_of_tails_of_counts_is_conservative():
    rng = np.random.default_rng(6)
    rejected = 0
    for _ in range(200):
        rate = np.exp(rng.normal(size=500))
        forecast = cb.NegativeBinomial(rate, 0.7)
        y = rng.negative_binomial(1 / 0.7, 1 / (1 + 0.7 * rate)).astype(float)
        rejected += tail_component(*forecast.cells(y), forecast, None).pvalue <= 0.05
    assert rejected <= 17


def test_the_means_of_distributions_belong_to_the_verdict():
    """Quantiles of rare counts hardly move with their mean."""
    rng = np.random.default_rng(7)
    rate = 0.085 * np.exp(0.4 * rng.normal(size=200_000) - 0.08)
    y = rng.poisson(rate)
    wrong, right = (evaluate(y, cb.Poisson(factor * rate)) for factor in (1.15, 1.0))
    assert (wrong.verdict, right.verdict) == ("miscalibrated", "calibrated")
    assert "overestimates" in wrong.direction
    assert wrong.decision.deviation.name == "bias by bin"
    assert next(each for each in wrong.details.deviations if each.name == "coverage error").within
    assert "margin of 5 % of the mean outcome" in repr(wrong)


def test_a_margin_of_distributions_is_that_of_coverage_or_of_the_mean():
    rng = np.random.default_rng(8)
    rate = np.exp(0.5 * rng.normal(size=2000))
    y = rng.poisson(rate)
    margins = [
        [each.margin for each in evaluate(y, cb.Poisson(rate), margin=margin).details.deviations]
        for margin in (None, 0.03, cb.RelativeMargin(0.2))
    ]
    assert [list(np.round(each, 3)) for each in margins] == [[0.01, 0.05, 0.02], [0.03, 0.05, 0.06], [0.01, 0.2, 0.02]]


def test_clusters_are_taken_into_account():
    """A common effect of clusters makes the tails of rows, not of clusters, look heavy."""
    rng = np.random.default_rng(9)
    cluster = np.repeat(np.arange(40), 25)
    y = stats.norm.ppf(rng.random(1000)) * 0.5 + np.sqrt(0.75) * rng.normal(size=40)[cluster]
    forecast = cb.Gaussian(np.zeros(1000), np.exp(0.0 * y))
    test = tail_component(*forecast.cells(y), forecast, cluster)
    assert test.pvalue >= tail_component(*forecast.cells(y), forecast, None).pvalue
