"""Print the notes of a release from CHANGELOG.md; fail unless the tag, the version and the changelog agree.

python tools/release_notes.py v0.2.0
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def package_version(root: Path = ROOT) -> str:
    """Return the version that the build takes."""
    text = (root / "src" / "calibrant" / "versions.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)[1]  # type: ignore[index]


def sections(text: str) -> dict[str, str]:
    """Return the text below each heading of a version."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {title.strip(): body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def release_notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of a released version, or raise SystemExit with the reason why it cannot be released."""
    version = package_version(root)
    if tag != f"v{version}":
        raise SystemExit(f"The tag must be v{version}, the version of src/calibrant/versions.py; got {tag}.")
    versions = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    title = next((heading for heading in versions if heading.split()[0] == version), None)
    if title is None or not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)", title):
        raise SystemExit(f"CHANGELOG.md must have a heading '{version} (YYYY-MM-DD)'; got {title!r}.")
    return versions[title] + "\n"


if __name__ == "__main__":
    print(release_notes(sys.argv[1]), end="")
