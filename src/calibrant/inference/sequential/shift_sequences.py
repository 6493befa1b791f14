"""A confidence sequence for calibration-in-the-large: ranges of shifts that the data have not refuted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_share
from calibrant._support.typing import Floats
from calibrant.inference.sequential.windows import Window

__all__ = ["ShiftSequence"]

_POSITIVE = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_LARGE = (0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0)
_HALF = np.array([*_POSITIVE, *_LARGE])
EDGES = np.concatenate([[-np.inf], -_HALF[::-1], [0.0], _HALF, [np.inf]])  # of the cells, in log-odds
BLOCK = 1_000_000  # entries (cell x stream x score) at a time, which bounds memory


@dataclass(frozen=True)
class ShiftSequence:
    """One e-process per cell of shifts, against "the log-odds of all scores are off by one number in this cell".

    Attributes
    ----------
    log_e : array
        Logarithms of the e-processes; the last axis runs over the cells.
    log_e_max : array
        Their largest values so far: a cell once refuted stays refuted.
    estimate : float
        The shift fitted to all windows but the last, shrunk towards 0.

    See Also
    --------
    EProcess, Evidence

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.inference import EProcess
    >>> process = EProcess()
    >>> evidence = process.start()
    >>> for _ in range(20):  # 10 % predicted, 16 % observed
    ...     evidence = process.update(evidence, cb.ScoreTable.from_counts([0.1], [500], [80]))
    >>> low, high = evidence.shifts.interval(0.05)
    >>> 0 < low < high
    True
    """

    log_e: Floats
    log_e_max: Floats
    estimate: Floats

    @classmethod
    def start(cls, streams: tuple[int, ...]) -> Self:
        """Return the sequence before the first window.

        Parameters
        ----------
        streams : tuple of int
            Shape of streams that are monitored side by side; ``()`` for one.

        Returns
        -------
        ShiftSequence
        """
        nothing = np.zeros((*streams, EDGES.size - 1))
        return cls(nothing, nothing, np.zeros(streams))

    def update(self, window: Window, estimate: Floats, e_value: Callable[[Window, Floats], Floats]) -> Self:
        """Return the sequence after a window; `e_value` compares a window with the rates fitted to earlier ones.

        Parameters
        ----------
        window : Window
            Scores with their rows and events in each stream.
        estimate : array
            Shift of the log-odds that earlier windows show.
        e_value : callable
            Function from a window and rates to the logarithm of an e-value.

        Returns
        -------
        ShiftSequence
        """
        rates = window.shifted(np.asarray(estimate)[..., None])[..., None, :]
        step = max(1, BLOCK // max(window.n.size, 1))
        added = []
        for first in range(0, EDGES.size - 1, step):
            edges = EDGES[first : first + step + 1]
            added.append(e_value(window.within(edges[:-1, None], edges[1:, None]), rates))
        log_e = self.log_e + np.concatenate(added, axis=-1)
        return type(self)(log_e, np.maximum(self.log_e_max, log_e), np.asarray(estimate))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the outer ends of the cells that have not been refuted at `alpha`.

        If one shift holds in all windows, it lies within all these intervals with a probability of at least
        1 - alpha. The ends are those of cells: from 0.01 wide near 0 to 1 wide at 3, infinite beyond. NaN if all cells
        are refuted: then no single shift describes all windows.

        Parameters
        ----------
        alpha : float
            Probability of error, in (0, 1).

        Returns
        -------
        tuple of two floats
            Lower and upper end, in log-odds.
        """
        check_share("alpha", alpha)
        if self.log_e_max.ndim != 1:
            raise InputError("interval needs the sequence of one stream; got several.", argument="self")
        inside = np.flatnonzero(self.log_e_max < -np.log(alpha))
        if inside.size == 0:
            return np.nan, np.nan
        return float(EDGES[inside[0]]), float(EDGES[inside[-1] + 1])

    def to_dict(self) -> dict[str, Any]:
        """Return the sequence as values for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {"log_e": self.log_e.tolist(), "log_e_max": self.log_e_max.tolist(), "estimate": float(self.estimate)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the sequence that `to_dict` described.

        Parameters
        ----------
        values : dict
            What `to_dict` returned.

        Returns
        -------
        ShiftSequence
        """
        log_e, log_e_max, estimate = (
            np.array(values[name], dtype=np.float64) for name in ("log_e", "log_e_max", "estimate")
        )
        return cls(log_e, log_e_max, estimate)
