"""Cross-fitted scores."""

import numpy as np
import pytest

import calibrant as cb

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from calibrant.calibrators.calibrator import cross_fit


@pytest.fixture
def rows(rng):
    p = rng.random(203)
    return p, rng.random(203) < p**2


def test_each_row_is_calibrated_by_a_fit_to_the_other_folds(rows):
    p, y = rows
    found = cross_fit(cb.Platt(), p, y, n_folds=4, random_state=7)
    for fold in np.array_split(np.random.default_rng(7).permutation(203), 4):
        rest = np.setdiff1d(np.arange(203), fold)
        np.testing.assert_array_equal(found[fold], cb.Platt().fit(p[rest], y[rest])(p[fold]))


def test_equal_weights_change_nothing(rows):
    p, y = rows
    found = cross_fit(cb.Isotonic(), p, y, sample_weight=np.ones(203))
    np.testing.assert_array_equal(found, cross_fit(cb.Isotonic(), p, y))


def test_the_given_calibrator_is_not_fitted(rows):
    calibrator = cb.Platt()
    cross_fit(calibrator, *rows)
    assert not hasattr(calibrator, "map_")
