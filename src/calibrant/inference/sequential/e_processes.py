"""E-processes: evidence against calibration that may be read after every window, without end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, check_count, check_share
from calibrant._support.logistic import expit
from calibrant.inference.sequential.e_values import Contrast, Window, any_dependence, independent_rows, window_effects
from calibrant.tables.score_table import ScoreTable

PRIOR_SD = 0.3  # of each coefficient: an expert begins at "calibrated" and needs data to leave it
RECENT_WINDOWS = 10  # the length of a recent memory, in windows ...
RECENT_INFORMATION = 100.0  # ... and at least this much Fisher information, for windows with few events
LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class Memory:
    """What an expert has learnt: the information and the moment of a weighted least-squares fit, with decay.

    The last axes hold the coefficients; leading axes, if any, hold streams that are watched side by side.
    """

    information: Floats
    moment: Floats

    def coefficients(self) -> Floats:
        """Return the coefficients of the recalibration, shrunk towards 0."""
        d = self.moment.shape[-1]
        # The second term keeps the matrix regular where the information of many rows swallows the prior.
        ridge = 1 / PRIOR_SD**2 + 1e-12 * np.trace(self.information, axis1=-2, axis2=-1)
        regular = self.information + np.eye(d) * np.asarray(ridge)[..., None, None]
        return np.asarray(np.linalg.solve(regular, self.moment[..., None])[..., 0])


@dataclass(frozen=True)
class Expert:
    """A recalibration of log-odds with a few coefficients, refitted after each window.

    Parameters
    ----------
    name : str
        Its name.
    features : callable
        Maps log-odds to columns; the recalibrated log-odds are logit(score) + features @ coefficients.
    recent : bool
        Forget old windows, so that a change is learnt fast; otherwise all windows count alike.
    """

    name: str
    features: Callable[[Floats], Floats]
    recent: bool

    def start(self, streams: tuple[int, ...] = ()) -> Memory:
        """Return an empty memory."""
        d = self.features(np.zeros(1)).shape[1]
        return Memory(np.zeros((*streams, d, d)), np.zeros((*streams, d)))

    def predict(self, memory: Memory, window: Window) -> Floats:
        """Return the recalibrated scores of a window, from the windows before it."""
        change = memory.coefficients() @ self.features(window.logit).T
        return expit(np.clip(window.logit + change, -LARGEST_LOGIT, LARGEST_LOGIT))

    def learn(self, memory: Memory, window: Window, predicted: Floats) -> Memory:
        """Return the memory after a window: one step of iterated least squares from the predicted rates."""
        x = self.features(window.logit)
        d = x.shape[1]
        weight = window.n * predicted * (1 - predicted)
        added = (weight @ (x[:, :, None] * x[:, None, :]).reshape(-1, d * d)).reshape(*weight.shape[:-1], d, d)
        score = (window.k - window.n * predicted) @ x
        working = score + (added @ memory.coefficients()[..., None])[..., 0]
        keep = self._keep(weight.sum(axis=-1))
        return Memory(keep[..., None, None] * memory.information + added, keep[..., None] * memory.moment + working)

    def _keep(self, information: Floats) -> Floats:
        if not self.recent:
            return np.ones_like(information)
        return np.asarray(1 - np.minimum(1 / RECENT_WINDOWS, information / RECENT_INFORMATION))


@dataclass(frozen=True)
class Floor:
    """An expert that learns nothing: no event rate is below `rate` or above 1 - `rate`.

    It notices events at scores of 0, which no finite change of the log-odds explains, in their first window.
    """

    rate: float = 0.01

    def start(self, streams: tuple[int, ...] = ()) -> Memory:
        """Return an empty memory."""
        return Memory(np.zeros((*streams, 0, 0)), np.zeros((*streams, 0)))

    def predict(self, memory: Memory, window: Window) -> Floats:
        """Return the scores, moved away from 0 and 1."""
        rates = np.clip(expit(window.logit), self.rate, 1 - self.rate)
        return np.broadcast_to(rates, (*memory.moment.shape[:-1], rates.size))

    def learn(self, memory: Memory, window: Window, predicted: Floats) -> Memory:
        """Return the memory as it is."""
        return memory


def _shift(logit: Floats) -> Floats:
    return np.ones((logit.size, 1))


def _line(logit: Floats) -> Floats:
    return np.column_stack([np.ones_like(logit), logit])


def _beta(logit: Floats) -> Floats:
    # log p and -log(1 - p), as in beta calibration: each end of the scale bends on its own.
    return np.column_stack([np.ones_like(logit), -np.logaddexp(0, -logit), np.logaddexp(0, logit)])


EXPERTS: tuple[Expert | Floor, ...] = (
    Expert("shift", _shift, recent=False),
    Expert("recent shift", _shift, recent=True),
    Expert("line", _line, recent=False),
    Expert("recent line", _line, recent=True),
    Expert("beta", _beta, recent=False),
    Floor(),
)


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


def pit_table(pit: Floats, *, n_bins: int = 10) -> ScoreTable:
    """Return the table of PIT values whose likelihood is that of their counts in bins of equal width.

    A value passes through `n_bins` bins from below. In bin b = 0, 1, ... it stops with probability 1 / (n_bins - b) if
    it has come so far: that is the score of a row, and stopping there is its event. The last bin, where every value
    stops, is left out. The number of rows of a score depends on outcomes, so only likelihoods may use the table: not
    the forms of `EProcess` for windows with dependent rows.

    Parameters
    ----------
    pit : array
        Values of the predictive distribution functions at the outcomes, in [0, 1].
    n_bins : int, default 10
        Number of bins, [b / n_bins, (b + 1) / n_bins), the last one closed.

    Returns
    -------
    ScoreTable
        One score per bin but the last.

    See Also
    --------
    pit, EProcess

    Examples
    --------
    >>> table = pit_table(np.array([0.05, 0.15, 0.95]))
    >>> table.n[:3], table.k[:3]
    (array([3, 2, 1]), array([1, 1, 0]))
    """
    check_count("n_bins", n_bins, least=2)
    pit = np.asarray(pit, dtype=np.float64)
    if pit.ndim != 1 or not ((pit >= 0) & (pit <= 1)).all():
        raise InputError("pit must be a one-dimensional array of numbers in [0, 1].", argument="pit", value=pit)
    edges = np.arange(1, n_bins) / n_bins
    stopped = np.bincount(np.searchsorted(edges, pit, side="right"), minlength=n_bins)
    reached = pit.size - np.concatenate([[0], np.cumsum(stopped)[:-1]])
    used = reached[:-1] > 0
    return ScoreTable.from_counts(1 / np.arange(n_bins, 1, -1)[used], reached[:-1][used], stopped[:-1][used])


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
            evidence = cls._from_values(values)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("values must be what Evidence.to_dict returned.", argument="values") from error
        evidence._check()
        return evidence

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
        first = np.asarray(FIRST_SPREAD)
        shifts = evidence.shifts.update(window, shift, lambda part, rates: self._e_value(part, rates, first)[0])
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

    def _mixed(self, evidence: Evidence, log_e: Floats) -> Evidence:
        t = evidence.n_windows + 1
        processes = np.logaddexp(evidence.processes, -np.log(t * (t + 1.0))) + log_e
        mean = np.logaddexp.reduce(processes, axis=-1) - np.log(len(EXPERTS))
        total = np.logaddexp(mean, -np.log(t + 1.0))
        return replace(
            evidence, n_windows=t, processes=processes, log_e=total, log_e_max=np.maximum(evidence.log_e_max, total)
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
