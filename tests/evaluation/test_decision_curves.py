"""Net benefit: values of dcurves, laws, intervals, clusters, costs and errors."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant import decision_curve

DCURVES = json.loads((Path(__file__).parents[1] / "golden" / "dcurves.json").read_text())


def simulated(size=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-1, 1.2, size))
    return (rng.random(size) < p).astype(int), p


def published_rows():
    """Rows with the decisions of the published example at its thresholds: the counts of each run of scores."""
    tp = np.rint(np.array([DCURVES["events"] / DCURVES["n"], *DCURVES["true_positive_rate"], 0]) * DCURVES["n"])
    fp = np.rint(np.array([1 - tp[0] / DCURVES["n"], *DCURVES["false_positive_rate"], 0]) * DCURVES["n"])
    score, y = [], []
    for i, at in enumerate([0.0, *DCURVES["threshold"]]):
        for outcome, counts in ((1, tp), (0, fp)):
            many = int(counts[i] - counts[i + 1])
            score += [at] * many
            y += [outcome] * many
    return np.array(y), np.array(score)


def test_net_benefit_equals_dcurves():
    y, p = published_rows()
    curve = decision_curve(y, p, thresholds=DCURVES["threshold"])
    assert y.size == 750
    assert curve["model"].value == pytest.approx(DCURVES["net_benefit"], abs=1e-12)
    assert curve["treat all"].value == pytest.approx(DCURVES["treat_all"], abs=1e-12)


def test_net_benefit_equals_a_loop_over_rows():
    y, p = simulated(500)
    for t in (0.1, 0.35, 0.8):
        hits = sum(1 for a, b in zip(y, p, strict=True) if b >= t and a)
        alarms = sum(1 for a, b in zip(y, p, strict=True) if b >= t and not a)
        want = (hits - alarms * t / (1 - t)) / y.size
        assert decision_curve(y, p, thresholds=[t])["model"].value[0] == pytest.approx(want)
        cost = cb.costs.LinearCost(over=t, under=1 - t)
        assert cb.decisions(y, p, cost=cost, n_resamples=20).lines[0].net_benefit == pytest.approx(want)


def test_interval_equals_statsmodels_for_a_mean():
    """Less the pseudo-rows it is the normal interval of the mean of the benefits of rows."""
    y, p = simulated(2000)
    t = 0.3
    benefit = (p >= t) * (y - (1 - y) * t / (1 - t))
    spread = np.sum((benefit - benefit.mean()) ** 2) + 1 + (t / (1 - t)) ** 2
    found = decision_curve(y, p, thresholds=[t])["model"]
    assert found.high[0] - found.value[0] == pytest.approx(1.959963984540054 * np.sqrt(spread) / y.size)


def test_costs_give_bayes_thresholds():
    curve = decision_curve(
        *simulated(), costs=[cb.costs.LinearCost(over=1, under=4), cb.costs.LinearCost(over=1, under=1)]
    )
    assert curve.thresholds.tolist() == [0.2, 0.5]


def test_gain_is_paired():
    """Two models that differ in few decisions: the interval of the gain is far narrower than those of the values."""
    y, p = simulated()
    other = np.clip(p + 0.01, 0, 1)
    curve = decision_curve(y, {"a": p, "b": other}, thresholds=[0.3])
    width = curve["b"].gain_high - curve["b"].gain_low
    assert width[0] < 0.5 * (curve["b"].high - curve["b"].low)[0]
    assert curve["b"].gain[0] == pytest.approx(curve["b"].value[0] - curve["a"].value[0])


def test_recalibration_gains_where_scores_are_shifted():
    y, p = simulated(20_000)
    curve = decision_curve(y, {"off": expit(logit(p) + 1.5)}, thresholds=[0.4], calibrator=cb.Platt())
    again = curve["off, recalibrated"]
    assert again.reference == "off"
    assert again.gain_low[0] > 0
    assert again.value[0] == pytest.approx(decision_curve(y, p, thresholds=[0.4])["model"].value[0], abs=0.005)


def test_repeated_rows_in_clusters_do_not_narrow_the_interval():
    y, p = simulated(400)
    five = {"cluster": np.repeat(np.arange(400), 5)}
    once = decision_curve(y, p, thresholds=[0.3], cluster=np.arange(400))["model"]
    many = decision_curve(np.repeat(y, 5), np.repeat(p, 5), thresholds=[0.3], **five)["model"]
    assert many.high - many.low == pytest.approx(once.high - once.low, rel=0.02)


def test_scale_of_weights_changes_nothing():
    y, p = simulated()
    weight = np.random.default_rng(1).exponential(size=y.size)
    first, again = (decision_curve(y, p, sample_weight=w, thresholds=[0.2]) for w in (weight, 9 * weight))
    assert again["model"].low == pytest.approx(first["model"].low)


def test_results_are_plain_data():
    curve = decision_curve(*simulated(), thresholds=[0.2, 0.3])
    assert json.loads(json.dumps(curve.to_dict(), allow_nan=False))["strategies"][0]["name"] == "model"
    assert curve.to_frame()["strategy"].tolist() == ["model"] * 2 + ["treat all"] * 2
    assert "better than the better of treating all and none" in repr(curve)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thresholds": [0.0]}, "thresholds"),
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": [0.5], "costs": [cb.costs.LinearCost()]}, "together"),
        ({"costs": [3]}, "over and under"),
        ({"confidence_level": 2}, "confidence_level"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(cb.InputError, match=words):
        decision_curve(*simulated(100), **options)


def test_unknown_strategies_are_named():
    with pytest.raises(cb.InputError, match="model, treat all"):
        decision_curve(*simulated(100))["other"]


def test_display_draws_the_values_and_describes_them():
    from matplotlib.figure import Figure

    y, p = simulated()
    ax = Figure().add_subplot()
    display = cb.plots.DecisionCurveDisplay.from_predictions(y, {"a": p, "b": p**2}, ax=ax)
    assert display.ax_ is ax
    assert display.lines_["a"].get_ydata() == pytest.approx(display.curve["a"].value)
    assert "treat none" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert display.alt_text().startswith("Decision curve, event rate")
    assert len(display.data()) == 3 * 99


@pytest.mark.parametrize("weighted", [False, True])
def test_tables_have_the_net_benefit_of_their_rows(weighted):
    y, p = simulated()
    p, other = p.round(2), (p**2).round(2)
    rows = {"sample_weight": np.random.default_rng(1).exponential(size=y.size)} if weighted else {}
    want = decision_curve(y, p, thresholds=[0.05, 0.2, 0.6], **rows)
    table, second = (cb.ScoreTable.from_arrays(y, score, **rows) for score in (p, other))
    found = decision_curve(table, thresholds=[0.05, 0.2, 0.6])
    for name in ("model", "treat all"):
        for column in ("value", "low", "high", "gain", "gain_low", "gain_high"):
            assert getattr(found[name], column) == pytest.approx(getattr(want[name], column), abs=1e-12)
    assert (found.event_rate, found.n_rows) == pytest.approx((want.event_rate, want.n_rows))
    both = decision_curve(cb.metrics.Tables({("a", None): table, ("b", None): second}), thresholds=[0.2])
    assert [each.name for each in both.models] == ["a", "b"]
    assert both["b"].reference == "the better of treating all and none"
    assert both["b"].value == pytest.approx(decision_curve(y, other, thresholds=[0.2], **rows)["model"].value)


def test_repeated_rows_equal_a_table_of_counts():
    y, p = simulated(200)
    table = cb.ScoreTable.from_arrays(y, p, frequency=np.full(200, 3))
    want = decision_curve(np.repeat(y, 3), np.repeat(p, 3), thresholds=[0.2])["model"]
    assert decision_curve(table, thresholds=[0.2])["model"].low == pytest.approx(want.low, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cluster": np.arange(3000) % 30}, "cluster must be omitted with tables"),
        ({"calibrator": cb.Platt()}, "calibrator must be omitted with tables"),
        ({"y_probs": simulated()[1]}, "y_probs must be omitted with tables"),
    ],
)
def test_tables_refuse_what_needs_rows(options, words):
    table = cb.ScoreTable.from_arrays(*simulated())
    with pytest.raises(cb.InputError, match=words):
        decision_curve(table, **options)


def test_tables_of_different_rows_are_refused():
    y, p = simulated()
    tables = {"north": cb.ScoreTable.from_arrays(y[:2000], p[:2000]), "south": cb.ScoreTable.from_arrays(y, p)}
    with pytest.raises(cb.InputError, match="tables of the same rows; north has 2,000 rows"):
        decision_curve(tables)
    with pytest.raises(cb.InputError, match="ScoreTable"):
        decision_curve({"a": y})


def test_thresholds_of_rare_events_reach_below_the_event_rate():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-8, 2, 50_000))
    y = rng.random(50_000) < p
    for curve in (decision_curve(y, p), decision_curve(cb.ScoreTable.from_arrays(y, p))):
        assert curve.thresholds.size == 99
        odds = curve.thresholds / (1 - curve.thresholds)
        assert np.diff(np.log(odds)) == pytest.approx(np.diff(np.log(odds))[0])
        assert odds[0] == pytest.approx(0.1 * y.mean() / (1 - y.mean()), rel=1e-6)
        assert curve.thresholds[-1] == pytest.approx(0.99)
        from matplotlib.figure import Figure

        assert curve.plot(fig=Figure()).ax_.get_xscale() == "logit"
    flipped = decision_curve(1 - y, 1 - p)
    assert flipped.thresholds == pytest.approx(1 - curve.thresholds[::-1])
    assert decision_curve(*simulated()).thresholds.tolist() == (np.arange(1, 100) / 100).tolist()


def test_the_text_names_thresholds_with_pointwise_confidence():
    curve = decision_curve([0, 1], [0.2, 0.8], thresholds=[0.1, 0.2, 0.3, 0.4])
    gain = np.array([0.1, -0.1, 0.1, 0.1])
    model = replace(curve.models[0], gain_low=gain)
    assert curve.better_at(model) == "3 of 4 thresholds (0.1, 0.3 to 0.4; 95 % confidence at each by itself)"
    assert curve.better_at(replace(model, gain_low=-np.abs(gain))) == "no threshold"
    assert "1 threshold, 0.3;" in repr(decision_curve([0, 1], [0.2, 0.8], thresholds=0.3))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"thresholds": [0.2, None]}, "thresholds must lie strictly between 0 and 1; got None"),
        ({"thresholds": []}, "got none"),
        (
            {"costs": [cb.costs.LinearCost(over=1, under=0)]},
            "The thresholds of costs must lie strictly between 0 and 1; got 1",
        ),
    ],
)
def test_impossible_thresholds_are_errors(options, found):
    with pytest.raises(cb.InputError, match=found):
        decision_curve([0, 1], [0.2, 0.8], **options)


def test_a_calibrator_is_cross_fitted_over_clusters():
    """A score per cluster, without information: row folds would let isotonic regression learn each cluster."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(40), 25)
    rate = rng.beta(2, 6, 40)[cluster]
    y, score = rng.random(1_000) < rate, rng.random(40)[cluster]
    curve = decision_curve(y, score, calibrator=cb.Isotonic(), cluster=cluster, thresholds=[0.2, 0.3, 0.4])
    best = np.maximum(curve.treat_all.value, 0)
    assert (curve["model, recalibrated"].value - best).mean() < 0.002


def test_a_model_may_be_called_treat_all():
    curve = decision_curve([0, 1, 1, 0], {"treat all": [0.1, 0.9, 0.8, 0.2]}, thresholds=[0.5])
    assert curve["treat all"].value[0] == 0.5


def test_the_event_rate_has_its_old_name_with_a_warning():
    curve = decision_curve([0, 1, 0, 1] * 25, {"a": [0.2, 0.7, 0.4, 0.6] * 25})
    with pytest.warns(
        DeprecationWarning, match=r"^DecisionCurve\.prevalence is deprecated: use DecisionCurve\.event_rate;"
    ):
        assert curve.prevalence == curve.event_rate == 0.5
