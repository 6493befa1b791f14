"""Laws of `ScoreTable`, and what its constructors read."""

import copy
import pickle
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import columns, count, rows, some_rows, weights

import calibrant as cb
from calibrant import ScoreTable
from calibrant.tables.score_table import event_squares, residual_variance, row_squares, squared_residuals


@given(rows, rows)
def test_counting_in_pieces_equals_counting_at_once(left, right):
    assert count(left) + count(right) == count(left + right)


@given(rows, rows, rows)
def test_adding_is_associative_and_commutative_with_the_empty_table_as_zero(a, b, c):
    a, b, c = count(a), count(b), count(c)
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ScoreTable.empty() == a == ScoreTable.empty() + a


@given(st.lists(rows, min_size=1, max_size=4))
def test_tables_can_be_summed(pieces):
    assert sum(map(count, pieces)) == count([pair for piece in pieces for pair in piece])


def test_tables_of_means_can_be_summed_and_other_numbers_are_not_added():
    halves = [cb.regression.MeanTable.from_arrays([1.0, 2.5], [p, 2.0]) for p in (1.0, 3.0)]
    total, added = sum(halves), halves[0] + halves[1]
    for name in ("prediction", "n", "mean", "m2"):
        np.testing.assert_array_equal(getattr(total, name), getattr(added, name))
    for table in (halves[0], ScoreTable.from_arrays([0, 1], [0.2, 0.7])):
        assert sum([table]) is table
        for other in (1, 0.0, None, "0"):
            with pytest.raises(TypeError):
                other + table


@given(some_rows, st.randoms(use_true_random=False))
def test_shuffling_rows_has_no_effect(pairs, random):
    table = count(pairs)
    random.shuffle(pairs)
    assert count(pairs) == table


@given(some_rows, st.data())
def test_frequencies_are_repeated_rows(pairs, data):
    y, p = columns(pairs)
    times = np.array(data.draw(st.lists(weights, min_size=len(pairs), max_size=len(pairs))))
    if times.sum() == 0:
        times[0] = 1
    repeated = ScoreTable.from_arrays(np.repeat(y, times), np.repeat(p, times))
    for column in (times, times.astype(float), times.astype(object)):
        table = ScoreTable.from_arrays(y, p, frequency=column)
        assert table == repeated
        assert (table.n.dtype, table.k.dtype, table.importance) == (np.int64, np.int64, False)
        assert table.n_dropped == (times == 0).sum()


@given(some_rows, st.data())
def test_importance_weights_are_summed_per_score(pairs, data):
    y, p = columns(pairs)
    w = np.array(data.draw(st.lists(st.floats(0.001, 1000), min_size=len(pairs), max_size=len(pairs))))
    table = ScoreTable.from_arrays(y, p, sample_weight=w)
    own = [p == score for score in table.score]
    for found, each in ((table.n, w), (table.k, w * y), (table.w2, w**2), (table.k2, w**2 * y)):
        np.testing.assert_allclose(found, [each[rows].sum() for rows in own], rtol=1e-12)


@given(some_rows, some_rows, st.data())
def test_sums_of_importance_weights_merge(left, right, data):
    both = columns(left + right)
    w = np.array(data.draw(st.lists(st.floats(0.001, 1000), min_size=len(both[0]), max_size=len(both[0]))))
    first = slice(len(left))
    a, b = (
        ScoreTable.from_arrays(*(c[part] for c in both), sample_weight=w[part])
        for part in (first, slice(len(left), None))
    )
    at_once = ScoreTable.from_arrays(*both, sample_weight=w)
    assert a + b == b + a
    for name in ("score", "n", "k", "w2", "k2"):
        np.testing.assert_allclose(getattr(a + b, name), getattr(at_once, name), rtol=1e-12)


@given(some_rows, st.data(), st.sampled_from([2.0**-9, 1 / 3, 1000.0]))
def test_the_scale_of_importance_weights_changes_no_metric(pairs, data, scale):
    y, p = columns(pairs)
    w = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs))))
    table, scaled = (ScoreTable.from_arrays(y, p, sample_weight=w * c) for c in (1.0, scale))
    for name in ("ece", "ace", "mce", "rmsce", "ecc", "brier", "log_loss", "debiased_sce"):
        values = [cb.METRICS[name]()(t).value for t in (table, scaled)]
        assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-9), name


@given(some_rows)
def test_a_table_is_sorted_distinct_and_complete(pairs):
    table = count(pairs)
    assert (np.diff(table.score) > 0).all()
    assert ((table.k >= 0) & (table.k <= table.n) & (table.n > 0)).all()
    assert table.size == len(pairs) == table.n_in == table.n_used
    assert table.positives == sum(y for y, _ in pairs)


@given(some_rows)
def test_counts_of_a_table_rebuild_it(pairs):
    table = count(pairs)
    order = np.random.default_rng(0).permutation(len(table))
    assert ScoreTable.from_counts(table.score[order], table.n[order], table.k[order]) == table


def test_random_pieces_of_real_size_add_up_to_the_whole_in_any_order(rng):
    p, y = rng.random(100_000).round(4), rng.random(100_000) < 0.2
    pieces = [ScoreTable.from_arrays(y[part], p[part]) for part in np.array_split(rng.permutation(100_000), 13)]
    assert sum(pieces[1:], pieces[0]) == sum(pieces[-2::-1], pieces[-1]) == ScoreTable.from_arrays(y, p)


def test_a_table_cannot_be_changed():
    table = ScoreTable.from_arrays([0, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="read-only"):
        table.n[0] = 5
    with pytest.raises(AttributeError):
        table.n = table.k


def test_the_callers_arrays_stay_as_they_were_and_writeable():
    score, n, k = np.array([0.1, 0.2]), np.array([1, 2]), np.array([0, 1])
    ScoreTable.from_counts(score, n, k)
    y, p = np.array([0, 1]), np.array([0.25, 0.5])
    ScoreTable.from_arrays(y, p)
    ScoreTable(score, n, k)
    assert (score.tolist(), n.tolist(), p.tolist()) == ([0.1, 0.2], [1, 2], [0.25, 0.5])
    assert all(array.flags.writeable for array in (score, n, k, y, p))


def test_a_table_survives_pickling():
    table = ScoreTable.from_arrays([0, 1, np.nan], [0.1, 0.2, 0.3], missing="drop")
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert again == table
        assert again.notes == table.notes
        assert not again.n.flags.writeable


# labels and scores of every type

Y, P = np.array([0, 1, 1, 0, 1]), np.array([0.25, 0.5, 0.75, 0.5, 1.0])
TABLE = ScoreTable.from_arrays(Y, P)


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", ">i4", ">f8", object]
)
def test_labels_of_any_numeric_type(dtype):
    assert ScoreTable.from_arrays(Y.astype(dtype), P) == TABLE


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f4", ">f8", object])
def test_scores_of_any_float_type(dtype):
    assert ScoreTable.from_arrays(Y, P.astype(dtype)) == TABLE


def test_float32_scores_are_the_values_they_hold():
    table = ScoreTable.from_arrays([0, 1], np.array([0.1, 0.3], dtype=np.float32))
    assert table.score.tolist() == [float(np.float32(0.1)), float(np.float32(0.3))]


def test_strided_and_reversed_arrays_are_read_as_they_look():
    assert ScoreTable.from_arrays(np.repeat(Y, 2)[::2], P[::-1][::-1]) == TABLE


def test_lists_decimals_and_columns_of_shape_n_1():
    assert ScoreTable.from_arrays(Y.tolist(), [Decimal(str(v)) for v in P]) == TABLE
    table = ScoreTable.from_arrays(Y.reshape(-1, 1), P.reshape(-1, 1))
    assert table == TABLE
    assert [note.code for note in table.notes] == ["one_column", "one_column"]


def test_more_than_255_positives_in_bytes_do_not_wrap():
    table = ScoreTable.from_arrays(np.ones(800, dtype=np.uint8), np.full(800, 0.5))
    assert table.positives == 800


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [-1, 1], [1, 2], [b"a", b"b"], [False, True], ["0", "1"], [0.5, 0.75]]
)
def test_any_two_labels_with_pos_label(labels):
    y = np.array(labels)[Y]
    assert ScoreTable.from_arrays(y, P, pos_label=labels[1]) == TABLE
    assert ScoreTable.from_arrays(y.astype(object), P, pos_label=labels[1]) == TABLE
    assert ScoreTable.from_arrays(y, P, pos_label=labels[0]) == ScoreTable.from_arrays(1 - Y, P)


def test_pandas_columns():
    pd = pytest.importorskip("pandas")
    for dtype in ("int64", "Int64", "bool", "boolean", "float32", "Float64", "category"):
        assert ScoreTable.from_arrays(pd.Series(Y).astype(dtype), pd.Series(P)) == TABLE, dtype
    for dtype in ("float32", "Float64"):
        assert ScoreTable.from_arrays(pd.Series(Y), pd.Series(P).astype(dtype)) == TABLE, dtype
    text = pd.Series(np.array(["n", "y"])[Y])
    for dtype in ("object", "string", "category"):
        assert ScoreTable.from_arrays(text.astype(dtype), P, pos_label="y") == TABLE, dtype
    assert ScoreTable.from_arrays(pd.DataFrame({"y": Y}), pd.DataFrame({"p": P})) == TABLE


def test_pandas_columns_backed_by_arrow():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    y = pd.Series(Y).astype(pd.ArrowDtype(pa.int64()))
    p = pd.Series(P).astype(pd.ArrowDtype(pa.float64()))
    assert ScoreTable.from_arrays(y, p) == TABLE
    p[2] = None
    table = ScoreTable.from_arrays(y, p, missing="drop")
    assert (table.size, table.n_dropped) == (4, 1)


def test_nullable_pandas_columns_with_missing_cells():
    pd = pytest.importorskip("pandas")
    for dtype in ("Int64", "boolean", "Float64"):
        y = pd.Series([0, 1, None, 0, 1], dtype=dtype)
        with pytest.raises(cb.InputError, match=r"y_true has 1 missing value \(first at row 2\)"):
            ScoreTable.from_arrays(y, P)
        assert ScoreTable.from_arrays(y, P, missing="drop").size == 4
    text = pd.Series(["n", "y", None, "n", "y"], dtype="string")
    assert ScoreTable.from_arrays(text, P, pos_label="y", missing="drop").positives == 2


def test_polars_columns():
    pl = pytest.importorskip("polars")
    for dtype in (pl.Int8, pl.UInt8, pl.Int64, pl.Boolean, pl.Float32):
        assert ScoreTable.from_arrays(pl.Series(Y).cast(dtype), pl.Series(P)) == TABLE, dtype
    text = pl.Series(np.array(["n", "y"])[Y].tolist())
    for column in (text, text.cast(pl.Categorical)):
        assert ScoreTable.from_arrays(column, pl.Series(P), pos_label="y") == TABLE
    table = ScoreTable.from_arrays(pl.Series([0, 1, None, 0, 1]), pl.Series([*P[:4], None]), missing="drop")
    assert (table.size, table.n_dropped) == (3, 2)


def test_arrow_columns():
    pa = pytest.importorskip("pyarrow")
    for make in (pa.array, lambda values: pa.chunked_array([values[:2], values[2:]])):
        assert ScoreTable.from_arrays(make(Y), make(P)) == TABLE
        assert ScoreTable.from_arrays(make(Y.astype(bool)), make(P)) == TABLE
    text = pa.array(np.array(["n", "y"])[Y].tolist())
    for column in (text, text.dictionary_encode()):
        assert ScoreTable.from_arrays(column, P, pos_label="y") == TABLE
    assert ScoreTable.from_arrays(pa.array([0, 1, None, 0, 1]), P, missing="drop").n_dropped == 1


def test_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    p = torch.tensor(P, requires_grad=True)
    assert ScoreTable.from_arrays(torch.tensor(Y), p) == TABLE
    assert ScoreTable.from_arrays(torch.tensor(Y).bool(), p.to(torch.bfloat16)) == TABLE


# missing cells, weights, notes


def test_dropped_rows_are_counted_once_and_noted():
    table = ScoreTable.from_arrays([0, 1, np.nan, np.nan], [0.1, np.nan, np.nan, 0.5], missing="drop")
    assert (table.n_in, table.n_used, table.n_dropped, table.size) == (4, 1, 3, 1)
    assert [(note.code, note.count) for note in table.notes if note.code == "missing"] == [("missing", 3)]


def test_a_mask_over_objects_and_text_means_missing():
    masked = np.ma.masked_array(np.array([0, 1, 1], dtype=object), mask=[0, 1, 0])
    with pytest.raises(cb.InputError, match="y_true has 1 missing value"):
        ScoreTable.from_arrays(masked, [0.1, 0.2, 0.3])
    text = np.ma.masked_array(np.array([0, "n/a", 1], dtype=object), mask=[0, 1, 0])
    assert ScoreTable.from_arrays(text, [0.1, 0.2, 0.3], missing="drop").positives == 1


def test_missing_cells_among_text_stay_missing():
    for column in (["yes", np.nan, "no"], ["yes", None, "no"]):
        with pytest.raises(cb.InputError, match=r"y_true has 1 missing value \(first at row 1\)"):
            ScoreTable.from_arrays(column, [0.1, 0.2, 0.3], pos_label="yes")
    text = np.array(["b", "b", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan))
    assert ScoreTable.from_arrays(text, [0.1, 0.2, 0.3], pos_label="b", missing="drop").size == 2


def test_text_and_numbers_in_a_list_are_different_labels():
    with pytest.raises(cb.InputError, match="must have two labels; got 3"):
        ScoreTable.from_arrays(["1", 1, "1", 0], [0.1, 0.2, 0.3, 0.4], pos_label="1")


def test_an_event_that_never_happened_is_noted():
    table = ScoreTable.from_arrays(["yes", "yes"], [0.1, 0.2], pos_label="Yes")
    assert [note.code for note in table.notes] == ["event_absent", "one_class"]
    assert "'Yes'" in table.notes[0].text


def test_counts_with_other_indexes_are_refused():
    pd = pytest.importorskip("pandas")
    score, k = pd.Series([0.1, 0.9], index=["a", "b"]), pd.Series([90, 10], index=["b", "a"])
    with pytest.raises(cb.InputError, match="indexes of score and k differ"):
        ScoreTable.from_counts(score, [100, 100], k)


def test_unaligned_arrays_are_read():
    raw = np.zeros(8 * 5 + 1, dtype=np.uint8)
    shifted = raw[1:].view(np.float64)
    shifted[:] = P
    assert not shifted.flags.aligned
    assert ScoreTable.from_arrays(Y, shifted) == TABLE
    with pytest.raises(cb.InputError, match="got the labels 0, 256"):
        ScoreTable.from_arrays(np.array([0, 256], dtype=">u2"), [0.1, 0.2])


def test_a_mask_means_missing():
    masked = np.ma.masked_array(P, mask=[0, 0, 1, 0, 0])
    with pytest.raises(cb.InputError, match=r"y_prob has 1 missing value \(first at row 2\)"):
        ScoreTable.from_arrays(Y, masked)
    assert ScoreTable.from_arrays(Y, masked, missing="drop").size == 4


def test_notes_of_two_tables_add_up():
    table = ScoreTable.from_arrays([0, 1], [0.1, np.nan], missing="drop")
    both = table + table + ScoreTable.from_arrays([0, 1], [1 + 1e-9, 0.5])
    assert {note.code: note.count for note in both.notes} == {"missing": 2, "clipped": 1}
    assert (both.n_in, both.n_dropped) == (6, 2)


def test_notes_are_rebuilt_after_adding_tables():
    one = ScoreTable.from_arrays([1], [0.5])
    assert {note.code for note in one.notes} == {"one_row", "one_class"}
    assert (one + ScoreTable.from_arrays([0], [0.5])).notes == ()
    assert {note.code for note in ScoreTable.from_arrays([0, 1], [0, 1]).notes} == {"hard_labels"}


def test_scores_barely_outside_are_clipped_and_counted():
    table = ScoreTable.from_arrays([0, 1, 1], [-1e-12, 1 + 1e-7, 0.5])
    assert table.score.tolist() == [0.0, 0.5, 1.0]
    (note,) = table.notes
    assert (note.code, note.count) == ("clipped", 2)
    assert "2 values of y_prob lay outside [0, 1] by at most 1e-07" in note.text


def test_weights_are_importance_weights_whatever_their_values():
    table = ScoreTable.from_arrays([0, 1, 1], [0.5, 0.5, 0.7], sample_weight=[0.5, 1.5, 2])
    assert table.importance
    assert (table.n.tolist(), table.k.tolist()) == ([2, 2], [1.5, 2])
    assert (table.w2.tolist(), table.k2.tolist()) == ([2.5, 4], [2.25, 4])
    whole = ScoreTable.from_arrays([0, 1], [0.5, 0.7], sample_weight=[2, 3])
    assert (whole.importance, whole.w2.tolist(), whole.k2.tolist(), whole.notes) == (True, [4, 9], [0, 9], ())
    assert repr(whole) == "ScoreTable(total weight 5, 2 distinct scores, 3 positives)"
    assert ScoreTable.from_arrays([0, 1], [0.5, 0.7], sample_weight=[1, 1]).importance


def test_a_table_of_counts_and_one_of_importance_weights_are_not_added():
    counted = ScoreTable.from_arrays([0, 1], [0.5, 0.7], frequency=[2, 3])
    weighted = ScoreTable.from_arrays([0, 1], [0.5, 0.7], sample_weight=[2, 3])
    assert (counted.importance, weighted.importance) == (False, True)
    assert (counted.w2, counted.k2, counted.notes) == (None, None, ())
    for pair in ((counted, weighted), (weighted, counted)):
        with pytest.raises(cb.InputError, match="Count both with sample_weight, or both with frequency"):
            sum(pair[1:], pair[0])
    assert counted != weighted
    for table in (counted, weighted):
        assert ScoreTable.empty() + table == table == table + ScoreTable.empty()


def test_importance_weights_survive_copies_maps_and_rounding():
    table = ScoreTable.from_arrays([0, 1, 1], [0.25, 0.251, 0.7], sample_weight=[0.5, 1.5, 2])
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert again == table
        with pytest.raises(ValueError, match="read-only"):
            again.k2[0] = 1
    for coarse in (table.round(0.25), table.map(lambda score: np.where(score < 0.5, 0.25, 0.75))):
        assert (coarse.w2.tolist(), coarse.k2.tolist()) == ([2.5, 4], [2.25, 4])


@pytest.mark.parametrize(
    ("frequency", "message"),
    [
        ([1, 1.5, 2], r"frequency must be a whole number of rows, 0 or more; got 1.5 \(row 1\). .*use sample_weight"),
        ([1, 2, -3], r"got -3 \(row 2\)"),
        ([np.inf, 2, 3], r"got inf \(row 0\)"),
        ([1, np.nan, 2], "frequency has 1 missing value"),
        ([0, 0, 0], "frequency must be positive in at least one row; got zero in every row"),
        ([2**53, 1, 1], r"frequency must add up to less than 2\*\*53"),
        (["1", "2", "3"], "frequency must hold numbers"),
        ([1, 2], "frequency has 2 rows, y_true has 3"),
    ],
)
def test_bad_frequencies_are_refused(frequency, message):
    with pytest.raises(cb.InputError, match=message) as caught:
        ScoreTable.from_arrays([0, 1, 1], [0.5, 0.5, 0.7], frequency=frequency)
    assert caught.value.argument == "frequency"


def test_sample_weight_and_frequency_are_not_given_together():
    with pytest.raises(cb.InputError, match="sample_weight and frequency must not be given together"):
        ScoreTable.from_arrays([0, 1], [0.5, 0.7], sample_weight=[1, 2], frequency=[1, 2])
    with pytest.raises(TypeError, match="importance"):
        ScoreTable.from_arrays([0, 1], [0.5, 0.7], importance=True)


def test_adding_weighted_tables_agrees_with_weighting_at_once(rng):
    p, y, w = rng.random(3000).round(2), rng.random(3000) < 0.3, rng.exponential(size=3000)
    at_once = ScoreTable.from_arrays(y, p, sample_weight=w)
    parts = [ScoreTable.from_arrays(y[i], p[i], sample_weight=w[i]) for i in np.array_split(np.arange(3000), 7)]
    total = sum(parts[1:], parts[0])
    for name in ("n", "k", "w2", "k2"):
        np.testing.assert_allclose(getattr(at_once, name), getattr(total, name), rtol=1e-12)


def test_rows_of_weight_zero_are_dropped_and_counted():
    table = ScoreTable.from_arrays([0, 1, 1], [0.1, 0.2, 0.3], sample_weight=[1, 0, 2])
    assert (table.size, table.n_in, table.n_dropped) == (3, 3, 1)
    assert {note.code: note.count for note in table.notes}["zero_weight"] == 1
    table = ScoreTable.from_arrays([0, 1, 1], [0.1, 0.2, 0.3], frequency=[1, 0, 2])
    assert (table.size, table.n_in, table.n_dropped) == (3, 3, 1)
    assert {note.code: note.count for note in table.notes}["zero_frequency"] == 1


# other constructors and methods


@pytest.mark.parametrize(
    ("score", "n", "k", "match"),
    [
        ([0.1], [1], [2], "k must not exceed n"),
        ([0.1], [1.5], [1], "n must hold whole numbers"),
        ([0.1], [-1], [0], "n must hold whole numbers"),
        ([1.7], [1], [0], r"score must lie in \[0, 1\]"),
        ([0.1, 0.2], [1], [0], "equally long"),
        ([np.nan], [1], [0], "score has 1 missing value"),
        ([0.1], [np.nan], [0], "n has 1 missing value"),
        ([0.1, 0.2], [2**53, 1], [0, 0], "less than 2"),
    ],
)
def test_from_counts_refuses_invalid_counts(score, n, k, match):
    with pytest.raises(cb.InputError, match=match):
        ScoreTable.from_counts(score, n, k)


def test_from_counts_without_rows_is_the_empty_table():
    assert ScoreTable.from_counts([], [], []) == ScoreTable.empty() == ScoreTable.from_counts([0.5], [0], [0])


def test_the_repr_of_the_empty_table():
    assert repr(ScoreTable.empty()) == "ScoreTable(0 rows, 0 distinct scores, 0 positives)"
    assert np.isnan(ScoreTable.empty().prevalence)


def test_mapping_merges_scores_that_become_equal():
    table = ScoreTable.from_counts([0.1, 0.2, 0.9], [5, 5, 5], [1, 2, 3])
    assert table.map(lambda p: np.where(p < 0.5, 0.3, p)) == ScoreTable.from_counts([0.3, 0.9], [10, 5], [3, 3])
    with pytest.raises(cb.InputError, match=r"f\(score\) must lie in"):
        table.map(lambda p: p * 3)
    with pytest.raises(cb.InputError, match="equally long"):
        table.map(lambda p: p[:1])


def test_rounding_is_bounded_and_noted():
    table = count([(True, 0.1), (False, 0.123456789), (True, 1.0)])
    rounded = table.round(2**-10)
    assert np.abs(rounded.score - table.score).max() <= 2**-11
    assert [note.code for note in rounded.notes] == ["rounded"]
    assert (rounded + rounded).notes[0].count == 2
    for resolution in (0, 1e-310, 2, np.nan):
        with pytest.raises(cb.InputError, match="resolution"):
            table.round(resolution)


def test_a_table_equals_only_tables_and_is_not_hashable():
    assert TABLE != 5
    assert (TABLE == "x") is False
    with pytest.raises(TypeError):
        hash(TABLE)
    with pytest.raises(TypeError):
        TABLE + 1


@pytest.mark.parametrize(
    ("labels", "event"),
    [(["good", "good", "good", "bad"], "bad"), ([2, 1, 2, 2], 1), ([-1, 1, 1], 1), (["a", "b"], "b")],
)
def test_a_much_rarer_label_is_suggested_as_the_event_and_else_the_last(labels, event):
    with pytest.raises(cb.InputError, match=f"for example pos_label={event!r}"):
        cb.ece(labels, np.linspace(0.2, 0.8, len(labels)))


RNG = np.random.default_rng(0)
SCORES = RNG.integers(1, 10, 200) / 10
OUTCOMES = (RNG.random(200) < SCORES).astype(int)
WEIGHTS = RNG.exponential(size=200)


def by_score(values):
    return [values[score == SCORES].sum() for score in np.unique(SCORES)]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["counts", "importance weights"])
def test_sums_equal_those_of_rows(weights):
    w = np.ones(200) if weights is None else weights
    table = cb.ScoreTable.from_arrays(OUTCOMES, SCORES, sample_weight=weights)
    assert row_squares(table) == pytest.approx(by_score(w**2))
    assert event_squares(table) == pytest.approx(by_score(w**2 * OUTCOMES))
    fitted = table.score**2
    assert squared_residuals(table, fitted) == pytest.approx(by_score(w**2 * (OUTCOMES - SCORES**2) ** 2))


def test_the_variance_of_counts_is_bernoulli_and_that_of_weights_is_robust():
    counts, weighted = (
        cb.ScoreTable.from_arrays(OUTCOMES, SCORES),
        cb.ScoreTable.from_arrays(OUTCOMES, SCORES, sample_weight=WEIGHTS),
    )
    assert residual_variance(counts) == pytest.approx(by_score(SCORES * (1 - SCORES)))
    assert residual_variance(weighted) == pytest.approx(by_score(WEIGHTS**2 * (OUTCOMES - SCORES) ** 2))
