"""Heterogeneity between groups: against slow oracles, and error rates by simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit, logit

import calibrant as cb
from calibrant.inference.heterogeneity import MeanShifts, Moments, estimate_heterogeneity, tails
from calibrant.inference.log_odds_heterogeneity import log_odds_heterogeneity, mean_shift_over_clusters
from calibrant.inference.log_odds_shifts import CommonLine, LogOddsShifts, common_line, cumulants
from calibrant.inference.mean_error_heterogeneity import mean_error_heterogeneity
from calibrant.inference.table_sample import TableSample
from calibrant.kinds.base import kind_of
from calibrant.tables.mean_table import MeanTable


def draw(rng, groups, rows, rate, sd=0.0, shift=0.0, slope=1.0, mean_sd=0.0):
    """Return scores, outcomes and groups; the true log-odds have a common shift and slope."""
    group = np.repeat(np.arange(groups), rows)
    x = logit(rate) + rng.normal(size=group.size) + rng.normal(0, mean_sd, groups)[group]
    true = logit(rate) + shift + slope * (x - logit(rate)) + rng.normal(0, sd, groups)[group]
    return expit(x), rng.random(group.size) < expit(true), group


def samples(p, y, group, **options):
    """Return the samples of groups and of all rows."""
    tables = {g: cb.ScoreTable.from_arrays(y[group == g], p[group == g]) for g in np.unique(group).tolist()}
    return {g: TableSample(t) for g, t in tables.items()}, TableSample(cb.ScoreTable.from_arrays(y, p))


def effects_of(x, y, start, line):
    return LogOddsShifts(x, np.ones(x.size), y.astype(float), np.asarray(start), line)


def test_cumulants_are_those_of_the_binomial_distribution():
    """Central moments by enumeration."""
    n, q = 7, 0.23
    k = np.arange(n + 1)
    share = stats.binom.pmf(k, n, q)
    m = [float(np.sum(share * (k - n * q) ** j)) for j in range(7)]
    known = [n * q, m[2], m[3], m[4] - 3 * m[2] ** 2, m[5] - 10 * m[3] * m[2]]
    known.append(m[6] - 15 * m[4] * m[2] - 10 * m[3] ** 2 + 30 * m[2] ** 3)
    assert [float(each) for each in cumulants(np.array(n), np.array(q))] == pytest.approx(known)


def test_moments_of_the_statistic_without_fitted_parameters_by_enumeration():
    """With a fitted shift of many rows the correction vanishes: the moments are those of all outcomes."""
    x = np.array([-1.0, 0.2, 0.5, -0.4, 0.1])
    start = np.array([0, 3])
    q = expit(x)
    outcomes = np.array(list(itertools.product([0, 1], repeat=5)), dtype=float)
    chance = np.prod(np.where(outcomes == 1, q, 1 - q), axis=1)
    sums = np.add.reduceat(outcomes - q, start, axis=1)
    variance = np.add.reduceat(q * (1 - q), start)
    u = np.sum(sums**2 - variance, axis=1)
    score = (outcomes - q).sum(axis=1)
    b = np.sum(chance * u * score) / np.sum(chance * score**2)  # the regression of U on the score, which is fitted
    left = u - b * score
    effects = effects_of(x, np.zeros(5), start, CommonLine(0.0, 1.0, 0.0, False))
    found = effects.moments(0.0)
    lost = 2 * np.sum(variance**2) - 2 * (
        np.sum(variance**2) - 2 * np.sum(variance**3) / variance.sum() + (np.sum(variance**2) / variance.sum()) ** 2
    )
    assert found.variance == pytest.approx(float(np.sum(chance * left**2)) - lost)


def test_marginal_moments_agree_with_integration():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(-1, 1, 20))
    effects = effects_of(x, rng.random(20) < expit(x), [0], CommonLine(0.0, 1.0, 0.0, False))
    counts = effects._marginal(0.7, 0.2)

    def over(function):
        return integrate.quad(lambda u: function(x + 0.2 + 0.7 * u) * stats.norm.pdf(u), -9, 9)[0]

    mean = over(lambda eta: expit(eta).sum())
    square = over(lambda eta: (expit(eta) * (1 - expit(eta))).sum() + (expit(eta).sum() - mean) ** 2)
    assert counts.mean[0] == pytest.approx(mean, rel=1e-6)
    assert counts.variance[0] == pytest.approx(square, rel=1e-5)


def test_the_shift_of_a_group_given_its_events_agrees_with_integration():
    rng = np.random.default_rng(1)
    x = np.sort(rng.normal(-1, 1, 40))
    y = rng.random(40) < expit(x + 0.8)
    effects = effects_of(x, y, [0], CommonLine(0.0, 1.0, 0.0, False))
    mean, variance = effects._given_events(0.6, 0.1, np.array([0]))

    def density(u):
        eta = x + u
        return math.exp(float(np.sum(y * eta - np.logaddexp(0, eta))) - (u - 0.1) ** 2 / (2 * 0.6**2) + 20)

    mass = integrate.quad(density, -4, 4)[0]
    expected = integrate.quad(lambda u: (u - 0.1) * density(u), -4, 4)[0] / mass
    square = integrate.quad(lambda u: (u - 0.1) ** 2 * density(u), -4, 4)[0] / mass
    assert mean[0] == pytest.approx(expected, abs=1e-3)
    assert variance[0] == pytest.approx(square - expected**2, rel=1e-2)


def test_estimates_of_groups_are_maximum_likelihood_shifts():
    rng = np.random.default_rng(2)
    p, y, group = draw(rng, 8, 60, 0.3, 0.5)
    h = log_odds_heterogeneity(*samples(p, y, group), 0.95)
    line = common_line(np.sort(logit(p)), np.ones(p.size), y[np.argsort(p)].astype(float))
    for g in range(8):
        x, k = logit(p[group == g]), y[group == g].sum()
        at_slope = line(x) - line.shift
        shift = optimize.brentq(lambda d, k=k, x=at_slope: k - expit(x + d).sum(), -5, 5)
        assert h.groups[g].estimate == pytest.approx(shift, abs=1e-2)  # neighbouring scores are merged


def test_a_group_without_events_has_no_lower_limit():
    p = np.repeat([0.2, 0.3, 0.4], 40)
    y = np.concatenate([np.zeros(40), np.arange(80) % 3 == 0])
    h = log_odds_heterogeneity(*samples(p, y.astype(bool), np.repeat([0, 1, 2], 40)), 0.95)
    assert h.groups[0].estimate == h.groups[0].low == -math.inf
    assert -3 < h.groups[0].high < 0
    assert math.isfinite(h.groups[0].shrunken_low)


@pytest.mark.parametrize(
    ("groups", "rows", "rate"), [(10, 5, 0.5), (10, 500, 0.05), (100, 5, 0.05), (100, 5, 0.005), (2000, 5, 0.05)]
)
def test_size_beside_a_common_shift_and_slope(groups, rows, rate):
    """At most 5 % plus three standard errors, of 150 data sets; all scores have a shift of 0.3 and a slope of 0.7."""
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(150):
        p, y, group = draw(rng, groups, rows, rate, 0.0, 0.3, 0.7, mean_sd=0.5)
        order = np.lexsort((p, group))
        x, k, start = logit(p)[order], y[order].astype(float), np.arange(groups) * rows
        by_score = np.argsort(x)
        line = common_line(x[by_score], np.ones(x.size), k[by_score])
        if line is not None:
            effects = effects_of(x, k, start, line)
            rejected += max(tails(effects.moments(0.0))[1], effects.least_pvalue) <= 0.05
    assert rejected <= 150 * 0.05 + 3 * math.sqrt(150 * 0.05 * 0.95)


def test_five_thousand_groups_that_differ_are_seen():
    """A true standard deviation of 0.25 between 5,000 groups of 20 rows, none of which is significant alone."""
    p, y, group = draw(np.random.default_rng(4), 5000, 20, 0.2, 0.25)
    starts = np.arange(5000) * 20
    order = np.lexsort((p, group))
    x, k = logit(p)[order], y[order].astype(float)
    by_score = np.argsort(x)
    effects = effects_of(x, k, starts, common_line(x[by_score], np.ones(x.size), k[by_score]))
    h = estimate_heterogeneity(effects, range(5000), name="shift", test="", level=0.95)
    assert h.pvalue < 1e-6
    assert h.low < 0.25 < h.high
    assert h.high - h.low < 0.1


def test_intervals_cover_their_values():
    """25 data sets of 20 groups: the standard deviation, groups on average, and a new group."""
    rng, covered = np.random.default_rng(5), []
    for _ in range(25):
        group, effect = np.repeat(np.arange(20), 100), rng.normal(0, 0.4, 20)
        p = expit(rng.normal(-1, 1, 2000))
        y = rng.random(2000) < expit(logit(p) + effect[group])
        h = log_odds_heterogeneity(*samples(p, y, group), 0.95)
        estimates = np.array(list(h.groups.values()))
        shrunken = np.mean((estimates[:, 4] <= effect) & (effect <= estimates[:, 5]))
        covered.append([h.low <= 0.4 <= h.high, shrunken, h.new_low <= rng.normal(0, 0.4) <= h.new_high])
    assert np.all(np.mean(covered, axis=0) >= 0.84)
    assert np.mean(covered, axis=0)[1] == pytest.approx(0.95, abs=0.04)


def test_shrunken_estimates_have_smaller_errors():
    rng = np.random.default_rng(6)
    group, effect = np.repeat(np.arange(300), 30), rng.normal(0, 0.3, 300)
    p = expit(rng.normal(0, 1, 9000))
    y = rng.random(9000) < expit(logit(p) + effect[group])
    h = log_odds_heterogeneity(*samples(p, y, group), 0.95)
    own, shrunken = (np.array([each[i] for each in h.groups.values()]) for i in (0, 3))
    assert np.sqrt(np.mean((shrunken - effect) ** 2)) < 0.75 * np.sqrt(np.mean((own - effect) ** 2))
    assert np.std(shrunken) < np.std(own)


def test_the_interval_contains_0_if_and_only_if_the_test_does_not_reject():
    rng, seen = np.random.default_rng(7), set()
    for _ in range(12):
        p, y, group = draw(rng, 12, 60, 0.3, 0.25)
        h = log_odds_heterogeneity(*samples(p, y, group), 0.95)
        assert (h.low > 0) == (h.pvalue < 0.05)
        assert h.low <= h.sd <= h.high
        seen.add(h.low > 0)
    assert seen == {True, False}


def test_frequencies_are_repeated_rows():
    rng = np.random.default_rng(8)
    p, y, group = draw(rng, 6, 50, 0.3, 0.4)
    times = rng.integers(1, 4, p.size)
    counted = cb.evaluate(y, p, by=group, frequency=times, n_resamples=1).heterogeneity
    repeated = cb.evaluate(*(np.repeat(each, times) for each in (y, p)), by=np.repeat(group, times), n_resamples=1)
    assert counted.to_dict() == repeated.heterogeneity.to_dict()


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(9)
    p, y, group = draw(rng, 6, 50, 0.3, 0.4)
    order = rng.permutation(p.size)
    first = cb.evaluate(y, p, by=group, n_resamples=1).heterogeneity
    second = cb.evaluate(y[order], p[order], by=group[order], n_resamples=1).heterogeneity
    assert first.to_dict() == second.to_dict()


def test_equal_weights_are_no_weights_but_for_their_estimated_variance():
    rng = np.random.default_rng(10)
    p, y, group = draw(rng, 20, 200, 0.3, 0.4)
    plain = cb.evaluate(y, p, by=group, n_resamples=1).heterogeneity
    weighted = cb.evaluate(y, p, by=group, sample_weight=np.full(p.size, 3.0), n_resamples=1).heterogeneity
    assert weighted.sd == pytest.approx(plain.sd, rel=0.05)
    assert [note.code for note in weighted.notes] == ["heterogeneity_weights"]


@pytest.mark.parametrize("kind", ["weights", "clusters"])
def test_size_with_weights_and_clusters(kind):
    rng, rejected = np.random.default_rng(11), 0
    for _ in range(30):
        group, cluster = np.repeat(np.arange(15), 120), np.arange(1800) // 8
        p = expit(rng.normal(-1, 1, 1800))
        shock = rng.normal(0, 1.0 if kind == "clusters" else 0.0, 225)[cluster]
        y = rng.random(1800) < expit(logit(p) + shock)
        options = {"cluster": cluster} if kind == "clusters" else {"sample_weight": rng.lognormal(0, 1, 1800)}
        read = kind_of("binary").sample.read_groups(y, p, by=group, **options)
        h = log_odds_heterogeneity(read.groups, read.whole, 0.95)
        rejected += h.pvalue <= 0.05
    assert rejected <= 6


def test_groups_that_are_clusters_have_independent_rows_within():
    p, y, group = draw(np.random.default_rng(12), 20, 60, 0.3, 0.5)
    as_clusters = cb.evaluate(y, p, by=group, cluster=group, n_resamples=1).heterogeneity
    assert as_clusters.sd == cb.evaluate(y, p, by=group, n_resamples=1).heterogeneity.sd
    assert [note.code for note in as_clusters.notes] == ["heterogeneity_clusters"]


@pytest.mark.parametrize(
    ("y", "p", "group"),
    [
        ([0, 0, 0, 0], [0.1, 0.2, 0.1, 0.2], [1, 1, 2, 2]),
        ([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], [1, 1, 2, 2]),
        ([0, 1, 0, 1], [0.1, 0.2, 0.1, 0.2], [1, 1, 1, 1]),
        ([0, 1, 0, 1], [0.1, 0.2, 0.1, 0.2], [1, 2, 3, 4]),
    ],
)
def test_what_cannot_be_compared_is_unknown_with_a_reason(y, p, group):
    h = cb.evaluate(y, p, by=group, n_resamples=1).heterogeneity
    assert math.isnan(h.pvalue)
    assert not h.is_known
    assert h.notes
    assert h.sentences()[0].startswith("Heterogeneity between groups: unknown.")


def test_tails_of_a_gamma_distribution():
    moments = Moments(3.0, 4.0, 16.0, 0.0, 1.0, 1.0, 2.0)  # a chi-squared variable with 2 degrees less its mean
    below, above = tails(moments)
    assert above == pytest.approx(stats.chi2.sf(5, 2))
    assert below == pytest.approx(stats.chi2.cdf(5, 2))


@pytest.mark.parametrize("outcome", ["normal", "exponential", "unequal"])
def test_size_of_mean_errors(outcome):
    rng, rejected = np.random.default_rng(13), 0
    for _ in range(150):
        error = rng.normal(size=(40, 6)) if outcome != "exponential" else rng.exponential(size=(40, 6)) - 1
        error *= rng.lognormal(0, 0.5, (40, 1)) if outcome == "unequal" else 1.0
        tables = {g: (MeanTable.from_arrays(each, np.zeros(6)), None) for g, each in enumerate(error)}
        rejected += mean_error_heterogeneity(tables, 0.95).pvalue <= 0.05
    assert rejected <= 15


def test_mean_errors_of_equal_groups_agree_with_analysis_of_variance():
    """With groups of equal size the estimate is about that of the analysis of variance."""
    rng = np.random.default_rng(14)
    error = rng.normal(size=(30, 20)) + rng.normal(0, 0.5, (30, 1))
    tables = {g: (MeanTable.from_arrays(-each, np.zeros(20)), None) for g, each in enumerate(error)}
    h = mean_error_heterogeneity(tables, 0.95)
    within = error.var(axis=1, ddof=1).mean()
    between = error.mean(axis=1).var(ddof=1) - within / 20
    assert h.sd == pytest.approx(math.sqrt(between), rel=0.02)
    assert h.mean.value == pytest.approx(error.mean())
    assert h.groups[3].estimate == pytest.approx(error[3].mean())


@pytest.mark.parametrize("factor", [1e-80, 1e80])
def test_mean_errors_of_any_unit(factor):
    rng = np.random.default_rng(15)
    error = rng.normal(size=(10, 20)) + rng.normal(0, 0.5, (10, 1))
    one, other = (
        mean_error_heterogeneity(
            {g: (MeanTable.from_arrays(f * e, np.zeros(20)), None) for g, e in enumerate(error)}, 0.9
        )
        for f in (1.0, factor)
    )
    assert other.sd / factor == pytest.approx(one.sd, rel=1e-3)
    assert other.pvalue == pytest.approx(one.pvalue)


def test_few_clusters_have_the_interval_of_hartung_and_knapp():
    """Five clusters of many rows: about the t interval of their shifts, each with the same weight."""
    rng = np.random.default_rng(16)
    tables, shifts = [], []
    for effect in rng.normal(0, 0.5, 5):
        p = expit(rng.normal(0, 1, 4000))
        y = rng.random(4000) < expit(logit(p) + effect)
        tables.append(cb.ScoreTable.from_arrays(y, p))
        shifts.append(optimize.brentq(lambda d, p=p, y=y: y.sum() - expit(logit(p) + d).sum(), -5, 5))
    found = mean_shift_over_clusters(tables, 0.95)
    error = np.std(shifts, ddof=1) / math.sqrt(5)
    assert found.df == 4
    assert found.value == pytest.approx(np.mean(shifts), abs=0.02)
    assert found.standard_error == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize("sd", [0.0, 0.3, 0.8])
def test_few_clusters_reject_a_calibrated_model_rarely(sd):
    rng, rejected = np.random.default_rng(17), 0
    for _ in range(40):
        effect = rng.normal(0, sd, 6)
        tables = []
        for u in effect:
            p = expit(rng.normal(-1, 1, 200))
            tables.append(cb.ScoreTable.from_arrays(rng.random(200) < expit(logit(p) + u), p))
        rejected += mean_shift_over_clusters(tables, 0.95).pvalue <= 0.05
    assert rejected <= 7


def test_mean_shifts_are_unknown_where_errors_do_not_vary():
    effects = MeanShifts(np.ones(2), np.ones(2), np.zeros((4, 2)), np.ones(2))
    assert math.isnan(tails(effects.moments(0.0))[1])
