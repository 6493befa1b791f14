"""The data of multicalibration.json, shared by the script that writes it and the test that reads it."""

import numpy as np

CASES = {
    "depth 1": {"features": ["city", "x"], "depth": 1},
    "depth 2": {"features": ["city", "x", "step"], "depth": 2},
    "depth 3": {"features": ["city", "x", "step", "flag"], "depth": 3},
    "weights": {"features": ["city", "x"], "depth": 2, "weights": True},
    "rare events": {"features": ["city", "x"], "depth": 2, "rate": 0.02},
    "numbers": {"features": ["city", "x"], "depth": 2, "numbers": True},
}


def draw(seed, rate=0.3, n=2_000):
    """Return features, scores, outcomes, weights, predictions and numbers, without ties of scores."""
    rng = np.random.default_rng([seed, n])
    features = {
        "city": rng.choice(["Bonn", "Kiel", "Wien", "Oslo", "Rome"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
        "x": rng.normal(size=n),
        "step": rng.integers(0, 7, n),
        "flag": rng.integers(0, 2, n),
    }
    logit = np.log(rate / (1 - rate)) + rng.normal(size=n)
    score = 1 / (1 + np.exp(-logit))
    event = (rng.random(n) < 1 / (1 + np.exp(-logit - 0.4 * (features["city"] == "Kiel")))).astype(int)
    number = logit + 0.3 * (features["x"] > 0.5) + (1 + score) * rng.normal(size=n)
    return features, score, event, rng.lognormal(0, 0.7, n), logit, number
