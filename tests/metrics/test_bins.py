"""Every kind of bins: laws that hold for all, and the rules that decide each."""

import json
from dataclasses import is_dataclass

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import columns, count, score, some_rows, tables

import calibrant as cb
from calibrant import ScoreTable
from calibrant.metrics import OptimalBins, Partition
from calibrant.metrics.bins import PAVA, PAVABC, Edges, EqualSize, EqualWidth
from calibrant.tables.mean_table import MeanTable

# The kinds of bins that cb.bins lists, with their default settings; Edges has none.
DEFAULT_KINDS = [
    getattr(cb.bins, name)() for name in cb.bins.__all__ if is_dataclass(getattr(cb.bins, name)) and name != "Edges"
]
KINDS = [
    *DEFAULT_KINDS,
    EqualWidth(7, closed="right"),
    EqualWidth(1),
    EqualSize(3),
    Edges([0, 0.3, 0.55, 1]),
    PAVABC.consistent(),
    PAVABC(sizes="grades"),
    PAVABC(n_min=3, n_max=7),
    OptimalBins(),
]
ALL_KINDS = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: repr(kind).split(", error")[0])


@ALL_KINDS
@given(table=tables)
def test_every_partition_covers_its_table(kind, table):
    partition = kind(table)
    assert partition.n.sum() == table.size
    assert partition.k.sum() == table.positives
    assert (partition.n > 0).all()
    assert partition.start[0] == 0
    assert (np.diff(partition.start) > 0).all()
    assert partition.labels.size == len(table)


@ALL_KINDS
@given(table=tables)
def test_edges_enclose_the_scores_and_join(kind, table):
    partition = kind(table)
    assert (partition.lower <= partition.min_score).all()
    assert (partition.max_score <= partition.upper).all()
    assert (partition.upper[:-1] <= partition.lower[1:]).all()
    if partition.n_empty == 0:
        assert np.array_equal(partition.upper[:-1], partition.lower[1:])
        assert (partition.lower[0], partition.upper[-1]) == (0, 1)


@ALL_KINDS
@given(pairs=some_rows, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(kind, pairs, random):
    before = kind(count(pairs))
    random.shuffle(pairs)
    assert np.array_equal(kind(count(pairs)).start, before.start)


@ALL_KINDS
def test_an_empty_table_has_no_bins(kind):
    if not isinstance(kind, OptimalBins):
        assert len(kind(ScoreTable.empty())) == 0


@given(some_rows, st.integers(1, 20), st.sampled_from(["left", "right"]))
def test_equal_width_puts_each_score_where_its_definition_does(pairs, n_bins, closed):
    y, p = columns(pairs)
    partition = EqualWidth(n_bins, closed=closed)(count(pairs))
    wanted = oracles.members_by_width(p, y, n_bins, closed)
    assert partition.n.tolist() == [len(members) for members, _ in wanted]
    assert partition.k.tolist() == [sum(labels) for _, labels in wanted]
    assert len(partition) + partition.n_empty == n_bins


@pytest.mark.parametrize("tenth", range(11))
def test_a_tenth_lies_in_the_bin_that_starts_at_it(tenth):
    table = ScoreTable.from_arrays([0], [tenth / 10])
    assert EqualWidth(10)(table).lower[0] == min(tenth, 9) / 10
    assert EqualWidth(10, closed="right")(table).upper[0] == max(tenth, 1) / 10


@given(st.integers(1, 400), st.integers(1, 60))
def test_quantile_bins_begin_at_whole_ranks(size, n_bins):
    table = ScoreTable.from_arrays(np.zeros(size), np.arange(size) / size)
    cuts = [b * size // n_bins for b in range(n_bins + 1)]
    assert EqualSize(n_bins)(table).n.tolist() == [n for n in np.diff(cuts) if n > 0]


@given(some_rows, st.integers(1, 12))
def test_tied_scores_go_to_the_quantile_bin_of_the_first_of_them(pairs, n_bins):
    _, p = columns(pairs)
    ranks = {v: int((p < v).sum()) for v in p}
    wanted = [sum(b * len(p) // n_bins <= ranks[v] for b in range(1, n_bins)) for v in sorted(ranks)]
    labels = EqualSize(n_bins)(count(pairs)).labels
    assert np.array_equal(labels, np.unique(wanted, return_inverse=True)[1])


def test_edges_are_closed_on_the_left_and_the_last_on_both_sides():
    table = ScoreTable.from_arrays([0, 1, 1, 0], [0.2, 0.4, 0.5, 0.8])
    partition = Edges([0.2, 0.4, 0.8])(table)
    assert partition.n.tolist() == [1, 3]
    assert (partition.lower.tolist(), partition.upper.tolist()) == ([0.2, 0.4], [0.4, 0.8])


def test_a_score_outside_all_edges_is_an_error():
    table = ScoreTable.from_counts([0.1, 0.5], [3, 4], [0, 1])
    with pytest.raises(cb.InputError, match=r"within the edges, 0.2 to 1; got 0.1 \(the lowest\)"):
        Edges([0.2, 1])(table)


@pytest.mark.parametrize("edges", [[], [0.5], [0, 0], [0, 1, 0.5], [0, np.nan, 1], [0, 0.5, np.inf]])
def test_edges_must_rise(edges):
    with pytest.raises(cb.InputError, match="that rise strictly"):
        Edges(edges)


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, True, None, np.nan, np.inf, "ten"])
@pytest.mark.parametrize("kind", [EqualWidth, EqualSize])
def test_the_number_of_bins_is_a_whole_number(kind, n_bins):
    with pytest.raises(cb.InputError, match="n_bins must be a whole number"):
        kind(n_bins)


def test_other_settings_are_checked_too():
    with pytest.raises(cb.InputError, match="closed"):
        EqualWidth(closed="both")
    with pytest.raises(cb.InputError, match="sizes"):
        PAVABC(sizes="mine")


@given(tables)
def test_pava_is_pavabc_without_limits_and_its_rates_rise_strictly(table):
    partition = PAVA()(table)
    assert np.array_equal(partition.start, PAVABC(n_min=0, n_max=int(table.size))(table).start)
    assert (partition.k[:-1] * partition.n[1:] < partition.k[1:] * partition.n[:-1]).all()


@given(st.lists(score, min_size=1, max_size=80, unique=True), st.integers(1, 20), st.integers(0, 20))
def test_sizes_keep_the_limits_without_ties(scores, n_min, extra):
    n_max = 2 * n_min + extra
    y = np.random.default_rng(len(scores)).integers(0, 2, len(scores))
    sizes = PAVABC(n_min=n_min, n_max=n_max)(ScoreTable.from_arrays(y, scores)).n
    assert (sizes <= n_max).all() or len(scores) < n_min
    assert (sizes >= n_min).all() or len(scores) < 2 * n_min


@pytest.mark.parametrize(
    ("size", "limits"), [(1, (0, 1)), (4, (0, 1)), (19, (0, 3)), (20, (1, 4)), (100, (5, 20)), (50_000, (2500, 10_000))]
)
def test_limits_follow_the_paper(size, limits):
    table = ScoreTable.from_counts([0.5], [size], [0])
    assert PAVABC().limits(table) == limits


@pytest.mark.parametrize(
    ("size", "limits"), [(1, (1, 1)), (2, (2, 2)), (24, (5, 5)), (25, (5, 5)), (26, (6, 6)), (10**6, (1000, 200_000))]
)
def test_consistent_limits_grow_with_the_root(size, limits):
    assert PAVABC.consistent().limits(ScoreTable.from_counts([0.5], [size], [0])) == limits


def scores_with_events(count, rows=400):
    score = np.arange(1, count + 1) / (count + 1)
    return ScoreTable.from_counts(score, np.full(count, rows), np.round(rows * score).astype(int))


def test_few_distinct_scores_have_a_bin_each():
    grades = PAVABC(sizes="grades")
    few, many = scores_with_events(20), scores_with_events(21)
    assert grades(few).n.tolist() == [400] * 20
    assert grades.limits(many) == PAVABC.consistent().limits(many)
    assert np.array_equal(grades(many).start, PAVABC.consistent()(many).start)
    falling = ScoreTable.from_counts([0.1, 0.2, 0.3], [10, 10, 10], [9, 5, 1])
    assert grades(falling).n.tolist() == [10, 10, 10]  # neighbours with falling rates do not merge
    weighted = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[0.5, 0.25, 0.25, 0.5])
    assert grades(weighted).n.tolist() == [0.5, 0.25, 0.25, 0.5]
    assert PAVABC(n_min=5, sizes="grades").limits(few)[0] == 5


def test_few_distinct_point_predictions_have_a_bin_each():
    table = MeanTable.from_arrays([1.0, 3.0, 2.0, 5.0, 4.0], [1, 1, 2, 2, 3])
    assert PAVABC(sizes="grades")(table).n.tolist() == [2, 2, 1]


def test_a_given_limit_is_used():
    table = ScoreTable.from_counts([0.5], [1000], [0])
    assert PAVABC(n_min=300).limits(table) == (300, 300)
    assert PAVABC(n_max=10).limits(table) == (10, 10)
    assert PAVABC(n_max=100).limits(table) == (50, 100)


@pytest.mark.parametrize(("n_min", "n_max"), [(-1, None), (5, 4), (None, -1), (0, np.nan), (np.inf, None), (0, np.inf)])
def test_limits_that_contradict_are_refused(n_min, n_max):
    with pytest.raises(cb.InputError, match="0 <= n_min <= n_max"):
        PAVABC(n_min=n_min, n_max=n_max)


@pytest.mark.parametrize("n_max", [5.0, np.float64(5), np.int32(5), 10**30])
def test_limits_are_whole_numbers_of_any_type_and_size(n_max):
    table = ScoreTable.from_arrays([0, 1, 0, 1, 0, 1, 1], np.arange(7) / 7)
    assert PAVABC(0, n_max)(table).n.sum() == 7
    with pytest.raises(cb.InputError, match="whole numbers where rows are counted"):
        PAVABC(0, 2.5)(table)


@pytest.mark.parametrize("scale", [1, 0.1, 1 / 3, 0.7])
def test_the_scale_of_importance_weights_does_not_move_cuts(scale):
    table = ScoreTable.from_arrays(np.arange(10) % 2, np.arange(10) / 10, sample_weight=np.full(10, scale))
    assert EqualSize(5)(table).n.tolist() == pytest.approx([2 * scale] * 5)
    assert np.array_equal(
        PAVABC(2 * scale, 4 * scale)(table).start,
        PAVABC(2, 4)(ScoreTable.from_arrays(np.arange(10) % 2, np.arange(10) / 10)).start,
    )


def test_importance_weights_use_limits_and_cuts_unrounded():
    table = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[0.5, 0.25, 0.25, 0.5])
    assert PAVABC().limits(table) == (0.075, 0.3)
    assert PAVABC.consistent().limits(table) == (1.5**0.5, 1.5**0.5)
    assert EqualSize(2)(table).n.tolist() == [0.75, 0.75]
    assert PAVA()(table).rate.tolist() == pytest.approx([0, 0.5, 1])


def test_user_defined_partitions():
    table = ScoreTable.from_counts([0.1, 0.2, 0.6], [1, 2, 3], [0, 1, 3])
    assert Partition.from_labels(table, [0, 0, 7]).n.tolist() == [3, 3]
    assert Partition.from_cuts(table, [1, 1, 2]).n.tolist() == [1, 2, 3]
    assert Partition.from_cuts(table, [1, 1, 2]).n_empty == 1
    with pytest.raises(cb.InputError, match="must not decrease"):
        Partition.from_labels(table, [1, 0, 0])
    with pytest.raises(cb.InputError, match="one value for each"):
        Partition.from_labels(table, [1, 0])
    with pytest.raises(cb.InputError, match="cuts"):
        Partition.from_cuts(table, [2, 1])
    with pytest.raises(cb.InputError, match="whole numbers"):
        Partition.from_cuts(table, [1.7])
    assert "2 bins" in repr(Partition.from_labels(table, [0, 0, 7]))


def test_bins_of_equal_size_have_their_old_name_with_a_warning():
    for old in (lambda: cb.Quantile, lambda: cb.bins.Quantile):
        with pytest.warns(
            DeprecationWarning, match=r"Quantile is deprecated: use calibrant\.bins\.EqualSize; the old name will be"
        ):
            assert old() is EqualSize
    with pytest.raises(AttributeError, match=r"module 'calibrant\.bins' has no attribute 'Quantiles'"):
        cb.bins.Quantiles  # noqa: B018  (the forecasts are cb.Quantiles)


def test_specifications_with_the_old_name_of_bins_of_equal_size_load():
    metric = cb.metrics.ACE(n_bins=7)
    old = json.loads(json.dumps(metric.spec).replace("bins.EqualSize", "bins.Quantile"))
    assert old["bins"] == {"bins.Quantile": {"n_bins": 7}}
    assert cb.GCE.from_spec(old) == metric
    assert cb.GCE.from_spec(old).spec == metric.spec
