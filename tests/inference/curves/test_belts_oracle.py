"""The calibration belt and its test against a slow transcription of Nattino et al. (2014), row by row.

The data of givitiR's published example (icuData) are not part of this repository, so its numbers cannot be repeated
here. The oracle shares no code with the package: likelihoods of rows by a general optimiser, the distribution of the
statistic by simulation of its definition, and the belt by the likelihood itself, as in givitiR.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2

from calibrant.inference import calibration_belt
from calibrant.inference.curves.belts import belt_tail


def rows(seed, size, curve):
    rng = np.random.default_rng(seed)
    x = rng.normal(-0.5, 1.2, size)
    return (rng.random(size) < expit(curve(x))).astype(float), expit(x)


CURVES = {
    "calibrated": (1, 800, lambda x: x),
    "slope": (2, 800, lambda x: 0.3 + 0.6 * x),
    "parabola": (3, 1500, lambda x: x + 0.25 * x**2),
    "cubic": (4, 4000, lambda x: 0.4 * x + 0.15 * x**3),
}


def log_likelihood(beta, y, x):
    eta = np.polynomial.polynomial.polyval(x, beta)
    return float(np.sum(y * eta - np.logaddexp(0, eta)))


def maximum(y, x, degree):
    start = np.zeros(degree + 1)
    start[1] = 1.0
    found = minimize(lambda b: -log_likelihood(b, y, x), start, method="BFGS", options={"gtol": 1e-7})
    return found.x, -found.fun


def oracle_test(y, x, threshold=0.95, most=4):
    """Return degree and statistic: forward selection by likelihood ratios, then the ratio to the diagonal."""
    diagonal = log_likelihood([0.0, 1.0], y, x)
    degree, (_, best) = 1, maximum(y, x, 1)
    while degree < most:
        _, higher = maximum(y, x, degree + 1)
        if chi2.sf(2 * (higher - best), 1) >= 1 - threshold:
            break
        degree, best = degree + 1, higher
    return degree, 2 * (best - diagonal)


@pytest.mark.parametrize("name", CURVES)
def test_degree_and_statistic_equal_the_oracle(name):
    seed, size, curve = CURVES[name]
    y, p = rows(seed, size, curve)
    degree, statistic = oracle_test(y, logit(p))
    belt = calibration_belt(y, p)
    assert belt.degree == degree
    assert belt.test.statistic == pytest.approx(statistic, abs=1e-5)


def test_the_curves_have_several_degrees():
    assert {oracle_test(y, logit(p))[0] for y, p in (rows(*each) for each in CURVES.values())} >= {1, 2, 3}


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_tail_equals_simulation_of_its_definition(degree):
    """A chi-squared variable with two degrees of freedom, and one for each higher power, each above the threshold."""
    rng, threshold, count = np.random.default_rng(degree), 0.95, 400_000
    steps = chi2.isf((1 - threshold) * rng.random((degree - 1, count)), 1)  # conditional on being selected
    total = rng.chisquare(2, count) + steps.sum(axis=0)
    for level in (0.3, 0.8, 0.95, 0.99):
        at = float(np.quantile(total, level))
        assert belt_tail(at, degree, threshold) == pytest.approx(
            1 - level, abs=4 * (level * (1 - level) / count) ** 0.5
        )


def likelihood_belt(y, x, degree, quantile, at):
    """Return the lowest and highest rate at a point over all coefficients that the likelihood ratio does not reject."""
    best, top = maximum(y, x, degree)
    powers = at ** np.arange(degree + 1)
    inside = {"type": "ineq", "fun": lambda b: quantile - 2 * (top - log_likelihood(b, y, x))}
    ends = []
    for sign in (1, -1):
        found = minimize(lambda b, s=sign: s * float(powers @ b), best, constraints=[inside], method="SLSQP")
        assert found.success
        ends.append(expit(float(powers @ found.x)))
    return ends


@pytest.mark.parametrize("name", ["slope", "parabola"])
def test_belt_is_close_to_that_of_the_likelihood(name):
    """The package approximates the log likelihood by a parabola; givitiR does not."""
    seed, size, curve = CURVES[name]
    y, p = rows(seed, size, curve)
    at = np.quantile(p, [0.05, 0.5, 0.95])
    belt = calibration_belt(y, p, at=at)
    quantile = float(chi2.isf(0.05, 2)) if belt.degree == 1 else _quantile(belt.degree)
    low, high = belt.limits[0.95]
    for i, score in enumerate(np.sort(at)):
        ends = likelihood_belt(y, logit(p), belt.degree, quantile, float(logit(score)))
        assert [low[i], high[i]] == pytest.approx(ends, abs=0.015)


def _quantile(degree):
    from scipy.optimize import brentq

    return brentq(lambda t: belt_tail(t, degree, 0.95) - 0.05, 0.1, 100)
