"""LogitSpline: its posterior against a slow oracle, its levels of 0 and 1, its band, and calibrated scores."""

import numpy as np
import pytest
from hypothesis import given
from strategies import columns, some_rows

pytest.importorskip("sklearn")

from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import expit, logit

import calibrant as cb
from calibrant.calibrators import logit_spline, maps


def sample(seed, size, slope=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, size)
    return p, (rng.random(size) < expit(slope * logit(p) + shift)).astype(int)


def oracle(p, y, knots):
    """The average over the precisions, with SciPy's optimiser and rows one by one."""
    z = logit(p)
    middle, scale = z.mean(), z.std()
    u = (z - middle) / scale
    splines = CubicSpline(knots, np.eye(knots.size), bc_type="natural")
    grid = np.linspace(knots[0], knots[-1], 20_001)
    second = splines(grid, 2)
    penalty = (second.T @ second) * (grid[1] - grid[0])
    values, vectors = np.linalg.eigh(penalty)
    curves = splines(u) @ (vectors[:, 2:] / np.sqrt(values[2:]))
    straight = np.column_stack([np.ones_like(u), u])
    curves = curves - straight @ np.linalg.lstsq(straight, curves, rcond=None)[0]
    design = np.hstack([straight, curves])
    modes, evidences = [], []
    for line in logit_spline._LINE_PRECISIONS:
        for curve in logit_spline._CURVE_PRECISIONS:
            precision = np.array([line, line] + [curve] * curves.shape[1])

            def loss(w, precision=precision):
                eta = z + design @ w
                return np.sum(np.logaddexp(0, eta) - y * eta) + np.sum(precision * w**2) / 2

            def gradient(w, precision=precision):
                return design.T @ (expit(z + design @ w) - y) + precision * w

            best = minimize(loss, np.zeros(precision.size), jac=gradient, method="BFGS", options={"gtol": 1e-8})
            q = expit(z + design @ best.x)
            hessian = (design * (q * (1 - q))[:, None]).T @ design + np.diag(precision)
            modes.append(z + design @ best.x)
            evidences.append(-best.fun + np.log(precision).sum() / 2 - np.linalg.slogdet(hessian)[1] / 2)
    share = np.exp(np.array(evidences) - max(evidences))
    return share @ np.array(modes) / share.sum()


def test_the_curve_is_the_average_of_an_oracle():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.9, 60)
    y = (rng.random(60) < p**1.5).astype(int)
    cal = cb.LogitSpline(monotone=False, n_knots=5).fit(p, y)
    knots = (cal.map_.x - logit(p).mean()) / logit(p).std()
    assert cal.map_.log_odds(p) == pytest.approx(oracle(p, y, knots), abs=1e-4)


def test_calibrated_scores_stay_as_they_are():
    """The mean increase of the expected log loss with 500 rows; the study of calibrators has more."""
    new, _ = sample(1, 20_000)
    increases = []
    for seed in range(20):
        q = cb.LogitSpline().fit(*sample(100 + seed, 500))(new)
        increases.append(np.mean(new * (np.log(new) - np.log(q)) + (1 - new) * (np.log1p(-new) - np.log1p(-q))))
    expected = -np.mean(new * np.log(new) + (1 - new) * np.log1p(-new))
    assert np.mean(increases) < 0.0025 * expected


def test_a_curved_deviation_is_corrected():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    truth = expit(logit(p) + 1.2 * np.sin(2 * logit(p)) / 2)
    cal = cb.LogitSpline().fit(p, (rng.random(p.size) < truth).astype(int))
    assert np.abs(cal(p) - truth).mean() < 0.01


@given(some_rows)
def test_a_monotone_map_never_falls(pairs):
    y, p = columns(pairs)
    cal = cb.LogitSpline().fit(p, y)
    assert cal.map_.is_increasing
    assert (np.diff(cal(np.linspace(0, 1, 1001))) >= -1e-15).all()


def test_the_free_curve_follows_reversed_scores_and_the_monotone_one_becomes_level():
    p, y = sample(3, 2000)
    free, level = cb.LogitSpline(monotone=False).fit(1 - p, y), cb.LogitSpline().fit(1 - p, y)
    assert np.corrcoef(free(1 - p), p)[0, 1] > 0.98
    assert level([0.0, 0.5, 1.0]) == pytest.approx([y.mean()] * 3, abs=0.02)


def test_scores_of_0_and_1_have_levels_of_their_own():
    p = np.repeat([0.0, 0.2, 0.6, 0.9, 1.0], 100)
    y = np.concatenate([np.arange(100) < k for k in (3, 20, 60, 85, 96)]).astype(int)
    cal = cb.LogitSpline().fit(p, y)
    q = cal([0.0, 1e-15, 0.1, 0.95, 1.0])
    assert q[[0, -1]] == pytest.approx([0.03, 0.96], abs=0.003)
    assert q[1] == q[0]  # closer to 0 than eps
    assert (np.diff(q) >= 0).all()
    without = cb.LogitSpline().fit(p[100:400], y[100:400])
    assert cal([0.2, 0.6, 0.9]) == pytest.approx(without([0.2, 0.6, 0.9]), abs=1e-6)


def test_levels_that_would_fall_are_pooled():
    p = np.repeat([0.0, 0.1, 0.9, 1.0], 200)
    y = np.concatenate([np.arange(200) < k for k in (60, 10, 190, 150)]).astype(int)
    q = cb.LogitSpline().fit(p, y)([0.0, 0.1, 0.9, 1.0])
    assert q[0] == pytest.approx(q[1])
    assert q[3] == pytest.approx(q[2])
    assert q[[0, 3]] == pytest.approx([0.175, 0.85], abs=0.06)


def test_scores_of_0_and_1_without_rows_are_no_certainties():
    rng = np.random.default_rng(9)
    p = rng.uniform(0.3, 0.7, 2000)
    y = (rng.random(2000) < expit(6 * logit(p))).astype(int)
    q = cb.LogitSpline().fit(p, y)([0.0, 1e-300, 1e-9, 0.01, 0.99, 1 - 1e-9, 1.0])
    assert (np.diff(q) >= 0).all()
    assert 1e-12 < q[0] < 1e-5 < 1 - q[-1] + 1e-5


def test_fits_never_raise():
    rng = np.random.default_rng(4)
    for size in (1, 2, 5, 20, 200):
        for score in (
            rng.random(size),
            rng.integers(0, 2, size).astype(float),
            np.full(size, 0.3),
            rng.random(size) ** 99,
        ):
            for y in (np.zeros(size, int), np.ones(size, int), (score > 0.5).astype(int), rng.integers(0, 2, size)):
                q = cb.LogitSpline().fit(score, y)(np.linspace(0, 1, 11))
                assert ((q > 0) & (q < 1)).all()


def test_more_rows_narrow_the_band():
    widths = [
        np.mean(np.subtract(*cb.LogitSpline().fit(*sample(8, n)).band([0.2, 0.5, 0.8]))) for n in (100, 1000, 9000)
    ]
    assert widths[0] < 1.5 * widths[1] < 3 * widths[2] < 0


def test_the_band_covers_the_truth():
    grid = np.linspace(0.05, 0.95, 19)
    truth = expit(1.5 * logit(grid) - 0.4)
    covered = []
    for seed in range(40):
        low, high = cb.LogitSpline().fit(*sample(200 + seed, 400, 1.5, -0.4)).band(grid)
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(covered) > 0.9


def test_a_loaded_map_has_the_same_band(tmp_path):
    cal = cb.LogitSpline().fit(*sample(5, 300))
    cb.save(cal, tmp_path / "cal.json")
    for left, right in zip(
        cb.load(tmp_path / "cal.json").band([0.0, 0.3, 1.0]), cal.band([0.0, 0.3, 1.0]), strict=True
    ):
        assert np.array_equal(left, right)


def test_grouping_many_scores_hardly_changes_the_map(monkeypatch):
    p, y = sample(6, 20_000, 1.4)
    grouped = cb.LogitSpline().fit(p, y)
    monkeypatch.setattr(logit_spline, "_CELL", 1 / 256)
    exact = cb.LogitSpline().fit(p, y)
    grid = np.linspace(0.01, 0.99, 99)
    low, high = exact.band(grid)
    assert np.abs(grouped(grid) - exact(grid)).max() < 0.25 * ((high - low) / 3.92).max()


def test_settings_are_checked():
    for cal, words in (
        (cb.LogitSpline(n_knots=0), "n_knots"),
        (cb.LogitSpline(eps=0.7), "eps"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cal.fit(*sample(7, 50))
    with pytest.raises(cb.InputError, match="confidence_level"):
        cb.LogitSpline().fit(*sample(7, 50)).band([0.5], confidence_level=95)


def test_maps_are_checked():
    good = {"x": [0.0, 1.0], "y": [0.0, 1.0], "slope": [1.0, 1.0], "error": [0.1, 0.1]}
    ends = {"ends": [-20.0, 20.0], "end_errors": [1.0, 1.0]}
    assert maps.LogitCubic(**good, **ends).is_increasing
    assert not maps.LogitCubic(**good | {"y": [1.0, 0.0]}, **ends).is_increasing
    assert not maps.LogitCubic(**good, **ends | {"ends": [9.0, -9.0]}).is_increasing
    for bad, words in (
        ({"ends": [0.0]}, "two numbers"),
        ({"on": "score"}, "no numbers"),
        ({"error": [-1.0, 0.1]}, "errors"),
        ({"y": [0.0, 1e200]}, "log-odds"),
        ({"domain": "real"}, "probability"),
    ):
        with pytest.raises(cb.InputError, match=words):
            maps.LogitCubic(**good | ends | bad)


def test_scores_that_differ_by_less_than_a_knot_are_one():
    tiny = np.nextafter(0.0, 1.0)
    fitted = cb.LogitSpline(from_logits=True).fit([0.0, tiny], [1, 0])
    assert fitted([0.0])[0] == fitted([tiny])[0] == pytest.approx(0.5)
