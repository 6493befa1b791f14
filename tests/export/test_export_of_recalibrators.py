"""Recalibrators of point predictions and distributions in files, in databases and in ONNX: the same values."""

import json
import sqlite3
from functools import cache

import numpy as np
import pytest

from tests.export.row_numbers import MANY

pytest.importorskip("sklearn")
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant.calibrators.registry import RECALIBRATORS

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


@cache
def point_rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.gamma(4, 5, 3000) - 10, 3)
    return p, p + np.sin(p) + rng.normal(size=3000) * (1 + 0.1 * np.abs(p))


@cache
def forecasts(size=3000):
    rng = np.random.default_rng(1)
    mean, sd = rng.normal(10, 3, size), np.exp(rng.normal(size=size) / 3)
    values = mean[:, None] + sd[:, None] * stats.norm.ppf(LEVELS) * 4
    return rg.Gaussian(mean, sd), rg.Quantiles(LEVELS, values), mean + 0.3 + 2 * sd * rng.standard_t(5, size)


def fit_points():
    return {
        "linear": rg.LinearRecalibrator(),
        "shift": rg.LinearRecalibrator(slope=False, cv=None),
        "inverse": rg.LinearRecalibrator(against="outcome", cv=None),
        "isotonic": rg.IsotonicRecalibrator(),
        "local": rg.LocalRecalibrator(),
        "cost": rg.CostRecalibrator(cb.costs.LinearCost(over=1, under=4)),
        "cost, one bin": rg.CostRecalibrator(cb.costs.LinearCost(over=1, under=4), n_bins=1),
    }


def fit_distributions():
    return {
        "variance": rg.VarianceScaling(),
        "variance and shift": rg.VarianceScaling(shift=True),
        "likelihood": rg.VarianceScaling(level=None, shift=True),
        "PIT": rg.PITRecalibrator(),
        "quantile": rg.QuantileRecalibrator(levels=LEVELS),
        "Pareto": rg.ParetoRecalibrator(choice="calibrated", n_points=4),
    }


POINTS = {name: cal.fit(*point_rows()) for name, cal in fit_points().items()}
NORMAL = {name: cal.fit(forecasts()[0], forecasts()[2]) for name, cal in fit_distributions().items()}
OF_QUANTILES = {
    name: cal.fit(forecasts()[1], forecasts()[2])
    for name, cal in fit_distributions().items()
    if name not in ("PIT", "Pareto")
}
each_point = pytest.mark.parametrize("name", POINTS)
each_normal = pytest.mark.parametrize("name", NORMAL)
of_quantiles = pytest.mark.parametrize("name", OF_QUANTILES)


@cache
def predictions(size=MANY):
    """New predictions, far beyond those of the fit too, and predictions of the fit, where pieces meet."""
    rng = np.random.default_rng(7)
    ends = [0.0, -0.0, 1e-300, 5e-324, 1e6, -1e6]
    return np.concatenate([ends, point_rows()[0], rng.normal(10, 30, size - len(ends) - 3000)])


@cache
def new_forecasts():
    rng = np.random.default_rng(8)
    mean, sd = rng.normal(10, 3, MANY), np.exp(rng.normal(size=MANY) / 3)
    values = np.sort(mean[:, None] + sd[:, None] * rng.normal(size=(MANY, 5)), axis=1)
    return rg.Gaussian(mean, sd), rg.Quantiles(LEVELS, values)


def test_the_recalibrators_here_are_all_that_exist():
    assert {type(cal) for cal in (*POINTS.values(), *NORMAL.values())} == set(RECALIBRATORS.values())


# Files


@each_point
def test_files_restore_recalibrators_of_points_bitwise(tmp_path, name):
    cal = POINTS[name]
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    assert type(same) is type(cal)
    assert same.get_params() == cal.get_params()
    assert np.array_equal(same.predict(predictions()), cal.predict(predictions()))
    assert same.notes_ == cal.notes_
    assert same.trade_off_ is None
    cb.save(same, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


@each_normal
def test_files_restore_recalibrators_of_distributions_bitwise(tmp_path, name):
    cal = NORMAL[name]
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    assert type(same) is type(cal)
    assert same.get_params() == cal.get_params()
    for forecast in forecasts()[:2] if name in OF_QUANTILES else forecasts()[:1]:
        assert np.array_equal(same(forecast).quantile(LEVELS), cal(forecast).quantile(LEVELS))
    if name != "quantile":
        assert np.array_equal(
            same(forecasts()[0]).log_density(forecasts()[2]), cal(forecasts()[0]).log_density(forecasts()[2])
        )
    assert same.notes_ == cal.notes_
    cb.save(same, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


def test_a_loaded_front_can_be_chosen_from(tmp_path):
    cal = NORMAL["Pareto"]
    cb.save(cal, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    assert same.front_ == cal.front_
    assert same.choose("sharp").map_ == cal.choose("sharp").map_


def changed(tmp_path, cal, change):
    from calibrant.export.calibrator_files import _checksum

    path = tmp_path / "cal.json"
    cb.save(cal, path)
    body = json.loads(path.read_text())
    change(body)
    body.pop("sha256")
    path.write_text(json.dumps(body | {"sha256": _checksum(body)}))
    return path


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("linear", lambda b: b["map"].update(slope="2"), "slope of a linear map must be a finite number"),
        ("linear", lambda b: b.update(map={"kind": "odds", "ratio": 2.0}), "must be of kind linear; got odds"),
        ("linear", lambda b: b["settings"].update(slope=False), "must fit its settings"),
        ("linear", lambda b: b.update(classes=[0, 1]), "has no field 'classes'"),
        ("isotonic", lambda b: b["map"]["y"].reverse(), "must not fall"),
        ("isotonic", lambda b: b["map"].update(beyond="line"), "must fit its settings"),
        ("isotonic", lambda b: b["map"]["x"].__setitem__(0, None), "must hold"),
        ("local", lambda b: b["map"]["slope"].append(1.0), "equally long"),
        ("local", lambda b: b["map"]["x"].reverse(), "must rise strictly"),
        ("cost", lambda b: b["map"]["shifts"].append(1.0), "one more than its edges"),
        ("PIT", lambda b: b["map"]["y"].reverse(), "must not fall"),
        ("PIT", lambda b: b["map"].update(beyond="level"), "must fit its settings"),
        ("variance", lambda b: b["map"].update(intercept=1.0), "must fit its settings"),
        ("variance", lambda b: b["map"].update(slope=-1.0), "must not fall"),
        ("quantile", lambda b: b["map"]["levels"].__setitem__(0, -0.1), "must lie between 0 and 1"),
        ("quantile", lambda b: b["settings"].update(levels=[0.5]), "must fit its settings"),
        ("Pareto", lambda b: b["map"].update(scale=0.0), "positive, finite number"),
        ("Pareto", lambda b: b["map"].update(location=9.0), "must fit its settings"),
        ("Pareto", lambda b: b.update(front=[]), "front"),
        ("Pareto", lambda b: b["front"][1].pop("nll"), "list of points"),
        ("Pareto", lambda b: b["front"][1]["map"].update(kind="linear"), "list of points"),
    ],
)
def test_a_wrong_field_is_refused_whatever_the_checksum(tmp_path, name, change, words):
    cal = (POINTS | NORMAL)[name]
    with pytest.raises(cb.InputError, match=words):
        cb.load(changed(tmp_path, cal, change))


def test_settings_that_changed_after_the_fit_are_not_saved(tmp_path):
    cal = rg.VarianceScaling(shift=True).fit(*forecasts()[::2]).set_params(shift=False)
    with pytest.raises(cb.InputError, match="must not change after its fit"):
        cb.save(cal, tmp_path / "cal.json")
    with pytest.raises(cb.InputError, match="part of calibrant"):
        cb.save(rg.CostRecalibrator(lambda p, y: abs(p - y), cv=None).fit(*point_rows()), tmp_path / "cal.json")
    with pytest.raises(cb.InputError, match="recalibrator_"):
        cb.save(rg.RecalibratedModel(None), tmp_path / "cal.json")
    assert not list(tmp_path.iterdir())


# SQL


def in_database(engine, columns, expression):
    names = ", ".join(f"c{j} {'DOUBLE' if engine == 'duckdb' else 'REAL'}" for j in range(columns.shape[1]))
    if engine == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.execute(f"CREATE TABLE rows (i INTEGER, {names})")
        unnested = ", ".join(["unnest(?::DOUBLE[])"] * columns.shape[1])
        connection.execute(
            f"INSERT INTO rows SELECT unnest(?::INTEGER[]), {unnested}",
            [list(range(len(columns))), *columns.T.tolist()],
        )
    else:
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE TABLE rows (i INTEGER PRIMARY KEY, {names})")
        marks = ", ".join("?" * (columns.shape[1] + 1))
        rows = [(i, *row) for i, row in enumerate(columns.tolist())]
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
    found = connection.execute(f"SELECT {expression} FROM rows ORDER BY i").fetchall()
    connection.close()
    return np.array(found, dtype=float)[:, 0]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@each_point
def test_databases_recalibrate_points_as_python_does(name, engine):
    x = predictions()
    found = in_database(engine, x[:, None], cb.to_sql(POINTS[name], "c0", engine))
    expected = POINTS[name].predict(x)
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()
    near = np.abs(x) < 200
    assert np.abs(found - expected)[near].max() <= 1e-12


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
@each_normal
def test_databases_recalibrate_normal_forecasts_as_python_does(name, level, engine):
    forecast = new_forecasts()[0]
    expression = cb.to_sql(NORMAL[name], columns={"mean": "c0", "sd": "c1"}, dialect=engine, level=level)
    found = in_database(engine, np.column_stack([forecast.mean, forecast.sd]), expression)
    assert np.abs(found - NORMAL[name](forecast).quantile(level)).max() <= 1e-12


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
@of_quantiles
def test_databases_recalibrate_quantile_forecasts_as_python_does(name, level, engine):
    """Quantiles that cross after their shifts are sorted in the database too."""
    forecast, cal = new_forecasts()[1], OF_QUANTILES[name]
    columns = {each: f"c{j}" for j, each in enumerate(LEVELS)}
    found = in_database(engine, forecast.values, cb.to_sql(cal, columns=columns, dialect=engine, level=level))
    assert np.abs(found - cal(forecast).quantile(level)).max() <= 1e-12


def test_sorting_matters_for_the_shifts_of_quantiles():
    forecast, cal = new_forecasts()[1], OF_QUANTILES["quantile"]
    assert not np.array_equal(forecast.values + cal.shifts_, cal(forecast).values)


@each_point
def test_databases_return_null_where_python_refuses_a_point(name):
    duckdb = pytest.importorskip("duckdb")
    for value in ("NULL", "'NaN'::DOUBLE", "'Infinity'::DOUBLE", "'-Infinity'::DOUBLE"):
        sql = f"SELECT {cb.to_sql(POINTS[name], 's')} FROM (SELECT {value} AS s)"
        assert duckdb.connect().execute(sql).fetchone() == (None,)


@pytest.mark.parametrize("row", ["NULL, 1.0", "1.0, NULL", "1.0, 0.0", "1.0, -1.0", "'NaN'::DOUBLE, 1.0"])
@each_normal
def test_databases_return_null_for_invalid_normal_forecasts(name, row):
    duckdb = pytest.importorskip("duckdb")
    expression = cb.to_sql(NORMAL[name], columns={"mean": "m", "sd": "s"}, level=0.5)
    assert duckdb.connect().execute(f"SELECT {expression} FROM (VALUES ({row})) AS t (m, s)").fetchone() == (None,)


def test_databases_return_null_for_quantiles_that_cross():
    duckdb = pytest.importorskip("duckdb")
    cal = rg.QuantileRecalibrator().fit(rg.Quantiles([0.1, 0.9], [[0.0, 1.0]] * 20), np.arange(20.0))
    expression = cb.to_sql(cal, columns={0.1: "a", 0.9: "b"}, level=0.9)
    found = duckdb.connect().execute(f"SELECT {expression} FROM (VALUES (1.0, 2.0), (2.0, 1.0)) AS t (a, b)").fetchall()
    assert found[0][0] == pytest.approx(cal(rg.Quantiles([0.1, 0.9], [[1.0, 2.0]])).values[0, 1])
    assert found[1] == (None,)


def test_maps_without_a_closed_form_raise_with_a_reason():
    columns = {each: f"q{j}" for j, each in enumerate(LEVELS)}
    for name in ("PIT", "Pareto"):
        with pytest.raises(cb.InputError, match="has no closed form for quantile forecasts"):
            cb.to_sql(NORMAL[name], columns=columns, level=0.5)
    cases = [
        (POINTS["linear"], {}, "column must be the name of one column"),
        (NORMAL["PIT"], {"column": "mu"}, "columns must be a mapping"),
        (NORMAL["PIT"], {"columns": {"mean": "m", "sd": "s"}}, "level must be given"),
        (NORMAL["PIT"], {"columns": {"mean": "m", "sd": "s"}, "level": 1.5}, "level must lie between 0 and 1"),
        (NORMAL["PIT"], {"columns": {"mean": "m"}, "level": 0.5}, "must have the keys 'mean' and 'sd'"),
        (NORMAL["quantile"], {"columns": {"mean": "m", "sd": "s"}, "level": 0.4}, "one of the recalibrated levels"),
        (OF_QUANTILES["variance"], {"columns": {0.4: "a", 0.6: "b"}, "level": 0.9}, "level must lie between"),
        (rg.RecalibratedModel(None), {"column": "x"}, "has no closed form"),
    ]
    for cal, options, words in cases:
        with pytest.raises(cb.InputError, match=words):
            cb.to_sql(cal, **options)
    with pytest.raises(ValueError, match="not fitted"):
        cb.to_sql(rg.LinearRecalibrator(), "x")


# ONNX


def run(model, **inputs):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    (found,) = runtime.InferenceSession(model.SerializeToString()).run(None, inputs)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_point
def test_onnxruntime_recalibrates_points_as_python_does(name, dtype):
    pytest.importorskip("onnx")
    x = predictions().astype(dtype)
    found = run(cb.to_onnx(POINTS[name], dtype=dtype), prediction=x)
    expected = POINTS[name].predict(x)
    assert found.dtype == np.dtype(dtype)
    relative = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    assert relative.max() <= (1e-6 if dtype == "float32" else 1e-12)
    bad = np.array([np.nan, np.inf, -np.inf], dtype=dtype)
    assert np.isnan(run(cb.to_onnx(POINTS[name], dtype=dtype), prediction=bad)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", [0.05, 0.95])
@each_normal
def test_onnxruntime_recalibrates_normal_forecasts_as_python_does(name, level, dtype):
    pytest.importorskip("onnx")
    mean, sd = (values.astype(dtype) for values in (new_forecasts()[0].mean, new_forecasts()[0].sd))
    model = cb.to_onnx(NORMAL[name], dtype=dtype, level=level)
    found = run(model, mean=mean, sd=sd)
    expected = NORMAL[name](rg.Gaussian(mean, sd)).quantile(level)
    relative = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    assert relative.max() <= (1e-6 if dtype == "float32" else 1e-12)
    bad = np.array([[np.nan, 1], [1, np.nan], [1, 0], [1, -1], [np.inf, 1]], dtype=dtype)
    assert np.isnan(run(model, mean=bad[:, 0], sd=bad[:, 1])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", [0.05, 0.95])
@of_quantiles
def test_onnxruntime_recalibrates_quantile_forecasts_as_python_does(name, level, dtype):
    pytest.importorskip("onnx")
    values, cal = new_forecasts()[1].values.astype(dtype), OF_QUANTILES[name]
    model = cb.to_onnx(cal, dtype=dtype, level=level, levels=LEVELS)
    expected = cal(rg.Quantiles(LEVELS, values)).quantile(level)
    found = run(model, quantiles=values)
    relative = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    assert relative.max() <= (1e-6 if dtype == "float32" else 1e-12)
    bad = np.array([[1, 2, 3, 4, 3], [1, 2, np.nan, 4, 5], [1, 2, 3, 4, np.inf]], dtype=dtype)
    assert np.isnan(run(model, quantiles=bad)).all()


def test_onnx_options_of_distributions_are_checked():
    pytest.importorskip("onnx")
    with pytest.raises(cb.InputError, match="levels must rise"):
        cb.to_onnx(OF_QUANTILES["variance"], level=0.5, levels=[0.9, 0.1])
    with pytest.raises(cb.InputError, match="level must not be given for LinearRecalibrator"):
        cb.to_onnx(POINTS["linear"], level=0.5)
    with pytest.raises(cb.InputError, match="level must be given"):
        cb.to_onnx(NORMAL["PIT"])
    with pytest.raises(cb.InputError, match="has no closed form"):
        cb.to_onnx(rg.RecalibratedModel(None))
