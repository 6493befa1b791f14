"""The program behind the tables of the TCE paper, to check its numbers."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import significance
from calibrant.metrics.bins import EqualInformation
from research.reproduction.published_program import as_published, published_bins, rows_in_order, t_without_root


def tied(rng, n=60):
    p = rng.choice([0.2, 0.5, 0.7], n)
    return (rng.random(n) < p).astype(int), p


def test_equal_predictions_stay_apart_in_the_order_of_the_rows(rng):
    y, p = tied(rng)
    apart, counted = rows_in_order(y, p), cb.ScoreTable.from_arrays(y, p)
    assert len(apart) == 60
    assert len(counted) == 3
    assert apart.k.tolist() == y[np.argsort(p, kind="stable")].tolist()
    assert cb.brier(apart) == pytest.approx(cb.brier(counted))


def test_the_order_of_tied_rows_decides_the_published_value_and_not_the_default(rng):
    y, p = tied(rng, 2_000)
    drawn, sorted_by_outcome = np.arange(2_000), np.argsort(-y, kind="stable")
    assert cb.tce(y[drawn], p[drawn]) == cb.tce(y[sorted_by_outcome], p[sorted_by_outcome])
    published = [as_published(cb.TCE(), y[order], p[order]).value for order in (drawn, sorted_by_outcome)]
    assert published[0] + 20 < published[1] == 100


def test_without_ties_the_bins_of_both_readings_agree(rng):
    p = rng.random(997)
    y = rng.random(997) < p
    rows, counted = rows_in_order(y, p), cb.ScoreTable.from_arrays(y, p)
    for bins in (cb.bins.EqualSize(10), cb.bins.EqualWidth(10), cb.bins.PAVA()):
        assert published_bins(bins)(rows).n.tolist() == bins(counted).n.tolist()


def test_float_cuts_miss_a_row_where_a_product_is_rounded_down():
    """N = B = 50: 29 / 50 * 50 is 28.999999999999996, so one bin is empty and the next has two rows."""
    p = (np.arange(50) + 0.5) / 50
    y = np.zeros(50)
    assert published_bins(cb.bins.EqualSize(50))(rows_in_order(y, p)).n.max() == 2
    assert cb.bins.EqualSize(50)(cb.ScoreTable.from_arrays(y, p)).n.tolist() == [1] * 50


@pytest.mark.parametrize(("n_min", "n_max"), [(3, 4), (5, 9), (10, 15)])
def test_both_tail_rules_agree_for_narrow_limits(n_min, n_max, rng):
    """Where 2 n_min > n_max the program never joins the tail, and Algorithm 2 could not either."""
    p = rng.random(80)
    rows = rows_in_order(rng.random(80) < p, p)
    ours = cb.bins.PAVABC(n_min, n_max)(rows)
    theirs = published_bins(cb.bins.PAVABC(n_min, n_max))(rows)
    if ours.n[-1] <= n_min:
        assert theirs.n.tolist() == ours.n.tolist()
    assert theirs.n.sum() == ours.n.sum() == 80


def test_the_t_test_is_that_of_the_program_and_rejects_far_more(rng):
    k, n, p = np.array([50, 5]), np.array([100, 100]), np.array([0.55, 0.07])
    assert (t_without_root(k, n, p) < 0.5 * significance.t(k, n, p)).all()
    assert t_without_root(np.array([0]), np.array([9]), np.array([0.0])).tolist() == [0]
    scores = rng.random(2_000)
    y = rng.random(2_000) < scores
    binomial, t = (as_published(cb.TCE(test=test), y, scores).value for test in (significance.binomial, significance.t))
    assert binomial + 20 < t


def test_bins_of_the_program_split_equal_predictions(rng):
    y, p = tied(rng, 500)
    breakdown = as_published(cb.metrics.ACE(n_bins=5), y, p)
    assert breakdown.partition.n.tolist() == [100] * 5
    assert breakdown.value != cb.metrics.ace(y, p, n_bins=5)


def test_bins_that_the_program_does_not_have_are_an_error():
    with pytest.raises(ValueError, match="bins must be PAVABC, PAVA, EqualSize"):
        as_published(cb.TCE(bins=EqualInformation()), [0, 1], [0.2, 0.6])
