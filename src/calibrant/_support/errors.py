"""What Calibrant says when input is wrong, and what it notes when input was unusual but usable."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

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
        return self.template.replace("{count}", f"{self.count:,}")  # names of columns may hold other braces

    def to_dict(self) -> dict[str, object]:
        return {"code": self.code, "count": self.count, "text": self.text}


def nearest(name: str, known: Sequence[str]) -> str:
    """What was perhaps meant: a sentence to put behind "there is no ...", or nothing."""
    lower = {each.lower(): each for each in reversed(known)}
    found = [lower[each] for each in get_close_matches(str(name).lower(), lower, n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def no_column(name: str, known: Sequence[str], where: str = "The data") -> InputError:
    """None of the columns has this name."""
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    there = f"it has {shown}" if known else "it has none"
    return InputError(
        f"{where} has no column {name!r}; {there}.", hint=nearest(name, known).strip(), argument=name, value=name
    )


def join_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """All notes in order; those that say the same are one, with their counts added."""
    counts: dict[tuple[str, str], int] = {}
    for group in groups:
        for note in group:
            key = (note.code, note.template)
            counts[key] = counts.get(key, 0) + note.count
    return tuple(Note(code, count, template) for (code, template), count in counts.items())
