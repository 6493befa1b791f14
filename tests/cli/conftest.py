"""Files of scores, and a function that runs a command."""

import json
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
