"""Values of the sliders of the report: TCE by significance level and expected cost by cost ratio."""

import json
from collections.abc import Mapping
from typing import Any

from calibrant.kinds.binary.details import RATIOS, Sensitivity
from calibrant.kinds.binary.evaluation import rejection_breakdown
from calibrant.results.evaluation import Evaluation

__all__ = ["script_data", "sliders"]


def sliders(models: Mapping[str, Evaluation]) -> dict[str, Any] | None:
    """Return levels, ratios and values of each model at each of them; None unless all forecasts are probabilities."""
    if any(e.kind != "binary" for e in models.values()):
        return None
    alphas = sorted(set.intersection(*(set(_sensitivity(e).alphas) for e in models.values())))
    tested = tested_alpha(next(iter(models.values())))
    return {
        "alphas": alphas,
        "alpha": min(alphas, key=lambda alpha: abs(alpha - tested)),
        "ratios": list(RATIOS),
        "models": {name: _model(f"m{i}", e, alphas) for i, (name, e) in enumerate(models.items())},
    }


def tested_alpha(e: Evaluation) -> float:
    """Return the level of the test-based breakdown."""
    loss: Any = rejection_breakdown(e)[0].definition.loss
    return float(loss.alpha)


def script_data(shown: dict[str, Any] | None) -> str:
    """Return the data of the script as JSON without characters of markup."""
    wanted = None
    if shown is not None:
        models = {model["key"]: model for model in shown["models"].values()}
        wanted = {"alphas": shown["alphas"], "ratios": shown["ratios"], "models": models}
    text = json.dumps(wanted, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _sensitivity(e: Evaluation) -> Sensitivity:
    details: Any = e.details
    found: Sensitivity = details.sensitivity
    return found


def _model(key: str, e: Evaluation, alphas: list[float]) -> dict[str, Any]:
    """Return TCE, the rejected share of each bin at each level, and the cost at each ratio."""
    found, (tested, _) = _sensitivity(e), rejection_breakdown(e)
    places = [found.alphas.index(alpha) for alpha in alphas]
    rows = tested.per_bin["n"]
    return {
        "key": key,
        "tce": [found.tce[i] for i in places],
        "rejected": [[round(float(share), 4) for share in 100 * found.rejected[i] / rows] for i in places],
        "costs": list(found.ecc),
    }
