"""The reliability diagram, by the numbers that its artists hold."""

import numpy as np
import pytest
from scipy.stats import binomtest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import extents, page


def test_rare_events_fill_their_axes(rng):
    """With 0.1 % events the points use most of both axes, not a corner of them."""
    z = rng.normal(-8, 1.5, 50_000)
    truth = 1 / (1 + np.exp(-z))
    display = plots.ReliabilityDisplay.from_predictions(rng.random(z.size) < truth, truth, fig=page())
    low, high = (np.log(end / (1 - end)) for end in display.ax_.get_xlim())
    assert display.ax_.get_xlim()[1] < 0.2
    scores = display.breakdowns["model"].partition.mean_score
    logits = np.log(scores / (1 - scores))
    assert logits.max() - logits.min() > 0.35 * (high - low)


def test_points_lie_at_mean_prediction_and_rate(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, bins=cb.bins.EqualSize(7), fig=figure)
    p = drawn.breakdowns["model"].partition
    assert np.array([point.get_xydata()[0] for point in drawn.points_["model"]]) == pytest.approx(
        np.column_stack([p.mean_score, p.rate])
    )
    assert [extents(bar)[1][1] for bar in drawn.sizes_["model"]] == p.n.tolist()
    for i, (whisker, span) in enumerate(zip(drawn.intervals_["model"], drawn.spans_["model"], strict=True)):
        expected = binomtest(int(p.k[i]), int(p.n[i])).proportion_ci()
        assert whisker.get_path().vertices[:, 1] == pytest.approx([expected.low, expected.high])
        assert span.get_path().vertices[:, 0] == pytest.approx([p.min_score[i], p.max_score[i]])


def test_the_line_breaks_at_bins_without_rows(figure):
    p = np.repeat([0.05, 0.15, 0.55, 0.95], 50)
    drawn = plots.ReliabilityDisplay.from_predictions(np.arange(200) % 2, p, fig=figure)
    x, y = drawn.lines_["model"].get_data()
    assert x == pytest.approx([0.05, 0.15, np.nan, 0.55, np.nan, 0.95], nan_ok=True)
    assert y == pytest.approx([0.5, 0.5, np.nan, 0.5, np.nan, 0.5], nan_ok=True)
    assert len(drawn.sizes_["model"]) == 4


def test_bins_of_few_rows_are_hollow(figure):
    p = np.repeat([0.05, 0.15, 0.25], [29, 30, 31])
    drawn = plots.ReliabilityDisplay.from_predictions(np.arange(90) % 2, p, fig=figure)
    solid = [point.get_markerfacecolor() == point.get_markeredgecolor() for point in drawn.points_["model"]]
    assert solid == [False, True, True]
    assert drawn.data()["small"].tolist() == [True, False, False]
    labels = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert "fewer than 30 rows" in labels


def test_bars_of_the_consistency_band_are_those_of_the_simulation(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, band="consistency", n_resamples=99, fig=figure)
    from calibrant.inference.bands import consistency_band

    band = consistency_band(drawn.breakdowns["model"], n_resamples=99)
    ends = np.array([bar.get_path().vertices[:, 1] for bar in drawn.bands_["model"]])
    assert ends == pytest.approx(np.column_stack([band.low, band.high]))
    assert not drawn.intervals_
    assert {"band_low", "band_high"} <= set(drawn.data().columns)


def test_a_band_that_does_not_exist_is_rejected(rows):
    with pytest.raises(cb.InputError, match="band must be 'confidence'"):
        plots.ReliabilityDisplay.from_predictions(*rows, band="both of them", fig=Figure())


def test_models_keep_their_own_bins_colours_and_marks(rows, figure):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, {"a": p, "b": p**2, "c": np.sqrt(p)}, fig=figure)
    lines = list(drawn.lines_.values())
    assert len({line.get_color() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == 3
    assert len({points[0].get_marker() for points in drawn.points_.values()}) == 3
    assert drawn.data().groupby("model")["n"].sum().tolist() == [600] * 3


def test_bins_beyond_an_axis_that_the_user_ends_are_counted(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, ymax=0.2, fig=figure)
    p = drawn.breakdowns["model"].partition
    beyond = int((np.maximum(p.rate, p.mean_score) > 0.2).sum())
    assert f"{beyond} bins beyond 0.2 not shown" in drawn.ax_.get_title(loc="left").replace("\n", " ")


def test_seven_models_have_seven_looks(rows):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, {str(i): p ** (1 + i / 9) for i in range(7)}, fig=page())
    looks = {
        (drawn.lines_[n].get_color(), str(drawn.lines_[n]._dash_pattern), drawn.points_[n][0].get_marker())
        for n in drawn.lines_
    }
    assert len(looks) == 7


def test_a_band_of_some_models_leaves_the_others_empty(rows):
    from calibrant.inference.bands import consistency_band

    y, p = rows
    both = {"a": cb.ECE()(y, p), "b": cb.ECE()(y, p**2)}
    band = consistency_band(both["a"], n_resamples=49, confidence_level=0.5)
    drawn = plots.ReliabilityDisplay(both, {"a": band}).plot(fig=page())
    frame = drawn.data()
    assert frame[frame["model"] == "b"]["band_low"].isna().all()
    assert "50 % null range" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]


def test_the_repr_of_many_models_names_three(rows):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, dict.fromkeys("abcde", p), band=None, fig=page())
    assert repr(drawn).startswith("ReliabilityDisplay(a: ")
    assert repr(drawn).endswith("; and 2 more)")
