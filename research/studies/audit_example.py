"""The worked example of the audit: a recalibrated model of credit default; writes docs/studies/audit_credit.txt.

The data are those of Yeh and Lien (2009) in the folder that CALIBRANT_DATA names. A third of the rows fits the model, a
third recalibrates it, and a third is audited.
"""

from pathlib import Path

import numpy as np

import calibrant as cb
from research.reproduction.sources import DATA

OUTPUT = Path(__file__).parents[2] / "docs" / "studies" / "audit_credit.txt"


def credit_audit() -> str:
    """Return the evaluation and the audit as text."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pd.read_csv(DATA / "cost_aware" / "credit_default.csv.gz")
    y, features = frame.pop("label").to_numpy(), frame
    part = np.random.default_rng(0).permutation(len(y)) % 3
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features[part == 0], y[part == 0])
    score = model.predict_proba(features)[:, 1]
    calibrator = cb.Isotonic().fit(score[part == 1], y[part == 1])
    rest = part == 2
    p, own = calibrator(score[rest]), features[rest].reset_index(drop=True)
    evaluated = cb.evaluate(y[rest], p, n_resamples=199)
    found = cb.audit(
        y[rest], p, own[["LIMIT_BAL", "SEX", "EDUCATION", "AGE", "PAY_0", "PAY_2", "BILL_AMT1", "PAY_AMT1"]]
    )
    first = found.segments[0]
    lines = [f"all rows: {evaluated.headline()}", "", repr(found), "", f"SQL of the first: {first.to_sql()}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(credit_audit(), encoding="utf-8")
