"""`calibrant export`."""

from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")


def test_export_gives_sql_and_onnx(scores, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    calibrator = cb.Platt().fit(scores["p"], scores["y"])
    cb.save(calibrator, "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "p", "--dialect", "spark")
    assert text.strip() == cb.to_sql(calibrator, "p", dialect="spark")
    call("export", "cal.json", "--onnx", "cal.onnx")
    assert Path("cal.onnx").read_bytes() == cb.to_onnx(calibrator).SerializeToString()
    assert "--sql or --onnx must be given; got neither." in call("export", "cal.json", code=2)


def test_export_of_several_classes_takes_one_column_per_class(here, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    proba = np.random.default_rng(0).dirichlet([1, 1, 1], 90)
    calibrator = cb.SoftmaxTemperature().fit(proba, np.array(["cat", "dog", "eel"])[np.arange(90) % 3])
    cb.save(calibrator, "cal.json")
    given = ("export", "cal.json", "--sql")
    text = call(*given, "--column", "a", "--column", "b", "--column", "c")
    source = f"(SELECT {proba[0, 0]!r} AS a, {proba[0, 1]!r} AS b, {proba[0, 2]!r} AS c)".replace("np.float64", "")
    answer = duckdb.sql(f"SELECT {text} FROM {source}")
    assert answer.columns == ["cat", "dog", "eel"]
    np.testing.assert_allclose(answer.fetchall()[0], calibrator(proba[:1])[0], rtol=1e-12)
    words = "--column must name one column for each of the classes ['cat', 'dog', 'eel']; got ('score',)."
    assert words in call(*given, code=2)


def test_export_of_one_score_takes_one_column(scores, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cb.save(cb.Platt().fit(scores["p"], scores["y"]), "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "a", "--column", "b", code=2)
    assert "--column must be the name of one column for Platt; got ('a', 'b')." in text


def test_a_fitted_map_of_point_predictions_is_exported(forecasts, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    call("fit", "forecasts.csv", "-y", "price", "--point", "high", "--method", "isotonic", "-o", "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "high")
    found = duckdb.sql(f"SELECT {text} AS c FROM 'forecasts.parquet'").fetchnumpy()["c"]
    expected = cb.regression.IsotonicRecalibrator().fit(forecasts["high"], forecasts["price"])(forecasts["high"])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
