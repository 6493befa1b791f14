"""What the commands that read files share: their options, and the files themselves.

Whatever is asked of the files (another encoding, standard input, a limit) is done here, so that the rest of Calibrant
sees plain files on disk.
"""

import codecs
import hashlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from calibrant._support.errors import InputError

if TYPE_CHECKING:
    from calibrant.ingest.counting import Weighting

__all__ = ["Source", "bytes_of", "source_options"]

F = TypeVar("F", bound=Callable[..., Any])

_CHUNK = 1 << 20
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def bytes_of(text: str | None) -> int | None:
    """A number of bytes, as people write it: 2GB, 500 MB, 1GiB, 1e9."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?i?)b?\s*", text, flags=re.IGNORECASE)
    try:
        size = float(found.group(1)) * _UNITS[found.group(2).lower()] if found else -1.0
    except (ValueError, KeyError):
        size = -1.0
    if not 1 <= size < 2**63:
        raise InputError(f"A number of bytes is needed, such as 2GB; it is {text!r}.")
    return int(size)


def source_options(*, several: bool = False, groups: bool = False, counted: bool = True) -> Callable[[F], F]:
    """The options of a command that reads rows: FILES, --label, --score and how they are read.

    `counted`: the command needs only tables, so that rows may be counted on a grid or by Spark.
    """
    options: list[Callable[[F], F]] = [
        click.argument("files", nargs=-1, required=True, metavar="FILES..."),
        click.option("--label", "-y", required=True, metavar="COLUMN", help="The column of outcomes."),
        click.option(
            *("--score", "-p", "scores"),
            required=True,
            multiple=True,
            metavar="COLUMN",
            help="The column of scores" + ("; may be given several times." if several else "."),
        ),
    ]
    if groups:
        text = "A column that splits rows into groups; may be given several times."
        options.append(click.option("--by", multiple=True, metavar="COLUMN", help=text))
    options += _reading_options()
    if counted:
        options += [
            click.option("--memory", metavar="SIZE", help="What counting may take: 2GB. By default what is free."),
            click.option("--resolution", metavar="STEP", help="Round scores to a grid, such as 2**-20 or 1e-6."),
            click.option("--spark", metavar="URL", help="Let Spark count Parquet files: local[4], spark://host:7077."),
        ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _reading_options() -> list[Callable[[F], F]]:
    """Return the options for weights, labels and file formats."""
    return [
        click.option("--weight", "-w", metavar="COLUMN", help="The column of importance weights."),
        click.option("--frequency", metavar="COLUMN", help="The column of frequencies: numbers of equal rows."),
        click.option("--pos-label", metavar="LABEL", help="The label of the event, where labels are not 0 and 1."),
        click.option(
            "--missing",
            type=click.Choice(["raise", "drop"]),
            default="raise",
            show_default=True,
            help="Rows that lack a label, score, weight or frequency: an error, or dropped and counted.",
        ),
        click.option("--format", type=click.Choice(["parquet", "csv", "json"]), help="By default the file's ending."),
        click.option("--encoding", metavar="NAME", help="Of text files that are not UTF-8: utf-16, latin-1, ..."),
        click.option("--max-bytes", metavar="SIZE", help="Refuse to read more than this, unpacked (not Parquet)."),
        click.option("--sha256", is_flag=True, help="Put the checksums of the files into the result."),
    ]


@dataclass(frozen=True)
class Source:
    """Files and the columns that are wanted of them."""

    files: tuple[str, ...]
    label: str
    scores: tuple[str, ...]
    weight: str | None
    frequency: str | None
    pos_label: str | None
    missing: str
    format: Any
    encoding: str | None
    max_bytes: str | None
    sha256: bool
    memory: str | None = None
    by: tuple[str, ...] = ()
    resolution: str | None = None
    spark: str | None = None

    @classmethod
    def take(cls, given: dict[str, Any]) -> "Source":
        """The options of `source_options` out of all that were given."""
        return cls(**{name: given.pop(name) for name in list(given) if name in cls.__dataclass_fields__})

    def __post_init__(self) -> None:
        if self.weight is not None and self.frequency is not None:
            raise InputError(
                "--weight and --frequency must not be given together; got both.",
                hint="Use --weight for importance weights, or --frequency for numbers of equal rows.",
            )

    @property
    def weighting(self) -> "Weighting | None":
        """The column that says how much each row counts."""
        from calibrant.ingest.counting import Weighting

        return Weighting.named(self.weight, self.frequency)

    def tables(self) -> tuple[Any, list[dict[str, Any]]]:
        """The rows of the files, counted, and what is to be said about the files."""
        with self.opened() as (paths, about):
            return self.as_meant(lambda pos_label: self._tables(paths, pos_label)), about

    def rows(self, names: list[str], numbers: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Columns of the files as they are, and what is to be said about the files."""
        from calibrant.ingest.files import columns_scan

        with self.opened() as (paths, about):
            return columns_scan(paths, names, numbers, format=self.format, memory_limit=self._reading()), about

    def complete_rows(
        self, scores: list[str], others: list[str]
    ) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], int]:
        """Rows that lack no value: columns, options for their weights, the files, and the number of rows dropped."""
        import numpy as np

        from calibrant._support import columns as _columns

        weighting = self.weighting
        weights = [] if weighting is None else [weighting.name]
        names = list(dict.fromkeys([str(self.label), *scores, *weights, *others]))
        columns, about = self.rows(names, [*scores, *weights])
        missing = np.logical_or.reduce([column.mask for column in columns.values()])
        for name in scores:  # looked at here, so that an error names the column and the row of the file
            _columns.scores(columns[name])
        if weighting is not None:
            weighting.checked(columns[weighting.name])
        if self.missing == "raise":
            _columns.refuse_missing(list(columns.values()), hint="Pass --missing drop to leave such rows out.")
        kept = {name: column.values[~missing] for name, column in columns.items()}
        options = {
            "sample_weight": None if self.weight is None else kept[self.weight],
            "frequency": None if self.frequency is None else kept[self.frequency],
        }
        return kept, options, about, int(missing.sum())

    def _tables(self, paths: list[str], pos_label: object) -> Any:
        import calibrant as cb

        options: dict[str, Any] = {
            "y": self.label,
            "p": list(dict.fromkeys(self.scores)),
            "by": list(self.by) or None,
            "sample_weight": self.weight,
            "frequency": self.frequency,
            "pos_label": pos_label,
            "missing": self.missing,
            "resolution": None if self.resolution is None else _step(self.resolution),
        }
        if self.spark is not None:
            from calibrant.ingest.spark import parquet_frame

            if self.memory is not None or "-" in self.files:
                raise InputError("Spark takes files, and its own memory.", hint="Leave out --memory and -.")
            return cb.tables_from_frame(parquet_frame(self.spark, list(self.files), paths), **options)
        return cb.tables_scan(
            paths, **options, format=self.format, memory_limit=self._reading(), max_memory=bytes_of(self.memory)
        )

    def _reading(self) -> str:
        """What DuckDB may take of the memory: it reads, and keeps nothing."""
        most = bytes_of(self.memory)
        return "1GB" if most is None else f"{max(most // 4, 64 * 2**20)}B"

    def as_meant(self, read: Callable[[object], Any]) -> Any:
        """What `read` gives with the label of the event: text, or, where labels are numbers, the number it says."""
        try:
            return read(self.pos_label)
        except InputError as error:
            number = None if error.argument != "pos_label" else _as_number(self.pos_label)
            if number is None:
                raise
            return read(number)

    @contextmanager
    def opened(self) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
        """Plain files on disk, and what is to be said of each; those that had to be made are gone afterwards."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="calibrant-")))
            if self.files.count("-") > 1:
                raise InputError("Standard input (-) can be read once.")
            paths = [self._standard_input(folder)] if "-" in self.files else []
            from calibrant.ingest.files import files_of

            named = [name for name in self.files if name != "-"]
            paths += [file.path for file in files_of(named, self.format)] if named else []
            self._check_size(paths)
            about = [_about(path) for path in paths] if self.sha256 else []
            if self.encoding is not None:
                paths = [_converted(path, self.encoding, folder) for path in paths]
            yield paths, about

    def _standard_input(self, folder: Path) -> str:
        """Standard input as a file, named by what is in it."""
        if sys.stdin is None:
            raise InputError("There is no standard input to read.")
        stream, most, size = sys.stdin.buffer, bytes_of(self.max_bytes), 0
        path = folder / "standard input"
        with path.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if most is not None and size > most:
                    raise _too_large("standard input", most)
                out.write(chunk)
        with path.open("rb") as head:
            named = path.with_name(f"standard input{_ending(head.read(4096), self.format)}")
        path.rename(named)
        return str(named)

    def _check_size(self, paths: list[str]) -> None:
        most = bytes_of(self.max_bytes)
        if most is None:
            return
        left = most
        for path in paths:
            left -= _unpacked_size(path, left)
            if left < 0:
                raise _too_large(Path(path).name, most)


def _step(text: str) -> float:
    """A number, or a power of two: 2**-20."""
    power = re.fullmatch(r"\s*2(?:\*\*|\^)(-[0-9]{1,3})\s*", text)
    try:
        return 2.0 ** int(power.group(1)) if power else float(text)
    except ValueError:
        raise InputError(f"--resolution must be a number, such as 2**-20 or 1e-6; it is {text!r}.") from None


def _as_number(text: str | None) -> object:
    if str(text).lower() in ("true", "false"):
        return str(text).lower() == "true"
    try:
        number = float(str(text))
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def _ending(head: bytes, format: str | None) -> str:
    """What the first bytes, or the user, say is in a file without a name."""
    if format is not None:
        kind = {"parquet": ".parquet", "csv": ".csv", "json": ".jsonl"}[format]
    elif head.startswith(b"PAR1"):
        return ".parquet"
    else:
        kind = ".jsonl" if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{") else ".csv"
    packed = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}.get(head[:2], "")
    return kind + packed


def _unpacked_size(path: str, most: int) -> int:
    """Bytes of a file; of a packed one those that come out, counted until they are too many."""
    import pyarrow as pa

    packed = _PACKED.get(Path(path).suffix.lower())
    if packed is None:
        return Path(path).stat().st_size
    size = 0
    try:
        with pa.input_stream(path, compression=packed) as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                size += len(chunk)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{Path(path).name} cannot be read: {str(error).splitlines()[0]}") from error
    return size


def _too_large(name: str, most: int) -> InputError:
    return InputError(f"{name} would be more than {most:,} bytes.", hint="Raise --max-bytes if that is what you want.")


def _about(path: str) -> dict[str, Any]:
    with Path(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": Path(path).name, "bytes": Path(path).stat().st_size, "sha256": digest}


def _converted(path: str, encoding: str, folder: Path) -> str:
    """A text file as UTF-8."""
    import pyarrow as pa

    try:
        known = codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        known = False
    if not known:
        raise InputError(f"There is no encoding {encoding!r} of text.", hint="For example utf-16 or latin-1.")
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        raise InputError(f"{Path(path).name} is Parquet, which has no encoding.", hint="Leave out --encoding.")
    packed = _PACKED.get(Path(path).suffix.lower())
    above = [part for part in Path(path).parts[:-1] if "=" in part]  # columns of Hive's
    own = Path(tempfile.mkdtemp(dir=folder)).joinpath(*above, Path(path).stem if packed else Path(path).name)
    own.parent.mkdir(parents=True, exist_ok=True)
    try:
        with pa.input_stream(path, compression=packed) as raw, own.open("w", encoding="utf-8", newline="") as out:
            decoder = codecs.getincrementaldecoder(encoding)()
            while chunk := raw.read(_CHUNK):
                out.write(decoder.decode(chunk))
            out.write(decoder.decode(b"", final=True))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{Path(path).name} cannot be read: {str(error).splitlines()[0]}") from error
    except UnicodeError as error:
        raise InputError(f"{Path(path).name} is not {encoding}: {error}.", hint="Try another --encoding.") from error
    return str(own)
