"""Counting of torch tensors on their device; only the counts are copied to the host.

The counts are bitwise those of the other kernels. torch is not imported here: the caller, who passes a tensor, has done
so.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Floats, Ints

# Kinds of devices on which tensors are counted; those of other devices are copied to the host first.
DEVICES = ("cuda",)
_PART = 2**30  # rows that are sorted together: torch.unique on CUDA takes fewer than 2**31
# Counts are copied through page-locked buffers of this many bytes, which are few: locking a page takes longer than
# copying it, and torch never unlocks one.
_BUFFER, _BUFFERS = 2**23, 8


def is_tensor(column: object) -> bool:
    """Return whether the column is a torch tensor."""
    return type(column).__module__.partition(".")[0] == "torch" and hasattr(column, "detach")


def are_on_device(*columns: Any) -> bool:
    """Return whether all columns are tensors on the same device, one on which they can be counted."""
    if not all(map(is_tensor, columns)):
        return False
    return columns[0].device.type in DEVICES and len({str(column.device) for column in columns}) == 1


def count(score: Any, label: Any) -> tuple[Floats, Ints, Ints] | None:
    """Return the distinct scores with their rows and events; see `reference.count`.

    None if a score is not in [0, 1] or a label is not 0 or 1, or if there are no rows.
    """
    torch: Any = sys.modules["torch"]
    score, label = score.detach(), label.detach()
    if score.dtype == torch.bfloat16:
        score = score.float()
    if score.dtype not in (torch.float32, torch.float64) or not score.numel() or not is_valid(score, label):
        return None
    parts = [runs(score[i : i + _PART], label[i : i + _PART]) for i in range(0, score.numel(), _PART)]
    keys, rows = parts[0]
    if len(parts) > 1:
        keys, place = torch.unique(torch.cat([part[0] for part in parts]), return_inverse=True)
        rows = torch.zeros_like(keys, dtype=torch.int64).index_add_(0, place, torch.cat([part[1] for part in parts]))
    # A score has one entry or two: rows without the event, rows with it.
    bits, events = keys >> 1, rows * (keys & 1)
    again = bits[1:] == bits[:-1]
    rows[:-1] += rows[1:] * again
    events[:-1] += events[1:] * again
    first = torch.ones_like(bits, dtype=torch.bool)
    first[1:] = ~again
    distinct = bits[first].view(score.dtype).double()
    return to_host(distinct), to_host(rows[first]), to_host(events[first])


def is_valid(score: Any, label: Any) -> bool:
    """Return whether all scores are in [0, 1] and all labels are 0 or 1."""
    torch: Any = sys.modules["torch"]
    low, high = score.aminmax()  # NaN if one is
    valid = (low >= 0) & (high <= 1)
    if label.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        least, most = label.aminmax()
        valid = valid & (least >= 0) & (most <= 1)
    elif label.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        valid = valid & ((label == 0) | (label == 1)).all()
    elif label.dtype != torch.bool:
        return False
    return bool(valid)


def runs(score: Any, label: Any) -> tuple[Any, Any]:
    """Return the distinct keys of score and label in increasing order, and the rows with each.

    The bits of scores from 0 to 1 increase with them and leave two bits unused, so that twice the bits plus the label
    is a key of the same size.
    """
    torch: Any = sys.modules["torch"]
    wide = score.dtype == torch.float64
    key = score.abs().view(torch.int64 if wide else torch.int32)  # a copy; -0.0 becomes 0.0
    key.mul_(2).add_(label == 1 if label.dtype.is_floating_point else label)
    keys, rows = torch.unique(key, sorted=True, return_counts=True)
    return keys, rows


def to_host(values: Any) -> NDArray[Any]:
    """Return a tensor of one dimension as an array, copied through page-locked memory in parallel."""
    if values.device.type != "cuda" or values.numel() * values.element_size() <= _BUFFER:
        return np.asarray(values.cpu().numpy())
    torch: Any = sys.modules["torch"]
    size = _BUFFER // values.element_size()
    parts = torch.split(values.contiguous(), size)
    copied = np.empty(values.numel(), dtype=torch.empty(0, dtype=values.dtype).numpy().dtype)
    torch.cuda.current_stream(values.device).synchronize()

    def copy_each(worker: int) -> None:
        buffer = torch.empty(size, dtype=values.dtype, pin_memory=True)
        stream = torch.cuda.Stream(values.device)
        for place in range(worker, len(parts), _BUFFERS):
            part = parts[place]
            with torch.cuda.stream(stream):
                buffer[: part.numel()].copy_(part, non_blocking=True)
            stream.synchronize()
            copied[place * size :][: part.numel()] = buffer[: part.numel()].numpy()

    with ThreadPoolExecutor(_BUFFERS) as pool:
        list(pool.map(copy_each, range(_BUFFERS)))
    return copied
