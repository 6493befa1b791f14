"""The metric concept: classes, functions and names are interchangeable wherever a metric is taken."""

import copy
import inspect
import pickle
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.formatting import metric_key
from calibrant.inference.intervals import METHODS
from calibrant.metrics import MetricValue, UnbinnedMetric, as_metric, as_metrics

BINARY = cb.metrics.metric_names("binary")
EVERY = pytest.mark.parametrize("name", BINARY)
RNG = np.random.default_rng(5)
P = RNG.integers(1, 20, 400) / 20  # ties, so that each metric has an interval
Y = (RNG.random(400) < P**1.3).astype(int)
TABLE = cb.ScoreTable.from_arrays(Y, P)
DRAWS = {"n_resamples": 20, "random_state": 0}


def forms(name):
    """All forms in which a metric can be given."""
    return cb.METRICS[name](), cb.METRICS[name], getattr(cb.metrics, name), name


@EVERY
def test_all_forms_are_one_metric(name):
    first, *others = map(as_metric, forms(name))
    assert all(other == first for other in others)
    assert len({first, *others}) == 1


# Each function that takes a metric: from a form of the metric to its result as plain data.
TAKERS = {
    "interval": lambda form: cb.interval(form, TABLE, **DRAWS).to_dict(),
    "interval of rows": lambda form: cb.interval(form, Y, P, **DRAWS).to_dict(),
    "null": lambda form: cb.null(form, TABLE, **DRAWS).to_dict(),
    "consistency": lambda form: cb.consistency(form, TABLE, **DRAWS).to_dict(),
    "equivalence": lambda form: cb.equivalence(form, TABLE, margin=0.5, **DRAWS).to_dict(),
    "evaluate, list": lambda form: cb.evaluate(TABLE, metrics=[form], **DRAWS).to_dict(),
    "evaluate, mapping": lambda form: cb.evaluate(TABLE, metrics={"mine": form}, **DRAWS).to_dict(),
}


@EVERY
@pytest.mark.parametrize("taker", TAKERS)
def test_object_class_function_and_name_give_the_same_result(taker, name):
    """The contract of DESIGN.md, section 3, over METRICS."""
    first, *others = (TAKERS[taker](form) for form in forms(name))
    assert all(other == first for other in others)


def test_rows_and_table_give_the_same_interval():
    for name in BINARY:
        assert TAKERS["interval of rows"](name) == TAKERS["interval"](name)


def test_all_metrics_can_be_given_together_in_any_form():
    several = list(zip(*map(forms, BINARY), strict=True))  # all objects, all classes, all functions, all names
    models = {"a": P, "b": P**2}
    first, *others = (cb.evaluate(TABLE, metrics=list(metrics), **DRAWS) for metrics in several)
    assert set(first.metrics) == {"log-odds error", *(cb.METRICS[name]().name for name in BINARY)}
    assert all(other.to_dict() == first.to_dict() for other in others)
    compared = [cb.compare(Y, models, metrics=metrics, **DRAWS).to_dict() for metrics in several]
    assert all(other == compared[0] for other in compared)


def test_all_forms_give_the_same_diagram_of_the_null():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    shown = [
        cb.plots.NullDisplay.from_predictions(TABLE, metric=form, n_resamples=20, fig=Figure()).data()
        for form in forms("brier")
    ]
    assert all(other.equals(shown[0]) for other in shown)


@EVERY
def test_all_forms_give_the_same_class_wise_value(name):
    proba = np.column_stack([1 - P, P])
    first, *others = (cb.metrics.classwise(form, Y, proba).to_dict() for form in forms(name))
    assert all(other == first for other in others)


def test_all_forms_give_the_same_scorer_and_ranking():
    pytest.importorskip("sklearn")
    from sklearn.naive_bayes import GaussianNB

    X = np.column_stack([P, RNG.random(400)])
    model = GaussianNB().fit(X, Y)
    for name in ("brier", "auc", "bias"):
        assert len({cb.scorers.of(form)(model, X, Y) for form in forms(name)} | {cb.scorers[name](model, X, Y)}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rankings = [
            cb.AutoCalibrator(GaussianNB(), {"platt": cb.Platt()}, scoring=form, cv=3, n_resamples=19)
            .fit(X, Y)
            .ranking_
            for form in forms("log_loss")
        ]
    assert len({repr(ranking) for ranking in rankings}) == 1


def test_scoring_by_a_cost_in_any_form_adds_the_cost_aware_calibrators():
    pytest.importorskip("sklearn")
    for form in forms("ecc"):
        candidates = cb.AutoCalibrator(None, scoring=form)._candidates("predict_proba", 2, as_metric(form))
        assert {"cats", "caps"} <= set(candidates)


@EVERY
def test_a_metric_declares_its_properties(name):
    metric = cb.METRICS[name]()
    assert metric.kind == "binary"
    assert metric.direction == {"auc": "higher", "bias": 0.0, "oe_ratio": 1.0}.get(name, "lower")
    assert metric.has_null
    low, high = metric.range
    assert low < high
    assert metric.measures_gaps in (True, False)
    assert metric.needs_sums_only in (True, False)
    assert metric.interval_method in METHODS
    assert metric_key(metric.spec["name"]) == name


@EVERY
def test_a_metric_is_frozen_hashable_picklable_and_has_a_short_repr(name):
    metric = cb.METRICS[name]()
    for again in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert again == metric
        assert hash(again) == hash(metric)
    settings = "window=None" if name == "calbin" else ""
    assert repr(metric) == f"{cb.METRICS[name].__name__}({settings})"
    for attribute in ("name", "n_bins"):
        with pytest.raises(FrozenInstanceError):
            setattr(metric, attribute, 3)


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (cb.ECE(n_bins=15), "ECE(n_bins=15)"),
        (cb.ECE(bins=cb.bins.EqualWidth(15)), "ECE(n_bins=15)"),
        (cb.ECE(bins=cb.bins.EqualSize(10)), "ECE(bins=EqualSize(n_bins=10))"),
        (cb.TCE(alpha=0.01, test=cb.significance.score), "TCE(alpha=0.01, test=score)"),
        (cb.metrics.ECC(cb.costs.LinearCost(1, 5), n_bins=5), "ECC(cost=LinearCost(over=1, under=5), n_bins=5)"),
        (
            cb.GCE(cb.bins.PAVA(), cb.losses.signed_gap, cb.norms.sup, name="worst"),
            "GCE(bins=PAVA(), loss=signed_gap, norm=sup, name='worst')",
        ),
        (cb.metrics.CalBin(window=3), "CalBin(window=3)"),
    ],
)
def test_a_repr_shows_settings_other_than_the_defaults(metric, text):
    assert repr(metric) == text


def test_metrics_with_equal_parts_are_equal_whatever_their_class():
    parts = cb.bins.EqualWidth(10), cb.losses.absolute_gap, cb.norms.weighted_l1
    assert cb.ECE() == cb.GCE(*parts, name="mine") == cb.metrics.ACE(bins=cb.bins.EqualWidth(10))
    assert hash(cb.ECE()) == hash(cb.GCE(*parts))
    assert cb.ECE() != cb.ECE(n_bins=11) != cb.metrics.MCE(n_bins=11)
    assert cb.ECE() != "ECE"
    assert cb.GCE.from_spec(cb.TCE(alpha=0.01).spec) == cb.TCE(alpha=0.01) != cb.TCE()


@EVERY
def test_a_function_has_the_documentation_and_the_settings_of_its_class(name):
    function, built = getattr(cb.metrics, name), cb.METRICS[name]
    assert inspect.getdoc(function).splitlines()[0] == inspect.getdoc(built).splitlines()[0]
    settings = list(inspect.signature(built).parameters)
    assert list(inspect.signature(function).parameters)[2 : 2 + len(settings)] == settings
    for parameter in inspect.signature(function).parameters:
        assert parameter in inspect.getdoc(function)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function(Y, P) == function(TABLE) == built()(Y, P).value


def test_an_unknown_setting_is_an_error():
    with pytest.raises(TypeError, match="n_bin"):
        cb.ece(Y, P, n_bin=5)


@pytest.mark.parametrize(
    ("metric", "hint"),
    [("eec", "Did you mean .*'ecc'"), ("EECE", "Did you mean 'ece'"), ("xyz", "the metric comes first")],
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(metric, hint):
    with pytest.raises(cb.InputError, match=f"metric must be a metric object .*got {metric!r}. .*{hint}") as caught:
        as_metric(metric)
    assert caught.value.argument == "metric"


@pytest.mark.parametrize("metric", [TABLE, cb.GCE, cb.metrics.ecce, None, 3, cb.ECE()(TABLE)])
def test_an_object_that_is_no_metric_is_refused(metric):
    with pytest.raises(cb.InputError, match="metric must be a metric object"):
        as_metric(metric)


def test_several_metrics_are_a_list_or_a_mapping():
    found = {"ECE": cb.ECE(), "Brier": cb.metrics.Brier()}
    assert as_metrics(["ece", cb.brier]) == as_metrics((cb.ECE, cb.metrics.Brier())) == found
    assert as_metrics(["ECE", "Brier"]) == as_metrics(["Ece", "BRIER"]) == found
    names = ["log-odds error", "log loss", "ECCE-MAD"]
    assert list(as_metrics(names)) == list(as_metrics([metric_key(name) for name in names])) == names
    assert as_metrics({"a": "tce", 1: cb.metrics.mce}) == {"a": cb.TCE(), "1": cb.metrics.MCE()}
    for bad in ([], {}, "ece", cb.ece, None):
        with pytest.raises(cb.InputError, match="metrics must be a list of metrics or a mapping"):
            as_metrics(bad)
    with pytest.raises(cb.InputError, match="metrics must have distinct names; got ECE, ECE"):
        as_metrics([cb.ECE(), cb.ECE(n_bins=5)])


class LargestCost(UnbinnedMetric):
    name = "worst_case"

    def value(self, table):
        return float(np.max(np.abs(table.score - table.k / table.n)))


def test_a_metric_without_bins_needs_a_name_and_a_value():
    metric = LargestCost()
    function = cb.metrics.metric_function(LargestCost)
    assert isinstance(metric(Y, P), MetricValue)
    assert function(Y, P) == metric(TABLE).value == metric.value(TABLE)
    assert cb.interval(function, Y, P, **DRAWS) == cb.interval(metric, TABLE, **DRAWS)
    with pytest.warns(cb.CalibrantWarning, match="only one class"):
        function([0, 0], [0.2, 0.4])


def test_a_result_and_its_function_agree_and_carry_notes():
    found = cb.metrics.Brier()([0, 1, 1], [0.1, 0.7, np.nan], missing="drop")
    assert [note.code for note in found.notes] == ["missing"]
    assert found.definition == cb.metrics.Brier()
    with pytest.warns(cb.CalibrantWarning, match="missing"):
        assert cb.brier([0, 1, 1], [0.1, 0.7, np.nan], missing="drop") == float(found)
