"""Files of scores, calibrated: a column is added, all others stay as they are."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import _columns
from calibrant.calibrators.score_map import ScoreMap
from calibrant.errors import InputError, no_column

__all__ = ["calibrate_file"]

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json"}


def calibrate_file(
    calibrator: ScoreMap, source: Path, target: Path, kind: str, *, score: str, name: str
) -> dict[str, int]:
    """Write the rows of `source` to `target` with the calibrated probability in column `name`.

    Batch by batch. Cells of CSV files stay the text that they are. A row without a score gets no probability.

    Parameters
    ----------
    calibrator : fitted score map
    source, target : Path
        Parquet, CSV or JSON lines. `kind` is what the target is to be: "parquet", "csv" or "json".
    score, name : str
        The column of scores, and that of the result, which must not exist.

    Returns
    -------
    dict
        How many rows there were, and how many of them lack a score.
    """
    _need_pyarrow()
    count = {"rows": 0, "missing": 0}
    with _Writer(target, kind) as writer:
        for batch in _batches(source):
            writer.write(_with_probability(batch, calibrator, score, name, source.name, count))
    if not count["rows"]:
        raise InputError(f"{source.name} holds no rows.", argument="source")
    return count


def kind_of(path: str) -> str:
    """What a file is to hold, by its ending."""
    kind = _FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(
            f"What is {Path(path).name!r} to hold? Its ending does not say.", hint="Use .parquet, .csv or .jsonl."
        )
    return kind


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Files need pyarrow: pip install "calibrant[files]".', name=error.name) from error


def _batches(source: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.json as pa_json
    import pyarrow.parquet as pq

    kind = kind_of(source.name)
    try:
        if kind == "parquet":
            with pq.ParquetFile(source) as file:
                yield from file.iter_batches()
        elif kind == "json":
            yield from pa_json.read_json(source).to_batches()
        else:
            with pa_csv.open_csv(source, convert_options=_as_text(source)) as stream:
                yield from stream
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].replace(f"{source.parent}/", "")
        raise InputError(f"{source.name} cannot be read: {reason}", argument="source") from error


def _as_text(source: Path) -> Any:
    """All columns of a CSV file as the text they are."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    with pa_csv.open_csv(source) as stream:
        names = stream.schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{source.name} has two columns named {twice!r}.", argument="source")
    return pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)


def _with_probability(batch: Any, calibrator: ScoreMap, score: str, name: str, file: str, count: dict[str, int]) -> Any:
    import pyarrow as pa

    names = batch.schema.names
    if score not in names:
        raise no_column(score, names, file)
    if name in names:
        raise InputError(f"{file} has a column {name!r} already.", hint="Give another --name.", argument="name")
    column = _numbers(batch.column(names.index(score)), f"{score} in {file}", count["rows"])
    values = np.zeros(len(column))
    present = ~column.mask
    if present.any():
        values[present] = calibrator(column.values[present])
    count["rows"] += len(column)
    count["missing"] += int(column.mask.sum())
    return batch.append_column(name, pa.array(values, mask=column.mask))


def _numbers(array: Any, name: str, first: int) -> _columns.Column:
    """A column of scores; text of a CSV file is read, and what is no number is an error that names its row."""
    if "string" not in str(array.type):
        values = array.fill_null(0) if array.null_count else array
        read = _columns.read(values.to_numpy(zero_copy_only=False), name)
        absent = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        return _columns.numbers(_columns.Column(name, read.values, absent | read.mask))
    cells = array.to_pylist()
    values, missing = np.zeros(len(cells)), np.zeros(len(cells), dtype=bool)
    for row, cell in enumerate(cells):
        text = cell.strip() if cell is not None else ""
        if text in _columns.NULLS:
            missing[row] = True
            continue
        try:
            values[row] = float(text)
        except ValueError:
            raise InputError(
                f"{name} must hold numbers; row {first + row} is {text!r}.", argument=name, row=first + row, value=text
            ) from None
    return _columns.Column(name, values, missing | np.isnan(values))


class _Writer(AbstractContextManager["_Writer"]):
    """Writes batches of one schema to a file."""

    def __init__(self, target: Path, kind: str) -> None:
        self.target, self.kind = target, kind
        self._file: Any = None

    def write(self, batch: Any) -> None:
        import pyarrow as pa
        import pyarrow.csv as pa_csv
        import pyarrow.parquet as pq

        if self._file is None:
            if self.kind == "parquet":
                self._file = pq.ParquetWriter(self.target, batch.schema)
            elif self.kind == "csv":
                self._file = pa_csv.CSVWriter(self.target, batch.schema)
            else:
                self._file = self.target.open("w", encoding="utf-8")
        if self.kind == "json":
            import json

            for row in batch.to_pylist():
                self._file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            return
        try:
            self._file.write_batch(batch)
        except pa.ArrowException as error:
            raise InputError(f"{self.target.name} cannot be written: {error}", argument="target") from error

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
