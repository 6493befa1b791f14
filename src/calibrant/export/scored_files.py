"""Calibrate the scores in a file: a column is added, all others do not change."""

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import Argument, InputError, MissingExtraError, no_column, wrong_value
from calibrant._support.formatting import printable
from calibrant.ingest.formats import File, guess_format
from calibrant.ingest.parquet_checks import check_rows, parquet_errors
from calibrant.ingest.text_files import (
    NULLS,
    csv_blocks,
    csv_cells,
    json_objects,
    line_blocks,
    parse_number,
    read_header,
)

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json"}
_BATCH = 1 << 16


def output_format(path: str) -> str:
    """Return the format of a new file by its ending."""
    format_ = _ENDINGS.get(Path(path).suffix.lower())
    if format_ is None:
        raise InputError(
            f"The file must have an ending that names its format; got {Path(path).name!r}.",
            hint="Use .parquet, .csv or .jsonl.",
        )
    return format_


def calibrate_file(
    calibrator: Any, source: Path, target: Path, kind: str, *, scores: Sequence[str], name: str
) -> dict[str, int]:
    """Write the rows of `source` to `target` with the calibrated values in new columns.

    Rows are read in batches. Cells of CSV files keep their text. So do lines of JSON that are written as JSON lines;
    in other formats their numbers are doubles, if they are not whole. A row with a missing score gets missing values.

    Parameters
    ----------
    calibrator : fitted calibrator of scores or of class probabilities, or recalibrator of point predictions
    source, target : Path
        Parquet, CSV or JSON lines. `kind` is the format of the target: "parquet", "csv" or "json".
    scores : sequence of str
        The column of scores or of predictions; or one column per class, in the order of the calibrator's classes.
    name : str
        The column of the result, which must not exist; for several classes the names begin with it: calibrated_a.

    Returns
    -------
    dict
        Number of rows, of rows with a missing score, and of scores just outside [0, 1], which were clipped.
    """
    new = _new_names(calibrator, name)
    try:
        import pyarrow  # noqa: F401  (imported here, so that the error says what to install)
    except ModuleNotFoundError as error:
        raise MissingExtraError("Files need pyarrow", "files", name=error.name) from error
    file = File(str(source), guess_format(source.name))
    read = {"parquet": _parquet, "csv": _csv, "json": _json}[file.format]
    count = {"rows": 0, "missing": 0, "clipped": 0}
    with _Writer(target, kind) as writer:
        for batch in read(file, tuple(scores), new):
            missing = batch.missing
            batch.check(calibrator.map_.domain)
            writer.write(batch, new, _calibrate(calibrator, batch, file.name), missing)
            count["rows"] += len(missing)
            count["clipped"] += batch.clipped
            count["missing"] += int(missing.sum())
    if not count["rows"]:
        raise InputError(f"{file.name} must hold at least one row; got none.", argument="source")
    return count


def _new_names(calibrator: Any, name: str) -> tuple[str, ...]:
    """Return the names of the new columns."""
    if not name or printable(name) != name:
        raise wrong_value("name", "must hold at least one character and no control characters", name)
    several = calibrator.takes == "classes"
    return tuple(f"{name}_{label}" for label in calibrator.classes_.tolist()) if several else (name,)


class _Batch:
    """Some rows, an Arrow batch or one dict per row, their columns of scores, and the text of each line of JSON."""

    def __init__(self, rows: Any, scores: list[_columns.ColumnData], lines: Sequence[str] = ()) -> None:
        self.rows, self.scores, self.lines = rows, scores, lines

    @property
    def missing(self) -> Bools:
        """The mask of rows with a missing score."""
        return np.asarray(np.logical_or.reduce([column.mask for column in self.scores]))

    def check(self, domain: str) -> None:
        """Check the scores; an error names the column and the row of the file. Probabilities are clipped to [0, 1]."""
        self.scores = list(map(_columns.scores if domain == "probability" else _columns.finite, self.scores))

    @property
    def clipped(self) -> int:
        """The number of scores that were clipped."""
        return sum(note.count for column in self.scores for note in column.notes if note.code == "clipped")


def _check_names(file: File, there: list[str], scores: tuple[str, ...], names: tuple[str, ...]) -> None:
    twice = next((name for name, count in Counter(there).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{file.name} must have different column names; got {twice!r} twice.", argument="source")
    for score in scores:
        if score not in there:
            raise no_column(score, there, file.name)
    for name in names:
        if name in there:
            raise InputError(
                f"{file.name} has a column {name!r} already.",
                hint="Pass another " + Argument("name") + ".",
                argument="name",
            )


def _parquet(file: File, scores: tuple[str, ...], names: tuple[str, ...]) -> Iterator[_Batch]:
    import pyarrow.parquet as pq

    with parquet_errors(file), pq.ParquetFile(file.path, page_checksum_verification=True) as opened:
        _check_names(file, opened.schema_arrow.names, scores, names)
        first = 0
        for batch in opened.iter_batches(_BATCH):
            batch.validate(full=True)  # text must be UTF-8
            columns = [batch.column(batch.schema.get_field_index(score)) for score in scores]
            shown = [f"{score} in {file.name}" for score in scores]
            yield _Batch(batch, [_from_arrow(*each, first) for each in zip(columns, shown, strict=True)])
            first += len(batch)
        check_rows(file, first, opened.metadata.num_rows)


def _from_arrow(column: Any, name: str, first: int) -> _columns.ColumnData:
    import pyarrow as pa

    absent = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_null(column.type):
        values = np.zeros(len(column))
    else:
        values = (column.fill_null(0) if absent.any() else column).to_numpy(zero_copy_only=False)
    return _columns.numbers(replace(_columns.read(values, name, missing=absent), first_row=first))


def _csv(file: File, scores: tuple[str, ...], names: tuple[str, ...]) -> Iterator[_Batch]:
    """Read rows of text."""
    header = read_header(file)
    there = header.names
    _check_names(file, there, scores, names)
    blocks = csv_blocks(file, header.mark, blank_rows=len(there) == 1)
    every = (dict(zip(there, cells, strict=True)) for block in blocks for _, cells in csv_cells(file, block, header))
    first = 0
    while some := list(islice(every, _BATCH)):
        cells = {score: [row[score].strip() for row in some] for score in scores}
        yield _Batch(some, [_numbers(cells[score], _text_number, f"{score} in {file.name}", first) for score in scores])
        first += len(some)


def _numbers(cells: list[Any], read: Callable[[Any], float | None], name: str, first: int) -> _columns.ColumnData:
    """Read cells as numbers; `read` returns NaN for a missing cell and None for one that holds no number."""
    values = np.zeros(len(cells))
    for row, cell in enumerate(cells):
        number = read(cell)
        if number is None:
            raise InputError(
                f"{name} must hold numbers; row {first + row} is {str(cell)[:40]!r}.",
                argument=name,
                row=first + row,
                value=cell,
            )
        values[row] = number
    missing = np.isnan(values)
    return _columns.ColumnData(name, np.where(missing, 0.0, values), missing, first_row=first)


def _text_number(cell: str) -> float | None:
    """Read a cell of CSV."""
    return math.nan if cell in NULLS else parse_number(cell)


def _json_number(cell: Any) -> float | None:
    """Read a value of JSON."""
    if cell is None:
        return math.nan
    return cell if isinstance(cell, (int, float)) and not isinstance(cell, bool) else None


def _json(file: File, scores: tuple[str, ...], names: tuple[str, ...]) -> Iterator[_Batch]:
    """Read one object per line, each with its own keys."""
    every, first = _objects(file, names), 0
    seen: set[str] = set()
    while read := list(islice(every, _BATCH)):
        some = [row for row, _ in read]
        seen |= {score for score in scores if any(score in row for row in some)}
        for score in scores:
            if score not in seen:
                raise no_column(score, list(some[0]), file.name)
        cells = {score: [row.get(score) for row in some] for score in scores}
        columns = [_numbers(cells[score], _json_number, f"{score} in {file.name}", first) for score in scores]
        yield _Batch(some, columns, [line for _, line in read])
        first += len(some)


def _objects(file: File, names: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the object of each line that is not blank, and its text."""
    for block in line_blocks(file):
        lines = (line for line in bytes(block.data).split(b"\n") if line.strip())
        for (_, row), line in zip(json_objects(file, block), lines, strict=True):
            if not row.keys().isdisjoint(names):
                _check_names(file, list(row), (), names)
            yield row, line.decode("utf-8").strip()


def _calibrate(calibrator: Any, batch: _Batch, file: str) -> Floats:
    """Return the calibrated values, one column per new name, 0 where a score is missing."""
    present = ~batch.missing
    matrix = np.column_stack([column.values for column in batch.scores])
    values = np.zeros(matrix.shape)
    if present.any():
        several = calibrator.takes == "classes"
        if several and calibrator.map_.domain == "probability":
            _check_sums(matrix, present, file, batch.scores[0].first_row)
        calibrated = calibrator(matrix[present] if several else matrix[present, 0])
        values[present] = calibrated if several else calibrated[:, None]
    return values


def _check_sums(matrix: Floats, present: Bools, file: str, first: int) -> None:
    sums = matrix.sum(axis=1)
    wrong = present & (np.abs(sums - 1) > _columns.CLIP_TOLERANCE * matrix.shape[1])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"The class probabilities in {file} must sum to 1 in each row; row {first + row} has {sums[row]:.6g}.",
            hint="Logits? Apply a softmax first.",
            argument="scores",
            row=first + row,
            value=float(sums[row]),
        )


class _Writer(AbstractContextManager["_Writer"]):
    """A writer of batches to a file."""

    def __init__(self, target: Path, kind: str) -> None:
        self.target, self.kind = target, kind
        self._file: Any = None
        self._schema: Any = None
        self._opened = ExitStack()

    def write(self, batch: _Batch, names: tuple[str, ...], values: Floats, missing: Bools) -> None:
        if self.kind == "parquet":
            self._parquet(batch, names, values, missing)
            return
        if self._file is None:
            self._file = self.target.open("w", encoding="utf-8", newline="")
        cells = zip(values.tolist(), missing.tolist(), strict=True)
        new = [dict.fromkeys(names) if absent else dict(zip(names, row, strict=True)) for row, absent in cells]
        if self.kind == "json" and batch.lines:
            self._file.writelines(map(_extended, batch.lines, new))
            return
        rows: list[dict[str, Any]] = batch.rows if isinstance(batch.rows, list) else batch.rows.to_pylist()
        for row, more in zip(rows, new, strict=True):
            row.update(more)
        if self.kind == "json":
            for row in rows:
                self._file.write(json.dumps(_plain(row, ""), ensure_ascii=False) + "\n")
        else:
            self._csv(rows)

    def _parquet(self, batch: _Batch, names: tuple[str, ...], values: Floats, missing: Bools) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if isinstance(batch.rows, list):
                rows = pa.RecordBatch.from_pylist(batch.rows, schema=self._schema)
                self._schema = rows.schema if self._schema is None else self._schema
            else:
                rows = batch.rows
            for name, column in zip(names, values.T, strict=True):
                rows = rows.append_column(name, pa.array(column, mask=missing))
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"Rows cannot be written as Parquet: {reason}", hint="Write .jsonl instead.") from error
        if self._file is None:
            # Not the path: Arrow takes names in UTF-8 only.
            self._file = pq.ParquetWriter(self._opened.enter_context(self.target.open("wb")), rows.schema)
        self._file.write_batch(rows)

    def _csv(self, rows: list[dict[str, Any]]) -> None:
        if self._schema is None:
            self._schema = list(rows[0])
            csv.writer(self._file, lineterminator="\n").writerow(self._schema)
        writer = csv.writer(self._file, lineterminator="\n")
        for row in rows:
            if list(row) != self._schema:
                raise InputError("The rows must have the same keys for CSV; they differ.", hint="Write .jsonl instead.")
            writer.writerow([_cell(value, name) for name, value in row.items()])

    def __exit__(self, *error: object) -> None:
        with self._opened:
            if self._file is not None:
                self._file.close()


def _extended(line: str, new: dict[str, Any]) -> str:
    """Return the text of a JSON object with further keys."""
    head = line.removesuffix("}").rstrip()
    return head + ("" if head == "{" else ", ") + json.dumps(_plain(new, ""), ensure_ascii=False)[1:] + "\n"


def _cell(value: Any, name: str) -> Any:
    """Return a value for a cell of CSV."""
    if isinstance(value, (dict, list, bytes)):
        raise InputError(
            f"CSV cannot hold {name!r}, which has values of type {type(value).__name__}.", hint="Write .parquet."
        )
    return "" if value is None else value


def _plain(value: Any, name: str) -> Any:
    """Return a value for JSON: no NaN, dates as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (datetime, date, time, Decimal)):
        return str(value) if isinstance(value, Decimal) else value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    raise InputError(
        f"JSON cannot hold {name!r}, which has values of type {type(value).__name__}.", hint="Write .parquet."
    )
