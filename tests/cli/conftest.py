"""Files of scores, and a function that runs a command."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scores(here):
    """Write 1,000 rows to scores.parquet, scores.csv and scores.jsonl: q is calibrated, p overestimates."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    q = rng.random(1000).round(3)
    rows = {"y": (rng.random(1000) < q).astype(int), "p": np.sqrt(q), "q": q, "g": np.where(q < 0.5, "low", "high")}
    pq.write_table(pa.table({**rows, "w": rng.integers(0, 3, 1000)}), "scores.parquet")
    cells = zip(*(column.tolist() for column in rows.values()), strict=True)
    lines = ["y,p,q,g", *(",".join(map(str, row)) for row in cells)]
    Path("scores.csv").write_text("\n".join(lines) + "\n")
    names = ("y", "p", "q")
    with Path("scores.jsonl").open("w") as out:
        for row in zip(*(rows[name].tolist() for name in names), strict=True):
            out.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
    return rows


@pytest.fixture(scope="session")
def forecast_files(tmp_path_factory):
    """Write 2,000 rows with forecasts of each kind once; return the folder and the columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    n, names = 2000, np.array(["ant", "bee", "cat"])
    proba = rng.dirichlet([1, 1, 1], n)
    digit = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    right = rng.normal(50, 10, n)
    noise = rng.normal(0, 4, (n, 20))
    columns = {
        "animal": names[digit],
        "digit": digit,
        **{f"p_{name}": column for name, column in zip(names, proba.T, strict=True)},
        **{f"sharp_{name}": column for name, column in zip(names, sharp.T, strict=True)},
        # Calibrated labels are the labels of other rows; the others have one class too often.
        "fair": names[rng.permutation(digit)],
        "unfair": np.where(rng.random(n) < 0.2, "ant", names[digit]),
        "fair_digit": rng.permutation(digit),
        "price": right + noise[:, 0],
        "right": right,
        "high": 1.2 * right,
        "sd": np.full(n, 4.0),
        "small": np.full(n, 2.0),
        **{f"q{level:g}": right + 4 * z for level, z in ((0.1, -1.2816), (0.5, 0.0), (0.9, 1.2816))},
        **{f"narrow{level:g}": right + 4 * z for level, z in ((0.1, -0.5), (0.5, 0.0), (0.9, 0.5))},
        **{f"m_{i}": right + noise[:, i] for i in range(1, 10)},
        **{f"tight_{i}": right + noise[:, i] / 4 for i in range(1, 10)},
        "g": np.where(np.arange(n) % 2, "odd", "even"),
        "shop": np.arange(n) % 50,
        "count": rng.integers(0, 3, n),
    }
    for values in columns.values():
        values.flags.writeable = False  # tests share them
    folder = tmp_path_factory.mktemp("forecasts")
    pq.write_table(pa.table(columns), folder / "forecasts.parquet")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    lines = [",".join(columns), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "forecasts.csv").write_text("\n".join(lines) + "\n")
    (folder / "forecasts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder, columns


@pytest.fixture
def forecasts(here, forecast_files):
    """Copy forecasts.parquet, forecasts.csv and forecasts.jsonl, 2,000 rows of each kind; return their columns."""
    folder, columns = forecast_files
    for file in folder.iterdir():
        shutil.copy(file, here)
    return dict(columns)


@pytest.fixture
def call(capsys):
    """Return a function that runs a command, checks its exit code and returns its output; never a traceback."""
    from calibrant.cli.main import run

    def call(*arguments, code=0):
        found = run(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert found == code, out + err
        return out + err

    return call
