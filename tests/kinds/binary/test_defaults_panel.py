"""The default metrics of scores and the figure of an evaluation: they agree with the verdict."""

import numpy as np
import pytest

import calibrant as cb

GRADES = np.array([0.0003, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.05, 0.08, 0.13, 0.2, 0.35])
ROWS = np.array([4, 4, 4, 12, 4, 20, 4, 16, 4, 20, 4, 4]) * 1000


def test_a_calibrated_model_of_many_rows_is_not_rejected():
    """With the bins of the paper TCE was 70 %, and the figure of a calibrated model was orange."""
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    table = cb.ScoreTable.from_arrays(rng.random(p.size) < p, p)
    result = cb.evaluate(table, n_resamples=99)
    assert result.verdict == "calibrated"
    assert result["tce"].value < 15
    assert cb.tce(table) > 60
    assert result["tce"].null.low < result["tce"].value < result["tce"].null.high
    assert not any("consistent" in name for name in result.metrics)


def test_grades_on_their_rates_are_bins_of_their_own():
    """Twelve grades were merged into four bins, all orange."""
    table = cb.ScoreTable.from_counts(GRADES, ROWS, np.rint(GRADES * ROWS).astype(int))
    result = cb.evaluate(table, n_resamples=99)
    assert result.breakdowns["TCE"].per_bin["n"].tolist() == ROWS.tolist()
    assert result["tce"].value == 0
    assert cb.tce(table) > 50


def test_the_figure_shows_the_bins_of_the_panel():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    table = cb.ScoreTable.from_counts(GRADES, ROWS, np.rint(GRADES * ROWS).astype(int))
    result = cb.evaluate(table, metrics=["brier"], n_resamples=19)  # the figure has TCE also where the panel has not
    drawn = result.plot(fig=Figure(figsize=(10, 6))).reliability
    assert drawn.data()["n"].tolist() == ROWS.tolist()
    assert not drawn.rejected_sizes_
    assert not drawn.rejected_violins_


def test_top_label_and_class_wise_tce_have_the_bins_of_the_panel():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([1, 1, 1], 3000)
    y = (proba.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    result = cb.evaluate(y, proba, n_resamples=19)
    bins = cb.bins.PAVABC(sizes="grades")
    assert result.breakdowns["top-label TCE"].definition == cb.TCE(bins=bins)
    assert result["top-label TCE"].value == cb.tce(cb.metrics.top_label(y, proba), bins=bins)
