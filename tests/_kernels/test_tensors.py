"""Tensors that are counted on their device: the tables are those of the same rows on the host, bitwise.

The code runs on any device of torch, so it is tested on the CPU too, where tensors are otherwise read by the kernel.
"""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError, ScoreTable
from calibrant._kernels import tensors

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    monkeypatch.setattr(tensors, "DEVICES", (request.param,))
    return request.param


@pytest.fixture
def no_host_reading(monkeypatch):
    """Fail if a tensor is read on the host."""

    def refuse(tensor):
        raise AssertionError("the tensor was copied to the host")

    monkeypatch.setattr("calibrant._support.columns.tensor_array", refuse)


def rows(rng, size, score_type):
    p = rng.beta(0.7, 2, size).astype(score_type)
    p[: size // 3] = p[: size // 3].round(2)  # ties
    p[:4] = [0, 1, -0.0, np.finfo(score_type).smallest_subnormal]
    return (rng.random(size) < p**1.1).astype(np.int64), p


def same(table, other):
    assert table == other
    for name in ("score", "n", "k"):
        assert getattr(table, name).tobytes() == getattr(other, name).tobytes()
        assert getattr(table, name).dtype == getattr(other, name).dtype
    assert (table.n_in, table.n_dropped, table.notes) == (other.n_in, other.n_dropped, other.notes)


@pytest.mark.usefixtures("no_host_reading")
@pytest.mark.parametrize("label_type", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("score_type", ["float32", "float64"])
def test_the_table_is_that_of_the_host(rng, device, score_type, label_type):
    y, p = rows(rng, 5000, score_type)
    y = y.astype(label_type)
    table = ScoreTable.from_arrays(torch.tensor(y, device=device), torch.tensor(p, device=device))
    same(table, ScoreTable.from_arrays(y, p))
    assert not np.signbit(table.score).any()


@pytest.mark.usefixtures("no_host_reading")
def test_strided_differentiable_and_single_column_tensors(rng, device):
    y, p = rows(rng, 999, "float32")
    given = torch.tensor(np.stack([p, p], axis=1), device=device, requires_grad=True)[:, 1]
    same(ScoreTable.from_arrays(torch.tensor(y, device=device), given), ScoreTable.from_arrays(y, p))
    table = ScoreTable.from_arrays(torch.tensor(y, device=device)[:, None], given[:, None])
    same(table, ScoreTable.from_arrays(y[:, None], p[:, None]))
    assert [note.code for note in table.notes] == ["one_column", "one_column"]


@pytest.mark.usefixtures("no_host_reading")
def test_bfloat16_scores_are_those_of_float32(rng, device):
    y, p = rows(rng, 500, "float32")
    half = torch.tensor(p).to(torch.bfloat16)
    table = ScoreTable.from_arrays(torch.tensor(y, device=device), half.to(device))
    same(table, ScoreTable.from_arrays(y, half.float().numpy()))


@pytest.mark.usefixtures("no_host_reading")
@pytest.mark.parametrize("score_type", ["float32", "float64"])
def test_rows_counted_in_parts_give_the_same_table(rng, device, score_type, monkeypatch):
    monkeypatch.setattr(tensors, "_PART", 300)
    y, p = rows(rng, 1000, score_type)
    same(
        ScoreTable.from_arrays(torch.tensor(y, device=device), torch.tensor(p, device=device)),
        ScoreTable.from_arrays(y, p),
    )


@pytest.mark.usefixtures("no_host_reading")
def test_one_row_and_one_score(device):
    for y, p in (([1], [0.5]), ([0], [0.0]), ([1, 1, 0], [1.0, 1.0, 1.0])):
        table = ScoreTable.from_arrays(torch.tensor(y, device=device), torch.tensor(p, device=device))
        same(table, ScoreTable.from_arrays(y, p))


BAD = {
    "NaN score": ([0, 1, 1], [0.1, float("nan"), 0.3]),
    "missing outcome": ([0.0, float("nan"), 1.0], [0.1, 0.2, 0.3]),
    "negative": ([0, 1, 1], [0.1, -0.5, 0.3]),
    "percent": ([0, 1, 1], [0.1, 50.0, 0.3]),
    "infinite": ([0, 1, 1], [0.1, float("inf"), 0.3]),
    "labels 1 and 2": ([1, 2, 1], [0.1, 0.2, 0.3]),
    "soft label": ([0.0, 0.5, 1.0], [0.1, 0.2, 0.3]),
    "swapped": ([0.1, 0.2, 0.3], [0.0, 1.0, 1.0]),
    "lengths": ([0, 1], [0.1, 0.2, 0.3]),
    "empty": ([], []),
    "two columns": ([0, 1], [[0.1, 0.9], [0.2, 0.8]]),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_those_of_the_host(device, case):
    y, p = (np.array(column) for column in BAD[case])
    with pytest.raises(InputError) as expected:
        ScoreTable.from_arrays(y, p)
    with pytest.raises(InputError) as found:
        ScoreTable.from_arrays(torch.tensor(y, device=device), torch.tensor(p, device=device))
    assert str(found.value) == str(expected.value)
    assert (found.value.row, found.value.argument) == (expected.value.row, expected.value.argument)


@pytest.mark.parametrize(
    ("y", "p", "options"),
    [
        ([0, 1, 1], [0.1, float("nan"), 0.3], {"missing": "drop"}),
        ([0, 1, 1], [0.1, 1 + 1e-7, 0.3], {}),
        ([3, 5, 5], [0.1, 0.2, 0.3], {"pos_label": 5}),
        ([0, 1, 1], [0.1, 0.2, 0.3], {"frequency": [2, 3, 4]}),
        ([0, 1, 1], [0.1, 0.2, 0.3], {"sample_weight": [0.5, 3, 4]}),
    ],
)
def test_rows_that_are_dropped_clipped_or_weighted_are_read_on_the_host(device, y, p, options):
    y, p = np.array(y), np.array(p)
    table = ScoreTable.from_arrays(torch.tensor(y, device=device), torch.tensor(p, device=device), **options)
    same(table, ScoreTable.from_arrays(y, p, **options))


def test_an_unknown_option_is_refused_on_every_device(device):
    with pytest.raises(InputError, match="missing must be"):
        ScoreTable.from_arrays(torch.tensor([0, 1], device=device), torch.rand(2, device=device), missing="skip")


@pytest.mark.usefixtures("no_host_reading")
def test_metrics_and_evaluations_take_tensors_on_a_device(rng, device):
    y, p = rows(rng, 2000, "float32")
    tensors_ = torch.tensor(y, device=device), torch.tensor(p, device=device)
    assert cb.tce(*tensors_) == cb.tce(y, p)
    assert cb.brier(*tensors_) == cb.brier(y, p)
    assert cb.ECE()(*tensors_).to_dict() == cb.ECE()(y, p).to_dict()
    found, expected = (cb.evaluate(*given, n_resamples=20, random_state=1) for given in (tensors_, (y, p)))
    assert found.to_json() == expected.to_json()
    interval = partial(cb.interval, "ece", n_resamples=20, random_state=1)
    assert repr(interval(*tensors_)) == repr(interval(y, p))


def class_rows(rng, size, classes, score_type):
    logits = 2 * rng.normal(size=(size, classes)).round(1)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(classes, p=row) for row in proba])
    y[:classes] = np.arange(classes)
    proba[0] = 1 / classes  # all are equal: the first counts
    return y, proba.astype(score_type)


@pytest.mark.usefixtures("no_host_reading")
@pytest.mark.parametrize("score_type", ["float32", "float64"])
@pytest.mark.parametrize("classes", [2, 3, 11])
def test_the_top_label_is_that_of_the_host(rng, device, classes, score_type):
    y, proba = class_rows(rng, 600, classes, score_type)
    given = torch.tensor(y, device=device), torch.tensor(proba, device=device)
    same(cb.metrics.top_label(*given), cb.metrics.top_label(y, proba))
    names = list(range(classes))[::-1]
    same(cb.metrics.top_label(*given, classes=names), cb.metrics.top_label(y, proba, classes=names))


@pytest.mark.usefixtures("no_host_reading")
def test_labels_may_be_absent_from_the_rows_if_they_are_named(device):
    proba = [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]
    given = torch.tensor([7, 9], device=device), torch.tensor(proba, device=device, dtype=torch.float64)
    same(cb.metrics.top_label(*given, classes=[7, 8, 9]), cb.metrics.top_label([7, 9], proba, classes=[7, 8, 9]))


@pytest.mark.parametrize(
    ("y", "proba", "options"),
    [
        ([0, 1], [[0.5, 0.4], [0.3, 0.7]], {}),
        ([0, 1], [[0.5, np.nan], [0.3, 0.7]], {}),
        ([0, 1], [[-0.5, 1.5], [0.3, 0.7]], {}),
        ([0, 0], [[0.5, 0.5], [0.3, 0.7]], {}),
        ([0, 3], [[0.5, 0.5], [0.3, 0.7]], {"labels": [0, 1]}),
        ([0, 1], [[0.5, 0.5], [0.3, 0.7]], {"labels": [0, 1, 2]}),
        ([0, 1], [[0.5, 0.5], [0.3, 0.7]], {"labels": [0, 0]}),
        ([0, 1, 1], [[0.5, 0.5], [0.3, 0.7]], {}),
        ([0, 1], [[0.5], [0.3]], {}),
    ],
)
def test_errors_of_the_top_label_are_those_of_the_host(device, y, proba, options):
    with pytest.raises(InputError) as expected:
        cb.metrics.top_label(np.array(y), np.array(proba), **options)
    with pytest.raises(InputError) as found:
        cb.metrics.top_label(torch.tensor(y, device=device), torch.tensor(proba, device=device).double(), **options)
    assert str(found.value) == str(expected.value)


def test_rows_with_missing_probabilities_are_dropped_as_on_the_host(device):
    y, proba = np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.3, np.nan], [0.2, 0.8]])
    given = torch.tensor(y, device=device), torch.tensor(proba, device=device)
    same(cb.metrics.top_label(*given, missing="drop"), cb.metrics.top_label(y, proba, missing="drop"))


def test_class_probabilities_may_be_bfloat16():
    proba = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    expected = cb.metrics.top_label([0, 1], proba.numpy())
    assert cb.metrics.top_label(torch.tensor([0, 1]), proba.to(torch.bfloat16)) == expected


def test_tensors_of_the_cpu_are_read_by_the_kernel_and_torch_is_not_imported():
    assert not tensors.are_on_device(torch.tensor([0, 1]), torch.tensor([0.1, 0.2]))
    assert not tensors.are_on_device([0, 1], np.array([0.1, 0.2]))
    code = "import sys, calibrant as cb; cb.tce([0, 1], [0.1, 0.9]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_large_counts_are_copied_through_page_locked_buffers():
    values = torch.randint(0, 2**62, (5_000_001,), device="cuda")
    assert np.array_equal(tensors.to_host(values), values.cpu().numpy())
    assert np.array_equal(tensors.to_host(values[::3]), values[::3].cpu().numpy())
