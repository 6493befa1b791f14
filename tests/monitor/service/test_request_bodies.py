"""Bodies of requests, read without a service: their memory is limited before Arrow reads them."""

import io

import numpy as np
import pyarrow as pa
import pytest

from calibrant import InputError
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.request_bodies import ARROW, CSV, Columns, read_columns

OBSERVATIONS = Columns(("y", "p", "time"), ("group",), ("version",))


def read(kind, body, columns=OBSERVATIONS):
    return read_columns(kind, body, columns, {"time": "2026-01-01"}, 1_000_000)


def stream(**columns):
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'y,"p\n1,0.5\n', "must be CSV"),
        (b"\xff,p\n", "in UTF-8"),
        (b"\n\r\n", "it is empty"),
        (b"," * 60_000 + b"\n", "at most 50 columns; got 60,001"),
        (b"y,p,time,y\n1,0.5,2026-01-01,0\n", "different names"),
        (b"y,p,other\n" + b"1,0.5,3\n" * 10, "unknown column 'other'"),
        (b"y,p,time\n1,0.5,2026-01-01" + b"," * 60_000, "must be CSV"),
    ],
)
def test_bad_headers_of_csv_are_refused(body, words):
    with pytest.raises(InputError, match=words):
        read(CSV, body)


@pytest.mark.parametrize("cells", [".5 abc 0.3", ".5 abc x", "1 abc .2", "nan abc 0.1"])
def test_text_among_the_numbers_of_csv_is_named_by_its_own_row(cells):
    body = "y,p,time\n" + "".join(f"1,{cell},2026-01-01\n" for cell in cells.split())
    with pytest.raises(InputError, match="p must hold numbers; row 1 is 'abc'") as raised:
        read(CSV, body.encode())
    assert (raised.value.argument, raised.value.row) == ("p", 1)


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\r\n\n", b"\xef\xbb\xbf\n"])
def test_ids_of_csv_stay_text(start):
    found = read(CSV, start + b'"id",p\n007,0.5\n', Columns(("id", "p", "time")))
    assert (found["id"].to_pylist(), found["p"].to_pylist()) == (["007"], [0.5])


@pytest.mark.parametrize(("length", "n_rows", "kind"), [(20_000, 10, InputError), (500, 150_000, ServiceProblem)])
def test_dictionaries_of_arrow_are_measured_before_they_are_resolved(length, n_rows, kind):
    group = pa.DictionaryArray.from_arrays(np.zeros(n_rows, np.int8), pa.array(["x" * length], pa.large_string()))
    body = stream(y=np.zeros(n_rows, np.int8), p=np.full(n_rows, 0.5, np.float32), group=group)
    with pytest.raises(kind, match="The texts of 'group' must have at most"):
        read(ARROW, body)


def test_columns_of_arrow_are_counted_before_they_are_read():
    with pytest.raises(InputError, match="at most 50 columns; got 51"):
        read(ARROW, stream(**{f"c{i}": pa.array([1]) for i in range(51)}))
