"""Rows of torch tensors on a device, counted there: scores of one event, and the top label of several classes.

Each function returns None where values must be converted, dropped or refused, or where tensors are not on one device.
The rows are then read on the host, which writes all notes and errors.
"""

import sys
from collections.abc import Sequence
from typing import Any

from calibrant._kernels import tensors
from calibrant._support import class_labels
from calibrant._support.columns import CLIP_TOLERANCE, one_column_note
from calibrant._support.errors import Note
from calibrant.tables.class_probabilities import EXACT_SUM, row_sums_note
from calibrant.tables.score_table import ScoreTable

__all__ = ["count_scores", "count_top_label"]


def count_scores(y_true: Any, y_prob: Any, name: str = "y_prob") -> ScoreTable | None:
    """Count outcomes and scores; see `ScoreTable.from_arrays`. Notes call the scores `name`."""
    columns, notes = [], list[Note]()
    for called, column in (("y_true", y_true), (name, y_prob)):
        if column.ndim == 2 and column.shape[1] == 1:
            notes.append(one_column_note(called))
            column = column.reshape(-1)  # noqa: PLW2901
        columns.append(column)
    y, p = columns
    return _counted(p, y, tuple(notes)) if p.ndim == y.ndim == 1 and p.shape == y.shape else None


def count_top_label(y_true: Any, proba: Any, labels: Sequence[Any] | None) -> ScoreTable | None:
    """Count the highest probability of each row and whether that class occurred; see `top_label`."""
    torch: Any = sys.modules["torch"]
    proba, y = proba.detach(), y_true.detach()
    if y.ndim == 2 and y.shape[1] == 1:
        return None
    fits = proba.ndim == 2 and y.ndim == 1 and 0 < len(y) == len(proba) and proba.shape[1] > 1
    if not fits or proba.dtype not in (torch.float32, torch.float64) or y.is_floating_point() or y.is_complex():
        return None
    low, high = proba.aminmax()
    off = (proba.sum(dim=1, dtype=torch.float64) - 1).abs()
    worst = off.max().item()
    if not (low >= 0 and high <= 1 and worst <= CLIP_TOLERANCE * proba.shape[1]):
        return None
    found, place = torch.unique(y, return_inverse=True)
    present = found.tolist()
    names = present if labels is None else class_labels.check_classes(labels)
    column = {name: i for i, name in enumerate(names)}
    if len(names) != proba.shape[1] or not set(present) <= set(names):
        return None
    confidence, best = proba.max(dim=1)  # of equal ones the first
    occurred = torch.tensor([column[label] for label in present], device=y.device)[place]
    inexact = int((off > EXACT_SUM).sum())
    notes = (row_sums_note("proba", inexact, worst),) if inexact else ()
    return _counted(confidence, occurred == best, notes)


def _counted(score: Any, label: Any, notes: tuple[Note, ...]) -> ScoreTable | None:
    counts = tensors.count(score, label)
    if counts is None:
        return None
    table = ScoreTable(*counts, n_in=score.numel(), _notes=notes)
    table.__dict__["size"] = score.numel()  # known, so that a large table is not added up on the host
    table.__dict__["positives"] = int(label.sum())
    return table
