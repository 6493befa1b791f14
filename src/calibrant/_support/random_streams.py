"""Random streams from a `random_state`."""

from typing import TypeAlias

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from calibrant._support.errors import InputError

RandomState: TypeAlias = int | Generator | SeedSequence | None


def seed_of(random_state: RandomState) -> SeedSequence:
    """The root of all streams. None gives other draws each time; a Generator gives its next number as the seed."""
    if isinstance(random_state, SeedSequence):
        return random_state
    if isinstance(random_state, Generator):
        return SeedSequence(int(random_state.integers(2**63)))
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        return SeedSequence(random_state)
    raise InputError(
        f"random_state must be None, a whole number of at least 0, or a numpy Generator; it is {random_state!r}.",
        argument="random_state",
        value=random_state,
    )


def generator(random_state: RandomState) -> Generator:
    """A generator for draws that need no replicates of their own."""
    return Generator(SFC64(seed_of(random_state)))
