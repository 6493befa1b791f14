"""Comparison of several models: the baseline, all pairs, the ranking with its best set, non-inferiority, units."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

import calibrant as cb
from calibrant.inference.model_pairs import ComparisonPlan, all_pairs
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import PairedDifference, SquaredPair, mean_difference
from tests.evaluation.test_compare_kinds import DECIDES, FAST, draw

KINDS = list(DECIDES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def scores(size=3_000, seed=0):
    """Outcomes of probabilities, and four models: calibrated, shifted a little, more, and much."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.2, size)
    y = (rng.random(size) < expit(x)).astype(int)
    return y, {"much": expit(x + 1.5), "none": expit(x), "more": expit(x + 0.8), "little": expit(x + 0.1)}


def three(kind, size=400, **options):
    y, right, wrong, make = draw(kind, size)
    return cb.compare(y, {"wrong": make(wrong), "right": make(right), "again": make(wrong)}, **FAST | options)


# Baseline and pairs


@each_kind
def test_all_pairs_are_compared_without_a_baseline(kind):
    found = three(kind)
    assert [(d.model, d.baseline) for d in found.deciding] == [
        ("right", "wrong"),
        ("again", "wrong"),
        ("again", "right"),
    ]
    assert [d.adjusted_pvalue for d in found.deciding] == pytest.approx(holm([d.pvalue for d in found.deciding]))
    first, equal, last = found.deciding
    assert (equal.value, equal.pvalue) == (pytest.approx(0, abs=1e-12), 1)
    assert last.value == pytest.approx(-first.value)
    assert last.pvalue == pytest.approx(first.pvalue)
    assert found.is_all_pairs
    assert list(found.adjusted) == ["right", "again"]
    assert f"again - right: {found.decides}" in found.tests


@each_kind
def test_a_baseline_is_compared_with_every_other_model(kind):
    found = three(kind, baseline="right")
    assert [(d.model, d.baseline) for d in found.deciding] == [("wrong", "right"), ("again", "right")]
    assert found.baseline == next(iter(found.models)) == "right"
    assert not found.is_all_pairs
    assert found.verdict == "wrong and again are worse calibrated than right"
    assert found.deciding[0].adjusted_pvalue == pytest.approx(2 * found.deciding[0].pvalue)
    assert found.deciding[0].pvalue == pytest.approx(three(kind).deciding[0].pvalue)


def test_two_models_need_no_adjustment_with_or_without_a_baseline():
    y, models = scores()
    two = {name: models[name] for name in ("more", "none")}
    plain, named = (cb.compare(y, two, baseline=name, **FAST) for name in (None, "more"))
    assert plain.differences == named.differences
    assert plain.verdict == named.verdict == "none is better calibrated than more"
    assert plain.deciding[0].adjusted_pvalue == plain.deciding[0].pvalue


def test_the_baseline_must_be_a_model():
    y, models = scores(200)
    with pytest.raises(cb.InputError, match="baseline must name a model; got 'other', and the models are 'much', 'non"):
        cb.compare(y, models, baseline="other")
    numbers = cb.compare(y, {1: models["none"], 2: models["more"]}, baseline=2, **FAST)
    assert numbers.baseline == "2"


# Ranking and best set


def slow_best_set(found, alpha):
    """The models that no pair shows to be worse, by Holm over all pairs, hypothesis by hypothesis."""
    pairs = sorted(found.deciding, key=lambda d: d.pvalue)
    out = set()
    for i, d in enumerate(pairs):
        if d.pvalue * (len(pairs) - i) > alpha:
            break
        out.add(d.model if d.value > 0 else d.baseline)
    return [name for name in found.models if name not in out]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_set_has_the_models_that_no_pair_shows_to_be_worse(seed):
    y, models = scores(1_200, seed)
    found = cb.compare(y, models, **FAST)
    assert sorted(found.best) == sorted(slow_best_set(found, 0.05))
    assert found.ranked[0].is_best_set
    for model in found.ranked:
        worse = [d.adjusted_pvalue for d in found.deciding if (d.model if d.value > 0 else d.baseline) == model.model]
        assert model.pvalue == min([1.0, *worse])


def test_the_ranking_is_a_frame_of_models_by_their_estimates():
    pytest.importorskip("pandas", reason="needs pandas")
    y, models = scores()
    found = cb.compare(y, models, **FAST)
    frame = found.ranking
    assert frame["rank"].tolist() == [1, 2, 3, 4]
    assert sorted(frame["model"].tolist()[:2]) == ["little", "none"]
    assert frame["model"].tolist()[2:] == ["more", "much"]
    assert frame["is_best_set"].tolist() == [True, True, False, False]
    assert sorted(found.best) == ["little", "none"]
    assert set(frame["difference_unit"]) == {"squared log-odds"}
    assert frame["estimate"].is_monotonic_increasing
    for row in frame.itertuples():
        assert row.estimate == pytest.approx(found.models[row.model]["log-odds error"].value, abs=0.02)
        squared = row.estimate**2 - frame["estimate"][0] ** 2
        if frame["estimate"][0] > 0:
            assert row.difference == pytest.approx(squared, abs=1e-12)


def test_intervals_of_the_ranking_hold_for_all_pairs_together():
    y, models = scores()
    found = cb.compare(y, models, **FAST)
    best = found.ranked[0].model
    pairs = {frozenset((d.model, d.baseline)): d for d in found.deciding}
    wider = stats.norm.ppf(1 - 0.025 / 6) / stats.norm.ppf(0.975)
    assert math.isnan(found.ranked[0].low)
    for model in found.ranked[1:]:
        d = pairs[frozenset((model.model, best))]
        assert abs(model.difference) == pytest.approx(abs(d.value))
        assert model.high - model.low == pytest.approx(wider * (d.high - d.low))
        assert model.low < model.difference < model.high


def test_a_baseline_that_is_shown_to_be_better_excludes_a_model_from_the_best_set():
    """Two p-values of 0.02: with a baseline 2 x 0.02 <= 0.05, for all pairs 3 x 0.02 > 0.05."""
    value = stats.norm.isf(0.01)
    squares = [SquaredPair((v, 0.0), 1.0, 1.0, 0.0) for v in (value, value, 0.0)]
    found = [PairedDifference(v, 1.0, math.inf, squares=s) for v, s in zip((value, value, 0.0), squares, strict=True)]
    tests = dict(zip(all_pairs(3), found, strict=True))
    y, models = scores(200)
    given = cb.compare(y, dict(itertools.islice(models.items(), 2)), **FAST)
    for is_all, best in ((True, ["a", "b", "c"]), (False, ["a"])):
        plan = ComparisonPlan(["a", "b", "c"], is_all, {})
        name = given.terms.decides
        differences = plan.differences(name, tests, 0.95, test="decides")
        fields = plan.finish(differences, {name: tests}, given.terms, given.settings, {})
        assert [each.model for each in fields["ranked"] if each.is_best_set] == best


@each_kind
def test_every_kind_is_ranked(kind):
    found = three(kind)
    assert [each.rank for each in found.ranked] == [1, 2, 2]
    assert found.best == ("right",)
    assert found.ranked[0].model == "right"
    text = repr(found)
    assert f"Ranking by the {found.terms.quantity}: right (" in text
    assert "Not shown to be worse than another model: right. This set contains the best calibrated model" in text
    assert found.verdict == "right is better calibrated than wrong and again"


def test_models_without_a_deviation_are_last_and_not_shown_to_be_worse():
    y, models = scores(600)
    found = cb.compare(y, {"certain": (models["none"] > 0.5) * 1.0, **models}, **FAST)
    assert found.ranked[-1].model == "certain"
    assert math.isnan(found.ranked[-1].estimate)
    assert found.ranked[-1].is_best_set
    assert "nan" not in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_verdict_on_many_models_names_the_best_set():
    y, models = scores()
    several = models | {f"{i} more": 1 - (1 - models["much"]) ** i for i in (2, 3)}
    found = cb.compare(y, several, metrics=["brier"], **FAST)
    assert sorted(found.best) == ["little", "none"]
    assert found.verdict == (
        f"{found.best[0]} and {found.best[1]} are not shown to be worse calibrated than another model; 4 others are"
    )
    assert found.direction == "better"
    same = cb.compare(y, {str(i): models["none"] for i in range(6)}, metrics=["brier"], **FAST)
    assert same.verdict == "no difference shown"


def test_reports_have_the_ranking_and_the_tests_of_non_inferiority():
    for library in ("matplotlib", "jinja2"):
        pytest.importorskip(library, reason=f"needs {library}")
    y, models = scores(600)
    page = cb.compare(y, models, baseline="none", non_inferiority=0.3, **FAST).to_html()
    assert "<h3>Ranking</h3>" in page
    assert "CI, all pairs together" in page
    assert "Differences from none on the same rows" in page
    assert "is not worse than none by more than 0.3 in log-odds error: " in page
    pairs = cb.compare(y, models, **FAST).to_html()
    assert "Differences of all pairs on the same rows" in pairs
    two = cb.compare(y, {"a": models["none"], "b": models["much"]}, **FAST).to_html()
    assert "<h3>Ranking</h3>" not in two


# Units


@pytest.mark.parametrize(
    ("kind", "unit"),
    {
        "binary": "squared log-odds",
        "multiclass": "squared log-odds",
        "ordinal": "squared log-odds",
        "labels": "squared proportion",
        "point": "squared standard deviations of the outcome",
        "distribution": "squared coverage",
    }.items(),
)
def test_differences_have_units(kind, unit):
    pytest.importorskip("pandas", reason="needs pandas")
    found = three(kind)
    frame = found.to_frame()
    units = dict(zip(frame["metric"], frame["difference_unit"], strict=True))
    assert found.deciding[0].unit == units[found.decides] == unit
    assert set(frame[frame["model"] == "wrong"]["difference_unit"]) == {""}


def test_percentages_differ_by_points():
    y, models = scores()
    found = cb.compare(y, {"none": models["none"], "much": models["much"]}, **FAST)
    (d,) = (d for d in found.differences if d.metric == "TCE")
    assert d.unit == "points of TCE"
    assert d.cells()[0] == f"{d.value:+.1f} points"
    assert "%" not in d.cells()[0]


# Infinite losses


def test_one_infinite_log_loss_leaves_the_other_pairs():
    y, models = scores(500)
    excluded = models["more"].copy()
    excluded[np.flatnonzero(y)[:2]] = 0.0
    several = {"none": models["none"], "excluded": excluded, "much": models["much"]}
    found = cb.compare(y, several, **FAST)
    losses = {(d.model, d.baseline): d for d in found.differences if d.metric == "log loss"}
    assert losses["excluded", "none"].value == np.inf
    assert losses["much", "excluded"].value == -np.inf
    without = cb.compare(y, {name: several[name] for name in ("none", "much")}, **FAST)
    (plain,) = (d for d in without.differences if d.metric == "log loss")
    kept = losses["much", "none"]
    assert (kept.value, kept.low, kept.pvalue, kept.adjusted_pvalue) == (
        plain.value,
        plain.low,
        plain.pvalue,
        plain.adjusted_pvalue,
    )
    (note,) = (note for note in found.notes if note.code == "infinite_loss")
    assert note.count == 1
    assert "Models whose mean log loss is infinite: 1 (excluded)." in note.text
    json.dumps(found.to_dict(), allow_nan=False)


def test_two_infinite_log_losses_have_no_difference():
    y, models = scores(500)
    excluded = {name: models[name].copy() for name in ("none", "more")}
    for score in excluded.values():
        score[np.flatnonzero(y)[0]] = 0.0
    found = cb.compare(y, {**excluded, "much": models["much"]}, **FAST)
    values = {(d.model, d.baseline): d.value for d in found.differences if d.metric == "log loss"}
    assert values == {("much", "none"): -np.inf, ("much", "more"): -np.inf}
    assert [note.count for note in found.notes if note.code == "infinite_loss"] == [2]
    assert "nan" not in repr(found)


@pytest.mark.parametrize("kind", ["multiclass", "ordinal"])
def test_infinite_log_losses_of_classes_are_kept_apart(kind):
    y, right, wrong, make = draw(kind, 400)
    excluded = right.copy()
    excluded[0] = np.eye(3)[(y[0] + 1) % 3]
    found = cb.compare(y, {"right": make(right), "excluded": make(excluded), "wrong": make(wrong)}, **FAST)
    values = {(d.model, d.baseline): d.value for d in found.differences if d.metric == "log loss"}
    assert values["excluded", "right"] == np.inf
    assert math.isfinite(values["wrong", "right"])
    assert "infinite_loss" in [note.code for note in found.notes]


# Non-inferiority


def slow_pvalue(differences, limit):
    """p-value of "the mean is at least the limit" by Hall's transformation of Student's statistic."""
    n, away = differences.size, differences - differences.mean()
    skewness = np.mean(away**3) / np.mean(away**2) ** 1.5
    t = (differences.mean() - limit) / differences.std(ddof=1) * math.sqrt(n)
    a = skewness / (3 * math.sqrt(n))
    return stats.t.cdf(t + a * t**2 + a**2 * t**3 / 3 + a / 2, n - 1)


def slow_bound(differences, level):
    """The limit whose p-value is 1 - level."""
    return brentq(lambda limit: slow_pvalue(differences, limit) - (1 - level), -1, 1, xtol=1e-14)


def test_losses_are_not_worse_if_the_bound_is_below_the_margin():
    y, models = scores(800)
    p, q = models["none"], models["little"]
    two = {"champion": p, "challenger": q}
    bound = slow_bound((q - y) ** 2 - (p - y) ** 2, 0.95)
    for margin, shown in ((bound + 1e-7, True), (bound - 1e-7, False)):
        found = cb.compare(y, two, baseline="champion", non_inferiority={"brier": margin}, **FAST)
        (test,) = found.non_inferiority
        assert test.bound == pytest.approx(bound)
        assert (test.metric, test.limit, test.level) == ("Brier", margin, 0.95)
        assert found.passed is test.is_shown is shown
        assert test.pvalue == pytest.approx(0.05, abs=1e-3)
        assert ("Not shown that challenger is not worse than champion" in repr(found)) is not shown
    assert cb.compare(y, two, **FAST).passed is None


def test_skewed_losses_are_called_not_worse_in_5_percent():
    """Differences of losses as of an overconfident challenger, 100 rows; Student's test has an error of 8 %."""
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=(4_000, 100)) ** 1.2
    mean = math.gamma(2.2)
    pvalues = [mean_difference(row, np.zeros(100)).below(mean, 0.95)[1] for row in losses]
    plain = stats.ttest_1samp(losses, mean, axis=1, alternative="less").pvalue
    assert np.mean(plain <= 0.05) > 0.075
    assert np.mean(np.array(pvalues) <= 0.05) < 0.07
    assert pvalues[:50] == pytest.approx([slow_pvalue(row, mean) for row in losses[:50]])


def test_a_margin_alone_is_that_of_the_deciding_metric_and_is_squared():
    y, models = scores()
    found = cb.compare(y, models, baseline="none", non_inferiority=0.4, **FAST)
    by_model = {each.model: each for each in found.non_inferiority}
    assert {each.metric for each in found.non_inferiority} == {"log-odds error"}
    assert {name: each.is_shown for name, each in by_model.items()} == {"much": False, "more": False, "little": True}
    assert by_model["little"].limit == pytest.approx(0.16)
    assert by_model["little"].unit == "squared log-odds"
    assert [each.adjusted_pvalue for each in found.non_inferiority] == pytest.approx(
        holm([each.pvalue for each in found.non_inferiority])
    )
    assert found.passed is False
    assert "the difference of the squared log-odds error is " in by_model["little"].sentence()
    assert "and the limit is 0.4^2 = 0.16; p = " in by_model["little"].sentence()


@each_kind
def test_every_kind_has_non_inferiority(kind):
    y, right, wrong, make = draw(kind, 2_000)
    models = {"champion": make(right), "same": make(right)}
    large = cb.compare(y, models, baseline="champion", non_inferiority=0.3, **FAST)
    assert large.passed
    worse = cb.compare(
        y, {"champion": make(right), "worse": make(wrong)}, baseline="champion", non_inferiority=0.01, **FAST
    )
    assert not worse.passed
    better = cb.compare(y, {"a": make(right), "b": make(wrong)}, baseline="b", non_inferiority=0.01, **FAST)
    assert better.passed


def test_higher_accuracy_is_better():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2_000)
    good = cb.Labels(np.where(rng.random(2_000) < 0.9, y, 1 - y))
    bad = cb.Labels(np.where(rng.random(2_000) < 0.8, y, 1 - y))
    for models, shown in (({"a": good, "b": bad}, False), ({"a": bad, "b": good}, True)):
        found = cb.compare(y, models, baseline="a", non_inferiority={"accuracy": 0.02})
        (test,) = found.non_inferiority
        assert found.passed is shown
        assert test.limit == -0.02
        assert test.bound < test.value
        assert "at least" in test.sentence()


@pytest.mark.parametrize("option", ["cluster", "time", "sample_weight", "frequency"])
def test_non_inferiority_takes_the_options_of_rows(option):
    y, models = scores(1_200)
    column = {
        "cluster": np.arange(1_200) // 10,
        "time": np.arange(1_200),
        "sample_weight": np.random.default_rng(0).exponential(size=1_200) + 0.1,
        "frequency": np.arange(1_200) % 3 + 1,
    }[option]
    two = {"champion": models["none"], "challenger": models["little"]}
    margins = {"log loss": 0.05, "log-odds error": 0.5}
    found = cb.compare(y, two, baseline="champion", non_inferiority=margins, **{option: column}, **FAST)
    assert found.passed
    if option == "frequency":
        repeated = {name: np.repeat(p, column) for name, p in two.items()}
        same = cb.compare(np.repeat(y, column), repeated, baseline="champion", non_inferiority=margins, **FAST)
        assert found.non_inferiority == same.non_inferiority
    elif option != "time":
        plain = cb.compare(y, two, baseline="champion", non_inferiority=margins, **FAST)
        assert found.non_inferiority[0].bound != plain.non_inferiority[0].bound


def test_infinite_losses_decide_non_inferiority():
    y, models = scores(500)
    excluded = models["none"].copy()
    excluded[np.flatnonzero(y)[0]] = 0.0
    for names, shown in ((("finite", "infinite"), False), (("infinite", "finite"), True)):
        both = {"finite": models["none"], "infinite": excluded}
        found = cb.compare(y, {n: both[n] for n in names}, baseline=names[0], non_inferiority={"log loss": 0.1}, **FAST)
        assert found.passed is shown
        json.dumps(found.to_dict(), allow_nan=False)


def test_little_information_shows_no_non_inferiority():
    y, models = scores(40)
    two = {"a": models["none"], "b": models["none"]}
    found = cb.compare(y, two, baseline="a", non_inferiority=5.0, **FAST)
    assert not found.passed
    assert "bound" not in found.non_inferiority[0].sentence()


def test_squares_that_are_small_by_chance_have_the_variance_of_the_limit():
    pair = SquaredPair((0.0, 0.0), first=4e-6, observed=0.002, further=1e-6)
    assert pair.at(0.001) == pytest.approx(4e-6 + 1e-6)
    assert pair.at(0.01) == pytest.approx(5 * 4e-6 + 1e-6)
    found = PairedDifference(0.0, 1e-6, math.inf, squares=pair)
    bound, pvalue = found.below(0.01, 0.95)
    assert bound == pytest.approx(stats.norm.ppf(0.95) * math.sqrt(21e-6))
    assert pvalue == pytest.approx(stats.norm.sf(0.01 / math.sqrt(21e-6)))


@pytest.mark.parametrize("given", [0, -0.1, True, math.nan, math.inf, "0.1", {"Brier": 0}, {1: 0.1}, {}])
def test_bad_margins_are_refused(given):
    y, models = scores(100)
    with pytest.raises(cb.InputError, match="non_inferiority must "):
        cb.compare(y, models, baseline="none", non_inferiority=given)


def test_margins_need_a_baseline_and_a_metric_with_a_test():
    y, models = scores(100)
    with pytest.raises(cb.InputError, match="baseline must be given with non_inferiority; got none"):
        cb.compare(y, models, non_inferiority=0.1)
    with pytest.raises(cb.InputError, match="paired test: 'log-odds error', 'Brier', 'log loss'; got 'ECE'"):
        cb.compare(y, models, baseline="none", non_inferiority={"ECE": 0.1}, **FAST)


@pytest.mark.parametrize(("by", "events"), [(0.3, 0.0), (-0.3, -3.0)])
def test_at_the_margin_a_model_is_called_not_worse_in_5_percent(by, events):
    """Errors of exactly the margin, 300 data sets; the full study is research/studies/model_selection.py."""
    from calibrant.inference.paired import ModelPair, log_odds_difference
    from calibrant.inference.paired_rows import PairedRows

    shown = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.normal(events, 1.2, 2_000)
        y = (rng.random(2_000) < expit(x)).astype(int)
        rows, tables = PairedRows.read(y, [expit(x + by), expit(x)])
        shown += log_odds_difference(ModelPair(rows, tables, 0, 1)).below(by**2, 0.95)[1] <= 0.05
    assert shown <= 27  # exceeded with a probability of 0.1 % where the error rate is 5 %
