"""The studies of verdicts run on the present library: each is called with a few data sets."""

import numpy as np
import pytest

from research.studies import failures, verdicts


@pytest.mark.parametrize("dependence", verdicts.DEPENDENCE)
def test_the_study_of_verdicts_counts_each_data_set_once(monkeypatch, dependence):
    monkeypatch.setattr(verdicts, "CHUNK", 3)
    counted = verdicts.count((verdicts.Cell(dependence, 0.5, "continuous", 1_000, "shift of 0.3"), 0))
    assert sum(counted[name] for name in verdicts.VERDICTS) == 3
    assert counted["omnibus"] == counted["miscalibrated"] + counted["negligible"]


@pytest.mark.parametrize(
    "study",
    [failures.weights, failures.clusters, failures.directions, failures.contradictions],
    ids=lambda study: study.__name__,
)
def test_the_study_of_failures_answers_each_condition(monkeypatch, study):
    monkeypatch.setattr(failures, "share", lambda count, of: f"{of(np.random.default_rng([7, 0]))}")
    for _, _, _, after in study():
        assert "True" in after or "False" in after
