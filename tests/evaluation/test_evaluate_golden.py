"""Results of every kind of forecast equal those that were frozen before the library's layers were rearranged."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "golden" / "results"
sys.path.insert(0, str(FOLDER))
from make_results import CASES, results  # noqa: E402

sys.path.remove(str(FOLDER))

# Frozen places and where their values are now; the patterns apply one after the other.
MOVED = (
    (r"\bprevalence$", "event_rate"),
    (r"\bbins\.Quantile\b", "bins.EqualSize"),
    (r"\bdetails\.decision\.(pvalue$|equivalence\.)", r"\1"),
    (r"\bdetails\.decision\.components\[", "tests["),
    (r"\bdetails\.decision\.", "details."),
    (r"\bdetails\.joint_test\.([^.]+)\.", r"tests[\1]."),
    (r"\bequivalence\.metric$", "equivalence.name"),
    (r"\bsettings\.metrics\.(\w+)\.", lambda found: f"settings.metrics.{METRICS.get(found[1], found[1])}."),
)
# What is not repeated any more: settings and level in a deviation, and p-values of a group without its adjustment.
GONE = re.compile(
    r"\bequivalence\.(alpha|n_resamples|notes)$"
    r"|^groups\[\d+\]\.details\.(decision\.(pvalue$|components\[.*\badjusted)|joint_test\..*\badjusted)"
)
# Sums in single precision, whose last digits depend on the processor, and p-values that follow from them.
SINGLE = re.compile(r"\bconfusions\[\d+\]\.|\b(tests|components)\[temperature\]\.")
# Names that metrics asked for by these names have now.
METRICS = {"brier": "Brier", "auc": "AUC", "mse": "MSE", "mae": "MAE", "crps": "CRPS"}
# Texts of frozen places that read otherwise now.
WORDS = (
    (r"\bmetrics\[\d+\]\.(name|(interval|null)\.metric)$", METRICS),
    (r"\bequivalence\.unit$", {"1": ""}),
)


def leaves(value, path=""):
    """Yield each number, text and empty container with its place; tests are named, not numbered."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for i, each in enumerate(value):
            named = isinstance(each, dict) and "statistic" in each
            yield from leaves(each, f"{path}[{each['name'] if named else i}]")
    else:
        yield path, value


def place_now(path):
    for frozen, now in MOVED:
        path = re.sub(frozen, now, path)
    return path


def differences(frozen, found):
    """Return the places where a result differs from the frozen one; places that are new are no difference."""
    present, differing = dict(leaves(found)), []
    for path, value in leaves(frozen):
        if GONE.search(path):
            continue
        now = present.get(place_now(path), "nothing")
        expected = next((words.get(value, value) for place, words in WORDS if re.search(place, path)), value)
        if type(expected) is type(now) is float:
            equal = math.isclose(expected, now, rel_tol=1e-6 if SINGLE.search(path) else 1e-12, abs_tol=1e-14)
        else:
            equal = type(expected) is type(now) and expected == now
        if not equal:
            differing.append(f"{path}: {value!r} -> {now!r}")
    return differing


@pytest.mark.parametrize("kind", CASES)
def test_results_equal_the_frozen_ones(kind):
    frozen, found = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8")), results(kind)
    assert {name: differences(result, found[name]) for name, result in frozen.items()} == {name: [] for name in found}


def test_a_changed_value_is_a_difference():
    frozen = {"prevalence": 0.5, "notes": ["few"], "tests": [{"name": "slope", "statistic": 1.0}]}
    found = {"event_rate": 0.5, "notes": ["few"], "tests": [{"name": "slope", "statistic": 1.0}], "new": 1}
    assert differences(frozen, found) == []
    assert differences(frozen, found | {"event_rate": 0.5 + 1e-10}) == ["prevalence: 0.5 -> 0.5000000001"]
    assert differences(frozen, found | {"notes": ["many"]}) == ["notes[0]: 'few' -> 'many'"]
    assert differences(frozen, found | {"tests": []}) == [
        "tests[slope].name: 'slope' -> 'nothing'",
        "tests[slope].statistic: 1.0 -> 'nothing'",
    ]
