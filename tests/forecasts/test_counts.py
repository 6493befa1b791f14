"""`Poisson` and `NegativeBinomial`: against scipy.stats, sums over counts, and published properties."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant.exceptions import InputError

MEANS = np.array([0.0, 1e-6, 0.01, 0.085, 0.5, 2.0, 10.0, 100.0])
CASES = {
    "Poisson": (cb.Poisson(MEANS), stats.poisson(MEANS)),
    **{
        f"dispersion {d:g}": (cb.NegativeBinomial(MEANS[1:], d), stats.nbinom(1 / d, 1 / (1 + d * MEANS[1:])))
        for d in (1e-3, 0.1, 1.0, 8.0)
    },
}
each_case = pytest.mark.parametrize("name", CASES)


def crps_by_sums(d, y, size):
    """The integral of (F(x) - 1{x >= y})^2, which is constant between whole numbers."""
    k = np.arange(20_000)[:, None]
    return np.sum((d.cdf(k) - (k >= y)) ** 2, axis=0)


@each_case
@pytest.mark.parametrize("y", [0.0, 1.0, 7.0, 130.0])
def test_probabilities_and_crps_equal_sums(name, y):
    forecast, d = CASES[name]
    outcome = np.full(len(forecast), y)
    low, high = forecast.cells(outcome)
    np.testing.assert_allclose(high, d.cdf(y), atol=1e-12)
    np.testing.assert_allclose(low, d.cdf(y - 1), atol=1e-12)
    np.testing.assert_allclose(forecast.log_density(outcome), d.logpmf(y), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(forecast.sf(outcome), d.sf(y), rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(forecast.crps(outcome), crps_by_sums(d, y, len(forecast)), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(forecast.variance, d.var(), rtol=1e-6)


@each_case
def test_quantiles_are_the_smallest_counts_that_reach_the_level(name):
    forecast = CASES[name][0]
    for level in (1e-9, 0.01, 0.31, 0.47, 0.9, 0.999):
        q = forecast.quantile(level)
        assert (forecast.cdf(q) >= level).all()
        assert (forecast.cdf(q - 1) < level).all()
        np.testing.assert_array_equal(forecast.at_row_score(np.full(len(forecast), stats.norm.ppf(level) - 1e-9)), q)


def test_negative_binomial_with_a_tiny_dispersion_is_poisson():
    y = np.array([0.0, 3.0, 120.0])
    mean = np.array([0.1, 3.0, 100.0])
    almost, limit = cb.NegativeBinomial(mean, 1e-11), cb.Poisson(mean)
    np.testing.assert_allclose(almost.crps(y), limit.crps(y), rtol=1e-7)
    np.testing.assert_allclose(almost.log_density(y), limit.log_density(y), rtol=1e-7)
    np.testing.assert_allclose(almost.cdf(y), limit.cdf(y), rtol=1e-7)


def test_extreme_normal_scores_have_finite_counts():
    for forecast in (cb.Poisson([0.0, 3.0]), cb.NegativeBinomial([0.5, 3.0], 2.0)):
        for z in (-40.0, -9.0, 9.0, 40.0):
            found = forecast.at_row_score(np.full(2, z))
            assert np.isfinite(found).all()
            assert (found >= 0).all()


def test_exposure_multiplies_rates():
    forecast = cb.Poisson([0.1, 0.2], exposure=[2.0, 10.0])
    np.testing.assert_allclose(forecast.mean, [0.2, 2.0])
    assert len(cb.NegativeBinomial(0.5, 0.1, exposure=[1.0, 2.0, 3.0])) == 3
    np.testing.assert_allclose(forecast.part([1]).mean, [2.0])
    np.testing.assert_allclose(forecast[1].mean, [2.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cb.Poisson([0.5, -1.0]), "mean must not be negative"),
        (lambda: cb.Poisson([0.5, np.inf]), "mean"),
        (lambda: cb.NegativeBinomial([0.5], 0.0), "dispersion must be positive"),
        (lambda: cb.Poisson([0.5, 1.0], exposure=[1.0, 0.0]), "exposure must be positive"),
        (lambda: cb.Poisson([0.5, 1.0], exposure=[1.0, 1.0, 1.0]), "equally long"),
        (lambda: cb.Poisson([]), "at least one row"),
    ],
)
def test_invalid_parameters_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_outcomes_that_are_no_counts_are_refused_with_their_row():
    for y in ([0.0, 1.0, 0.25], [0.0, 1.0, -1.0]):
        for call in (
            lambda y: cb.evaluate(y, cb.Poisson([1.0, 1.0, 1.0])),
            lambda y: cb.metrics.crps(y, cb.Poisson(1.0)),
            lambda y: cb.regression.pit(y, cb.Poisson(1.0)),
        ):
            with pytest.raises(InputError, match="counts") as error:
                call(y)
            assert error.value.row == 2


def test_counts_are_compared_monitored_and_reported(tmp_path):
    rng = np.random.default_rng(0)
    rate, exposure = np.exp(rng.normal(-1, 0.5, 1500)), rng.uniform(0.5, 2.0, 1500)
    y = rng.poisson(rate * exposure)
    right, wrong = cb.Poisson(rate, exposure=exposure), cb.Poisson(2.5 * rate, exposure=exposure)
    compared = cb.compare(y, {"right": right, "wrong": wrong})
    assert compared.verdict == "wrong is worse calibrated than right"
    for name, forecast in (("right", right), ("wrong", wrong)):
        monitor = cb.Monitor(tmp_path / "m.db", model=name, kind="distribution")
        for day in range(15):
            rows = slice(100 * day, 100 * day + 100)
            monitor.observe(y[rows], forecast[rows], time=f"2026-01-{day + 1:02d}")
        assert monitor.status().alarm == (name == "wrong")
    page = cb.evaluate(y, wrong, n_resamples=19).to_html()
    assert "rootogram" in page


def test_the_report_on_counts_recommends_means_and_states_the_expected_coverage():
    rng = np.random.default_rng(0)
    rate = rng.gamma(2.0, 0.3, 3000)
    found = cb.evaluate(rng.poisson(rate), cb.Poisson(1.5 * rate), n_resamples=0)
    page = found.to_html()
    assert "LinearRecalibrator" in page
    assert "PITRecalibrator" not in page
    expected = found.breakdowns["coverage"].per_level["expected"][-1]
    assert f"calibrated forecasts have {1000 * expected:,.0f}" in page
