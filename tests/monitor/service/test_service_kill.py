"""Kill -9 of the service under load; ``make kill NAME=service`` does it 200 times per store."""

import random
from pathlib import Path

import pytest

from tools.kill import service


@pytest.mark.xdist_group("service_kill")
def test_nothing_acknowledged_is_lost_and_each_alarm_arrives_when_the_service_is_killed(store, tmp_path):
    result = service.run(store, Path(tmp_path), n_kills=3, n_clients=3, seed=random.Random(0), kind="test")
    assert result.kills == 3
    assert result.batches_acknowledged >= 3
    assert (result.batches_lost, result.batches_counted_twice) == (0, 0)
    assert result.alarms == result.outbox_entries == result.entries_received
    assert (result.entries_lost, result.unsigned) == (0, 0)
