"""Outcomes that equal predicted quantiles: counts, censored and rounded outcomes."""

import itertools

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant.inference.regression.tied_quantiles import _best_cells, settle_ties

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def counts(seed, n, factor=1.0):
    rng = np.random.default_rng(seed)
    rate = 3 * np.exp(0.3 * rng.normal(size=n))
    return rng.poisson(factor * rate), cb.Quantiles(LEVELS, stats.poisson(rate[:, None]).ppf(LEVELS))


def test_the_quantiles_of_counts_are_not_called_miscalibrated():
    verdicts = [cb.evaluate(*counts(seed, 500), n_resamples=0).verdict for seed in range(40)]
    assert verdicts.count("miscalibrated") + verdicts.count("negligible") <= 2
    found = cb.evaluate(*counts(0, 500), n_resamples=0)
    assert [note.code for note in found.notes if note.code == "tied_quantiles"]


@pytest.mark.parametrize(("factor", "direction"), [(1.35, "underestimates"), (0.74, "overestimates")])
def test_wrong_quantiles_of_counts_are_found_with_their_direction(factor, direction):
    found = cb.evaluate(*counts(1, 1000, factor), n_resamples=0)
    assert found.verdict == "miscalibrated"
    assert direction in found.direction


def test_pit_values_of_outcomes_without_ties_stay():
    rng = np.random.default_rng(0)
    u, y = rng.random(50), rng.normal(size=50)
    same, notes = settle_ties(u, y, cb.Quantiles(LEVELS, np.tile(stats.norm.ppf(LEVELS), (50, 1))))
    assert same is u
    assert not notes


def test_tied_outcomes_stay_in_cells_next_to_their_quantiles():
    y = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 0.5])
    forecast = cb.Quantiles([0.5, 0.75], np.tile([0.0, 1.0], (6, 1)))
    u, notes = settle_ties(np.full(6, 0.3), y, forecast)
    assert notes[0].count == 4
    assert (u[:2] <= 0.75).all()  # at the median: below it, or up to the next level
    assert (u[2:4] >= 0.5).all()
    assert (u[4:] == 0.3).all()  # not tied


def test_cells_are_filled_as_well_as_any_choice_does():
    rng = np.random.default_rng(3)
    for _ in range(200):
        first = rng.integers(0, 3, 5)
        last = np.minimum(first + rng.integers(0, 3, 5), 3)
        free = rng.integers(-1, 4, 4)
        found = _best_cells(first, last, free)
        assert ((first <= found) & (found <= last)).all()
        choices = itertools.product(*(range(a, b + 1) for a, b in zip(first, last, strict=True)))
        assert _filled(found, free) == max(_filled(choice, free) for choice in choices)


def _filled(cells, free):
    return np.minimum(np.bincount(cells, minlength=4), np.maximum(free, 0)).sum()
