"""Random streams from a `random_state`."""

from typing import TypeAlias

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

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
