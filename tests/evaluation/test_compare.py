"""`compare`: the paired test of squared log-odds errors, the verdict, and its sentences."""

import importlib.util
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import (
    ModelPair,
    PairedDifference,
    brier_losses,
    calibration_difference,
    gap_differences,
    joint_covariance,
    log_losses,
    log_odds_difference,
    mean_difference,
)
from calibrant.inference.paired_rows import PairedRows
from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.log_odds import LogOddsBins, log_odds_error


def loss_difference(losses, rows, model, baseline):
    return mean_difference(losses(rows, model), losses(rows, baseline), rows.weight, rows.cluster)


DESIGNS = ("independent", "weights", "clusters", "weighted clusters")


def draw(size=400, seed=0, events=0.0):
    """Outcomes, true logits, and options for each design."""
    rng = np.random.default_rng(seed)
    x = rng.normal(events, 1.2, size)
    y = (rng.random(size) < expit(x)).astype(int)
    weight, cluster = rng.exponential(size=size) + 0.1, rng.integers(0, 40, size)
    cluster[:40] = np.arange(40)
    options = {
        "independent": {},
        "weights": {"sample_weight": weight},
        "clusters": {"cluster": cluster},
        "weighted clusters": {"sample_weight": weight, "cluster": cluster},
    }
    return y, x, options


def read(y, *logits, **options):
    return PairedRows.read(y, [expit(z) for z in logits], **options)


def slow_covariance(y, scores, bins, weight, cluster):
    """Residual sums of bins, row by row; their covariance divided by the curvatures."""
    sizes = [len(each) for each in bins]
    vectors = []
    for i in range(y.size):
        vector = np.zeros(sum(sizes))
        for m, (score, each) in enumerate(zip(scores, bins, strict=True)):
            place = int(np.flatnonzero(each.table.score == score[i])[0])
            b = int(each.labels[place])
            q = expit(logit(score[i]) + each.error[b])
            vector[b + m * sizes[0]] = weight[i] * (y[i] - q)
        vectors.append(vector)
    if cluster is None:
        found = sum(np.outer(v, v) for v in vectors)
    else:
        groups = sorted(set(cluster.tolist()))
        sums = [sum(v for v, c in zip(vectors, cluster, strict=True) if c == g) for g in groups]
        mean = sum(sums) / len(groups)
        found = sum(np.outer(s - mean, s - mean) for s in sums) * len(groups) / (len(groups) - 1)
    fitted = [(each, each.shifted(each.error)) for each in bins]
    curvature = np.concatenate([each.total(each.table.n * q * (1 - q)) for each, q in fitted])
    return found / np.outer(curvature, curvature)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_joint_covariance_equals_that_of_a_loop_over_rows(design):
    y, x, options = draw()
    given = options[design]
    noise = np.random.default_rng(1).normal(size=x.size)
    rows, tables = read(y, x + 0.3, x + 0.5 * noise, **given)
    bins = [LogOddsBins.from_table(table, EqualInformation(5)) for table in tables]
    assert all(((each.k > 0) & (each.k < each.n)).all() for each in bins)
    expected = slow_covariance(
        y,
        [expit(x + 0.3), expit(x + 0.5 * noise)],
        bins,
        given.get("sample_weight", np.ones(y.size)),
        given.get("cluster"),
    )
    assert joint_covariance(rows, rows.places, bins) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("design", DESIGNS)
def test_swapping_models_changes_only_the_sign(design):
    y, x, options = draw()
    rows, tables = read(y, 1.5 * x, x + 0.3, **options[design])
    found, swapped = (log_odds_difference(ModelPair(rows, tables, *pair)) for pair in ((0, 1), (1, 0)))
    assert found.value == pytest.approx(-swapped.value, rel=1e-9)
    assert found.pvalue == pytest.approx(swapped.pvalue, rel=1e-9)
    ends = [-end for end in reversed(swapped.interval(0.9))]
    assert found.interval(0.9) == pytest.approx(ends, rel=1e-9, nan_ok=True)
    for losses in (brier_losses, log_losses):
        one, other = (loss_difference(losses, rows, *pair) for pair in ((0, 1), (1, 0)))
        assert one.value == pytest.approx(-other.value, rel=1e-9)
        assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
def test_identical_predictions_do_not_differ(design):
    y, x, options = draw()
    rows, tables = read(y, x, x, **options[design])
    for found in (log_odds_difference(ModelPair(rows, tables, 0, 1)), loss_difference(brier_losses, rows, 0, 1)):
        assert found.value == pytest.approx(0, abs=1e-12)
        assert found.pvalue == pytest.approx(1)


def test_bins_without_an_event_keep_a_variance():
    """The outer bins hold no event; half an event is added, and its variance."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 400)
    y = (x > 0).astype(int)
    rows, tables = read(y, x, x + rng.normal(size=400))
    assert (np.diag(joint_covariance(rows, rows.places, [LogOddsBins.from_table(t) for t in tables])) > 0.1).all()
    assert math.isfinite(log_odds_difference(ModelPair(rows, tables, 0, 1)).pvalue)


def test_the_value_is_the_difference_of_squared_log_odds_errors():
    y, x, _ = draw(20_000)
    rows, tables = read(y, x + 0.5, 1.5 * x)
    squares = [log_odds_error(table) ** 2 for table in tables]
    assert log_odds_difference(ModelPair(rows, tables, 0, 1)).value == pytest.approx(squares[0] - squares[1], abs=2e-4)
    assert squares[0] == pytest.approx(0.25, abs=0.05)


def test_proper_scores_are_compared_row_by_row():
    y, x, options = draw()
    p, q = expit(x), expit(2 * x)
    rows, _ = read(y, x, 2 * x)
    each = (p - y) ** 2 - (q - y) ** 2
    found = loss_difference(brier_losses, rows, 0, 1)
    assert found.value == pytest.approx(cb.brier(y, p) - cb.brier(y, q))
    assert found.variance == pytest.approx(np.var(each, ddof=1) / y.size)
    assert loss_difference(log_losses, rows, 0, 1).value == pytest.approx(cb.log_loss(y, p) - cb.log_loss(y, q))
    clustered, _ = read(y, x, 2 * x, cluster=options["clusters"]["cluster"])
    assert loss_difference(brier_losses, clustered, 0, 1).degrees == 39
    weighted, _ = read(y, x, 2 * x, **options["weights"])
    expected = np.average(each, weights=options["weights"]["sample_weight"])
    assert loss_difference(brier_losses, weighted, 0, 1).value == pytest.approx(expected)


def test_frequencies_equal_repeated_rows():
    y, x, _ = draw()
    times = np.arange(y.size) % 3 + 1
    counted = log_odds_difference(ModelPair(*read(y, x, 1.5 * x, frequency=times), 0, 1))
    repeated = log_odds_difference(ModelPair(*read(*(np.repeat(each, times) for each in (y, x, 1.5 * x))), 0, 1))
    assert counted == repeated


def test_little_information_gives_no_difference():
    found = PairedDifference(-5.0, 0.01, math.inf, information=19.9)
    assert found.has_little_information
    assert found.pvalue == 1
    assert np.isnan(found.interval(0.95)).all()
    y, x, _ = draw(60)
    compared = cb.compare(y, {"a": expit(x + 4), "b": expit(x)}, n_resamples=20)
    assert compared.verdict == "no difference shown"
    assert [note.count for note in compared.notes if note.code == "little_information"] == [1]
    assert compared.adjusted == {"b": 1.0}
    assert "nan" not in repr(compared)


def test_scores_of_0_and_1_alone_show_no_difference():
    y, x, _ = draw(300)
    found = cb.compare(y, {"a": expit(x), "b": (x > 0).astype(float)}, n_resamples=20)
    assert found.verdict == "no difference shown"
    assert {d.metric for d in found.differences} >= {"log-odds error", "Brier"}
    assert [d.value for d in found.differences if d.metric == "log loss"] == [np.inf]
    assert "nan" not in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_clearly_better_model_is_detected(design):
    y, x, options = draw(3_000)
    rows, tables = read(y, x, x + 1, **options[design])
    found = log_odds_difference(ModelPair(rows, tables, 0, 1))
    assert found.value < 0
    assert found.pvalue < 1e-4
    assert found.interval(0.95)[1] < 0


def test_equally_miscalibrated_models_differ_in_5_percent():
    """The full study is research/studies/comparisons.py; here a shift of 0.4 to either side, 300 data sets."""
    shown = 0
    for seed in range(300):
        y, x, _ = draw(1_000, seed)
        rows, tables = read(y, x + 0.4, x - 0.4)
        shown += log_odds_difference(ModelPair(rows, tables, 0, 1)).pvalue <= 0.05
    assert shown <= 27  # exceeded with a probability of 0.1 % where the size is 5 %


# The result


def compared(baseline=None, **models):
    y, x, _ = draw(3_000)
    forecasts = {name: expit(change(x)) for name, change in models.items()}
    return cb.compare(y, forecasts, baseline=baseline, n_resamples=30)


def test_the_verdict_names_models():
    models = {"b": lambda x: x + 0.8, "a": lambda x: x, "c": lambda x: x + 0.1, "d": lambda x: x + 1.5}
    found = compared(**models)
    assert found.verdict == "a and c are better calibrated than b and d; b is better calibrated than d"
    assert found.direction == "better"
    found = compared("b", **models)
    assert found.verdict == "a and c are better calibrated than b; d is worse calibrated than b"
    assert found.direction == "better, worse"
    assert compared(a=lambda x: x, b=lambda x: x + 0.01).verdict == "no difference shown"
    assert compared(a=lambda x: x + 1, b=lambda x: x).verdict == "b is better calibrated than a"


def test_p_values_are_adjusted_for_the_number_of_models():
    found = compared("a", a=lambda x: x + 0.3, b=lambda x: x, c=lambda x: 1.2 * x)
    for metric in ("log-odds error", "Brier", "log loss", "bias"):
        same = [d for d in found.differences if d.metric == metric]
        assert [d.adjusted_pvalue for d in same] == pytest.approx(holm([d.pvalue for d in same]))
    pytest.importorskip("pandas", reason="needs pandas")
    frame = found.to_frame()
    deciding = frame[(frame["metric"] == "log-odds error") & (frame["model"] != "a")]
    assert deciding["difference_pvalue"].tolist() == list(found.adjusted.values())
    assert deciding["value"].tolist() == [found.models[name].log_odds_error.value for name in ("b", "c")]


def test_metrics_of_gaps_have_neither_interval_nor_p_value():
    found = compared(a=lambda x: x + 0.3, b=lambda x: x)
    by_metric = {d.metric: d for d in found.differences}
    for metric in ("ECE", "ACE", "TCE"):
        d = by_metric[metric]
        assert np.isnan([d.low, d.high, d.pvalue, d.adjusted_pvalue]).all()
        assert d.cells()[1:] == ["", ""]
    for metric, test in {"bias": "bootstrap", "Brier": "paired t test", "log-odds error": "decides"}.items():
        d = by_metric[metric]
        assert d.low < d.value < d.high
        assert d.cells()[2].endswith(f"({test})")
    text = repr(found)
    assert "Squared log-odds error of b minus that of a: -0." in text
    assert "nan" not in text
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_disagreement_with_the_brier_score_is_stated():
    """A constant is calibrated and says nothing; a shifted model is miscalibrated and discriminates."""
    found = compared(shifted=lambda x: x + 0.5, constant=lambda x: 0 * x)
    assert found.verdict == "constant is better calibrated than shifted"
    (sentence,) = found.disagreements()
    assert sentence.startswith(
        "constant is better calibrated than shifted, but shifted has the lower Brier score (difference +0."
    )
    assert sentence.endswith("): shifted discriminates better.")
    report = [found.to_html()] if all(map(importlib.util.find_spec, ("matplotlib", "jinja2"))) else []
    for text in (repr(found), found._repr_html_(), *report):
        assert "but shifted has the lower Brier score" in text
    assert compared(a=lambda x: x + 1, b=lambda x: x).disagreements() == []


def test_other_metrics_may_not_take_the_names_of_scores():
    y, x, _ = draw()
    models = {"a": expit(x), "b": expit(2 * x)}
    with pytest.raises(cb.InputError, match="metrics must not call another metric 'Brier'; got"):
        cb.compare(y, models, metrics={"Brier": cb.ECE()}, n_resamples=30)
    found = cb.compare(y, models, metrics={"log loss": cb.METRICS["log_loss"]()}, n_resamples=30)
    assert [d.metric for d in found.differences] == ["log-odds error", "Brier", "log loss"]


def test_few_clusters_are_refused():
    y, x, _ = draw()
    with pytest.raises(cb.InputError, match="at least 10 distinct values"):
        cb.compare(y, {"a": expit(x), "b": expit(2 * x)}, cluster=np.arange(y.size) % 5, n_resamples=30)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_deciding_test_needs_all_scales_to_agree(design):
    y, x, options = draw()
    rows, tables = read(y, 1.5 * x, x + 0.3, **options[design])
    found = calibration_difference(ModelPair(rows, tables, 0, 1))
    swapped = calibration_difference(ModelPair(rows, tables, 1, 0))
    assert found.pvalue == pytest.approx(swapped.pvalue, rel=1e-9)
    assert found.pvalue >= log_odds_difference(ModelPair(rows, tables, 0, 1)).pvalue
    if not found.has_little_information:
        signs = {np.sign(each.value) for each in (found, *found.others)}
        largest = max(each.pvalue for each in found.others)
        own = log_odds_difference(ModelPair(rows, tables, 0, 1)).pvalue
        assert found.pvalue == (1.0 if len(signs) > 1 else max(largest, own))


def test_absolute_and_squared_gaps_are_those_of_the_bins():
    y, x, _ = draw()
    rows, tables = read(y, 1.5 * x, x + 0.3)
    absolute, squared = gap_differences(ModelPair(rows, tables, 0, 1))
    by_hand = []
    for table in tables:
        bins = LogOddsBins.from_table(table)
        gap = (bins.k - bins.total(table.n * table.score)) / bins.n
        by_hand.append([np.sum(bins.n * np.abs(gap)) / bins.n.sum(), np.sum(bins.n * gap**2) / bins.n.sum()])
    assert absolute.value == pytest.approx(by_hand[0][0] - by_hand[1][0])
    assert squared.value < by_hand[0][1] - by_hand[1][1] + 0.01  # less what chance adds


def test_a_row_without_a_prediction_is_dropped_for_all_models():
    rng = np.random.default_rng(3)
    p = rng.random(400)
    y = rng.random(400) < p
    a, b = p.copy(), p**1.5
    a[:5], b[3:9] = np.nan, np.nan
    with pytest.raises(cb.InputError, match=r"forecasts\['a'\] has 5 missing values"):
        cb.compare(y, {"a": a, "b": b}, n_resamples=20)
    found = cb.compare(y, {"a": a, "b": b}, missing="drop", n_resamples=20)
    complete = cb.compare(y[9:], {"a": a[9:], "b": b[9:]}, n_resamples=20)
    np.testing.assert_equal(*([asdict(each) for each in which.differences] for which in (found, complete)))
    assert {(model.table.n_in, model.table.n_dropped) for model in found.models.values()} == {(400, 9)}
    assert all("missing" in [note.code for note in model.notes] for model in found.models.values())
    assert cb.decisions(y, {"a": a}, missing="drop", n_resamples=20).lines[0].cost == pytest.approx(
        cb.decisions(y[5:], {"a": a[5:]}, n_resamples=20).lines[0].cost
    )


def test_a_table_cannot_be_compared():
    table = cb.ScoreTable.from_arrays([0, 1], [0.1, 0.9])
    with pytest.raises(cb.InputError, match="got a ScoreTable, which does not keep the predictions per row"):
        cb.compare(table, {"a": [0.1, 0.9], "b": [0.2, 0.8]})


def test_the_log_loss_of_each_model_stands_beside_its_difference():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    found = cb.compare(y, {"a": p, "b": p**2}, n_resamples=39)
    assert found.scores["log loss"] == {"a": cb.log_loss(y, p), "b": cb.log_loss(y, p**2)}
    a, b = found.cells()[-2:]
    assert (a[0], a[1], b[1]) == ("log loss", "a", "b")
    assert float(b[2]) - float(a[2]) == pytest.approx(float(b[5]), abs=2e-4)
    frame = found.to_frame("pyarrow").to_pylist()
    assert {row["model"]: row["value"] for row in frame if row["metric"] == "log loss"} == found.scores["log loss"]
    assert found.to_dict()["scores"] == found.scores


def test_an_infinite_log_loss_differs_infinitely_without_a_test():
    p = np.array([0.0, 0.3, 0.6, 0.8] * 20)
    y = np.array([1, 0, 1, 1] * 20)
    found = cb.compare(y, {"a": np.clip(p, 0.1, 1), "b": p}, n_resamples=39)
    (d,) = (d for d in found.differences if d.metric == "log loss")
    assert (d.value, d.test) == (np.inf, "")
    assert np.isnan([d.low, d.high, d.pvalue, d.adjusted_pvalue]).all()
    assert d.to_dict()["value"] is None
    assert [row[2] for row in found.cells()[-2:]] == [f"{cb.log_loss(y, np.clip(p, 0.1, 1)):.4f}", "inf"]
    assert found.to_dict()["scores"]["log loss"]["b"] is None


def test_models_of_a_comparison_do_not_hold_the_arrays_of_their_designs():
    y, x, _ = draw()
    found = cb.compare(y, {"a": expit(x), "b": expit(1.2 * x)}, n_resamples=19)
    for model in found.models.values():
        assert model.details.coefficients
        assert set(vars(model.details.design)) == {"table", "rows"}


@pytest.mark.parametrize("rows", [200, 100_000])
def test_an_evaluation_does_not_hold_the_arrays_of_its_design(rows):
    score = np.linspace(0.01, 0.99, rows)
    found = cb.evaluate((np.arange(rows) % 3 == 0).astype(int), score, n_resamples=19)
    assert set(vars(found.details.design)) == {"table", "rows"}
