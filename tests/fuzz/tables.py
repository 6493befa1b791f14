"""Tables from Arrow, Parquet and pickles, with a matching checksum and any content."""

import io
import pickle
import warnings

import numpy as np

import calibrant as cb
from calibrant.tables import storage
from tests.fuzz.choices import Choices
from tests.fuzz.workplace import folder


def seeds() -> list[bytes]:
    out = io.BytesIO()
    import pyarrow.parquet as pq

    pq.write_table(cb.ScoreTable.from_counts([0.1, 0.5], [3, 4], [1, 2]).to_arrow(), out)
    return [
        b"\x00" + out.getvalue(),
        *(bytes([1 + i % 2, 3, i, 2, 5, 7, 9, 1, 1, 2, 3, 1]) for i in range(8)),
        b"\x03" * 40,
    ]


def run(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.whole(0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if kind == 0:
                path = folder() / "t.parquet"
                path.write_bytes(choices.rest)
                table = cb.ScoreTable.from_parquet(path)
            else:
                given = _table(choices)
                table = (
                    pickle.loads(pickle.dumps(given))
                    if kind == 1
                    else cb.ScoreTable.from_arrow(storage.to_arrow(given))
                )
        except cb.InputError:
            return
        _use(table)


def _table(choices: Choices) -> cb.ScoreTable:
    """Return a table that no check has seen: mostly close to a valid one."""
    size = choices.whole(0, 6)
    wild, weighted = choices.whole(0, 3) == 0, choices.whole(0, 3) == 0
    draw = choices.number if wild else choices.share
    score = np.array([draw() for _ in range(size)])
    score = score if wild else np.unique(score)
    n = np.array([choices.integer() if wild or choices.whole(0, 30) == 0 else choices.whole(1, 300) for _ in score])
    k = np.array([choices.integer() if wild else min(choices.whole(0, 400), int(n[i])) for i in range(n.size)])
    if not weighted:
        return cb.ScoreTable(score, n.astype(np.int64), k.astype(np.int64), n_in=choices.whole(0, 9))
    columns = [column.astype(float) * (choices.share() if not wild else 1.0) for column in (n, k, n, k)]
    return cb.ScoreTable(score, *columns)


def _use(table: cb.ScoreTable) -> None:
    """Measure a table that passed the checks; its values lie in their ranges."""
    repr(table), table.notes
    if not len(table):
        return
    if table.size < 2**52:
        assert (table + table).size == 2 * table.size
    for metric in (cb.TCE(), cb.ECE(), cb.metrics.ACE(), cb.metrics.MCE(), cb.metrics.Brier(), cb.metrics.ECC()):
        try:
            value = float(metric(table))
        except cb.InputError:
            continue
        low, high = metric.range
        slack = high * (1e-12 if table.n.dtype.kind == "i" else 1e-8)  # sums of weights may differ by rounding
        assert low - slack <= value <= high + slack, (metric, value)
