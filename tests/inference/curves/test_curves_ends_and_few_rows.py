"""Curves at scores of 0 and 1, with few rows of an outcome, and belts of rows in clusters with weights."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant.inference import calibration_belt, calibration_curve


def calibrated(n, mean, seed=0):
    rng = np.random.default_rng([seed, n])
    p = expit(rng.normal(mean, 1, n))
    return rng.random(n) < p, p


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_score_at_an_end_does_not_exclude_the_diagonal(end):
    inside = 0
    for seed in range(8):
        y, p = calibrated(2_000, 0, seed)
        p[0], y[0] = end, end == 1
        curve = calibration_curve(y, p)
        assert curve.low[0] <= curve.diagonal[0] <= curve.high[0]
        assert curve.low[-1] <= curve.diagonal[-1] <= curve.high[-1]
        inside += curve.contains_diagonal
        belt = calibration_belt(y, p)
        assert not any(low == high == end for low, high, _ in belt.deviations(0.95))
    assert inside >= 6


def test_the_local_band_of_few_rows_is_that_of_the_spline():
    y, p = calibrated(500, -3)
    local, spline = (calibration_curve(y, p, method=method) for method in ("local", "spline"))
    (note,) = (note for note in local.notes if note.code == "spline_band")
    assert note.count == min(y.sum(), len(y) - y.sum())
    assert (local.low == spline.low).all()
    assert (local.pointwise_high == spline.pointwise_high).all()
    assert not np.allclose(local.estimate, spline.estimate)
    many = calibration_curve(*calibrated(1_000, 0), method="local")
    assert "spline_band" not in [note.code for note in many.notes]


def test_simultaneous_local_bands_of_few_rows_cover():
    """With their own bands 60 to 80 % of these data sets were covered."""
    covered = [calibration_curve(*calibrated(200, 0, seed), method="local").contains_diagonal for seed in range(40)]
    assert np.mean(covered) >= 0.85  # P(fewer than 34 of 40 at 95 %) = 0.3 %


@pytest.mark.parametrize("kind", ["clusters", "weights"])
def test_the_degree_of_a_belt_is_tested_at_the_lower_degree(kind):
    """The truth is a line far from the diagonal. Tested at the diagonal, nearly all belts had a degree above 1."""
    above = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=4_000)
        y = rng.random(4_000) < expit(x - 2.2)
        options = {
            "clusters": {"cluster": np.arange(4_000) // 40},
            "weights": {"sample_weight": rng.uniform(0.5, 1.5, 4_000)},
        }
        above += calibration_belt(y, expit(x), **options[kind]).degree > 1
    assert above <= 4
