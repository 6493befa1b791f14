"""Arrow arrays as NumPy arrays, against the conversion of pyarrow."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from calibrant.ingest.files import missing_cells, parse_labels, read_values  # noqa: E402

KINDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
NUMBERS = {kind: pa.array(np.arange(20).astype(kind)) for kind in KINDS}
WHOLE = {**NUMBERS, "bool": pa.array([True, False, True, True] * 5), "text": pa.array(["a", "", "bc", "a"] * 5)}
SOME = [3, None, 5, None, None, 8, 9, 10, None, 12, 13]
GAPS = {
    **{kind: pa.array(SOME, type=pa.type_for_alias(kind)) for kind in KINDS if kind != "float16"},
    "bool": pa.array([True, None, False, None, None, True, True, False, None, False, True]),
    "text": pa.array([None if v is None else str(v) for v in SOME]),
    "long text": pa.array([None if v is None else str(v) for v in SOME], type=pa.large_string()),
}


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("part", [slice(None), slice(3, 14), slice(9, 9)])
def test_values_are_those_of_pyarrow(kind, part):
    array = WHOLE[kind][part]
    assert missing_cells(array) is None
    expected = array.to_numpy(zero_copy_only=False)
    found = read_values(array, None)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.parametrize("part", [slice(None), slice(1, 9)])
def test_null_cells_are_marked_and_filled(kind, part):
    array = GAPS[kind][part]
    missing = missing_cells(array)
    assert missing.tolist() == [cell is None for cell in array.to_pylist()]
    nothing = None if "text" in kind else 0
    assert read_values(array, missing).tolist() == [nothing if c is None else c for c in array.to_pylist()]


def test_all_cells_of_an_array_of_nulls_are_missing():
    assert missing_cells(pa.nulls(3)).tolist() == [True] * 3
    assert missing_cells(pa.nulls(3, pa.float64())).tolist() == [True] * 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["0", "1", "1", "0"], [0.0, 1.0, 1.0, 0.0]),
        (["7", "9"], [7.0, 9.0]),
        (["0", "10"], [0.0, 10.0]),
        (["1", "-1"], [1.0, -1.0]),
        (["1e0", "0.5"], [1.0, 0.5]),
        (["0", "a"], ["0", "a"]),
        (["/", ":"], ["/", ":"]),  # the characters beside the digits
        (["1", "é"], ["1", "é"]),
        (["True", "false"], [True, False]),
        (["yes", "no"], ["yes", "no"]),
        ([], []),
    ],
)
def test_text_labels_become_numbers_or_truth_values_where_all_do(words, expected):
    assert parse_labels(pa.array(words, type=pa.string()), None).tolist() == expected
    padded = pa.array(["x", *words, "x"])[1 : 1 + len(words)]
    assert parse_labels(padded, None).tolist() == expected


@pytest.mark.parametrize(("words", "filler"), [(["0", "1"], 0.0), (["true", "false"], False), (["a", "b"], None)])
def test_missing_labels_stay_missing(words, filler):
    array = pa.array([words[0], None, words[1]])
    first, last = parse_labels(pa.array(words), None).tolist()
    assert parse_labels(array, missing_cells(array)).tolist() == [first, filler, last]
