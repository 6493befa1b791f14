"""Data frames of results, in the library that the user names."""

from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import Argument, InputError

__all__ = ["frame_from_columns", "frame_from_rows"]


def frame_from_rows(rows: list[dict[str, Any]], backend: Any) -> Any:
    """Return rows, which have the same keys, as a frame of the named library."""
    return frame_from_columns({name: [row[name] for row in rows] for name in rows[0]}, backend)


def frame_from_columns(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return columns of equal length as a frame of the named library."""
    import narwhals as nw

    values = {name: [_text(cell) for cell in column] for name, column in columns.items()}
    try:
        return nw.from_dict(values, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"backend must be an installed library; got {backend!r}. Run pip install {backend}, or pass another "
            "backend: pandas, polars, pyarrow."
        ) from error
    except (AssertionError, TypeError, ValueError) as error:  # Narwhals 2.0 raises the first for names it does not know
        known = "pandas, polars, pyarrow or another library of eager frames that Narwhals supports"
        raise InputError(Argument("backend") + f" must be {known}; got {backend!r}.", value=backend) from error


def _text(cell: Any) -> Any:
    """Return a cell in which lone surrogates, which frames cannot hold, are escaped."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell
