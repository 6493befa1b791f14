"""Regions of the scores: the test against exact distributions and slow loops, the factor per region, and its limits."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit, logit
from scipy.stats import multivariate_normal, norm
from strategies import tables

import calibrant as cb
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.region_tests import NAME, Limit, RegionTests, usual_shares
from calibrant.metrics.significance import clopper_pearson
from calibrant.results.verdict import TestResult


def regions_of(y, p, cluster=None, **options):
    if cluster is None:
        return RegionTests.from_design(Design(cb.ScoreTable.from_arrays(y, p, **options)))
    rows, (table,) = PairedRows.read(y, [p], cluster=cluster, **options)
    return RegionTests.from_design(Design(table, rows))


def poisson_binomial(p):
    """The exact distribution of the number of events of independent rows."""
    found = np.ones(1)
    for each in p:
        found = np.append(found * (1 - each), 0) + np.append(0, found * each)
    return found


def ranges(regions):
    score = regions.sums.design.table.score
    return {(float(score[a]), float(score[b - 1])) for a, b in zip(regions.sums.start, regions.sums.stop, strict=True)}


# Which regions


def test_few_scores_are_regions_and_so_is_each_side_of_a_cut():
    scores = [0.1, 0.2, 0.4, 0.7]
    found = ranges(regions_of([0, 1] * 8, np.repeat(scores, 4)))
    cuts = {(a, b) for a, b in itertools.combinations_with_replacement(scores, 2) if a in (b, 0.1) or b == 0.7}
    assert found == cuts - {(0.1, 0.7)}


def test_many_scores_are_cut_at_halves_of_rows_and_of_information():
    p = np.sort(np.random.default_rng(0).beta(0.5, 20, 4000))
    regions = regions_of((np.random.default_rng(1).random(4000) < p).astype(int), p)
    found, v = ranges(regions), np.cumsum(p * (1 - p))
    for j in (1, 2, 3, 4):
        rows = 4000 >> j
        bottom = int(np.searchsorted(v, v[-1] / 2**j)) + 1
        top = int(np.searchsorted(np.cumsum((p * (1 - p))[::-1]), v[-1] / 2**j)) + 1
        assert {(p[0], p[bottom - 1]), (p[-rows], p[-1])} <= found
        assert (p[4000 - top], p[-1]) in found
    for low, high in found:
        inside = p[(p >= low) & (p <= high)]
        assert inside.size >= 500 or min(inside.sum(), inside.size - inside.sum()) >= 0.5


@given(tables)
def test_regions_are_runs_of_scores_between_0_and_1_without_the_whole(table):
    regions = RegionTests.from_design(Design(table))
    if regions is None:
        inner = table.score[(table.score > 0) & (table.score < 1)]
        assert inner.size < 2
        return
    inner = np.flatnonzero((table.score > 0) & (table.score < 1))
    start, stop = regions.sums.start, regions.sums.stop
    assert inner[0] <= start.min()
    assert stop.max() <= inner[-1] + 1
    assert (stop - start < inner.size).all()
    assert (stop > start).all()
    assert len(set(zip(start.tolist(), stop.tolist(), strict=True))) == start.size
    assert 0 <= regions.test().pvalue <= 1
    for a, b, n, k, e in zip(start, stop, regions.sums.rows, regions.sums.events, regions.sums.expected, strict=True):
        assert (n, k) == (table.n[a:b].sum(), table.k[a:b].sum())
        assert e == pytest.approx(float(np.sum(table.n[a:b] * table.score[a:b])), abs=1e-9)


@pytest.mark.parametrize("scores", [[0.3], [0.0, 1.0], [0.0, 0.3, 1.0], []])
def test_fewer_than_two_inner_scores_have_no_regions(scores):
    counts = np.full(len(scores), 50)
    k = [0 if s == 0 else 50 if s == 1 else 20 for s in scores]
    assert RegionTests.from_design(Design(cb.ScoreTable.from_counts(scores, counts, k))) is None


# The test


@pytest.mark.parametrize("low", [0.001, 0.05, 0.4])
def test_pvalues_are_those_of_the_exact_distribution(low):
    rng = np.random.default_rng(3)
    p = np.round(np.clip(rng.beta(1, 8, 400) + low, 0, 0.99), 3)
    for seed in range(3):
        y = np.random.default_rng(seed).random(400) < expit(logit(p) + [0.0, 0.8, -0.8][seed])
        regions = regions_of(y.astype(int), p)
        table = regions.sums.design.table
        for i in range(regions.sums.start.size):
            inside = slice(regions.sums.start[i], regions.sums.stop[i])
            mass = poisson_binomial(np.repeat(table.score[inside], table.n[inside]))
            k = int(regions.sums.events[i])
            tails = mass[:k].sum() + mass[k] / 2, mass[k + 1 :].sum() + mass[k] / 2
            wanted = min(1.0, 2 * min(tails))
            if abs(regions.z[i]) > 1.5:
                assert regions.pvalues[i] == pytest.approx(wanted, rel=0.08)
            else:
                assert wanted > 0.08


def test_equivalence_pvalues_are_exact_tails_of_tilted_odds():
    scores, n = np.array([0.003, 0.02, 0.2]), np.array([12_000, 2000, 300])
    k = np.array([30, 44, 55])
    regions = RegionTests.from_design(Design(cb.ScoreTable.from_counts(scores, n, k)))
    single = [i for i, (a, b) in enumerate(zip(regions.sums.start, regions.sums.stop, strict=True)) if b - a == 1]
    found = regions.factor_pvalues(np.full(3, 2.0), np.array(single))
    for value, p, rows, events in zip(found, scores, n, k, strict=True):
        from scipy.stats import binom

        high, low = (expit(logit(p) + side * math.log(2)) for side in (1, -1))
        wanted = max(binom.cdf(events, rows, high), binom.sf(events - 1, rows, low))
        assert value == pytest.approx(wanted, rel=0.05, abs=1e-12)


def test_the_bound_is_the_one_of_pairs_of_neighbours_in_a_tree():
    p = np.repeat([0.1, 0.3, 0.6], [400, 300, 200])
    regions = regions_of((np.random.default_rng(2).random(900) < p).astype(int), p)
    spread = np.sqrt(np.diag(regions.sums.covariance))
    correlation = regions.sums.covariance / np.outer(spread, spread)
    count = len(spread)
    best = max(
        (sum(correlation[i, j] for i, j in tree), tree)
        for tree in itertools.combinations(itertools.combinations(range(count), 2), count - 1)
        if is_tree(tree, count)
    )[1]
    for level in (0.2, 0.01, 1e-4):
        c = norm.isf(level / 2)
        pairs = 0.0
        for i, j in best:
            r = min(correlation[i, j], 1 - 1e-9)
            both = multivariate_normal([0, 0], [[1, r], [r, 1]], allow_singular=True)
            inside = both.cdf([c, c]) - 2 * both.cdf([-c, c]) + both.cdf([-c, -c])
            pairs += 2 * level - 1 + inside
        wanted = min(max(count * level - pairs, level), 1)
        assert regions.adjusted(np.array([level]))[0] == pytest.approx(wanted, rel=1e-2)


def is_tree(edges, count):
    joined = list(range(count))
    for i, j in edges:
        a, b = joined[i], joined[j]
        if a == b:
            return False
        joined = [a if each == b else each for each in joined]
    return True


def test_the_test_does_not_depend_on_the_order_of_rows_and_counts_frequencies():
    rng = np.random.default_rng(4)
    p = np.round(rng.beta(0.8, 12, 3000), 4)
    y, times = (rng.random(3000) < p).astype(int), rng.integers(1, 4, 3000)
    order = rng.permutation(3000)
    one, other = regions_of(y, p, frequency=times), regions_of(np.repeat(y, times), np.repeat(p, times))
    assert one.test() == other.test()
    assert np.array_equal(one.pvalues, other.pvalues)
    assert regions_of(y, p).test() == regions_of(y[order], p[order]).test()
    swapped = regions_of(1 - y, 1 - p)
    assert swapped.test().pvalue == pytest.approx(regions_of(y, p).test().pvalue, rel=1e-6)


def test_scores_of_0_and_1_change_nothing():
    rng = np.random.default_rng(5)
    p = rng.random(500)
    y = (rng.random(500) < p**2).astype(int)
    more = regions_of(np.r_[y, [0] * 70, [1] * 30], np.r_[p, [0.0] * 70, [1.0] * 30])
    assert more.test() == regions_of(y, p).test()


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 7.0, 1e9])
def test_the_scale_of_weights_changes_nothing(scale):
    rng = np.random.default_rng(6)
    p, weight = rng.beta(0.8, 8, 4000), rng.exponential(size=4000)
    y = (rng.random(4000) < p**1.2).astype(int)
    one, other = (regions_of(y, p, sample_weight=w) for w in (weight, scale * weight))
    assert other.test().pvalue == pytest.approx(one.test().pvalue, rel=1e-6)
    assert other.pvalues == pytest.approx(one.pvalues, rel=1e-6)
    assert other.factors(Limit(0.1)).tolist() == one.factors(Limit(0.1)).tolist()


def test_the_variance_of_clusters_by_a_loop():
    rng = np.random.default_rng(7)
    cluster = np.repeat(np.arange(60), 20)
    p = np.round(rng.beta(1, 5, 1200), 2).clip(0.01, 0.99)
    y = (rng.random(1200) < p).astype(int)
    regions = regions_of(y, p, cluster=cluster)
    score = regions.sums.design.table.score
    for i in range(0, regions.sums.start.size, 7):
        low, high = score[regions.sums.start[i]], score[regions.sums.stop[i] - 1]
        inside = (p >= low) & (p <= high)
        sums = np.array([np.sum((y - p)[inside & (cluster == c)]) for c in range(60)])
        share = np.array([np.sum((p * (1 - p))[inside & (cluster == c)]) for c in range(60)])
        robust = 60 * np.var(sums, ddof=1)
        assert regions.sums.variance[i] == pytest.approx(max(robust, share.sum()))
        assert regions.sums.degrees[i] == pytest.approx(share.sum() ** 2 / np.sum(share**2) - 1)
        with_event = len({c for c, event in zip(cluster[inside], y[inside], strict=True) if event})
        assert regions.sums.rarer[i] == min(with_event, len(set(cluster[inside & (y == 0)])))


@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_clusters_of_equal_rows_count_once(rate):
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.beta(40 * rate, 40, 100)
        y = (rng.random(100) < p).astype(int)
        regions = regions_of(np.repeat(y, 20), np.repeat(p, 20), cluster=np.repeat(np.arange(100), 20))
        test = regions.test()
        rejected += test is not None and test.pvalue <= 0.05
    assert rejected <= 5


def test_ten_clusters_and_extreme_weights_do_not_fail():
    rng = np.random.default_rng(8)
    p = rng.beta(0.8, 8, 2000)
    y = (rng.random(2000) < p).astype(int)
    heavy = np.exp(rng.normal(0, 4, 2000))
    for regions in (regions_of(y, p, cluster=np.arange(2000) % 10), regions_of(y, p, sample_weight=heavy)):
        assert regions.test() is None
        assert np.isinf(regions.factors(Limit(0.1))).all()
        whole = TestResult(0.0, 1.0, "")
        summary = regions.summary(0.05, 0.95, Limit(0.1), is_small=True, whole=whole)
        assert (summary.n_tested, summary.n_judged, summary.not_shown) == (0, 0, None)
        assert {region.place for region in summary.not_judged} >= {"top", "bottom"}


@pytest.mark.parametrize("scale", [1, 10**6, 10**11])
def test_huge_counts_have_finite_results(scale):
    table = cb.ScoreTable.from_counts(
        [1e-200, 1e-9, 0.2, 1 - 1e-12], [scale, scale, scale, scale], [0, 1, scale // 5, scale]
    )
    regions = RegionTests.from_design(Design(table))
    assert 0 <= regions.test().pvalue <= 1
    assert np.isfinite(regions.pvalues).all()
    assert 0 <= regions.equivalence_pvalue(0.05, Limit(0.1)) <= 1


def test_an_event_at_a_tiny_score_is_found():
    table = cb.ScoreTable.from_counts([1e-200, 0.2], [1000, 1000], [1, 200])
    assert RegionTests.from_design(Design(table)).test().pvalue < 1e-12  # scores are clipped to 2**-53


# The verdict


def judged(y, p, **options):
    return cb.evaluate(y, p, n_resamples=19, metrics=["bias"], **options)


GRADES, SHARES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25], [0.1, 0.2, 0.3, 0.2, 0.12, 0.05, 0.03]


def test_a_grade_that_is_ten_times_too_low_is_found():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.choice(GRADES, 200_000, p=SHARES)
        found = judged(rng.random(p.size) < np.where(p == 0.0003, 0.00318, p), p)
        assert found.verdict == "miscalibrated"
        assert found.region.startswith("score 0.0003 (")
        assert found.region in found.headline()
        assert not found.is_within_margin
        assert "mostly at score 0.0003" in found.sentences()[0]


def test_the_top_tenth_of_a_percent_that_is_three_times_too_high_is_found():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-6, 1, 1_000_000))
    wrong = p > np.quantile(p, 0.999)
    found = judged(rng.random(p.size) < expit(logit(p) - math.log(3) * wrong), p)
    assert found.verdict == "miscalibrated"
    assert found.region.startswith("top 0.")
    top = found.details.shares[0]
    assert (top.place, round(top.n)) == ("top", 1000)
    assert top.ratio_high < 0.7


@pytest.mark.parametrize("factor", [3, 1 / 3])
def test_half_of_the_rows_are_never_wrong_inside_a_good_verdict(factor):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = np.where(np.arange(40_000) < 20_000, 0.001, expit(rng.normal(0, 1.5, 40_000)))
        q = np.where(p == 0.001, 0.001 / factor, p)
        assert judged(rng.random(p.size) < q, p).verdict in ("miscalibrated", "inconclusive")


def test_calibrated_grades_are_calibrated_and_what_is_not_judged_is_stated():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.choice(GRADES, 200_000, p=SHARES)
        found.append(judged(rng.random(p.size) < p, p))
    good = [each for each in found if each.verdict == "calibrated"]
    assert len(good) >= 8
    for each in good:
        assert each.region == ""
        assert "by at most a factor of 2 in every judged region" in each.sentences()[0]
        assert [region.low for region in each.details.regions.not_judged] in ([0.0003], [])
        if each.details.regions.not_judged:
            assert "No claim is made for score 0.0003" in each.sentences()[0]


def test_a_region_that_is_not_shown_makes_the_verdict_inconclusive_and_is_named():
    less = judged(cb.ScoreTable.from_counts([0.001, 0.2], [7900, 12_000], [13, 2400]), None)
    assert less.verdict == "calibrated"
    assert "No claim is made for score 0.001 (39.7 % of rows): too few events." in less.sentences()[0]
    halves = judged(cb.ScoreTable.from_counts([0.001, 0.2], [12_500, 12_000], [6, 2400]), None)
    assert (halves.verdict, halves.is_within_margin) == ("inconclusive", False)
    assert "may be off by more than a factor of 2 (O/E 0.48" in halves.sentences()[0]
    assert halves.equivalence.bound <= halves.margin
    assert halves.rows_to_decide is None


def test_an_absolute_margin_judges_no_regions():
    found = judged(
        cb.ScoreTable.from_counts([0.001, 0.2], [12_500, 12_000], [17, 2400]), None, margin=cb.AbsoluteMargin(0.05)
    )
    assert found.verdict == "calibrated"
    assert "factor" not in found.sentences()[0]


def test_the_region_with_the_largest_difference_of_events_comes_first():
    table = cb.ScoreTable.from_counts([0.001, 0.05, 0.5], [30_000, 20_000, 20_000], [120, 1000, 10_900])
    deviating = judged(table, None).details.regions.deviating
    assert [region.low for region in deviating] == [0.5, 0.001]
    lost = [abs(region.events - region.expected) for region in deviating]
    assert lost == sorted(lost, reverse=True)


def test_a_shift_of_all_scores_has_no_region():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    found = judged(rng.random(p.size) < expit(logit(p) - 0.3), p)
    assert (found.verdict, found.region) == ("miscalibrated", "")


def test_the_level_of_the_test_of_calibrated_models():
    rejected = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, 20, 1000)
        rejected += regions_of((rng.random(1000) < p).astype(int), p).test().pvalue <= 0.05
    assert rejected <= 32  # 5 %, and three standard errors


def test_classes_and_thresholds_have_regions():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet([0.03, 2, 2], 60_000)
    tiny = proba[:, 0] < 1e-3
    q = proba.copy()
    q[tiny, 0] = 0.02
    q /= q.sum(axis=1, keepdims=True)
    y = (q.cumsum(axis=1) > rng.random((len(q), 1))).argmax(axis=1)
    for forecast in (proba, cb.Ordinal(proba)):
        found = cb.evaluate(y, forecast, n_resamples=19)
        assert found.verdict == "miscalibrated"
        region = found.details.regions.deviating[0]
        assert found.region == region.name
        first = [each for each in found.details.regions.deviating if each.of in ("class 0", "outcomes of at most 0")]
        assert max(each.events / each.expected for each in first) > 3


def test_wide_margins_and_many_forecasts_need_other_limits():
    assert (Limit(0.1).factor, Limit(0.1).wide_factor) == (2.0, pytest.approx(3.0))
    assert Limit(0.5).factor == pytest.approx(math.e)
    assert Limit(0.1).information(40) == pytest.approx(40)
    assert Limit(0.5).information(40) < 40 < Limit(0.1, 10).information(40) < Limit(0.1, 1000).information(40) < 100
    assert Limit(2.0).information(40) == 8


def test_regions_beside_scores_of_0_and_1_are_named_by_their_scores():
    rng = np.random.default_rng(12)
    p = np.r_[np.zeros(1000), rng.uniform(0.001, 0.9999, 20_000), np.ones(500)]
    q = np.where((p > 0.9) & (p < 1), 0.85, p)
    found = judged(rng.random(p.size) < q, p)
    assert found.details.regions.deviating[0].place == "range"
    assert found.region.startswith("scores 0.")
    assert "to below 1 (" in found.region
    assert f"mostly at {found.region}" in found.headline()


# Observed over expected events


def test_shares_of_the_rows_are_those_of_sorted_rows():
    rng = np.random.default_rng(9)
    p = rng.beta(0.8, 12, 50_000)
    y = (rng.random(p.size) < p).astype(int)
    order = np.argsort(p)
    found = usual_shares(Design(cb.ScoreTable.from_arrays(y, p)), 0.95)
    for region, rows in zip(found, (order[-50:], order[-500:], order[-2500:], order[:25_000]), strict=True):
        assert (region.n, region.events) == (rows.size, y[rows].sum())
        assert region.expected == pytest.approx(p[rows].sum())
        low, high = clopper_pearson(y[rows].sum(), rows.size)
        limits = (low * rows.size / p[rows].sum(), high * rows.size / p[rows].sum())
        assert (region.ratio_low, region.ratio_high) == pytest.approx(limits)


@pytest.mark.parametrize("dependence", ["none", "weights", "clusters"])
def test_intervals_cover_the_ratio_of_miscalibrated_models(dependence):
    covered = checked = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        z = rng.normal(-2, 1.2, 4000)
        p, options = expit(2 * z), {}
        if dependence == "weights":
            options["sample_weight"] = np.exp(rng.normal(0, 0.7, z.size))
        y = (rng.random(z.size) < expit(z)).astype(int)
        if dependence == "clusters":
            rows, (table,) = PairedRows.read(y, [p], cluster=np.arange(z.size) % 100)
            design = Design(table, rows)
        else:
            design = Design(cb.ScoreTable.from_arrays(y, p, **options))
        weight = options.get("sample_weight", np.ones(z.size))
        for region in usual_shares(design, 0.95):
            inside = (p >= region.low) & (p <= region.high)
            true = np.sum((weight * expit(z))[inside]) / np.sum((weight * p)[inside])
            covered += region.ratio_low <= true <= region.ratio_high
            checked += 1
    assert covered / checked >= 0.94


def test_regions_of_small_tables_are_fast():
    rng = np.random.default_rng(10)
    p = rng.random(100)
    design = Design(cb.ScoreTable.from_arrays((rng.random(100) < p).astype(int), p))
    RegionTests.from_design(design).test()
    begin = time.process_time()
    for _ in range(50):
        RegionTests.from_design(design).test()
    assert time.process_time() - begin < 0.25  # 0.2 ms each, without load


def test_the_component_is_part_of_the_omnibus_test():
    rng = np.random.default_rng(11)
    p = rng.random(2000)
    tests = BinaryTests.from_design(Design(cb.ScoreTable.from_arrays((rng.random(2000) < p).astype(int), p)))
    component = tests.omnibus.components[NAME]
    assert isinstance(component, TestResult)
    assert component.pvalue == tests.regions.test().pvalue
