"""The multicalibration error: equal to MCGrad's, with a null distribution that accounts for the number of segments."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cb
from calibrant.evaluation.audit import multicalibration_error as module

GOLDEN = Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
from multicalibration_cases import CASES, draw  # noqa: E402

sys.path.remove(str(GOLDEN))
EXPECTED = json.loads((GOLDEN / "multicalibration.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("name", CASES)
def test_values_equal_those_of_mcgrad(name):
    case = CASES[name]
    for seed, expected in enumerate(EXPECTED[name]):
        features, score, event, weight, prediction, number = draw(seed, case.get("rate", 0.3))
        y, forecast = (number, cb.Point(prediction)) if case.get("numbers") else (event, score)
        options = {"sample_weight": weight} if case.get("weights") else {}
        chosen = {feature: features[feature] for feature in case["features"]}
        found = cb.audit(y, forecast, chosen, depth=case["depth"], n_resamples=1, **options).multicalibration_error
        assert found.value == pytest.approx(expected["value"], rel=1e-12)
        assert found.sigma == pytest.approx(expected["sigma"], rel=1e-12)
        assert found.n_segments == expected["segments"]
        assert float(found) == found.value


def calibrated(seed, kind, n=1_500):
    rng = np.random.default_rng([seed, 11])
    features = {f"x{i}": rng.normal(size=n) if i % 2 else rng.integers(0, 5, n).astype(str) for i in range(4)}
    logit = rng.normal(-1.5, 1, n)
    score, options = expit(logit), {}
    y = rng.random(n) < score
    if kind == "point":
        return logit + rng.gamma(2, 1, n) - 2, cb.Point(logit), features, options
    if kind == "clusters":
        from scipy.special import ndtr

        cluster = rng.integers(0, 150, n)
        y = ndtr(np.sqrt(0.5) * (rng.normal(size=150)[cluster] + rng.normal(size=n))) < score
        options = {"cluster": cluster}
    if kind == "weights":
        options = {"sample_weight": rng.lognormal(0, 1, n)}
    if kind == "frequency":
        times = rng.integers(1, 4, n)
        rows = np.repeat(np.arange(n), times)
        y = rng.random(rows.size) < score[rows]
        first = np.searchsorted(rows, np.arange(n))
        # Equal rows have equal outcomes only by chance: each outcome is a row with its own frequency.
        events = np.add.reduceat(y, first)
        doubled = {name: np.tile(column, 2) for name, column in features.items()}
        frequency = np.concatenate([events, times - events])
        return np.repeat([1, 0], n), np.tile(score, 2), doubled, {"frequency": frequency}
    return y, score, features, options


@pytest.mark.parametrize(
    "kind",
    ["scores", "point", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("clusters", "weights", "frequency"))],
)
def test_calibrated_forecasts_rarely_have_a_small_pvalue(kind):
    pvalues = []
    for seed in range(40):
        y, forecast, features, options = calibrated(seed, kind)
        found = cb.audit(y, forecast, features, n_resamples=39, random_state=seed, **options)
        pvalues.append(found.multicalibration_error.pvalue)
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.2  # P(more than 8 of 40 at 5 %) = 0.02 %
    assert 0.25 < np.mean(pvalues) < 0.75


def test_the_worst_segment_is_named():
    y, p, features, _ = calibrated(0, "scores", 8_000)
    rng = np.random.default_rng(1)
    off = (features["x0"] == "2") & (features["x1"] > 0.5)
    y = rng.random(8_000) < expit(np.log(p / (1 - p)) + 2 * off)
    found = cb.audit(y, p, features).multicalibration_error
    assert found.pvalue == 1 / 200
    assert found.value > found.high > found.expected > found.low
    assert "x1 > " in found.segment
    assert "standard deviations" in found.sentence()
    assert json.loads(json.dumps(found.to_dict()))["segment"] == found.segment


def test_the_null_of_fewer_rows_is_that_of_all(monkeypatch):
    y, p, features, _ = calibrated(3, "scores", 12_000)
    whole = cb.audit(y, p, features, n_resamples=200).multicalibration_error
    monkeypatch.setattr(module, "NULL_WORK", 11 * 200 * 3_000)
    part = cb.audit(y, p, features, n_resamples=200).multicalibration_error
    assert part.value == whole.value
    assert part.expected == pytest.approx(whole.expected, rel=0.05)
    assert part.high == pytest.approx(whole.high, rel=0.12)


def test_more_rows_than_the_limit_are_sampled(monkeypatch):
    y, p, features, _ = calibrated(3, "scores", 6_000)
    monkeypatch.setattr(module, "MOST_ROWS", 2_000)
    found = cb.audit(y, p, features, n_resamples=9).multicalibration_error
    assert found.n_rows == 2_000


def test_few_resamples_and_no_resamples():
    y, p, features, _ = calibrated(3, "scores")
    assert cb.audit(y, p, features, n_resamples=0).multicalibration_error is None
    assert cb.audit(y, np.round(p), features, n_resamples=5).multicalibration_error.n_segments == 0


def test_weights_that_depend_on_the_outcome_rarely_give_a_small_pvalue():
    """With random signs 10 to 20 % of calibrated data sets had a p-value of at most 5 %."""
    small = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        p = rng.beta(1, 3, 2_000)
        y = rng.random(2_000) < 20 * p / (20 * p + 1 - p)  # calibrated with a weight of 20 without the event
        features = {"a": rng.normal(size=2_000), "b": rng.choice(list("xyz"), 2_000), "c": rng.normal(size=2_000)}
        weight = np.where(y, 1.0, 20.0)
        found = cb.audit(y, p, features, depth=1, n_resamples=99, sample_weight=weight, progress=False)
        small += found.multicalibration_error.pvalue <= 0.05
    assert small <= 5
