"""Audit: what is found, what is not, and how rows, features and options are read."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cb
from calibrant._support.columns import read
from calibrant.evaluation.audit.features import count_feature


def expit(x):
    return 1 / (1 + np.exp(-x))


def planted(n=20_000, error=0.8, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "region": rng.choice(["north", "south", "east", "west"], n),
            "income": rng.lognormal(10, 1, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    logit = -1.5 + rng.normal(size=n)
    segment = (frame["region"] == "south") & (frame["age"] >= 63)
    y = rng.random(n) < expit(logit + error * segment.to_numpy())
    return y, expit(logit), frame, segment.to_numpy()


def test_a_planted_segment_is_found_with_its_rule():
    y, p, frame, segment = planted()
    found = cb.audit(y, p, frame)
    best = found.segments[0]
    assert "region = 'south'" in best.rule
    assert "age >= 6" in best.rule
    assert best.n_rows == pytest.approx(segment.sum(), rel=0.15)
    assert best.low < 0.8 < best.high
    assert best.adjusted_pvalue < 1e-4
    assert best.observed > best.predicted
    assert found.verdict.endswith("miscalibrated segment") or found.verdict.endswith("segments")


def test_opposite_errors_in_the_crossings_of_two_features_are_all_named():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 20_000), rng.integers(0, 2, 20_000)
    p = rng.uniform(0.2, 0.8, 20_000)
    y = rng.random(20_000) < p + np.where(a == b, 0.1, -0.1)
    rules = {segment.rule for segment in cb.audit(y, p, {"a": a, "b": b}).segments}
    assert rules == {f"a = {i} and b = {j}" for i in (0, 1) for j in (0, 1)}


def test_a_calibrated_model_rarely_has_a_segment():
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 7])
        features = {f"x{i}": rng.normal(size=1_500) if i % 2 else rng.integers(0, 5, 1_500) for i in range(6)}
        p = expit(rng.normal(-1, 1, 1_500))
        hits += bool(cb.audit(rng.random(1_500) < p, p, features, random_state=seed).segments)
    assert hits <= 5  # P(more than 5 of 30 at 5 %) = 0.3 %


def test_a_shift_of_all_rows_is_one_segment():
    rng = np.random.default_rng(2)
    p = expit(rng.normal(-1, 1, 8_000))
    y = rng.random(8_000) < expit(np.log(p / (1 - p)) + 0.5)
    found = cb.audit(y, p, {"x": rng.normal(size=8_000)})
    assert found.segments[0].rule == "all rows"
    assert found.segments[0].share > 0.9


def test_missing_values_and_score_ranges_are_conditions():
    rng = np.random.default_rng(3)
    x = rng.normal(size=10_000)
    x[rng.random(10_000) < 0.2] = np.nan
    p = rng.uniform(0.1, 0.9, 10_000)
    y = rng.random(10_000) < np.clip(p + 0.15 * np.isnan(x), 0, 1)
    assert cb.audit(y, p, {"x": x}).segments[0].rule == "x is missing"
    y = rng.random(10_000) < np.clip(p - 0.15 * (p > 0.8), 0, 1)
    assert cb.audit(y, p, {"x": x}).segments[0].rule.startswith("score >= ")


def test_three_conditions_are_found_with_depth_3():
    rng = np.random.default_rng(4)
    a, b, c = (rng.integers(0, 3, 40_000) for _ in range(3))
    p = rng.uniform(0.2, 0.8, 40_000)
    y = rng.random(40_000) < np.where((a == 1) & (b == 2) & (c == 0), np.minimum(p + 0.2, 1), p)
    found = cb.audit(y, p, {"a": a, "b": b, "c": c}, depth=3)
    assert found.segments[0].rule == "a = 1 and b = 2 and c = 0"


def test_correlated_clusters_do_not_make_segments():
    hits = 0
    for seed in range(25):
        rng = np.random.default_rng([seed, 5])
        cluster = rng.integers(0, 200, 2_000)
        p = expit(rng.normal(0, 1, 2_000))
        common = rng.normal(size=200)[cluster]
        from scipy.special import ndtr

        y = ndtr(np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=2_000)) < p
        hits += bool(cb.audit(y, p, {"shop": (cluster % 7).astype(str)}, cluster=cluster).segments)
    assert hits <= 4


def test_frames_of_polars_and_pandas_and_mappings_agree():
    y, p, frame, _ = planted(6_000)
    expected = cb.audit(y, p, frame).to_dict()
    assert cb.audit(y, p, pl.from_pandas(frame)).to_dict() == expected
    assert cb.audit(y, p, {name: frame[name] for name in frame}).to_dict() == expected


def test_rows_that_are_dropped_take_their_features_with_them():
    y, p, frame, _ = planted(6_000)
    score = p.copy()
    score[::10] = np.nan
    kept = ~np.isnan(score)
    found = cb.audit(y, score, frame, missing="drop")
    assert found.n_rows == kept.sum()
    assert [segment.rule for segment in found.segments] == [
        segment.rule for segment in cb.audit(y[kept], p[kept], frame[kept]).segments
    ]
    assert any(note.code == "missing" for note in found.notes)


def test_the_frame_has_the_columns_of_the_contract():
    y, p, frame, _ = planted(8_000)
    found = cb.audit(y, p, frame)
    columns = ["rule", "n_rows", "predicted", "observed", "log_odds_error", "low", "high", "pvalue", "adjusted_pvalue"]
    assert list(found.to_frame())[:9] == columns
    assert json.loads(found.to_json())["segments"][0]["rule"] == found.segments[0].rule
    assert "log-odds error" in repr(found)
    assert sum(segment.share for segment in found.segments) == pytest.approx(1)


def test_hostile_names_stay_text():
    y, p, frame, _ = planted(8_000, error=2.0)
    frame["region"] = frame["region"].replace("south", "<script>alert(1)</script>\x1b[2J")
    found = cb.audit(y, p, frame)
    assert "\x1b" not in repr(found)
    assert "<script>" not in found._repr_html_()


@pytest.mark.parametrize("name", ["it's", 'a "b"', "x]"])
def test_features_keep_their_names(name):
    rng = np.random.default_rng(9)
    x, p = rng.integers(0, 2, 4_000), rng.uniform(0.3, 0.7, 4_000)
    y = rng.random(4_000) < p + np.where(x == 1, 0.2, 0)
    assert f"{name} = 1" in {segment.rule for segment in cb.audit(y, p, {name: x}).segments}
    assert "feature = 1" in {segment.rule for segment in cb.audit(y, p, x).segments}


def test_many_categories_share_a_condition():
    column = read(np.array([f"v{i % 50}" for i in range(1_000)] + ["common"] * 500), "x")
    feature = count_feature("x", column)
    assert feature.conditions[-1].text == "x is one of 21 rarer values"
    assert feature.encode(column)[0].max() == 30


@pytest.mark.parametrize(
    ("options", "words"),
    [({"depth": 4}, "depth"), ({"alpha": 2}, "alpha"), ({"groups": [1]}, "groups"), ({"confidence_level": 0}, "confi")],
)
def test_bad_options_are_refused(options, words):
    y, p, frame, _ = planted(500)
    with pytest.raises((cb.InputError, TypeError), match=words):
        cb.audit(y, p, frame, **options)


def test_features_of_another_length_are_refused():
    y, p, frame, _ = planted(500)
    with pytest.raises(cb.InputError, match="features"):
        cb.audit(y, p, frame[:-1])


@pytest.mark.parametrize("extreme", [np.inf, -np.inf, 1e308])
def test_infinite_and_huge_numbers_of_a_feature_are_numbers(extreme):
    """Warnings are errors here: differences of infinite quantiles are not numbers."""
    rng = np.random.default_rng(0)
    p, x = rng.uniform(0.2, 0.8, 6000), rng.random(6000)
    wrong = x > 0.8
    y = rng.random(6000) < p + np.where(wrong, 0.2, 0.0)
    x = np.where(wrong & (rng.random(6000) < 0.5), abs(extreme), np.where(x < 0.1, -abs(extreme), x))
    found = cb.audit(y, p, {"x": x if extreme > 0 else -x})
    assert found.segments
    assert "nan" not in str(found)


@pytest.mark.parametrize("min_rows", ["x", 0, -5, 1.5, True])
def test_the_smallest_segment_must_be_a_number_of_rows(min_rows):
    with pytest.raises(cb.InputError, match="min_rows must be a whole number of at least 1"):
        cb.audit([0, 1] * 50, [0.4, 0.6] * 50, {"x": [1, 2] * 50}, min_rows=min_rows)


def test_scores_that_are_hardly_above_zero_can_be_audited():
    y = np.arange(3000) % 2
    found = cb.audit(y, np.full(3000, 5e-324), {"x": np.arange(3000) % 3})
    assert found.segments


def codes(found):
    return [note.code for note in found.notes]


def test_a_matrix_of_features_is_read_by_columns():
    y, p, frame, _ = planted(4_000)
    matrix = frame[["age", "income"]].to_numpy()
    of_matrix = cb.audit(y, p, matrix, n_resamples=0)
    of_columns = cb.audit(y, p, [matrix[:, 0], matrix[:, 1]], n_resamples=0)
    assert of_matrix.to_dict() == of_columns.to_dict()
    assert of_matrix.n_features == 2


def test_features_that_say_little_are_noted():
    y, p, frame, _ = planted(4_000)
    features = {
        "age": frame["age"],
        "same": np.ones(len(y)),
        "also same": ["x"] * len(y),
        "empty": np.full(len(y), np.nan),
        "customer": [f"c{i}" for i in range(len(y))],
        "day": pd.date_range("2024-01-01", periods=len(y), freq="h"),
    }
    found = cb.audit(y, p, features, n_resamples=0)
    assert codes(found) == ["feature_empty", "feature_constant", "feature_dates", "feature_ids"]
    assert "2 features have one value only, which says nothing: same, also same." in repr(found)
    assert "Feature day holds dates" in found._repr_html_()
    assert codes(cb.audit(y, p, frame, n_resamples=0)) == []


def test_too_few_rows_for_a_search_are_noted():
    y, p, frame, _ = planted(150)
    found = cb.audit(y, p, frame, n_resamples=0)
    assert codes(found) == ["few_rows"]
    assert "150 rows are too few for a search: a segment must have 50 of the 75 of a half." in repr(found)
    assert codes(cb.audit(y, p, frame, n_resamples=0, min_rows=10)) == []


def test_the_text_says_whose_rows_the_numbers_are():
    y, p, frame, _ = planted(8_000)
    found = cb.audit(y, p, frame, depth=1, n_resamples=0)
    assert "rules of up to 1 condition;" in repr(found)
    assert "the other numbers are of the half that did not choose a rule" in repr(found)
    none = cb.audit(y, np.full(len(y), y.mean()), {"x": np.arange(len(y)) % 2}, n_resamples=0)
    assert not none.segments
    assert "half" not in repr(none)
