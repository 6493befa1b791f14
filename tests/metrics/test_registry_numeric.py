"""The metric concept for points and distributions: contracts over METRICS, resampling against hand computation."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.formatting import metric_key
from calibrant.metrics import as_metric, as_metrics, from_spec, metric_names

POINTS, DISTRIBUTIONS = metric_names("point"), metric_names("distribution")
EVERY = pytest.mark.parametrize("name", POINTS + DISTRIBUTIONS)
OF_POINTS = pytest.mark.parametrize("name", POINTS)
OF_DISTRIBUTIONS = pytest.mark.parametrize("name", DISTRIBUTIONS)
RNG = np.random.default_rng(9)
SIZE = 300
MEAN = RNG.uniform(5, 15, SIZE)
Y = MEAN + RNG.normal(0.2, 1.3, SIZE)
GAUSSIAN = cb.Gaussian(MEAN, 1.0)
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
FORECASTS = {
    "Gaussian": GAUSSIAN,
    "scipy": stats.norm(MEAN, 1.0),
    "Quantiles": cb.Quantiles(LEVELS, MEAN[:, None] + stats.norm.ppf(LEVELS)),
    "Samples": cb.Samples(MEAN[:, None] + RNG.normal(size=(SIZE, 39))),
}
CLUSTER = np.arange(SIZE) // 10
DRAWS = {"n_resamples": 20, "random_state": 0}


def forms(name):
    """All forms in which a metric can be given."""
    return cb.METRICS[name](), cb.METRICS[name], getattr(cb.metrics, name), name


def data(name):
    return (Y, cb.Point(MEAN)) if name in POINTS else (Y, GAUSSIAN)


@EVERY
def test_all_forms_are_one_metric(name):
    first, *others = map(as_metric, forms(name))
    assert all(other == first for other in others)
    assert len({first, *others}) == 1
    assert getattr(rg, name) is getattr(cb.metrics, name)
    assert getattr(rg, name).metric is cb.METRICS[name] is getattr(rg, type(first).__name__)


def null_or_refusal(function):
    def call(form, *columns):
        try:
            return function(form, *columns, **DRAWS).to_dict()
        except cb.InputError as error:
            return str(error)

    return call


# Each function that takes a metric: from a form of the metric and the data to its result as plain data.
TAKERS = {
    "interval": lambda form, *columns: cb.interval(form, *columns, **DRAWS).to_dict(),
    "interval, clusters": lambda form, *columns: cb.interval(form, *columns, cluster=CLUSTER, **DRAWS).to_dict(),
    "null": null_or_refusal(cb.null),
    "consistency": null_or_refusal(cb.consistency),
    "equivalence": lambda form, *columns: cb.equivalence(form, *columns, margin=0.5, **DRAWS).to_dict(),
}


@EVERY
@pytest.mark.parametrize("taker", TAKERS)
def test_object_class_function_and_name_give_the_same_result(taker, name):
    """The contract of DESIGN.md, section 3, over METRICS."""
    first, *others = (TAKERS[taker](form, *data(name)) for form in forms(name))
    assert all(other == first for other in others)


@EVERY
def test_a_metric_declares_its_properties(name):
    metric = cb.METRICS[name]()
    assert metric.kind == ("point" if name in POINTS else "distribution")
    assert metric.has_null == (name in DISTRIBUTIONS)
    assert metric.direction == {"mean_error": 0.0, "ratio": 1.0, "mean_quotient": 1.0}.get(name, "lower")
    low, high = metric.range
    assert low < high
    assert metric.interval_method == ("anchored" if name == "coverage_error" else "symmetric")
    assert metric.unit in ("1", "y", "y^2", "nat")
    assert metric.spec["name"] == name
    assert from_spec(metric.spec) == metric


@EVERY
def test_a_metric_is_frozen_hashable_and_picklable(name):
    metric = cb.METRICS[name]()
    for again in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert again == metric
        assert hash(again) == hash(metric)
    with pytest.raises(FrozenInstanceError):
        metric.name = "other"


@EVERY
def test_a_function_has_the_documentation_and_the_settings_of_its_class(name):
    function, built = getattr(rg, name), cb.METRICS[name]
    assert inspect.getdoc(function).splitlines()[0] == inspect.getdoc(built).splitlines()[0]
    settings = list(inspect.signature(built).parameters)
    assert list(inspect.signature(function).parameters)[2 : 2 + len(settings)] == settings
    for parameter in inspect.signature(function).parameters:
        assert parameter in inspect.getdoc(function)
    assert pickle.loads(pickle.dumps(function)) is function
    y, forecast = data(name)
    assert function(y, forecast) == built()(y, forecast).value == float(built()(y, forecast))


@EVERY
def test_a_result_is_plain_data_for_json(name):
    found = cb.METRICS[name]()(*data(name)).to_dict()
    assert (found["n_in"], found["n_used"], found["n_dropped"]) == (SIZE, SIZE, 0)
    assert metric_key(found["metric"]) == found["spec"]["name"] == name


@OF_POINTS
def test_a_column_a_point_forecast_and_a_table_are_the_same_data(name):
    table = rg.MeanTable.from_arrays(Y, MEAN)
    first = cb.interval(name, Y, MEAN, **DRAWS)
    assert first == cb.interval(name, Y, cb.Point(MEAN), **DRAWS) == cb.interval(name, table, **DRAWS)
    assert first.value == getattr(rg, name)(Y, cb.Point(MEAN)) == getattr(rg, name)(table)


@EVERY
def test_missing_outcomes_are_dropped_on_request(name):
    y, forecast = data(name)
    holes = np.where(np.arange(SIZE) < 3, np.nan, y)
    with pytest.raises(cb.InputError, match="missing"):
        cb.interval(name, holes, forecast)
    found = cb.interval(name, holes, forecast, missing="drop", **DRAWS)
    assert [note.code for note in found.notes] == ["missing"]
    rest = (y[3:], cb.Point(MEAN[3:]) if name in POINTS else GAUSSIAN[3:])
    assert found.value == pytest.approx(cb.METRICS[name]()(*rest).value, rel=1e-12)


@OF_POINTS
def test_a_frequency_counts_equal_rows_and_weights_are_importance(name):
    times = RNG.integers(1, 4, SIZE)
    counted = cb.interval(name, Y, MEAN, frequency=times, **DRAWS)
    repeated = cb.interval(name, np.repeat(Y, times), np.repeat(MEAN, times), **DRAWS)
    assert counted.value == pytest.approx(repeated.value, rel=1e-12)
    assert (counted.low, counted.high) == pytest.approx((repeated.low, repeated.high), rel=1e-9)
    weighted = cb.interval(name, Y, MEAN, sample_weight=times, **DRAWS)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    found = cb.interval("mae", Y, MEAN, n_resamples=4000, random_state=0)
    losses = np.abs(MEAN - Y)
    reach = 1.96 * losses.std() / np.sqrt(SIZE)
    assert (found.high - found.low) / 2 == pytest.approx(reach * (1 + 1 / np.sqrt(SIZE)), rel=0.05)
    of_scores = cb.interval("crps", Y, GAUSSIAN, n_resamples=4000, random_state=0)
    reach = 1.96 * GAUSSIAN.crps(Y).std() / np.sqrt(SIZE)
    assert (of_scores.high - of_scores.low) / 2 == pytest.approx(reach * (1 + 1 / np.sqrt(SIZE)), rel=0.05)


def test_clusters_widen_the_interval_of_dependent_rows():
    own = np.repeat(RNG.normal(size=SIZE // 10), 10)
    rows, clusters = (cb.interval("mean_error", MEAN + own, MEAN, cluster=each, **DRAWS) for each in (None, CLUSTER))
    assert clusters.high - clusters.low > 2 * (rows.high - rows.low)
    with pytest.raises(cb.InputError, match="cluster must have at least 10 distinct values"):
        cb.interval("crps", Y, GAUSSIAN, cluster=np.arange(SIZE) % 5)
    with pytest.raises(cb.InputError, match="cluster must be given with rows; got a MeanTable"):
        cb.interval("mae", rg.MeanTable.from_arrays(Y, MEAN), cluster=CLUSTER)


@OF_POINTS
def test_points_have_no_null_and_the_error_says_why(name):
    for function in (cb.null, cb.consistency):
        with pytest.raises(cb.InputError, match="do not state the distribution of the outcome"):
            function(name, Y, MEAN)


@OF_DISTRIBUTIONS
@pytest.mark.parametrize("kind", FORECASTS)
def test_the_null_of_a_distribution_is_simulated_or_refused(kind, name):
    forecast = FORECASTS[kind]
    if name == "nll" and kind in ("Quantiles", "Samples"):
        with pytest.raises(cb.InputError, match="no density"):
            cb.null(name, Y, forecast, **DRAWS)
    elif kind == "Quantiles" and name != "coverage_error":
        with pytest.raises(cb.InputError, match=f"{cb.METRICS[name]().name} has no null distribution for Quantiles"):
            cb.null(name, Y, forecast, **DRAWS)
    else:
        found = cb.null(name, Y, forecast, n_resamples=99, random_state=0)
        assert found.low <= found.expected <= found.high
        assert found.pvalue == pytest.approx(0.02 if name != "coverage_error" else 0.01)  # the errors are too wide
        assert found.alternative == ("greater" if name == "coverage_error" else "two-sided")


def test_the_expected_crps_of_calibrated_normal_forecasts_is_known():
    """sd / sqrt(pi), the mean distance of two draws divided by 2."""
    found = cb.null("crps", Y, GAUSSIAN, n_resamples=400, random_state=0)
    assert found.expected == pytest.approx(1 / np.sqrt(np.pi), abs=0.005)
    entropy = 0.5 * np.log(2 * np.pi * np.e)
    assert cb.null("nll", Y, GAUSSIAN, n_resamples=400, random_state=0).expected == pytest.approx(entropy, abs=0.01)


# A normal distribution of SciPy has the quantiles of Gaussian.
@pytest.mark.parametrize("kind", ["Gaussian", "Quantiles", "Samples", pytest.param("scipy", marks=pytest.mark.slow)])
def test_the_test_by_the_coverage_error_has_its_size(kind):
    """Calibrated forecasts: the p-value is at most 10 % in about 10 % of data sets."""
    rng, small = np.random.default_rng(4), 0
    for seed in range(200):
        mean = rng.normal(size=60)
        y = mean + rng.normal(size=60)
        forecast = {
            "Gaussian": lambda m=mean: cb.Gaussian(m, 1.0),
            "scipy": lambda m=mean: stats.norm(m, 1.0),
            "Quantiles": lambda m=mean: cb.Quantiles(LEVELS, m[:, None] + stats.norm.ppf(LEVELS)),
            "Samples": lambda m=mean: cb.Samples(m[:, None] + rng.normal(size=(60, 19))),
        }[kind]()
        small += cb.consistency("coverage_error", y, forecast, n_resamples=39, random_state=seed).pvalue <= 0.1
    assert 6 <= small <= 36  # 20 expected; ties make the test conservative


def test_the_null_of_the_coverage_error_allows_for_clusters():
    effect = np.repeat(RNG.normal(size=SIZE // 10), 10)  # one error per cluster: 30 independent rows
    y, forecast = MEAN + effect, GAUSSIAN
    rows = cb.null("coverage_error", y, forecast, n_resamples=199, random_state=0)
    clusters = cb.null("coverage_error", y, forecast, n_resamples=199, random_state=0, cluster=CLUSTER)
    assert clusters.expected > 2 * rows.expected
    with pytest.raises(cb.InputError, match="CRPS has no null distribution for clusters"):
        cb.null("crps", y, forecast, cluster=CLUSTER)


def test_the_coverage_error_is_the_mean_of_the_table_of_coverages():
    for forecast in FORECASTS.values():
        assert rg.coverage_error(Y, forecast) == rg.coverage(Y, forecast).mean_absolute
    levels = (0.4, 0.7)
    assert rg.coverage_error(Y, GAUSSIAN, levels=levels) == rg.coverage(Y, GAUSSIAN, levels=levels).mean_absolute


def test_full_coverage_does_not_prove_its_level():
    wide = cb.Gaussian(np.zeros(10), 100.0)
    assert cb.interval("coverage_error", np.zeros(10), wide, n_resamples=50, random_state=0).high > 0.4


def test_weights_of_distributions_and_labels_of_events_are_refused():
    for name, value in (("sample_weight", np.ones(SIZE)), ("frequency", np.ones(SIZE)), ("pos_label", 1)):
        with pytest.raises(cb.InputError, match=f"{name} must be omitted with predictive distributions"):
            cb.interval("crps", Y, GAUSSIAN, **{name: value})
    with pytest.raises(TypeError, match="unexpected keyword argument 'pos_label'"):
        cb.interval("mae", Y, MEAN, pos_label=1)


@pytest.mark.parametrize(
    ("metric", "forecast", "text"),
    [
        ("mae", GAUSSIAN, "y_pred must be a forecast of kind 'point'; got Gaussian, whose kind is 'distribution'"),
        (
            "crps",
            cb.Point(MEAN),
            "forecast must be a forecast of kind 'distribution'; got Point",
        ),
        ("ece", GAUSSIAN, "(forecast|y_prob) must be a forecast of kind 'binary'; got Gaussian"),
        (
            "crps",
            MEAN,
            "forecast must be Gaussian, Quantiles, Samples, Poisson, NegativeBinomial or a frozen distribution",
        ),
    ],
)
def test_a_forecast_of_another_kind_is_refused(metric, forecast, text):
    with pytest.raises(cb.InputError, match=text):
        cb.interval(metric, Y, forecast)
    with pytest.raises(cb.InputError, match=text):
        getattr(cb.metrics, metric)(Y, forecast)


def test_metrics_of_another_kind_are_refused():
    text = "metrics must measure forecasts of kind 'binary'; got MAE, whose kind is 'point'. Metrics of this kind"
    with pytest.raises(cb.InputError, match=text):
        as_metrics(["ece", "mae"], "binary")
    with pytest.raises(cb.InputError, match=text):
        cb.evaluate([0, 1], [0.2, 0.7], metrics=["mae"])
    with pytest.raises(cb.InputError, match="metric must measure binary scores"):
        cb.metrics.classwise("mae", [0, 1], [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(cb.InputError, match="probabilities of one event"):
        cb.evaluate([0, 1], [[0.5, 0.5], [0.1, 0.9]], metrics=["mae"])


def test_there_is_a_scorer_of_each_metric():
    pytest.importorskip("sklearn")
    assert set(cb.scorers) == set(cb.METRICS) <= set(dir(cb.scorers))
    with pytest.raises(cb.InputError, match="scoring must measure probabilities; got CRPS"):
        cb.AutoCalibrator(scoring="crps").fit(np.linspace(0, 1, 50), np.arange(50) % 2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rg.Pinball(level=1.0), "level must"),
        (lambda: rg.IntervalScore(level=0), "level must"),
        (lambda: rg.ErrorTolerance(share=0), "share must lie in"),
        (lambda: rg.MeanQuotient(zeros="keep"), "zeros must"),
        (lambda: rg.CoverageError(levels=(0.5, 2.0)), "levels must"),
    ],
)
def test_settings_are_checked(make, text):
    with pytest.raises(cb.InputError, match=text):
        make()


def test_pinball_losses_of_all_quantiles_are_half_of_the_crps_of_quantiles():
    forecast = FORECASTS["Quantiles"]
    mean = np.mean([rg.pinball(Y, forecast.values[:, i], level=level) for i, level in enumerate(LEVELS)])
    assert 2 * mean == pytest.approx(rg.crps(Y, forecast), rel=1e-12)
