"""The study of multicalibration: paired differences, the page, and one split with MCGrad."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")

import pandas as pd

from research.studies import multicalibration as study


def values(shift):
    """Return invented values of ten splits, in which our log loss differs from MCGrad's by a shift."""
    rng = np.random.default_rng(0)
    rows = []
    for name in ("one", "two"):
        for seed in range(10):
            row = {"set": name, "model": "forest", "split": seed, "calibrate": 100, "test": 100}
            common = rng.normal(0.5, 0.1)
            for method in study.METHODS:
                better = shift if method in study.OURS else 0.0
                row |= {
                    f"{method} | {criterion}": common + better + rng.normal(0, 0.001) for criterion in study.CRITERIA
                }
            rows.append(row)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("shift", "counts"), [(-0.1, "2, 0"), (0.1, "0, 2"), (0.0, "0, 0")])
def test_differences_are_counted_with_their_sign(shift, counts):
    compared = study.comparisons(values(shift))
    assert (np.sign(compared["difference"].round(2)) == np.sign(shift)).all()
    assert (compared["low"] < compared["high"]).all()
    assert {row[3] for row in study.summary(compared)} == {counts}
    worse = 8 if shift > 0 else 0
    assert f"worse than MCGrad in {worse} of 8 comparisons" in study.page(values(shift))


def test_splits_widen_the_interval_by_their_overlap():
    compared = study.comparisons(values(0.0))
    assert (compared["p"] >= compared["p without correction"]).all()
    assert (compared["adjusted p"] >= compared["p"]).all()


def test_the_page_counts_the_splits_of_the_shortest_cell():
    assert "Each of 9 splits" in study.page(values(0.0).iloc[1:])
    assert "has not been run" in study.page(None)


def test_one_split_has_all_methods():
    pytest.importorskip("mcgrad")
    found = study.split(("breast cancer", "logistic regression", 0))
    assert found["test"] == 143
    for method in study.METHODS:
        assert 0 < found[f"{method} | log loss"] < 1
        assert 0 < found[f"{method} | MCE"] < 100
