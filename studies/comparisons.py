"""How often `compare` finds a difference where there is none, and where there is: 300 pairs of models a design.

Both models predict the same outcomes. "equal": both see the truth through noise of the same size, and are right.
"sharper": both are right, one with less noise. "distorted": the second has slope 1.4.
"""

import numpy as np
from designs import spread_over_cores, write
from scipy.special import expit, logit

import calibrant as cb

PAIRS = 300
SIZES = (500, 5_000)


def right_model(rng: np.random.Generator, latent: np.ndarray, noise: float) -> np.ndarray:
    """P(y = 1) given a noisy look at the latent: both are normal, and the link is a probit, so it is known."""
    from scipy.special import ndtr

    seen = latent + noise * rng.normal(size=latent.size)
    share = 1 / (1 + noise**2)
    return ndtr(share * seen / np.sqrt(1 + noise**2 * share))


def pvalue(task: tuple[str, int, int]) -> tuple[float, float]:
    kind, size, seed = task
    rng = np.random.default_rng([seed, size])
    latent = rng.normal(size=size)
    y = latent + rng.normal(size=size) > 0  # P(y = 1 | latent) = Phi(latent)
    a = right_model(rng, latent, 1.0)
    b = right_model(rng, latent, 0.3 if kind == "sharper" else 1.0)
    if kind == "distorted":
        b = expit(1.4 * logit(b))
    found = cb.compare(
        y, {"a": a, "b": b}, metrics={"ACE": cb.ACE()}, n_resamples=99, random_state=seed, progress=False
    )
    return found.differences[0].value, found.differences[0].pvalue


def main() -> None:
    rows = []
    for kind in ("equal", "sharper", "distorted"):
        for size in SIZES:
            tasks = [(kind, size, seed) for seed in range(PAIRS)]
            found = np.array(list(spread_over_cores(pvalue, tasks, f"{kind}, N = {size:,}")))
            rows.append(
                {
                    "models": kind,
                    "N": f"{size:,}",
                    "mean difference in ACE": f"{found[:, 0].mean():+.4f}",
                    "share with p <= 0.05": f"{(found[:, 1] <= 0.05).mean():.3f}",
                }
            )
    write("comparisons", rows)


if __name__ == "__main__":
    main()
