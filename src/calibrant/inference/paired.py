"""Differences between predictions of the same rows."""

from collections.abc import Sequence

import numpy as np
from numpy.random import SFC64, SeedSequence

from calibrant._typing import Floats
from calibrant.inference import resampling
from calibrant.inference.resampling import Measure, PairedRows

__all__ = ["difference", "paired_draws"]


def paired_draws(
    rows: PairedRows,
    metrics: Sequence[Measure],
    *,
    n_resamples: int,
    seed: SeedSequence,
    threads: bool,
    show: bool | None = None,
) -> Floats:
    """Values of shape (replicates, predictions, metrics): every replicate draws rows once, for all predictions."""

    def one(bits: SFC64) -> list[float]:
        return [value for table in rows(bits) for value in resampling.values(list(metrics), table)]

    draws = resampling.replicates(
        one, purpose="bootstrap", n_resamples=n_resamples, seed=seed, threads=threads, show=show
    )
    return draws.reshape(n_resamples, -1, len(metrics))


def difference(value: float, draws: Floats, level: float) -> tuple[float, float, float]:
    """Limits and two-sided p-value of a difference, by the spread of its replicates about their mean."""
    kept, _ = resampling.existing(draws, "the difference")
    offset = kept - kept.mean()
    low, high = np.quantile(offset, ((1 - level) / 2, (1 + level) / 2))
    pvalue = (1 + np.count_nonzero(np.abs(offset) >= abs(value))) / (1 + offset.size)
    return float(value - high), float(value - low), float(pvalue)
