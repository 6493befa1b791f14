"""What Calibrant says when input is wrong, and what it notes when input was unusual but usable."""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CalibrantWarning", "InputError", "Note"]


class InputError(ValueError):
    """Input that cannot be used. The message says what must hold, what was found and what to do.

    Attributes
    ----------
    argument : str or None
        Name of the argument at fault.
    row : int or None
        First row at fault, counted from 0.
    value : object
        What was found there.
    hint : str
        What to do about it; also the end of the message.
    """

    def __init__(
        self,
        problem: str,
        *,
        hint: str = "",
        argument: str | None = None,
        row: int | None = None,
        value: object = None,
    ) -> None:
        super().__init__(f"{problem} {hint}".rstrip())
        self.argument = argument
        self.row = row
        self.value = value
        self.hint = hint


class CalibrantWarning(UserWarning):
    """A number that is right yet easily misread, or input that was used other than as given."""


@dataclass(frozen=True)
class Note:
    """Something that a reader of the result must know about its input.

    ``template`` may hold ``{count}``, so that the notes of two tables can be added up.
    """

    code: str
    count: int
    template: str

    @property
    def text(self) -> str:
        return self.template.format(count=f"{self.count:,}")

    def to_dict(self) -> dict[str, object]:
        return {"code": self.code, "count": self.count, "text": self.text}


def join_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """All notes in order; those that say the same are one, with their counts added."""
    counts: dict[tuple[str, str], int] = {}
    for group in groups:
        for note in group:
            key = (note.code, note.template)
            counts[key] = counts.get(key, 0) + note.count
    return tuple(Note(code, count, template) for (code, template), count in counts.items())
