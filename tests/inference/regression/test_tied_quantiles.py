"""Outcomes that equal predicted quantiles: counts, censored and rounded outcomes."""

import itertools

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant._support.random_streams import generator
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


@pytest.mark.parametrize("n_levels", [3, 9, 19])
def test_quantiles_of_counts_do_not_show_calibration(n_levels):
    """They do not determine the distribution: many others have the same quantiles."""
    rng = np.random.default_rng(n_levels)
    rate = 0.5 * np.exp(0.3 * rng.normal(size=20_000))
    levels = np.arange(1, n_levels + 1) / (n_levels + 1)
    found = cb.evaluate(rng.poisson(rate), cb.Quantiles(levels, stats.poisson(rate[:, None]).ppf(levels)))
    assert found.verdict == "inconclusive"
    assert [note.code for note in found.notes if note.code == "resolution"]
    assert "mean predicted median" in repr(found)
    assert "mean prediction" not in repr(found)
    assert "coverage by width" not in found.tests  # ties are placed to fit all rows


def test_means_that_are_30_percent_too_low_are_found_in_19_quantiles_of_counts():
    rng = np.random.default_rng(0)
    rate, levels = 0.5 * np.exp(0.3 * rng.normal(size=2000)), np.arange(1, 20) / 20
    found = cb.evaluate(rng.poisson(rate), cb.Quantiles(levels, stats.poisson(0.7 * rate[:, None]).ppf(levels)))
    assert (found.verdict, "underestimates" in found.direction) == ("miscalibrated", True)


def test_tied_pit_values_lie_between_the_bounds_of_every_distribution_with_these_quantiles():
    """Oracle: the levels next to each outcome, by a loop over quantiles; the place in between is that of a seed."""
    rng = np.random.default_rng(1)
    rate = np.full(400, 2.0)
    y, forecast = rng.poisson(rate), cb.Quantiles(LEVELS, stats.poisson(rate[:, None]).ppf(LEVELS))
    u, open_, _ = settle_ties(np.full(400, 0.5), y.astype(float), forecast, 7)
    place, edges = generator(7).random(400), [0.0, *LEVELS, 1.0]
    for row in range(400):
        below = sum(q < y[row] for q in forecast.values[row])
        upto = sum(q <= y[row] for q in forecast.values[row])
        if below < upto:
            low = edges[below] + place[row] * (edges[upto] - edges[below])
            high = edges[below + 1] + place[row] * (edges[upto + 1] - edges[below + 1])
            assert low - 1e-12 <= u[row] <= high + 1e-12
    assert (open_ >= 0).all()


def test_pit_values_of_outcomes_without_ties_stay():
    rng = np.random.default_rng(0)
    u, y = rng.random(50), rng.normal(size=50)
    same, open_, notes = settle_ties(u, y, cb.Quantiles(LEVELS, np.tile(stats.norm.ppf(LEVELS), (50, 1))), 0)
    assert same is u
    assert not notes
    assert not open_.any()


def test_tied_outcomes_stay_in_cells_next_to_their_quantiles():
    y = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 0.5])
    forecast = cb.Quantiles([0.5, 0.75], np.tile([0.0, 1.0], (6, 1)))
    u, _, notes = settle_ties(np.full(6, 0.3), y, forecast, 0)
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
