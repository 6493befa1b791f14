"""Calibrators in files, in databases and in ONNX: the same numbers there as here."""

import contextlib
import json
import pickle
import sqlite3
import warnings

import numpy as np
import pytest
from hypothesis import given
from strategies import columns, some_rows

from tests.export.row_numbers import MANY

pytest.importorskip("sklearn")

import calibrant as cb


def rows(seed=0, size=5000):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.9, size)
    return p, (rng.random(size) < p**1.3).astype(int)


def margins(seed=0, size=5000):
    _, y = rows(seed, size)
    return np.random.default_rng(seed).normal(y * 2 - 1.0, 1.5), y


MAPS = {
    "binning": cb.calibrators.BinningAverage(n_bins=20).fit(*rows()),
    "isotonic": cb.Isotonic().fit(*rows()),
    "isotonic, plain": cb.Isotonic(extremes=True).fit(*rows()),
    "isotonic, strict": cb.Isotonic(strict=True).fit(*rows()),
    "platt": cb.Platt().fit(*rows()),
    "temperature": cb.calibrators.Temperature().fit(*rows()),
    "beta": cb.Beta().fit(*rows()),
    "logit spline": cb.LogitSpline().fit(*rows()),
    "logit spline, falling": cb.LogitSpline(monotone=False, n_knots=6).fit(1 - rows()[0], rows()[1]),
    "venn-abers": cb.calibrators.VennAbers().fit(*rows()),
    "cats": cb.calibrators.CATS(cb.costs.LinearCost(1, 5), bins=cb.bins.EqualWidth(5, closed="right")).fit(*rows()),
    "caps": cb.calibrators.CAPS(cb.costs.StepCost([(0.05, 1)], under=3)).fit(*rows()),
    "prior shift": cb.calibrators.PriorShift(prevalence=0.03).fit(*rows()),
    "one step": cb.calibrators.BinningAverage(n_bins=1).fit(*rows()),
    "one point": cb.Isotonic(strict=True, extremes=True).fit([0.0, 1.0], [0, 0]),
}
MARGINS = {
    "isotonic of margins": cb.Isotonic().fit(*margins()),
    "strict isotonic of margins": cb.Isotonic(strict=True).fit(*margins()),
    "binning of margins": cb.calibrators.BinningAverage().fit(*margins()),
    "venn-abers of margins": cb.calibrators.VennAbers().fit(*margins()),
    "logit spline of margins": cb.LogitSpline(from_logits=True).fit(*margins()),
    "platt of margins": cb.Platt(on="score").fit(*margins()),
}
EVERY = MAPS | MARGINS
every = pytest.mark.parametrize("name", EVERY)


def scores_for(name, size=MANY):
    rng = np.random.default_rng(7)
    if name in MARGINS:
        return rng.normal(0, 4, size)
    ends = [0.0, 1.0, 1e-300, 1 - 2**-53, 2**-24, 1 - 2**-24, 0.5]
    seen = rows()[0][:1000]
    return np.concatenate([ends, seen, rng.random(size - len(ends) - seen.size)])


def test_the_maps_here_cover_every_calibrator():
    assert {type(cal) for cal in EVERY.values()} == {
        kind for kind in cb.calibrators.CALIBRATORS.values() if kind.kind == "binary"
    }


# Files


@every
def test_files_give_the_same_bits_back(tmp_path, name):
    cal = EVERY[name]
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    scores = scores_for(name, 5000)
    assert type(same) is type(cal)
    assert same.get_params() == cal.get_params()
    assert np.array_equal(same(scores), cal(scores))
    assert np.array_equal(same.predict_proba(scores), cal.predict_proba(scores))
    assert same.predict(scores).tolist() == cal.predict(scores).tolist()
    assert same.notes_ == cal.notes_
    fitted = [each for each in dir(cal) if each.endswith("_") and not each.startswith("_")]
    for each in fitted:
        if isinstance(getattr(cal, each), float):
            assert getattr(same, each) == getattr(cal, each)
    cb.save(same, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "cal.json"]


@given(some_rows)
def test_any_fit_survives_its_file(tmp_path_factory, pairs):
    y, p = columns(pairs)
    path = tmp_path_factory.mktemp("files") / "cal.json"
    for cal in (cb.Isotonic(), cb.Isotonic(strict=True), cb.calibrators.BinningAverage(), cb.Platt()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cb.CalibrantWarning)
            cal.fit(p, y)
        cb.save(cal, path)
        assert np.array_equal(cb.load(path)(p), cal(p))


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 7]])
def test_stored_labels_are_unchanged(tmp_path, labels):
    p, y = rows(size=100)
    cal = cb.Isotonic().fit(p, np.array(labels)[y])
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    assert same.classes_.tolist() == labels
    assert same.predict(p).tolist() == cal.predict(p).tolist()


def changed(tmp_path, change, *, sign=True, cal=None):
    """A file that `change` was let loose on, with the checksum that goes with it unless it is to be wrong."""
    from calibrant.export.calibrator_files import _checksum

    path = tmp_path / "cal.json"
    cb.save(EVERY["isotonic"] if cal is None else cal, path)
    body = json.loads(path.read_text())
    change(body)
    if sign:
        body.pop("sha256", None)
        body["sha256"] = _checksum(body)
    path.write_text(json.dumps(body))
    return path


def test_a_changed_value_is_detected(tmp_path):
    path = changed(tmp_path, lambda body: body["map"]["values"].__setitem__(3, 0.123), sign=False)
    with pytest.raises(cb.InputError, match="checksum"):
        cb.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b["map"]["values"].reverse(), "must not fall"),
        (lambda b: b["map"]["values"].append(0.5), "one more than its edges"),
        (lambda b: b["map"]["values"].__setitem__(0, -0.5), "lie in"),
        (lambda b: b["map"]["values"].__setitem__(0, "0.5e"), "numbers"),
        (lambda b: b["map"]["edges"].reverse(), "rise"),
        (lambda b: b["map"].update(kind="pickle"), "kind"),
        (lambda b: b["map"].update(more=1), "fields"),
        (lambda b: b.update(map={"kind": "odds", "ratio": 2.0}), "must be of kind steps or segments"),
        (lambda b: b.update(map=3), "kind"),
        (lambda b: b.update(version=1), "version must be 2; got 1"),
        (lambda b: b.update(format="other"), "format"),
        (lambda b: b.update(calibrator="Exec"), "no calibrator"),
        (lambda b: b.update(calibrator=["Isotonic"]), "no calibrator"),
        (lambda b: b["settings"].update(depth=3), "settings"),
        (lambda b: b.update(classes=[0, 0]), "labels"),
        (lambda b: b.update(classes=[0, 1, 2]), "two classes"),
        (lambda b: b.update(extra=1), "no field"),
        (lambda b: b.pop("notes"), "notes"),
        (lambda b: b.update(notes=[{"code": [1], "count": 1, "template": "x"}]), "notes"),
        (lambda b: b.update(notes=[{"code": "a", "count": 1, "template": "{count:>300000000}"}]), "notes"),
        (lambda b: b.update(notes=[{"code": "a", "count": 1, "template": "{nope}"}]), "notes"),
        (lambda b: b.update(version=True), "version"),
        (lambda b: b["map"].update(values=["0.5"] * 3), "numbers"),
        (lambda b: b["map"]["values"].__setitem__(0, 0.0), "settings"),
        (lambda b: b["map"].update(domain="euros"), "domain must be"),
        (lambda b: b["map"]["edges"].__setitem__(0, 10**400), "numbers|rise|large"),
        (lambda b: b.update(numbers={"n_clipped_": 1.0}), "numbers"),
    ],
)
def test_a_wrong_field_is_refused_whatever_the_checksum(tmp_path, change, words):
    with pytest.raises(cb.InputError, match=words) as caught:
        cb.load(changed(tmp_path, change))
    assert "cal.json" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("platt", lambda b: b["settings"].update(on="foo")),
        ("platt", lambda b: b["settings"].update(eps="x")),
        ("platt", lambda b: b["map"].update(slope=10**400)),
        ("platt", lambda b: b["numbers"].update(n_clipped_=-1.0)),
        ("temperature", lambda b: b["map"].update(intercept=5.0)),
        ("temperature", lambda b: b["map"].update(on="score")),
        ("prior shift", lambda b: b["map"].update(ratio=True)),
    ],
)
def test_maps_that_no_fit_can_produce_are_refused(tmp_path, name, change):
    with pytest.raises(cb.InputError, match="not a calibrator"):
        cb.load(changed(tmp_path, change, cal=EVERY[name]))


def test_stored_numpy_settings_are_unchanged(tmp_path):
    p, y = rows(size=200)
    cal = cb.calibrators.BinningAverage(n_bins=np.int64(5)).fit(p, y)
    cb.save(cal, tmp_path / "cal.json")
    assert cb.load(tmp_path / "cal.json").n_bins == 5


def test_unloadable_calibrators_are_not_saved(tmp_path):
    p, y = rows(size=200)
    changed_later = cb.Isotonic().fit(p, y).set_params(strict=True)
    with pytest.raises(cb.InputError, match="must not change after its fit"):
        cb.save(changed_later, tmp_path / "cal.json")
    kind = type("Isotonic", (cb.Isotonic,), {"__call__": lambda self, X: 0.123})
    with pytest.raises(cb.InputError, match="of a class of calibrant"):
        cb.save(kind().fit(p, y), tmp_path / "cal.json")
    with pytest.raises(cb.InputError, match="Labels"):
        cb.save(cb.Isotonic().fit(p, np.array([b"a", b"b"])[y]), tmp_path / "cal.json")
    assert not list(tmp_path.iterdir())


def test_threads_save_to_one_place(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: cb.save(EVERY["platt"], tmp_path / "cal.json"), range(40)))
    assert [path.name for path in tmp_path.iterdir()] == ["cal.json"]
    cb.load(tmp_path / "cal.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe{}", b"[1, 2]", b'{"format": NaN}', b'{"a": 1, "a": 2}', pickle.dumps({"a": 1}), b"[" * 9999],
)
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / "cal.json"
    path.write_bytes(data)
    with pytest.raises(cb.InputError, match="not a calibrator"):
        cb.load(path)


def test_objects_other_than_calibrators_are_not_saved(tmp_path):
    from sklearn.linear_model import LogisticRegression

    model = cb.CalibratedModel(LogisticRegression(), ensemble=False, cv=3)
    model.fit(np.arange(60).reshape(-1, 1), [0, 1] * 30)
    with pytest.raises(cb.InputError, match="calibrator_"):
        cb.save(model, tmp_path / "model.json")
    cb.save(model.calibrator_, tmp_path / "cal.json")
    with pytest.raises(ValueError, match="not fitted"):
        cb.save(cb.Platt(), tmp_path / "cal.json")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        cb.load(tmp_path / "none.json")


# Domain


@pytest.mark.parametrize("name", MAPS)
def test_a_map_fitted_on_probabilities_takes_probabilities_only(tmp_path, name):
    cal = MAPS[name]
    assert cal.map_.domain == "probability"
    cb.save(cal, tmp_path / "cal.json")
    for each in (cal, cb.load(tmp_path / "cal.json")):
        for bad in (1.5, -0.1, 250.0):
            with pytest.raises(cb.InputError, match=r"X must lie in \[0, 1\]"):
                each([0.5, bad])
            with pytest.raises(cb.InputError, match=r"X must lie in \[0, 1\]"):
                each.predict_proba([0.5, bad])
    with pytest.warns(cb.CalibrantWarning, match="clipped"):
        assert cal([1 + 1e-7])[0] == cal([1.0])[0]


@pytest.mark.parametrize("name", MARGINS)
def test_a_map_fitted_on_margins_takes_any_finite_score(name):
    cal = MARGINS[name]
    assert cal.map_.domain == "real"
    ends = cal([-1e300, 1e300])
    assert ((ends >= 0) & (ends <= 1)).all()
    with pytest.raises(cb.InputError, match="finite"):
        cal([np.inf])


def test_scores_of_the_domain_beyond_the_fit_follow_the_rule_of_the_map():
    """Steps and segments are level beyond the scores of the fit; a logistic map goes on."""
    p, y = np.linspace(0.4, 0.6, 50), np.arange(50) % 7 < np.arange(50) / 10
    isotonic = cb.Isotonic().fit(p, y)
    assert isotonic([0.0, 1.0]).tolist() == isotonic([0.4, 0.6]).tolist()
    platt = cb.Platt().fit(p, y)
    slope, intercept = platt.slope_, platt.intercept_
    assert platt([0.9])[0] == pytest.approx(1 / (1 + np.exp(-(slope * np.log(9) + intercept))))


def test_clipped_scores_get_the_same_value_in_python_and_elsewhere():
    """Within 1e-6 of [0, 1] Python clips; so do SQL and ONNX."""
    duckdb = pytest.importorskip("duckdb")
    platt = cb.Platt(on="score").fit(*rows())
    for cal in (*MAPS.values(), platt):
        for score, clipped in ((1 + 9e-7, 1.0), (-9e-7, 0.0)):
            (found,) = duckdb.connect().execute(f"SELECT {cb.to_sql(cal, 's')} FROM (SELECT {score!r} AS s)").fetchone()
            assert found == pytest.approx(cal([clipped])[0], abs=1e-12)


# SQL


@every
def test_duckdb_gives_the_same_values(name):
    duckdb = pytest.importorskip("duckdb")
    scores = scores_for(name)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (i INTEGER, s DOUBLE)")
    # Through files of numbers in full, so that no adapter rounds.
    connection.execute(
        "INSERT INTO rows SELECT unnest(?::INTEGER[]), unnest(?::DOUBLE[])",
        [list(range(scores.size)), scores.tolist()],
    )
    found = connection.execute(f"SELECT {cb.to_sql(EVERY[name], 's')} FROM rows ORDER BY i").fetchall()
    assert np.abs(np.array(found, dtype=float)[:, 0] - EVERY[name](scores)).max() <= 1e-12


@pytest.fixture
def sqlite():
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@every
def test_sqlite_gives_the_same_values(name, sqlite):
    scores = scores_for(name)
    sqlite.execute("CREATE TABLE rows (i INTEGER PRIMARY KEY, s REAL)")
    sqlite.executemany("INSERT INTO rows VALUES (?, ?)", list(enumerate(scores.tolist())))
    found = sqlite.execute(f"SELECT {cb.to_sql(EVERY[name], 's', 'sqlite')} FROM rows ORDER BY i").fetchall()
    assert np.abs(np.array(found, dtype=float)[:, 0] - EVERY[name](scores)).max() <= 1e-12


@every
def test_databases_return_null_where_python_refuses(name):
    duckdb = pytest.importorskip("duckdb")
    bad = ["NULL", "'NaN'::DOUBLE", "'Infinity'::DOUBLE", "'-Infinity'::DOUBLE"]
    bad += [] if name in MARGINS else ["1.5", "-0.1"]
    for value in bad:
        sql = f"SELECT {cb.to_sql(EVERY[name], 's')} FROM (SELECT {value} AS s)"
        assert duckdb.connect().execute(sql).fetchone() == (None,)


@pytest.mark.parametrize("column", ['we"ird; DROP TABLE x', "select", "t.p", ("t", "score"), "größe"])
def test_names_are_quoted(column, sqlite):
    name = column if isinstance(column, str) else column[-1]
    quoted = '"' + name.replace('"', '""') + '"'
    sqlite.execute(f"CREATE TABLE t ({quoted} REAL)")
    sqlite.execute("INSERT INTO t VALUES (0.25)")
    ((found,),) = sqlite.execute(f"SELECT {cb.to_sql(EVERY['beta'], column, 'sqlite')} FROM t").fetchall()
    assert found == pytest.approx(EVERY["beta"]([0.25])[0], abs=1e-12)


def test_sqlite_does_not_take_text_for_a_score(sqlite):
    sqlite.execute("CREATE TABLE r (s REAL, words TEXT)")
    sqlite.execute("INSERT INTO r VALUES (0.3, 'n/a')")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        sqlite.execute(f"SELECT {cb.to_sql(EVERY['beta'], 'scroe', 'sqlite')} FROM r")
    (found,) = sqlite.execute(f"SELECT {cb.to_sql(EVERY['beta'], 'words', 'sqlite')} FROM r").fetchall()
    assert found == (None,)


def test_sql_of_a_thousand_steps_is_shallow(sqlite):
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(4000))
    cal = cb.calibrators.BinningAverage(n_bins=2000).fit(p, rng.random(4000) < p)
    ((found,),) = sqlite.execute(f"SELECT {cb.to_sql(cal, 's', 'sqlite')} FROM (SELECT 0.25 AS s)").fetchall()
    assert found == cal([0.25])[0]


def test_maps_without_sql_raise_with_a_reason():
    with pytest.raises(cb.InputError, match="dialect"):
        cb.to_sql(EVERY["beta"], "s", "oracle")
    with pytest.raises(cb.InputError, match="pass its calibrator_"):
        cb.to_sql(cb.CalibratedModel(None), "s")
    with pytest.raises(cb.InputError, match="column"):
        cb.to_sql(EVERY["beta"], "")


# ONNX


@every
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnxruntime_gives_the_same_values(name, dtype):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(cb.to_onnx(EVERY[name], dtype=dtype).SerializeToString())
    scores = scores_for(name).astype(dtype)
    (found,) = session.run(None, {"score": scores})
    assert found.dtype == np.dtype(dtype)
    assert found.shape == scores.shape
    # A float32 score is compared as the value that it holds, here as there.
    assert np.abs(found - EVERY[name](scores)).max() <= (1e-6 if dtype == "float32" else 1e-12)
    (column,) = session.run(None, {"score": scores[:10].reshape(-1, 1)})
    assert np.array_equal(column[:, 0], found[:10])


def test_an_onnx_calibrator_goes_behind_a_model():
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    first, second = (cb.to_onnx(EVERY[name], shape=("rows", 1)) for name in ("temperature", "isotonic"))
    second = onnx.compose.add_prefix(second, "second_")
    both = onnx.compose.merge_models(first, second, io_map=[("probability", "second_score")])
    scores = np.linspace(0, 1, 50, dtype=np.float32).reshape(-1, 1)
    (found,) = runtime.InferenceSession(both.SerializeToString()).run(None, {"score": scores})
    expected = EVERY["isotonic"](EVERY["temperature"](scores).astype(np.float32))
    assert found[:, 0] == pytest.approx(expected, abs=1e-6)


@every
def test_onnx_returns_nan_where_python_refuses(name):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(cb.to_onnx(EVERY[name]).SerializeToString())
    bad = [np.nan, np.inf, -np.inf] + ([] if name in MARGINS else [1.5, -0.1])
    (found,) = session.run(None, {"score": np.array(bad, dtype=np.float32)})
    assert np.isnan(found).all()
