"""Tables from outside: unpickled ones, Arrow tables and Parquet files whose checksum matches wrong content."""

import copy
import json
import os
import pickle
from dataclasses import fields

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError, ScoreTable
from calibrant._support.errors import Note
from calibrant.metrics.bins import EqualWidth
from calibrant.regression import MeanTable
from calibrant.tables import storage
from calibrant.tables.class_table import ClassTable, ConfusionTable
from calibrant.tables.collection import Tables

COUNTS = {"score": [0.1, 0.5, 0.9], "n": [3, 2, 4], "k": [0, 2, 1]}
WRONG_COUNTS = {
    "more events than rows": ({"k": [0, 3, 1]}, "k must be from 0 to n; got 3 .row 1"),
    "many more events than rows": ({"k": [0, 10**6, 1]}, "k must be"),
    "negative events": ({"k": [0, -1, 1]}, "k must be"),
    "no rows": ({"n": [3, 0, 4], "k": [0, 0, 1]}, "n must be positive"),
    "negative rows": ({"n": [3, -2, 4], "k": [0, -2, 1]}, "n must be positive"),
    "too many rows": ({"n": [3, 2**53, 4]}, "n must be at most 2..53"),
    "rows that overflow": ({"n": [2**62, 2**62, 2**62]}, "n must be at most 2..53"),
    "NaN": ({"score": [0.1, np.nan, 0.9]}, "score must be from 0 to 1; got nan .row 1"),
    "infinity": ({"score": [0.1, 0.5, np.inf]}, "score must be from 0 to 1"),
    "negative score": ({"score": [-0.1, 0.5, 0.9]}, "score must be from 0 to 1"),
    "percentages": ({"score": [10.0, 50.0, 90.0]}, "score must be from 0 to 1"),
    "unsorted": ({"score": [0.5, 0.1, 0.9]}, "score must be strictly increasing; got 0.1 .row 1"),
    "repeated score": ({"score": [0.1, 0.1, 0.9]}, "score must be strictly increasing"),
    "lengths": ({"k": [0, 2]}, "as long as"),
}
WEIGHTED = {
    "score": [0.1, 0.5],
    "n": [1.5, 2.5],
    "k": [0.5, 2.5],
    "w2": [1.25, 3.0],
    "k2": [0.25, 3.0],
}
WRONG_WEIGHTS = {
    "events": ({"k": [0.5, 2.6]}, "k must be"),
    "NaN events": ({"k": [0.5, np.nan]}, "k must be"),
    "zero": ({"n": [0.0, 2.5]}, "n must be"),
    "infinite": ({"n": [np.inf, 2.5]}, "n must be"),
    "squares": ({"w2": [-1.0, 3.0]}, "w2 must be"),
    "NaN squares": ({"w2": [np.nan, 3.0]}, "w2 must be"),
    "squares of events": ({"k2": [0.25, 3.5]}, "k2 must be from 0 to w2"),
    "huge": ({"n": [1e300, 2.5]}, "n must be at most"),
}


def columns_of(values, changes, kind):
    columns = {**values, **changes}
    return {name: np.array(column, dtype=float if name == "score" else kind) for name, column in columns.items()}


def unchecked(columns):
    """Return a table that no check has seen."""
    return ScoreTable(**columns, n_in=9)


def from_state(columns):
    state = {field.name: getattr(unchecked(columns), field.name) for field in fields(ScoreTable)}
    table = ScoreTable.__new__(ScoreTable)
    table.__setstate__(state)
    return table


def from_parquet(columns, folder):
    pytest.importorskip("pyarrow")
    storage.to_parquet(unchecked(columns), folder / "t.parquet")
    return ScoreTable.from_parquet(folder / "t.parquet")


ENTRIES = {
    "Arrow": lambda columns, folder: ScoreTable.from_arrow(storage.to_arrow(unchecked(columns))),
    "Parquet": from_parquet,
    "pickle": lambda columns, folder: pickle.loads(pickle.dumps(unchecked(columns))),
    "copy": lambda columns, folder: copy.copy(unchecked(columns)),
    "state": lambda columns, folder: from_state(columns),
}


# The columns of an Arrow table have one length.
POSSIBLE = [(entry, case) for entry in ENTRIES for case in WRONG_COUNTS if entry[0] in "pcs" or case != "lengths"]


@pytest.mark.parametrize(("entry", "case"), POSSIBLE)
def test_wrong_counts_are_refused_at_each_entry(entry, case, tmp_path):
    pytest.importorskip("pyarrow") if entry in ("Arrow", "Parquet") else None
    changes, message = WRONG_COUNTS[case]
    with pytest.raises(InputError, match=message):
        ENTRIES[entry](columns_of(COUNTS, changes, np.int64), tmp_path)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("case", WRONG_WEIGHTS)
def test_wrong_weights_are_refused_at_each_entry(entry, case, tmp_path):
    pytest.importorskip("pyarrow") if entry in ("Arrow", "Parquet") else None
    changes, message = WRONG_WEIGHTS[case]
    with pytest.raises(InputError, match=message):
        ENTRIES[entry](columns_of(WEIGHTED, changes, np.float64), tmp_path)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("values", "kind"), [(COUNTS, np.int64), (WEIGHTED, np.float64)])
def test_valid_tables_pass_each_entry(entry, values, kind, tmp_path):
    pytest.importorskip("pyarrow") if entry in ("Arrow", "Parquet") else None
    columns = columns_of(values, {}, kind)
    again = ENTRIES[entry](columns, tmp_path)
    assert again == unchecked(columns)
    assert not any(getattr(again, name).flags.writeable for name in columns)


IMPOSSIBLE_ROWS = {
    "no rows": (COUNTS, {}, {"n_in": 0}, "n_in must be such that the number of used rows is at least 4; got 0"),
    "too few rows": (COUNTS, {}, {"n_in": 3}, "at least 4; got 3"),
    "all rows dropped": (COUNTS, {}, {"n_dropped": 9}, "at least 4; got 0"),
    "more rows than counts": (COUNTS, {}, {"n_in": 10}, "at most 9; got 10"),
    "weights without rows": (WEIGHTED, {}, {"n_in": 0}, "at least 3; got 0"),
    "fewer rows than effective ones": (WEIGHTED, {"w2": [0.3, 0.8], "k2": [0.1, 0.8]}, {}, "at least 15; got 9"),
    "weights too small": (WEIGHTED, {"n": [1e-300] * 2, "k": [0, 0], "w2": [1e-300] * 2, "k2": [0, 0]}, {}, "w2 must"),
    "no squares": (WEIGHTED, {"w2": [0, 0], "k2": [0, 0]}, {}, "w2 must be above 0, and at most the square of n; got"),
    "huge squares": (WEIGHTED, {"w2": [1e308, 1e308], "k2": [0, 0]}, {}, "w2 must be above 0, and at most the square"),
    "tiny squares": (WEIGHTED, {"w2": [1e-300] * 2, "k2": [1e-300] * 2}, {}, "at least 9,007,199,254,740,992; got 9"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE_ROWS)
def test_stored_tables_whose_rows_cannot_have_their_sums_are_refused(case):
    """A checksum that was computed again let such tables pass; evaluate then divided by zero."""
    pytest.importorskip("pyarrow")
    values, changes, about, message = IMPOSSIBLE_ROWS[case]
    columns = columns_of(values, changes, np.int64 if values is COUNTS else np.float64)
    stored = storage.to_arrow(ScoreTable(**columns, **{"n_in": 9} | about))
    with pytest.raises(InputError, match=message):
        ScoreTable.from_arrow(stored)


@pytest.mark.parametrize(
    "options",
    [{}, {"frequency": [5, 0, 2, 3]}, {"sample_weight": [0.5, 0, 2, 3.25]}, {"sample_weight": [1e-100, 1e-3, 7, 1e9]}],
)
def test_tables_of_rows_pass_however_they_are_counted(options):
    pytest.importorskip("pyarrow")
    table = ScoreTable.from_arrays([0, 1, 1, 0], [0.1, 0.3, 0.3, 0.9], **options)
    for each in (table, table + table, table.map(lambda score: score / 2), table.round(0.5), table.rows_by_weight()):
        assert ScoreTable.from_arrow(each.to_arrow()) == each
    assert not len(ScoreTable.from_arrow(ScoreTable.empty().to_arrow()))


def test_other_types_of_columns_are_refused():
    for changes in (
        {"n": np.array([3, 2, 4], dtype=np.int32)},
        {"score": [0.1, 0.5, 0.9]},
        {"score": np.zeros((3, 1))},
    ):
        columns = columns_of(COUNTS, {}, np.int64) | changes
        table = ScoreTable.empty()
        with pytest.raises(InputError, match="must be a 1-D array of type"):
            table.__setstate__(columns)


def test_a_state_without_a_column_is_refused_and_cached_values_are_dropped():
    columns = columns_of(COUNTS, {}, np.int64)
    table = ScoreTable.empty()
    with pytest.raises(InputError, match="must have a field 'k'"):
        table.__setstate__({"score": columns["score"], "n": columns["n"]})
    with pytest.raises(InputError, match="must be a mapping"):
        table.__setstate__(None)
    fresh = ScoreTable.__new__(ScoreTable)
    fresh.__setstate__({**columns, "size": 10**6, "positives": -3})
    assert (fresh.size, fresh.positives) == (9, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_in": -1}, "n_in must be"),
        ({"n_in": "9"}, "n_in must be"),
        ({"n_in": 2**70}, "n_in must be"),
        ({"n_dropped": 10}, "n_dropped must be at most n_in"),
        ({"_notes": [1]}, "notes must be"),
        ({"_notes": (Note("a", -1, "b"),)}, "notes must be"),
        ({"_notes": (Note("a", 1, None),)}, "notes must be"),
    ],
)
def test_wrong_facts_about_rows_are_refused(changes, message):
    state = columns_of(COUNTS, {}, np.int64) | {"n_in": 9, "n_dropped": 0} | changes
    table = ScoreTable.empty()
    with pytest.raises(InputError, match=message):
        table.__setstate__(state)


@pytest.mark.parametrize(
    "about",
    [
        {"notes": None},
        {"notes": [1]},
        {"notes": [["a", 1]]},
        {"notes": [["a", "b", "c"]]},
        {"n_in": None},
        {"n_in": -1},
        {"n_dropped": 1e9},
        {"version": True},
        {"version": [1]},
    ],
)
def test_wrong_metadata_with_a_matching_checksum_is_refused(about):
    pytest.importorskip("pyarrow")
    frame = ScoreTable.from_counts(**COUNTS).to_arrow()
    found = json.loads(frame.schema.metadata[b"calibrant"]) | about
    found.pop("sha256")
    arrays = {name: np.asarray(frame.column(name)) for name in frame.column_names}
    found["sha256"] = storage._checksum(arrays, found)
    with pytest.raises(InputError):
        ScoreTable.from_arrow(frame.replace_schema_metadata({b"calibrant": json.dumps(found)}))


def test_a_file_with_more_events_than_rows_does_not_reach_the_kernel(tmp_path):
    """Such a file crashed the interpreter in TCE."""
    pytest.importorskip("pyarrow")
    columns = columns_of(COUNTS, {"k": [0, 50, 1]}, np.int64)
    with pytest.raises(
        InputError, match=r"k must be from 0 to n; got 50 \(row 1 of t.parquet\). Count the rows again."
    ):
        from_parquet(columns, tmp_path)


def test_a_device_and_a_pipe_are_no_table_files(tmp_path):
    pytest.importorskip("pyarrow")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
        with pytest.raises(InputError, match="regular file"):
            ScoreTable.from_parquet(path)


MEANS = MeanTable.from_arrays([1.0, 2.5, 4.0], [1.0, 2.0, 5.0], sample_weight=[1.0, 2.0, 0.5])
CLASSES = ClassTable.from_arrays([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], frequency=[2, 3])
CONFUSION = ConfusionTable.from_codes(np.array([0, 0, 1]), np.array([0, 1, 1]), ["a", "b"])
PARTITION = EqualWidth(5)(ScoreTable.from_counts(**COUNTS))
MEAN_PARTITION = cb.bins.EqualSize(2)(MeanTable.from_arrays([1.0, 2.0, 5.0, 9.0], [1.0, 3.0, 4.0, 8.0]))
NAN = np.array([1.0, np.nan, 5.0])
WRONG_TABLES = [
    (MEANS, {"prediction": NAN}),
    (MEANS, {"mean": NAN * np.inf}),
    (MEANS, {"n": np.array([1.0, -2.0, 0.5])}),
    (MEANS, {"n": np.array([1, 2, 1])}),
    (MEANS, {"m2": np.array([0.0, -1.0, 0.0])}),
    (MEANS, {"w2": np.array([1.0, 4.0])}),
    (MEANS, {"single": True}),
    (MEANS, {"single": "no"}),
    (MEANS, {"notes": None}),
    (CLASSES, {"code": np.array([0, 3])}),
    (CLASSES, {"code": np.array([-1, 2])}),
    (CLASSES, {"proba": np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.4]])}),
    (CLASSES, {"proba": np.array([[0.7, 0.2, 0.1], [np.nan, 0.8, 0.1]])}),
    (CLASSES, {"proba": np.array([[1.7, -0.8, 0.1], [0.1, 0.8, 0.1]])}),
    (CLASSES, {"proba": np.array([0.7, 0.2, 0.1])}),
    (CLASSES, {"labels": ("a", "a", "b")}),
    (CLASSES, {"labels": ("a", ["a"], "b")}),
    (CLASSES, {"weight": np.array([2, 0])}),
    (CLASSES, {"weight": np.array([np.nan, 1.0])}),
    (CONFUSION, {"n": np.array([[1, -1], [0, 1]])}),
    (CONFUSION, {"n": np.array([1, 1])}),
    (CONFUSION, {"n": np.array([[2**62, 2**62], [0, 1]])}),
    (CONFUSION, {"w2": np.array([[1.0, np.nan], [0, 1]])}),
    (PARTITION, {"start": np.array([0, 7])}),
    (PARTITION, {"start": np.array([0, -1])}),
    (PARTITION, {"start": np.array([1, 2])}),
    (PARTITION, {"start": np.array([0, 2, 1])}),
    (PARTITION, {"_nominal": (np.zeros(1), np.zeros(1))}),
    (PARTITION, {"_sums": (np.zeros(1), np.zeros(3), np.zeros(3))}),
    (MEAN_PARTITION, {"labels": np.array([0, 1, 1, 9])}),
    (MEAN_PARTITION, {"labels": np.array([0, 1, -1, 1])}),
    (MEAN_PARTITION, {"labels": np.array([0, 1])}),
    (MEAN_PARTITION, {"lower": np.array([0.0])}),
]


@pytest.mark.parametrize("number", range(len(WRONG_TABLES)))
def test_wrong_sibling_tables_are_refused_when_they_are_unpickled(number):
    table, changes = WRONG_TABLES[number]
    names = [field.name for field in fields(table)]
    valid = type(table).__new__(type(table))
    state = {name: getattr(table, name) for name in names}
    valid.__setstate__(state)
    damaged = copy.copy(table)
    damaged.__dict__.update(changes)
    with pytest.raises(InputError):
        pickle.loads(pickle.dumps(damaged))


def test_a_damaged_table_inside_tables_and_partitions_is_refused():
    bad = unchecked(columns_of(COUNTS, {"k": [0, 50, 1]}, np.int64))
    for holder in (Tables({("m", None): bad}), copy.copy(PARTITION)):
        if not isinstance(holder, Tables):
            holder.__dict__["table"] = bad
        with pytest.raises(InputError, match="k must be"):
            pickle.loads(pickle.dumps(holder))
    tables = Tables({})
    for state in ({}, {"_tables": 3, "by": ()}, {"_tables": {}, "by": None}, {"_tables": {"m": 1}, "by": ()}):
        with pytest.raises(InputError):
            tables.__setstate__(state)
    good = Tables({("m", "g"): ScoreTable.from_counts(**COUNTS)}, ("column",))
    assert pickle.loads(pickle.dumps(good)) == good
