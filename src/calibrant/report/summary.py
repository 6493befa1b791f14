"""The content of the report as plain data, which the page renders."""

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.formatting import format_pvalue
from calibrant._support.json_values import label as json_label
from calibrant.evaluation import sentences
from calibrant.evaluation.binary import LOG_ODDS_ERROR, rejection_breakdown
from calibrant.evaluation.comparison_result import Comparison
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.sensitivity import RATIOS, Sensitivity
from calibrant.evaluation.sizes import n_rows
from calibrant.metrics.breakdown import Breakdown
from calibrant.versions import __version__

__all__ = ["summarize"]


def summarize(
    models: Mapping[str, Evaluation],
    *,
    comparison: Comparison | None = None,
    inputs: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the content of the page, in its order."""
    if not models:
        raise InputError("models must have at least one evaluation; got an empty mapping.", argument="models")
    alphas = _common_alphas(models)
    shown = [_model(name, f"m{i}", evaluation, alphas) for i, (name, evaluation) in enumerate(models.items())]
    return {
        "schema_version": 1,
        "kind": "report",
        "calibrant": __version__,
        "headline": _headline(models, comparison),
        "tone": _tone(models, comparison),
        "models": shown,
        "comparison": None if comparison is None else _comparison(comparison),
        "inputs": inputs or [],
        "alphas": alphas,
        "alpha": min(alphas, key=lambda alpha: abs(alpha - _tested_alpha(next(iter(models.values()))))),
        "metrics": list(dict.fromkeys(metric["name"] for model in shown for metric in model["metrics"])),
        "ratios": list(RATIOS),
    }


def _headline(models: Mapping[str, Evaluation], comparison: Comparison | None) -> str:
    if comparison is not None:
        return _sentence(comparison.verdict)
    if len(models) == 1:
        return _sentence(sentences.headline(next(iter(models.values()))))
    bad = [name for name, e in models.items() if e.verdict == "miscalibrated"]
    if not bad:
        return f"None of the {len(models)} scores is shown to be miscalibrated."
    return f"{len(bad)} of {len(models)} scores {'is' if len(bad) == 1 else 'are'} miscalibrated: {', '.join(bad)}."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _tone(models: Mapping[str, Evaluation], comparison: Comparison | None) -> str:
    """Return the colour class of the headline: that of the worst verdict; none for a comparison."""
    if comparison is not None:
        return ""
    worst = min((e.verdict for e in models.values()), key=sentences.severity)
    groups = [group.verdict for e in models.values() for group in e.groups.values()]
    return "bad" if "miscalibrated" in groups else sentences.tone(worst)


def _model(name: str, key: str, e: Evaluation, alphas: list[float]) -> dict[str, Any]:
    tested, _ = rejection_breakdown(e)
    return {
        "name": name,
        "key": key,
        "verdict": e.verdict,
        "direction": e.direction,
        "tone": sentences.tone(e.verdict),
        "heading": _sentence(sentences.headline(e)),
        "why": " ".join(e.sentences()),
        "sizes": e.sizes_text(),
        "metrics": [_metric(line, e) for line in e.metrics.values()],
        "level": f"{100 * e.settings.confidence_level:g} %",
        "reasons": [tuple(part.strip() for part in line.split(":", 1)) for line in e.reasons()],
        "bins": _bins(e.breakdowns["ACE"], e),
        "tested": {"alpha": _tested_alpha(e), "bins": _bins(tested, e), **_by_alpha(e, alphas)},
        "unit": "weight" if e.table.importance else "rows",
        "costs": list(_sensitivity(e).ecc),
        "groups": _groups(e),
        "notes": [note.text for note in e.notes],
        "specification": e.settings.to_dict(),
    }


def _tested_alpha(e: Evaluation) -> float:
    """Return the level of the test-based breakdown."""
    loss: Any = rejection_breakdown(e)[0].definition.loss
    return float(loss.alpha)


def _sensitivity(e: Evaluation) -> Sensitivity:
    details: Any = e.details
    found: Sensitivity = details.sensitivity
    return found


def _common_alphas(models: Mapping[str, Evaluation]) -> list[float]:
    """Return the significance levels of the slider: those that all models have."""
    return sorted(set.intersection(*(set(_sensitivity(e).alphas) for e in models.values())))


def _metric(line: MetricResult, e: Evaluation) -> dict[str, Any]:
    """Return a metric with interval and null range, its direction where it is significant, and its cost."""
    value, interval, band, p = line.cells()
    breakdown = e.breakdowns.get(line.name) if line.name in e.settings.metrics else None
    return {
        "name": line.name,
        "value": value,
        "number": line.value,
        "interval": interval,
        "band": band,
        "pvalue": p,
        "direction": _direction(line, breakdown) if line.pvalue <= e.settings.alpha else "",
        "cost": _cost(line, breakdown, e),
    }


def _direction(line: MetricResult, breakdown: Breakdown | None) -> str:
    if line.name == "bias":
        return "overestimates" if line.value > 0 else "underestimates" if line.value < 0 else ""
    if breakdown is None:
        return ""
    mean_score, rate, n = (breakdown.per_bin[name] for name in ("mean_score", "rate", "n"))
    high, low = (100 * n[side].sum() / n.sum() for side in (mean_score > rate, mean_score < rate))
    return f"overestimates in bins with {high:.3g} % of the rows, underestimates in {low:.3g} %"


def _cost(line: MetricResult, breakdown: Breakdown | None, e: Evaluation) -> str:
    rows, unit = e.table.size, "of total weight" if e.table.importance else "rows"
    if line.name == "bias":
        more = "more" if line.value > 0 else "fewer"
        return f"{abs(line.value) * rows:,.4g} {more} events predicted than observed in {rows:,.6g} {unit}"
    if line.name in ("ECE", "ACE"):
        return f"{line.value * rows:,.4g} over all rows, if each point of over- or underestimation costs 1"
    if breakdown is not None and "rejected" in breakdown.per_bin:
        return f"{breakdown.per_bin['rejected'].sum():,.6g} of {rows:,.6g} rows have a score that the test rejects"
    if line.name == "Brier":
        details: Any = e.details
        return f"{details.decomposition.mcb:.4g} of it would vanish with perfect recalibration"
    return f"{line.value * rows:,.4g} over all rows" if line.name.startswith("ECC") else ""


def _bins(breakdown: Breakdown, e: Evaluation) -> list[dict[str, Any]]:
    low, high = breakdown.rate_interval(e.settings.confidence_level)
    columns = {name: breakdown.per_bin[name] for name in ("lower", "upper", "n", "k", "rate", "mean_score")}
    if "rejected" in breakdown.per_bin:
        columns["rejected"] = breakdown.per_bin["rejected"]
    columns |= {"low": low, "high": high}
    return [{name: column[i].item() for name, column in columns.items()} for i in range(low.size)]


def _by_alpha(e: Evaluation, alphas: list[float]) -> dict[str, Any]:
    """Return TCE and the rejected rows of each bin at each level of the slider."""
    found, (tested, _) = _sensitivity(e), rejection_breakdown(e)
    places = [found.alphas.index(alpha) for alpha in alphas]
    rejected = [found.rejected[i].tolist() for i in places]
    return {"value": tested.value, "values": [found.tce[i] for i in places], "rejected": rejected}


def _groups(e: Evaluation) -> dict[str, Any] | None:
    if not e.groups:
        return None
    rows: list[dict[str, Any]] = []
    for name, group in e.worst_first.items():
        lines = group.metrics
        shown = {metric: lines[metric].cells() for metric in (LOG_ODDS_ERROR, "bias", "ACE") if metric in lines}
        adjusted = e.adjusted[name]
        rows.append(
            {
                "name": str(json_label(name)) or "(empty)",
                "rows": n_rows(group.table),
                "prevalence": group.table.prevalence,
                "metrics": {m: {"value": c[0], "number": lines[m].value, "band": c[2]} for m, c in shown.items()},
                "holm": adjusted["holm"],
                "holm_text": format_pvalue(adjusted["holm"]),
                "verdict": sentences.headline(group),
                "tone": sentences.tone(group.verdict),
            }
        )
    midnight = re.compile(r"[T ]00:00:00(\.0+)?$")
    if all(midnight.search(row["name"]) for row in rows):  # days
        rows = [{**row, "name": midnight.sub("", row["name"])} for row in rows]
    bad = sum(row["tone"] == "bad" for row in rows)
    return {
        "by": e.by or "group",
        "size": "weight" if e.table.importance else "rows",
        "rows": rows,
        "bad": bad,
        "metrics": list(rows[0]["metrics"]),
        "over_time": all(map(_is_time, e.groups)),
    }


def _is_time(name: object) -> bool:
    """Return whether the name of a group is a date or a time."""
    written = isinstance(name, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}.*)?", name) is not None
    return written or isinstance(name, (date, np.datetime64))


def _comparison(c: Comparison) -> dict[str, Any]:
    rows = []
    for d in c.differences:
        value, interval, p = d.cells()
        rows.append(
            {
                "model": d.model,
                "metric": d.metric,
                "value": value,
                "number": None if math.isnan(d.value) else d.value,
                "interval": interval,
                "pvalue": p,
                "decides": d.test == "decides",
            }
        )
    return {
        "verdict": c.verdict,
        "baseline": c.baseline,
        "decides": c.decides,
        "disagreements": c.disagreements(),
        "rows": rows,
    }
