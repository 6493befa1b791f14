"""Results in a terminal: tables, colours, and a reliability diagram of characters."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from calibrant._support.formatting import printable, text_table
from calibrant.kinds.columns import columns_of
from calibrant.results import sentences

if TYPE_CHECKING:
    from calibrant.metrics.gce import Breakdown
    from calibrant.results.audit import Audit
    from calibrant.results.comparison import Comparison
    from calibrant.results.evaluation import Evaluation

_WIDTH = 44  # of the diagram, in characters


def console() -> Console:
    """Return the console of standard output, with colours only in a terminal."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)


def line(text: str, style: str = "") -> Text:
    """Return a line of text; control characters in names are shown as text."""
    return Text(printable(text), style=style)


def print_results(results: Mapping[str, Any], print_one: Callable[..., None], inputs: list[dict[str, Any]]) -> None:
    """Print results, each with its name if there are several, and the checksums of the input files."""
    out = console()
    for position, (name, result) in enumerate(results.items()):
        out.print("\n" if position else "", end="")
        print_one(result, out=out, **({"name": name} if len(results) > 1 else {}))
    print_checksums(inputs, out=out)


def print_checksums(inputs: list[dict[str, Any]], *, out: Console) -> None:
    """Print one line per input file: its size and its checksum."""
    for file in inputs:
        out.print(line(f"  {file['file']}: {file['bytes']:,} bytes, SHA-256 {file['sha256']}"))


def verdict_style(verdict: str) -> str:
    """Return the colour of a verdict: green, red or yellow."""
    return {"bad": "bold red", "open": "bold yellow", "good": "bold green"}[sentences.tone(verdict)]


def print_evaluation(result: "Evaluation", *, name: str = "", out: Console) -> None:
    """Print the verdict, the metrics, the tests, the diagram and the groups."""
    heading = line(result.headline(), verdict_style(result.verdict))
    out.print(heading if not name else line(f"{name}: ", "bold") + heading)
    _print_lines(map(line, result.sentences()), out)
    out.print(line(result.sizes_text()))
    out.print()
    _print_lines(_table(result.cells(), left=(0,)), out)
    out.print()
    _print_lines((line(f"  {reason}") for reason in result.reasons()), out)
    shown = columns_of(result.kind).diagram
    if shown is not None:
        breakdown, score, rate = shown
        out.print()
        _print_lines(diagram(result.breakdowns[breakdown], score, rate, ascii_only=_is_ascii(out)), out)
    groups = result.group_table()
    if groups is not None:
        out.print()
        out.print(line(f"  {groups.heading}"))
        verdicts = [group.verdict for group in result.worst_first.values()]
        _print_lines(_table(groups.shown, left=groups.left, verdicts=verdicts), out)
    _print_notes(result, out)


def print_comparison(result: "Comparison", *, out: Console) -> None:
    """Print the verdict and the metrics of all models."""
    out.print(line(f"Verdict: {result.verdict}", "bold"))
    out.print(line(result.sizes()))
    out.print()
    _print_lines(_table(result.cells(), left=(0, 1)), out)
    out.print()
    _print_lines((line(f"  {reason}") for reason in result.reasons()), out)
    _print_notes(result, out)
    if result.non_inferiority:
        failed, count = sum(not each.is_shown for each in result.non_inferiority), len(result.non_inferiority)
        passed = line("all gates passed", "bold green")
        out.print(line(f"{failed} of {count} gates failed", "bold red") if failed else passed)


def print_audit(result: "Audit", *, name: str = "", out: Console) -> None:
    """Print the verdict, what was searched, and the segments."""
    heading = line(f"Verdict: {result.verdict}", "bold red" if result.segments else "bold")
    out.print(heading if not name else line(f"{name}: ", "bold") + heading)
    _print_lines(map(line, result.sentences()), out)
    if result.segments:
        out.print()
        _print_lines(_table(result.cells(), left=(0,)), out)
    _print_lines(map(line, result.overlap_lines()), out)
    _print_notes(result, out)


def _print_notes(result: Any, out: Console) -> None:
    _print_lines((line(f"  note: {note.text}", "dim") for note in result.notes), out)


def _print_lines(lines: Iterable[Text], out: Console) -> None:
    """Print lines; a narrow terminal folds them."""
    for text in lines:
        out.print(text, soft_wrap=True)


def _table(cells: Sequence[Sequence[str]], *, left: Collection[int], verdicts: Sequence[str] = ()) -> Iterator[Text]:
    """Return the lines of a table whose first row is the header; its last column has the colours of `verdicts`."""
    header, *lines = text_table(cells, left=left)
    yield Text(header, style="bold")
    for content, row, verdict in zip_longest(lines, cells[1:], verdicts[: len(lines)]):
        text = Text(content)
        if verdict is not None:
            text.stylize(verdict_style(verdict), len(content) - len(row[-1]))
        yield text


def _is_ascii(out: Console) -> bool:
    return not str(out.encoding).lower().startswith("utf")


class _Marks(NamedTuple):
    """The characters of the diagram."""

    score: str
    rate: str
    both: str
    span: str
    empty: str


def diagram(
    breakdown: "Breakdown", mean: str = "mean score", observed: str = "event rate", *, ascii_only: bool = False
) -> Iterator[Text]:
    """Return one line per bin: the mean score and the event rate with its exact 95 % confidence interval.

    A line is red if the interval does not contain the mean score.
    """
    bins, marks = breakdown.per_bin, _Marks(*("o#@-." if ascii_only else "◇●◈─·"))
    low, high = breakdown.rate_interval()
    top = _round_up(max(high.max(), bins["mean_score"].max()))
    axis = f"0{' ' * (_WIDTH - 1 - len(f'{top:g}'))}{top:g}"
    yield Text(f"  {'rows':>13}  {'score':>7}  {'rate':>8}  {axis}", style="dim")
    for n, score, rate, first, last in zip(bins["n"], bins["mean_score"], bins["rate"], low, high, strict=True):
        outside = not first <= score <= last
        yield Text(f"  {_count(n):>13}  {score:7.4f}  {rate:8.4f}  ") + Text(
            _line(score / top, rate / top, first / top, last / top, marks), style="red" if outside else ""
        )
    words = f"{marks.score} {mean}, {marks.rate} {observed}, {marks.both} both, {marks.span} 95 % CI of the rate"
    yield Text(f"  {words}; red: the {mean} lies outside", style="dim")


def _line(score: float, rate: float, low: float, high: float, marks: _Marks) -> str:
    places = [round(float(x) * (_WIDTH - 1)) for x in (score, rate, low, high)]
    cells = [marks.empty] + [" "] * (_WIDTH - 1)
    cells[places[2] : places[3] + 1] = marks.span * (places[3] + 1 - places[2])
    cells[places[1]] = marks.rate
    cells[places[0]] = marks.both if places[0] == places[1] else marks.score
    return "".join(cells).rstrip()


def _round_up(x: float) -> float:
    """Return the smallest of 1, 2, 3, 4, 5, 6, 8 times a power of ten that is at least `x`; at most 1."""
    scale = 1.0
    while scale / 10 >= x and scale > 1e-12:
        scale /= 10
    return min([step * scale / 10 for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * scale / 10 >= x], default=1.0)


def _count(n: Any) -> str:
    return f"{int(n):,}" if float(n).is_integer() else f"{n:,.1f}"
