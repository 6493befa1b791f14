"""Section 4.1: Gaussian discriminant analysis, with the logistic regression of scikit-learn 1.2."""

from functools import cache

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

Columns = tuple[np.ndarray, np.ndarray]


@cache
def predictions(train: float, test: float, n_test: int = 6000) -> Columns:
    """Return test outcomes, and predictions of a logistic regression fitted to rows of another prevalence.

    Seed 0; 70 % of all rows are for training. Means are 0.5 (2 y - 1), not 2 y - 1 as printed, and the standard
    deviation is 2: these settings reproduce the printed numbers.
    """
    y, x, slope, intercept, _ = _fitted(train, test, n_test)
    return y, expit(slope * x + intercept)


@cache
def perturbed(test: float) -> dict[str, Columns]:
    """Yield predictions with normal noise on the logit scale, for each level of Table 9."""
    y, x, slope, intercept, rng = _fitted(0.5, test, 6000)
    p = expit(slope * x + intercept)
    levels = ("0.00", "0.01", "0.05", "0.10", "0.50", "1.00")
    return {level: (y, expit(rng.normal(logit(p), float(level)))) for level in levels}


def _fitted(
    train: float, test: float, n_test: int
) -> tuple[np.ndarray, np.ndarray, float, float, np.random.RandomState]:
    rng = np.random.RandomState(0)
    y_train, y_test = rng.binomial(1, train, round(n_test * 7 / 3)), rng.binomial(1, test, n_test)
    x_train, x_test = (rng.normal(0.5 * (2 * y - 1), 2.0) for y in (y_train, y_test))
    return y_test, x_test, *logistic_of_2023(x_train, y_train), rng


def logistic_of_2023(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of scikit-learn up to 1.2: the sum of losses, to a gradient of 1e-4.

    The L2 penalty is half the square of the slope. Newer versions divide by the number of rows, so the same tolerance
    stops earlier, and a third of the printed cells of Tables 6 to 13 change.
    """
    sign = 2 * y - 1

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (line[0] * x + line[1])
        surprise = sign * expit(-margin)
        value = float(np.sum(np.logaddexp(0, -margin)) + 0.5 * line[0] ** 2)
        return value, np.array([line[0] - np.sum(surprise * x), -np.sum(surprise)])

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", options={"gtol": 1e-4, "maxiter": 100})
    return float(found.x[0]), float(found.x[1])
