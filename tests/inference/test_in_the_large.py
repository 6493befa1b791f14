"""Calibration in the large under miscalibration: coverage, and agreement of intervals and tests of one quantity."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t as student

import calibrant as cb
from calibrant.inference.binary_components import component_shares
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import in_the_large
from calibrant.inference.multiplicity import holm, join_tests
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.selection import after_selection, holm_threshold
from calibrant.inference.table_sample import TableSample
from calibrant.results.verdict import TestResult


def overconfident(rng, size=400, spread=1.5, factor=4.0):
    z = rng.normal(0, spread, size)
    return (rng.random(size) < expit(z)).astype(int), expit(factor * z)


def test_intervals_of_an_overconfident_model_cover_the_truth():
    """The true O/E is 1: intervals that assume calibration cover it in 71 % of samples."""
    missed = np.zeros(3)
    for seed in range(300):
        y, p = overconfident(np.random.default_rng(seed))
        found = in_the_large(Design(cb.ScoreTable.from_arrays(y, p)), 0.95)
        limits = ((found.ratio, 1.0), (found.shift, 0.0), (found.bias, 0.0))
        missed += [not each.low <= true <= each.high for each, true in limits]
    assert (missed / 300 < 0.08).all()


def test_many_rows_have_the_sandwich_variance():
    y, p = overconfident(np.random.default_rng(0), 20_000, 3.0, 2.0)
    found = in_the_large(Design(cb.ScoreTable.from_arrays(y, p)), 0.95)
    assert found.bias.standard_error == pytest.approx(np.std(p - y, ddof=1) / np.sqrt(y.size), rel=1e-6)
    q = expit(np.log(p) - np.log1p(-p) + found.shift.value)
    sandwich = np.sqrt(np.sum((y - q) ** 2)) / np.sum(q * (1 - q))
    assert found.shift.standard_error == pytest.approx(sandwich, rel=1e-3)
    ratio = y.sum() / p.sum()
    error = np.sqrt(np.sum((y - ratio * p) ** 2)) / p.sum()
    assert found.ratio.standard_error == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("rate", [0.5, 0.02])
@pytest.mark.parametrize("sample", ["rows", "weights", "clusters"])
def test_intervals_of_one_quantity_do_not_contradict_each_other_or_their_test(rate, sample):
    decided = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        z = rng.normal(np.log(rate / (1 - rate)), 1.2, 600)
        y, p = (rng.random(600) < expit(z - rng.choice([0, 0.3]))).astype(int), expit(z)
        if not 0 < y.sum() < y.size:
            continue
        if sample == "clusters":
            rows, (table,) = PairedRows.read(y, [p], cluster=np.arange(600) % 30)
            design = Design(table, rows)
        else:
            weight = rng.lognormal(0, 0.5, 600) if sample == "weights" else None
            design = Design(cb.ScoreTable.from_arrays(y, p, sample_weight=weight))
        found = in_the_large(design, 0.95)
        estimates = ((found.bias, 0.0), (found.ratio, 1.0), (found.shift, 0.0))
        inside = [each.low < null < each.high for each, null in estimates]
        outside = [not each.low <= null <= each.high for each, null in estimates]  # else a limit ends at the null
        assert not (any(inside) and any(outside))
        if any(outside):
            assert found.test.pvalue <= 0.05
        decided |= {any(inside), not any(outside)}
    assert decided == {True, False}


def test_the_bias_of_an_evaluation_is_significant_only_if_its_interval_excludes_0():
    for seed in range(10):
        found = cb.evaluate(*overconfident(np.random.default_rng(seed)), n_resamples=199)["bias"]
        assert found.pvalue > 0.05 or not found.interval.low < 0 < found.interval.high


def test_closed_forms_are_those_of_row_terms_and_of_delong():
    rng = np.random.default_rng(0)
    p = rng.random(500).round(2)
    y = rng.random(500) < p
    sample = TableSample(cb.ScoreTable.from_arrays(y, p))
    for name, terms in (("brier", (p - y) ** 2), ("log_loss", -np.log(np.where(y, p, 1 - p)))):
        if np.isfinite(terms).all():
            error, _ = sample.influence_moments(cb.METRICS[name]())
            assert error == pytest.approx(terms.std(ddof=1) / np.sqrt(500), rel=1e-9)
    wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    delong = np.sqrt(wins.mean(1).var(ddof=1) / y.sum() + wins.mean(0).var(ddof=1) / (~y).sum())
    assert sample.influence_moments(cb.metrics.AUC())[0] == pytest.approx(delong, rel=0.005)
    of_classes = np.sqrt(((1 - p[y]) ** 2).var(ddof=1) / y.sum() + (p[~y] ** 2).var(ddof=1) / (~y).sum()) / 2
    assert sample.influence_moments(cb.metrics.StratifiedBrier())[0] == pytest.approx(of_classes, rel=0.005)


def test_clusters_of_copies_have_the_error_of_one_copy_each():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    once = TableSample(cb.ScoreTable.from_arrays(y, p))
    rows, (table,) = PairedRows.read(np.tile(y, 5), [np.tile(p, 5)], cluster=np.tile(np.arange(200), 5))
    copies = TableSample(table, rows)
    for name in ("brier", "log_loss", "auc", "stratified_brier"):
        metric = cb.METRICS[name]()
        assert copies.influence_moments(metric) == pytest.approx(once.influence_moments(metric), rel=1e-9, abs=1e-12)


def test_the_stratified_brier_score_of_a_rare_class_has_no_interval():
    table = cb.ScoreTable.from_counts([0.001, 0.02], [18_000, 2_000], [10, 30])
    with pytest.raises(cb.InputError, match="at least 200 rows of a class with less than 2 % of the rows"):
        cb.interval("stratified_brier", table)


def test_a_weighted_level_is_holms_with_weights():
    tests = [TestResult(0.0, p, name) for p, name in ((0.03, "a"), (0.004, "b"), (0.2, "c"))]
    equal = [t.adjusted_pvalue for t in join_tests(tests).components.values()]
    assert equal == holm([0.03, 0.004, 0.2]).tolist()
    found = [t.adjusted_pvalue for t in join_tests(tests, {"a": 0.7}).components.values()]
    # b first: 0.004 / 0.15; then a: 0.03 * 0.85 / 0.7; then c alone.
    assert found == pytest.approx([0.03 * 0.85 / 0.7, 0.004 / 0.15, 0.2])


def test_weights_and_few_clusters_have_nearly_the_power_of_a_t_test():
    rejected = np.zeros((2, 2))
    for seed in range(150):
        rng = np.random.default_rng(seed)
        z = rng.normal(-1, 1.2, 5_000)
        y, w = rng.random(5_000) < expit(z - 0.3), rng.lognormal(0, 1.5, 5_000)
        table = cb.ScoreTable.from_arrays(y, expit(z), sample_weight=w)
        terms = w * (y - expit(z))
        robust = 2 * student.sf(abs(terms.sum()) / np.sqrt(terms @ terms), w.sum() ** 2 / (w @ w) - 1)
        rejected[0] += robust <= 0.05, in_the_large(Design(table), 0.95).test.pvalue <= 0.05 * 0.7
        cluster = np.repeat(np.arange(12), 100)
        z = rng.normal(-1, 1.2, 1_200)
        y = (rng.random(1_200) < expit(z - 0.4 + rng.normal(0, 0.3, 12)[cluster])).astype(int)
        sums = np.bincount(cluster, weights=y - expit(z))
        robust = 2 * student.sf(abs(sums.mean()) * np.sqrt(12) / sums.std(ddof=1), 11)
        rows, (table,) = PairedRows.read(y, [expit(z)], cluster=cluster)
        design = Design(table, rows)
        assert component_shares(design)
        rejected[1] += robust <= 0.05, in_the_large(design, 0.95).test.pvalue <= 0.05 * 0.7
    robust, own = 100 * rejected.T / 150
    assert (robust > 60).all()
    assert (own > robust - 12).all()


def test_limits_after_selection_cover_and_are_not_too_far_from_0():
    """Effects of 2 standard errors that are reported if z exceeds 3: the usual interval covers few of them."""
    rng = np.random.default_rng(0)
    cut = 0.0027
    z = rng.normal(2.0, 1, 4_000)
    reported = z[np.abs(z) > 3.0]
    plain = np.mean((reported - 1.96 <= 2) & (reported + 1.96 >= 2))
    found = np.array(
        [
            after_selection(each, each - 1.96, each + 1.96, 2 * student.sf(abs(each), 1e9), cut, 0.95)
            for each in reported
        ]
    )
    assert plain < 0.9
    assert np.mean((found[:, 1] <= 2) & (found[:, 2] >= 2)) == pytest.approx(0.95, abs=0.03)
    assert np.median(found[:, 0]) == pytest.approx(2.0, abs=0.25)
    assert np.median(reported) > 3.2


def test_selection_does_not_matter_far_from_the_threshold_and_signs_mirror():
    far = after_selection(20.0, 18.04, 21.96, 1e-88, 0.001, 0.95)
    assert far == pytest.approx((20.0, 18.04, 21.96), abs=1e-3)
    near = after_selection(0.6, 0.2, 1.0, 0.003, 0.005, 0.95)
    assert near[1] <= near[0] < 0.6
    mirrored = after_selection(-0.6, -1.0, -0.2, 0.003, 0.005, 0.95)
    assert mirrored == pytest.approx((-near[0], -near[2], -near[1]))


def test_holms_threshold_is_the_largest_pvalue_that_is_rejected():
    others = [0.001, 0.013, 0.6]
    threshold = holm_threshold([*others, 0.5], 3, 0.05)
    assert holm([*others, threshold])[3] <= 0.05 + 1e-12
    assert holm([*others, threshold * 1.001])[3] > 0.05
