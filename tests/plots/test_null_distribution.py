"""The null distribution of a metric, by the numbers that its artists hold."""

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")


import calibrant as cb
from calibrant import plots


def test_the_bars_of_a_null_count_every_replicate(rows, figure):
    found = cb.null(cb.ECE(), *rows, n_resamples=199, random_state=1)
    drawn = plots.NullDisplay.from_null(found, fig=figure)
    values, edges, _ = drawn.histogram_.get_data()
    assert values.sum() == 199
    assert (edges[0], edges[-1]) == (found.replicates.min(), found.replicates.max())
    assert drawn.value_.get_xdata()[0] == found.value
    assert drawn.expected_.get_xdata()[0] == found.expected
    assert (drawn.band_.get_x(), drawn.band_.get_x() + drawn.band_.get_width()) == pytest.approx(
        (found.low, found.high)
    )


def test_the_null_of_a_metric_value_is_that_of_its_metric(rows, figure):
    reading = cb.METRICS["brier"]()(*rows)
    drawn = plots.NullDisplay.from_breakdown(reading, n_resamples=49, fig=figure)
    assert drawn.null.metric == "Brier"
    assert drawn.null.value == reading.value
