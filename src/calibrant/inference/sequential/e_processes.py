"""E-processes: evidence against calibration that may be read after every window, without end."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats
from calibrant.inference.sequential.e_values import Contrast, any_dependence, independent_rows, window_effects
from calibrant.inference.sequential.experts import EXPERTS, Memory
from calibrant.inference.sequential.pit_tables import pit_table
from calibrant.inference.sequential.shift_sequences import ShiftSequence
from calibrant.inference.sequential.windows import Window
from calibrant.tables.score_table import ScoreTable

__all__ = ["DEPENDENCES", "EProcess", "Evidence"]

DEPENDENCES = ("window", "any", "independent")
FIRST_SPREAD = 4.0  # variance of a contrast in units of that for independent rows, until windows have shown it
SPREAD_RATE = 0.05
LARGEST = 100.0  # margin and window effect
_BOUND = 1e30  # of all numbers of evidence; 2**53 rows stay far below it


@dataclass(frozen=True)
class Evidence:
    """Evidence against calibration after some windows; `EProcess.update` makes the next one.

    Attributes
    ----------
    n_windows : int
        Number of windows, those without rows included.
    log_e : float
        Natural logarithm of the e-process.
    log_e_max : float
        Its largest value so far.
    shifts : ShiftSequence
        Evidence about calibration-in-the-large; `shifts.interval(alpha)` is the confidence sequence.
    processes, spreads, memories
        State of the parts of the e-process.

    See Also
    --------
    EProcess, ShiftSequence

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.inference import EProcess
    >>> process = EProcess()
    >>> evidence = process.update(process.start(), cb.ScoreTable.from_counts([0.1], [500], [80]))
    >>> evidence.n_windows, type(evidence).from_dict(evidence.to_dict()).n_windows
    (1, 1)
    """

    n_windows: int
    log_e: Floats
    log_e_max: Floats
    processes: Floats
    spreads: Floats
    memories: tuple[Memory, ...]
    shifts: ShiftSequence

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence as values for JSON; numbers survive exactly.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "n_windows": self.n_windows,
            "log_e": float(self.log_e),
            "log_e_max": float(self.log_e_max),
            "processes": [None if value == -np.inf else value for value in self.processes.tolist()],
            "spreads": self.spreads.tolist(),
            "memories": [[memory.information.tolist(), memory.moment.tolist()] for memory in self.memories],
            "shifts": self.shifts.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the evidence that `to_dict` described; an `InputError` if these are not its values.

        Parameters
        ----------
        values : dict
            What `to_dict` returned.

        Returns
        -------
        Evidence
        """
        try:
            found = cls._from_values(values)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("values must be what Evidence.to_dict returned.", argument="values") from error
        found._check()
        return found

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        processes = [-np.inf if value is None else value for value in values["processes"]]
        return cls(
            n_windows=int(values["n_windows"]),
            log_e=_numbers(values["log_e"]),
            log_e_max=_numbers(values["log_e_max"]),
            processes=_numbers(processes),
            spreads=_numbers(values["spreads"]),
            memories=tuple(Memory(_numbers(i).reshape(len(m), len(m)), _numbers(m)) for i, m in values["memories"]),
            shifts=ShiftSequence.from_dict(values["shifts"]),
        )

    def _arrays(self) -> list[Floats]:
        memories = (array for memory in self.memories for array in (memory.information, memory.moment))
        shifts = self.shifts.log_e, self.shifts.log_e_max, self.shifts.estimate
        return [self.log_e, self.log_e_max, self.processes, self.spreads, *memories, *shifts]

    def _check(self) -> None:
        """Raise an error if the evidence of one stream cannot have these values."""
        arrays, expected = self._arrays(), EProcess().start()._arrays()
        if [array.shape for array in arrays] != [array.shape for array in expected]:
            raise InputError("values must be the evidence of one stream; got other shapes.", argument="values")
        finite = all(np.all(array < _BOUND) for array in arrays) and np.all(self.spreads >= 0)
        matrices = [memory.information for memory in self.memories]
        bounded = all(np.all(np.abs(array) < _BOUND) for memory in self.memories for array in vars(memory).values())
        regular = bounded and all(_is_covariance(matrix) for matrix in matrices)
        if self.n_windows < 0 or not (finite and regular and np.isfinite(self.log_e)):
            raise InputError("values must be numbers that windows can give; got others.", argument="values")


@dataclass(frozen=True)
class EProcess:
    r"""A test of calibration that may be read after every window of a stream, without end.

    Before a window, each expert (a shift, a line and a beta recalibration of the log-odds, with long and recent memory)
    is fitted to earlier windows only. Each bets against calibration at fair odds: its e-value has an expectation of at
    most 1 if the model is calibrated within the margin, given the past and the scores of the window. With start weights
    :math:`w_t = 1 / (t (t + 1))`, which find changes at any time,

    .. math:: M_t = (M_{t-1} + w_t) \, e_t, \qquad E_t = \mathrm{mean}_\mathrm{experts}(M_t) + 1 / (t + 1),

    and by Ville's inequality the probability that :math:`E_t` ever reaches :math:`1 / \alpha` is at most
    :math:`\alpha`, however often one looks.

    Parameters
    ----------
    margin : float, default 0.1
        The largest log-odds error that counts as calibrated, at every score. 0 tests exact calibration.
    dependence : {"window", "any", "independent"}, default "window"
        What the rows of one window share, given the past and the scores of the window.

        * ``"window"``: an effect of the window on its rates, with mean 0 and a standard deviation of at most
          `window_effect` times the rate of the rarer outcome; rows are independent otherwise.
        * ``"any"``: anything: rows may repeat each other. Slower.
        * ``"independent"``: nothing. Fastest; effects of a day break the guarantee.
    window_effect : float, default 0.2
        Standard deviation of the effect of a window, relative to the rate of the rarer outcome: the event, or its
        absence where the scores of the window have a mean above 60 %, or either between 40 and 60 %. Used by
        ``"window"`` only.

    See Also
    --------
    Evidence, ShiftSequence, Monitor

    Notes
    -----
    What the guarantee needs, for every form:

    * The event rate of each score is right within the margin in every window, on average over the effects that the
      window may have, given the past. An effect that lasts for several windows is miscalibration while it lasts, and
      may raise an alarm: with effects of 20 % and a correlation of 0.8 from day to day, most streams do. Choose windows
      that are longer than such effects.
    * The end of a window, the number of its rows and the delay of labels do not depend on the outcomes of the window.

    Examples
    --------
    >>> from calibrant.inference import EProcess
    >>> import calibrant as cb
    >>> process = EProcess()
    >>> evidence = process.start()
    >>> for _ in range(20):  # 10 % predicted, 16 % observed
    ...     evidence = process.update(evidence, cb.ScoreTable.from_counts([0.1], [500], [80]))
    >>> bool(evidence.log_e > np.log(1 / 0.05))
    True
    """

    margin: float = 0.1
    dependence: str = "window"
    window_effect: float = 0.2

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name, value in (("margin", self.margin), ("window_effect", self.window_effect)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
                raise InputError(
                    f"{name} must be a number from 0 to {LARGEST:g}; got {value!r}.", argument=name, value=value
                )
        if self.dependence not in DEPENDENCES:
            raise InputError(
                f"dependence must be one of {', '.join(map(repr, DEPENDENCES))}; got {self.dependence!r}.",
                argument="dependence",
                value=self.dependence,
            )

    def start(self, streams: tuple[int, ...] = ()) -> Evidence:
        """Return the evidence before the first window; `streams` is the shape of streams watched side by side.

        Parameters
        ----------
        streams : tuple of int, optional
            Shape of streams that are monitored side by side; one stream by default.

        Returns
        -------
        Evidence
        """
        return Evidence(
            n_windows=0,
            log_e=np.zeros(streams),
            log_e_max=np.zeros(streams),
            processes=np.full((*streams, len(EXPERTS)), -np.inf),
            spreads=np.full((*streams, len(EXPERTS)), FIRST_SPREAD),
            memories=tuple(expert.start(streams) for expert in EXPERTS),
            shifts=ShiftSequence.start(streams),
        )

    def update(self, evidence: Evidence, table: ScoreTable) -> Evidence:
        """Return the evidence after one more window.

        The table must hold counts. A window without rows counts as one in which nothing happened.

        Parameters
        ----------
        evidence : Evidence
            Evidence after all earlier windows.
        table : ScoreTable
            Counts of the window.

        Returns
        -------
        Evidence
            A new object; the one given does not change.
        """
        if table.importance:
            raise InputError("table must hold counts; got importance weights.", argument="table", value=table)
        if table.size == 0:
            return self._mixed(evidence, np.zeros_like(evidence.processes))
        window = Window.from_table(table, margin=float(self.margin))
        shift = evidence.memories[0].coefficients()[..., 0]  # of the shift with long memory, as learnt before
        shifts = evidence.shifts.update(window, shift, self._shift_e_value)
        return replace(self.update_window(evidence, window), shifts=shifts)

    def update_pit(self, evidence: Evidence, pit: Floats, *, n_bins: int = 10) -> Evidence:
        """Return the evidence against uniform PIT values after one more window of predictive distributions.

        Values are counted in bins of equal width; see `pit_table`. Needs ``dependence="independent"``.

        Parameters
        ----------
        evidence : Evidence
            Evidence after all earlier windows.
        pit : array
            PIT values of the window, in [0, 1].
        n_bins : int, default=10
            Number of bins of equal width.

        Returns
        -------
        Evidence
        """
        if self.dependence != "independent":
            raise InputError(
                f"dependence must be 'independent' for PIT values; got {self.dependence!r}.",
                argument="dependence",
                value=self.dependence,
            )
        return self.update(evidence, pit_table(pit, n_bins=n_bins))

    def update_window(self, evidence: Evidence, window: Window) -> Evidence:
        """Return the evidence after one more window of streams with common scores, without that about shifts.

        Parameters
        ----------
        evidence : Evidence
            Evidence after all earlier windows.
        window : Window
            Scores with their rows and events in each stream.

        Returns
        -------
        Evidence
        """
        log_e, spreads, memories = [], [], []
        for i, (expert, memory) in enumerate(zip(EXPERTS, evidence.memories, strict=True)):
            q = expert.predict(memory, window)
            value, spread = self._e_value(window, q, evidence.spreads[..., i])
            log_e.append(value)
            spreads.append(spread)
            memories.append(expert.learn(memory, window, q))
        learnt = replace(evidence, spreads=np.stack(spreads, axis=-1), memories=tuple(memories))
        return self._mixed(learnt, np.stack(log_e, axis=-1))

    def _e_value(self, window: Window, q: Floats, spread: Floats) -> tuple[Floats, Floats]:
        nearest = np.clip(q, window.low, window.high)
        if self.dependence == "independent":
            return independent_rows(window, q, nearest), spread
        contrast = Contrast.between(window, q, nearest)
        if self.dependence == "any":
            return any_dependence(contrast, spread), _learn_spread(contrast, spread)
        return window_effects(contrast, self.window_effect), spread

    def _shift_e_value(self, window: Window, q: Floats) -> Floats:
        return self._e_value(window, q, np.asarray(FIRST_SPREAD))[0]

    def _mixed(self, evidence: Evidence, log_e: Floats) -> Evidence:
        t = evidence.n_windows + 1
        processes = np.logaddexp(evidence.processes, -np.log(t * (t + 1.0))) + log_e
        mean = np.logaddexp.reduce(processes, axis=-1) - np.log(len(EXPERTS))
        total = np.logaddexp(mean, -np.log(t + 1.0))
        return replace(
            evidence,
            n_windows=t,
            processes=processes,
            log_e=total,
            log_e_max=np.maximum(evidence.log_e_max, total),
        )


def _numbers(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)


def _is_covariance(matrix: Floats) -> bool:
    """Return whether a matrix is symmetric and has no negative eigenvalue, up to rounding."""
    rounding = 1e-9 * float(np.abs(matrix).max(initial=0.0))
    symmetric = bool(np.all(np.abs(matrix - matrix.T) <= rounding))
    return symmetric and bool(np.all(np.linalg.eigvalsh(matrix) >= -rounding))


def _learn_spread(contrast: Contrast, spread: Floats) -> Floats:
    # How far windows spread around an expert's expectation, in units of the variance of independent rows.
    used = contrast.expected > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (contrast.value - contrast.expected) ** 2 / contrast.bernoulli
    return np.where(used, spread + SPREAD_RATE * (np.minimum(ratio, 1000.0) - spread), spread)
