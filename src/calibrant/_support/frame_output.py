"""Data frames of results, in the library that the user names."""

from collections.abc import Mapping
from typing import Any

__all__ = ["frame_from_columns", "frame_from_rows"]


def frame_from_rows(rows: list[dict[str, Any]], backend: Any) -> Any:
    """Return rows, which have the same keys, as a frame of the named library."""
    return frame_from_columns({name: [row[name] for row in rows] for name in rows[0]}, backend)


def frame_from_columns(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return columns of equal length as a frame of the named library."""
    import narwhals as nw

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"backend must be an installed library; got {backend!r}. Run pip install {backend}, or pass another "
            "backend: pandas, polars, pyarrow."
        ) from error
