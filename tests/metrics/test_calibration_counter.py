"""`CalibrationCounter`: its table is that of the same rows on the host, rounded to the grid, bitwise."""

import copy
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantWarning, InputError, ScoreTable

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
STEP = 2**-10


def rows(rng, size, score_type="float32"):
    p = rng.beta(0.7, 2, size).astype(score_type)
    p[:6] = [0, 1, -0.0, STEP / 2, 1.5 * STEP, 1 - STEP / 2]  # halves are rounded to even
    return rng.random(size) < p**1.1, p


def same(table, other):
    for name in ("score", "n", "k"):
        assert getattr(table, name).tobytes() == getattr(other, name).tobytes()
    assert (table.n_in, table.n_dropped, table.notes) == (other.n_in, other.n_dropped, other.notes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score_type", ["float32", "float64"])
@pytest.mark.parametrize("resolution", [STEP, 2**-20, 0.001, 0.03, 1.0])
def test_the_table_is_that_of_the_rounded_scores(rng, device, resolution, score_type):
    y, p = rows(rng, 30_000, score_type)
    counter = cb.metrics.CalibrationCounter(resolution=resolution).to(device)
    for part in (slice(0, 20_000), slice(20_000, 20_010), slice(20_010, None)):  # large and small batches
        counter.update(torch.tensor(p[part], device=device), torch.tensor(y[part], device=device))
    same(counter.table(), ScoreTable.from_arrays(y, p).round(resolution))


@pytest.mark.parametrize("label_type", ["bool", "uint8", "int64", "float32"])
def test_outcomes_of_any_type_and_tensors_of_any_shape(rng, label_type):
    y, p = rows(rng, 600)
    counter = cb.metrics.CalibrationCounter(resolution=STEP)
    counter.update(torch.tensor(p.reshape(3, 2, 100)), torch.tensor(y.astype(label_type).reshape(3, 2, 100)))
    same(counter.table(), ScoreTable.from_arrays(y, p).round(STEP))


def test_the_argument_is_not_changed(rng):
    y, p = rows(rng, 100, "float64")
    given = torch.tensor(p)
    cb.metrics.CalibrationCounter().update(given, torch.tensor(y))
    assert np.array_equal(given.numpy(), p)


@pytest.mark.parametrize("metric", ["ece", "tce", cb.brier, cb.ECE(n_bins=15), "auc"])
def test_any_binary_metric_is_computed(rng, metric):
    y, p = rows(rng, 2000)
    counter = cb.metrics.CalibrationCounter(metric)
    counter.update(torch.tensor(p), torch.tensor(y))
    expected = cb.metrics.as_metric(metric).value(ScoreTable.from_arrays(y, p).round(2**-20))
    assert counter.compute().item() == expected
    assert counter.compute().dtype == torch.float64


def test_the_table_can_be_evaluated(rng):
    y, p = rows(rng, 2000)
    counter = cb.metrics.CalibrationCounter()
    counter.update(torch.tensor(p), torch.tensor(y))
    expected = cb.evaluate(ScoreTable.from_arrays(y, p).round(2**-20), n_resamples=20, random_state=1)
    assert cb.evaluate(counter.table(), n_resamples=20, random_state=1).to_json() == expected.to_json()


def test_memory_is_constant(rng):
    counter = cb.metrics.CalibrationCounter(resolution=STEP)
    sizes = {name: getattr(counter, name).numel() for name in ("counts", "clipped", "dropped")}
    for _ in range(3):
        y, p = rows(rng, 5000)
        counter.update(torch.tensor(p), torch.tensor(y))
    assert sizes == {name: getattr(counter, name).numel() for name in sizes}
    assert counter.counts.dtype == torch.int64


def test_reset_merge_copy_and_pickle(rng):
    y, p = rows(rng, 3000)
    both = [cb.metrics.CalibrationCounter(resolution=STEP) for _ in range(2)]
    both[0].update(torch.tensor(p[:1000]), torch.tensor(y[:1000]))
    both[1].update(torch.tensor(p[1000:]), torch.tensor(y[1000:]))
    both[0].merge_state(both[1])
    expected = ScoreTable.from_arrays(y, p).round(STEP)
    same(both[0].table(), expected)
    same(copy.deepcopy(both[0]).table(), expected)
    same(pickle.loads(pickle.dumps(both[0])).table(), expected)
    both[0].reset()
    assert len(both[0].table()) == 0
    with pytest.raises(InputError, match="resolution"):
        both[0].merge_state(cb.metrics.CalibrationCounter(resolution=0.5))


def test_forward_returns_the_value_of_the_batch_and_counts_it(rng):
    y, p = rows(rng, 2000)
    counter = cb.metrics.CalibrationCounter("brier", resolution=STEP)
    for part in (slice(0, 700), slice(700, None)):
        value = counter(torch.tensor(p[part]), torch.tensor(y[part]))
        assert value.item() == cb.metrics.Brier().value(ScoreTable.from_arrays(y[part], p[part]).round(STEP))
    same(counter.table(), ScoreTable.from_arrays(y, p).round(STEP))


@pytest.mark.parametrize(
    ("preds", "target", "text"),
    [
        ([0.1, float("nan")], [0, 1], "preds has 1 missing value"),
        ([0.1, 2.5], [0, 1], "preds must lie in"),
        ([0.1, -3.0], [0, 1], "sigmoid"),
        ([0.1, 0.2], [0, 2], "target must"),
        ([0.0, 1.0], [0.3, 0.8], "swapped"),
        ([0.1, 0.2], [0], "same shape"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(preds, target, text):
    counter = cb.metrics.CalibrationCounter(resolution=STEP)
    with pytest.raises(InputError, match=text):
        counter.update(torch.tensor(preds), torch.tensor(target))
    assert counter.counts.sum() == counter.dropped == 0


def test_values_just_outside_are_clipped_and_noted():
    counter = cb.metrics.CalibrationCounter("brier", resolution=STEP)
    counter.update(torch.tensor([0.5, 1 + 1e-7, -1e-9]), torch.tensor([0, 1, 0]))
    table = counter.table()
    assert table == ScoreTable.from_arrays([0, 1, 0], [0.5, 1, 0])
    assert [(note.code, note.count) for note in table.notes] == [("clipped", 2), ("rounded", 1)]
    with pytest.warns(CalibrantWarning, match="2 values of preds"):
        counter.compute()


def test_rows_with_missing_values_are_dropped_on_request():
    counter = cb.metrics.CalibrationCounter(resolution=STEP, missing="drop")
    counter.update(torch.tensor([0.5, float("nan"), 0.25]), torch.tensor([0, 1, 1]))
    counter.update(torch.tensor([float("nan")]), torch.tensor([1]))
    counter.update(torch.tensor([]), torch.tensor([]))
    table = counter.table()
    assert (table.n_in, table.n_dropped, table.size) == (4, 2, 2)
    assert [note.code for note in table.notes] == ["missing", "rounded"]


@pytest.mark.filterwarnings("ignore:The ``compute`` method")  # of torchmetrics
def test_a_counter_without_rows_has_no_value():
    counter = cb.metrics.CalibrationCounter()
    assert len(counter.table()) == 0
    with pytest.raises(InputError, match="no rows"):
        counter.compute()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"resolution": 2**-23}, "resolution must be at least"),
        ({"resolution": 0}, "resolution must lie"),
        ({"metric": "crps"}, "metric must be"),
        ({"metric": "no"}, "metric must be"),
        ({"missing": "skip"}, "missing must be"),
    ],
)
def test_bad_options_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        cb.metrics.CalibrationCounter(**options)


def test_it_is_a_metric_of_torchmetrics(rng):
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    y, p = rows(rng, 500)
    assert issubclass(cb.metrics.CalibrationCounter, torchmetrics.Metric)
    collection = torchmetrics.MetricCollection(
        {"ours": cb.metrics.CalibrationCounter("auc"), "theirs": torchmetrics.classification.BinaryAUROC()}
    )
    collection.update(torch.tensor(p), torch.tensor(y).long())
    values = collection.compute()
    assert values["ours"].item() == pytest.approx(values["theirs"].item(), abs=1e-5)


WORKER = """
import sys
HIDDEN = {hidden}
if HIDDEN:
    sys.modules["torchmetrics"] = None
    import importlib.util
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "torchmetrics" else find_spec(name, *rest)
import numpy as np, torch
import torch.multiprocessing
import calibrant as cb

def work(rank, size, store):
    torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size)
    rng = np.random.default_rng(7)
    p = rng.random(4001).astype("float32"); y = rng.random(4001) < p
    counter = cb.metrics.CalibrationCounter("brier", resolution=2**-12)
    assert ("torchmetrics" in type(counter).__mro__[1].__module__) != HIDDEN
    for start in range(rank * 500, 4001, size * 500):
        counter(torch.tensor(p[start:start + 500]), torch.tensor(y[start:start + 500]))
    own = int(counter.counts.sum())
    expected = cb.ScoreTable.from_arrays(y, p).round(2**-12)
    value, table = counter.compute().item(), counter.table()
    assert table == expected and table.n_in == expected.n_in == 4001
    assert value == cb.metrics.Brier().value(expected)
    assert int(counter.counts.sum()) == own < 4001  # the counts of this process are restored
    counter.update(torch.tensor([0.5]), torch.tensor([1]))
    assert counter.table().n_in == 4001 + size
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    rank = int(sys.argv[1])
    work(rank, 2, sys.argv[2])
    print("same")
"""


@pytest.mark.parametrize("hidden", [False, True], ids=["torchmetrics", "torch alone"])
def test_two_processes_add_up_their_counts(tmp_path, hidden):
    if not hidden:
        pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    script = tmp_path / "work.py"
    script.write_text(textwrap.dedent(WORKER).replace("{hidden}", str(hidden)))
    command = [sys.executable, "-W", "ignore", str(script)]
    running = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in running] == ["same", "same"]


def test_the_package_does_not_import_torch():
    code = "import sys, calibrant as cb; cb.ScoreTable; dir(cb); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
