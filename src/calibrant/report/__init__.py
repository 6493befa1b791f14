"""The report: one self-contained HTML page of an evaluation, of several, of a comparison, or of audits."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from calibrant._support.file_writing import write_file
from calibrant.kinds.base import kind_of

if TYPE_CHECKING:
    from calibrant.results.audit import Audit
    from calibrant.results.comparison import Comparison
    from calibrant.results.evaluation import Evaluation

__all__ = ["write_audit", "write_audits", "write_comparison", "write_evaluation", "write_evaluations", "write_page"]


def write_evaluation(
    evaluation: "Evaluation",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    audit: "Audit | None" = None,
    monitor: Any = None,
) -> str:
    """Return the report of one evaluation, with sections of an audit and a monitor if given; write it to `path`."""
    from calibrant.report.page import check_same_rows

    name = kind_of(evaluation.kind).words.WORDS.name
    audits = None if audit is None else {name: check_same_rows(evaluation, audit)}
    section = None if monitor is None else monitor.report_section()
    return write_evaluations({name: evaluation}, path, title=title, audits=audits, monitor=section)


def write_audit(audit: "Audit", path: str | PathLike[str] | None = None, *, title: str) -> str:
    """Return the report of one audit; write it to `path` if given."""
    return write_audits({kind_of(audit.kind).words.WORDS.name: audit}, path, title=title)


def write_audits(
    audits: "Mapping[str, Audit]",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
) -> str:
    """Return the report of audits; write it to `path` if given."""
    from calibrant.report.page import audit_page

    return write_page(audit_page(audits, title=title, inputs=inputs), path)


def write_evaluations(
    models: "Mapping[str, Evaluation]",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
    audits: "Mapping[str, Audit] | None" = None,
    monitor: Mapping[str, Any] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """Return the report of several evaluations, with sections of audits and a monitor; write it to `path` if given."""
    from calibrant.report.page import page

    options: dict[str, Any] = {"audits": audits, "monitor": monitor, "commands": commands}
    return write_page(page(models, title=title, inputs=inputs, **options), path)


def write_comparison(
    comparison: "Comparison",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """Return the report of a comparison; write it to `path` if given."""
    from calibrant.report.page import page

    options: dict[str, Any] = {"inputs": inputs, "commands": commands}
    return write_page(page(comparison.models, comparison=comparison, title=title, **options), path)


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """Return the page; write it to `path` if given, atomically."""
    page = page.encode("utf-8", "backslashreplace").decode()  # names may hold lone surrogates
    if path is not None:
        write_file(path, page)
    return page
