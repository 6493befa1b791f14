"""Random streams from a `random_state`, and those of replicates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.random import SFC64, Generator, Philox, SeedSequence

from calibrant._support.errors import InputError

RandomState: TypeAlias = int | Generator | SeedSequence | None


def seed_sequence(random_state: RandomState) -> SeedSequence:
    """Return the seed of all streams: random for None, the next number of a Generator, or the given number."""
    if isinstance(random_state, SeedSequence):
        return random_state
    if isinstance(random_state, Generator):
        return SeedSequence(int(random_state.integers(2**63)))
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        return SeedSequence(random_state)
    raise InputError(
        f"random_state must be None, a whole number of at least 0, or a numpy Generator; got {random_state!r}.",
        argument="random_state",
        value=random_state,
    )


def generator(random_state: RandomState) -> Generator:
    """Return a generator for draws that are not replicates."""
    return Generator(SFC64(seed_sequence(random_state)))


@dataclass(frozen=True)
class Stream:
    """The random numbers of one replicate, by a key for seed and purpose and the number of the replicate."""

    key: int
    replicate: int

    def generator(self) -> Generator:
        """Return a generator for draws that the kernel does not make."""
        return Generator(Philox(key=[self.key, 0], counter=[0, 0, 0, self.replicate]))


@dataclass(frozen=True)
class Streams:
    """The streams of consecutive replicates."""

    key: int
    first: int
    count: int

    def __iter__(self) -> Iterator[Stream]:
        return (Stream(self.key, self.first + i) for i in range(self.count))


def stream_key(seed: SeedSequence, purpose: int) -> int:
    """Return the key of all replicates with this seed and purpose."""
    entropy = seed.entropy
    return _stream_key(tuple(entropy) if isinstance(entropy, Sequence) else entropy, (*seed.spawn_key, purpose))


@lru_cache(maxsize=64)  # groups share a seed
def _stream_key(entropy: int | tuple[int, ...] | None, spawn_key: tuple[int, ...]) -> int:
    return int(SeedSequence(entropy, spawn_key=spawn_key).generate_state(1, np.uint64)[0])
