"""Few and extreme rows give a result or an error about input."""

import numpy as np
import pytest

import calibrant as cb

KINDS = {
    "spline": cb.inference.calibration_curve,
    "local": lambda y, p, **rows: cb.inference.calibration_curve(y, p, method="local", **rows),
    "belt": cb.inference.calibration_belt,
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
