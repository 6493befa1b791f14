"""Audits of each kind of forecast that has residuals, with the options about rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import calibrant as cb
from calibrant.kinds.base import kind_of
from tests.kinds.cases import AUDITED, KINDS, draw


def features(n, seed=0):
    rng = np.random.default_rng([seed, 3])
    return pd.DataFrame({"region": rng.choice(["north", "south"], n), "age": rng.integers(18, 90, n)})


def forecasts(kind, n=8_000, seed=0):
    """Return outcomes, forecasts and features of a model that underestimates (or errs) in the south from age 65 on."""
    rng, frame = np.random.default_rng([seed, 1]), features(n, seed)
    off = ((frame["region"] == "south") & (frame["age"] >= 65)).to_numpy()
    if kind == "point":
        prediction = rng.normal(size=n)
        return prediction + 0.8 * off + rng.normal(size=n), cb.Point(prediction), frame
    if kind in ("multiclass", "ordinal"):
        proba = rng.dirichlet([1, 1, 1], n)
        y = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        wrong = off & (rng.random(n) < 0.4)
        if kind == "ordinal":
            return np.where(wrong, 2, y), cb.Ordinal(proba), frame
        return np.where(wrong, (y + 1) % 3, y), proba, frame
    assert kind == "binary", f"a case of {kind} is missing"
    logit = rng.normal(-1, 1, n)
    return rng.random(n) < expit(logit + 0.9 * off), expit(logit), frame


each_audited = pytest.mark.parametrize("kind", AUDITED)


@each_audited
def test_a_planted_segment_is_found_for_each_kind(kind):
    found = cb.audit(*forecasts(kind))
    best = found.segments[0]
    assert (found.kind, best.terms) == (kind, found.terms)
    assert "region = 'south'" in best.rule
    assert "age >= 6" in best.rule
    assert best.direction == ("overestimates" if kind == "multiclass" else "underestimates")
    error = kind_of(kind).optional("audit.AUDIT").terms.error
    assert list(found.to_frame())[:7] == ["rule", "n_rows", "predicted", "observed", error, "low", "high"]
    assert found.to_dict()["segments"][0][error] == best.error
    assert best.low < best.error < best.high
    assert "top label" in repr(found) if kind == "multiclass" else True


def test_errors_of_points_are_predictions_less_outcomes():
    y, forecast, frame = forecasts("point")
    best = cb.audit(y, forecast, frame).segments[0]
    assert best.mean_error == pytest.approx(best.predicted - best.observed)
    assert best.low < -0.8 < best.high
    with pytest.raises(AttributeError, match="mean_error"):
        _ = best.log_odds_error


def test_a_predicted_label_can_be_a_condition():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet([1, 1, 1], 9_000)
    y = (proba.cumsum(axis=1) > rng.random((9_000, 1))).argmax(axis=1)
    top = proba.argmax(axis=1)
    y = np.where((top == 2) & (rng.random(9_000) < 0.3), 0, y)
    frame = pd.DataFrame(proba, columns=["cat", "dog", "bird"])
    found = cb.audit(np.array(["cat", "dog", "bird"])[y], frame, {"x": rng.normal(size=9_000)})
    assert found.segments[0].rule.startswith("predicted label = 'bird'")
    same = cb.audit(y, proba, {"x": rng.normal(size=9_000)}, classes=[0, 1, 2])
    assert same.segments[0].rule.startswith("predicted label = 2")


@each_audited
def test_equal_weights_change_nothing_but_degrees_of_freedom(kind):
    y, forecast, frame = forecasts(kind)
    plain = cb.audit(y, forecast, frame, n_resamples=0)
    weighted = cb.audit(y, forecast, frame, sample_weight=np.full(len(frame), 3.0), n_resamples=0)
    assert weighted.segments[0].rule == plain.segments[0].rule
    assert weighted.segments[0].error == pytest.approx(plain.segments[0].error, rel=1e-4)
    assert weighted.segments[0].predicted == pytest.approx(plain.segments[0].predicted)


@each_audited
def test_frequencies_count_rows(kind):
    y, forecast, frame = forecasts(kind, 4_000)
    found = cb.audit(y, forecast, frame, frequency=np.full(4_000, 2), n_resamples=0)
    assert found.n_rows == 8_000
    assert found.segments[0].n_rows % 2 == 0
    assert found.segments[0].pvalue < cb.audit(y, forecast, frame, n_resamples=0).segments[0].pvalue


@each_audited
def test_clusters_that_repeat_rows_add_no_evidence(kind):
    y, forecast, frame = forecasts(kind, 2_000)
    again = np.repeat(np.arange(2_000), 5)
    repeated = forecast[again]
    own = cb.audit(y, forecast, frame, n_resamples=0)
    clustered = cb.audit(y[again], repeated, frame.iloc[again], cluster=again, n_resamples=0)
    naive = cb.audit(y[again], repeated, frame.iloc[again], n_resamples=0)
    own, clustered, naive = (np.log(min(s.pvalue for s in a.segments)) for a in (own, clustered, naive))
    assert naive < 2 * clustered
    assert clustered > 1.6 * own  # other halves of the rows


@each_audited
def test_missing_values_are_dropped_and_counted(kind):
    y, forecast, frame = forecasts(kind, 3_000)
    y = np.asarray(y, dtype=float)
    y[::10] = np.nan
    with pytest.raises(cb.InputError, match="missing"):
        cb.audit(y, forecast, frame)
    found = cb.audit(y, forecast, frame, missing="drop", n_resamples=0)
    assert found.n_rows == 2_700
    assert [note.count for note in found.notes if note.code == "missing"] == [300]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in AUDITED])
def test_forecasts_without_residuals_are_refused(kind):
    y, right, _, make = draw(kind, 100)
    kinds = " or ".join(map(repr, AUDITED))
    with pytest.raises(cb.InputError, match=f"forecast must be of kind {kinds}; got the kind '{kind}'") as caught:
        cb.audit(y, make(right), {"x": np.arange(100)})
    assert kind_of(kind).optional("audit.NOT_AUDITED") in str(caught.value)


def test_several_models_are_refused():
    with pytest.raises(cb.InputError, match="one model"):
        cb.audit([0, 1] * 50, {"a": np.full(100, 0.5)}, {"x": np.arange(100)})


@pytest.mark.parametrize("kind", [kind for kind in AUDITED if kind != "binary"])
def test_options_of_other_kinds_are_refused(kind):
    y, forecast, frame = forecasts(kind, 500)
    with pytest.raises(cb.InputError, match="pos_label"):
        cb.audit(y, forecast, frame, pos_label=1)
    with pytest.raises(cb.InputError, match="classes"):
        cb.audit(np.zeros(500), np.full(500, 0.5), frame, classes=[0, 1])


def test_a_feature_may_have_the_name_of_the_score():
    y, p, frame = forecasts("binary", 4_000)
    found = cb.audit(y, p, {"score": frame["age"], "region": frame["region"]})
    assert "score" in found.segments[0].rule
    assert "forecast" not in found.segments[0].rule
    rng = np.random.default_rng(0)
    y = rng.random(4_000) < np.where(p > 0.4, p / 2, p)
    assert "forecast's score" in cb.audit(y, p, {"score": frame["age"]}).segments[0].rule


def test_skewed_errors_with_unequal_weights_do_not_make_segments():
    hits = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 99])
        n = 3_000
        frame = {f"x{i}": rng.normal(size=n) if i % 2 else rng.integers(0, 6, n).astype(str) for i in range(5)}
        m = rng.normal(size=n)
        y = m + rng.lognormal(0, 1.2, n) - np.exp(0.72)
        weight = rng.lognormal(0, 1, n)
        found = cb.audit(y, cb.Point(m), frame, random_state=seed, n_resamples=0, sample_weight=weight)
        hits += bool(found.segments)
    assert hits <= 2  # without the skewness of all rows about a third of the data sets had segments


def test_impossible_outcomes_are_found():
    rng = np.random.default_rng(3)
    p = (rng.random(2_000) < 0.5).astype(float)
    found = cb.audit(rng.random(2_000) < 0.5, p, {"x": rng.normal(size=2_000)})
    assert {segment.rule for segment in found.segments} == {"score = 0", "score = 1"}


@pytest.mark.parametrize("count", [1, 5, 15])
def test_too_few_clusters_are_refused(count):
    y, p, frame = forecasts("binary", 600)
    with pytest.raises(cb.InputError, match="at least 20"):
        cb.audit(y, p, frame, cluster=np.arange(600) % count)


@pytest.mark.parametrize("n", [1, 2, 10, 60])
def test_few_rows_have_no_segment(n):
    y, p, frame = forecasts("binary", n)
    assert cb.audit(y, p, frame).segments == ()
