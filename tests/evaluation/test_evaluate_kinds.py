"""One function evaluates every kind of forecast."""

import json
import math

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cb
from calibrant.kinds.base import KINDS, kind_of
from calibrant.kinds.multiclass.sample import class_sampler
from calibrant.metrics.multiclass import ClasswiseMetric, MulticlassBrier, MulticlassLogLoss, TopLabelMetric
from calibrant.tables.class_table import ClassTable, ConfusionTable
from tests.kinds.cases import draw, each_kind

N = 1500


@pytest.fixture(scope="module")
def forecasts():
    """Outcomes and a calibrated forecast of each kind."""
    samples = {kind: draw(kind, N, seed=1) for kind in KINDS}
    return {kind: (sample.y, sample.make(sample.right)) for kind, sample in samples.items()}


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def occurred(proba, rng):
    return (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1)


@each_kind
def test_each_kind_has_a_verdict_metrics_tests_and_groups(forecasts, kind):
    y, forecast = forecasts[kind]
    group = np.arange(N) % 3
    found = cb.evaluate(y, forecast, by=group, n_resamples=49)
    assert found.kind == kind
    assert found.verdict in ("calibrated", "inconclusive")
    assert list(found.groups) == [0, 1, 2]
    assert sum(each.n_rows for each in found.groups.values()) == found.n_rows == N
    assert found.metrics
    assert any(test.adjusted_pvalue is not None for test in found.tests.values())
    assert found.to_dict()["kind"] == kind
    assert found.verdict in repr(found)


@each_kind
def test_a_forecast_passes_unless_all_rows_or_a_group_are_miscalibrated(forecasts, kind):
    y, right, wrong, make = draw(kind, 2000, seed=3)
    group = np.where(np.arange(len(y)) < 1600, "right", "wrong")
    assert cb.evaluate(y, make(right), by=group, n_resamples=19).passed is True
    assert cb.evaluate(y, make(wrong), n_resamples=19).passed is False
    mixed = np.where((group == "right").reshape(-1, *[1] * (np.ndim(right) - 1)), right, wrong)
    found = cb.evaluate(y, make(mixed), by=group, n_resamples=19)
    assert found.groups["wrong"].verdict == "miscalibrated"
    assert found.passed is False
    assert found.n_miscalibrated_groups == 1
    assert "1 of 2 groups is miscalibrated" in found.headline()
    assert found.to_dict()["passed"] is False
    assert found.to_dict()["groups"][0]["passed"] is True


def test_opposite_deviations_of_groups_fail_although_all_rows_are_calibrated():
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=40_000), np.arange(40_000) % 2
    y = rng.random(x.size) < expit(x + 0.4 * (2 * group - 1))
    found = cb.evaluate(y, expit(x), by=group, n_resamples=99)
    assert found.verdict in ("calibrated", "negligible")
    assert found.passed is False
    assert f"{found.verdict} overall; 2 of 2 groups are miscalibrated" in found.headline()


@each_kind
def test_clusters_are_taken_by_each_kind(forecasts, kind):
    y, forecast = forecasts[kind]
    found = cb.evaluate(y, forecast, cluster=np.arange(N) // 15, n_resamples=49)
    assert found.verdict in ("calibrated", "inconclusive")
    with pytest.raises(cb.InputError, match="at least (3|10) distinct"):
        cb.evaluate(y, forecast, cluster=np.arange(N) % 2, n_resamples=49)


@pytest.mark.parametrize("few", [1, 9])
@each_kind
def test_a_group_with_fewer_than_ten_clusters_is_not_tested(forecasts, kind, few):
    y, forecast = forecasts[kind]
    cluster = np.arange(N) // 15
    group = np.where(cluster < few, "few", "many")
    found = cb.evaluate(y, forecast, by=group, cluster=cluster, n_resamples=19)
    alone, many = found.groups["few"], found.groups["many"]
    assert (alone.verdict, alone.direction) == ("inconclusive", "")
    if alone.mean_over_clusters is None:  # else three clusters suffice for calibration in the large
        assert not any(test.adjusted_pvalue is not None and test.adjusted_pvalue < 1 for test in alone.tests.values())
    assert not alone.is_within_margin
    assert any(test.adjusted_pvalue is not None for test in many.tests.values())
    assert "Groups with fewer than 10 clusters, of which little or nothing is tested: few." in repr(found)
    assert all(math.isfinite(metric.value) for metric in alone.metrics.values())
    json.dumps(found.to_dict(), allow_nan=False)
    assert "few" in found.to_json()
    assert repr(alone)


WEIGHTED = [kind for kind in KINDS if kind != "distribution"]


def numbers(value, path=""):
    """Yield the numbers, texts and missing values of a JSON document by path, without the counts of lines read."""
    if isinstance(value, dict | list):
        if isinstance(value, list):  # equal rows that are neighbours have a note about dependent neighbours
            value = [part for part in value if not (isinstance(part, dict) and part.get("code") == "neighbouring_rows")]
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            if name not in ("n_in", "n_used"):
                yield from numbers(part, f"{path}.{name}")
    else:
        yield path, value


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", WEIGHTED)
def test_frequencies_give_the_results_of_repeated_rows(kind, clustered):
    y, right, wrong, make = draw(kind, 300)
    times, cluster = np.arange(300) % 4 + 1, np.arange(300) // 5
    repeated = np.repeat(np.arange(300), times)
    for columns in (right, wrong):
        found, expected = (
            cb.evaluate(
                y[rows],
                make(columns[rows]),
                cluster=cluster[rows] if clustered else None,
                frequency=frequency,
                n_resamples=19,
            )
            for rows, frequency in ((np.arange(300), times), (repeated, None))
        )
        assert found.n_rows == expected.n_rows == repeated.size
        wanted = dict(numbers(expected.to_dict()))
        assert dict(numbers(found.to_dict())) == {
            # The temperature of classes is fitted with a tolerance.
            path: pytest.approx(value, rel=1e-5, nan_ok=True) if isinstance(value, float) else value
            for path, value in wanted.items()
        }
        assert found.sentences() == expected.sentences()


BAD_OPTIONS = [
    *(("margin", value, "must be a positive number in") for value in (True, 0, -1, 10, np.nan, np.inf, "x", [0.1])),
    *(("alpha", value, "must lie between 0 and 1") for value in (True, 0, 1, -0.1, np.nan, "x", None)),
    ("alpha", 0.5, "must lie below 0.5"),
    *(("confidence_level", value, "must lie between 0 and 1") for value in (True, 0, 1, 95, np.nan, "x", None)),
    *(("n_resamples", value, "must be a whole number of at least") for value in (True, -1, 9.5, np.nan, "x")),
    ("n_resamples", 10**30, "must be at most 10,000,000"),
    ("confidence_level", 1 - 2**-53, "must lie between 0 and 1, and not within 1e-12 of 1"),
    *(("random_state", value, "must be None, a whole number of at least 0") for value in (True, -1, 0.5, "x")),
]


@each_kind
@pytest.mark.parametrize(("name", "value", "condition"), BAD_OPTIONS, ids=[f"{o[0]}={o[1]}" for o in BAD_OPTIONS])
def test_bad_options_are_refused_by_each_kind_in_the_same_words(forecasts, kind, name, value, condition):
    with pytest.raises(cb.InputError) as caught:
        cb.evaluate(*forecasts[kind], **{name: value})
    assert str(caught.value).startswith(f"{name} {condition}")
    assert f"; got {value!r}." in str(caught.value)
    assert caught.value.argument == name


@each_kind
def test_a_tiny_margin_is_never_reached(forecasts, kind):
    """The search for the rows that would decide did not end, or overflowed."""
    found = cb.evaluate(*forecasts[kind], margin=1e-300, n_resamples=9)
    assert found.verdict in ("inconclusive", "miscalibrated")
    assert found.rows_to_decide is None
    assert "nan" not in str(found)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "binary"])
def test_an_absolute_margin_is_for_binary_scores_alone(forecasts, kind):
    with pytest.raises(cb.InputError, match=r"margin must be a positive number in .*; got AbsoluteMargin"):
        cb.evaluate(*forecasts[kind], margin=cb.AbsoluteMargin(0.01))


@each_kind
def test_no_resamples_are_allowed_where_the_result_needs_none(forecasts, kind):
    least = kind_of(kind).defaults.DEFAULTS.least_resamples
    if least:
        with pytest.raises(cb.InputError, match=f"n_resamples must be a whole number of at least {least}; got 0"):
            cb.evaluate(*forecasts[kind], n_resamples=0)
    else:
        assert cb.evaluate(*forecasts[kind], n_resamples=0).settings.n_resamples == 0


DEFAULTS = {
    "binary": (0.1, 499),
    "multiclass": (0.1, 199),
    "ordinal": (0.1, 199),
    "labels": (0.01, 0),
    "point": (0.05, 199),
    "distribution": (0.01, 199),
}


@each_kind
def test_default_margins_and_resamples_are_those_of_the_documentation(kind):
    y, right, _, make = draw(kind, 300)
    found = cb.evaluate(y, make(right)).settings
    assert (found.margin, found.n_resamples) == DEFAULTS[kind]
    assert (found.alpha, found.confidence_level, found.random_state) == (0.05, 0.95, 0)


def test_many_class_probabilities_have_fewer_resamples(forecasts, monkeypatch):
    from calibrant.kinds.multiclass import sample as multiclass_sample

    monkeypatch.setattr(multiclass_sample, "MANY_PROBABILITIES", 600)
    y, proba = (column[:201] for column in forecasts["multiclass"])
    metrics = ["brier"]
    assert cb.evaluate(y, proba, metrics=metrics).settings.n_resamples == 99
    assert cb.evaluate(y[1:], proba[1:], metrics=metrics).settings.n_resamples == 199
    assert cb.evaluate(y, proba, metrics=metrics, n_resamples=19).settings.n_resamples == 19


@each_kind
def test_a_generator_gives_one_seed_per_evaluation(forecasts, kind):
    used, expected = np.random.default_rng(3), np.random.default_rng(3)
    found = cb.evaluate(*forecasts[kind], by=np.arange(N) % 2, n_resamples=9, random_state=used)
    seed = int(expected.integers(2**63))
    assert used.bit_generator.state == expected.bit_generator.state
    again = cb.evaluate(*forecasts[kind], by=np.arange(N) % 2, n_resamples=9, random_state=seed)
    assert found.settings.random_state is None
    assert repr(found) == repr(again)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "ordinal"])
def test_settings_hold_the_metrics_of_the_result(forecasts, kind):
    y, forecast = (column[:300] for column in forecasts[kind])
    for options in ({}, {"metrics": ["ece", cb.brier]}):
        found = cb.evaluate(y, forecast, by=np.arange(300) % 2, n_resamples=9, **options)
        for each in (found, *found.groups.values()):
            assert list(each.settings.metrics) == [name for name in each.metrics if "log-odds error" not in name]
        assert {name: m.spec for name, m in found.settings.metrics.items()} == found.to_dict()["settings"]["metrics"]


def test_options_of_another_kind_are_refused(forecasts):
    y, forecast = forecasts["point"]
    with pytest.raises(cb.InputError, match="costs must be omitted for forecasts of kind 'point'"):
        cb.evaluate(y, forecast, costs=cb.costs.LinearCost())
    with pytest.raises(cb.InputError, match="classes must be omitted for forecasts of kind 'binary'"):
        cb.evaluate(*forecasts["binary"], classes=[0, 1])


def test_a_column_for_several_labels_points_to_the_forecast_types():
    with pytest.raises(cb.InputError, match=r"\(n, K\) array of class probabilities.*calibrant.Point"):
        cb.evaluate([0, 1, 2], [0.1, 0.2, 0.3])


def test_classes_are_integers_unless_they_are_named():
    proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    with pytest.raises(cb.InputError, match="must hold labels of the classes 0, 1, 2; row 0 is 'a'"):
        cb.evaluate(["a", "b"], proba)
    found = cb.evaluate(["a", "b"] * 20, np.tile(proba, (20, 1)), classes=["a", "b", "c"], n_resamples=9)
    assert found.details.labels == ("a", "b", "c")
    with pytest.raises(cb.InputError, match="one class per column"):
        cb.evaluate(["a", "b"], proba, classes=["a", "b"])


def test_a_frames_columns_are_the_classes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.tile([[0.7, 0.3], [0.2, 0.8]], (20, 1)), columns=["no", "yes"])
    found = cb.evaluate(pd.Series(["no", "yes"] * 20), frame, n_resamples=9)
    assert found.kind == "multiclass"
    assert found.details.labels == ("no", "yes")


def test_missing_rows_of_class_probabilities_are_counted():
    rng = np.random.default_rng(1)
    proba = softmax(rng.normal(size=(100, 3)))
    y = occurred(proba, rng)
    proba[3, 1] = np.nan
    with pytest.raises(cb.InputError, match="forecast has 1 missing value"):
        cb.evaluate(y, proba, n_resamples=9)
    found = cb.evaluate(y, proba, missing="drop", n_resamples=9)
    assert (found.n_rows, found.table.n_dropped) == (99, 1)
    assert any(note.code == "missing" for note in found.notes)


def test_brier_and_log_loss_of_classes_equal_those_of_scikit_learn(forecasts):
    metrics = pytest.importorskip("sklearn.metrics")
    y, proba = forecasts["multiclass"]
    table = ClassTable.from_arrays(y, proba)
    assert MulticlassLogLoss().value(table) == pytest.approx(metrics.log_loss(y, proba), abs=1e-12)
    onehot = np.eye(3)[y]
    assert MulticlassBrier().value(table) == pytest.approx(((proba - onehot) ** 2).sum(axis=1).mean(), abs=1e-12)


def test_the_order_of_classes_has_no_effect(forecasts):
    y, proba = forecasts["multiclass"]
    order = [2, 0, 1]
    found = cb.evaluate(y, proba, n_resamples=9)
    shuffled = cb.evaluate(y, proba[:, order], classes=order, n_resamples=9)
    assert shuffled.pvalue == pytest.approx(found.pvalue, rel=1e-6)
    assert shuffled.log_odds_error.value == pytest.approx(found.log_odds_error.value, abs=1e-9)
    for name, metric in found.metrics.items():
        assert shuffled[name].value == pytest.approx(metric.value, abs=1e-12), name


@pytest.mark.parametrize(
    "metric", [cb.ECE(), cb.metrics.ACE(), cb.TCE(), cb.metrics.Brier(), cb.metrics.MCE()], ids=lambda m: m.name
)
def test_metrics_of_classes_equal_those_of_their_tables(forecasts, metric):
    y, proba = forecasts["multiclass"]
    rng = np.random.default_rng(2)
    for weights in ({}, {"frequency": rng.integers(1, 4, N)}, {"sample_weight": rng.random(N)}):
        table = ClassTable.from_arrays(y, proba, **weights)
        expected = cb.metrics.classwise(metric, y, proba, **weights).value
        assert ClasswiseMetric(metric).value(table) == pytest.approx(expected, rel=1e-12)
        assert TopLabelMetric(metric).value(table) == metric(cb.metrics.top_label(y, proba, **weights)).value


def test_null_classes_follow_the_probabilities():
    rng = np.random.default_rng(3)
    row = softmax(rng.normal(size=(1, 11)))
    table = ClassTable(tuple(range(11)), np.repeat(row, 60_000, axis=0), np.zeros(60_000, dtype=np.int64))
    share = np.bincount(class_sampler(table)(rng), minlength=11) / 60_000
    assert np.abs(share - row[0]).max() < 5 * np.sqrt(0.25 / 60_000)


def test_an_overconfident_model_and_its_overestimated_class_are_named():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(4000, 4)) * 1.5
    truth = 0.7 * z
    truth[:, 0] -= 0.8
    y = occurred(softmax(truth), rng)
    found = cb.evaluate(y, softmax(z), n_resamples=9)
    assert found.verdict == "miscalibrated"
    assert {"overestimates", "overconfident"} <= set(found.direction.split(", "))
    assert 0 in found.details.classes_that("overestimates", 0.05)
    assert "Overestimated classes: 0 (" in " ".join(found.sentences())


def test_proportions_of_two_classes_have_mcnemars_test():
    stats = pytest.importorskip("scipy.stats")
    table = np.array([[50, 12], [3, 35]])  # actual, predicted
    y = np.repeat([0, 0, 1, 1], table.reshape(-1))
    predicted = np.repeat([0, 1, 0, 1], table.reshape(-1))
    found = cb.evaluate(y, cb.Labels(predicted))
    assert found.pvalue == pytest.approx(stats.binomtest(3, 15, 0.5).pvalue, rel=1e-9)
    assert found.direction == "overestimates, underestimates"  # class 1 too often, class 0 too rarely
    assert "Predicted too often: 1 (47 % predicted, 38 % observed)." in found.sentences()


def test_proportions_within_the_margin_are_calibrated():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 30_000)
    wrong = rng.random(30_000) < 0.03
    predicted = np.where(wrong, rng.integers(0, 3, 30_000), y)
    found = cb.evaluate(y, cb.Labels(predicted))
    assert found.verdict == "calibrated"
    assert found.equivalence.high <= 0.01 == found.margin


def test_the_test_of_proportions_keeps_its_level():
    rng = np.random.default_rng(6)
    rejected = 0
    for _ in range(200):
        y = rng.choice(4, 400, p=[0.5, 0.3, 0.15, 0.05])
        predicted = np.where(rng.random(400) < 0.2, rng.permutation(y), y)
        rejected += cb.evaluate(y, cb.Labels(predicted, classes=range(4))).pvalue <= 0.05
    assert rejected <= 18  # 5 %, and three standard errors


def test_confusion_tables_add_up():
    rng = np.random.default_rng(7)
    y, predicted = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    whole = ConfusionTable.from_codes(y, predicted, [0, 1, 2])
    halves = [ConfusionTable.from_codes(y[i], predicted[i], [0, 1, 2]) for i in (slice(100), slice(100, None))]
    assert (sum(halves).n == whole.n).all()
    with pytest.raises(cb.InputError, match="same classes"):
        whole + ConfusionTable.from_codes(y, predicted, [0, 1, 2, 3])


def test_intervals_and_nulls_exist_for_metrics_of_classes(forecasts):
    y, proba = forecasts["multiclass"]
    metric = TopLabelMetric(cb.ECE())
    found = cb.interval(metric, y, proba, n_resamples=49, random_state=0)
    assert found.low <= found.value == metric.value(ClassTable.from_arrays(y, proba)) <= found.high
    null = cb.null(cb.metrics.MulticlassBrier(), y, proba, n_resamples=99, random_state=0)
    expected = np.mean(1 - (proba**2).sum(axis=1))
    assert null.expected == pytest.approx(expected, abs=0.01)
    assert null.pvalue > 0.01


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "binary"])
def test_attributes_of_binary_scores_name_their_kind(forecasts, kind):
    found = cb.evaluate(*forecasts[kind], n_resamples=9)
    message = f"kind must be that of probabilities of one event for event_rate; got '{kind}'"
    with pytest.raises(AttributeError, match=message):
        _ = found.event_rate


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weights_change_no_number_of_rows(forecasts, kind):
    pytest.importorskip("pandas")
    y, forecast = forecasts[kind]
    weight, group = np.full(len(y), 7.0), np.arange(len(y)) % 2
    found = cb.evaluate(y, forecast, sample_weight=weight, by=group, n_resamples=1)
    assert set(found.to_frame()["rows"]) == {len(y), np.count_nonzero(group == 0), np.count_nonzero(group == 1)}


@pytest.mark.parametrize("weight", [1e100, 1e200])
def test_weights_that_add_up_to_too_much_are_refused(weight):
    y = np.arange(40) % 4
    for forecast in (np.full((40, 4), 0.25), cb.Labels(y[::-1])):
        with pytest.raises(cb.InputError, match=r"sample_weight must add up to less than 2\*\*53; got the sum 4e"):
            cb.evaluate(y, forecast, sample_weight=np.full(40, weight), n_resamples=19)


def test_certain_class_scores_are_not_said_to_have_too_few_clusters():
    y = np.arange(60) % 3
    found = cb.evaluate(y, np.eye(3)[y], n_resamples=9)
    assert found.verdict == "inconclusive"
    assert "cluster" not in str(found)
    assert "too few to bound the error" in str(found)
