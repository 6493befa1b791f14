"""Recalibrators of point predictions and of predictive distributions: laws, oracles and trade-offs."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

HERE = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((HERE / "numbers.json").read_text())
FROZEN = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}
needs_sklearn = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("sklearn"), reason="scikit-learn is not installed"
)

numbers = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 7.5, 9.0])
rows = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=30)


@pytest.fixture
def shrunk(rng):
    """1,000 rows of a model that shrinks towards the mean, as forests do."""
    truth = rng.gamma(4, 2, 1000)
    y = truth + rng.normal(size=1000)
    return y, 0.6 * truth + 2 + rng.normal(size=1000) / 3


def maps():
    """Every recalibrator of point predictions."""
    return {
        "linear": rg.LinearRecalibrator(),
        "shift": rg.LinearRecalibrator(slope=False),
        "inverse": rg.LinearRecalibrator(against="outcome"),
        "isotonic": rg.IsotonicRecalibrator(),
        "local": rg.LocalRecalibrator(),
        "cost": rg.CostRecalibrator(cb.costs.LinearCost(over=1, under=4)),
    }


MAPS = ["linear", "shift", "inverse", "isotonic", "local", "cost"]
each_map = pytest.mark.parametrize("name", MAPS)


# Point predictions


@needs_sklearn
@each_map
def test_every_map_keeps_the_conventions(name, shrunk):
    from sklearn.base import clone

    y, p = shrunk
    cal = clone(maps()[name])
    assert cal.get_params() == maps()[name].get_params()
    with pytest.raises(Exception, match="not fitted"):
        cal.predict(p)
    assert cal.fit(p, y) is cal
    said = cal.predict(p)
    assert said.shape == p.shape
    assert np.isfinite(said).all()
    assert np.array_equal(cal(p[:, None]), said)
    shuffled = np.random.default_rng(1).permutation(1000)
    again = clone(cal).fit(p[shuffled], y[shuffled]).predict(p)
    assert again == pytest.approx(said, rel=1e-9, abs=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(cal)).predict(p), said)
    weight = 1 + np.arange(1000) % 3
    twice = clone(cal).fit(np.repeat(p, weight), np.repeat(y, weight)).predict(p)
    assert clone(cal).fit(p, y, sample_weight=weight).predict(p) == pytest.approx(twice, rel=1e-6, abs=1e-6)
    if name != "cost":
        merged = rg.MeanTable.from_arrays(y, np.round(p, 1)).merged()
        from_rows = clone(cal).fit(np.round(p, 1), y).predict(p)
        assert clone(cal).fit(merged).predict(p) == pytest.approx(from_rows, rel=1e-6, abs=1e-6)


@needs_sklearn
@each_map
def test_every_map_reports_its_trade_off(name, shrunk):
    y, p = shrunk
    trade = maps()[name].fit(p, y).trade_off_
    assert trade.rows == 1000
    assert trade.before["mse"] == pytest.approx(rg.mse(y, p))
    assert trade.mse_change.value == pytest.approx(trade.after["mse"] - trade.before["mse"])
    assert "squared error changes" in repr(trade)
    json.dumps(trade.to_dict(), allow_nan=False)


@needs_sklearn
def test_the_trade_off_equals_that_of_the_chapter(shrunk):
    """Against the prediction, squared error and bias fall; against the outcome, squared error pays for its bias."""
    y, p = shrunk
    forward = rg.LinearRecalibrator().fit(p, y).trade_off_
    inverse = rg.LinearRecalibrator(against="outcome").fit(p, y).trade_off_
    assert forward.after["mse"] < forward.before["mse"]
    assert forward.after["bias_by_prediction"] < forward.before["bias_by_prediction"] / 4
    assert inverse.after["bias_by_outcome"] < 0.7 * forward.after["bias_by_outcome"]
    assert inverse.after["mse"] > forward.after["mse"]
    assert forward.mse_change.high < 0


@needs_sklearn
def test_the_line_is_least_squares_and_its_inverse_the_line_of_predictions_on_outcomes(shrunk):
    y, p = shrunk
    fit = stats.linregress(p, y)
    cal = rg.LinearRecalibrator(cv=None).fit(p, y)
    assert (cal.slope_, cal.intercept_) == pytest.approx((fit.slope, fit.intercept))
    turned = stats.linregress(y, p)
    cal = rg.LinearRecalibrator(against="outcome", cv=None).fit(p, y)
    assert (cal.slope_, cal.intercept_) == pytest.approx((1 / turned.slope, -turned.intercept / turned.slope))
    r1 = rg.LinearRecalibrator(cv=None).fit(y + 1, y)  # the chapter's R1
    assert (r1.slope_, r1.intercept_) == pytest.approx((1, -1))
    with pytest.raises(InputError, match="must rise with y"):
        rg.LinearRecalibrator(against="outcome").fit(-p, y)
    assert rg.LinearRecalibrator(cv=None).fit([1.0, 1.0], [2.0, 4.0]).predict([1.0, 5.0]) == pytest.approx([3.0, 7.0])


@needs_sklearn
def test_isotonic_equals_that_of_scikit_learn():
    cal = rg.IsotonicRecalibrator(cv=None).fit(FROZEN["rounded"], FROZEN["y"])
    assert cal.predict(np.linspace(0, 25, 101)) == pytest.approx(GOLDEN["sklearn"]["isotonic"], abs=1e-9)


@needs_sklearn
@given(rows)
def test_isotonic_rises_and_never_raises_the_squared_error(pairs):
    y, p = np.array(pairs, dtype=float).T
    cal = rg.IsotonicRecalibrator(cv=None).fit(p, y)
    said = cal.predict(p)
    assert np.mean((said - y) ** 2) <= rg.mse(y, p) + 1e-12
    assert (np.diff(cal.predict(np.linspace(-5, 10, 50))) >= 0).all()
    assert rg.mse_decomposition(y, said).mcb == pytest.approx(0, abs=1e-9)


@needs_sklearn
def test_a_smooth_curve_fits_a_nonlinear_bias(rng):
    p = rng.uniform(0, 6, 3000)
    y = np.sin(p) + rng.normal(size=3000) / 5
    cal = rg.LocalRecalibrator().fit(p, y)
    grid = np.linspace(0.2, 5.8, 50)
    assert cal.predict(grid) == pytest.approx(np.sin(grid), abs=0.08)
    assert cal.trade_off_.after["mse"] < 0.045
    ends = cal.predict(np.array([-2.0, -1.0, 0.0]))  # along the tangent
    assert ends[1] - ends[0] == pytest.approx(ends[2] - ends[1])
    line = rg.LocalRecalibrator(smoothness=1e9, cv=None).fit(p, y)
    assert np.diff(line.predict(np.linspace(0, 6, 7)), 2) == pytest.approx(np.zeros(5), abs=1e-4)
    with pytest.raises(InputError, match="at least 5 distinct predictions for a smooth curve; got 2"):
        rg.LocalRecalibrator().fit([1.0, 1.0, 2.0], [1.0, 2.0, 3.0])


@needs_sklearn
@pytest.mark.parametrize("units", [(1, 4), (9, 1)])
def test_costs_turn_predictions_into_quantiles(units, shrunk):
    y, p = shrunk
    cost = cb.costs.LinearCost(over=units[0], under=units[1])
    cal = rg.CostRecalibrator(cost, n_bins=1, cv=None).fit(p, y)
    tau = units[1] / sum(units)
    assert np.mean(y <= cal.predict(p)) == pytest.approx(tau, abs=0.002)
    fine = rg.CostRecalibrator(cost).fit(p, y)
    assert fine.cost_["after"] < 0.75 * fine.cost_["before"]
    assert np.mean(cost(fine.predict(p), y)) <= np.mean(cost(p, y))
    again = fine.predict(np.array([-100.0, 100.0]))
    assert np.isfinite(again).all()


@needs_sklearn
def test_a_model_is_recalibrated_on_out_of_fold_predictions():
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import cross_val_predict

    X, y = make_friedman1(600, noise=0.5, random_state=0)
    forest = RandomForestRegressor(30, random_state=0)
    model = rg.RecalibratedModel(forest).fit(X[:400], y[:400])
    assert model.table_.prediction == pytest.approx(cross_val_predict(forest, X[:400], y[:400], cv=5))
    assert model.recalibrator_.slope_ > 1.05
    plain = forest.fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > plain.score(X[400:], y[400:])
    frozen = rg.RecalibratedModel(FrozenEstimator(plain), rg.IsotonicRecalibrator()).fit(X[400:], y[400:])
    assert frozen.table_.prediction == pytest.approx(plain.predict(X[400:]))
    with pytest.raises(InputError, match="recalibrator must be"):
        rg.RecalibratedModel(forest, "linear").fit(X, y)


@needs_sklearn
def test_splitters_of_groups_get_the_groups():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(200, 3)), np.arange(200) % 10
    y = X[:, 0] + rng.normal(size=200)
    model = rg.RecalibratedModel(LinearRegression(), cv=GroupKFold(5)).fit(X, y, groups=group)
    wanted = cross_val_predict(LinearRegression(), X, y, cv=GroupKFold(5), groups=group)
    assert model.table_.prediction == pytest.approx(wanted)
    with pytest.raises(ValueError, match="groups"):
        rg.RecalibratedModel(LinearRegression(), cv=GroupKFold(5)).fit(X, y)


@needs_sklearn
@each_map
@pytest.mark.parametrize(
    ("p", "y", "words"),
    [
        ([1.0, np.nan, 2.0], [1.0, 2.0, 3.0], "missing"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "rows"),
        ([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], "one dimension"),
        ([1.0, 2.0], None, "requires y"),
        ([], [], "no rows"),
    ],
)
def test_bad_rows_are_refused(name, p, y, words):
    with pytest.raises(InputError, match=words):
        maps()[name].fit(p, y)


@needs_sklearn
def test_a_far_origin_does_not_change_the_spline(rng):
    p = rng.uniform(0, 10, 300)
    y = p + np.sin(p) + 0.1 * rng.normal(size=300)
    near = rg.LocalRecalibrator(cv=None).fit(p, y).predict(p)
    for shift in (1e3, 1e6):
        far = rg.LocalRecalibrator(cv=None).fit(p + shift, y + shift).predict(p + shift)
        assert far - shift == pytest.approx(near, abs=0.02)
    hard = np.append(p, 1e20)
    assert np.isfinite(rg.LinearRecalibrator(cv=None).fit(hard, np.append(y, 1.0)).predict(hard)).all()


@needs_sklearn
def test_constant_predictions_give_a_shift(rng):
    y = rng.normal(size=100)
    assert rg.LinearRecalibrator(cv=None).fit([0.1] * 100, y).slope_ == 1.0
    assert rg.LinearRecalibrator(against="outcome", cv=None).fit(y, [0.1] * 100).slope_ == 1.0


@needs_sklearn
def test_a_fold_that_cannot_be_fitted_removes_only_the_trade_off():
    x = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [20, 20, 20, 20, 1])
    cal = rg.LocalRecalibrator().fit(x, x)
    assert cal.trade_off_ is None
    assert "no trade-off" in cal.notes_[-1].text
    assert cal.predict([3.0]) == pytest.approx([3.0])


# Distributions


def kinds(rng, n):
    """Outcomes, and too narrow forecasts of every kind."""
    mean, sd = rng.normal(10, 3, n), np.exp(rng.normal(size=n) / 3)
    y = mean + 0.3 + 2 * sd * rng.standard_t(5, n)
    q = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    return y, {
        "Gaussian": rg.Gaussian(mean, sd),
        "logistic": rg.Frozen(stats.logistic(mean, sd / 2)),
        "Quantiles": rg.Quantiles(q, mean[:, None] + sd[:, None] * stats.norm.ppf(q)),
        "Samples": rg.Samples(mean[:, None] + sd[:, None] * rng.normal(size=(n, 60))),
    }


RECALIBRATORS = {
    "PIT": rg.PITRecalibrator,
    "variance": rg.VarianceScaling,
    "variance and shift": lambda: rg.VarianceScaling(shift=True),
    "quantile": rg.QuantileRecalibrator,
    "Pareto": rg.ParetoRecalibrator,
}
NOT_FOR = {(name, kind) for name in ("PIT", "Pareto") for kind in ("Quantiles", "Samples")}


@pytest.mark.parametrize("kind", ["Gaussian", "logistic", "Quantiles", "Samples"])
@pytest.mark.parametrize("name", RECALIBRATORS)
def test_recalibrated_forecasts_have_nominal_coverage(name, kind, rng):
    y, forecasts = kinds(rng, 6000)
    forecast, half = forecasts[kind], slice(0, 3000)
    cal = RECALIBRATORS[name]()
    with pytest.raises(ValueError, match="is not fitted yet"):
        cal(forecast)
    if (name, kind) in NOT_FOR:
        with pytest.raises(InputError):
            cal.fit(forecast.part(half), y[half])
        return
    assert cal.fit(forecast.part(half), y[half]) is cal
    new = cal(forecast.part(slice(3000, None)))
    assert np.array_equal(cal.transform(forecast).quantile(0.5), cal(forecast).quantile(0.5))
    before, after = (
        rg.coverage(y[3000:], f, levels=[0.9]).per_level["observed"][0] for f in (forecast.part(slice(3000, None)), new)
    )
    assert before < 0.72
    assert abs(after - 0.9) < 0.022
    assert rg.crps(y[3000:], new) < rg.crps(y[3000:], forecast.part(slice(3000, None)))
    assert len(new) == 3000
    same = pickle.loads(pickle.dumps(cal))(forecast.part(slice(3000, None)))
    assert np.array_equal(same.quantile(0.5), new.quantile(0.5))


@pytest.mark.parametrize("kind", ["Gaussian", "logistic", "Quantiles", "Samples"])
@pytest.mark.parametrize("name", [*RECALIBRATORS, "likelihood"])
def test_weight_two_equals_two_rows(name, kind, rng):
    y, forecasts = kinds(rng, 400)
    if (name, kind) in NOT_FOR:
        return
    make = RECALIBRATORS.get(name, lambda: rg.VarianceScaling(level=None, shift=True))
    times = rng.integers(0, 4, 400)
    rows = np.repeat(np.arange(400), times)
    twice = make().fit(forecasts[kind].part(rows), y[rows])
    weighted = make().fit(forecasts[kind], y, sample_weight=times.astype(float))
    levels = [0.05, 0.5, 0.95]
    expected, found = (cal(forecasts[kind]).quantile(levels) for cal in (twice, weighted))
    tolerance = 2e-3 if name in ("likelihood", "Pareto") else 1e-9  # found by an optimiser
    assert found == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_weights_shift_a_fit_towards_heavy_rows(name, rng):
    """Rows of a second, wider population decide if they have nearly all the weight."""
    scale = np.repeat([1.0, 3.0], 1000)
    y = scale * rng.normal(size=2000)
    forecast = rg.Gaussian(np.zeros(2000), 1.0)
    weight = np.where(scale == 3, 1.0, 1e-3)
    wide = RECALIBRATORS[name]().fit(forecast, y, sample_weight=weight)
    alone = RECALIBRATORS[name]().fit(forecast.part(scale == 3), y[scale == 3])
    low, high = wide(forecast.part([0])).quantile([0.05, 0.95])[0]
    expected = alone(forecast.part([0])).quantile([0.05, 0.95])[0]
    assert (low, high) == pytest.approx(tuple(expected), abs=0.15)


def test_weighted_a_squared_is_that_of_repeated_rows(rng):
    from calibrant.calibrators.pareto import _Objectives

    y = rng.standard_t(4, 60)
    times = rng.integers(1, 4, 60)
    forecast = rg.Gaussian(np.zeros(60), 1.0)
    rows = np.repeat(np.arange(60), times)
    repeated = _Objectives(y[rows], forecast.part(rows), None)
    weighted = _Objectives(y, forecast, times.astype(float))
    for theta in (np.zeros(4), np.array([0.1, -0.2, 0.3, 0.1])):
        assert weighted.a_squared(theta) == pytest.approx(repeated.a_squared(theta), rel=1e-12)
        assert weighted.nll(theta) == pytest.approx(repeated.nll(theta), rel=1e-12)


def test_weights_must_be_positive_in_a_row(rng):
    with pytest.raises(InputError, match="sample_weight must be positive in at least one row"):
        rg.VarianceScaling().fit(rg.Gaussian(np.zeros(20), 1.0), np.arange(20.0), sample_weight=np.zeros(20))
    with pytest.raises(InputError, match="sample_weight"):
        rg.VarianceScaling().fit(rg.Gaussian(np.zeros(20), 1.0), np.arange(20.0), sample_weight=-np.ones(20))


def test_a_failed_fit_keeps_the_earlier_result():
    y = np.linspace(-2, 2, 50)
    cal = rg.PITRecalibrator().fit(rg.Gaussian(np.zeros(50), 1.0), y)
    before = cal.map_
    with pytest.raises(InputError):
        cal.fit(rg.Gaussian(np.zeros(50), 1.0), np.ones(50))
    assert cal.map_ is before


@pytest.mark.slow
def test_coverage_is_exact_over_many_small_samples(rng):
    """39 rows learned from: a new one falls into 90 % intervals with a chance of 90 %, whatever the forecast."""
    inside = {"PIT": 0, "variance": 0, "quantile": 0}
    makers = {
        "PIT": lambda: rg.PITRecalibrator(n_knots=20),
        "variance": rg.VarianceScaling,
        "quantile": lambda: rg.QuantileRecalibrator(levels=[0.05, 0.5, 0.95]),
    }
    for _ in range(1500):
        y = rng.gamma(2, 1, 40)
        forecast = rg.Gaussian(rng.normal(size=40) / 5, 1.0)
        for name, make in makers.items():
            new = make().fit(forecast.part(slice(0, 39)), y[:39])(forecast.part([39]))
            low, high = new.quantile([0.05, 0.95])[0]
            inside[name] += low <= y[39] <= high
    # Of 39 rows the 5 % quantile is the 2nd.
    assert all(1310 <= hit <= 1390 for hit in inside.values()), inside


def test_the_greatest_likelihood_scales_by_the_root_of_mean_squares(rng):
    y, forecasts = kinds(rng, 500)
    gaussian = forecasts["Gaussian"]
    cal = rg.VarianceScaling(level=None).fit(gaussian, y)
    z = (y - gaussian.mean) / gaussian.sd
    assert cal.factor_ == pytest.approx(np.sqrt(np.mean(z**2)))
    tries = [rg.nll(y, rg.Gaussian(gaussian.mean, f * gaussian.sd)) for f in cal.factor_ * np.array([0.97, 1, 1.03])]
    assert tries[1] == min(tries)
    moved = rg.VarianceScaling(level=None, shift=True).fit(gaussian, y)
    assert rg.nll(y, moved(gaussian)) < rg.nll(y, cal(gaussian))
    logistic = forecasts["logistic"]
    best = rg.VarianceScaling(level=None).fit(logistic, y).factor_
    tries = [rg.nll(y, rg.Stretched(logistic, f * best)) for f in (0.97, 1, 1.03)]
    assert tries[1] == min(tries)
    draws = forecasts["Samples"]
    best = rg.VarianceScaling(level=None).fit(draws, y).factor_
    tries = [rg.crps(y, rg.VarianceScaling().fit(draws, y)(draws))]
    assert rg.crps(y, rg.VarianceScaling(level=None).fit(draws, y)(draws)) <= tries[0] + 1e-9
    assert best > 1.5


def test_too_few_rows_are_noted():
    forecast = rg.Gaussian(np.zeros(8), 1.0)
    with pytest.raises(InputError, match="at least 9 rows for intervals of 90 %; got 8"):
        rg.VarianceScaling().fit(forecast, np.arange(8.0))
    with pytest.raises(InputError, match="at least 19 rows for the level 0.05; got 8"):
        rg.QuantileRecalibrator().fit(forecast, np.arange(8.0))
    with pytest.raises(InputError, match="at least 20 rows"):
        rg.ParetoRecalibrator().fit(forecast, np.arange(8.0))
    with pytest.raises(InputError, match="at least 10 rows"):
        rg.PITRecalibrator().fit(forecast.part([0]), [1.0])
    with pytest.raises(InputError, match="they are almost equal"):
        rg.PITRecalibrator().fit(rg.Gaussian(np.zeros(30), 1.0), np.ones(30))
    with pytest.raises(InputError, match="Use QuantileRecalibrator"):
        rg.PITRecalibrator().fit(rg.Quantiles([0.5], [[1.0]]), [1.0])
    with pytest.raises(InputError, match="must lie in the support of its forecast"):
        rg.ParetoRecalibrator().fit(stats.uniform(0, 1), np.linspace(-1, 2, 30))


def test_ties_of_outcomes_move_no_forecast_and_mirrored_ones_mirror_it(rng):
    mean = rng.integers(-3, 4, 2000) * 1.0
    y = np.rint(mean + rng.normal(size=2000))
    forecast = rg.Gaussian(mean, 1.04)
    new = rg.PITRecalibrator().fit(forecast, y)(forecast)
    assert abs(np.mean(new.point() - y)) < 0.03
    assert rg.crps(y, new) < rg.crps(y, forecast) + 0.01
    mirror = rg.Gaussian(-mean, 1.04)
    turned = rg.PITRecalibrator().fit(mirror, -y)(mirror)
    assert turned.quantile(0.9) == pytest.approx(-new.quantile(0.1), abs=1e-9)


def test_settings_can_be_read_cloned_and_shown():
    cal = rg.VarianceScaling(level=0.8)
    assert cal.get_params() == {"level": 0.8, "shift": False}
    assert repr(cal) == "VarianceScaling(level=0.8)"
    assert repr(rg.ParetoRecalibrator()) == "ParetoRecalibrator()"
    assert cal.set_params(shift=True).shift is True
    assert "0.1, 0.9" in repr(rg.QuantileRecalibrator(levels=np.array([0.1, 0.9])))
    for bad, words in (
        (rg.PITRecalibrator(n_knots=2), "at least 3"),
        (rg.ParetoRecalibrator(n_points=1), "at least 2"),
    ):
        with pytest.raises(InputError, match=words):
            bad.fit(rg.Gaussian(np.zeros(50), 1.0), np.linspace(-2, 2, 50))
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        cal.set_params(colour="red")
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    assert base.clone(rg.PITRecalibrator(n_knots=10)).n_knots == 10
    assert rg.VarianceScaling(level=None).fit_transform(rg.Gaussian([0.0, 0.0], 2.0), [1.0, -1.0]).sd[0] == 1.0


def test_a_likelihood_without_a_maximum_is_an_error(rng):
    y = 1000 * rng.normal(size=500)
    assert rg.VarianceScaling(level=None).fit(stats.norm(0, 1), y).factor_ == pytest.approx(np.sqrt(np.mean(y**2)))
    with pytest.raises(InputError, match="must hold forecasts with a width"):
        rg.VarianceScaling(level=None).fit(rg.Samples(np.ones((500, 5))), y)


# The front


@pytest.fixture
def front(rng):
    y = rng.gamma(2, 1, 800) - 2 + rng.standard_t(4, 800)
    forecast = rg.Gaussian(np.zeros(800), 1.0)
    return y, forecast, rg.ParetoRecalibrator().fit(forecast, y)


def test_no_recalibration_of_the_front_dominates_another(front):
    y, forecast, cal = front
    points = cal.front_
    assert len(points) >= 3
    assert (np.diff(points.nll) > 0).all()
    assert (np.diff(points.a_squared) < 0).all()
    assert rg.not_dominated(points.nll, points.a_squared).all()
    for place, point in enumerate(points):
        new = cal.choose(place)(forecast)
        assert rg.nll(y, new) == pytest.approx(point.nll, rel=1e-9)
        assert rg.anderson_darling(rg.pit(y, new)).statistic == pytest.approx(point.a_squared, rel=1e-6)
    assert points.before.nll == pytest.approx(rg.nll(y, forecast))
    assert "knee" in repr(points)


def test_the_ends_of_the_front_are_optimal(front):
    """Random maps around the ends are no better."""
    y, forecast, cal = front
    rng = np.random.default_rng(0)
    sharp, calibrated = cal.front_[0], cal.front_[-1]
    for _ in range(200):
        step = 0.05 * rng.normal(size=4)
        for point, objective in ((sharp, "nll"), (calibrated, "a_squared")):
            m = point.map
            other = rg.SinhArcsinh(m.location + step[0], m.scale * np.exp(step[1]), m.skewness + step[2],
                                   m.tails * np.exp(step[3]))  # fmt: skip
            new = rg.Warped(forecast, other)
            value = rg.nll(y, new) if objective == "nll" else rg.anderson_darling(rg.pit(y, new)).statistic
            assert value >= getattr(point, objective) - 1e-4


def test_a_point_can_be_chosen_and_measured_elsewhere(front):
    y, forecast, cal = front
    assert cal.choose("sharp").map_ == cal.front_[0].map
    assert cal.choose("calibrated").map_ == cal.front_[-1].map
    assert cal.map_ == cal.front_[cal.front_.knee].map
    elsewhere = cal.measure(forecast.part(slice(0, 300)), y[:300])
    assert len(elsewhere) == len(cal.front_)
    assert elsewhere[0].map == cal.front_[0].map
    for choice in ("best", -1, 99, True):
        with pytest.raises(InputError, match="choice must be"):
            cal.choose(choice)


def test_a_calibrated_forecast_is_almost_unchanged(rng):
    y = rng.normal(size=4000)
    forecast = rg.Gaussian(np.zeros(4000), 1.0)
    m = rg.ParetoRecalibrator().fit(forecast, y).map_
    assert (m.location, m.scale, m.skewness, m.tails) == pytest.approx((0, 1, 0, 1), abs=0.15)
    u = np.linspace(-3, 3, 13)
    assert m(u) == pytest.approx(u, abs=0.25)
    assert m.inverse(m(u)) == pytest.approx(u)
    slope = (m(u + 1e-6) - m(u - 1e-6)) / 2e-6
    assert m.log_slope(u) == pytest.approx(np.log(slope), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_not_dominated_is_its_definition(points):
    a, b = np.array(points, dtype=float).T
    expected = [
        not any(x <= a[i] and z <= b[i] and (x < a[i] or z < b[i]) for x, z in points) for i in range(len(points))
    ]
    assert rg.not_dominated(a, b).tolist() == expected
