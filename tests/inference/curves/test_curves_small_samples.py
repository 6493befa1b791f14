"""Few and extreme rows give a result or an error about input."""

import numpy as np
import pytest

import calibrant as cb

KINDS = {
    "spline": cb.inference.calibration_curve,
    "local": lambda y, p, **rows: cb.inference.calibration_curve(y, p, method="local", **rows),
    "isotonic": lambda y, p, **rows: cb.inference.calibration_curve(y, p, method="isotonic", **rows),
    "belt": cb.inference.calibration_belt,
    "decision curve": cb.decision_curve,
    "evaluate": lambda y, p, **rows: str(cb.evaluate(y, p, n_resamples=39, **rows)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ["plain", "weights", "clusters"])
def test_few_and_extreme_rows_give_a_result_or_an_input_error(kind, rows, rng):
    given = 0
    for size in (1, 2, 3, 7, 20, 35):
        for scores in ([0.0, 1.0, 0.5, 1e-12], rng.random(size) ** 20, rng.random(3)):
            p = rng.choice(scores, size)
            options = {
                "plain": {},
                "weights": {"sample_weight": rng.choice([0.1, 1.0, 1e6], size)},
                "clusters": {"cluster": rng.integers(0, size, size)},
            }[rows]
            y = (rng.random(size) < 0.4).astype(int)
            try:
                KINDS[kind](y, p, **options)
                given += 1
            except cb.InputError:
                continue
    assert given


def test_ratios_of_outcomes_to_hopeless_scores_have_infinite_limits():
    y = [1, 1, 0, 1, 0, 0, 1]
    p = [6e-35, 0.13, 0.17, 0.13, 0.015, 6e-35, 9.5e-05]
    found = cb.evaluate(y, p, sample_weight=[0.1, 1, 1e6, 0.1, 0.1, 2, 2], n_resamples=39)
    mean = found.details.levels.mean
    assert mean is None or mean.high >= mean.value
    assert "Infinity" not in found.to_json()


def test_a_curve_at_a_single_score_is_its_rate():
    curve = cb.inference.calibration_curve([1, 1, 0, 0, 1], [0.0, 0.5, 0.5, 0.5, 1.0], method="local", at=[0.5])
    assert np.isfinite(curve.estimate).all()


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("outcome", [0, 1])
def test_many_rows_at_one_score_do_not_leave_other_points_without_rows(degree, outcome):
    """Nine of ten rows share a score, which is the window of each point near it, and lies at its end."""
    score, n = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 0.9]), np.array([2, 2, 90, 2, 2, 2])
    table = cb.ScoreTable.from_counts(score, n, n * outcome)
    fitted = cb.metrics.LocalRegression(degree=degree).fitted(table, np.linspace(0.1, 0.9, 33))
    assert fitted == pytest.approx(np.full(33, outcome), abs=1e-9)


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("method", ["local", "isotonic"])
@pytest.mark.parametrize("weights", [None, "random", "huge"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_class_has_a_band_that_is_not_a_point(method, outcome, weights, rng):
    p = np.linspace(0.05, 0.95, 12)
    weight = {None: None, "random": rng.exponential(size=12), "huge": np.where(np.arange(12) == 3, 1e6, 1.0)}[weights]
    curve = cb.inference.calibration_curve(np.full(12, outcome), p, method=method, sample_weight=weight)
    assert np.isfinite([curve.low, curve.high]).all()
    assert (curve.low <= curve.estimate).all()
    assert (curve.estimate <= curve.high).all()
    assert (curve.high - curve.low).min() > 0.05
