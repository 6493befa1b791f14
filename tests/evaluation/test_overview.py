"""Overviews of an evaluation and of a comparison, by the numbers that their artists hold."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.visual.layout import unreadable


@pytest.fixture
def rows(rng):
    """600 rows of an overconfident model."""
    p = rng.beta(2, 5, 600)
    return rng.random(600) < p**1.4, p


def test_an_evaluation_plots(rng):
    p = rng.beta(2, 5, 3000)
    group = rng.choice(["north", "south", "$east"], 3000)
    y = rng.random(3000) < np.where(group == "south", p**1.6, p)
    evaluation = cb.evaluate(y, p, by=group, n_resamples=99)
    drawn = evaluation.plot(fig=Figure(figsize=(12, 9.6), layout="constrained"))
    assert drawn.reliability.breakdown.value == evaluation["TCE"].value
    assert drawn.reliability.null is evaluation["TCE"].null
    assert drawn.null.null is evaluation["ACE"].null
    assert drawn.groups.metric == "ACE"
    assert unreadable(drawn.figure_) == []
    assert len(drawn.data()) == len(evaluation.to_frame())
    assert evaluation.verdict in drawn.alt_text()
    ids = [e.get("id") for e in ET.fromstring(plots.svg(drawn)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))


def test_an_evaluation_without_tce_or_with_weights_plots(rows, rng):
    plain = cb.evaluate(*rows, metrics={"ECE": cb.ECE()}, n_resamples=49).plot(fig=Figure())
    assert isinstance(plain.reliability, plots.TestBasedReliabilityDisplay)
    assert plain.null.null.metric == "ECE"
    weighted = cb.evaluate(*rows, sample_weight=rng.exponential(size=600), n_resamples=49)
    drawn = weighted.plot(fig=Figure()).reliability
    assert isinstance(drawn, plots.TestBasedReliabilityDisplay)
    assert drawn.ax_sizes_.get_ylabel() == "weight"


def test_a_comparison_plots(rows):
    y, p = rows
    compared = cb.compare(y, {"old": p**2, "new": p, "$": p**3}, n_resamples=99)
    drawn = compared.plot(fig=Figure(figsize=(12, 7), layout="constrained"))
    deciding = [d for d in compared.deciding if d.baseline == "old"]
    assert [point.get_xdata()[0] for point in drawn.differences_] == [d.value for d in deciding]
    filled = [point.get_markerfacecolor() == point.get_markeredgecolor() for point in drawn.differences_]
    assert filled == [compared.adjusted[d.model] <= 0.05 for d in deciding]
    assert list(drawn.reliability.breakdowns) == ["old", "new", "$"]
    assert unreadable(drawn.figure_) == []


def test_differences_of_models_have_their_intervals(rows):
    y, p = rows
    compared = cb.compare(y, {"old": p**2, "new": p}, n_resamples=49)
    drawn = compared.plot(fig=Figure(figsize=(12, 7)))
    (interval,) = [a for a in drawn.ax_differences_.findobj() if str(a.get_gid()).startswith("difference-new-interval")]
    (found,) = [d for d in compared.differences if d.metric == compared.decides]
    assert interval.get_path().vertices[:, 0] == pytest.approx([found.low, found.high])
    assert f"new {found.value:+.4f}" in drawn.alt_text()
