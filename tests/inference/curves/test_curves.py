"""Calibration curves, bands and the belt: values of R, laws, weights, clusters and errors."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaincinv, expit, logit

import calibrant as cb
from calibrant.inference import calibration_belt, calibration_curve
from calibrant.inference.curves.belts import belt_tail
from calibrant.inference.curves.calibration_curves import isotonic_band, supremum_quantile
from calibrant.inference.curves.fitted_curves import knots
from calibrant.metrics import LocalRegression, isotonic_errors, loess_errors

GOLDEN = Path(__file__).parents[2] / "golden"
R = json.loads((GOLDEN / "curves.json").read_text())["cases"]
METHODS = ("spline", "local", "isotonic")


def case(name):
    with np.load(GOLDEN / f"{name}_public.npz") as rows:
        return rows["y"].astype(int), np.array(R[name].get("p", rows["p"]))


def simulated(seed=0, size=800, slope=1.0):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(0, 1.3, size))
    return (rng.random(size) < expit(slope * logit(p))).astype(int), p


@pytest.mark.parametrize("name", R)
@pytest.mark.parametrize("n_knots", [3, 5])
def test_spline_equals_rms(name, n_knots):
    y, p = case(name)
    want = R[name]
    curve = calibration_curve(y, p, n_knots=n_knots, at=want["at"])
    table = cb.ScoreTable.from_arrays(y, p)
    assert knots(table, logit(table.score), n_knots) == pytest.approx(want[f"knots{n_knots}"], abs=1e-9)
    assert logit(curve.estimate) == pytest.approx(np.array(want[f"logit{n_knots}"]), abs=1e-6)
    error = (logit(curve.pointwise_high) - logit(curve.pointwise_low)) / (2 * 1.959963984540054)
    assert error == pytest.approx(np.array(want[f"error{n_knots}"]), rel=1e-6)


@pytest.mark.parametrize("name", R)
def test_cluster_errors_equal_sandwich(name):
    """sandwich's vcovCL has the factor G / (G - 1); ours has G / (G - 1) and G / (G - parameters)."""
    from scipy.special import stdtrit

    y, p = case(name)
    cluster, want = np.arange(1, y.size + 1) % 50, R[name]
    curve = calibration_curve(y, p, at=want["at"], cluster=cluster)
    share = p * (1 - p)
    sums = np.bincount(cluster, weights=share)
    degrees = sums.sum() ** 2 / np.sum(sums**2) - 1 - 4
    width = (logit(curve.pointwise_high) - logit(curve.pointwise_low)) / 2
    error = width / stdtrit(degrees, 0.975) / np.sqrt(50 / 45)
    assert error == pytest.approx(np.array(want["cluster_error5"]), rel=1e-6)


@pytest.mark.parametrize("name", R)
@pytest.mark.parametrize("degree", [1, 2])
def test_local_regression_equals_loess(name, degree):
    y, p = case(name)
    curve = calibration_curve(y, p, method="local", degree=degree, at=R[name]["at"])
    assert curve.estimate == pytest.approx(np.clip(R[name][f"loess{degree}"], 0, 1), abs=1e-6)


@pytest.mark.parametrize("name", R)
def test_loess_errors_equal_austin_and_steyerberg(name):
    y, p = case(name)
    found = loess_errors(y, p)
    assert [found.ici, found.e50, found.e90, found.emax] == pytest.approx(R[name]["errors"], abs=1e-6)
    assert found.curve == "loess"


@pytest.mark.parametrize("name", R)
def test_belt_equals_glm_and_integrate(name):
    y, p = case(name)
    degree, statistic, pvalue = R[name]["belt"]
    belt = calibration_belt(y, p)
    assert belt.degree == degree
    assert belt.test.statistic == pytest.approx(statistic, rel=1e-8)
    assert belt.pvalue == pytest.approx(pvalue, rel=1e-6)
    assert [belt_tail(4 * m + 5, m, 0.95) for m in (1, 2, 3, 4)] == pytest.approx(R[name]["tails"], rel=1e-6)


def test_belt_of_degree_two_has_the_closed_form_of_nattino():
    """Nattino et al. (2014): with one more degree the integral has a closed form."""
    from scipy.special import chdtr, chdtri

    k = chdtri(1, 0.05)
    for t in (4.5, 9.0, 20.0):
        below = chdtr(1, t) - 0.95 - np.sqrt(2 / np.pi) * np.exp(-t / 2) * (np.sqrt(t) - np.sqrt(k))
        assert belt_tail(t, 2, 0.95) == pytest.approx(1 - below / 0.05, abs=1e-9)


def test_isotonic_band_equals_all_intervals():
    """The literal definition: exact limits of every run of scores, two for each of m (m + 1) / 2 runs."""
    rng = np.random.default_rng(3)
    p = rng.random(60).round(1)
    table = cb.ScoreTable.from_arrays(rng.random(60) < p, p)
    m, at = len(table), np.linspace(0, 1, 41)
    tail = 0.05 / (m * (m + 1))
    low, high = np.zeros(at.size), np.ones(at.size)
    for i in range(m):
        for j in range(i, m):
            n, k = table.n[i : j + 1].sum(), table.k[i : j + 1].sum()
            below = betaincinv(k, n - k + 1, tail) if k else 0.0
            above = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
            low = np.where(at >= table.score[j], np.maximum(low, below), low)
            high = np.where(at <= table.score[i], np.minimum(high, above), high)
    found = isotonic_band(table, at, 0.95)
    assert found[0] == pytest.approx(low, abs=1e-12)
    assert found[1] == pytest.approx(high, abs=1e-12)


def test_isotonic_band_of_many_scores_is_monotone_and_covers_the_estimate():
    y, p = simulated(size=3000)
    curve = calibration_curve(y, p, method="isotonic")
    assert all(a <= b for a, b in pairwise(curve.low))
    assert all(a <= b for a, b in pairwise(curve.high))
    assert ((curve.low <= curve.estimate) & (curve.estimate <= curve.high)).all()
    assert curve.pointwise_low is None


def test_errors_of_the_isotonic_curve_equal_isotonic_errors():
    y, p = simulated()
    curve, errors = calibration_curve(y, p, method="isotonic"), isotonic_errors(y, p)
    assert curve.errors.ici == pytest.approx(errors.ici)
    assert curve.errors.emax == errors.emax


@pytest.mark.parametrize("method", METHODS)
def test_rows_tables_and_shuffled_rows_give_identical_curves(method):
    y, p = simulated()
    order = np.random.default_rng(1).permutation(y.size)
    first = calibration_curve(y, p, method=method)
    for again in (
        calibration_curve(cb.ScoreTable.from_arrays(y, p), method=method),
        calibration_curve(y[order], p[order], method=method),
    ):
        assert first.to_frame().equals(again.to_frame())


@pytest.mark.parametrize("method", METHODS)
def test_frequency_equals_repeated_rows(method):
    y, p = simulated(size=300)
    times = np.random.default_rng(2).integers(1, 4, y.size)
    counted = calibration_curve(y, p, frequency=times, method=method)
    assert counted.to_frame().equals(
        calibration_curve(np.repeat(y, times), np.repeat(p, times), method=method).to_frame()
    )


def test_random_state_decides_the_band_and_nothing_else():
    y, p = simulated()
    first, same, other = (calibration_curve(y, p, random_state=seed) for seed in (1, 1, 2))
    assert first.low.tobytes() == same.low.tobytes()
    assert first.low.tobytes() != other.low.tobytes()
    assert first.pointwise_low.tobytes() == other.pointwise_low.tobytes()


def test_supremum_of_one_coordinate_is_the_normal_quantile():
    factor = np.full((5, 1), 2.0)
    assert supremum_quantile(factor, np.inf, 0.95, 400_000, 0) == pytest.approx(1.96, abs=0.01)
    independent = np.eye(8)
    assert supremum_quantile(independent, np.inf, 0.95, 400_000, 0) == pytest.approx(2.7276, abs=0.01)


@pytest.mark.parametrize("method", ["spline", "local"])
def test_simultaneous_bands_contain_pointwise_bands(method):
    curve = calibration_curve(*simulated(), method=method)
    assert (curve.low <= curve.pointwise_low).all()
    assert (curve.high >= curve.pointwise_high).all()
    assert (curve.pointwise_low <= curve.estimate).all()


@pytest.mark.parametrize("method", ["spline", "local"])
def test_repeated_rows_in_clusters_do_not_narrow_the_band(method):
    """Each row five times, in its own cluster: the band is that of the single rows, not narrower by root 5."""
    y, p = simulated(size=600)
    once = calibration_curve(y, p, cluster=np.arange(y.size), method=method)
    five = calibration_curve(np.repeat(y, 5), np.repeat(p, 5), cluster=np.repeat(np.arange(y.size), 5), method=method)
    naive = calibration_curve(np.repeat(y, 5), np.repeat(p, 5), method=method)
    width = [np.mean(c.pointwise_high - c.pointwise_low) for c in (once, five, naive)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] < 0.6 * width[0]


def test_scale_of_weights_changes_nothing():
    y, p = simulated()
    weight = np.random.default_rng(5).exponential(size=y.size)
    first = calibration_curve(y, p, sample_weight=weight)
    assert calibration_curve(y, p, sample_weight=7 * weight).low == pytest.approx(first.low, rel=1e-6)
    belt, again = (calibration_belt(y, p, sample_weight=w) for w in (weight, 7 * weight))
    assert again.pvalue == pytest.approx(belt.pvalue, rel=1e-6)


def test_belt_of_equal_weights_is_close_to_that_of_counts():
    y, p = simulated(size=5000, slope=0.8)
    counted, weighted = calibration_belt(y, p), calibration_belt(y, p, sample_weight=np.ones(y.size))
    assert weighted.degree == counted.degree
    assert weighted.test.statistic == pytest.approx(counted.test.statistic, rel=0.15)


def test_deviations_name_the_side_of_the_diagonal():
    y, p = simulated(size=5000, slope=0.6)
    found = calibration_belt(y, p).deviations(0.95)
    assert [side for _, _, side in found] == ["above", "below"]
    assert found[0][1] < 0.5 < found[1][0]


def test_results_are_plain_data():
    y, p = simulated(size=400)
    for result in (calibration_curve(y, p), calibration_curve(y, p, method="isotonic"), calibration_belt(y, p)):
        text = json.dumps(result.to_dict(), allow_nan=False)
        assert '"estimate"' in text
        assert len(result.to_frame()) == result.score.size
    assert "80 % belt" in calibration_belt(y, p).bands


def test_ties_reduce_the_knots_and_say_so():
    p = np.repeat([0.2, 0.4, 0.8], 100)
    y = np.random.default_rng(0).random(300) < p
    curve = calibration_curve(y, p)
    assert [note.code for note in curve.notes] == ["tied_knots"]
    assert len(curve.settings["knots"]) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "loess"}, "method"),
        ({"n_knots": 2}, "n_knots"),
        ({"method": "local", "span": 1.5}, "span"),
        ({"method": "local", "degree": 3}, "degree"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"at": [0.5, 1.5]}, "at"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(cb.InputError, match=words):
        calibration_curve(*simulated(), **options)


ROWS = {
    "rows": {},
    "weights": {"sample_weight": np.random.default_rng(5).exponential(size=800)},
    "frequencies": {"frequency": np.arange(800) % 3 + 1},
    "clusters": {"cluster": np.arange(800) % 40},
    "clusters and weights": {"cluster": np.arange(800) % 40, "sample_weight": np.linspace(0.5, 2, 800)},
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("method", [*METHODS, "belt"])
def test_all_curves_take_rows_tables_weights_and_clusters(method, rows):
    """A table of the same rows gives the same curve; the band contains the curve, and the diagonal of this model."""
    fit = calibration_belt if method == "belt" else lambda *a, **b: calibration_curve(*a, method=method, **b)
    y, p = simulated(seed=2)
    curve = fit(y, p.round(3), **ROWS[rows])
    low, high = next(iter(curve.bands.values()))
    assert np.isfinite([low, high]).all()
    outside = int(((curve.estimate < low - 1e-12) | (curve.estimate > high + 1e-12)).sum())
    assert sum(note.count for note in curve.notes if note.code == "biased_curve") == outside
    assert outside <= (2 if method == "local" else 0)
    assert ((low <= curve.score) & (curve.score <= high)).all()
    assert 0.05 < np.median(high - low) < 0.8
    options = {name: value for name, value in ROWS[rows].items() if name != "cluster"}
    table = cb.ScoreTable.from_arrays(y, p.round(3), **options)
    if "cluster" in ROWS[rows]:
        with pytest.raises(cb.InputError, match="cluster must be given with y_true"):
            fit(table, cluster=ROWS[rows]["cluster"])
        options = {}
    else:
        again = fit(table)
        assert again.estimate == pytest.approx(curve.estimate, abs=1e-12)
        assert next(iter(again.bands.values()))[0] == pytest.approx(low, abs=1e-12)


@pytest.mark.parametrize("rows", ["rows", "weights", "clusters and weights"])
def test_all_curves_are_drawn_together(rows):
    from matplotlib.figure import Figure

    y, p = simulated(seed=2)
    methods = ["spline", "local", "isotonic", "belt"]
    drawn = cb.plots.CalibrationCurveDisplay.from_predictions(y, p, method=methods, fig=Figure(), **ROWS[rows])
    assert list(drawn.lines_) == methods
    assert all(drawn.bands_[name] for name in methods)


def test_isotonic_band_of_equal_weights_is_close_to_the_exact_one():
    """The exact band of 50 groups, and the approximate one of the same groups of rows of weight 1."""
    y, p = simulated(size=3000)
    p = p.round(1).clip(0.05, 0.95)
    exact = calibration_curve(y, p, method="isotonic")
    weighted = calibration_curve(y, p, method="isotonic", sample_weight=np.full(y.size, 3.0))
    single = calibration_curve(y, p, method="isotonic", cluster=np.arange(y.size))
    for found in (weighted, single):
        assert found.estimate == pytest.approx(exact.estimate)
        assert found.low == pytest.approx(exact.low, abs=0.03)
        assert found.high == pytest.approx(exact.high, abs=0.03)


def test_isotonic_band_of_repeated_rows_in_clusters_is_not_narrower():
    y, p = simulated(size=600)
    p = p.round(1).clip(0.05, 0.95)
    five = calibration_curve(
        np.repeat(y, 5), np.repeat(p, 5), cluster=np.repeat(np.arange(y.size), 5), method="isotonic"
    )
    once = calibration_curve(y, p, cluster=np.arange(y.size), method="isotonic")
    naive = calibration_curve(np.repeat(y, 5), np.repeat(p, 5), method="isotonic")
    width = [np.mean(curve.high - curve.low) for curve in (once, five, naive)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] < 0.7 * width[1]


def test_effective_rows_of_runs_equal_a_loop_over_clusters():
    """Variance of each run of groups: the sum over clusters of the squared sums of weight * (event - rate)."""
    from calibrant.inference.curves.calibration_curves import _run_variances
    from calibrant.inference.design import Design
    from calibrant.inference.paired_rows import read_rows

    y, p = simulated(size=300)
    cluster, weight = np.arange(300) % 25, np.linspace(0.5, 2, 300)
    design = Design(*read_rows(y, p.round(1), cluster, {"sample_weight": weight}))
    score = design.table.score
    found = _run_variances(design, np.arange(score.size), np.full((score.size, score.size), 0.3))
    for i in range(score.size):
        for j in range(i, score.size):
            inside = (p.round(1) >= score[i]) & (p.round(1) <= score[j])
            sums = np.bincount(cluster, weights=inside * weight * (y - 0.3), minlength=25)
            assert found[i, j] == pytest.approx(np.sum(sums**2) * 25 / 24)


def test_separated_outcomes_have_no_spline():
    p = np.linspace(0.01, 0.99, 100)
    with pytest.raises(cb.InputError, match="separates"):
        calibration_curve(p > 0.5, p)
    with pytest.raises(cb.InputError, match="both outcomes"):
        calibration_curve(np.zeros(100), p)


@pytest.mark.parametrize("options", [{}, {"sample_weight": np.linspace(1, 2, 100)}, {"cluster": np.arange(100) % 20}])
def test_belt_needs_outcomes_that_determine_a_line(options):
    p = np.linspace(0.01, 0.99, 100)
    for y, score in ((p > 0.5, p), (np.zeros(100), p), (np.arange(100) % 2, np.full(100, 0.3))):
        with pytest.raises(cb.InputError, match="distinct scores"):
            calibration_belt(y, score, **options)
    coarse = np.repeat([0.2, 0.8], 50)
    assert calibration_belt(np.arange(100) % 3 == 0, coarse, **options).degree == 1


def test_local_regression_reproduces_a_line():
    table = cb.ScoreTable.from_counts(np.linspace(0.1, 0.9, 9), [100] * 9, np.arange(10, 100, 10))
    fitted = LocalRegression(0.5, 1).fitted(table, table.score)
    assert fitted == pytest.approx(table.score, abs=1e-12)


def test_errors_of_calibrated_models_depend_on_the_curve():
    """500 rows: the documentation says about 0.045 by the isotonic curve and 0.03 by loess."""
    found = []
    for seed in range(30):
        y, p = simulated(seed, 500)
        found.append((isotonic_errors(y, p).ici, loess_errors(y, p).ici))
    isotonic, loess = np.mean(found, axis=0)
    assert isotonic == pytest.approx(0.045, abs=0.005)
    assert loess == pytest.approx(0.03, abs=0.005)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("isotonic", {"span": 0.5}),
        ("isotonic", {"degree": 1}),
        ("isotonic", {"n_knots": 4}),
        ("local", {"n_knots": 4}),
        ("spline", {"span": 0.5}),
    ],
)
def test_options_of_another_method_are_refused(method, options):
    (name,) = options
    with pytest.raises(cb.InputError, match=f"{name} must be None with method='{method}'"):
        calibration_curve(*simulated(), method=method, **options)
