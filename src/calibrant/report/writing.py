"""Reports of results, for `Evaluation.to_html` and `Comparison.to_html`."""

import os
from os import PathLike
from pathlib import Path

__all__ = ["written"]


def written(page: str, path: str | PathLike[str] | None) -> str:
    """The page, also written to the file, if one is named: whole or not at all."""
    if path is not None:
        target = Path(path)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            part.write_text(page, encoding="utf-8", newline="\n")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    return page
