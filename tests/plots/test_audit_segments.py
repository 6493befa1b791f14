"""The diagram of the segments of an audit."""

import numpy as np
from matplotlib.figure import Figure

import calibrant as cb
from calibrant.inference import Audit, Segment
from calibrant.plots import SegmentDisplay


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
