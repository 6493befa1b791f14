"""The report: one HTML file with everything in it, that people can send each other."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.evaluation.binary import Evaluation
    from calibrant.evaluation.comparison import Comparison

__all__ = ["of_comparison", "of_evaluation", "of_evaluations"]


def of_evaluation(evaluation: "Evaluation", path: str | PathLike[str] | None = None, *, title: str) -> str:
    """The report of one evaluation."""
    return of_evaluations({"score": evaluation}, path, title=title)


def of_evaluations(
    models: "Mapping[str, Evaluation]",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
) -> str:
    """The report of several evaluations, each for itself."""
    from calibrant.report.page import page
    from calibrant.report.writing import written

    return written(page(models, title=title, inputs=inputs), path)


def of_comparison(
    comparison: "Comparison",
    path: str | PathLike[str] | None = None,
    *,
    title: str,
    inputs: list[dict[str, Any]] | None = None,
) -> str:
    """The report of a comparison."""
    from calibrant.report.page import page
    from calibrant.report.writing import written

    return written(page(comparison.models, comparison=comparison, title=title, inputs=inputs), path)
