"""Frames of the library that the user names."""

from collections.abc import Mapping
from typing import Any


def frame(rows: list[dict[str, Any]], backend: Any) -> Any:
    """Rows as a frame of the library that the user names."""
    return frame_of({name: [row[name] for row in rows] for name in rows[0]}, backend)


def frame_of(columns: Mapping[str, Any], backend: Any) -> Any:
    """Columns of equal length as such a frame."""
    import narwhals as nw

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{backend} is not installed: pip install {backend}, or name another backend: pandas, polars, pyarrow."
        ) from error
