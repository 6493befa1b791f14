"""Calibrator files: plain data with a matching checksum, and any bytes."""

import functools
import json
import warnings
from typing import Any

import numpy as np

import calibrant as cb
from calibrant.export import calibrator_files
from tests.fuzz.choices import Choices
from tests.fuzz.mutations import mutate


@functools.cache
def bodies() -> list[Any]:
    """Return calibrators of each kind as plain data."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.9, 60).round(3)
    y = (rng.random(60) < p).astype(int)
    proba, point = rng.dirichlet([1.0, 2.0, 1.5], 60), rng.normal(10, 3, 60)
    actual = np.array([rng.choice(3, p=row) for row in proba])
    outcome = 1.2 * point + rng.normal(0, 1, 60)
    binary = (
        cb.Platt(),
        cb.Isotonic(),
        cb.Isotonic(strict=True),
        cb.calibrators.BinningAverage(n_bins=3),
        cb.Beta(),
        cb.calibrators.Temperature(),
    )
    binary += (
        cb.calibrators.CATS(cb.costs.LinearCost(1, 5)),
        cb.calibrators.PriorShift(prevalence=0.2),
        cb.calibrators.VennAbers(),
    )
    several = (
        cb.calibrators.OneVsRest(cb.Platt()),
        cb.calibrators.SoftmaxTemperature(),
        cb.calibrators.MatrixScaling(),
        cb.calibrators.PairwiseCoupling(cb.Platt()),
    )
    rg, gaussian = cb.regression, cb.Gaussian(point, np.full(60, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = [each.fit(p, y) for each in binary] + [each.fit(proba, actual) for each in several]
        fitted += [each.fit(point, outcome) for each in (rg.LinearRecalibrator(), rg.IsotonicRecalibrator())]
        fitted += [rg.VarianceScaling().fit(gaussian, outcome), rg.ParetoRecalibrator().fit(gaussian, outcome)]
        fitted += [cb.calibrators.ProportionRule().fit(p, y, by=np.where(p > 0.5, "high", "low"))]
        return [json.loads(json.dumps(calibrator_files.calibrator_to_dict(each))) for each in fitted]


def seeds() -> list[bytes]:
    return [bytes([1, i, 1, 5, 3, 2, 8]) for i in range(len(bodies()))] + [b"\x00" + json.dumps(bodies()[0]).encode()]


def run(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.whole(0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if kind == 0:
                calibrator_files._read(choices.rest)
                return
            body = mutate(choices.pick(bodies()), choices)
            found = calibrator_files.calibrator_from_dict(body)
            repr(found), calibrator_files.calibrator_to_dict(found)
            if found.kind == "binary":
                scores = found([0.0, 0.2, 0.5, 1.0])
                assert ((scores >= 0) & (scores <= 1)).all(), scores
            if found.kind == "multiclass":
                classes = len(found.classes_)
                scores = found(np.vstack([np.eye(classes), np.full((1, classes), 1 / classes)]))
                assert ((scores >= 0) & (scores <= 1)).all(), scores
        except (cb.InputError, RecursionError):  # `load` turns a RecursionError into an InputError
            pass
