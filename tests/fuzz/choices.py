"""Values from bytes: the same bytes give the same values, and bytes that a fuzzer changes change few of them."""

import struct
from collections.abc import Sequence
from typing import Any

SPECIAL = (0.0, -0.0, 1.0, 0.5, 0.3, 1 / 3, 5e-324, 2.0**-1022, 1 - 2.0**-53, 1e308, -1.0, 1e-9)
STRANGE = (float("nan"), float("inf"), -float("inf"), 1 + 2.0**-52, -5e-324)


class Choices:
    """Reads values from bytes; beyond their end all are 0."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        self.at += size
        return found + bytes(size - len(found))

    @property
    def rest(self) -> bytes:
        return self.data[self.at :]

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        size = max(1, ((high - low).bit_length() + 7) // 8)
        return low + int.from_bytes(self.take(size), "little") % (high - low + 1)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[self.whole(0, len(values) - 1)]

    def share(self) -> float:
        """Return a number in [0, 1]: mostly a multiple of 1/64, sometimes any."""
        kind = self.whole(0, 7)
        if kind < 5:
            return self.whole(0, 64) / 64
        return self.whole(0, 2**53) / 2**53 if kind < 7 else self.pick(SPECIAL[:9])

    def number(self) -> float:
        """Return any double: special ones often."""
        kind = self.whole(0, 3)
        if kind == 0:
            return float(self.pick(SPECIAL + STRANGE))
        return self.share() if kind == 1 else float(struct.unpack("<d", self.take(8))[0])

    def integer(self) -> int:
        """Return an integer of 64 bits: small ones often."""
        kind = self.whole(0, 7)
        if kind < 5:
            return self.whole(-2, 40)
        if kind < 7:
            return self.pick((2**31, 2**32, 2**53, 2**53 - 1, 2**62, 2**63 - 1, -(2**63), -1, 10**9))
        return self.whole(-(2**63), 2**63 - 1)

    def value(self, depth: int = 2) -> Any:
        """Return plain data, as JSON has it."""
        kind = self.whole(0, 9 if depth else 6)
        if kind < 7:
            plain = (None, True, self.whole(-3, 300), self.number(), 10**400, self.pick(TEXTS), [])
            return plain[kind]
        if kind == 7:
            return [self.value(depth - 1) for _ in range(self.whole(0, 3))]
        if kind == 8:
            return {self.pick(TEXTS): self.value(depth - 1) for _ in range(self.whole(0, 3))}
        return {self.pick(("part", "mapping")): self.value(depth - 1)}


TEXTS = (
    *("", "x", "\ud800", "a\x00b", "costs.LinearCost", "bins.EqualWidth", "bins.PAVABC", "norms.weighted_l1", "n_bins"),
    *(
        "losses.absolute_gap",
        "losses.RejectionRate",
        "norms.largest",
        "user:a.b",
        "bins.Edges",
        "edges",
        "alpha",
        "name",
    ),
    *("bins", "loss", "norm", "kind", "steps", "values", "{count}", "{count:>9}", "logit", "probability", "real"),
)
