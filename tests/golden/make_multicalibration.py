"""Multicalibration errors of MCGrad, frozen in multicalibration.json; ``make env NAME=oracles`` runs this."""

import json
import logging
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from mcgrad.metrics import MulticalibrationError
from multicalibration_cases import CASES, draw

HERE = Path(__file__).parent
NUMBERS = ("x", "step", "flag")


def measure(seed, case):
    features, score, event, weight, prediction, number = draw(seed, case.get("rate", 0.3))
    frame = pd.DataFrame(features)
    frame["score"], frame["label"] = (prediction, number) if case.get("numbers") else (score, event)
    frame["weight"] = weight
    found = MulticalibrationError(
        frame,
        "label",
        "score",
        weight_column="weight" if case.get("weights") else None,
        categorical_segment_columns=[name for name in case["features"] if name not in NUMBERS],
        numerical_segment_columns=[name for name in case["features"] if name in NUMBERS],
        max_depth=case["depth"],
        max_n_segments=None,
        precision_dtype="float64",
        outcome_type="regression" if case.get("numbers") else "classification",
    )
    return {"value": found.mce, "sigma": found.mce_sigma, "segments": len(found.segments_ecce)}


def main():
    logging.disable(logging.CRITICAL)
    found = {name: [measure(seed, case) for seed in range(3)] for name, case in CASES.items()}
    versions = {name: version(name) for name in ("mcgrad", "numpy", "pandas", "scipy")}
    text = json.dumps({"versions": versions, "cases": found}, indent=1)
    (HERE / "multicalibration.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
