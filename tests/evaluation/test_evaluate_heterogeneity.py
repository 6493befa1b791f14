"""`Evaluation.heterogeneity` and few clusters: in results, text, JSON, report, gate."""

import json
import math
import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.advice import advice, is_period
from calibrant.results import Heterogeneity
from tests.kinds.cases import draw, each_kind

WITHOUT = ("labels", "ordinal")  # kinds whose deviations have no single size


@pytest.fixture(scope="module")
def differing():
    """Fifty groups of 60 rows that differ, with names by a function."""
    rng = np.random.default_rng(0)
    group, effect = np.repeat(np.arange(50), 60), rng.normal(0, 0.5, 50)
    p = rng.beta(2, 3, 3000)
    odds = p / (1 - p) * np.exp(effect - effect.mean())[group]
    return rng.random(3000) < odds / (1 + odds), p, group


@pytest.fixture(scope="module")
def result(differing):
    y, p, group = differing
    return cb.evaluate(y, p, by=group, n_resamples=19)


@each_kind
def test_each_kind_states_whether_it_compares_groups(kind):
    sample = draw(kind)
    found = cb.evaluate(sample.y, sample.make(sample.right), by=np.arange(800) % 8, n_resamples=3)
    if kind in WITHOUT:
        assert found.heterogeneity is None
    else:
        assert isinstance(found.heterogeneity, Heterogeneity)
        assert found.heterogeneity.pvalue > 1e-4
        assert list(found.heterogeneity.groups) == list(found.groups)
        assert "Heterogeneity between 8 groups" in repr(found)
    assert all(group.heterogeneity is None for group in found.groups.values())
    assert cb.evaluate(sample.y, sample.make(sample.right), n_resamples=3).heterogeneity is None


def test_headline_and_strong_calibration_state_that_groups_differ(result):
    assert result.heterogeneity.pvalue < 1e-6
    assert "; groups differ (p = " in result.headline()
    assert "groups miscalibrated and groups differ" in repr(result)


def test_heterogeneity_alone_does_not_fail(result):
    assert result.passed == (result.n_miscalibrated_groups == 0 and result.verdict != "miscalibrated")


def test_equal_groups_are_not_said_to_differ(differing):
    rng = np.random.default_rng(1)
    _, p, group = differing
    found = cb.evaluate(rng.random(3000) < p, p, by=group, n_resamples=19)
    assert "groups differ" not in found.headline()
    assert "no difference between groups shown (p = " in repr(found)


def test_json_pickle_and_frame_hold_the_estimates(result):
    h = result.heterogeneity
    plain = json.loads(result.to_json())["heterogeneity"]
    assert plain["sd"] == h.sd
    assert plain["groups"][3]["shrunken"] == h.groups[3].shrunken
    assert pickle.loads(pickle.dumps(h)) == h
    frame = h.to_frame()
    assert frame["shrunken"].tolist() == [group.shrunken for group in h.groups.values()]


def test_tables_by_group_have_the_same_heterogeneity_as_rows(differing, result):
    y, p, group = differing
    tables = {g: cb.ScoreTable.from_arrays(y[group == g], p[group == g]) for g in range(50)}
    assert cb.evaluate(tables, n_resamples=1).heterogeneity.to_dict() == result.heterogeneity.to_dict()


def test_the_report_recommends_estimates_of_all_groups(result):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    page = result.to_html()
    assert "Take differences between groups into account." in page
    assert "Heterogeneity between 50 groups" in page


@pytest.mark.parametrize(
    ("names", "recommended"), [([f"{2020 + i // 4}-Q{i % 4 + 1}" for i in range(50)], False), (range(50), True)]
)
def test_past_periods_cannot_collect_rows(differing, names, recommended):
    rng = np.random.default_rng(2)
    _, p, group = differing
    p = np.tile(p, 6)
    by = np.tile(np.array(list(names))[group] if recommended else np.array(names)[group], 6)
    found = cb.evaluate(rng.random(p.size) < p, p, by=by, n_resamples=1, metrics=["brier"])
    assert found.verdict == "calibrated"
    leads = [action.lead for action in advice(found, "m0")]
    assert ("Collect more rows of small groups." in leads) == recommended


@pytest.mark.parametrize(
    "name", ["2024", "2024-05", "202405", "2024-05-01", "2024Q1", "2024-W07", 2019, np.datetime64("2024-01")]
)
def test_periods(name):
    assert is_period(name)


@pytest.mark.parametrize("name", ["north", 7, "20245", "A-2024", 1.5, None, ("2024", "x")])
def test_other_names(name):
    assert not is_period(name)


def test_few_clusters_have_an_answer(differing):
    y, p, _ = differing
    found = cb.evaluate(y, p, cluster=np.arange(3000) % 5, n_resamples=19)
    mean = found.mean_over_clusters
    assert found.coefficients == (mean,)
    assert (mean.df, found.pvalue) == (4, mean.pvalue)
    assert found.verdict == "inconclusive"
    assert all(math.isnan(metric.interval.low) for metric in found.metrics.values())
    assert "not for the next one" in found.sentences()[0]
    json.dumps(found.to_dict(), allow_nan=False)


def test_few_clusters_show_a_large_deviation():
    rng = np.random.default_rng(3)
    p = rng.beta(2, 3, 3000)
    found = cb.evaluate(rng.random(3000) < p / (p + 3 * (1 - p)), p, cluster=np.arange(3000) % 4, n_resamples=19)
    assert (found.verdict, found.direction) == ("miscalibrated", "overestimates")
    assert found.mean_over_clusters.high < 0
    assert not found.passed


@pytest.mark.parametrize("clusters", [1, 2])
def test_two_clusters_are_refused(differing, clusters):
    y, p, _ = differing
    with pytest.raises(
        cb.InputError, match=f"cluster must have at least .* distinct values for inference; got {clusters}"
    ):
        cb.evaluate(y, p, cluster=np.arange(3000) % clusters, n_resamples=1)


def test_few_clusters_with_weights_and_groups(differing):
    y, p, _ = differing
    weight = np.random.default_rng(4).exponential(size=3000)
    by, cluster = np.arange(3000) % 2, np.arange(3000) // 2 % 6
    found = cb.evaluate(y, p, by=by, cluster=cluster, sample_weight=weight, n_resamples=19)
    assert [group.mean_over_clusters.df for group in found.groups.values()] == [5, 5]
    assert {note.code for note in found.notes} >= {"few_clusters", "heterogeneity_clusters", "heterogeneity_weights"}
