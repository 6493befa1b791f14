"""Evaluations of numeric outcomes, as point predictions and as predictive distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError
from calibrant.kinds.base import forecast_kind


def evaluate(y, p=None, **options):
    """Evaluate numbers as point predictions, and forecasts as they are."""
    numbers = p is not None and forecast_kind(y, p) != "distribution"
    return cb.evaluate(y, cb.Point(p) if numbers else p, **options)


def test_pit_values_at_the_end_are_counted_once(rng):
    y = rng.normal(size=100)
    y[:7] = 50
    found = evaluate(y, rg.Gaussian(np.zeros(100), np.ones(100)), n_resamples=0)
    assert [note.count for note in found.notes if note.code == "pit_at_end"] == [7]


@pytest.mark.parametrize("kind", ["point", "gaussian", "quantiles", "samples", "frozen"])
def test_an_evaluation_drops_rows_with_missing_values_and_slices_the_forecasts(kind, rng):
    p = rng.uniform(0, 10, 300)
    y = p + rng.normal(size=300)
    forecast = {
        "point": lambda p: p,
        "gaussian": lambda p: rg.Gaussian(p, 1.0),
        "quantiles": lambda p: rg.Quantiles([0.1, 0.5, 0.9], p[:, None] + [-1.3, 0.0, 1.3]),
        "samples": lambda p: rg.Samples(p[:, None] + np.linspace(-2, 2, 9)),
        "frozen": lambda p: stats.norm(p, 1.0),
    }[kind]
    group, cluster = np.arange(300) % 2, (np.arange(300) % 60).astype(float)
    missing = y.copy()
    missing[20:30] = np.nan
    cluster[100:105] = np.nan
    kept = np.ones(300, dtype=bool)
    kept[20:30] = kept[100:105] = False
    with pytest.raises(InputError, match=r"y_true has 10 missing values \(first at row 20\)\. Pass missing='drop'"):
        evaluate(missing, forecast(p), by=group, cluster=cluster)
    found = evaluate(missing, forecast(p), by=group, cluster=cluster, missing="drop", n_resamples=0)
    alone = evaluate(y[kept], forecast(p[kept]), by=group[kept], cluster=cluster[kept], n_resamples=0)
    assert (found.table.n_in, found.table.n_dropped) == (300, 15)
    assert {note.code: note.count for note in found.notes}["missing"] == 15
    assert found.pvalue == alone.pvalue
    assert [metric.value for metric in found.metrics.values()] == [metric.value for metric in alone.metrics.values()]
    assert {key: own.pvalue for key, own in found.groups.items()} == {key: o.pvalue for key, o in alone.groups.items()}
    assert sum(own.table.n_dropped for own in found.groups.values()) == 15


def test_chosen_metrics_replace_the_panel_but_for_the_mean_error():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    y = mean + rng.normal(size=400)
    found = cb.evaluate(y, cb.Point(mean), metrics=["mae", rg.RMSE], n_resamples=99)
    assert list(found.metrics) == ["mean error", "MAE", "RMSE"]
    interval = cb.interval("mae", y, mean, n_resamples=99, random_state=0)
    assert (found["mae"].value, found["mae"].interval.low) == (rg.mae(y, mean), interval.low)
    assert np.isnan(found["mae"].null.expected)
    assert found.verdict == cb.evaluate(y, cb.Point(mean), n_resamples=99).verdict
    assert found.to_dict()["settings"]["metrics"] == {"MAE": {"name": "mae"}, "RMSE": {"name": "rmse"}}
    forecast = cb.Gaussian(mean, 1.5)
    of_sd = cb.evaluate(y, forecast, metrics={"score": rg.crps, "coverage": "coverage_error"}, n_resamples=99)
    assert list(of_sd.metrics) == ["mean error", "score", "coverage"]
    null = cb.null("crps", y, forecast, n_resamples=99, random_state=0)
    assert (of_sd["score"].null.expected, of_sd["score"].null.pvalue) == (null.expected, null.pvalue)
    assert of_sd["score"].pvalue >= of_sd.pvalue
    for result in (found, of_sd):
        assert "MAE" in repr(result) or "score" in repr(result)
        assert len(result.to_dict()["metrics"]) == 3


def test_chosen_metrics_of_groups_have_intervals():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    y, group, cluster = (
        mean + rng.normal(size=400),
        np.repeat([0, 1], 200),
        np.repeat(np.arange(24), [8] * 22 + [112] * 2),
    )
    found = cb.evaluate(y, cb.Point(mean), metrics=["mae"], by=group, n_resamples=49)
    for key, own in found.groups.items():
        expected = cb.interval("mae", y[group == key], mean[group == key], n_resamples=49, random_state=0)
        assert own["mae"].interval.low == expected.low
    few = cb.evaluate(y, cb.Gaussian(mean, 1.0), metrics=["crps"], by=group, cluster=cluster, n_resamples=49)
    assert [np.isnan(own["crps"].interval.low) for own in few.groups.values()] == [False, True]  # 23 and 2 clusters
    quick = cb.evaluate(y, cb.Point(mean), metrics=["mae"], n_resamples=0)
    assert quick["mae"].value == rg.mae(y, mean)
    assert quick["mae"].interval.method == "none"


def test_metrics_of_quantiles_without_a_null_keep_their_interval():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    forecast = cb.Quantiles([0.1, 0.5, 0.9], mean[:, None] + [-1.28, 0.0, 1.28])
    y = mean + rng.normal(size=400)
    found = cb.evaluate(y, forecast, metrics=["crps", "coverage_error"], n_resamples=49)
    assert np.isnan(found["crps"].null.expected)
    assert found["crps"].interval.low < found["crps"].value
    assert found["coverage_error"].null.expected > 0


@pytest.mark.parametrize(
    ("forecast", "metrics", "text"),
    [
        (cb.Point([1.0, 2.0]), ["crps"], "metrics must measure forecasts of kind 'point'; got CRPS, whose kind is"),
        (cb.Gaussian([1.0, 2.0], 1.0), ["mae"], "metrics must measure forecasts of kind 'distribution'; got MAE"),
        (cb.Point([1.0, 2.0]), ["ece"], "got ECE, whose kind is 'binary'. Metrics of this kind are mean_error"),
        (cb.Point([1.0, 2.0]), [], "metrics must be a list of metrics or a mapping"),
    ],
)
def test_metrics_of_another_kind_are_refused(forecast, metrics, text):
    with pytest.raises(cb.InputError, match=text):
        cb.evaluate([1.0, 2.5], forecast, metrics=metrics)


def test_bins_of_points_are_options_of_the_front_door():
    rng = np.random.default_rng(0)
    p = rng.normal(size=400)
    y = p + rng.normal(size=400)
    for forecast in (cb.Point(p), cb.Gaussian(p, 1.0)):
        assert len(cb.evaluate(y, forecast, n_bins=4, n_resamples=0).breakdowns["bias by bin"]) == 4
        found = cb.evaluate(y, forecast, bins=cb.bins.EqualWidth(3), n_resamples=0)
        assert len(found.breakdowns["bias by bin"]) == 3
        assert found.settings.bins == cb.bins.EqualWidth(3)
        with pytest.raises(InputError, match="n_bins"):
            cb.evaluate(y, forecast, n_bins=4, bins=cb.bins.EqualWidth(3))
    with pytest.raises(InputError, match="n_bins must be omitted for forecasts of kind"):
        cb.evaluate(np.arange(400) % 2, cb.Labels(np.zeros(400)), n_bins=4)


def test_skewed_ensembles_are_not_called_miscalibrated():
    """Fifty members show how skewed outcomes are; a hundred outcomes do not."""
    rng = np.random.default_rng(5)
    bad = 0
    for _ in range(60):
        mean = rng.normal(size=100)
        draws = np.exp(mean[:, None] + 1.5 * rng.normal(size=(100, 51)))
        found = cb.evaluate(draws[:, 0], cb.Samples(draws[:, 1:]), n_resamples=0)
        bad += found.verdict == "miscalibrated"
    assert bad <= 6


def test_quantiles_without_the_median_name_their_levels():
    with pytest.raises(cb.InputError, match="must have the level 0.5, or levels on both sides of it.*got 0.8, 0.9"):
        cb.evaluate([1.0, 2.0], cb.Quantiles([0.8, 0.9], [[1, 2], [2, 3]]))


def two_rows(kind, rng):
    m = rng.normal(size=2)
    forecasts = {
        "point": lambda: cb.Point(m),
        "gaussian": lambda: cb.Gaussian(m, np.ones(2)),
        "samples": lambda: cb.Samples(m[:, None] + rng.normal(size=(2, 20))),
    }
    return m + rng.normal(size=2), forecasts[kind]()


@pytest.mark.parametrize("kind", ["point", "gaussian", "samples"])
def test_two_rows_of_a_calibrated_model_are_rarely_miscalibrated(kind):
    """Two points always lie on a line, so the slope was significant in all of these data sets."""
    rng = np.random.default_rng(3)
    found = [cb.evaluate(*two_rows(kind, rng), n_resamples=0) for _ in range(100)]
    assert sum(each.verdict == "miscalibrated" for each in found) <= 11  # P = 0.004 at a rate of 5 %
    assert all("few_rows_for_slope" in [note.code for note in each.notes] for each in found)
    assert all("nan" not in str(each) for each in found)


POWERS = {"y": 1, "y^2": 2}
SHAPES = {
    "point": lambda m, s: cb.Point(m * s),
    "gaussian": lambda m, s: cb.Gaussian(m * s, np.full(m.size, s)),
    "samples": lambda m, s: cb.Samples((m[:, None] + np.linspace(-2, 2, 9)) * s),
    "quantiles": lambda m, s: cb.Quantiles([0.1, 0.5, 0.9], (m[:, None] + [-1.3, 0, 1.3]) * s),
}


@given(
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from([2, 7, 120]),
    st.integers(-290, 290),
    st.booleans(),
    st.integers(0, 9),
)
def test_verdict_and_pvalues_are_equal_in_all_units_and_values_scale(kind, n, power, clustered, seed):
    """Powers of the numbers overflowed from 1e60 on, and vanished below 1e-60, with another verdict."""
    rng = np.random.default_rng(seed)
    m, unit = rng.normal(size=n), 2.0**power
    y = m + rng.gamma(2, 0.7, n) - 1.2
    options = {"n_resamples": 9, "cluster": np.arange(n) % 12 if clustered and n > 12 else None}
    one, other = (cb.evaluate(y * s, SHAPES[kind](m, s), **options) for s in (1.0, unit))
    assert (other.verdict, other.direction) == (one.verdict, one.direction)
    tests, others = ([test.pvalue for test in e.decision.omnibus.components.values()] for e in (one, other))
    np.testing.assert_array_equal(tests, others)
    for name, metric in one.metrics.items():
        again, scale = other.metrics[name], unit ** POWERS.get(metric.interval.unit, 0)
        shift = power * math.log(2) if name == "NLL" else 0.0
        for field in ("value", "low", "high"):
            expected = scale * getattr(metric.interval, field) + shift
            assert getattr(again.interval, field) == pytest.approx(expected, rel=1e-12, nan_ok=True), (name, field)
        assert again.null.pvalue == pytest.approx(metric.null.pvalue, rel=0, abs=0, nan_ok=True)
