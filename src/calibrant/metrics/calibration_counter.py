"""`CalibrationCounter`: a metric of torchmetrics that counts scores on a grid, batch by batch and over processes."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._kernels import tensors
from calibrant._support.errors import (
    Argument,
    InputError,
    MissingExtraError,
    Note,
    check_option,
    join_notes,
    warn_notes,
    wrong_value,
)
from calibrant.ingest.counting import FINEST_GRID, grid_cells, grid_table
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.rows import Missing, Rows, missing_note
from calibrant.tables.score_table import ScoreTable, check_resolution, check_scores

try:
    # Any, so that this module is checked alike with torch and without it.
    torch: Any = import_module("torch")
except ModuleNotFoundError as missing_torch:
    raise MissingExtraError("CalibrationCounter needs torch", "torch", name=missing_torch.name) from missing_torch


class _CountedModule(torch.nn.Module):  # type: ignore[misc]
    """What the counter needs of `torchmetrics.Metric`, where torchmetrics is not installed."""

    dist_sync_fn: Any = None
    _to_sync, _is_synced, _should_unsync = True, False, True

    def add_state(self, name: str, default: Any, dist_reduce_fx: str) -> None:
        """Keep counts that move with the module; processes add them up."""
        assert dist_reduce_fx == "sum"
        self.register_buffer(name, default, persistent=False)

    def reset(self) -> None:
        """Forget all rows."""
        for state in self.buffers():
            state.zero_()

    def merge_state(self, incoming_state: Any) -> None:
        """Add the rows of another counter.

        Parameters
        ----------
        incoming_state : module
            The other counter.
        """
        for state, other in zip(self.buffers(), incoming_state.buffers(), strict=True):
            state.add_(other.to(state.device))

    def forward(self, preds: Any, target: Any) -> Any:
        """Count a batch, and return its own value.

        Parameters
        ----------
        preds : tensor
            Scores in [0, 1].
        target : tensor
            Outcomes 0 or 1, of the same shape.

        Returns
        -------
        tensor
            The metric of this batch.
        """
        batch: Any = copy.deepcopy(self)
        batch.reset()
        batch.update(preds, target)
        self.merge_state(batch)
        batch._to_sync = False
        return batch.compute()

    @contextmanager
    def sync_context(self, *, should_sync: bool, **_: Any) -> Iterator[None]:
        """Have the counts of all processes within the context."""
        distributed = torch.distributed
        if not (should_sync and distributed.is_available() and distributed.is_initialized()):
            yield
            return
        own = {name: state.clone() for name, state in self.named_buffers()}
        try:
            for state in self.buffers():
                distributed.all_reduce(state)
            self._is_synced = True
            yield
        finally:
            self._is_synced = False
            for name, state in self.named_buffers():
                state.copy_(own[name])


_Base: Any = import_module("torchmetrics").Metric if find_spec("torchmetrics") else _CountedModule


class CalibrationCounter(_Base):  # type: ignore[misc]
    """A metric of torchmetrics that counts scores on a grid, in constant memory, where the tensors are.

    Its table feeds any binary metric and `evaluate`. Processes of `torch.distributed` add up their counts. Where
    torchmetrics is installed this is a `torchmetrics.Metric`, otherwise a `torch.nn.Module` with the same methods.

    Parameters
    ----------
    metric : name, metric object or function, default="ece"
        The binary metric that `compute` returns.
    resolution : float, default=2**-20
        Scores are rounded to multiples of this, at least 2**-22; see `ScoreTable.round`. The state has 16 bytes per
        multiple: 16 MiB for 2**-20.
    missing : {"raise", "drop"}, default="raise"
        How rows with NaN are treated.
    **kwargs
        Options of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> counter = CalibrationCounter("brier")
    >>> counter.update(torch.tensor([0.25, 0.75]), torch.tensor([0, 1]))
    >>> counter.update(torch.tensor([0.25, 0.5]), torch.tensor([1, 1]))
    >>> counter.compute()
    tensor(0.2344, dtype=torch.float64)
    >>> counter.table()
    ScoreTable(4 rows, 3 distinct scores, 3 positives)
    """

    is_differentiable = False
    full_state_update = False
    counts: Any  # rows without and with the event at each multiple of the resolution
    clipped: Any
    dropped: Any

    def __init__(
        self, metric: MetricLike = "ece", *, resolution: float = 2**-20, missing: Missing = "raise", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.metric: Metric = as_metric(metric)
        if declared(self.metric, "kind") != ScoreTable.kind:
            raise InputError(
                Argument("metric") + f" must be a metric of probabilities of one event; got {self.metric.name}.",
                value=metric,
            )
        check_resolution(resolution)
        if resolution * FINEST_GRID < 1:
            raise InputError(
                Argument("resolution") + f" must be at least 2**-22; got {resolution!r}.",
                hint="Count exactly with ScoreTable.from_arrays, and add up the tables.",
                value=resolution,
            )
        check_option("missing", missing, ("raise", "drop"))
        self.resolution: float = float(resolution)
        self.missing = missing
        cells = grid_cells(self.resolution)
        self.add_state("counts", torch.zeros((cells, 2), dtype=torch.int64), dist_reduce_fx="sum")
        for name in ("clipped", "dropped"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch of scores in [0, 1] and outcomes 0 or 1, tensors of the same shape.

        The order of arguments is that of torchmetrics. Invalid values are an `InputError`, as for `ScoreTable`.

        Parameters
        ----------
        preds : tensor
            Scores in [0, 1].
        target : tensor
            Outcomes 0 or 1, of the same shape.
        """
        if not (tensors.is_tensor(preds) and tensors.is_tensor(target) and preds.shape == target.shape):
            shapes = [tuple(each.shape) if tensors.is_tensor(each) else type(each).__name__ for each in (preds, target)]
            raise InputError(
                Argument("preds") + f" and target must be tensors of the same shape; got {shapes[0]} and {shapes[1]}."
            )
        score, label = preds.detach().reshape(-1), target.detach().reshape(-1)
        if not score.numel():
            return
        plain = score.dtype in (torch.float32, torch.float64, torch.bfloat16)
        if not (plain and tensors.is_valid(score, label)):
            score, label = self._checked(score, label)
        self._count(score, label)

    def _checked(self, preds: Any, target: Any) -> tuple[Any, Any]:
        """Validate a batch on the host, clip scores and drop rows; return the rest."""
        if bool(((preds == 0) | (preds == 1)).all()) and bool(((target > 0) & (target < 1)).any()):
            raise InputError(
                "target must hold 0 and 1; got probabilities, and preds holds 0 and 1.",
                hint="Are the two swapped? The order is (preds, target), as in torchmetrics.",
            )
        rows = Rows.read(target, {"preds": preds}, missing=self.missing, outcome="target")
        if self.missing == "drop" and rows.is_empty:
            self.dropped += len(rows)
            return preds[:0].double(), target[:0]
        used = check_scores(rows)
        self.dropped += used.n_dropped
        self.clipped += sum(note.count for note in used.notes if note.code == "clipped")
        device = self.counts.device
        return torch.tensor(used.forecasts[0].values, device=device), torch.tensor(used.y.values == 1, device=device)

    def _count(self, score: Any, label: Any) -> None:
        # Scores of float32 divided by a power of 2 are exact.
        if score.dtype != torch.float32 or math.frexp(self.resolution)[0] != 0.5:
            score = score.double()
        event = label == 1 if label.is_floating_point() else label
        key = torch.div(score, self.resolution).round_().to(torch.int32).mul_(2).add_(event).to(self.counts.device)
        cells = self.counts.view(-1)
        if key.device.type == "cpu" and key.numel() > cells.numel() // 16:
            cells += torch.bincount(key, minlength=cells.numel())
        else:  # a device counts slowly where many rows have one score, but sorts fast
            places, rows = torch.unique(key, return_counts=True)
            cells.index_add_(0, places, rows)

    def compute(self) -> Any:
        """Return the value of the metric over all batches, and over all processes.

        Returns
        -------
        tensor
            One number.
        """
        table = self.table()
        if not len(table):
            raise InputError("The counter holds no rows; a metric needs at least one.", hint="Call update first.")
        warn_notes(note for note in table.notes if note.code != "rounded")
        return torch.tensor(self.metric.value(table), dtype=torch.float64, device=self.counts.device)

    def table(self) -> ScoreTable:
        """Return the table of all batches, and of all processes: that of the same rows on the host, rounded.

        Returns
        -------
        ScoreTable
            Scores are multiples of the resolution.
        """
        outermost = not self._is_synced
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=outermost and self._to_sync,
            should_unsync=outermost and self._should_unsync,
        ):
            counts = np.array(self.counts.cpu().numpy())  # a copy: the context restores the counts of this process
            clipped, dropped = int(self.clipped), int(self.dropped)
        rows, notes = counts.sum(axis=1), list[Note]()
        if clipped:
            notes.append(
                Note(
                    "clipped", clipped, "{count} values of preds lay outside [0, 1] by at most 1e-06 and were clipped."
                )
            )
        if dropped:
            notes.append(missing_note(dropped))
        n_in = int(rows.sum()) + dropped
        if n_in == dropped:
            return replace(ScoreTable.empty(), n_in=n_in, n_dropped=dropped, _notes=tuple(notes))
        table = grid_table(rows, counts[:, 1], self.resolution)
        return replace(table, n_in=n_in, n_dropped=dropped, _notes=join_notes(notes, table._notes))

    def merge_state(self, incoming_state: Any) -> None:
        """Add the rows of another counter of the same resolution.

        Parameters
        ----------
        incoming_state : CalibrationCounter
            The other counter.
        """
        found = getattr(incoming_state, "resolution", type(incoming_state).__name__)
        if found != self.resolution:
            raise wrong_value("incoming_state", f"must be a counter of resolution {self.resolution!r}", found)
        super().merge_state(incoming_state)
