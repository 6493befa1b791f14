"""The figure and the page of a monitored model."""

import math
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.figure import Figure

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """Return a monitor whose log-odds shift by 1.2 after 15 of 40 days, with a group of hostile name."""
    monitor = cb.Monitor(tmp_path_factory.mktemp("store") / "store.db", model="<script>$x$")
    rng = np.random.default_rng(0)
    for day in range(40):
        p = rng.uniform(0.05, 0.6, 400).round(2)
        odds = p / (1 - p) * math.exp(1.2 if day >= 15 else 0.0)
        y = rng.random(400) < odds / (1 + odds)
        monitor.observe(y, p, time=START + day * DAY, group=np.where(np.arange(400) % 2, "<b>", "plain"))
    return monitor


def test_the_figure_draws_the_rates_and_the_evidence_of_the_history(shifted):
    history = shifted.history()
    drawn = shifted.plot(fig=Figure(figsize=(9, 6)))
    lines = {line.get_gid(): line for ax in (drawn.rates_, drawn.evidence_) for line in ax.lines}
    assert lines["monitor-observed"].get_ydata() == pytest.approx([100 * w.observed for w in history.windows])
    assert lines["monitor-predicted"].get_ydata() == pytest.approx([100 * w.predicted for w in history.windows])
    assert lines["monitor-evidence"].get_ydata() == pytest.approx([w.log_e_value for w in history.windows[:-1]])
    assert lines["monitor-threshold"].get_ydata()[0] == history.threshold
    first = next(w for w in history.windows if w.alarm)
    assert lines["monitor-alarm"].get_xdata()[0] == first.start.timestamp() / 86_400
    assert f"alarm raised by the window of {first.start:%Y-%m-%d}" in drawn.alt_text()
    frame = drawn.data()
    assert (frame["low"] <= frame["observed"]).all()
    assert (frame["high"] >= frame["observed"]).all()


def test_the_change_is_dated(shifted):
    change = shifted.status().change_point
    assert change.low <= START + 15 * DAY <= change.high
    assert abs(change.window - (START + 15 * DAY)) <= 2 * DAY


def test_the_line_of_predictions_ends_where_windows_are_far_apart(tmp_path):
    monitor = cb.Monitor(tmp_path / "store.db")
    for day in (0, 1, 2, 3, 40, 41, 42):
        monitor.observe([0, 1, 0], [0.2, 0.4, 0.3], time=START + day * DAY)
    drawn = monitor.plot(fig=Figure())
    (line,) = [line for line in drawn.rates_.lines if line.get_gid() == "monitor-predicted"]
    assert np.isnan(line.get_ydata()).tolist() == [False] * 4 + [True] + [False] * 3


@pytest.mark.parametrize("days", [1, 2, 150])
def test_any_number_of_windows_can_be_drawn(tmp_path, days):
    monitor = cb.Monitor(tmp_path / "store.db")
    time = np.repeat(np.datetime64("2026-01-01") + np.arange(days), 2)
    monitor.observe([0, 1] * days, [0.4, 0.6] * days, time=time)
    text = cb.plots.svg(monitor.plot(fig=Figure(layout="constrained")))
    assert text == cb.plots.svg(monitor.plot(fig=Figure(layout="constrained")))


def test_a_group_has_its_own_figure_and_threshold(shifted):
    whole, group = shifted.history(), shifted.history("plain")
    # Two groups have a weight of 1/4 each; while both have much evidence, the joint rule needs half of it.
    assert group.windows[0].threshold == pytest.approx(whole.threshold + math.log(4))
    assert group.threshold == pytest.approx(whole.threshold + math.log(4) - math.log(2))
    assert group.threshold == shifted.status().groups["plain"].threshold
    drawn = group.plot(fig=Figure())
    assert "group plain" in drawn.alt_text()
    (line,) = [line for line in drawn.evidence_.lines if line.get_gid() == "monitor-threshold"]
    assert line.get_ydata() == pytest.approx([w.threshold for w in group.windows if w.closed])


def test_the_shown_threshold_of_a_group_is_that_of_the_rule_that_decides(shifted):
    for name in ("plain", "<b>"):
        windows = [w for w in shifted.history(name).windows if w.closed]
        assert [w.alarm for w in windows] == np.logical_or.accumulate(
            [w.log_e_value >= w.threshold for w in windows]
        ).tolist()


def test_an_empty_history_cannot_be_drawn(tmp_path):
    with pytest.raises(InputError, match="history must have at least one window to be drawn; got none"):
        cb.Monitor(tmp_path / "store.db").plot()


def test_the_page_is_self_contained_and_escapes_names(shifted, tmp_path):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    path, page = tmp_path / "page.html", shifted.to_html()
    assert shifted.to_html(path) is path
    assert path.read_text(encoding="utf-8") == page
    assert "<script>$x$" not in page
    assert "&lt;script&gt;$x$" in page
    assert "&lt;b&gt;" in page
    assert "default-src &#39;none&#39;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "Status: alarm for model" in page


def test_the_page_of_an_empty_monitor(tmp_path):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    assert "No window is closed" in cb.Monitor(tmp_path / "store.db").to_html()


def test_results_can_be_pickled(shifted):
    for result in (shifted.status(), shifted.history()):
        assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()


def test_windows_at_both_ends_of_the_calendar_are_drawn(shifted):
    history = shifted.history()
    for year in (1, 8999):
        odd = replace(history.windows[0], start=datetime(year, 1, 1, tzinfo=UTC))
        drawn = replace(history, windows=(odd, *history.windows[1:]), change_point=None).plot(fig=Figure())
        assert "monitor-evidence" in cb.plots.svg(drawn)
