"""How results of ordered classes are stated, drawn, compared, and read from columns of files."""

import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.kinds.columns import Model
from calibrant.kinds.ordinal.columns import COLUMNS
from calibrant.kinds.ordinal.differences import OrdinalModels
from calibrant.kinds.ordinal.words import WORDS

LABELS = ["low", "mid", "high"]


@pytest.fixture(scope="module")
def sample():
    """Outcomes that are higher than predicted: at or below each class there are too few."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([2, 2, 2], 2000)
    code = (proba.cumsum(axis=1) < rng.random((2000, 1)) ** 0.6).sum(axis=1)
    return np.array(LABELS)[code], cb.Ordinal(proba, classes=LABELS)


@pytest.fixture(scope="module")
def result(sample):
    return cb.evaluate(*sample, by=np.arange(2000) % 2, n_resamples=19)


# Details


def test_means_and_shares_of_details_are_those_of_the_rows(sample, result):
    y, forecast = sample
    code = np.array([LABELS.index(label) for label in y])
    details = result.details
    assert details.mean_class == pytest.approx(((forecast.proba @ [0, 1, 2]).mean(), code.mean()))
    for c, threshold in enumerate(details.thresholds):
        assert threshold.label == LABELS[c]
        assert threshold.n == np.sum(code <= c)
        assert (threshold.predicted, threshold.observed) == pytest.approx(
            (forecast.proba[:, : c + 1].sum(axis=1).mean(), np.mean(code <= c))
        )
        assert threshold.side == "underestimates"


def test_sentences_name_the_thresholds_that_deviate(result):
    worst = max(result.details.thresholds, key=lambda t: abs(t.predicted - t.observed))
    text = result.sentences()[-1]
    assert text.startswith(f"Thresholds that deviate: at most {worst.label} ({100 * worst.predicted:.3g} % predicted, ")
    assert text.count("at most") == 2
    assert "2,000 rows; 3 ordered classes, low to high; mean class" in result.sizes_text()


def test_few_clusters_leave_estimates_without_tests(sample):
    cluster = np.where(np.arange(2000) < 500, np.arange(2000) % 5, np.arange(2000))
    group = np.where(np.arange(2000) < 500, "few", "many")
    few = cb.evaluate(*sample, by=group, cluster=cluster, n_resamples=19).groups["few"]
    assert few.verdict == "inconclusive"
    assert all(math.isnan(t.low) and math.isnan(t.adjusted_pvalue) for t in few.details.thresholds)
    assert math.isfinite(few.log_odds_error.value)


# Words


def test_words_state_the_worst_threshold_and_all_thresholds_in_order(result):
    assert all("at most " in sentence for sentence in WORDS.meaning(result)[:1])
    (table,) = WORDS.tables(result, "m0")
    assert [row[0] for row in table.cells] == ["outcome", "at most low", "at most mid"]
    assert [row[-1] for row in table.cells[1:]] == ["too low"] * 2
    assert WORDS.means(result) == result.details.mean_class
    action = WORDS.recalibrate(result, "rows.csv")
    assert "RPS" in action.text
    assert action.code == "cb.calibrators.Cumulative().fit(probabilities, labels, classes=['low', 'mid', 'high'])"


# Figures


def test_figures_draw_the_stored_thresholds(result):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    from calibrant.kinds.ordinal.figures import FIGURES, proportions

    drawn = {each.name: each for each in proportions(result).classes}
    for t in result.details.thresholds:
        each = drawn[f"at most {t.label}"]
        assert (each.predicted, each.observed, each.value) == (100 * t.predicted, 100 * t.observed, t.log_odds_error)
    display = FIGURES.lead(result).display
    assert display.ax_.get_ylabel() == "share of outcomes at or below the class"
    assert set(FIGURES.further(result)) == {"bins"}
    assert FIGURES.all_models({"a": result, "b": result}).name == "reliability"
    assert cb.plots.EvaluationDisplay(result).plot(fig=Figure(figsize=(12, 9))).proportions is not None


def test_models_with_other_thresholds_have_no_common_figure(sample, result):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from calibrant.kinds.ordinal.figures import FIGURES

    other = cb.evaluate(np.arange(90) % 3, cb.Ordinal(np.full((90, 3), 1 / 3)), n_resamples=19)
    assert FIGURES.all_models({"a": result, "b": other}) is None


# Differences


def test_losses_are_compared_row_by_row(sample):
    stats = pytest.importorskip("scipy.stats")
    y, forecast = sample
    flat = np.full((2000, 3), 1 / 3)
    found = cb.compare(y, {"a": forecast, "b": cb.Ordinal(flat, classes=LABELS)}, n_resamples=19)
    code = np.array([LABELS.index(label) for label in y])
    below = code[:, None] <= np.arange(2)
    losses = [((p.cumsum(axis=1)[:, :2] - below) ** 2).sum(axis=1) for p in (forecast.proba, flat)]
    expected = stats.ttest_1samp(losses[1] - losses[0], 0)
    (rps,) = (d for d in found.differences if d.metric == "RPS")
    assert rps.value == pytest.approx(np.mean(losses[1] - losses[0]))
    assert rps.pvalue == pytest.approx(expected.pvalue, rel=1e-6)


def test_models_share_their_labels(sample):
    models = dict.fromkeys("ab", sample[1])
    assert OrdinalModels(models).labels == tuple(LABELS)


# Columns


def test_columns_of_files_are_in_the_order_of_the_classes():
    given = {"ordinal_score": ("high=c", "low=a", "mid=b")}
    (model,) = COLUMNS.find_models("ordinal_score", given, list)
    assert (model.keys, model.columns) == (("high", "low", "mid"), ("c", "a", "b"))
    forecast = COLUMNS.forecast("ordinal_score", model, np.full((2, 3), 1 / 3))
    assert (forecast.kind, list(forecast.classes)) == ("ordinal", ["high", "low", "mid"])
    with pytest.raises(cb.InputError, match="must name at least three ordered classes; got low, mid"):
        COLUMNS.find_models("ordinal_score", {"ordinal_score": ("low=a", "mid=b")}, list)


def test_metrics_of_a_fit_begin_with_the_proper_score(sample):
    y, forecast = sample
    model = Model("p", ("a", "b", "c"), tuple(LABELS))
    found = COLUMNS.fit.metrics(y, forecast.proba, COLUMNS.fit.arguments(model))
    expected = cb.evaluate(y, forecast, n_resamples=19)
    assert found == pytest.approx({"RPS": expected["rps"].value, "log loss": expected["log_loss"].value})
