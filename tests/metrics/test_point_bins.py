"""Bins of point predictions: every kind of bins cuts both tables by the same rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import columns, some_rows

import calibrant as cb
from calibrant.metrics.bins import PAVA, PAVABC, Edges, EqualInformation, EqualSize, EqualWidth, choose_bins
from calibrant.regression import MeanTable

KINDS = [
    EqualSize(1),
    EqualSize(3),
    EqualSize(10),
    EqualWidth(4),
    EqualWidth(7, closed="right"),
    Edges([0, 0.3, 0.55, 1]),
    PAVA(),
    PAVABC(),
    PAVABC.consistent(),
    PAVABC(n_min=3, n_max=7),
]
ALL_KINDS = pytest.mark.parametrize("kind", KINDS, ids=repr)
numbers = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 7.5])
rows = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30)


def mean_tables(y, p, frequency):
    """The same rows: one by one, merged, and counted by frequency."""
    yield MeanTable.from_arrays(y.astype(float), p)
    yield MeanTable.from_arrays(y.astype(float), p).merged()
    yield MeanTable.from_arrays(y.astype(float), p, frequency=frequency)


@ALL_KINDS
@given(pairs=some_rows)
def test_events_and_point_predictions_have_the_same_bins(kind, pairs):
    """Outcomes 0 and 1 are numbers: a table of scores and one of point predictions hold the same rows."""
    y, p = columns([*pairs, (False, 0.0), (True, 1.0)])  # from 0 to 1, where equally wide bins agree
    frequency = 1 + np.arange(y.size) % 3
    repeated = np.repeat(y, frequency), np.repeat(p, frequency)
    for table, counted in zip(mean_tables(y, p, frequency), ((y, p), (y, p), repeated), strict=True):
        expected = kind(cb.ScoreTable.from_arrays(*counted))
        found = kind(table)
        assert found.n.tolist() == expected.n.tolist()
        sums = found.weighted(lambda run, table=table: table.mean[run])
        assert sums == pytest.approx(expected.k, abs=1e-9)


@ALL_KINDS
@given(pairs=some_rows, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_change_the_bin_of_a_prediction(kind, pairs, random):
    y, p = columns([*pairs, (False, 0.0), (True, 1.0)])
    order = list(range(y.size))
    random.shuffle(order)
    one = kind(MeanTable.from_arrays(y.astype(float), p))
    two = kind(MeanTable.from_arrays(y[order].astype(float), p[order]))
    assert two.labels.tolist() == one.labels[order].tolist()
    assert (two.lower.tolist(), two.upper.tolist()) == (one.lower.tolist(), one.upper.tolist())


@ALL_KINDS
@given(pairs=some_rows)
def test_bins_are_not_empty_and_enclose_their_predictions(kind, pairs):
    y, p = columns([*pairs, (False, 0.0), (True, 1.0)])
    found = kind(MeanTable.from_arrays(y.astype(float), p))
    assert (np.bincount(found.labels, minlength=len(found)) > 0).all()
    assert (found.lower[found.labels] <= p).all()
    assert (p <= found.upper[found.labels]).all()
    for value in np.unique(p):
        assert np.unique(found.labels[p == value]).size == 1


@given(rows, st.integers(1, 9), st.sampled_from(["left", "right"]))
def test_equal_widths_divide_the_range_of_the_predictions(pairs, n_bins, closed):
    y, p = np.array(pairs).T
    found = EqualWidth(n_bins, closed=closed)(MeanTable.from_arrays(y, p))
    edges = p.min() + (p.max() - p.min()) * np.arange(n_bins + 1) / n_bins
    edges[-1] = p.max()
    assert set(found.lower) <= set(edges)
    assert set(found.upper) <= set(edges)
    inside = edges[1:-1]
    wanted = np.searchsorted(inside, p, side="right" if closed == "left" else "left")
    assert found.labels.tolist() == np.unique(wanted, return_inverse=True)[1].tolist()


def test_importance_weights_cut_at_shares_of_the_total_weight(rng):
    p, weight = rng.normal(size=200), rng.gamma(2, 1, 200)
    y = p + rng.normal(size=200)
    one, two = (EqualSize(7)(MeanTable.from_arrays(y, p, sample_weight=c * weight)) for c in (1.0, 1e-7))
    assert one.labels.tolist() == two.labels.tolist()
    order = np.argsort(p)
    held = np.cumsum(weight[order]) - weight[order]
    labels = np.searchsorted(np.arange(1, 7) / 7 * weight.sum(), held, side="right")
    assert one.labels[order].tolist() == labels.tolist()


def test_bins_that_need_probabilities_refuse_point_predictions():
    table = MeanTable.from_arrays([1.0, 2.0], [1.0, 5.0])
    with pytest.raises(cb.InputError, match="EqualInformation needs a table of probabilities; got a MeanTable"):
        EqualInformation()(table)
    with pytest.raises(cb.InputError, match=r"within the edges, 0 to 2; got 5 \(the highest\). Widen the edges."):
        Edges([0, 2])(table)


def test_bins_and_their_number_exclude_each_other():
    assert choose_bins(EqualSize, None, None) == EqualSize(10)
    assert choose_bins(EqualSize, 3, None) == EqualSize(3)
    assert choose_bins(EqualSize, None, PAVA()) == PAVA()
    with pytest.raises(cb.InputError, match="n_bins must not be given together with bins"):
        choose_bins(EqualSize, 3, PAVA())
    with pytest.raises(cb.InputError, match=r"bins must be an object such as cb.bins.EqualSize\(10\); got 'quantile'"):
        choose_bins(EqualSize, None, "quantile")
