"""Rows: one reader for outcomes, forecasts, weights, clusters and groups."""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hazards import ACCEPTED, NOTED, REFUSED, P, Y, put
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from calibrant import ScoreTable
from calibrant._support import columns as _columns
from calibrant.inference.paired_rows import PairedRows
from calibrant.regression import MeanTable
from calibrant.tables.rows import Rows, observed_groups
from calibrant.tables.score_table import count_rows


def paired(y, p, **options):
    _, (table,) = PairedRows.from_rows(Rows.read(y, {"y_prob": p}, **options))
    return table


READERS = pytest.mark.parametrize("reader", [ScoreTable.from_arrays, paired], ids=["table", "paired"])


# Hazards of columns


@READERS
@pytest.mark.parametrize("hazard", REFUSED)
def test_bad_input_is_refused_with_value_place_and_hint(reader, hazard):
    y, p, options, message, argument, row = REFUSED[hazard]
    with pytest.raises(cb.InputError, match=message) as caught:
        reader(y, p, **options)
    assert caught.value.argument == argument
    if row is not None:
        assert caught.value.row == row


@READERS
@pytest.mark.parametrize("case", NOTED)
def test_unusual_input_is_used_and_noted(reader, case):
    y, p, options, codes = NOTED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = reader(y, p, **options)
    assert {note.code for note in table.notes} == codes
    assert table.n_in == len(y)


@READERS
@pytest.mark.parametrize("case", ACCEPTED)
def test_equivalent_inputs_give_the_same_table(reader, case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = reader(*ACCEPTED[case])
    assert table == ScoreTable.from_arrays(Y, P)
    assert table.notes == ()


@pytest.mark.parametrize("name", ["y_prob", "sample_weight", "frequency", "cluster", "by"])
def test_indexes_and_lengths_of_all_columns_must_agree(name):
    pd = pytest.importorskip("pandas")
    values = pd.Series(np.arange(200) % 7)
    columns = {"y_prob": pd.Series(P)} | ({} if name == "y_prob" else {name: values})

    def read(columns):
        columns = dict(columns)
        return Rows.read(pd.Series(Y), {"y_prob": columns.pop("y_prob")}, **columns)

    assert len(read(columns)) == 200
    with pytest.raises(cb.InputError, match=f"indexes of y_true and {name} differ"):
        read({**columns, name: columns[name].sample(frac=1, random_state=0)})
    with pytest.raises(cb.InputError, match=f"{name} has 199 rows, y_true has 200"):
        read({**columns, name: columns[name].to_numpy()[:199]})


def test_equal_indexes_are_matched_by_position():
    pd = pytest.importorskip("pandas")
    index = np.arange(200)[::-1]
    table = ScoreTable.from_arrays(pd.Series(Y, index=index), pd.Series(P, index=index), frequency=np.ones(200))
    assert table == ScoreTable.from_arrays(Y, P)


# Missing values and weights of 0


@pytest.mark.parametrize("column", ["y_true", "y_probs['a']", "y_probs['b']", "sample_weight", "cluster"])
def test_a_missing_value_is_an_error_or_drops_the_row_for_all_models(column):
    columns = {"y_true": Y.astype(float), "y_probs['a']": P, "y_probs['b']": P**2}
    columns |= {"sample_weight": np.ones(200), "cluster": (np.arange(200) % 20).astype(float)}
    columns[column] = put(columns[column], 3, np.nan)

    def read(**options):
        models = {name: columns[f"y_probs[{name!r}]"] for name in "ab"}
        others = {name: columns[name] for name in ("sample_weight", "cluster")}
        return PairedRows.read(columns["y_true"], models, **others, **options)

    with pytest.raises(cb.InputError, match=r"has 1 missing value \(first at row 3\)\. Pass missing='drop'") as caught:
        read()
    assert caught.value.argument == column
    rows, tables = read(missing="drop")
    kept = np.arange(200) != 3
    columns = {name: values[kept] for name, values in columns.items()}
    expected, others = read()
    assert tables == others
    assert [(table.n_in, table.n_dropped) for table in tables] == [(200, 1), (200, 1)]
    assert all("missing" in [note.code for note in table.notes] for table in tables)
    for one, other in zip(rows.places, expected.places, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(rows.cluster, expected.cluster)


def test_dropped_rows_are_counted_by_reason():
    y, p = put(Y, [1, 2], np.nan, float), put(P, [2, 3], np.nan)
    weight = put(np.ones(200), [3, 4, 5], 0)
    for option, code in (("sample_weight", "zero_weight"), ("frequency", "zero_frequency")):
        table = ScoreTable.from_arrays(y, p, missing="drop", **{option: weight})
        assert (table.n_in, table.n_dropped) == (200, 5)
        assert {note.code: note.count for note in table.notes} == {"missing": 3, code: 2}
        means = MeanTable.from_arrays(y, p, missing="drop", **{option: weight})
        assert (means.n_in, means.n_dropped) == (200, 5)
        assert {note.code: note.count for note in means.notes} == {"missing": 3, code: 2}


def test_garbage_under_a_mask_is_not_looked_at():
    mask = np.arange(200) == 3
    y, p, w = (np.ma.masked_array(put(c, 3, v, float), mask=mask) for c, v in ((Y, 9), (P, -5), (P + 1, 1e-200)))
    table = ScoreTable.from_arrays(y, p, sample_weight=w, missing="drop")
    assert table.n_dropped == 1


def test_without_a_row_left_the_reason_is_stated():
    with pytest.raises(cb.InputError, match="sample_weight must be positive in at least one row"):
        ScoreTable.from_arrays([0, 1], [0.1, 0.2], sample_weight=[0, 0])
    for table in (ScoreTable, MeanTable):
        with pytest.raises(cb.InputError, match="each one has a missing value or weight 0"):
            table.from_arrays([0, None], [0.1, 0.2], sample_weight=[0, 1], missing="drop")


# Groups

LABELS = st.sampled_from(["a", "b", "c"]), st.integers(0, 3), st.booleans()


@given(st.lists(st.tuples(*LABELS), min_size=1, max_size=40))
def test_groups_are_the_observed_combinations_in_order(labels):
    columns = [_columns.read(list(column), "by") for column in zip(*labels, strict=True)]
    expected = {}
    for row, key in enumerate(labels):
        expected.setdefault(key, []).append(row)
    found = observed_groups(columns)
    assert [key for key, _ in found] == sorted(expected)
    assert all(rows.tolist() == expected[key] for key, rows in found)
    assert [key for key, _ in observed_groups(columns[:1])] == sorted({key[0] for key in labels})


def test_many_columns_of_many_labels_do_not_overflow():
    columns = [_columns.read(np.arange(3000) * (i + 1), f"c{i}") for i in range(8)]
    found = observed_groups(columns)
    assert len(found) == 3000
    assert found[7][0] == tuple(7 * (i + 1) for i in range(8))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.5, 0.9]), *LABELS[:2]), min_size=1, max_size=40))
def test_tables_of_groups_add_up_to_the_whole(cells):
    y, p, *by = zip(*cells, strict=True)
    rows = Rows.read(list(y), {"y_prob": list(p)}, by=by)
    groups = rows.split()
    assert sum((count_rows(own) for own in groups.values()), ScoreTable.empty()) == count_rows(rows)
    assert sum(len(own) for own in groups.values()) == len(rows)


def frames():
    columns = {"region": np.array(["n", "s"])[Y], "year": 2024 + (P > 0.5)}
    yield "list", list(columns.values()), None
    yield "mapping", columns, "region, year"
    for library in ("pandas", "polars"):
        frame = pytest.importorskip(library).DataFrame(columns)
        yield f"frame of {library}", frame, "region, year"
        yield f"columns of {library}", (frame["region"], frame["year"]), "region, year"
    yield "frame of Arrow", pytest.importorskip("pyarrow").table(columns), "region, year"


def test_several_columns_of_groups_may_come_in_any_container():
    expected = Rows.read(Y, {"y_prob": P}, by=next(frames())[1]).split()
    assert list(expected) == [("n", 2024), ("n", 2025), ("s", 2024), ("s", 2025)]
    for kind, by, name in frames():
        rows = Rows.read(Y, {"y_prob": P}, by=by)
        found = rows.split()
        assert rows.group_name == name, kind
        assert list(found) == list(expected), kind
        assert all(np.array_equal(found[key].y.values, own.y.values) for key, own in expected.items()), kind


def test_one_column_of_groups_has_labels_as_keys():
    pd = pytest.importorskip("pandas")
    for by in (
        Y,
        Y.tolist(),
        [Y],
        {"a": Y},
        pd.DataFrame({"a": Y}),
        pd.Series(Y, name="a"),
        pd.Series(Y, dtype="Int8"),
    ):
        assert list(Rows.read(Y, {"y_prob": P}, by=by).split()) == [0, 1]
    assert Rows.read(Y, {"y_prob": P}, by=pd.Series(Y, name=2023)).group_name == "2023"
    assert Rows.read(Y, {"y_prob": P}, by=Y).group_name is None
    assert Rows.read(Y, {"y_prob": P}, by=[pd.Series(Y, name="a"), P > 0.5]).group_name == "a, column 2"
    mixed = list(Rows.read([0, 1, 1], {"y_prob": [0.1, 0.2, 0.3]}, by=["a", 1, "a"]).split())
    assert mixed == [1, "a"]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ([None, *["a"] * 199], r"by has 1 missing value \(first at row 0\)\. Give such rows a group"),
        ({"a": Y, "b": put(P, 3, np.nan)}, r"by\['b'\] has 1 missing value \(first at row 3\)"),
        ({"a": Y, "b": Y[:199]}, r"by\['b'\] has 199 rows, y_true has 200"),
        ({}, "by must have at least one column, each with its own name"),
        (np.ones((200, 2)), "by must have one dimension.*a list of columns, a mapping of names to columns, or a frame"),
        (P, "by must have at most 1,000 groups, or at least 20 rows per group on average; got 2,000 groups of 1 rows"),
    ],
)
def test_bad_groups_are_refused(by, message):
    size = 2000 if by is P else 200
    by = np.arange(2000) if by is P else by
    with pytest.raises(cb.InputError, match=message):
        Rows.read(np.resize(Y, size), {"y_prob": np.resize(P, size)}, by=by, missing="drop").split()


def test_frames_with_one_name_twice_and_lazy_frames_are_refused():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    twice = pd.DataFrame(np.column_stack([Y, Y]), columns=["a", "a"])
    with pytest.raises(cb.InputError, match="by must be a frame in memory|each with its own name"):
        Rows.read(Y, {"y_prob": P}, by=twice)
    with pytest.raises(cb.InputError, match="by must be a frame in memory.*Collect it first"):
        Rows.read(Y, {"y_prob": P}, by=pl.DataFrame({"a": Y}).lazy())


@dataclass(frozen=True)
class Intervals:
    """A kind of forecast that only can be sliced."""

    low: np.ndarray
    high: np.ndarray

    def __len__(self):
        return len(self.low)

    def part(self, rows):
        return Intervals(self.low[rows], self.high[rows])


def test_any_forecast_that_can_be_sliced_is_split_and_selected():
    forecast = Intervals(P - 0.1, P + 0.1)
    y = put(P, [0, 7], np.nan)
    rows = Rows.read(y, {"forecast": forecast}, by=[Y, P > 0.5], missing="drop")
    for key, own in rows.split().items():
        used = own.check(_columns.finite, _columns.finite).select()
        assert np.allclose(used.forecasts[0].low + 0.1, used.y.values)
        assert len(used) == np.count_nonzero((key[0] == Y) & ((P > 0.5) == key[1]) & ~np.isnan(y))
    with pytest.raises(cb.InputError, match="forecast has 200 rows, y_true has 199"):
        Rows.read(y[1:], {"forecast": forecast})


def test_groups_count_their_own_dropped_and_clipped_values():
    p = put(put(P, [0, 2, 4], np.nan), [1, 3], 1 + 1e-9)
    rows = Rows.read(Y.reshape(-1, 1), {"y_prob": p}, by=np.arange(200) % 2, missing="drop")
    even, odd = (count_rows(own) for own in rows.split().values())
    assert (even.n_in, even.n_dropped) == (100, 3)
    assert {note.code: note.count for note in even.notes} == {"missing": 3}
    assert {note.code: note.count for note in odd.notes} == {"clipped": 2}
    assert {note.code: note.count for note in count_rows(rows).notes} == {"one_column": 1, "clipped": 2, "missing": 3}


def test_a_group_without_a_used_row_is_empty():
    rows = Rows.read(Y, {"y_prob": P}, by=np.arange(200) % 3, sample_weight=np.arange(200) % 3)
    assert [own.is_empty for own in rows.split().values()] == [True, False, False]
    rows = Rows.read(Y, {"y_prob": put(P, Y == 0, np.nan)}, by=Y, missing="drop")
    assert [own.is_empty for own in rows.split().values()] == [True, False]


def test_checking_twice_changes_nothing():
    rows = Rows.read(Y, {"y_prob": put(P, 3, 1 + 1e-9)}, sample_weight=put(np.ones(200), 4, 0))
    check = partial(Rows.check, outcome=_columns.events, forecast=_columns.scores)
    once = check(rows).select()
    twice = check(once).select()
    assert once.notes == twice.notes
    assert (once.n_in, once.n_dropped, len(once)) == (twice.n_in, twice.n_dropped, len(twice)) == (200, 1, 199)


class Tagged(np.ndarray):
    """An array with an attribute that is called as the one of forecasts."""

    kind = "x"


def test_columns_with_a_kind_of_their_own_are_columns():
    """A sparse array of pandas has the kind "integer" or "block", which is not one of a forecast."""
    pd = pytest.importorskip("pandas")
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.4, 0.8, 0.3])
    expected = cb.ece(y, p)
    assert cb.ece(pd.arrays.SparseArray(y), pd.arrays.SparseArray(p)) == expected
    assert cb.ece(y, p.view(Tagged)) == expected
    assert cb.regression.mae(y, p.view(Tagged)) == cb.regression.mae(y, p)
    with pytest.raises(cb.InputError, match="must be a forecast of kind 'binary'; got Point"):
        cb.ece(y, cb.Point(p))
