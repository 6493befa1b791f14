"""Groups whose rows are in too few clusters: the same estimates, and no tests or intervals, for every kind.

Kinds with calibration in the large test its mean over three clusters or more.
"""

import json
import math

import numpy as np
import pytest

import calibrant as cb
from tests.kinds.cases import draw, each_kind


@pytest.fixture(scope="module")
def groups():
    """Evaluations of a group of 5 clusters, and of one that is as large and has independent rows, by kind."""
    found = {}

    def evaluate(kind):
        if kind not in found:
            sample, few = draw(kind), np.arange(800) < 400
            cluster = np.where(few, np.arange(800) % 5, np.arange(800))
            by = np.where(few, "few", "many")
            found[kind] = cb.evaluate(sample.y, sample.make(sample.wrong), by=by, cluster=cluster, n_resamples=19)
        return found[kind]

    return evaluate


@each_kind
def test_nothing_is_tested(groups, kind):
    few = groups(kind).groups["few"]
    assert not few.decision.claims
    if few.mean_over_clusters is None:
        assert few.verdict == "inconclusive"
        assert few.direction == ""
        assert math.isnan(few.pvalue)
        assert not few.tests
    else:
        assert kind == "binary"
        assert list(few.tests) == ["calibration in the large"]
        assert few.verdict == ("miscalibrated" if few.pvalue <= 0.05 else "inconclusive")
    assert groups(kind).groups["many"].verdict == "miscalibrated"


@each_kind
def test_the_size_of_the_deviation_has_no_bound_and_no_test(groups, kind):
    size = groups(kind).groups["few"].decision.deviation
    assert math.isfinite(size.value)
    assert all(math.isnan(number) for number in (size.low, size.high, size.bound, size.pvalue))
    assert not size.within


@each_kind
def test_metrics_and_coefficients_are_estimates_alone(groups, kind):
    few, many = (groups(kind).groups[name] for name in ("few", "many"))
    assert set(few.metrics) == set(many.metrics)
    for metric in few.metrics.values():
        limits = (metric.interval.low, metric.interval.high, metric.null.low, metric.null.high, metric.null.expected)
        assert math.isfinite(metric.value)
        assert all(map(math.isnan, (*limits, metric.null.pvalue, metric.pvalue))), metric
    others = [each for each in few.coefficients if each is not few.mean_over_clusters]
    assert all(math.isnan(each.low) and math.isnan(each.high) for each in others)


@each_kind
def test_one_note_and_one_sentence_state_the_reason(groups, kind):
    whole = groups(kind)
    few = whole.groups["few"]
    (note,) = (note.text for note in few.notes if note.code == "few_clusters")
    if few.mean_over_clusters is None:
        assert note == "There are 5 clusters; tests need at least 10."
        assert "here are too few clusters for a test" in repr(few)
        assert "Omnibus test: skipped because there are too few clusters" in "\n".join(few.reasons())
    else:
        assert "Student's t of 4 degrees of freedom" in note
        assert "Other results are valid for these clusters, not for the next one." in repr(few)
    assert [note.text for note in whole.notes if note.code == "few_clusters"] == [
        "Groups with fewer than 10 clusters, of which little or nothing is tested: few."
    ]
    assert "too few clusters for a test" not in "\n".join(whole.reasons())
    n_tested = sum(not math.isnan(each["pvalue"]) for each in whole.adjusted.values())
    assert n_tested == (1 if few.mean_over_clusters is None else 2)


@each_kind
def test_json_has_the_number_of_clusters_and_no_number_that_was_not_estimated(groups, kind):
    few = groups(kind).groups["few"].to_dict()
    json.dumps(few, allow_nan=False)
    assert few["details"]["n_clusters"] == 5
    assert few["equivalence"]["pvalue"] is few["equivalence"]["bound"] is None
    assert (few["pvalue"] is None) == (few["tests"] == [])
    assert "levels" not in few["details"]


@each_kind
def test_such_a_group_can_be_drawn_and_reported(groups, kind):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    few = groups(kind).groups["few"]
    few.plot()
    page = few.to_html()
    assert ("too few clusters for a test" if few.mean_over_clusters is None else "not for the next one") in page
    assert ">nan" not in page
