"""E-processes: exact expectations of e-values, error rates of streams, and what the evidence remembers."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom

import calibrant as cb
from calibrant.inference import EProcess, Evidence, change_point, dispersion, e_bh, log_mean_e, pit_table
from calibrant.inference.sequential.e_values import Contrast, any_dependence, independent_rows, window_effects
from calibrant.inference.sequential.windows import Window

SCORES = np.array([0.02, 0.1, 0.4, 0.8])
COUNTS = np.array([6, 4, 3, 2])


def outcomes():
    """Return every possible k per score of a small window."""
    return np.array(list(itertools.product(*(range(n + 1) for n in COUNTS))), dtype=float)


def expectation(log_e, rate):
    """Return the exact mean of an e-value over independent outcomes with these event rates."""
    weight = np.prod(binom.pmf(outcomes(), COUNTS, rate), axis=1)
    assert weight.sum() == pytest.approx(1)
    return float(np.sum(weight * np.exp(log_e)))


@settings(deadline=None, max_examples=60)
@given(
    shift=st.floats(-1.5, 1.5),
    slope=st.floats(0.4, 2.0),
    margin=st.sampled_from([0.0, 0.1, 0.3]),
    truth=st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    effect=st.sampled_from([0.0, 0.2]),
)
def test_no_e_value_has_a_mean_above_1_within_the_margin(shift, slope, margin, truth, effect):
    k = outcomes()
    window = Window.from_counts(SCORES, np.broadcast_to(COUNTS, k.shape), k, margin=margin)
    q = np.broadcast_to(expit(slope * logit(SCORES) + shift), k.shape).copy()
    nearest = np.clip(q, window.low, window.high)
    rate = expit(logit(SCORES) + margin * np.array(truth))
    contrast = Contrast.between(window, q, nearest)
    for log_e in (
        independent_rows(window, q, nearest),
        any_dependence(contrast, np.full(len(k), 2.0)),
        window_effects(contrast, effect),
    ):
        assert expectation(log_e, rate) <= 1 + 1e-9


@pytest.mark.parametrize("effect", [0.1, 0.2])
@pytest.mark.parametrize("shift", [-0.5, 0.5])
def test_effects_of_a_window_keep_the_mean_at_most_1_where_they_are_allowed_for(shift, effect):
    k = outcomes()
    window = Window.from_counts(SCORES, np.broadcast_to(COUNTS, k.shape), k, margin=0.0)
    q = np.broadcast_to(expit(logit(SCORES) + shift), k.shape).copy()
    contrast = Contrast.between(window, q, SCORES)
    for log_e in (window_effects(contrast, effect), any_dependence(contrast, np.full(len(k), 1.0))):
        mean = np.mean([expectation(log_e, SCORES * (1 + sign * effect)) for sign in (-1, 1)])
        assert mean <= 1 + 1e-9
    independent = independent_rows(window, q, np.broadcast_to(SCORES, k.shape))
    assert np.mean([expectation(independent, SCORES * (1 + sign * effect)) for sign in (-1, 1)]) > 1


def test_a_bet_never_loses_more_than_all():
    for k in ([0, 0, 0, 0], COUNTS):
        window = Window.from_counts(SCORES, COUNTS, np.array(k), margin=0.1)
        for shift in (-3.0, 3.0):
            q = expit(logit(SCORES) + shift)
            contrast = Contrast.between(window, q, np.clip(q, window.low, window.high))
            assert np.exp(any_dependence(contrast, np.asarray(1e-9))) >= 0.05 - 1e-12
            assert contrast.value >= -contrast.worst - 1e-12


def streams(rate, *, size, effect, shift=0.0, n_streams=400, n_windows=150, seed=0, dependence="window", margin=0.0):
    """Return how many streams alarm at alpha 0.05."""
    rng = np.random.default_rng(seed)
    score = expit(logit(rate) + np.linspace(-1.5, 1.5, 7))
    process = EProcess(margin=margin, dependence=dependence)
    evidence = process.start((n_streams,))
    for _ in range(n_windows):
        n = rng.multinomial(size, np.full(7, 1 / 7), size=n_streams)
        factor = 1 + effect * rng.choice([-1, 1], size=(n_streams, 1))
        k = rng.binomial(n, np.minimum(expit(logit(score) + shift) * factor, 1))
        evidence = process.update_window(evidence, Window.from_counts(score, n, k, margin=margin))
    return np.mean(evidence.log_e_max >= np.log(20))


@pytest.mark.parametrize("dependence", ["window", "any", "independent"])
def test_a_calibrated_stream_rarely_alarms(dependence):
    assert streams(0.1, size=100, effect=0.0, dependence=dependence) <= 0.07


def test_effects_of_a_day_do_not_alarm_by_default_and_do_when_rows_are_declared_independent():
    assert streams(0.2, size=2_000, effect=0.2) <= 0.07
    assert streams(0.2, size=2_000, effect=0.2, dependence="any") <= 0.07
    assert streams(0.2, size=2_000, effect=0.2, dependence="independent") > 0.5


@pytest.mark.parametrize("dependence", ["window", "any", "independent"])
def test_a_stream_at_the_margin_rarely_alarms_and_one_beyond_it_does(dependence):
    at_margin = {"size": 1_000, "effect": 0.0, "dependence": dependence, "margin": 0.1}
    assert streams(0.2, shift=0.1, **at_margin) <= 0.07
    assert streams(0.2, shift=0.5, **at_margin) == 1


def drifting(process, tables):
    evidence = process.start()
    for table in tables:
        evidence = process.update(evidence, table)
    return evidence


def test_evidence_survives_json_exactly():
    rng = np.random.default_rng(3)
    tables = [cb.ScoreTable.from_arrays(rng.random(50) < 0.3, rng.random(50).round(2)) for _ in range(6)]
    process = EProcess()
    evidence = drifting(process, tables[:5])
    again = Evidence.from_dict(json.loads(json.dumps(evidence.to_dict())))
    assert process.update(again, tables[5]).to_dict() == process.update(evidence, tables[5]).to_dict()


def test_an_empty_window_adds_no_evidence():
    evidence = drifting(EProcess(), [cb.ScoreTable.empty()] * 5)
    assert evidence.n_windows == 5
    assert evidence.log_e == pytest.approx(0)


def test_scores_of_0_and_1_that_keep_their_word_are_no_evidence():
    table = cb.ScoreTable.from_counts([0.0, 1.0], [500, 500], [0, 500])
    assert drifting(EProcess(dependence="independent"), [table] * 50).log_e <= 1e-9


def test_scores_of_0_with_events_are_evidence():
    table = cb.ScoreTable.from_counts([0.0, 0.5], [500, 500], [25, 250])
    assert drifting(EProcess(), [table] * 30).log_e > np.log(1e3)


@pytest.mark.parametrize("dependence", ["window", "any", "independent"])
def test_the_confidence_sequence_holds_the_true_shift(dependence):
    rng = np.random.default_rng(11)
    score = np.linspace(0.05, 0.6, 12)
    process = EProcess(dependence=dependence)
    evidence = process.start()
    missed = 0
    for _ in range(120):
        table = cb.ScoreTable.from_counts(score, np.full(12, 30), rng.binomial(30, expit(logit(score) + 0.4)))
        evidence = process.update(evidence, table)
        low, high = evidence.shifts.interval(0.05)
        missed += not low <= 0.4 <= high
    assert missed == 0
    assert high - low < 0.5
    assert float(evidence.shifts.estimate) == pytest.approx(0.4, abs=0.1)


def test_no_shift_is_left_when_the_shift_changes():
    up, down = (cb.ScoreTable.from_counts([0.3], [2_000], [k]) for k in (1_200, 200))
    low, high = drifting(EProcess(dependence="independent"), [up] * 20 + [down] * 20).shifts.interval(0.05)
    assert np.isnan([low, high]).all()


def test_change_points_are_found_and_their_interval_covers():
    rng = np.random.default_rng(5)
    covered, errors = 0, []
    for _ in range(300):
        n, p = np.full(80, 400), 0.1
        k = rng.binomial(n, np.where(np.arange(80) < 50, p, expit(logit(p) + 0.4)))
        information = n * p * (1 - p)
        found = change_point(k - n * p, information, information)
        covered += found.low <= 50 <= found.high
        errors.append(abs(found.index - 50))
    assert covered / 300 >= 0.92
    assert np.median(errors) <= 2


def test_one_window_has_no_change_point():
    assert change_point(np.ones(1), np.ones(1), np.ones(1)) is None


def test_windows_that_vary_too_much_are_noticed_and_a_drift_is_not():
    rng = np.random.default_rng(6)
    n, p = np.full(200, 1_000), 0.1
    expected, information = n * p, n * p * (1 - p)
    quiet = [dispersion(rng.binomial(n, p) - expected, information, expected).pvalue for _ in range(400)]
    assert np.mean(np.array(quiet) < 0.05) <= 0.08
    noisy = dispersion(rng.binomial(n, p * (1 + 0.2 * rng.choice([-1, 1], 200))) - expected, information, expected)
    assert noisy.pvalue < 1e-6
    assert noisy.window_effect == pytest.approx(0.2, abs=0.05)
    drift = dispersion(rng.binomial(n, np.linspace(p, 2 * p, 200)) - expected, information, expected)
    assert drift.pvalue > 1e-3


def test_rare_events_do_not_look_overdispersed():
    rng = np.random.default_rng(7)
    n, p = np.full(300, 40), 0.01
    pvalues = [dispersion(rng.binomial(n, p) - n * p, n * p * (1 - p), n * p).pvalue for _ in range(400)]
    assert np.mean(np.array(pvalues) < 0.05) <= 0.08


def test_e_bh_rejects_what_the_definition_rejects():
    rng = np.random.default_rng(8)
    for _ in range(200):
        log_e = rng.normal(3, 2, 6)
        weights = rng.dirichlet(np.ones(6))
        chosen = e_bh(log_e, weights, 0.1)
        best = max(
            (
                [i for i in range(6) if np.exp(log_e[i]) * weights[i] >= 1 / (0.1 * k)]
                for k in range(1, 7)
                if sum(np.exp(log_e[i]) * weights[i] >= 1 / (0.1 * k) for i in range(6)) >= k
            ),
            key=len,
            default=[],
        )
        assert np.flatnonzero(chosen).tolist() == best
        if chosen.any():
            assert np.sum(weights * np.exp(log_e)) >= 1 / 0.1 - 1e-9


def test_the_mean_of_e_values_is_that_of_their_values():
    assert log_mean_e(np.log([1.0, 3.0])) == pytest.approx(np.log(2))


def test_uniform_pit_values_are_calibrated_and_others_are_not():
    rng = np.random.default_rng(9)
    process = EProcess()
    uniform = drifting(process, [pit_table(rng.random(500)) for _ in range(60)])
    narrow = drifting(process, [pit_table(rng.beta(0.6, 0.6, 500)) for _ in range(60)])
    assert uniform.log_e < np.log(20)
    assert narrow.log_e > np.log(20)


@pytest.mark.parametrize(
    "options", [{"margin": -1}, {"margin": "x"}, {"dependence": "none"}, {"window_effect": np.nan}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(cb.InputError, match=next(iter(options))):
        EProcess(**options)
