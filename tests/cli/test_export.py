"""`calibrant export`."""

from pathlib import Path

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
