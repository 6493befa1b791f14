"""Metrics of groups, by the numbers that their artists hold."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import Fitted, extents, page
from tests.visual.layout import unreadable


@pytest.mark.parametrize("along", ["x", "y"])
def test_groups_have_values_intervals_and_nulls(evaluation, along, figure):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, along=along, fig=figure)
    across = 1 if along == "x" else 0
    for i, (name, group) in enumerate(evaluation.groups.items()):
        line = group["log-odds error"]
        place = drawn.points_[i].get_xydata()[0]
        assert (place[across], place[1 - across]) == (line.value, i)
        assert drawn.intervals_[i].get_path().vertices[:, across] == pytest.approx(
            [line.interval.low, line.interval.high]
        )
        low, high = extents(drawn.bands_[i])
        assert (low[across], high[across]) == pytest.approx((line.null.low, line.null.high))
        filled = drawn.points_[i].get_markerfacecolor() == drawn.points_[i].get_markeredgecolor()
        assert filled == group.is_significant == (name == "south")
    assert drawn.data()["omnibus_pvalue"].tolist() == [group.pvalue for group in evaluation.groups.values()]
    assert unreadable(figure) == []
    assert "south" in drawn.alt_text()


def test_groups_come_from_predictions_estimators_and_breakdowns(rng):
    p = rng.beta(2, 5, 800)
    y, week = rng.random(800) < p, np.repeat([1, 2], 400)
    options = {"n_resamples": 49, "fig": Figure()}
    one = plots.GroupDisplay.from_predictions(y, p, by=week, **options)
    two = plots.GroupDisplay.from_estimator(Fitted(), p[:, None], y, by=week, **options)
    assert one.data().equals(two.data())
    assert one.points_[1].get_xdata()[0] == 1  # numbers run along x
    three = plots.GroupDisplay.from_breakdown({w: cb.ECE()(y[week == w], p[week == w]) for w in (1, 2)}, **options)
    assert three.metric == "ECE"
    assert three.data()["value"].tolist() == [cb.ece(y[week == w], p[week == w]) for w in (1, 2)]


def test_missing_groups_are_rejected(evaluation, rows):
    with pytest.raises(cb.InputError, match="evaluation must have groups"):
        plots.GroupDisplay.from_predictions(*rows, n_resamples=49, fig=Figure())
    with pytest.raises(cb.InputError, match="metric must be one of log-odds error, bias, ECE"):
        plots.GroupDisplay.from_evaluation(evaluation, metric="nonsense", fig=Figure())
    with pytest.raises(cb.InputError, match="along must be"):
        plots.GroupDisplay.from_evaluation(evaluation, along="z", fig=Figure())
    with pytest.raises(cb.InputError, match="a mapping of group to Breakdown"):
        plots.GroupDisplay.from_breakdown(cb.ECE()(*rows), fig=Figure())


def test_groups_are_marked_by_the_omnibus_test_and_the_legend_names_it(rng):
    p = rng.uniform(0.05, 0.95, 3000)
    y = rng.random(3000) < 0.5 + (p - 0.5) * 0.4  # overconfident, without bias
    drawn = plots.GroupDisplay.from_predictions(y, p, by=np.arange(3000) % 3, metric="bias", n_resamples=99, fig=page())
    assert drawn.data()["significant"].all()
    assert "omnibus test" in drawn.alt_text()
    assert "significant (omnibus test)" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]


def test_groups_have_their_rows_and_p_values_beside_them(evaluation):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, fig=page())
    texts = [text.get_text() for text in drawn.ax_.texts]
    for text, group in zip(texts, evaluation.groups.values(), strict=True):
        rows, p = re.fullmatch(r"([\d,]+) rows, p = ([\d.e-]+)", text).groups()
        assert int(rows.replace(",", "")) == group.table.size
        assert float(p) == pytest.approx(group.pvalue, abs=6e-4)


def test_days_lie_in_order_and_at_their_place(rng):
    p = rng.random(900)
    y = rng.random(900) < p
    days = [np.datetime64(d) for d in ("2026-03-01", "2026-01-01", "2026-01-11")]
    tables = {d: cb.ScoreTable.from_arrays(y[i::3], p[i::3]) for i, d in enumerate(days)}
    drawn = plots.GroupDisplay.from_predictions(tables, n_resamples=49, fig=page())
    assert [point.get_xdata()[0] for point in drawn.points_] == pytest.approx([0, 1, 5.9])
    assert drawn.data()["group"].tolist() == ["2026-01-01", "2026-01-11", "2026-03-01"]
    assert drawn.points_[2].get_ydata()[0] == cb.log_odds_error(tables[days[0]])


def test_the_display_of_groups_keeps_the_common_rules(evaluation):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, fig=page())
    text = plots.svg(drawn)
    assert text == plots.svg(plots.GroupDisplay.from_evaluation(evaluation, fig=page()))
    ids = [e.get("id") for e in ET.fromstring(text).iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", drawn.alt_text())
