"""The diagram of the segments of an audit."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import calibrant as cb
from calibrant.plots import SegmentDisplay, SegmentMapDisplay
from calibrant.plots.audit_segments import squarified
from calibrant.results import Audit, Segment
from calibrant.results.audit import ResidualTerms


def audit(*segments):
    return Audit(segments, n_rows=1_000, n_features=2, n_tests=9, depth=2, alpha=0.05, confidence_level=0.95)


NORTH = Segment("region = '$north$'", 400, 0.1, 0.2, 0.8, 0.5, 1.1, 1e-5, 1e-4, 0.7, 400, None)
OLD = Segment("age >= 60", 200, 0.3, 0.2, -0.5, -0.9, -0.1, 1e-3, 1e-2, 0.3, 150, None)
ONE_OUTCOME = Segment("age < 20", 60, 0.1, 0.0, np.nan, np.nan, np.nan, 1e-3, 1e-2, 0.0, 60, None)


def test_segments_are_drawn_with_the_largest_error_first():
    display = SegmentDisplay.from_audit(audit(OLD, NORTH), fig=Figure())
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [NORTH.rule, OLD.rule]
    assert display.alt_text() == (
        "Log-odds errors of segments (2 miscalibrated segments): region = '$north$': +0.80; age >= 60: -0.50."
    )
    assert list(display.data()["rule"]) == [OLD.rule, NORTH.rule]


def test_an_audit_without_segments_is_drawn():
    display = audit().plot(fig=Figure())
    assert display.ax_.get_title(loc="left") == "No miscalibrated segment shown"
    assert "<svg" in cb.plots.svg(display)


def test_a_segment_with_one_outcome_is_drawn():
    assert "age &lt; 20" in cb.plots.svg(audit(ONE_OUTCOME, NORTH).plot(fig=Figure()))


def test_tiles_have_areas_in_proportion_to_rows():
    display = SegmentMapDisplay.from_audit(audit(NORTH, OLD), fig=Figure(figsize=(9, 5)))
    tiles = [patch for patch in display.ax_.patches if (patch.get_gid() or "").startswith("segment-tile")]
    areas = np.array([tile.get_width() * tile.get_height() for tile in tiles])
    assert areas / areas.sum() == pytest.approx([0.4, 0.15, 0.45], abs=0.02)
    assert display.data()["n_rows"].tolist() == [400, 150, 450]
    assert display.alt_text() == (
        "Map of 1,000 rows (2 miscalibrated segments): region = '$north$': 400 rows, underestimates; "
        "age >= 60: 150 rows, overestimates."
    )
    assert "<svg" in cb.plots.svg(display)


@pytest.mark.parametrize("sizes", [[1], [5, 3, 2], [1000, 1, 1, 1], [3] * 16, []])
def test_tiles_fill_the_rectangle_and_do_not_overlap(sizes):
    tiles = squarified(sizes, 8.0, 5.0)
    areas = [width * height for *_, width, height in tiles]
    assert areas == pytest.approx([40 * s / sum(sizes) for s in sizes])
    for i, (x, y, width, height) in enumerate(tiles):
        assert min(x, y) >= -1e-9
        assert x + width <= 8 + 1e-9
        assert y + height <= 5 + 1e-9
        for left, top, wide, high in tiles[:i]:
            apart = (
                x >= left + wide - 1e-9
                or left >= x + width - 1e-9
                or y >= top + high - 1e-9
                or top >= y + height - 1e-9
            )
            assert apart


def test_maps_of_audits_without_segments_and_of_points_are_drawn():
    assert "no miscalibrated segment" in audit().plot_map(fig=Figure()).ax_.get_title(loc="left")
    terms = ResidualTerms("mean_error", "the prediction", is_share=False)
    numbers = replace(audit(replace(NORTH, terms=terms)), kind="point", terms=terms)
    assert "mean error" in numbers.plot(fig=Figure()).ax_.get_xlabel()
    assert numbers.plot(fig=Figure()).alt_text().startswith("Mean errors")
    assert "0.1 → 0.2" in "".join(text.get_text() for text in numbers.plot_map(fig=Figure(figsize=(9, 5))).ax_.texts)
