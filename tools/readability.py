"""Compute the Flesch-Kincaid grade and the lengths of sentences of the documentation.

``python tools/readability.py`` prints one line per page; ``--before COMMIT --csv FILE`` also reads the pages of a
commit and writes both. Code, tables, directives and formulas do not count. Syllables are counted as groups of vowels,
so grades of technical words are estimates: compare them with each other.
"""

import argparse
import csv
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "CONTRIBUTING.md", "docs")
LONG = 25  # words; WORDS.md asks for shorter sentences


@dataclass(frozen=True)
class Reading:
    """Numbers of sentences, words, syllables and long sentences of a text."""

    sentences: int = 0
    words: int = 0
    syllables: int = 0
    long: int = 0

    def __add__(self, other: "Reading") -> "Reading":
        pairs = zip(self.counts, other.counts, strict=True)
        return Reading(*(a + b for a, b in pairs))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """All four numbers."""
        return self.sentences, self.words, self.syllables, self.long

    @property
    def grade(self) -> float:
        """Flesch-Kincaid grade: school years that a reader needs."""
        return 0.39 * self.words / self.sentences + 11.8 * self.syllables / self.words - 15.59

    @property
    def mean_length(self) -> float:
        """Words per sentence."""
        return self.words / self.sentences


def prose(text: str) -> str:
    """Return the sentences of a page, without code, tables, directives, formulas and markup."""
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.DOTALL)
    kept: list[str] = []
    skipped = -1  # indentation of a directive or literal block whose body is skipped
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if skipped >= 0 and (not line.strip() or indent > skipped):
            continue
        skipped = indent if re.match(r"\s*\.\. |\s*:\w+:", line) or line.rstrip().endswith("::") else -1
        table = re.search(r"\S {2,}\S", line)
        if skipped < 0 and not table and not re.match(r"\s*(\||[=~^\-*]{3,}|\$ |>>>|#+ |<)", line):
            kept.append(re.sub(r"^\s*([*-]|\d+\.)\s+", "\n\n", line))
    return strip_markup("\n".join(kept))


def strip_markup(text: str) -> str:
    """Return text without links and roles; code is one short word."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r":math:`[^`]*`", "x", text)
    text = re.sub(r":[\w:]+:`~?([^`<]+?)(?: *<[^>]*>)?`", r"\1", text)
    return re.sub(r"``[^`]+``|`[^`]+`", "Name", text).replace("**", "")


def syllables(word: str) -> int:
    """Return the number of groups of vowels, without a silent final e; at least 1."""
    found = len(re.findall(r"[aeiouy]+", word.lower().removesuffix("e")))
    return max(found, 1)


def read(text: str) -> Reading:
    """Return the numbers of a page."""
    total = Reading()
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=\W*[A-Z0-9])", paragraph):
            words = re.findall(r"[A-Za-z][A-Za-z'-]*", sentence)
            if len(words) > 2 and sentence.rstrip()[-1:] in ".!?:;":
                total += Reading(1, len(words), sum(map(syllables, words)), int(len(words) > LONG))
    return total


def pages(commit: str | None) -> dict[str, str]:
    """Return the text of each page, of a commit or of the working tree."""
    listing = ["git", "ls-tree", "-r", "--name-only", commit] if commit else ["git", "ls-files"]
    names = subprocess.run([*listing, "--", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = [name for name in names.splitlines() if Path(name).suffix in (".md", ".rst")]
    if commit is None:
        return {name: (ROOT / name).read_text(encoding="utf-8") for name in wanted}
    show = ["git", "show"]
    return {
        name: subprocess.run([*show, f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in wanted
    }


def rows(commit: str | None) -> list[list[str]]:
    """Return page, words, words per sentence, share of long sentences and grade; the total comes first."""
    found = {name: read(text) for name, text in pages(commit).items()}
    found = {"all pages": sum(found.values(), start=Reading())} | found
    return [
        [name, f"{r.words}", f"{r.mean_length:.1f}", f"{100 * r.long / r.sentences:.0f}", f"{r.grade:.1f}"]
        for name, r in found.items()
        if r.sentences
    ]


def main() -> None:
    """Print one line per page, and write a CSV file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    now = rows(None)
    for row in now:
        print(f"{row[0]:40} {row[1]:>7} words  {row[2]:>5} per sentence  {row[3]:>3} % long  grade {row[4]}")
    if options.csv and options.before:
        before = {row[0]: row[1:] for row in rows(options.before)}
        header = [
            "page",
            *(f"{n}, {when}" for when in ("before", "after") for n in ("words", "per sentence", "% long", "grade")),
        ]
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([header, *([row[0], *before.get(row[0], [""] * 4), *row[1:]] for row in now)])


if __name__ == "__main__":
    main()
