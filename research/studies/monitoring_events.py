"""False alarms and delays of a monitor of class probabilities and of predictive distributions.

Each stream is tested as `cb.Monitor` does: one e-process per event (a class; an outcome beyond a quantile), and an
alarm when the mean of their e-values reaches 1 / alpha. Class probabilities come from a grid of 12 vectors. Effects of
a day multiply the probability of the first class, or of each tail event, by 0.8 or 1.2. At the margin, the log-odds of
the first class are off by 0.1. Errors begin with the first window: the odds of the first class are multiplied; outcomes
are shifted by a share of their standard deviation, or their standard deviation is larger than stated.

Writes docs/studies/monitoring_events.csv (5 minutes on two cores). ``--missing 4`` runs at most four cells that the
file does not have yet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from calibrant.inference import EProcess, log_mean_e
from calibrant.inference.sequential.e_values import Window
from calibrant.kinds.distribution.windows import LEVELS
from research.studies.designs import run_cells
from research.studies.monitoring import ALPHA

STREAMS, WINDOWS, VECTORS = 500, 1_000, 12
DELAY_STREAMS, DELAY_WINDOWS = 200, 300


@dataclass(frozen=True)
class Classes:
    """Windows of labels of K classes."""

    k: int
    effect: float = 0.0
    shift: float = 0.0

    @property
    def scores(self) -> np.ndarray:
        """Probabilities, of shape (classes, vectors)."""
        return np.random.default_rng(self.k).dirichlet(np.full(self.k, 1.5), VECTORS).T

    def draw(self, rng: np.random.Generator, n_streams: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return n and k of each event: (streams, classes, vectors)."""
        n = rng.multinomial(size, np.full(VECTORS, 1 / VECTORS), size=n_streams)
        p = self.scores.T
        first = np.broadcast_to(expit(logit(p[:, 0]) + self.shift), n.shape)
        if self.effect:
            first = np.clip(first * (1 + self.effect * rng.choice([-1.0, 1.0], size=(n_streams, 1))), 0, 0.999)
        others = p[None, :, 1:] * ((1 - first) / (1 - p[:, 0]))[..., None]
        truth = np.concatenate([first[..., None], others], axis=-1)
        k = rng.multinomial(n, truth / truth.sum(axis=-1, keepdims=True))
        return np.repeat(n[:, None], self.k, axis=1), np.moveaxis(k, -1, 1)


@dataclass(frozen=True)
class Distributions:
    """Windows of PIT values."""

    effect: float = 0.0
    shift: float = 0.0
    scale: float = 1.0

    @property
    def scores(self) -> np.ndarray:
        """Probabilities of the events, of shape (levels, 1)."""
        return np.minimum(LEVELS, 1 - np.array(LEVELS))[:, None]

    def draw(self, rng: np.random.Generator, n_streams: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return n and k of each event: (streams, levels, 1)."""
        levels = np.array(LEVELS)
        below = ndtr((ndtri(levels) - self.shift) / self.scale)
        signs = self.effect * rng.choice([-1.0, 1.0], size=(n_streams, 1))
        below = below + signs * self.scores[:, 0]  # each tail event is as many times more or less likely
        cells = np.diff(np.concatenate([np.zeros((n_streams, 1)), below, np.ones((n_streams, 1))], axis=1), axis=1)
        counts = rng.multinomial(size, cells).cumsum(axis=1)[:, :-1]
        k = np.where(levels <= 0.5, counts, size - counts)
        return np.full((n_streams, levels.size, 1), size), k[..., None]


@dataclass(frozen=True)
class Cell:
    """A row of the table."""

    kind: str
    stream: Any
    dependence: str
    margin: float
    size: int = 200
    error: bool = False

    def run(self) -> dict[str, Any]:
        """Return the row."""
        n_streams, windows = self.sizes
        process = EProcess(margin=self.margin, dependence=self.dependence)
        rng, scores = np.random.default_rng([7, self.size]), self.stream.scores
        events = [process.start((n_streams,)) for _ in scores]
        first = np.zeros(n_streams, dtype=int)
        for t in range(windows):
            n, k = self.stream.draw(rng, n_streams, self.size)
            for i, score in enumerate(scores):
                window = Window.from_counts(score, n[:, i], k[:, i], margin=self.margin)
                events[i] = process.update_window(events[i], window)
            log_e = log_mean_e(np.stack([event.log_e for event in events], axis=-1))
            first[(first == 0) & (log_e >= np.log(1 / ALPHA))] = t + 1
        delay = np.median(np.where(first > 0, first, windows + 1))
        return {
            **self.design(),
            "share with an alarm": f"{(first > 0).mean():.4f}",
            "median delay": f"{delay:.0f}" if self.error and delay <= windows else "",
        }

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of streams and of windows."""
        return (DELAY_STREAMS, DELAY_WINDOWS) if self.error else (STREAMS, WINDOWS)

    def design(self) -> dict[str, Any]:
        """Return the columns that name the cell."""
        n_streams, windows = self.sizes
        return {
            "forecasts": self.kind,
            "events": len(self.stream.scores),
            "dependence": self.dependence,
            "margin": self.margin,
            "rows per window": self.size,
            "day effect": self.stream.effect,
            "shift": self.stream.shift,
            "scale": getattr(self.stream, "scale", ""),
            "calibrated": "no" if self.error else "yes",
            "streams": n_streams,
            "windows": windows,
        }


def cells() -> list[Cell]:
    """Return calibrated streams, and streams with an error from the first window on."""
    several, spread = "class probabilities", "distributions"
    calibrated = [
        Cell(spread, Distributions(), "independent", 0.0),
        Cell(spread, Distributions(effect=0.2), "window", 0.0),
        Cell(several, Classes(3), "independent", 0.0),
        Cell(several, Classes(3, effect=0.2), "window", 0.0),
        Cell(several, Classes(3, shift=0.1), "independent", 0.1),
        Cell(spread, Distributions(), "any", 0.0, 20),
        Cell(spread, Distributions(), "window", 0.1),
        Cell(several, Classes(3), "window", 0.1),
        Cell(several, Classes(3), "any", 0.0),
        Cell(spread, Distributions(), "independent", 0.0, 20),
        Cell(several, Classes(5), "independent", 0.0, 20),
    ]
    wrong = [
        Cell(kind, stream, *form, error=True)
        for kind, stream in (
            (several, Classes(3, shift=0.5)),
            (spread, Distributions(shift=0.2)),
            (spread, Distributions(scale=1.3)),
        )
        for form in (("window", 0.1), ("independent", 0.0))
    ]
    return calibrated + wrong


def main() -> None:
    run_cells("monitoring_events", {tuple(map(str, cell.design().values())): cell for cell in cells()})


if __name__ == "__main__":
    main()
