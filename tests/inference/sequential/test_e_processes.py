"""E-processes: exact expectations of e-values, error rates of streams, and what the evidence remembers."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom

import calibrant as cb
from calibrant.inference import EProcess, Evidence, WindowSums, change_point, dispersion, e_bh, log_mean_e, pit_table
from calibrant.inference.sequential.e_values import Contrast, Window, any_dependence, independent_rows, window_effects

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
def test_common_events_are_as_much_evidence_as_rare_ones(dependence):
    """Exchanging the event and its absence changes nothing: a doubled share of failures is found as soon."""
    rng = np.random.default_rng(3)
    score = np.array([0.01, 0.05, 0.1, 0.3])
    n = np.full(4, 60)
    rare = [cb.ScoreTable.from_counts(score, n, rng.binomial(n, 1.8 * score)) for _ in range(25)]
    common = [cb.ScoreTable.from_counts(1 - score[::-1], n, (n - t.k)[::-1]) for t in rare]
    found = [drifting(EProcess(dependence=dependence), tables) for tables in (rare, common)]
    assert found[0].log_e > np.log(50)
    assert found[1].log_e == pytest.approx(found[0].log_e, rel=1e-6)


def test_windows_of_common_events_vary_as_those_of_rare_ones():
    rng = np.random.default_rng(4)
    n, p = np.full(200, 400), np.full(200, 0.05)
    k = rng.binomial(n, p * (1 + 0.4 * rng.choice([-1, 1], 200)))
    rare, common = dispersion(sums(n, p, k)), dispersion(sums(n, 1 - p, n - k))
    assert rare.window_effect > 0.25
    assert common.window_effect == pytest.approx(rare.window_effect)
    assert common.pvalue == pytest.approx(rare.pvalue)


@pytest.mark.parametrize("dependence", ["window", "any", "independent"])
@pytest.mark.parametrize("shift", [0.0, 0.0125, 0.4, 0.425, 2.6])
def test_the_confidence_sequence_holds_the_true_shift(dependence, shift):
    rng = np.random.default_rng(11)
    score = np.linspace(0.05, 0.6, 6)
    process = EProcess(dependence=dependence)
    evidence = process.start()
    for _ in range(150):
        table = cb.ScoreTable.from_counts(score, np.full(6, 2_000), rng.binomial(2_000, expit(logit(score) + shift)))
        evidence = process.update(evidence, table)
        low, high = evidence.shifts.interval(0.05)
        assert low <= shift <= high
    assert high - low <= 1.5
    assert float(evidence.shifts.estimate) == pytest.approx(shift, abs=0.05)


def test_scores_of_almost_0_do_not_refute_that_nothing_is_shifted():
    table = cb.ScoreTable.from_counts([0.0, 0.01], [10_000_000, 100], [0, 1])
    for dependence in ("window", "any", "independent"):
        low, high = drifting(EProcess(dependence=dependence), [table] * 60).shifts.interval(0.05)
        assert low <= 0 <= high


def test_no_shift_is_left_when_the_shift_changes():
    up, down = (cb.ScoreTable.from_counts([0.3], [2_000], [k]) for k in (1_200, 200))
    low, high = drifting(EProcess(dependence="independent"), [up] * 20 + [down] * 20).shifts.interval(0.05)
    assert np.isnan([low, high]).all()


def test_an_interval_needs_one_stream_and_a_level():
    with pytest.raises(cb.InputError, match="one stream"):
        EProcess().start((3,)).shifts.interval(0.05)
    with pytest.raises(cb.InputError, match="alpha"):
        EProcess().start().shifts.interval(2)


def test_weights_are_refused():
    table = cb.ScoreTable.from_arrays([0, 1], [0.2, 0.8], sample_weight=[1.5, 2.0])
    with pytest.raises(cb.InputError, match="counts"):
        EProcess().update(EProcess().start(), table)


@pytest.mark.parametrize("dependence", ["window", "any", "independent"])
def test_huge_windows_neither_crash_nor_alarm_by_rounding(dependence):
    table = cb.ScoreTable.from_counts([0.3, 0.5], [10**15, 10**15], [3 * 10**14, 5 * 10**14])
    assert drifting(EProcess(margin=0.0, dependence=dependence), [table] * 150).log_e < 0.1


def sums(n, p, k):
    n = np.asarray(n, dtype=float)
    return WindowSums.from_columns(n, k, n * p, n * p * (1 - p))


@pytest.mark.parametrize(
    ("rows", "p", "before", "after"),
    [(400, 0.1, 0.0, 0.4), (100, 0.01, 0.0, 1.5), (400, 0.01, 2.0, 2.3), (400, 0.9, -1.0, -1.3), (30, 0.01, 0.0, 1.5)],
)
def test_change_points_are_found_and_their_interval_covers(rows, p, before, after):
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        shift = np.where(np.arange(80) < 50, before, after)
        found = change_point(sums(np.full(80, rows), p, rng.binomial(rows, expit(logit(p) + shift))))
        covered += found.low <= 50 <= found.high
    assert covered / 300 >= 0.92


def test_a_clear_change_is_found_at_its_window():
    k = np.where(np.arange(3_000) < 2_000, 100, 200)
    found = change_point(sums(np.full(3_000, 1_000), 0.1, k))
    assert found.low <= 2_000 <= found.high
    assert abs(found.index - 2_000) <= 3
    assert found.high - found.low <= 6


def test_one_window_has_no_change_point():
    assert change_point(sums([100], 0.1, [10])) is None


def test_windows_are_summed_from_tables():
    tables = [cb.ScoreTable.from_counts([0.2, 0.5], [10, 20], [2, 9]), cb.ScoreTable.empty()]
    found = WindowSums.from_tables(tables)
    assert found.rows.tolist() == [30, 0]
    assert found.expected.tolist() == [12, 0]
    assert found.information.tolist() == pytest.approx([6.6, 0])
    with pytest.raises(cb.InputError):
        WindowSums.from_columns([1.0], [np.nan], [0.1], [0.1])


@pytest.mark.parametrize(
    ("rows", "p", "shift"),
    [(1_000, 0.1, 0.0), (40, 0.01, 0.0), (1_000, 0.9, -1.0), (1_000, 0.5, -1.0), (1_000, 0.3, 1.0), (500, 1e-3, 0.0)],
)
def test_windows_of_independent_rows_rarely_look_overdispersed(rows, p, shift):
    rng = np.random.default_rng(6)
    pvalues = []
    for _ in range(300):
        k = rng.binomial(rows, expit(logit(p) + shift), size=400)
        pvalues.append(dispersion(sums(np.full(400, rows), p, k)).pvalue)
    assert np.mean(np.array(pvalues) < 0.05) <= 0.08


def test_uneven_windows_without_effects_show_none():
    rng = np.random.default_rng(7)
    rows = np.concatenate([rng.integers(1, 20, 100), rng.integers(1_000, 100_000, 100)])[rng.permutation(200)]
    for p in (0.1, 0.01):
        found = [dispersion(sums(rows, p, rng.binomial(rows, p))) for _ in range(100)]
        assert np.mean([each.pvalue < 0.05 for each in found]) <= 0.1
        assert np.quantile([each.window_effect for each in found], 0.9) < 0.05


@pytest.mark.parametrize("change", [100, 101])
def test_effects_of_windows_are_noticed_and_a_change_is_not(change):
    rng = np.random.default_rng(6)
    n, p = np.full(200, 1_000), 0.1
    noisy = dispersion(sums(n, p, rng.binomial(n, p * (1 + 0.2 * rng.choice([-1, 1], 200)))))
    assert noisy.pvalue < 1e-6
    assert noisy.window_effect == pytest.approx(0.2, abs=0.05)
    changed = dispersion(sums(n, p, rng.binomial(n, np.where(np.arange(200) < change, p, 2 * p))))
    assert changed.pvalue > 1e-3
    assert changed.correlation > 0.5
    drift = dispersion(sums(n, p, rng.binomial(n, np.linspace(p, 2 * p, 200))))
    assert drift.pvalue > 1e-3


def test_effects_as_stated_are_not_reported():
    rng = np.random.default_rng(8)
    n, p = np.full(200, 5_000), 0.1
    found = dispersion(sums(n, p, rng.binomial(n, p * (1 + 0.2 * rng.choice([-1, 1], 200)))), window_effect=0.2)
    assert found.pvalue > 0.01


def test_few_windows_have_no_dispersion():
    assert dispersion(sums(np.full(12, 100), 0.1, np.full(12, 10))) is None


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
    process = EProcess(dependence="independent")
    uniform, narrow = process.start(), process.start()
    for _ in range(60):
        uniform = process.update_pit(uniform, rng.random(500))
        narrow = process.update_pit(narrow, rng.beta(0.6, 0.6, 500))
    assert uniform.log_e < np.log(20)
    assert narrow.log_e > np.log(20)


def test_counts_of_pit_values_have_the_likelihood_of_their_bins():
    process = EProcess(margin=0.0, dependence="independent")
    first = np.array([0.05, 0.15, 0.15, 0.65, 0.95, 0.98])
    evidence = process.update_pit(process.start(), first)
    mean = 0.0
    for bin_ in range(10):  # of one more value
        after = process.update_pit(evidence, np.array([(bin_ + 0.5) / 10]))
        mean += np.exp(after.log_e) / 10
    assert mean <= np.exp(evidence.log_e) + 1e-9


@pytest.mark.parametrize("dependence", ["window", "any"])
def test_pit_values_need_independent_rows(dependence):
    with pytest.raises(cb.InputError, match="independent"):
        EProcess(dependence=dependence).update_pit(EProcess().start(), np.array([0.5]))
    with pytest.raises(cb.InputError, match="n_bins"):
        pit_table(np.array([0.5]), n_bins=1)


def test_e_bh_refuses_what_it_cannot_rank():
    with pytest.raises(cb.InputError, match="NaN"):
        e_bh(np.array([np.nan, 3.0]), np.array([0.5, 0.5]), 0.05)
    with pytest.raises(cb.InputError, match="weights"):
        e_bh(np.array([3.0, 3.0]), np.array([1.0, 1.0]), 0.05)


@pytest.mark.parametrize(
    "options", [{"margin": -1}, {"margin": "x"}, {"dependence": "none"}, {"window_effect": np.nan}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(cb.InputError, match=next(iter(options))):
        EProcess(**options)
