"""Parquet files that lie about their content, or hide it."""

import base64
import struct
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

pytest.importorskip("duckdb", reason="duckdb is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.6, 1000).round(3)
    p[:2] = 0.3, 0.6
    return pa.table({"y": (rng.random(1000) < p).astype(np.int64), "p": p, "g": ["a", "b"] * 500})


@pytest.mark.parametrize(
    ("code", "column", "true", "false"),
    [("<d", 1, 0.6, 0.31), ("<d", 1, 0.3, 0.59), ("<d", 1, 0.6, 9.0), ("<q", 0, 1, 0), ("<q", 0, 0, 1)],
)
def test_statistics_of_a_column_are_not_trusted(tmp_path, rows, code, column, true, false):
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, compression="none")
    expected = cb.scan(path, y="y", p="p"), cb.scan(path, y="y", p="p", by="g")
    whole = path.read_bytes()
    footer = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
    path.write_bytes(whole[:footer] + whole[footer:].replace(struct.pack(code, true), struct.pack(code, false)))
    found = pq.ParquetFile(path).metadata.row_group(0).column(column).statistics
    assert false in (found.min, found.max)
    assert (cb.scan(path, y="y", p="p"), cb.scan(path, y="y", p="p", by="g")) == expected


@pytest.mark.parametrize("open_footer", [False, True])
def test_an_encrypted_file_is_an_input_error(tmp_path, rows, open_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="pyarrow has no encryption here")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key, name):
            return base64.b64encode(key).decode()

        def unwrap_key(self, key, name):
            return base64.b64decode(key)

    settings = encryption.EncryptionConfiguration("footer", column_keys={"key": ["p"]}, plaintext_footer=open_footer)
    factory = encryption.CryptoFactory(lambda config: Keys())
    hidden = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    path = Path(tmp_path / "a.parquet")
    with pq.ParquetWriter(path, rows.schema, encryption_properties=hidden) as writer:
        writer.write_table(rows)
    # DuckDB 1.2 and 1.3 do not name the cause if the footer is open.
    with pytest.raises(cb.InputError, match=r"a.parquet cannot be read: .*(crypt|don't know what type)"):
        cb.scan(path, y="y", p="p")
    with pytest.raises(cb.InputError, match=r"a.parquet cannot be read: .*crypt"):
        cb.ScoreTable.from_parquet(path)
