"""Fail if a phrase of tools/banned_phrases.txt occurs; print file, line and replacement."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PHRASES = Path(__file__).with_name("banned_phrases.txt")
PLACES = (
    *("src", "docs", "tests", "research", "benchmarks", "examples", "tools"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "conftest.py", "pyproject.toml"),
)
TEXT = {"", ".cpp", ".css", ".csv", ".h", ".hpp", ".html", ".js", ".md", ".py", ".pyi", ".R", ".rst", ".sh", ".toml"}
TEXT |= {".svg", ".txt", ".yaml", ".yml"}
# Between two words: blanks, or a line break with the marks of comments and continued strings.
GAP = r"""(?:[ \t]+|[ \t]*["']?[ \t\\]*\n[ \t]*(?:#+|//|\*|[rfbu]{0,2}["'])?[ \t]*)"""


def read_phrases(text: str) -> dict[str, str]:
    """Return the phrases in lower case with their replacements."""
    lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {phrase.strip().lower(): instead.strip() for phrase, _, instead in lines}


def find(text: str, phrases: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the phrase of each occurrence in a text."""
    found = (
        (match.start(), phrase)
        for phrase in phrases
        for match in re.finditer(rf"(?<!\w){GAP.join(map(re.escape, phrase.split()))}(?!\w)", text, re.IGNORECASE)
    )
    for start, phrase in sorted(found):
        yield text.count("\n", 0, start) + 1, phrase


def files() -> list[Path]:
    """Return the text files under version control, and new ones that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PLACES]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = (ROOT / name for name in sorted(set(names)))
    return [path for path in paths if path.is_file() and path.suffix in TEXT and path != PHRASES]


def main() -> None:
    """Print each occurrence and exit with 1 if there is one."""
    phrases = read_phrases(PHRASES.read_text(encoding="utf-8"))
    count = 0
    for path in files():
        for line, phrase in find(path.read_text(encoding="utf-8"), phrases):
            print(f'{path.relative_to(ROOT)}:{line}: "{phrase}"; write: {phrases[phrase]}')
            count += 1
    if count:
        sys.exit(f"{count} banned phrases (tools/banned_phrases.txt)")


if __name__ == "__main__":
    main()
