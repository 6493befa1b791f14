"""Specifications of metrics: `GCE.from_spec` and `metrics.from_spec`."""

import json
import warnings

import calibrant as cb
from calibrant.metrics import from_spec
from tests.fuzz.choices import Choices
from tests.fuzz.mutations import mutate

TABLE = cb.ScoreTable.from_counts([0.0, 0.1, 0.3, 0.55, 0.8, 1.0], [3, 20, 20, 40, 30, 2], [0, 1, 8, 20, 27, 2])
METRICS = [
    *(
        cb.TCE(alpha=0.01),
        cb.ECE(n_bins=15),
        cb.metrics.ACE(),
        cb.metrics.ECC(cost=cb.costs.LinearCost(1, 5)),
        cb.metrics.MCE(),
        cb.metrics.RMSCE(),
    ),
    cb.GCE(cb.bins.PAVA(), cb.losses.absolute_gap, cb.norms.weighted_l2),
    cb.GCE(cb.bins.Edges([0.0, 0.2, 1.0]), cb.losses.squared_gap, cb.norms.weighted_l1),
]
SPECS = [metric.spec for metric in METRICS] + [{"name": "brier"}, {"name": "smooth_ece"}, {"name": "log_odds_error"}]


def seeds() -> list[bytes]:
    return [b"\x00" + json.dumps(spec).encode() for spec in SPECS] + [
        bytes([1, i, 7, 3, 1, 9]) for i in range(len(SPECS))
    ]


def run(data: bytes) -> None:
    choices = Choices(data)
    if choices.whole(0, 1) == 0:
        try:
            spec = json.loads(choices.rest)
        except (ValueError, RecursionError):
            return
    else:
        spec = mutate(choices.pick(SPECS), choices)
    for rebuild in (cb.GCE.from_spec, from_spec):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                metric = rebuild(spec)
                repr(metric), metric.spec
                found = metric(TABLE)
                float(found), found.to_dict()
        except cb.InputError:
            pass
