"""The verdict: conditions that it must get right, its tests against slow loops, and its sentences."""

import importlib.util
import itertools
import json
import math
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtri
from scipy.stats import binom, chi2
from strategies import some_rows, tables

import calibrant as cb
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.residual_tests import residual_test
from calibrant.inference.tails import binomial_two_sided, quadratic_tail, saddlepoint_two_sided
from calibrant.kinds.binary.verdict import decide
from calibrant.kinds.log_odds import format_log_odds
from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.results import sentences

ONE_METRIC = {"ACE": cb.metrics.ACE()}

HAS_REPORT = all(map(importlib.util.find_spec, ("matplotlib", "jinja2")))


def evaluated(*args, **options):
    return cb.evaluate(*args, **{"n_resamples": 99, "metrics": ONE_METRIC, **options})


def rows(seed, size, scores=None):
    """Outcomes of a calibrated model, uniform scores unless others are given."""
    rng = np.random.default_rng(seed)
    p = rng.random(size) if scores is None else scores(rng, size)
    return (rng.random(size) < p).astype(int), p


def rare(rng, size):
    return rng.beta(0.5, 60, size)


# Rare events


@pytest.mark.parametrize(
    ("scores", "direction"),
    [
        (lambda t: np.full(t.size, 1e-6), "underestimates"),
        (lambda t: t / 10, "underestimates"),
        (lambda t: t / 2, "underestimates"),
        (lambda t: 2 * t, "overestimates"),
    ],
    ids=["constant", "tenth", "half", "double"],
)
def test_miscalibrated_scores_of_rare_events_are_detected(scores, direction):
    y, t = rows(0, 50_000, rare)
    found = evaluated(y, scores(t))
    assert found.verdict == "miscalibrated"
    assert direction in found.direction.split(", ")
    if HAS_REPORT:
        assert re.search(r'class="[^"]*\bbad-text\b[^"]*">Miscalibrated: the model ', found.to_html())


def test_calibrated_scores_of_rare_events_are_not_miscalibrated():
    assert evaluated(*rows(0, 50_000, rare)).verdict != "miscalibrated"


@pytest.mark.parametrize("margin", [0.1, cb.AbsoluteMargin(0.001)], ids=["log-odds", "absolute"])
@pytest.mark.parametrize("case", ["too high", "too low", "all 0", "shuffled"])
def test_miscalibrated_scores_are_never_within_the_margin(case, margin):
    for seed in range(3):
        y, t = rows(seed, 20_000, lambda rng, size: rng.beta(0.5, 113, size))
        wrong = {
            "too high": 3 * t,
            "too low": t / 5,
            "all 0": np.zeros(t.size),
            "shuffled": np.random.default_rng(seed).permutation(t),
        }[case]
        assert evaluated(y, np.minimum(wrong, 1), margin=margin).verdict in ("miscalibrated", "inconclusive")


# Half events


@pytest.mark.parametrize(("size", "seeds", "fewest"), [(10_000, 20, 11), (30_000, 10, 9)])
def test_calibrated_models_are_shown_to_be_calibrated(size, seeds, fewest):
    found = [evaluated(*rows(seed, size), metrics={"bias": cb.metrics.Bias()}).verdict for seed in range(seeds)]
    assert found.count("calibrated") >= fewest


def test_errors_that_cancel_inside_deciles_are_not_within_the_margin():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    sign = np.where(np.floor(20 * p) % 2 == 0, 1, -1)
    true = np.clip(p + 0.08 * sign, 0, 1)
    assert np.mean(np.abs(true - p)) == pytest.approx(0.078, abs=0.003)
    found = evaluated(rng.random(p.size) < true, p)
    assert found.verdict == "miscalibrated"
    assert not found.is_within_margin
    assert "errors are averaged within bins" in repr(found)


# Weights and clusters


@pytest.mark.slow
def test_whole_number_weights_of_a_calibrated_model():
    wrong = 0
    for seed in range(40):
        y, p = rows(seed, 1000)
        weights = np.random.default_rng(1000 + seed).integers(1, 6, 1000) * (1 if seed % 2 else 1000)
        wrong += evaluated(y, p, sample_weight=weights).verdict == "miscalibrated"
    assert wrong <= 4


@pytest.mark.slow
def test_weights_that_depend_on_the_outcome():
    """Events are thinned to a quarter and have a weight of 4."""
    wrong = 0
    for seed in range(40):
        y, p = rows(seed, 2000)
        kept = (y == 0) | (np.random.default_rng(1000 + seed).random(2000) < 0.25)
        wrong += evaluated(y[kept], p[kept], sample_weight=np.where(y[kept] == 1, 4.0, 1.0)).verdict == "miscalibrated"
    assert wrong <= 4


def clustered(seed, clusters=200, size=10, rho=0.3):
    """Calibrated scores; outcomes of a cluster share a latent normal variable."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    p = rng.random(cluster.size)
    u = np.sqrt(rho) * rng.standard_normal(clusters)[cluster] + np.sqrt(1 - rho) * rng.standard_normal(cluster.size)
    return (u < ndtri(p)).astype(int), p, cluster


def test_clusters_with_a_shared_latent_keep_the_level():
    found = [evaluated(y, p, cluster=cluster) for y, p, cluster in map(clustered, range(30))]
    assert sum(each.verdict == "miscalibrated" for each in found) <= 4


@pytest.mark.slow
def test_groups_use_the_clusters_of_their_rows():
    y, p, cluster = clustered(0)
    group = np.where(cluster % 2, "odd", "even")
    found = evaluated(y, p, cluster=cluster, by=group)
    for name, own in found.groups.items():
        mine = group == name
        alone = evaluated(y[mine], p[mine], cluster=cluster[mine]).decision
        assert (own.decision.omnibus, own.decision.deviation) == (alone.omnibus, alone.deviation)
        assert own.decision.deviation != evaluated(y[mine], p[mine]).decision.deviation
    wrong = 0
    for seed in range(15):
        y, p, cluster = clustered(100 + seed)
        groups = evaluated(y, p, cluster=cluster, by=cluster % 2).groups.values()
        wrong += any(group.verdict == "miscalibrated" for group in groups)
    assert wrong <= 3


@pytest.mark.slow
def test_fewer_than_ten_clusters():
    y, p, cluster = clustered(0, clusters=40)
    with pytest.raises(cb.InputError, match="cluster must have at least 3 distinct values for inference; got 2"):
        evaluated(y, p, cluster=cluster % 2)
    whole = evaluated(y, p, cluster=cluster % 9)
    assert list(whole.tests) == ["calibration in the large"]
    assert whole.coefficients[0].df == 8
    for margin in (0.1, cb.AbsoluteMargin(0.5)):
        found = evaluated(y, p, cluster=cluster, by=np.where(cluster < 5, "few", "many"), margin=margin)
        few = found.groups["few"]
        assert (list(few.tests), few.coefficients) == (["calibration in the large"], (few.mean_over_clusters,))
        assert few.verdict in ("inconclusive", "miscalibrated")
        assert "Groups with fewer than 10 clusters, of which little or nothing is tested: few." in repr(found)
        assert "Other results are valid for these clusters, not for the next one." in repr(few)
        assert all(math.isnan(metric.interval.low) and math.isnan(metric.pvalue) for metric in few.metrics.values())
        json.dumps(found.to_dict(), allow_nan=False)
        assert not HAS_REPORT or "few" in found.to_html()


# Direction


@pytest.mark.slow
def test_symmetric_overconfidence_has_one_direction():
    claimed, false = 0, 0
    for seed in range(30):
        y, p = rows(seed, 2000)
        ways = evaluated(y, expit(1.4 * logit(p))).direction.split(", ")
        claimed += "overconfident" in ways
        false += bool({"overestimates", "underestimates", "underconfident"} & set(ways))
    assert claimed >= 29
    assert false <= 2


def test_swapping_the_event_swaps_the_direction():
    for seed in range(5):
        y, p = rows(seed, 1500)
        scores = expit(1.2 * logit(p) + 0.3)
        one, other = evaluated(y, scores), evaluated(1 - y, 1 - scores)
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-6)
        assert other.log_odds_error.value == pytest.approx(one.log_odds_error.value, abs=1e-9)
        flipped = {"overestimates": "underestimates", "underestimates": "overestimates"}
        assert [flipped.get(way, way) for way in one.direction.split(", ")] == other.direction.split(", ")


# No p-value contradicts the verdict


def printed_pvalues(found):
    """All p-values of calibration that are printed with an evaluation; that of equal groups has its own hypothesis."""
    text = re.sub(
        r"(equal groups|log-odds shift [\d.]+,|groups shown \()\s?p [=<] [\d.e-]*\d", "", "\n".join(found.reasons())
    )
    numbers = re.findall(r"p [=<] ([\d.e-]*\d)", text) + re.findall(r"\(([\d.]+(?:e-\d+)?|< 1e-300)\)", text)
    return [float(number.removeprefix("< ")) for number in numbers] + [
        m.pvalue for m in found.metrics.values() if not math.isnan(m.pvalue)
    ]


@pytest.mark.slow
def test_no_printed_pvalue_contradicts_the_verdict():
    panel = {"ECE": cb.ECE(), "TCE": cb.TCE(), "Brier": cb.METRICS["brier"]()}
    checked = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(30, 600))
        p = rng.beta(*rng.uniform(0.3, 3, 2), size)
        y = rng.random(size) < expit(rng.normal(1, 0.1) * logit(np.clip(p, 1e-6, 1 - 1e-6)) + rng.normal(0, 0.1))
        found = evaluated(y, p, by=rng.integers(0, 3, size), metrics=panel)
        for each in (found, *found.groups.values()):
            if each.verdict in ("calibrated", "inconclusive"):
                pvalues = printed_pvalues(each)
                assert len(pvalues) >= 5
                assert min(pvalues) > 0.05
                assert each.direction == ""
                checked += 1
    assert checked > 100


# Invariances


def test_frequencies_equal_repeated_rows():
    y, p = rows(3, 400)
    times = np.random.default_rng(3).integers(1, 5, 400)
    # In random order: equal rows that are neighbours depend on each other, which a note says.
    repeated = np.random.default_rng(4).permutation(np.repeat(np.arange(400), times))
    one, other = evaluated(y, p, frequency=times), evaluated(y[repeated], p[repeated])
    assert (one.verdict, one.direction) == (other.verdict, other.direction)
    assert one.decision == other.decision
    assert one.metrics == other.metrics
    assert one.coefficients == other.coefficients


def test_the_order_of_rows_has_no_effect():
    y, p = rows(4, 700)
    order = np.random.default_rng(4).permutation(700)
    one, other = evaluated(y, p), evaluated(y[order], p[order])
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("scores", [None, rare], ids=["half", "rare"])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_scale_of_weights_changes_no_decision(scores, factor):
    y, p = rows(5, 2000, scores)
    weights = np.random.default_rng(5).exponential(size=2000)
    one, other = evaluated(y, p, sample_weight=weights), evaluated(y, p, sample_weight=factor * weights)
    assert (one.verdict, one.direction) == (other.verdict, other.direction)
    adjusted = [[c.adjusted_pvalue for c in each.decision.omnibus.components.values()] for each in (one, other)]
    assert adjusted[1] == pytest.approx(adjusted[0], rel=1e-9, abs=1e-12)
    assert other.equivalence.bound == pytest.approx(one.equivalence.bound, rel=1e-7)  # by a root finder
    assert other.log_odds_error.value == pytest.approx(one.log_odds_error.value, rel=1e-9, abs=1e-9)
    assert other.details.information == pytest.approx(one.details.information, rel=1e-9)


# The tests behind the verdict, by loops over rows


def test_the_deviation_over_bins_by_rows():
    y, p = rows(6, 300)
    table = cb.ScoreTable.from_arrays(y, p)
    bins = LogOddsBins.from_table(table, EqualInformation(7))
    statistic = variance = 0.0
    edges = [*table.score[bins.start], np.inf]
    for low, high in itertools.pairwise(edges):
        residual = spread = fourth = 0.0
        for event, score in zip(y, p, strict=True):
            if low <= score < high:
                v = score * (1 - score)
                residual, spread = residual + event - score, spread + v
                fourth += v * (1 - 6 * v)
        statistic += residual**2 / spread
        variance += 2 + fourth / spread**2
    found = residual_test(Design(table), bins, "deviation")
    assert found.statistic == pytest.approx(statistic)
    scale, df = variance / 2 / len(bins), 2 * len(bins) ** 2 / variance
    assert found.pvalue == pytest.approx(chi2.sf(statistic / scale, df))


def test_the_covariance_of_clusters_by_a_loop():
    y, p, cluster = clustered(7, clusters=30, size=6, rho=0.8)
    clusters, (table,) = PairedRows.read(y, [p], cluster=cluster)
    bins = LogOddsBins.from_table(table, EqualInformation(4))
    label = bins.labels[np.searchsorted(table.score, p)]
    sums = np.zeros((30, len(bins)))
    for event, score, c, b in zip(y, p, cluster, label, strict=True):
        sums[c, b] += event - score
    mean = sums.mean(axis=0)
    wanted = sum(np.outer(row - mean, row - mean) for row in sums) * 30 / 29
    assert np.trace(wanted) > np.trace(np.diag(bins.variance()))
    assert Design(table, clusters).covariance(bins) == pytest.approx(wanted)


@given(n=st.integers(1, 200), share=st.floats(0, 1), p=st.floats(0.001, 0.999))
def test_the_binomial_tail(n, share, p):
    k = round(share * n)
    wanted = min(1.0, 2 * min(binom.cdf(k, n, p), binom.sf(k - 1, n, p)))
    assert binomial_two_sided(k, n, p) == pytest.approx(wanted, rel=1e-8, abs=1e-300)


def test_the_binomial_tail_of_certain_outcomes():
    assert (binomial_two_sided(0, 5, 0.0), binomial_two_sided(1, 5, 0.0)) == (1.0, 0.0)
    assert (binomial_two_sided(5, 5, 1.0), binomial_two_sided(4, 5, 1.0)) == (1.0, 0.0)


@pytest.mark.slow
def test_the_saddlepoint_tail_by_simulation():
    rng = np.random.default_rng(8)
    q = rng.beta(0.5, 30, 400)
    contrast = logit(q) - np.average(logit(q), weights=q * (1 - q))
    totals = np.concatenate([(rng.random((2000, 400)) < q) @ contrast for _ in range(100)]) - q @ contrast
    for share in (0.9, 0.95, 0.98):
        total = float(np.quantile(totals, share))
        assert saddlepoint_two_sided(total, contrast, np.ones(400), q) == pytest.approx(2 * (1 - share), rel=0.1)
        total = float(np.quantile(totals, 1 - share))
        assert saddlepoint_two_sided(total, contrast, np.ones(400), q) == pytest.approx(2 * (1 - share), rel=0.1)


def test_a_quadratic_form_without_variance():
    assert quadratic_tail(1.0, 1.0, 0.0) == 1.0
    assert quadratic_tail(2.0, 1.0, 0.0) == 0.0


@given(table=tables)
def test_the_upper_limit_is_never_0_and_falls_with_alpha(table):
    deviation = LogOddsDeviation(Design(table.round(2.0**-20)))
    limits = [deviation.upper(alpha) for alpha in (0.001, 0.01, 0.05, 0.2)]
    assert all(limit > 0 for limit in limits)
    assert limits == pytest.approx(sorted(limits, reverse=True), rel=1e-6)


def test_rates_that_equal_the_scores_are_bounded():
    exact = cb.ScoreTable.from_counts([0.3, 0.7], [50_000, 50_000], [15_000, 35_000])
    found = evaluated(exact)
    assert found.verdict == "calibrated"
    assert 0.005 < found.equivalence.bound < 0.03


@given(table=tables, n_bins=st.integers(1, 12))
def test_the_log_odds_error_of_a_bin_solves_its_equation(table, n_bins):
    bins = LogOddsBins.from_table(table, EqualInformation(n_bins))
    predicted = bins.total(table.n * bins.shifted(bins.error))
    events = np.clip(bins.k, np.minimum(0.5, bins.n / 2), bins.n - np.minimum(0.5, bins.n / 2))
    assert predicted == pytest.approx(events, abs=1e-6)


@given(pairs=some_rows, n_bins=st.integers(1, 12))
def test_bins_of_equal_information_cover_the_table(pairs, n_bins):
    y, p = (np.array(column) for column in zip(*pairs, strict=True))
    table = cb.ScoreTable.from_arrays(y, p)
    partition = EqualInformation(n_bins)(table)
    assert partition.n.sum() == table.size
    assert partition.start[0] == 0
    assert np.all(np.diff(partition.start) > 0)
    assert len(partition.start) <= n_bins
    assert len({*table.score[partition.start]}) == len(partition.start)  # equal scores share a bin


# Groups


@pytest.fixture(scope="module")
def thirty_groups():
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(30), 1500)
    p = rng.uniform(0.2, 0.8, group.size)
    shift = np.select([group == 7, group == 21], [0.6, -0.9], 0.0)
    return evaluated(rng.random(p.size) < expit(logit(p) + shift), p, by=group)


def test_the_headline_counts_miscalibrated_groups(thirty_groups):
    assert thirty_groups.verdict in ("calibrated", "negligible")
    wanted = f"Verdict: {thirty_groups.verdict} overall; 2 of 30 groups are miscalibrated, 28 are inconclusive"
    assert thirty_groups.headline().partition("; groups differ")[0] == wanted
    assert repr(thirty_groups).startswith(wanted)


def test_groups_are_printed_worst_first_and_only_twenty(thirty_groups):
    order = list(thirty_groups.worst_first)
    assert order[:2] == [21, 7]
    severities = [sentences.severity(group.verdict) for group in thirty_groups.worst_first.values()]
    assert severities == sorted(severities)
    text = repr(thirty_groups)
    assert "the worst 20 of 30" in text
    table = text.split("worst first")[1].splitlines()[2:]
    assert [int(line.split()[0]) for line in table if line.strip()[:1].isdigit()] == order[:20]
    assert thirty_groups._repr_html_().count("1,500") == 20
    assert len(thirty_groups.to_dict()["groups"]) == 30


@pytest.mark.parametrize(
    ("bad", "count", "text"),
    [
        (0, 1, "the only group is not shown to be miscalibrated"),
        (1, 1, "the only group is miscalibrated"),
        (0, 3, "none of 3 groups is shown to be miscalibrated, 3 are inconclusive"),
        (1, 3, "1 of 3 groups is miscalibrated, 2 are inconclusive"),
        (2, 3, "2 of 3 groups are miscalibrated, 1 is inconclusive"),
    ],
)
def test_groups_are_counted_in_words(bad, count, text):
    good, wrong = cb.ScoreTable.from_counts([0.4], [500], [200]), cb.ScoreTable.from_counts([0.4], [500], [400])
    found = evaluated({str(i): wrong if i < bad else good for i in range(count)})
    assert found.headline().partition("; groups differ")[0].endswith(f" overall; {text}")


# Impossible outcomes


@pytest.mark.parametrize("margin", [0.1, cb.AbsoluteMargin(0.1)], ids=["log-odds", "absolute"])
def test_an_event_with_score_0_contradicts_calibration(margin):
    y, p = rows(9, 20_000)
    y[0], p[0] = 1, 0.0
    found = evaluated(y, p, margin=margin)
    assert (found.verdict, found.pvalue, found.equivalence.bound) == ("miscalibrated", 0.0, math.inf)
    assert found.sentences() == ["1 row contradicts its score of 0 or 1, which no calibrated model allows."]
    y[1], p[1] = 0, 1.0
    assert "2 rows contradict their score of 0 or 1" in repr(evaluated(y, p))
    assert "Rows with a total weight of 1 contradict" in repr(evaluated(y, p, sample_weight=np.full(y.size, 0.5)))


# Sentences

CASES = {
    "calibrated": (rows(1, 40_000), {}),
    "negligible": ((np.repeat([1, 0], [10_200, 9_800]), np.full(20_000, 0.5)), {}),
    "miscalibrated": ((rows(0, 2000)[0], rows(0, 2000)[1] ** 0.5), {}),
    "inconclusive": (rows(0, 200), {}),
    "absolute": (rows(0, 3000), {"margin": cb.AbsoluteMargin(0.01)}),
    "contradiction": (([1, 0, 1], [0.0, 0.3, 0.4]), {}),
    "one row": (([1], [0.5]), {}),
    "hard labels": (([1, 0], [1, 0]), {}),
    "no event": ((np.zeros(50, dtype=int), np.full(50, 1e-9)), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_text_html_and_json_of_each_verdict(case):
    (y, p), options = CASES[case]
    found = evaluated(y, p, **options)
    assert found.verdict == case if case in sentences.VERDICTS else found.verdict
    text = repr(found)
    page = found._repr_html_()
    for sentence in (found.headline(), *found.sentences()):
        assert sentence in text
        assert sentence.replace("<", "&lt;") in page
        assert "nan" not in sentence
        assert "e+0" not in sentence
        assert not re.search(r"\b1 (rows|more rows|events|percentage points)\b", sentence)
    back = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (back["verdict"], back["direction"], back["headline"]) == (
        found.verdict,
        found.direction,
        found.headline(),
    )


def test_an_inconclusive_verdict_states_the_additional_rows_needed():
    found = evaluated(*rows(0, 500))
    assert found.rows_to_decide > 1000
    (sentence,) = found.sentences()
    assert re.search(r"About [\d,]+ more rows, with about [\d,]+ events, would probably decide\.$", sentence)


def test_an_error_near_the_margin_does_not_ask_for_0_rows():
    found = next(e for e in (evaluated(*rows(seed, 13_500)) for seed in range(60)) if e.rows_to_decide == 0)
    (sentence,) = found.sentences()
    assert sentence.endswith("These rows are enough for most calibrated models, but the error lies near the margin.")
    assert " 0 more" not in sentence


@pytest.mark.parametrize(
    ("log_odds", "text"),
    [
        (0.0012, "0.12 %"),
        (0.1, "10 %"),
        (0.2, "20 %"),
        (0.39, "a factor of 1.48"),
        (0.7, "a factor of 2.01"),
        (5, "a factor of 150"),
        (9.4, "a factor of 12,000"),
        (20, "a factor of 4.9e+08"),
        (700, "a factor beyond 1e+300"),
    ],
)
def test_a_deviation_is_printed_in_percent_or_as_a_factor(log_odds, text):
    assert format_log_odds(log_odds) == text


def test_the_decision_needs_no_resamples():
    y, p = rows(0, 500)
    tests = BinaryTests.from_design(Design(cb.ScoreTable.from_arrays(y, p)))
    decision, _ = decide(tests, margin=0.1, alpha=0.05, confidence_level=0.95)
    assert evaluated(y, p, n_resamples=19).decision == evaluated(y, p, random_state=5).decision == decision


# Designs in which an earlier version of the tests lost its level.


def shares(count, one):
    return np.mean([one(np.random.default_rng([9, seed])) for seed in range(count)])


@pytest.mark.parametrize(("clusters", "low", "high"), [(10, 0.02, 0.04), (40, 0.02, 0.04), (100, 0.05, 0.2)])
def test_clusters_with_a_constant_outcome_count_as_single_observations(clusters, low, high):
    def rejects(rng):
        p = rng.uniform(low, high, clusters)
        y, cluster = rng.random(clusters) < p, np.repeat(np.arange(clusters), 50)
        return least_pvalue(y[cluster], p[cluster], cluster=cluster) <= 0.05

    assert shares(60, rejects) <= 0.1


def test_a_dominating_cluster_is_never_within_the_margin(rng):
    cluster = np.repeat(np.arange(60), [8000] + [34] * 59)
    q = rng.beta(2, 2, cluster.size)
    found = cb.evaluate(rng.random(q.size) < q, q, cluster=cluster, n_resamples=19, metrics={"ECE": cb.ECE()})
    assert not found.is_within_margin
    rows, (table,) = PairedRows.read(np.ones(cluster.size), [q], cluster=cluster)
    assert Design(table, rows).effective_clusters < 2


def test_weights_that_depend_on_score_and_outcome_keep_the_level():
    def rejects(rng):
        p = np.clip(rng.beta(1, 4, 20_000), 1e-9, 1)
        y = rng.random(p.size) < p
        kept_with = np.where(y & (p < 0.1), 0.01, 0.3)
        kept = rng.random(p.size) < kept_with
        return least_pvalue(y[kept], p[kept], sample_weight=1 / kept_with[kept]) <= 0.05

    assert shares(60, rejects) <= 0.12


def test_limits_are_finite_where_the_noncentral_distribution_is_not():
    rng = np.random.default_rng([11, 38])
    p = np.clip(rng.beta(1, 4, 20_000), 1e-9, 1)
    y = rng.random(p.size) < p
    kept_with = np.where(y & (p < 0.1), 0.01, 0.3)
    kept = rng.random(p.size) < kept_with
    table = cb.ScoreTable.from_arrays(y[kept], p[kept], sample_weight=1 / kept_with[kept])
    found = decide(BinaryTests.from_design(Design(table)), margin=0.1, alpha=0.05, confidence_level=0.95)[1].error
    assert 0 <= found.low <= found.value <= found.high < np.inf


def test_the_sentence_of_an_average_does_not_speak_of_single_scores(rng):
    p = rng.beta(2, 2, 200_000)
    rate = expit(logit(p) + 0.25 * (np.abs(p - 0.5) < 0.03))
    found = cb.evaluate(rng.random(p.size) < rate, p, n_resamples=19, metrics={"ECE": cb.ECE()})
    assert found.verdict == "negligible"
    assert "single scores may be off by more" in repr(found)


def least_pvalue(y, p, *, cluster=None, **options):
    """The smallest adjusted p-value of a data set."""
    if cluster is None:
        return BinaryTests.from_design(Design(cb.ScoreTable.from_arrays(y, p, **options))).omnibus.pvalue
    rows, (table,) = PairedRows.read(y, [p], cluster=cluster, **options)
    return BinaryTests.from_design(Design(table, rows)).omnibus.pvalue


def test_limits_of_the_largest_counts_do_not_take_seconds():
    start = time.process_time()
    cb.evaluate([0, 1], [0.25, 0.25], frequency=[2**52 - 1] * 2, n_resamples=19)
    assert time.process_time() - start < 5
