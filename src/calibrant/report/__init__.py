"""The report: one self-contained HTML page of an evaluation, of several, of a comparison, or of audits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant._support.file_writing import FilePath, write_file
from calibrant.kinds.base import kind_of

if TYPE_CHECKING:
    from calibrant.results.audit import Audit
    from calibrant.results.comparison import Comparison
    from calibrant.results.evaluation import Evaluation

__all__ = ["audit_page", "audits_page", "comparison_page", "evaluation_page", "evaluations_page", "write_page"]


def evaluation_page(evaluation: "Evaluation", *, title: str, audit: "Audit | None" = None, monitor: Any = None) -> str:
    """Return the report of one evaluation, with sections of an audit and a monitor if given."""
    from calibrant.report.page import check_same_rows

    name = kind_of(evaluation.kind).words.WORDS.name
    audits = None if audit is None else {name: check_same_rows(evaluation, audit)}
    section = None if monitor is None else monitor.report_section()
    return evaluations_page({name: evaluation}, title=title, audits=audits, monitor=section)


def evaluations_page(
    models: "Mapping[str, Evaluation]",
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
    audits: "Mapping[str, Audit] | None" = None,
    monitor: Mapping[str, Any] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """Return the report of several evaluations, with sections of audits and a monitor."""
    from calibrant.report.page import page

    return page(models, title=title, inputs=inputs, audits=audits, monitor=monitor, commands=commands)


def comparison_page(
    comparison: "Comparison",
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """Return the report of a comparison."""
    from calibrant.report.page import page

    return page(comparison.models, comparison=comparison, title=title, inputs=inputs, commands=commands)


def audit_page(audit: "Audit", *, title: str) -> str:
    """Return the report of one audit."""
    return audits_page({kind_of(audit.kind).words.WORDS.name: audit}, title=title)


def audits_page(audits: "Mapping[str, Audit]", *, title: str, inputs: list[dict[str, Any]] | None = None) -> str:
    """Return the report of several audits."""
    from calibrant.report.page import page_of_audits

    return page_of_audits(audits, title=title, inputs=inputs)


def write_page(page: str, path: FilePath | None) -> FilePath | str:
    """Write a page to `path`, completely or not at all, and return the path; without a path return the page."""
    if path is None:
        return page
    write_file(path, page)
    return path
