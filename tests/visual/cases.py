"""Edge cases of diagrams."""

import numpy as np

Columns = tuple[np.ndarray, np.ndarray]


def hard_cases() -> dict[str, Columns]:
    """Return outcomes and predictions with nothing to show, or with very many values."""
    rng = np.random.default_rng(0)
    some, many, rare = rng.random(400), rng.beta(1, 9, 1_000_000), np.clip(rng.lognormal(-8, 1.5, 100_000), 0, 1)
    return {
        "one bin": (rng.random(400) < some, np.full(400, 0.5) + np.repeat([0, 1e-9], 200)),
        "one class": (np.zeros(400, dtype=bool), some / 10),
        "constant score": (rng.random(300) < 0.3, np.full(300, 0.3)),
        "hard labels": (rng.random(300) < 0.5, (rng.random(300) < 0.5).astype(float)),
        "three rows": (np.array([0, 1, 1]), np.array([0.2, 0.4, 0.9])),
        "a million rows": (rng.random(many.size) < many**1.1, many),
        "prevalence 0.1 %": (rng.random(rare.size) < rare, np.clip(rare * 1.4, 0, 1)),
    }
