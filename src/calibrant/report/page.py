"""The page: what the summary says, in HTML that needs nothing else, and that nothing in it can break out of."""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from calibrant.evaluation.binary import Evaluation
from calibrant.evaluation.comparison import Comparison
from calibrant.metrics.calibration_errors import ACE, TCE
from calibrant.report.figures import inline, tips_of_bins
from calibrant.report.summary import summary_of

__all__ = ["page"]


def page(
    models: Mapping[str, Evaluation],
    *,
    comparison: Comparison | None = None,
    title: str = "Calibration report",
    inputs: list[dict[str, Any]] | None = None,
) -> str:
    """The report of one evaluation or several as one HTML page: the same text for the same results.

    Parameters
    ----------
    models : mapping of name to Evaluation
    comparison : Comparison, optional
        Of the same models, on the same rows.
    title : str
    inputs : list of dict, optional
        What is to be said about the files: ``file``, ``bytes`` and ``sha256`` of each.

    Returns
    -------
    str
        Self-contained: styles, script, diagrams and numbers are in it, and its Content-Security-Policy lets a browser
        fetch nothing and run nothing but that script.
    """
    environment = _environment()
    summary = summary_of(models, comparison=comparison, inputs=inputs)
    figures = _figures(models, summary)
    style, script = _asset("style.css"), _asset("script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return str(
        environment.get_template("page.html").render(
            title=title,
            policy=policy,
            style=_Safe(style),
            script=_Safe(script),
            data=_Safe(_data(summary)),
            figures=figures,
            report=summary,
            specification=json.dumps(
                {model["name"]: model["specification"] for model in summary["models"]}, indent=1, ensure_ascii=False
            ),
        )
    )


class _Safe(str):
    """Text that is HTML already: our own, or escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def _environment() -> Any:
    try:
        from jinja2 import BaseLoader, Environment, StrictUndefined
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('The report needs Jinja2: pip install "calibrant[report]".', name="jinja2") from error

    class Assets(BaseLoader):
        """Templates out of the package, wherever it is installed."""

        def get_source(self, environment: Any, template: str) -> Any:
            return _asset(template), None, lambda: True

    return Environment(
        loader=Assets(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _asset(name: str) -> str:
    return files("calibrant.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(summary: dict[str, Any]) -> str:
    """What the script needs, as JSON that no browser takes for markup."""
    models = {
        model["key"]: {
            "costs": model["costs"],
            "tested": {name: model["tested"][name] for name in ("alpha", "values", "rejected")},
        }
        for model in summary["models"]
    }
    wanted = {"alphas": summary["alphas"], "ratios": summary["ratios"], "models": models}
    text = json.dumps(wanted, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _figures(models: Mapping[str, Evaluation], summary: dict[str, Any]) -> dict[str, dict[str, _Safe]]:
    """The diagrams of every model, and those of all of them together."""
    from matplotlib.figure import Figure

    from calibrant import plots

    drawn: dict[str, dict[str, _Safe]] = {}
    display: Any
    for evaluation, model in zip(models.values(), summary["models"], strict=True):
        key, own = model["key"], {}
        breakdown, null = _tested(evaluation, model["tested"]["alpha"])
        display = plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, null=null, fig=_canvas(Figure, 7.6, 5.2))
        tips = tips_of_bins(model["tested"]["bins"], "test-based-bin-")
        own["tested"] = _inline(display, f"{key}-tested", tips, r"test-based-bin-\d+-rate")
        display = plots.ReliabilityDisplay.from_breakdown(ACE()(evaluation.table), fig=_canvas(Figure, 5.6, 5.2))
        tips = tips_of_bins(model["bins"], "reliability-model-bin-")
        own["reliability"] = _inline(display, f"{key}-reliability", tips, r"reliability-model-bin-\d+-point")
        display = plots.CumulativeDisplay.from_predictions(evaluation.table, fig=_canvas(Figure, 7.6, 3.8))
        own["cumulative"] = _inline(display, f"{key}-cumulative")
        display = plots.NullDisplay.from_null(_deciding(evaluation).null, fig=_canvas(Figure, 5.6, 3.2))
        own["null"] = _inline(display, f"{key}-null")
        if evaluation.groups:
            wide = min(11.0, max(6.0, 1.6 + 0.42 * len(evaluation.groups)))
            display = plots.GroupDisplay.from_evaluation(
                evaluation, metric=_deciding(evaluation).name, along="x", fig=_canvas(Figure, wide, 4.2)
            )
            own["groups"] = _inline(display, f"{key}-groups")
            if model["groups"]["over_time"] and "bias" in model["groups"]["metrics"]:
                display = plots.GroupDisplay.from_evaluation(
                    evaluation, metric="bias", along="x", fig=_canvas(Figure, wide, 4.2)
                )
                own["bias"] = _inline(display, f"{key}-bias")
        drawn[key] = own
    if len(models) > 1:
        both = plots.ReliabilityDisplay.from_breakdown(
            {name: ACE()(e.table) for name, e in models.items()}, fig=_canvas(Figure, 7.6, 5.6)
        )
        drawn["all"] = {"reliability": _inline(both, "all-reliability")}
    return drawn


def _canvas(kind: Any, width: float, height: float) -> Any:
    return kind(figsize=(width, height), layout="constrained")


def _tested(evaluation: Evaluation, alpha: float) -> tuple[Any, Any]:
    """What TCE found, and its null where the evaluation has one."""
    wanted = TCE(alpha=alpha)
    chosen = evaluation.settings.metrics
    null = next((m.null for name, m in evaluation.metrics.items() if chosen.get(name) == wanted), None)
    return wanted(evaluation.table), null


def _deciding(evaluation: Evaluation) -> Any:
    """ACE, or the first metric that exists."""
    return evaluation.metrics.get("ACE", next(iter(evaluation.metrics.values())))


def _inline(display: Any, prefix: str, tips: Mapping[str, str] | None = None, stops: str = "") -> _Safe:
    from calibrant import plots

    return _Safe(inline(plots.svg(display), prefix=prefix, alt=display.alt_text(), tips=tips or {}, stops=stops))
