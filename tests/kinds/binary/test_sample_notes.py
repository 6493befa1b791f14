"""Notes and sentences about scores: rounding, order of rows, and estimates within the margin."""

from types import SimpleNamespace

import numpy as np
from scipy.special import expit

import calibrant as cb
from calibrant.inference.time_blocks import neighbour_notes
from calibrant.results.sentences import directions_text


def codes(found):
    return [note.code for note in found.notes]


def test_scores_rounded_to_0_have_a_note_about_rounding():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-4, 1.5, 2_000))
    y = (rng.random(2_000) < p).astype(int)
    found = cb.evaluate(y, p.round(2), n_resamples=39)
    assert "at most 2 decimals" in next(note.text for note in found.notes if note.code == "rounded_scores")
    assert "rounded_scores" not in codes(cb.evaluate(y, p, n_resamples=39))
    assert "rounded_scores" not in codes(cb.evaluate(y, np.clip(p.round(2), 0.01, 0.99), n_resamples=39))


def test_dependent_neighbouring_rows_have_a_note():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.8, 3_000)
    day = np.repeat(rng.normal(0, 1, 60), 50)
    y = (rng.random(3_000) < expit(np.log(p / (1 - p)) + day)).astype(int)
    found = cb.evaluate(y, p, n_resamples=39)
    assert "neighbouring_rows" in codes(found)
    assert "neighbouring_rows" not in codes(cb.evaluate(y, p, cluster=np.repeat(np.arange(60), 50), n_resamples=39))
    mixed = rng.permutation(3_000)
    assert "neighbouring_rows" not in codes(cb.evaluate(y[mixed], p[mixed], n_resamples=39))


def test_independent_or_sorted_rows_have_no_note_about_neighbours():
    noted = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.6, 800)
        y = (rng.random(800) < p).astype(float)
        noted += bool(neighbour_notes(y, p))
        for order in (np.argsort(y), np.argsort(p)):
            assert not neighbour_notes(y[order], (0.5 * p)[order])
    assert noted <= 4


def test_an_estimate_within_the_margin_says_that_its_bound_is_not():
    """Odds that are 9 % too low: some samples are significant, and estimate a smaller error than the margin."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        z = rng.normal(-1, 1.2, 6_000)
        found = cb.evaluate((rng.random(6_000) < expit(z + 0.09)).astype(int), expit(z), n_resamples=39)
        if found.verdict == "miscalibrated" and 0 < found.log_odds_error.value < 0.1:
            assert "which is within the margin, but possibly by up to" in str(found)
            return
    raise AssertionError("no sample has an estimate within the margin")


def test_a_curve_deviates_only_if_the_omnibus_test_does():
    """About one in twenty simultaneous bands of calibrated models excludes the diagonal."""
    excluded = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(-1, 1.2, 500))
        found = cb.evaluate((rng.random(500) < p).astype(int), p, n_resamples=39)
        if found.details.levels.contains_diagonal is False and not found.is_significant:
            excluded += 1
            assert "excludes the diagonal" not in str(found)
            assert "whose deviation from the diagonal is not significant with the omnibus test" in str(found)
    assert excluded


def test_directions_of_both_signs_read_as_one_sentence():
    details = SimpleNamespace(directions={})
    result = SimpleNamespace(details=details, direction="overestimates, underestimates, underconfident")
    assert directions_text(result) == "overestimates some outcomes, underestimates others and is underconfident"
