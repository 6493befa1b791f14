"""Arrow arrays as NumPy arrays, read from their buffers: the conversion of pyarrow imports pandas."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.typing import Bools
from calibrant.ingest.csv_rows import parse_number

__all__ = ["missing_cells", "parse_labels", "read_values"]

_NUMBERS = {"float": "float32", "double": "float64", "halffloat": "float16"} | {
    f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}


def missing_cells(array: Any) -> Bools | None:
    """Return the mask of null cells; None if there are none."""
    if not array.null_count:
        return None
    valid = array.buffers()[0]
    return np.ones(len(array), dtype=bool) if valid is None else ~_bits(valid, array.offset, len(array))


def read_values(array: Any, missing: Bools | None) -> NDArray[Any]:
    """Return the values; null cells are 0, False or None."""
    kind = str(array.type)
    if kind in _NUMBERS:
        return _filled(_slice(array, np.dtype(_NUMBERS[kind])), missing)
    if kind == "bool":
        return _filled(_bits(array.buffers()[1], array.offset, len(array)), missing)
    if kind in ("string", "large_string"):
        words, codes = _encode(array)
        return _select(np.array([*words, None], dtype=object), codes, missing)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def parse_labels(array: Any, missing: Bools | None) -> NDArray[Any]:
    """Return text as booleans or numbers if all of it can be read so, else as text."""
    digits = _single_digits(array)
    if digits is not None:
        return digits
    words, codes = _encode(array)
    values: NDArray[Any] = np.array([*words, None], dtype=object)
    if words and all(word.lower() in ("true", "false") for word in words):
        values = np.array([*(word.lower() == "true" for word in words), False])
    elif words:
        numbers = [parse_number(word.strip()) for word in words]
        values = values if None in numbers else np.array([*numbers, 0.0], dtype=np.float64)
    return _select(values, codes, missing)


def _single_digits(array: Any) -> NDArray[Any] | None:
    """Return text of one digit per cell as numbers: the usual labels, for which a dictionary takes ten times longer."""
    if str(array.type) != "string" or array.null_count or not len(array):
        return None
    _, places, text = array.buffers()
    start = np.frombuffer(places, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    if start[-1] - start[0] != len(array) or not (np.diff(start) == 1).all():
        return None
    digit = np.frombuffer(text, dtype=np.uint8)[start[0] : start[-1]] - np.uint8(ord("0"))  # wraps below 0
    return digit.view(np.int8) if (digit <= 9).all() else None


def _encode(array: Any) -> tuple[list[str], NDArray[Any]]:
    """Return the distinct words, and the index of the word of each cell; that of null cells is arbitrary."""
    encoded = array.dictionary_encode()
    return encoded.dictionary.to_pylist(), _slice(encoded.indices, np.dtype(np.int32))


def _select(values: NDArray[Any], codes: NDArray[Any], missing: Bools | None) -> NDArray[Any]:
    """Return values by index; the last one in missing cells."""
    chosen: NDArray[Any] = values[codes if missing is None else np.where(missing, len(values) - 1, codes)]
    return chosen


def _slice(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    data = array.buffers()[1]
    return np.frombuffer(data or b"", dtype=dtype)[array.offset : array.offset + len(array)]


def _bits(data: Any, offset: int, size: int) -> Bools:
    octets = np.frombuffer(data or b"", dtype=np.uint8)
    return np.unpackbits(octets, count=offset + size, bitorder="little")[offset:].astype(bool)


def _filled(values: NDArray[Any], missing: Bools | None) -> NDArray[Any]:
    return values if missing is None else np.where(missing, values.dtype.type(0), values)
