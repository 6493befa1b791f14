"""Aliases of array types in signatures."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Weights: TypeAlias = NDArray[Any]  # int64 counts, or float64 sums of importance weights
Column: TypeAlias = Any  # an array, list, Series or tensor: see calibrant._support.columns
