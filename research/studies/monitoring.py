"""False alarms of e-processes over the windows of a stream.

Scores lie on a grid of log-odds around the event rate; rows are drawn per score. Streams run side by side through
`EProcess.update_window`. Effects of a day multiply its event rates by 1 - effect or 1 + effect. Where days are
correlated, the effect lasts, which the guarantee does not cover.

Writes docs/studies/monitoring_false_alarms.csv (3 hours on two cores). ``--missing 4`` runs at most four cells that the
file does not have yet.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant.inference import EProcess, e_bh
from calibrant.inference.sequential.e_values import Window
from research.studies.designs import run_cells

ALPHA = 0.05
STREAMS, WINDOWS = 2_000, 1_000


@dataclass(frozen=True)
class Stream:
    """Windows of `size` rows around an event rate; `scores` distinct ones; an effect of each window on its rate.

    `persistence` is the probability that an effect stays as it was, which is the correlation of neighbouring windows.
    """

    rate: float
    size: int
    scores: int = 12
    effect: float = 0.0
    shift: float = 0.0
    slope: float = 1.0
    change: int = 0
    persistence: float = 0.0
    memory: dict[str, np.ndarray] = field(default_factory=dict, compare=False)

    @property
    def score(self) -> np.ndarray:
        return expit(logit(self.rate) + np.linspace(-1.5, 1.5, self.scores))

    def draw(self, t: int, rng: np.random.Generator, n_streams: int) -> tuple[np.ndarray, np.ndarray]:
        """Return n and k of window t of each stream."""
        n = rng.multinomial(self.size, np.full(self.scores, 1 / self.scores), size=n_streams)
        rate = self.score
        if t >= self.change:
            rate = expit(logit(self.rate) + self.slope * (logit(rate) - logit(self.rate)) + self.shift)
        if self.effect:
            rate = np.clip(rate * (1 + self.effect * self._signs(rng, n_streams)), 0, 1)
        return n, rng.binomial(n, np.broadcast_to(rate, n.shape))

    def _signs(self, rng: np.random.Generator, n_streams: int) -> np.ndarray:
        """Return -1 or 1 per stream with probability 1/2: standard deviation 1, kept from the last window or new."""
        new = rng.choice([-1.0, 1.0], size=(n_streams, 1))
        if self.persistence:
            last = self.memory.get("signs", new)
            new = np.where(rng.random((n_streams, 1)) < self.persistence, last, new)
            self.memory["signs"] = new
        return new


def first_alarms(stream: Stream, process: EProcess, *, seed: int, n_streams: int, windows: int) -> np.ndarray:
    """Return the window of each stream's first alarm, counted from 1; 0 for none."""
    rng = np.random.default_rng([seed, stream.size, int(1e4 * stream.rate)])
    evidence = process.start((n_streams,))
    first = np.zeros(n_streams, dtype=int)
    for t in range(windows):
        n, k = stream.draw(t, rng, n_streams)
        evidence = process.update_window(evidence, Window.from_counts(stream.score, n, k, margin=process.margin))
        first[(first == 0) & (evidence.log_e >= np.log(1 / ALPHA))] = t + 1
    return first


def draw_groups(
    stream: Stream, changed: Stream, groups: int, t: int, rng: np.random.Generator, n_streams: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return n and k of window t: streams x groups x scores. The first group is drawn from `changed`."""
    n, k = (a.reshape(n_streams, groups, -1) for a in stream.draw(t, rng, n_streams * groups))
    n[:, 0], k[:, 0] = changed.draw(t, rng, n_streams)
    return n, k


def first_group_alarms(
    stream: Stream,
    process: EProcess,
    *,
    groups: int,
    seed: int,
    n_streams: int,
    windows: int,
    changed: Stream | None = None,
) -> np.ndarray:
    """Return the window of the first alarm of the whole (alpha / 2) or of any group (e-BH at alpha / 2)."""
    rng = np.random.default_rng([seed, groups])
    parts, whole = process.start((n_streams, groups)), process.start((n_streams,))
    first = np.zeros(n_streams, dtype=int)
    weights = np.full(groups, 0.5 / groups)  # the first window's groups share half
    for t in range(windows):
        n, k = draw_groups(stream, changed or stream, groups, t, rng, n_streams)
        parts = process.update_window(parts, Window.from_counts(stream.score, n, k, margin=process.margin))
        total = Window.from_counts(stream.score, n.sum(axis=1), k.sum(axis=1), margin=process.margin)
        whole = process.update_window(whole, total)
        alarm = whole.log_e >= np.log(2 / ALPHA)
        for i in np.flatnonzero(parts.log_e.max(axis=1) + np.log(weights[0]) >= np.log(2 / ALPHA / groups)):
            alarm[i] |= e_bh(parts.log_e[i], weights, ALPHA / 2).any()
        first[(first == 0) & alarm] = t + 1
    return first


@dataclass(frozen=True)
class Cell:
    """A row of the table of false alarms."""

    dependence: str
    margin: float
    rate: float
    size: int
    scores: int = 12
    groups: int = 1
    effect: float = 0.0
    shift: float = 0.0
    persistence: float = 0.0
    n_streams: int = STREAMS

    def run(self) -> dict[str, Any]:
        """Return the row."""
        return {**self.design(), "share with an alarm": f"{self.share():.4f}"}

    def share(self) -> float:
        """Return the share of streams with an alarm."""
        process = EProcess(margin=self.margin, dependence=self.dependence)
        stream = Stream(
            self.rate,
            self.size // self.groups,
            self.scores,
            effect=self.effect,
            shift=self.shift,
            persistence=self.persistence,
        )
        if self.groups == 1:
            first = first_alarms(stream, process, seed=1, n_streams=self.n_streams, windows=WINDOWS)
        else:
            first = first_group_alarms(
                stream, process, groups=self.groups, seed=2, n_streams=self.n_streams, windows=WINDOWS
            )
        return float((first > 0).mean())

    def design(self) -> dict[str, Any]:
        """Return the columns that name the cell."""
        return {
            "dependence": self.dependence,
            "margin": self.margin,
            "event rate": self.rate,
            "rows per window": self.size,
            "scores": self.scores,
            "groups": self.groups,
            "day effect": self.effect,
            "correlation of days": self.persistence,
            "log-odds error": self.shift,
            "streams": self.n_streams,
            "windows": WINDOWS,
        }


def cells() -> list[Cell]:
    """Return the cells, the longest first."""
    designs = [(rate, size) for rate in (0.5, 0.05, 0.005) for size in (20, 200, 5_000)]
    grouped = [Cell("window", 0.1, 0.05, 4_000, scores=5, groups=20, effect=effect) for effect in (0.0, 0.2)]
    grouped += [Cell("window", 0.1, rate, size, scores=5, groups=20) for rate, size in designs]
    grouped += [
        Cell("independent", 0.0, rate, size, scores=5, groups=20)
        for rate, size in ((0.5, 20), (0.05, 200), (0.005, 5_000))
    ]
    single = [
        Cell(dependence, margin, rate, size, scores=scores, effect=effect, shift=shift)
        for dependence, margin, scores, effect, shift in (
            ("window", 0.1, 12, 0.0, 0.0),
            ("window", 0.1, 12, 0.2, 0.0),
            ("window", 0.1, 12, 0.0, 0.1),
            ("window", 0.1, 12, 0.0, -0.1),
            ("window", 0.1, 2, 0.0, 0.0),
            ("window", 0.0, 12, 0.0, 0.0),
            ("window", 0.0, 12, 0.2, 0.0),
            ("independent", 0.1, 12, 0.0, 0.0),
            ("independent", 0.1, 12, 0.0, 0.1),
            ("independent", 0.1, 12, 0.0, -0.1),
            ("independent", 0.0, 12, 0.0, 0.0),
            ("independent", 0.0, 2, 0.0, 0.0),
            ("independent", 0.1, 12, 0.2, 0.0),
            ("any", 0.1, 12, 0.2, 0.0),
            ("any", 0.0, 12, 0.0, 0.0),
            ("any", 0.0, 12, 0.2, 0.0),
        )
        for rate, size in designs
    ]
    # As many scores as rows: nearly no ties.
    untied = [Cell(d, m, 0.05, 200, scores=200) for d, m in (("window", 0.1), ("independent", 0.0), ("any", 0.0))]
    lasting = [
        Cell(dependence, 0.1, 0.1, 2_000, effect=0.2, persistence=persistence, n_streams=500)
        for dependence in ("window", "any")
        for persistence in (0.5, 0.8, 0.9)
    ]
    return grouped + single + untied + lasting


def main() -> None:
    run_cells("monitoring_false_alarms", {tuple(map(str, cell.design().values())): cell for cell in cells()})


if __name__ == "__main__":
    main()
