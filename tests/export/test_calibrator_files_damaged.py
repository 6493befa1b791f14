"""Calibrator files with a matching checksum: each field of each calibrator, changed in many ways."""

import copy
import json
import os
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import calibrant as cb
from calibrant.calibrators import boosted_trees
from calibrant.export import calibrator_files

RNG = np.random.default_rng(0)
P = RNG.beta(0.7, 0.9, 400)
Y = (RNG.random(400) < P**1.3).astype(int)
PROBA = RNG.dirichlet([1.0, 2.0, 1.5], 300)
CLASS = np.array([RNG.choice(3, p=row) for row in PROBA])
POINT = RNG.normal(10, 3, 300)
OUTCOME = 1.2 * POINT - 1 + RNG.normal(0, 1, 300)
GAUSSIAN = cb.Gaussian(POINT, np.full(300, 0.5))
QUANTILES = cb.Quantiles([0.1, 0.5, 0.9], np.sort(POINT[:, None] + RNG.normal(0, 1, (300, 3)), axis=1))
SCORES = np.linspace(0, 1, 7)


FEATURES = np.empty((400, 2), dtype=object)
FEATURES[:, 0], FEATURES[:, 1] = np.where(P > 0.7, "high", "low"), P.round(1)


def subgroups():
    """Return a small Multicalibrator that changes its scores: two folds, one round of a few trees each."""
    usual, boosted_trees.TREES = boosted_trees.TREES, 2
    try:
        model = cb.Multicalibrator(backend="sklearn", max_rounds=1, max_leaf_nodes=3, cv=2)
        fitted = model.fit(FEATURES, Y, scores=1 - P)
    finally:
        boosted_trees.TREES = usual
    assert fitted.n_rounds_ == 1
    return fitted


def calibrators():
    """Return fitted calibrators of all classes that can be saved, with settings other than the defaults."""
    from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS

    settings = {
        "prior_shift": {"prevalence": 0.1},
        "cats": {"cost": cb.costs.LinearCost(1, 5)},
        "caps": {"cost": cb.costs.LinearCost()},
    }
    found = {}
    for name, class_ in (*CALIBRATORS.items(), *((f"re-{name}", each) for name, each in RECALIBRATORS.items())):
        model = class_(**settings.get(name, {}))
        for given in ((P, Y), (PROBA, CLASS), (POINT, OUTCOME), (GAUSSIAN, OUTCOME), (QUANTILES, OUTCOME)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[name] = copy.deepcopy(model).fit(*given)
                    calibrator_files.calibrator_to_dict(found[name])
                break
            except (ValueError, TypeError):
                found.pop(name, None)
    found["one against the rest"] = cb.calibrators.OneVsRest(cb.Isotonic()).fit(PROBA, CLASS)
    found["binning of margins"] = cb.calibrators.BinningAverage(n_bins=4).fit(RNG.normal(0, 3, 400), Y)
    found["steps of a cost"] = cb.calibrators.CAPS(cb.costs.StepCost([(0.05, 1)], under=3)).fit(P, Y)
    found["identity"] = cb.calibrators.Identity().fit(P, Y)
    found["proportion rule"] = cb.calibrators.ProportionRule().fit(P, Y, by=np.where(P > 0.5, "high", "low"))
    found["rule of classes"] = cb.calibrators.ProportionRule(target={0: 0.2, 1: 0.3, 2: 0.5}).fit(PROBA, CLASS)
    found["subgroups"] = subgroups()
    found["labels"] = cb.Platt().fit(P, np.array(["no", "yes"])[Y])
    return found


FITTED = calibrators()
HUGE = 10**400
VALUES = [
    None,
    True,
    0,
    -1,
    3,
    10**12,
    0.5,
    1e308,
    -1e308,
    HUGE,
    -HUGE,
    "",
    "x",
    "euros",
    [],
    [None],
    [[]],
    [0.5],
    {},
    {"part": {}},
]
VALUES += [
    {"mapping": 3},
    {"mapping": [[[], 1]]},
    {"part": []},
    {"kind": "steps"},
    [["a"] * 3] * 2,
    {"a": {"b": {"c": []}}},
]


def places(data, place=()):
    """Yield the place of each value in nested data, the innermost and the outer ones; of long lists only the first."""
    yield place
    inside = data.items() if isinstance(data, dict) else enumerate(data[:2]) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*place, key))


def at(data, place):
    for key in place:
        data = data[key]
    return data


def mutants(body):
    """Yield copies of the data with one value replaced, dropped or added."""
    for place in places(body):
        if not place:
            continue
        for value in VALUES:
            other = copy.deepcopy(body)
            at(other, place[:-1])[place[-1]] = value
            yield f"{place} = {value!r}"[:200], other
        dropped = copy.deepcopy(body)
        del at(dropped, place[:-1])[place[-1]]
        yield f"without {place}", dropped
        own = at(body, place)
        added = copy.deepcopy(body)
        target = at(added, place)
        if isinstance(own, list):
            target.append(copy.deepcopy(own[0]) if own else 1)
            yield f"{place} + 1", added
        elif isinstance(own, dict):
            target["more"] = 1
            yield f"{place} with more", added


def use(calibrator):
    """Apply a loaded calibrator, write it again, and show it."""
    repr(calibrator)
    calibrator_files.calibrator_to_dict(calibrator)
    if calibrator.kind == "distribution":
        forecast = QUANTILES if isinstance(calibrator, cb.regression.QuantileRecalibrator) else GAUSSIAN
        calibrator.transform(forecast)
        return
    if calibrator.kind == "labels":
        given = P[:6] if len(calibrator.classes_) == 2 else PROBA[:6]
        calibrator(given, by=["high", "low", "high"] * 2 if calibrator.group_rules_ else None)
        return
    if calibrator.kind == "subgroups":
        columns = np.arange(min(calibrator.n_features_in_, 10)) % 2  # a file may describe more columns
        found = calibrator(FEATURES[:, columns], P)
        assert ((found >= 0) & (found <= 1)).all()
        return
    given = {"binary": SCORES, "multiclass": PROBA[:5], "ordinal": PROBA[:5], "point": POINT[:5]}[calibrator.kind]
    found = calibrator(given)
    assert not np.isnan(found).any()
    assert calibrator.kind == "point" or ((found >= 0).all() and (found <= 1).all())


def test_each_registered_calibrator_is_changed():
    from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS

    assert set(CALIBRATORS) | {f"re-{name}" for name in RECALIBRATORS} <= set(FITTED)
    assert {type(each).__name__ for each in FITTED.values()} == set(calibrator_files._CLASSES)


@pytest.mark.parametrize("name", FITTED)
def test_a_changed_field_is_refused_or_gives_a_calibrator_that_works(name):
    body = calibrator_files.calibrator_to_dict(FITTED[name])
    body = json.loads(json.dumps(body))
    failures, accepted = [], 0
    for what, other in mutants(body):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                use(calibrator_files.calibrator_from_dict(other))
                accepted += 1
            except cb.InputError:
                continue
            except Exception as error:
                failures.append(f"{what}: {type(error).__name__}: {error}"[:300])
    assert not failures, f"{len(failures)} of {name}:\n" + "\n".join(failures[:40])


def signed(folder, body, name="cal.json"):
    """Write a calibrator with a matching checksum."""
    about = {"format": calibrator_files.FORMAT, "version": calibrator_files.VERSION, "calibrant": "0", **body}
    path = folder / name
    path.write_text(json.dumps(about | {"sha256": calibrator_files._checksum(about)}))
    return path


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("binning_average", {"n_bins": None}),
        ("binning_average", {"n_bins": []}),
        ("binning_average", {"n_bins": True}),
        ("beta", {"parameters": []}),
        ("beta", {"parameters": [None]}),
        ("spline", {"n_knots": "x"}),
        ("platt", {"eps": {"part": []}}),
        ("cats", {"cost": {"part": {"costs.LinearCost": None}}}),
        ("cats", {"cost": {"part": {}}}),
        ("cats", {"cost": {"part": {"costs.LinearCost": {}, "costs.LogCost": {}}}}),
    ],
)
def test_a_setting_of_a_wrong_type_is_an_input_error_that_names_the_file(tmp_path, name, change):
    body = calibrator_files.calibrator_to_dict(FITTED[name])
    body["settings"] |= change
    with pytest.raises(cb.InputError, match=r"^cal\.json is not a calibrator"):
        cb.load(signed(tmp_path, body))


def test_devices_pipes_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", "/dev/zero", "/dev/null", "/dev/stdin", tmp_path):
        with pytest.raises(cb.InputError, match="path must be a regular file"):
            cb.load(path)


def test_a_file_that_grows_while_it_is_read_is_read_up_to_the_limit(tmp_path, monkeypatch):
    path = signed(tmp_path, calibrator_files.calibrator_to_dict(FITTED["platt"]))
    size = path.stat().st_size
    monkeypatch.setattr(calibrator_files, "_LARGEST", size)
    cb.load(path)
    monkeypatch.setattr(calibrator_files, "_LARGEST", size - 1)
    with pytest.raises(cb.InputError, match="more than"):
        cb.load(path)


@pytest.mark.parametrize("depth", [50, 500, 5000])
def test_nested_calibrators_are_refused(tmp_path, depth):
    body = calibrator_files.calibrator_to_dict(FITTED["one against the rest"])
    inner = json.dumps(body)
    start, end = inner.split('"calibrators": [', 1)[0] + '"calibrators": [', "]}"
    about = json.dumps({"format": calibrator_files.FORMAT, "version": calibrator_files.VERSION})
    text = about[:-1] + ", " + start[1:] + start * depth + end * (depth + 1)
    (tmp_path / "cal.json").write_text(text)
    with pytest.raises(cb.InputError, match="not a calibrator"):
        cb.load(tmp_path / "cal.json")


@pytest.mark.parametrize(("name", "field"), [("platt", "slope"), ("platt", "intercept"), ("beta", "a"), ("beta", "b")])
def test_coefficients_that_overflow_are_refused(name, field):
    """Two of them could cancel to NaN."""
    body = calibrator_files.calibrator_to_dict(FITTED[name])
    body["map"][field] = 1e308
    with pytest.raises(cb.InputError, match=f"{field} of a .* map must be a number of at most 1e.300"):
        calibrator_files.calibrator_from_dict(body)
