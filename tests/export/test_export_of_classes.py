"""Multiclass calibrators in files, databases and ONNX: the same numbers there as here."""

import contextlib
import json
import sqlite3

import numpy as np
import pytest

from tests.export.row_numbers import MANY

pytest.importorskip("sklearn")

from scipy.special import softmax

import calibrant as cb
from calibrant.export.calibrator_files import _checksum

LABELS = np.array(["cat", "dog", "eel", "fox"])


def rows(seed=0, size=3000, n_classes=4):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (size, n_classes))
    y = (softmax(logits, axis=1).cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
    return softmax(1.7 * logits + np.linspace(-0.3, 0.3, n_classes), axis=1), y


def margins():
    proba, y = rows()
    return np.log(proba) + 3.0, y


PROBA, Y = rows()
FITTED = {
    "temperature": cb.calibrators.SoftmaxTemperature(),
    "vector": cb.calibrators.VectorScaling(),
    "matrix": cb.calibrators.MatrixScaling(),
    "matrix, l2": cb.calibrators.MatrixScaling(l2=0.2, eps=2.0**-20),
    "dirichlet": cb.calibrators.Dirichlet(),
    "dirichlet, l2": cb.calibrators.Dirichlet(reg_lambda=0.5, reg_mu=0.0, penalty="l2"),
    "one_vs_rest": cb.calibrators.OneVsRest(),
    "one_vs_rest, beta": cb.calibrators.OneVsRest("beta"),
    "one_vs_rest, isotonic": cb.calibrators.OneVsRest(cb.Isotonic(strict=True)),
    "one_vs_rest, plain": cb.calibrators.OneVsRest(cb.Isotonic(extremes=True)),
    "structured": cb.StructuredScaling(),
    "structured, diagonal": cb.StructuredScaling(off_diagonal=False, eps=2.0**-20),
    "spline": cb.calibrators.Spline(),
    "spline, classwise": cb.calibrators.Spline(on="classwise", n_knots=4),
    "cumulative": cb.calibrators.Cumulative(),
    "cumulative, beta": cb.calibrators.Cumulative("beta"),
    "cumulative, isotonic": cb.calibrators.Cumulative("isotonic"),
    "pairwise": cb.calibrators.PairwiseCoupling(),
    "pairwise, isotonic": cb.calibrators.PairwiseCoupling(cb.Isotonic(), eps=2.0**-20),
}
FITTED = {name: cal.fit(PROBA, LABELS[Y]) for name, cal in FITTED.items()}
FITTED["margins"] = cb.calibrators.OneVsRest(cb.Platt(on="score")).fit(margins()[0], LABELS[Y])
FITTED["structured, margins"] = cb.StructuredScaling(from_logits=True).fit(margins()[0], LABELS[Y])
CLOSED = [name for name in FITTED if not name.startswith("pairwise")]
every = pytest.mark.parametrize("name", FITTED)
closed = pytest.mark.parametrize("name", CLOSED)


def scores_for(name, size=MANY):
    """Probabilities with rows at the corners, with ties, and with zeros; margins for those that take them."""
    if "margins" in name:
        return np.random.default_rng(7).normal(0, 4, (size, 4))
    special = [
        *np.eye(4),
        [0.25] * 4,
        [0.5, 0.5, 0, 0],
        [0, 0.3, 0.4, 0.3],
        [1 - 3e-10, 1e-10, 1e-10, 1e-10],
        [1e-300, 1 - 2**-53, 0, 0],
        [0, 0, 1 + 5e-7, 0],
    ]
    return np.vstack([special, rows(3, size - len(special))[0]])


def expected(name, scores):
    with pytest.warns(cb.CalibrantWarning, match="clipped") if "margins" not in name else nothing():
        return FITTED[name](scores)


def nothing():
    import contextlib

    return contextlib.nullcontext()


def test_every_multiclass_calibrator_is_here():
    kinds = {kind for kind in cb.calibrators.CALIBRATORS.values() if kind.takes == "classes"}
    assert {type(cal) for cal in FITTED.values()} == kinds


# Files


@every
def test_files_restore_multiclass_calibrators_bitwise(tmp_path, name):
    cal = FITTED[name]
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    scores = rows(5, 2000)[0] if "margins" not in name else scores_for(name, 2000)
    assert type(same) is type(cal)
    assert np.array_equal(same(scores), cal(scores))
    assert same.predict(scores).tolist() == cal.predict(scores).tolist()
    assert same.notes_ == cal.notes_
    settings = cal.get_params(deep=False)
    for key, value in same.get_params(deep=False).items():
        assert value == settings[key] or key == "calibrator"
    for attribute in ("n_clipped_", "temperature_"):
        if hasattr(cal, attribute):
            assert getattr(same, attribute) == getattr(cal, attribute)
    cb.save(same, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


def changed(tmp_path, name, change):
    path = tmp_path / "cal.json"
    cb.save(FITTED[name], path)
    body = json.loads(path.read_text())
    change(body)
    body.pop("sha256")
    body["sha256"] = _checksum(body)
    path.write_text(json.dumps(body))
    return path


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("temperature", lambda b: b["map"].update(weights=-1.0), "settings"),
        ("temperature", lambda b: b["map"].update(biases=[0.0, 1.0, 0.0, 0.0]), "settings"),
        ("temperature", lambda b: b["map"].update(weights=[1.0, 1.0, 1.0, 1.0]), "settings"),
        ("vector", lambda b: b["map"].update(weights=[1.0, 1.0]), "weights of shape"),
        ("vector", lambda b: b["map"].update(eps=0.01), "settings"),
        ("matrix", lambda b: b["map"]["weights"].pop(), "weights of shape|numbers"),
        ("matrix", lambda b: b["map"].update(weights="x"), "numbers"),
        ("dirichlet", lambda b: b.update(classes=["a", "b", "c"]), "classes"),
        ("dirichlet", lambda b: b.update(map={"kind": "top_label"}), "fields"),
        ("dirichlet", lambda b: b.update(map={"kind": "odds", "ratio": 1.0}), "kind"),
        ("dirichlet", lambda b: b["settings"].update(depth=3), "settings"),
        ("dirichlet", lambda b: b.update(more=1), "no field"),
        ("dirichlet", lambda b: b["numbers"].update(n_clipped_=-1.0), "n_clipped_"),
        ("one_vs_rest", lambda b: b["calibrators"].pop(), "classes"),
        ("one_vs_rest", lambda b: b.update(calibrators=[]), "list of calibrators"),
        ("one_vs_rest", lambda b: b["calibrators"].__setitem__(0, 3), "an object"),
        ("one_vs_rest", lambda b: b["calibrators"][0]["settings"].update(smoothing=False), "one kind"),
        ("pairwise", lambda b: b["sizes"].pop(), "sizes"),
        ("pairwise", lambda b: b["sizes"].__setitem__(0, -1.0), "sizes|size"),
        ("spline", lambda b: b["map"]["confidence"]["y"].__setitem__(0, 0.0), "settings"),
        ("spline", lambda b: b["settings"].update(on="classwise"), "settings"),
    ],
)
def test_a_wrong_field_is_refused_whatever_the_checksum(tmp_path, name, change, words):
    with pytest.raises(cb.InputError, match=words):
        cb.load(changed(tmp_path, name, change))


def test_settings_changed_after_the_fit_are_not_saved(tmp_path):
    cal = cb.calibrators.SoftmaxTemperature().fit(PROBA, Y).set_params(eps=0.01)
    with pytest.raises(cb.InputError, match="must not change after its fit"):
        cb.save(cal, tmp_path / "cal.json")


# SQL


def loaded(connection, scores):
    """The table of scores, in a database of either kind."""
    names = ", ".join(f"p{j} DOUBLE" for j in range(scores.shape[1]))
    connection.execute(f"CREATE TABLE scored (i INTEGER, {names})")
    return connection


@closed
def test_duckdb_gives_the_same_class_probabilities(name):
    duckdb = pytest.importorskip("duckdb")
    scores = scores_for(name)
    connection = loaded(duckdb.connect(), scores)
    columns = ", ".join("unnest(?::DOUBLE[])" for _ in range(4))
    connection.execute(
        f"INSERT INTO scored SELECT unnest(?::INTEGER[]), {columns}",
        [list(range(len(scores))), *(column.tolist() for column in scores.T)],
    )
    found = cb.to_sql(FITTED[name], columns=["p0", "p1", "p2", "p3"])
    assert list(found) == LABELS.tolist()
    values = connection.execute(f"SELECT {', '.join(found.values())} FROM scored ORDER BY i").fetchall()
    assert np.abs(np.array(values, dtype=float) - expected(name, scores)).max() <= 1e-12


@closed
def test_sqlite_gives_the_same_class_probabilities(name):
    scores = scores_for(name)
    rows_in = ((i, *row) for i, row in enumerate(scores.tolist()))
    found = cb.to_sql(FITTED[name], columns={label: f"p{j}" for j, label in enumerate(LABELS)}, dialect="sqlite")
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        loaded(connection, scores).executemany("INSERT INTO scored VALUES (?, ?, ?, ?, ?)", rows_in)
        values = connection.execute(f"SELECT {', '.join(found.values())} FROM scored ORDER BY i").fetchall()
    assert np.abs(np.array(values, dtype=float) - expected(name, scores)).max() <= 1e-12


@closed
def test_databases_return_null_where_python_refuses(name):
    duckdb = pytest.importorskip("duckdb")
    bad = ["NULL", "'NaN'::DOUBLE", "'Infinity'::DOUBLE"]
    bad += [] if "margins" in name else ["1.5", "-0.1", "0.6"]  # 0.6 + 0.5 is not 1
    expressions = ", ".join(cb.to_sql(FITTED[name], columns=["a", "b", "c", "d"]).values())
    given = ", ".join(f"({value}, 0.5, 0.0, 0.0)" for value in bad)
    found = duckdb.connect().execute(f"SELECT {expressions} FROM (VALUES {given}) AS t(a, b, c, d)").fetchall()
    assert found == [(None,) * 4] * len(bad)


def test_ten_classes_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    proba, y = rows(n_classes=10)
    new = rows(4, 2000, 10)[0]
    connection = loaded(duckdb.connect(), new)
    columns = ", ".join("unnest(?::DOUBLE[])" for _ in range(10))
    connection.execute(
        f"INSERT INTO scored SELECT unnest(?::INTEGER[]), {columns}",
        [list(range(2000)), *(column.tolist() for column in new.T)],
    )
    for cal in (cb.calibrators.Dirichlet(), cb.calibrators.Spline()):
        found = cb.to_sql(cal.fit(proba, y), columns=[("scored", f"p{j}") for j in range(10)])
        values = connection.execute(f"SELECT {', '.join(found.values())} FROM scored ORDER BY i").fetchall()
        assert np.abs(np.array(values, dtype=float) - cal(new)).max() <= 1e-12


def test_calibrators_without_sql_raise_with_a_reason():
    with pytest.raises(cb.InputError, match="closed form"):
        cb.to_sql(FITTED["pairwise"], columns=list("abcd"))
    for columns in (None, "abcd", ["a", "b"], {"cat": "a"}):
        with pytest.raises(cb.InputError, match="one column for each"):
            cb.to_sql(FITTED["vector"], columns=columns)
    with pytest.raises(cb.InputError, match="column must be"):
        cb.to_sql(cb.Platt().fit([0.1, 0.9], [0, 1]))
    with pytest.raises(ValueError, match="not fitted"):
        cb.to_sql(cb.calibrators.Dirichlet(), columns=["a", "b"])


def test_sql_of_too_many_classes_is_refused():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(1000), 2000)
    cal = cb.calibrators.SoftmaxTemperature().fit(proba, np.arange(2000) % 1000)
    with pytest.raises(cb.InputError, match="fewer classes"):
        cb.to_sql(cal, columns=[f"p{j}" for j in range(1000)])


# ONNX


@closed
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnxruntime_gives_the_same_class_probabilities(name, dtype):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(cb.to_onnx(FITTED[name], dtype=dtype).SerializeToString())
    scores = scores_for(name).astype(dtype)
    (found,) = session.run(None, {"score": scores})
    assert found.dtype == np.dtype(dtype)
    assert np.abs(found - expected(name, scores)).max() <= (1e-6 if dtype == "float32" else 1e-12)


@closed
def test_onnx_returns_nan_where_python_refuses(name):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(cb.to_onnx(FITTED[name], shape=("rows", 4)).SerializeToString())
    bad = [np.nan, np.inf, -np.inf] + ([] if "margins" in name else [1.5, -0.1, 0.6])
    given = np.array([[value, 0.5, 0.0, 0.0] for value in bad] + [[0.25] * 4], dtype=np.float32)
    (found,) = session.run(None, {"score": given})
    assert np.isnan(found[:-1]).all()
    assert np.isfinite(found[-1]).all()


def test_calibrators_without_onnx_raise_with_a_reason():
    pytest.importorskip("onnx")
    with pytest.raises(cb.InputError, match="closed form"):
        cb.to_onnx(FITTED["pairwise"])
    with pytest.raises(cb.InputError, match="must be a calibrator or a recalibrator to become ONNX"):
        cb.to_onnx(cb.CalibratedModel(None))
