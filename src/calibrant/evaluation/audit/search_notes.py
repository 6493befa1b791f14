"""Remarks on the search of an audit: features that say little, and too few rows."""

from calibrant._support.errors import Note
from calibrant.evaluation.audit.features import Doubt
from calibrant.evaluation.audit.residual_blocks import AuditRows

_MOST_NAMES = 5
_REMARKS: dict[Doubt, tuple[str, str]] = {
    "empty": ("has no value", "have no value"),
    "constant": ("has one value only, which says nothing", "have one value only, which says nothing"),
    "dates": (
        "holds dates, each of which is a category; pass numbers such as the month or the age in days",
        "hold dates, each of which is a category; pass numbers such as the month or the age in days",
    ),
    "ids": (
        "has another value in most rows, as ids have; its values are too rare for a segment",
        "have another value in most rows, as ids have; their values are too rare for a segment",
    ),
}


def search_notes(sample: AuditRows, least: int) -> tuple[Note, ...]:
    """Return what limits the search: rows that are too few for segments of `least` rows, and features of no use."""
    notes, half = [], sample.size // 2
    if half < 2 * least:
        text = (
            f"{sample.size:,} rows are too few for a search: a segment must have {least:,} of the {{count}} of a half."
        )
        notes.append(Note("few_rows", half, text))
    for doubt, (one, several) in _REMARKS.items():
        names = [feature.name for feature in sample.features[: sample.n_features] if feature.doubt == doubt]
        if names:
            shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
            found = f"Feature {shown} {one}." if len(names) == 1 else f"{len(names):,} features {several}: {shown}."
            notes.append(Note(f"feature_{doubt}", len(names), found))
    return tuple(notes)
