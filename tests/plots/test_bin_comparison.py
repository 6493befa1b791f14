"""The comparison of kinds of bins, by the numbers that its artists hold."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")


import calibrant as cb
from calibrant import plots
from tests.plots.displays import extents


def test_kinds_of_bins_have_their_sizes_edges_rates_and_errors(rows, figure):
    drawn = plots.BinningDisplay.from_predictions(*rows, fig=figure)
    assert list(drawn.partitions) == ["PAVA", "PAVA-BC", "10 quantiles"]
    frame = drawn.data()
    for name, p in drawn.partitions.items():
        assert [extents(bar)[1][1] for bar in drawn.sizes_[name]] == p.n.tolist()
        assert [rate.get_path().vertices[0, 1] for rate in drawn.rates_[name]] == pytest.approx(p.rate)
        for edges in drawn.boundaries_[name]:
            assert [segment[0, 0] for segment in edges.get_segments()] == pytest.approx(p.lower[1:])
        own = frame[frame["bins"] == name]
        assert set(own["total_error"]) == {cb.metrics.total_error(p)}
        assert set(own["mean_within_error"]) == {cb.metrics.mean_within_error(p)}
        falls = [False, *(p.rate[1:] < p.rate[:-1])]
        assert own["falls"].tolist() == falls
        assert drawn.violations_[name].get_ydata() == pytest.approx(p.rate[np.array(falls)])
        assert f"{cb.metrics.total_error(p):.4f}" in drawn.ax_rates_[name].get_title(loc="left")
    assert not frame[frame["bins"] == "PAVA"]["falls"].any()


def test_bins_and_axes_can_be_chosen(rows, figure):
    kinds = {"halves": cb.bins.EqualWidth(2), "my own": cb.bins.Edges([0, 0.25, 1])}
    drawn = plots.BinningDisplay.from_predictions(*rows, bins=kinds, xmax=0.4, fig=figure)
    assert drawn.ax_rates_["halves"].get_xlim()[1] == pytest.approx(0.41)
    assert [bar.get_gid() for bar in drawn.sizes_["halves"]] == ["binning-halves-bin-0-size"]  # the other is beyond
    assert len(drawn.sizes_["my own"]) == 2
