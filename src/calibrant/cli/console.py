"""Results in a terminal: tables, colours where they can be seen, and a small reliability diagram."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from calibrant._support.text_tables import text_table
from calibrant.evaluation import sentences

if TYPE_CHECKING:
    from calibrant.evaluation.comparison_result import Comparison
    from calibrant.evaluation.results import Evaluation
    from calibrant.metrics.breakdown import Breakdown

__all__ = ["console", "diagram", "file_lines", "line", "show_comparison", "show_evaluation", "verdict_style"]

_WIDTH = 44  # of the diagram, in characters


def console() -> Console:
    """Where to print; colours only where a terminal can show them."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)


def line(text: str, style: str = "") -> Text:
    """A line of text; control characters in users' names are shown, not obeyed."""
    return Text("".join(c if c.isprintable() else repr(c)[1:-1] for c in text), style=style)


def file_lines(about: list[dict[str, Any]]) -> list[Text]:
    """What is to be said of the files that were read."""
    return [line(f"  {each['file']}: {each['bytes']:,} bytes, SHA-256 {each['sha256']}") for each in about]


def verdict_style(verdict: str) -> str:
    """Green, red or yellow; the words say the same."""
    return {"bad": "bold red", "open": "bold yellow", "good": "bold green"}[sentences.tone(verdict)]


def show_evaluation(result: "Evaluation", *, name: str = "", out: Console) -> None:
    """Print the verdict, what it rests on, and where scores and outcomes part."""
    heading = line(result.headline(), verdict_style(result.verdict))
    out.print(heading if not name else line(f"{name}: ", "bold") + heading)
    _lines(map(line, result.sentences()), out)
    out.print(line(result.sizes_text()))
    out.print()
    _lines(_table(result.cells(), left=(0,)), out)
    out.print()
    _lines((line(f"  {each}") for each in result.reasons()), out)
    out.print()
    _lines(diagram(result.breakdowns["ACE"], plain=_ascii(out)), out)
    groups = result.group_table()
    if groups is not None:
        out.print()
        out.print(line(f"  {groups.heading}"))
        _lines(_table(groups.cells, left=groups.left), out)
    _notes(result, out)


def show_comparison(result: "Comparison", *, out: Console) -> None:
    """Print which model is better calibrated, and all metrics of all models."""
    out.print(line(f"Verdict: {result.verdict}", "bold"))
    out.print(line(result.sizes()))
    out.print()
    _lines(_table(result.cells(), left=(0, 1)), out)
    out.print()
    _lines((line(f"  {each}") for each in result.reasons()), out)
    _notes(result, out)


def _notes(result: Any, out: Console) -> None:
    _lines((line(f"  note: {note.text}", "dim") for note in result.notes), out)


def _lines(lines: Iterable[Text], out: Console) -> None:
    """Lines as they are: a terminal that is too narrow folds them, nothing is cut off."""
    for each in lines:
        out.print(each, soft_wrap=True)


def _table(cells: Sequence[Sequence[str]], *, left: Collection[int]) -> Iterator[Text]:
    """The lines of a table whose first row is the heading; a verdict at the end of a line has its colour."""
    heading, *lines = text_table([[line(cell).plain for cell in row] for row in cells], left=left)
    yield Text(heading, style="bold")
    for each, row in zip(lines, cells[1:], strict=True):
        text = Text(each)
        verdict = row[-1].split(" ")[0]
        if verdict in sentences.VERDICTS:
            text.stylize(verdict_style(verdict), len(each) - len(row[-1]))
        yield text


def _ascii(out: Console) -> bool:
    return not str(out.encoding).lower().startswith("utf")


@dataclass(frozen=True)
class _Marks:
    """The characters of the diagram."""

    said: str
    happened: str
    both: str
    span: str
    empty: str

    @classmethod
    def of(cls, plain: bool) -> "_Marks":
        return cls("o", "#", "@", "-", ".") if plain else cls("◇", "●", "◈", "─", "·")


def diagram(breakdown: "Breakdown", *, plain: bool = False) -> Iterator[Text]:
    """A line a bin: the mean score against the rate of events with its exact 95 % interval.

    Red where the interval does not hold the mean score.
    """
    bins, marks = breakdown.per_bin, _Marks.of(plain)
    low, high = breakdown.rate_interval()
    top = _round_up(max(high.max(), bins["mean_score"].max()))
    axis = f"0{' ' * (_WIDTH - 1 - len(f'{top:g}'))}{top:g}"
    yield Text(f"  {'rows':>13}  {'score':>7}  {'rate':>8}  {axis}", style="dim")
    for n, said, rate, first, last in zip(bins["n"], bins["mean_score"], bins["rate"], low, high, strict=True):
        off = not first <= said <= last
        yield Text(f"  {_count(n):>13}  {said:7.4f}  {rate:8.4f}  ") + Text(
            _line(said / top, rate / top, first / top, last / top, marks), style="red" if off else ""
        )
    words = f"{marks.said} mean score, {marks.happened} event rate, {marks.both} both, {marks.span} 95 % CI of the rate"
    yield Text(f"  {words}; red: the mean score lies outside", style="dim")


def _line(said: float, rate: float, low: float, high: float, marks: _Marks) -> str:
    places = [round(float(x) * (_WIDTH - 1)) for x in (said, rate, low, high)]
    cells = [marks.empty] + [" "] * (_WIDTH - 1)
    cells[places[2] : places[3] + 1] = marks.span * (places[3] + 1 - places[2])
    cells[places[1]] = marks.happened
    cells[places[0]] = marks.both if places[0] == places[1] else marks.said
    return "".join(cells).rstrip()


def _round_up(x: float) -> float:
    """The least of 1, 2, 3, 4, 5, 6, 8 times a power of ten that is not below; at most 1."""
    scale = 1.0
    while scale / 10 >= x and scale > 1e-12:
        scale /= 10
    return min([step * scale / 10 for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * scale / 10 >= x], default=1.0)


def _count(n: Any) -> str:
    return f"{int(n):,}" if float(n).is_integer() else f"{n:,.1f}"
