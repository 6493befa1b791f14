"""The decomposition of scores, by the numbers that its artists hold."""

import re

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")


import calibrant as cb
from calibrant import plots


def test_points_of_a_decomposition_lie_on_the_line_of_their_score(rows, figure):
    y, p = rows
    drawn = plots.DecompositionDisplay.from_predictions(y, {"a": p, "b": p**2}, n_resamples=99, fig=figure)
    for name, column in (("a", p), ("b", p**2)):
        parts = cb.metrics.corp_decomposition(y, column)
        assert drawn.points_[name].get_xydata()[0] == pytest.approx([parts.mcb, parts.dsc])
        cross = drawn.crosses_[name][0].get_path().vertices
        found = cb.interval(cb.METRICS["mcb"](), y, column, n_resamples=99, random_state=0)
        assert cross[:2, 0] == pytest.approx([found.low, found.high])
        assert cross[2, 1] < parts.dsc < cross[3, 1]
    unc = cb.metrics.corp_decomposition(y, p).unc
    labels = [float(text.get_text()) for text in drawn.ax_.texts if re.fullmatch(r"-?[\d.]+", text.get_text())]
    scores = [unc + line.get_xdata()[0] - line.get_ydata()[0] for line in drawn.isolines_]
    assert all(min(abs(score - label) for score in scores) < 1e-9 for label in labels)


def test_models_of_different_rows_show_no_common_uncertainty(rows, figure):
    y, p = rows
    tables = {"a": cb.ScoreTable.from_arrays(y, p), "b": cb.ScoreTable.from_arrays(y[:300], p[:300])}
    drawn = plots.DecompositionDisplay.from_predictions(tables, n_resamples=0, fig=figure)
    assert any("minus uncertainty" in text.get_text() for text in drawn.ax_.texts)
