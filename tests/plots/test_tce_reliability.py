"""The test-based reliability diagram, by the numbers that its artists hold."""

import numpy as np
import pytest
from scipy.stats import binomtest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import extents, number, page


@pytest.fixture
def tested(rows, figure):
    return plots.TestBasedReliabilityDisplay.from_predictions(*rows, fig=figure, n_resamples=49)


def test_bars_are_sizes_and_rejected_rows(tested):
    b = tested.breakdown.per_bin
    accepted = {number(bar): extents(bar) for bar in tested.accepted_sizes_}
    rejected = {number(bar): extents(bar) for bar in tested.rejected_sizes_}
    assert sorted(rejected) == np.flatnonzero(b["rejected"]).tolist()
    assert sorted(accepted) == np.flatnonzero(b["rejected"] < b["n"]).tolist()
    for i in range(len(b["n"])):
        if i in rejected:
            assert (rejected[i][0][1], rejected[i][1][1]) == (0, b["rejected"][i])
        if i in accepted:
            assert (accepted[i][0][1], accepted[i][1][1]) == (b["rejected"][i], b["n"][i])
    assert [text.get_text() for text in tested.ax_sizes_.texts] == [f"{share:.0f} %" for share in b["loss"]]


def test_lines_are_rates_with_exact_intervals(tested):
    p = tested.breakdown.partition
    assert [number(rate) for rate in tested.rates_] == list(range(len(p)))
    for i, (rate, whisker) in enumerate(zip(tested.rates_, tested.intervals_, strict=True)):
        assert rate.get_path().vertices[:, 1] == pytest.approx([p.rate[i]] * 2)
        expected = binomtest(int(p.k[i]), int(p.n[i])).proportion_ci()
        low, high = extents(whisker)
        assert (low[1], high[1]) == pytest.approx((expected.low, expected.high))


def test_violins_reach_from_the_lowest_to_the_highest_prediction_of_their_bin(tested):
    p = tested.breakdown.partition
    for i in range(len(p)):
        parts = [v for v in (*tested.accepted_violins_, *tested.rejected_violins_) if number(v) == i]
        low = min(extents(v)[0][1] for v in parts)
        high = max(extents(v)[1][1] for v in parts)
        assert (low, high) == pytest.approx((p.min_score[i], p.max_score[i]))
        left, right = min(extents(v)[0][0] for v in parts), max(extents(v)[1][0] for v in parts)
        assert (i - left, right - i) == pytest.approx((0.42, 0.42))


def test_violins_are_red_where_the_exact_test_rejects(tested):
    p = tested.breakdown.partition
    assert tested.rejected_violins_
    for violins, rejects in ((tested.accepted_violins_, False), (tested.rejected_violins_, True)):
        for violin in violins:
            i = number(violin)
            heights = np.unique(violin.get_path().vertices[:, 1])
            for height in heights[1:-1]:  # the ends are half way to what is not
                found = binomtest(int(p.k[i]), int(p.n[i]), float(height)).pvalue <= 0.05
                border = min(abs(height - h) for h in (*heights[:2], *heights[-2:]))
                assert found == rejects or border < 0.02


def test_a_violin_is_the_distribution_of_its_rows(figure, rng):
    """Two groups of predictions in one bin make a violin with two bellies, as wide as they are many."""
    p = np.concatenate([rng.normal(0.3, 0.01, 3000), rng.normal(0.6, 0.01, 1000)])
    y = rng.random(4000) < 0.4
    gce = cb.TCE(bins=cb.bins.Edges([0, 1]))
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(gce(y, p), fig=figure)
    vertices = np.concatenate([v.get_path().vertices for v in (*drawn.accepted_violins_, *drawn.rejected_violins_)])

    def near(at):
        return vertices[np.abs(vertices[:, 1] - at) < 0.02, 0].max()

    assert near(0.6) / near(0.3) == pytest.approx(1 / 3, abs=0.06)
    assert near(0.45) < 0.02


def test_the_histogram_counts_every_row(tested):
    assert sum(extents(bar)[1][0] for bar in tested.histogram_) == 600
    edges = np.linspace(0, tested.ax_.get_ylim()[1] / 1.025, 41)
    expected = np.histogram(tested.breakdown.partition.table.score, edges)[0]
    assert sorted(extents(bar)[1][0] for bar in tested.histogram_) == sorted(expected[expected > 0])


def test_the_headline_has_the_value_and_its_null_range(tested):
    found = cb.null(tested.breakdown.definition, tested.breakdown.partition.table, n_resamples=49, random_state=0)
    title = tested.ax_.get_title(loc="left").replace("\N{NO-BREAK SPACE}", " ")
    assert f"TCE = {tested.breakdown.value:.1f} %" in title
    assert f"{found.low:.1f} to {found.high:.1f} %" in title


def test_default_bins_are_those_of_the_panel(tested):
    """With the bins of the paper, calibrated models are painted orange as the number of rows grows."""
    assert tested.breakdown.definition == cb.TCE(bins=cb.bins.PAVABC(sizes="grades"))


def test_bins_of_one_score_are_labelled_by_it():
    table = cb.ScoreTable.from_counts([0.01, 0.05, 0.2], [400, 300, 200], [4, 15, 40])
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(table, n_resamples=0, fig=page())
    assert drawn.data()["n"].tolist() == [400, 300, 200]
    assert [text.get_text() for text in drawn.ax_sizes_.get_xticklabels()] == ["0.01", "0.05", "0.2"]
    assert drawn.ax_sizes_.get_xlabel() == "scores, one bin each"
    assert not drawn.rejected_sizes_


def test_without_resamples_the_headline_is_only_the_value(rows, figure):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=figure)
    assert drawn.null is None
    assert drawn.ax_.get_title(loc="left") == f"TCE = {drawn.breakdown.value:.1f}\N{NO-BREAK SPACE}%"
    assert "expected if calibrated" not in drawn.alt_text()


def test_percentages_above_bars_are_drawn_where_they_fit(rows):
    wide, narrow = Figure(figsize=(12, 7)), Figure(figsize=(4, 4))
    texts = [
        plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=fig).ax_sizes_.texts
        for fig in (wide, narrow)
    ]
    assert texts[0]
    assert not texts[1]


@pytest.mark.parametrize("scale", ["log", "logit"])
def test_a_log_axis_clips_values_beyond_its_ends_and_labels_them(scale, figure, rng):
    p = np.concatenate([np.zeros(200), rng.lognormal(-7, 1, 4000).clip(0, 0.5), np.ones(50)])
    y = rng.random(p.size) < p
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(y, p, scale=scale, n_resamples=0, fig=figure)
    low, high = drawn.ax_.get_ylim()
    assert low > 0
    assert (high < 1) == (scale == "logit")
    heights = np.concatenate([v.get_path().vertices[:, 1] for v in (*drawn.rates_, *drawn.accepted_violins_)])
    assert low < heights.min()
    assert heights.max() < high
    figure.canvas.draw()
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert labels[0].startswith("≤ ")
    assert labels[-1].startswith("≥ ") == (scale == "logit")
    assert sum(extents(bar)[1][0] for bar in drawn.histogram_) == p.size


def test_a_user_limit_cuts_the_axis_and_marks_values_beyond(rows, figure):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, ymax=0.3, n_resamples=0, fig=figure)
    b = drawn.breakdown.per_bin
    assert drawn.ax_.get_ylim()[1] == pytest.approx(0.3075)
    marked = drawn.beyond_[0].get_xdata()
    assert marked.tolist() == np.flatnonzero(np.maximum(b["max_score"], b["rate"]) > 0.3).tolist()
    assert sum(extents(bar)[1][0] for bar in drawn.histogram_) == (rows[1] <= 0.3).sum()
    assert [r.get_path().vertices[0, 1] for r in drawn.rates_] == pytest.approx(b["rate"])


@pytest.mark.parametrize(("name", "value"), [("scale", "sqrt"), ("ymax", 0), ("ymax", 1.5), ("ymax", -1)])
def test_an_axis_that_makes_no_sense_is_rejected(name, value, rows):
    with pytest.raises(cb.InputError, match=f"{name} must"):
        plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=Figure(), **{name: value})


def test_a_loss_that_is_not_a_test_is_rejected(rows):
    with pytest.raises(cb.InputError, match=r"whose loss tests scores, such as TCE; got ECE.*cb\.TCE"):
        plots.TestBasedReliabilityDisplay.from_breakdown(cb.ECE()(*rows), fig=Figure())


def test_other_tests_and_weights_are_plotted(rows, rng, figure):
    y, p = rows
    metric = cb.TCE(test=cb.significance.score)
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(
        y, p, sample_weight=rng.exponential(size=600), metric=metric, n_resamples=9, fig=figure
    )
    assert drawn.ax_sizes_.get_ylabel() == "weight"
    assert drawn.data()["rejected"].sum() > 0


@pytest.mark.parametrize("count", [60, 61, 200, 201, 1000])
def test_many_bins_make_small_files(count, rng):
    p = rng.random(40_000)
    breakdown = cb.TCE(bins=cb.bins.EqualSize(count))(rng.random(40_000) < p**1.2, p)
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(
        breakdown, fig=Figure(figsize=(8, 5.6), layout="constrained")
    )
    assert len(plots.svg(drawn)) < 200_000
    assert len(drawn.rates_) == (count if count <= 200 else 1)
    assert len(drawn.data()) == count


def test_the_number_of_rows_does_not_change_the_size_of_a_file(rng):
    sizes = []
    for n in (2_000, 200_000):
        p = rng.random(n)
        breakdown = cb.TCE(bins=cb.bins.EqualSize(12))(rng.random(n) < p, p)
        sizes.append(len(plots.svg(plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, fig=Figure()))))
    assert max(sizes) < 70_000
    assert max(sizes) / min(sizes) < 1.3


@pytest.mark.parametrize("scale", ["linear", "log", "logit"])
def test_rejected_predictions_beyond_the_axis_are_red_at_its_end(scale):
    p = np.r_[np.full(5, 1e-6), np.full(995, 0.01)]
    y = np.zeros(1000)
    y[100:108] = 1
    breakdown = cb.TCE(bins=cb.bins.Edges([0, 1]))(y, p)
    assert breakdown.per_bin["rejected"].tolist() == [5]
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, scale=scale, fig=page())
    assert len(drawn.rejected_violins_) == 1
    assert extents(drawn.rejected_violins_[0])[0][1] == min(extents(v)[0][1] for v in drawn.rejected_violins_)


def test_the_share_that_is_rejected_is_that_of_rows_whatever_the_norm(rows):
    gce = cb.GCE(cb.bins.EqualSize(5), cb.losses.RejectionRate(), cb.norms.sup, name="worst")
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(gce(*rows), fig=page())
    share = 100 * drawn.data()["rejected"].sum() / 600
    assert drawn.breakdown.value > share
    assert f"{share:.1f} % of predictions are rejected" in drawn.alt_text()


def test_a_cut_histogram_does_not_claim_all_rows(rows):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, ymax=0.2, n_resamples=0, fig=page())
    assert drawn.ax_histogram_.get_ylabel() == "rows up to 0.2"
    assert plots.ReliabilityDisplay.from_predictions(*rows, fig=page()).ax_histogram_.get_ylabel() == "all rows"


def test_too_many_bins_are_rejected(rng):
    p = rng.random(3000)
    with pytest.raises(cb.InputError, match=r"at most 1,000 bins; got 1,001"):
        plots.TestBasedReliabilityDisplay.from_breakdown(
            cb.TCE(bins=cb.bins.EqualSize(1001))(rng.random(3000) < p, p), fig=page()
        )


def test_edges_are_labelled_between_their_bins(rng):
    p = np.r_[rng.uniform(0, 0.2, 300), rng.uniform(0.5, 0.6, 100)]
    breakdown = cb.TCE(bins=cb.bins.EqualWidth(10))(rng.random(400) < p, p)
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, fig=page())
    found = {
        float(t): label.get_text()
        for t, label in zip(drawn.ax_sizes_.get_xticks(), drawn.ax_sizes_.get_xticklabels(), strict=True)
    }
    assert found == {-0.5: "0", 0.5: "0.1", 1.5: "0.2 … 0.5", 2.5: "0.6"}


def test_the_repr_of_a_display_has_the_value_rounded(rows):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=page())
    bins = len(drawn.breakdown.partition)
    assert repr(drawn) == f"TestBasedReliabilityDisplay(TCE = {drawn.breakdown.value:.1f} %, 600 rows, {bins} bins)"
