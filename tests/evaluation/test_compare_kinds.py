"""`compare` for each kind of forecast: laws for all kinds, and what only one kind has."""

import importlib.util
import json
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

import calibrant as cb
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import PairedDifference, mean_difference
from calibrant.inference.squared_deviations import (
    CellErrors,
    SampledRows,
    cell_deviation,
    deviation_difference,
    share_deviation,
)
from calibrant.tables.mean_table import MeanTable
from tests.kinds.cases import KINDS, draw, each_kind

OTHER_KINDS = [kind for kind in KINDS if kind != "binary"]
FAST = {"n_resamples": 19}
DECIDES = {
    "binary": "log-odds error",
    "multiclass": "class-wise log-odds error",
    "ordinal": "cumulative log-odds error",
    "labels": "error of class proportions",
    "point": "bias by bin",
    "distribution": "coverage error",
}
BESIDE = {
    "binary": ["Brier", "log loss"],
    "multiclass": ["Brier", "log loss"],
    "ordinal": ["RPS", "log loss"],
    "labels": ["accuracy"],
    "point": ["MSE", "MAE"],
    "distribution": ["CRPS", "NLL"],
}


def compared(kind, *, rows=slice(None), size=800, first="wrong", **options):
    y, right, wrong, make = draw(kind, size)
    models = {"right": right[rows], "wrong": wrong[rows]}
    order = (first, *(name for name in models if name != first))
    return cb.compare(y[rows], {name: make(models[name]) for name in order}, **FAST, **options)


def deciding(found):
    (difference,) = found.deciding
    return difference


# Verdicts


@each_kind
def test_the_better_calibrated_model_is_found(kind):
    found = compared(kind)
    assert found.kind == kind
    assert found.verdict == "right is better calibrated than wrong"
    assert found.direction == "better"
    assert found.decides == DECIDES[kind]
    d = deciding(found)
    assert d.low < d.value < d.high < 0
    assert d.metric == DECIDES[kind]
    assert {name: evaluation.kind for name, evaluation in found.models.items()} == {"wrong": kind, "right": kind}
    tested = [d.metric for d in found.differences if d.test == "paired t test"]
    assert tested == BESIDE[kind]


@each_kind
def test_equal_models_do_not_differ(kind):
    y, right, _, make = draw(kind, 300)
    found = cb.compare(y, {"one": make(right), "other": make(right)}, **FAST)
    assert found.verdict == "no difference shown"
    assert all(d.value == pytest.approx(0, abs=1e-12) for d in found.differences if not np.isnan(d.value))
    assert all(d.pvalue == pytest.approx(1) for d in found.differences if d.test)


@each_kind
def test_swapping_models_flips_the_sign(kind):
    one, other = compared(kind), compared(kind, first="right")
    assert other.verdict == "wrong is worse calibrated than right"
    by_metric = {d.metric: d for d in other.differences}
    for d in one.differences:
        if d.test in ("decides", "paired t test"):
            swapped = by_metric[d.metric]
            assert (d.value, d.low, d.high) == pytest.approx((-swapped.value, -swapped.high, -swapped.low), rel=1e-9)
            assert d.pvalue == pytest.approx(swapped.pvalue, rel=1e-9)


DESIGNS = [(kind, design) for kind in KINDS for design in ("independent", "clusters", "weights")]
DESIGNS.remove(("distribution", "weights"))  # predictive distributions have no weights


@pytest.mark.parametrize(("kind", "design"), DESIGNS)
def test_shuffled_rows_give_the_same_comparison(kind, design):
    order = np.random.default_rng(1).permutation(800)
    column = {"clusters": np.arange(800) // 8, "weights": np.random.default_rng(2).exponential(size=800)}
    name = {"clusters": "cluster", "weights": "sample_weight"}.get(design)
    given, shuffled = ({}, {}) if name is None else ({name: column[design]}, {name: column[design][order]})
    one, other = deciding(compared(kind, **given)), deciding(compared(kind, rows=order, **shuffled))
    expected = pytest.approx((other.value, other.low, other.pvalue), rel=1e-8, nan_ok=True)
    assert (one.value, one.low, one.pvalue) == expected


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_further_model_changes_only_adjusted_p_values(kind):
    y, right, wrong, make = draw(kind, 400)
    models = {"wrong": make(wrong), "right": make(right)}
    two = cb.compare(y, models, **FAST)
    three = cb.compare(y, {**models, "again": make(wrong)}, baseline="wrong", **FAST)
    d, same = deciding(two), next(each for each in three.deciding if each.model == "right")
    assert (d.value, d.low, d.high, d.pvalue) == (same.value, same.low, same.high, same.pvalue)
    for metric in (DECIDES[kind], *BESIDE[kind]):
        several = [each for each in three.differences if each.metric == metric]
        assert [each.adjusted_pvalue for each in several] == pytest.approx(holm([each.pvalue for each in several]))
    assert three.adjusted["right"] == pytest.approx(2 * d.pvalue)
    assert three.verdict == "right is better calibrated than wrong"


# Clusters, weights and frequencies


@each_kind
def test_rows_repeated_inside_clusters_add_no_evidence(kind):
    single = deciding(compared(kind))
    rows = np.repeat(np.arange(800), 3)
    repeated, clustered = deciding(compared(kind, rows=rows)), deciding(compared(kind, rows=rows, cluster=rows))
    width = {d: d.high - d.low for d in (single, repeated, clustered)}
    assert width[clustered] == pytest.approx(width[single], rel=0.1)
    assert width[repeated] < 0.7 * width[single]
    assert clustered.value == pytest.approx(single.value, abs=0.2 * width[single])


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_few_clusters_are_refused(kind):
    with pytest.raises(cb.InputError, match="at least 10 distinct values"):
        compared(kind, cluster=np.arange(800) % 5)


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_fewer_than_20_rows_or_clusters_show_no_difference(kind):
    for found in (compared(kind, size=15), compared(kind, cluster=np.arange(800) % 15)):
        assert found.verdict == "no difference shown"
        assert found.adjusted == {"right": 1.0}
        assert [note.count for note in found.notes if note.code == "little_information"] == [1]
        assert "nan" not in repr(found)
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", ["multiclass", "ordinal", "labels", "point"])
def test_weights_are_relative(kind):
    w = np.random.default_rng(3).exponential(size=800) + 0.1
    one, ten = (deciding(compared(kind, sample_weight=c * w)) for c in (1, 10))
    assert (one.value, one.low, one.pvalue) == pytest.approx((ten.value, ten.low, ten.pvalue), rel=1e-6)
    equal, none = deciding(compared(kind, sample_weight=np.full(800, 2.0))), deciding(compared(kind))
    assert equal.value == pytest.approx(none.value, rel=0.05)  # weighted bins of classes need enough events
    assert one.high - one.low > equal.high - equal.low  # unequal weights are fewer effective rows


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "distribution"])
def test_frequencies_equal_repeated_rows(kind):
    times = np.arange(800) % 3
    counted = compared(kind, frequency=times)
    repeated = compared(kind, rows=np.repeat(np.arange(800), times))
    for one, other in zip(counted.differences, repeated.differences, strict=True):
        if one.test in ("decides", "paired t test"):
            assert one == other


def test_too_many_rows_by_frequency_are_refused():
    with pytest.raises(cb.InputError, match=r"frequency must add up to at most .*Pass sample_weight"):
        compared("labels", frequency=np.full(800, 10**6))


def test_distributions_have_no_weights():
    with pytest.raises(cb.InputError, match="sample_weight must be omitted with predictive distributions"):
        compared("distribution", sample_weight=np.ones(800))


# Missing values


@pytest.mark.parametrize("kind", ["multiclass", "ordinal", "labels", "point"])
def test_a_row_without_a_forecast_is_dropped_for_all_models(kind):
    y, right, wrong, make = draw(kind, 400)
    holes = [np.array(column, dtype=float) for column in (right, wrong)]
    holes[0][:5], holes[1][3:9] = np.nan, np.nan
    cluster = (np.arange(400) // 4).astype(float)
    cluster[20] = np.nan
    models = {"a": make(holes[0]), "b": make(holes[1])}
    with pytest.raises(cb.InputError, match=r"forecasts\['a'\] has 5 missing values"):
        cb.compare(y, models, **FAST)
    found = cb.compare(y, models, cluster=cluster, missing="drop", **FAST)
    kept = np.delete(np.arange(9, 400), 11)
    complete = cb.compare(y[kept], {"a": make(right[kept]), "b": make(wrong[kept])}, cluster=cluster[kept], **FAST)
    assert deciding(found) == deciding(complete)
    assert {(e.table.n_in, e.table.n_dropped) for e in found.models.values()} == {(400, 10)}
    assert all("missing" in [note.code for note in e.notes] for e in found.models.values())
    assert found.n_rows == 390


def test_missing_outcomes_are_dropped_from_distributions():
    y, right, wrong, make = draw("distribution", 400)
    holes = y.copy()
    holes[[3, 7]] = np.nan
    kept = np.isfinite(holes)
    with pytest.raises(cb.InputError, match="y_true has 2 missing values"):
        cb.compare(holes, {"a": make(right), "b": make(wrong)}, **FAST)
    found = cb.compare(holes, {"a": make(right), "b": make(wrong)}, missing="drop", **FAST)
    complete = cb.compare(y[kept], {"a": make(right[kept]), "b": make(wrong[kept])}, **FAST)
    assert deciding(found) == deciding(complete)
    assert found.models["a"].table.n_dropped == 2


# Bad input


def test_models_of_different_kinds_are_refused():
    y, right, _, _ = draw("point", 50)
    with pytest.raises(
        cb.InputError, match=r"forecasts must be of one kind; got 'a' of kind 'point', 'b' of kind 'distribution'\."
    ):
        cb.compare(y, {"a": cb.Point(right), "b": cb.Gaussian(right, 1.0)})


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("point", {"classes": [0, 1]}),
        ("distribution", {"costs": cb.costs.LinearCost(1, 2)}),
        ("labels", {"costs": cb.costs.LinearCost(1, 2)}),
        ("multiclass", {"pos_label": 1}),
        ("binary", {"classes": [0, 1]}),
    ],
)
def test_options_of_other_kinds_are_refused_in_the_words_of_evaluate(kind, option):
    y, right, _, make = draw(kind, 100)
    with pytest.raises(cb.InputError) as evaluated:
        cb.evaluate(y, make(right), **option)
    with pytest.raises(cb.InputError) as compared_:
        cb.compare(y, {"a": make(right), "b": make(right)}, **option)
    assert str(compared_.value) == str(evaluated.value)
    assert f"must be omitted for forecasts of kind '{kind}'" in str(evaluated.value)


def test_bad_forecasts_are_named():
    y, p, _, _ = draw("multiclass", 50)
    with pytest.raises(cb.InputError, match=r"forecasts\['b'\] must lie in \[0, 1\]"):
        cb.compare(y, {"a": p, "b": 100 * p})
    with pytest.raises(cb.InputError, match=r"forecasts must have the same classes; got \[0, 1, 2\] for 'a'"):
        cb.compare(y % 2, {"a": p, "b": p[:, :2] / p[:, :2].sum(axis=1, keepdims=True)})
    with pytest.raises(cb.InputError, match="must hold labels of the classes 'x', 'y', 'z'"):
        cb.compare(y, {"a": p, "b": p}, classes=["x", "y", "z"])
    with pytest.raises(cb.InputError, match=r"forecasts\['b'\] must hold predicted or actual classes"):
        cb.compare(y, {"a": cb.Labels(y), "b": cb.Labels(p[:, 0])})
    with pytest.raises(cb.InputError, match="forecasts must have the same classes"):
        cb.compare(y, {"a": cb.Labels(y, classes=[0, 1, 2]), "b": cb.Labels(y, classes=[0, 1, 2, 3])})
    x = np.arange(50.0)
    with pytest.raises(cb.InputError, match=r"forecasts\['b'\] must hold finite numbers"):
        cb.compare(x, {"a": cb.Point(x), "b": cb.Point(np.where(x == 3, np.inf, x))})
    with pytest.raises(cb.InputError, match=r"forecasts\['b'\] must have a distribution for each of 50 rows; got 49"):
        cb.compare(x, {"a": cb.Gaussian(x, 1.0), "b": cb.Gaussian(x[:49], 1.0)})
    with pytest.raises(cb.InputError, match=r"at least one common level; got Quantiles with the levels 0\.1 and 0\.5"):
        cb.compare(x, {"a": cb.Quantiles([0.1], x[:, None]), "b": cb.Quantiles([0.5], x[:, None])})
    with pytest.raises(cb.InputError, match="y_true must be a column of outcomes; got a MeanTable"):
        cb.compare(MeanTable.from_arrays(x, x), {"a": cb.Point(x), "b": cb.Point(x)})
    with pytest.raises(cb.InputError, match="forecasts must have distinct names"):
        cb.compare(x, {1: cb.Point(x), "1": cb.Point(x)})


def test_another_metric_may_not_have_the_name_of_a_score():
    y, p, q, _ = draw("multiclass", 60)
    with pytest.raises(cb.InputError, match="metrics must not call another metric 'Brier'"):
        cb.compare(y, {"a": p, "b": q}, metrics={"Brier": cb.ECE()}, **FAST)
    found = cb.compare(y, {"a": p, "b": q}, metrics=["ece"], **FAST)
    assert [d.metric for d in found.differences] == [DECIDES["multiclass"], "Brier", "log loss", "class-wise ECE"]
    assert np.isnan(found.differences[-1].pvalue)


# Classes


def test_permuted_classes_change_nothing():
    y, p, q, _ = draw("multiclass")
    names = np.array(["red", "green", "blue"])
    plain = deciding(cb.compare(names[y], {"a": p, "b": q}, classes=list(names), **FAST))
    order = [2, 0, 1]
    moved = {"a": p[:, order], "b": q[:, order]}
    permuted = deciding(cb.compare(names[y], moved, classes=list(names[order]), **FAST))
    numbers = deciding(cb.compare(y, {"a": p, "b": q}, **FAST))
    for other in (permuted, numbers):
        assert (plain.value, plain.low, plain.pvalue) == pytest.approx((other.value, other.low, other.pvalue), rel=1e-9)


def test_frames_may_have_their_columns_in_different_orders():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    y, p, q, _ = draw("multiclass", 300)
    names = np.array(["red", "green", "blue"])
    a, b = (pandas.DataFrame(each, columns=names) for each in (p, q))
    plain = cb.compare(names[y], {"a": a, "b": b}, **FAST)
    moved = cb.compare(names[y], {"a": a, "b": b[["blue", "red", "green"]]}, **FAST)
    assert deciding(moved).value == pytest.approx(deciding(plain).value, rel=1e-9)
    shuffled = b.sample(frac=1, random_state=0)
    with pytest.raises(cb.InputError, match=r"indexes of forecasts\['a'\] and forecasts\['b'\] differ"):
        cb.compare(names[y], {"a": a, "b": shuffled}, **FAST)


def test_labels_may_be_renamed():
    y, right, wrong, _ = draw("labels", 300)
    names = np.array(["red", "green", "blue"])
    plain = cb.compare(y, {"a": cb.Labels(right), "b": cb.Labels(wrong)})
    named = cb.compare(names[y], {"a": cb.Labels(names[right]), "b": cb.Labels(names[wrong])})
    assert deciding(named).value == pytest.approx(deciding(plain).value, rel=1e-9)
    assert deciding(named).pvalue == pytest.approx(deciding(plain).pvalue, rel=1e-9)


def test_a_class_that_one_model_predicts_belongs_to_all_models():
    y, right, _, _ = draw("labels", 300)
    found = cb.compare(y, {"a": cb.Labels(right), "b": cb.Labels(np.where(right == 0, 7, right))})
    assert {len(e.table.labels) for e in found.models.values()} == {4}
    assert found.verdict == "b is worse calibrated than a"


def test_a_difference_of_few_classes_is_shown():
    """One class of ten is shifted: the highest probability is hardly miscalibrated, and need not be."""
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(size=(4_000, 10)), axis=1)
    y = (rng.random((4_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    q = p * np.where(np.arange(10) == 3, 2.0, 1.0)
    found = cb.compare(y, {"a": p, "b": q / q.sum(axis=1, keepdims=True)}, **FAST)
    assert found.verdict == "b is worse calibrated than a"


def test_the_top_label_may_object():
    clear = PairedDifference(-1.0, 0.01, np.inf)
    assert clear.pvalue < 1e-9
    for value, pvalue in ((1.0, 1.0), (0.1, clear.pvalue), (-1.0, clear.pvalue)):
        objection = PairedDifference(value, 0.01, np.inf)
        assert PairedDifference(-1.0, 0.01, np.inf, objections=(objection,)).pvalue == pvalue


def test_many_classes_are_compared():
    """Beyond 32 classes covariances between classes are bounded, not computed."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3_000, 40))
    p = softmax(z, axis=1)
    y = (rng.random((3_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    models = {"a": p, "b": softmax(1.6 * z, axis=1)}
    one, other = (cb.compare(y, dict(each), n_resamples=9) for each in (models.items(), reversed(models.items())))
    assert one.verdict == "b is worse calibrated than a"
    assert deciding(one).value == pytest.approx(-deciding(other).value)
    assert deciding(one).pvalue == pytest.approx(deciding(other).pvalue)


def test_the_difference_is_that_of_the_squared_log_odds_errors_of_the_evaluations():
    found = compared("multiclass", size=5_000)
    squares = {name: e["class-wise log-odds error"].value ** 2 for name, e in found.models.items()}
    assert deciding(found).value == pytest.approx(squares["right"] - squares["wrong"], abs=0.02 * squares["wrong"])


# Numbers


def test_the_difference_of_bias_is_that_of_the_squared_bias_by_bin_of_the_evaluations():
    found = compared("point", size=5_000)
    squares = {name: e.equivalence.value**2 for name, e in found.models.items()}
    assert deciding(found).value == pytest.approx(squares["right"] - squares["wrong"], abs=0.01 * squares["wrong"])


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_and_origins_of_outcomes_do_not_matter(scale):
    y, right, wrong, _ = draw("point", 500)
    plain = cb.compare(y, {"a": cb.Point(wrong), "b": cb.Point(right)}, **FAST)
    moved = {"a": cb.Point(5 + scale * wrong), "b": cb.Point(5 + scale * right)}
    scaled = cb.compare(5 + scale * y, moved, **FAST)
    assert deciding(scaled).value == pytest.approx(deciding(plain).value, rel=1e-6)
    assert deciding(scaled).pvalue == pytest.approx(deciding(plain).pvalue, rel=1e-5)


def test_errors_that_do_not_vary_are_compared():
    y = np.random.default_rng(0).normal(size=200)
    found = cb.compare(y, {"exact": cb.Point(y), "shifted": cb.Point(y + 1)}, **FAST)
    assert found.verdict == "shifted is worse calibrated than exact"
    rounded = cb.compare(y, {"one": cb.Point(y + 1), "other": cb.Point((3 * y + 3) / 3)}, **FAST)
    assert rounded.verdict == "no difference shown"


def test_too_skewed_errors_show_no_difference():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = x + rng.lognormal(0, 3, 300)
    found = cb.compare(y, {"a": cb.Point(x), "b": cb.Point(x + 50)}, **FAST)
    assert found.verdict == "no difference shown"
    assert "skewed" in [note.code for note in found.notes]
    assert "nan" not in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_distributions_of_different_types_are_compared():
    y, right, wrong, _ = draw("distribution", 600)
    rng = np.random.default_rng(1)
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    models = {
        "shifted": cb.Gaussian(wrong, 1.0),
        "normal": stats.norm(right, 1.0),
        "quantiles": cb.Quantiles(levels, right[:, None] + stats.norm.ppf(levels)),
        "samples": cb.Samples(rng.normal(right[:, None], 1.0, (600, 30))),
    }
    found = cb.compare(y, models)
    assert found.verdict == "normal, quantiles and samples are better calibrated than shifted"
    by_model = {d.model: d for d in found.from_baseline}
    assert by_model["normal"].value == pytest.approx(by_model["quantiles"].value)
    tested = {d.metric: d for d in found.differences if d.test == "paired t test" and d.model == "normal"}
    assert list(tested) == ["pinball loss"]
    losses = [
        np.mean([cb.regression.pinball(y, cb.Gaussian(mean, 1.0).quantile(level), level=level) for level in levels])
        for mean in (right, wrong)
    ]
    assert tested["pinball loss"].value == pytest.approx(losses[0] - losses[1])
    assert "CRPS" not in [d.metric for d in found.differences]
    without = {name: model for name, model in models.items() if name != "quantiles"}
    assert "CRPS" in [d.metric for d in cb.compare(y, without).differences if d.test == "paired t test"]


def test_a_frozen_normal_equals_a_gaussian():
    y, right, wrong, _ = draw("distribution", 400)
    one = cb.compare(y, {"a": cb.Gaussian(wrong, 1.0), "b": cb.Gaussian(right, 1.0)})
    other = cb.compare(y, {"a": stats.norm(wrong, 1.0), "b": stats.norm(right, 1.0)})
    for metric in ("coverage error", "CRPS", "NLL"):
        values = [next(d.value for d in each.differences if d.metric == metric) for each in (one, other)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_quantiles_with_the_same_levels_are_compared_by_crps():
    y, right, wrong, _ = draw("distribution", 400)
    levels = np.array([0.25, 0.5, 0.75])
    models = {n: cb.Quantiles(levels, m[:, None] + stats.norm.ppf(levels)) for n, m in (("a", right), ("b", wrong))}
    found = cb.compare(y, models)
    assert found.verdict == "b is worse calibrated than a"
    assert [d.metric for d in found.differences if d.test] == ["coverage error", "CRPS"]


def test_certain_probabilities_show_no_difference():
    y, p, _, _ = draw("multiclass", 300)
    found = cb.compare(y, {"a": p, "b": np.eye(3)[p.argmax(axis=1)]}, **FAST)
    assert found.verdict == "no difference shown"
    assert [d.value for d in found.differences if d.metric == "log loss"] == [np.inf]
    assert "little_information" in [note.code for note in found.notes]
    assert "nan" not in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_missing_labels_of_text_are_dropped():
    y, right, wrong, _ = draw("labels", 300)
    names = np.array(["red", "green", "blue"], dtype=object)
    a, b = names[right], names[wrong]
    a[4], b[7] = None, None
    found = cb.compare(list(names[y]), {"a": cb.Labels(list(a)), "b": cb.Labels(list(b))}, missing="drop")
    assert (found.n_rows, found.models["a"].table.n_dropped) == (298, 2)


def test_an_infinite_log_score_is_not_compared():
    y, right, _, _ = draw("distribution", 300)
    found = cb.compare(y, {"a": cb.Gaussian(right, 1.0), "b": stats.uniform(right - 1, 2)})
    assert "NLL" not in [d.metric for d in found.differences if d.test]
    json.dumps(found.to_dict(), allow_nan=False)


def test_losses_are_compared_row_by_row():
    y, right, wrong, _ = draw("point", 300)
    found = {d.metric: d for d in compared("point", size=300).differences}
    each = (right - y) ** 2 - (wrong - y) ** 2
    test = stats.ttest_1samp(each, 0)
    assert (found["MSE"].value, found["MSE"].pvalue) == pytest.approx((each.mean(), test.pvalue))
    sums = np.bincount(np.arange(300) // 10, each - each.mean())
    clustered = mean_difference((right - y) ** 2, (wrong - y) ** 2, None, np.arange(300) // 10)
    assert clustered.variance == pytest.approx(30 / 29 * (sums @ sums) / 300**2)
    assert mean_difference(np.array([1.0, np.inf]), np.zeros(2)).pvalue == 1


# Results


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("multiclass", "Squared class-wise log-odds error of right minus that of wrong: -"),
        ("multiclass", "p-value of the tests of class-wise log-odds errors and class-wise squared gaps."),
        ("multiclass", "The p-value is the larger of two tests"),
        ("multiclass", "No difference is shown if the squared gaps of the top label differ significantly"),
        ("labels", "Better calibrated means that classes are predicted in proportions nearer"),
        ("point", "Better calibrated means a smaller bias by bin"),
        ("distribution", "Better calibrated means a smaller coverage error"),
    ],
)
def test_sentences_name_the_meaning_of_the_kind(kind, words):
    found = compared(kind, size=400)
    for text in (repr(found), found._repr_html_()):
        assert words in text
        assert "nan" not in text


@each_kind
def test_results_follow_the_protocol(kind):
    found = compared(kind, size=400)
    again = pickle.loads(pickle.dumps(found))
    assert (again.verdict, repr(again.differences)) == (found.verdict, repr(found.differences))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["kind"], plain["decides"], plain["baseline"]) == (kind, DECIDES[kind], "wrong")
    assert next(iter(found.tests)) == f"right: {DECIDES[kind]}"
    pytest.importorskip("pandas", reason="needs pandas")
    frame = found.to_frame()
    row = frame[(frame["model"] == "right") & (frame["metric"] == DECIDES[kind])]
    assert row["difference_value"].tolist() == [deciding(found).value]
    assert row["rows"].tolist() == [400]


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_comparisons_are_drawn_and_reported(kind):
    for library in ("matplotlib", "jinja2", "pandas"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    import xml.etree.ElementTree as ET

    from matplotlib.figure import Figure

    found = compared(kind, size=400)
    drawn = found.plot(fig=Figure(figsize=(12, 7)))
    assert [line.get_xdata()[0] for line in drawn.differences_] == [d.value for d in found.deciding]
    assert drawn.alt_text().startswith("right is better calibrated than wrong. Squared ")
    ids = [e.get("id") for e in ET.fromstring(cb.plots.svg(drawn)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    page = found.to_html()
    assert "right is better calibrated than wrong." in page
    assert DECIDES[kind] in page
    if kind == "point":  # the page of all kinds is made alike
        assert page == found.to_html()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("point", "but shifted has the lower MSE (difference +"),
        ("distribution", "but shifted has the lower CRPS (difference +"),
        ("labels", "but shifted has the higher accuracy (difference -"),
        ("multiclass", "but shifted has the lower Brier score (difference +"),
    ],
)
def test_a_disagreement_with_the_score_is_stated(kind, sentence):
    """A model without skill is calibrated; the other one is miscalibrated and has skill."""
    y, right, _, make = draw(kind, 3_000)
    rng = np.random.default_rng(5)
    if kind == "multiclass":
        shares = np.bincount(y) / y.size
        models = {"shifted": right * [1.6, 1, 1] / (right * [1.6, 1, 1]).sum(axis=1, keepdims=True)}
        models["plain"] = np.tile(shares, (y.size, 1))
    elif kind == "labels":
        models = {"shifted": np.where((right == 0) & (rng.random(y.size) < 0.3), 1, right), "plain": rng.permutation(y)}
    else:
        models = {"shifted": right + 0.3, "plain": np.zeros(y.size)}
    if kind == "distribution":
        make = {"shifted": lambda m: cb.Gaussian(m, 1.0), "plain": lambda m: cb.Gaussian(m, np.sqrt(2))}
        found = cb.compare(y, {name: make[name](m) for name, m in models.items()})
    else:
        found = cb.compare(y, {name: make(m) for name, m in models.items()}, **FAST)
    assert found.verdict == "plain is better calibrated than shifted"
    (text,) = found.disagreements()
    assert text.startswith("plain is better calibrated than shifted, " + sentence)
    assert text in repr(found)


# The tests of squared deviations


def slow_cells(error, cell, weight, cluster):
    """Mean errors of cells, their weights, and their covariance, by loops over units."""
    cells = sorted(set(cell.tolist()))
    total = np.array([sum(w for w, c in zip(weight, cell, strict=True) if c == b) for b in cells])
    d = np.array([sum(w * e for w, e, c in zip(weight, error, cell, strict=True) if c == b) for b in cells]) / total
    units = {}
    for i, unit in enumerate(cluster):
        b = cells.index(cell[i])
        units.setdefault(unit, np.zeros(len(cells)))[b] += weight[i] * (error[i] - d[b]) / total[b]
    return d, total / total.sum(), sum(np.outer(u, u) for u in units.values())


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_deviation_of_cells_equals_that_of_loops(clustered, weighted):
    rng = np.random.default_rng(0)
    error, cell = rng.normal(0.3, 1, 200), rng.integers(0, 4, 200)
    weight = rng.exponential(size=200) + 0.1 if weighted else np.ones(200)
    cluster = rng.permutation(np.arange(200) % 40) if clustered else np.arange(200)
    rows = SampledRows(200, weight if weighted else None, cluster if clustered else None)
    found = cell_deviation([CellErrors(error, cell)], rows)
    d, share, covariance = slow_cells(error, cell, weight, cluster)
    assert found.observed == pytest.approx(share @ d**2)
    if clustered:
        unbiased = np.full(4, rows.correction)
    else:
        effective = np.array([weight[cell == b].sum() ** 2 / (weight[cell == b] ** 2).sum() for b in range(4)])
        unbiased = effective / (effective - 1)
    assert found.value == pytest.approx(share @ d**2 - share @ (np.diag(covariance) * unbiased))
    assert found.influence.sum() == pytest.approx(0, abs=1e-12)
    assert found.influence.size == (40 if clustered else 200)
    scale = np.sqrt(share * unbiased)
    assert found.own_square == pytest.approx(np.sum((covariance * np.outer(scale, scale)) ** 2))


def test_the_influence_is_the_derivative_of_the_value():
    rng = np.random.default_rng(1)
    error, cell, size = rng.normal(0.5, 1, 60), rng.integers(0, 3, 60), rng.random(60) + 0.5
    weight = np.full(60, 1.0)

    def observed(w):
        return cell_deviation([CellErrors(error, cell, size)], SampledRows(60, w)).observed

    influence = cell_deviation([CellErrors(error, cell, size)], SampledRows(60, weight)).influence
    step = 1e-6
    slopes = [(observed(weight + step * (np.arange(60) == i)) - observed(weight)) / step for i in range(60)]
    assert influence == pytest.approx(slopes, abs=1e-6)


def test_the_deviation_of_shares_equals_that_of_loops():
    rng = np.random.default_rng(0)
    levels = np.array([0.2, 0.5, 0.7])
    hits = (rng.random((150, 1)) <= levels + 0.1).astype(float)
    found = share_deviation(hits, levels, SampledRows(150))
    covariance = np.cov(hits.T) / 150
    d = hits.mean(axis=0) - levels
    assert found.observed == pytest.approx(np.mean(d**2))
    assert found.value == pytest.approx(np.mean(d**2 - np.diag(covariance)))
    assert found.own_square == pytest.approx(np.sum(covariance**2) / 9)
    assert found.influence @ found.influence == pytest.approx(4 * d @ covariance @ d / 9 * 149 / 150)


def test_covariances_between_two_models_enter_the_variance():
    """The variance of the difference of two calibrated models is 2 tr((W C)^2) with the joint covariance C."""
    rng = np.random.default_rng(2)
    levels = np.array([0.3, 0.6])
    one = (rng.random((400, 1)) <= levels).astype(float)
    other = np.where(rng.random((400, 1)) < 0.5, one, (rng.random((400, 1)) <= levels).astype(float))
    rows = SampledRows(400)
    found = deviation_difference(share_deviation(one, levels, rows), share_deviation(other, levels, rows), rows)
    joint = np.cov(np.hstack([one, other]).T) / 400
    w = np.diag([0.5, 0.5, -0.5, -0.5])
    d = np.concatenate([one.mean(axis=0) - levels, other.mean(axis=0) - levels])
    second = 2 * np.trace(w @ joint @ w @ joint)
    assert found.value == pytest.approx(d @ w @ d - np.trace(w @ joint))
    assert found.variance >= max(second, 4 * d @ w @ joint @ w @ d - second) * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["point", "distribution", "labels", "3 classes"])
def test_equally_miscalibrated_models_differ_in_5_percent(kind):
    """The full study is research/studies/comparisons_of_kinds.py; here pairs that deviate to opposite sides."""
    from research.studies import comparisons_of_kinds as study

    pair = {
        "point": "opposite shifts",
        "distribution": "opposite shifts",
        "labels": "equal differences, one more accurate",
        "3 classes": "different classes shifted",
    }[kind]
    sets = 120 if kind == "3 classes" else 300
    shown = study.cell(study.KINDS[kind][0]["size"][pair], 500, "independent", sets).sum()
    assert shown <= stats.binom.ppf(0.999, sets, 0.05)
