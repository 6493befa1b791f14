"""Types of the tables of several groups."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._support.typing import Floats, Ints

__all__ = ["Codes", "GroupTables"]

# The number of the group of each row.
Codes: TypeAlias = NDArray[np.int32]
# Where the table of each group begins, and the end; then scores, n and k of all tables, one after the other.
GroupTables: TypeAlias = tuple[Ints, Floats, Ints, Ints]
