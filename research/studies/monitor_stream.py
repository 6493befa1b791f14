"""The worked example of docs/monitor: a model of baseball games that nobody retrains, monitored by week.

``make study NAME=monitor_stream`` writes docs/studies/monitor_stream.txt and docs/images/monitor.svg. FiveThirtyEight
updated its forecasts daily. The strengths of the teams in its forecasts of 2016 are a model, too: one that is not
retrained. Both are monitored on the games of 2017 to 2022, and tested each week, which is what the monitor replaces.
"""

import csv
import gzip
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cb

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
TEXT, IMAGE = ROOT / "docs" / "studies" / "monitor_stream.txt", ROOT / "docs" / "images" / "monitor.svg"
TRAINED = "2016"
# Standard deviations of the effect of a week, relative to the rate of home wins: the default, and smaller ones.
WINDOW_EFFECTS = (0.2, 0.1, 0.05)
SHOWN = 0.05  # in the figure
FAVOURITE, UNDERDOG, EVEN = "home team is favourite", "home team is underdog", "even"


@dataclass(frozen=True)
class Games:
    """Games in order of time: whether the home team won, its published probability, the day and both teams."""

    y: Any
    p: Any
    day: Any
    home: Any
    away: Any

    @classmethod
    def read(cls) -> "Games":
        with gzip.open(DATA / "forecasts" / "538_mlb_games.csv.gz", "rt") as file:
            rows = [row for row in csv.DictReader(file) if float(row["prob1_outcome"]) in (0.0, 1.0)]
        rows.sort(key=lambda row: row["date"])
        y, p = (np.array([float(row[name]) for row in rows]) for name in ("prob1_outcome", "prob1"))
        names = (np.array([row[name] for row in rows]) for name in ("team1", "team2"))
        return cls(y.astype(int), p, np.array([row["date"][:10] for row in rows]), *names)

    def part(self, chosen: Any) -> "Games":
        return Games(*(getattr(self, name)[chosen] for name in ("y", "p", "day", "home", "away")))

    def contrasts(self) -> Any:
        """Return 1 for the home team, -1 for the other, and 1 for the home advantage."""
        teams = np.unique([self.home, self.away])
        x = np.equal.outer(self.home, teams).astype(float) - np.equal.outer(self.away, teams)
        return np.column_stack([x, np.ones(len(x))])


def frozen_forecasts(games: Games) -> Any:
    """Return forecasts by the strengths of the teams in the published forecasts of one season."""
    x, trained = games.contrasts(), np.char.startswith(games.day, TRAINED)
    strengths = np.linalg.lstsq(x[trained], logit(games.p[trained]), rcond=None)[0]
    return expit(x @ strengths)


def weekly_tests(games: Games, p: Any) -> list[bool]:
    """Return for each week whether its games alone are significantly miscalibrated at 5 %."""
    week = games.day.astype("datetime64[W]")  # from Thursday; for the number of tests it does not matter
    found = []
    for each in np.unique(week):
        chosen = week == each
        found.append(cb.evaluate(games.y[chosen], p[chosen], n_resamples=1).is_significant)
    return found


def week_effect(games: Games) -> str:
    """Return the estimate of the effect of a week before the monitoring."""
    week = np.unique(games.day.astype("datetime64[W]"), return_inverse=True)[1]
    sums = (np.bincount(week, each) for each in (np.ones(len(games.y)), games.y, games.p, games.p * (1 - games.p)))
    found = cb.inference.dispersion(cb.inference.WindowSums.from_columns(*sums))
    return f"Effect of a week in {TRAINED}: estimated as {found.window_effect:.3f} (p = {found.pvalue:.2f} for none)."


def watch(store: Path, name: str, effect: float, games: Games, p: Any) -> cb.Monitor:
    """Return the monitor of forecasts with a stated effect of a week, with groups by the forecast."""
    found = cb.Monitor(store, model=f"{name} ({effect:g})", window="week", window_effect=effect)
    group = np.where(p >= 0.55, FAVOURITE, np.where(p <= 0.5, UNDERDOG, EVEN))
    found.observe(games.y, p, time=games.day, group=group)
    return found


def main() -> None:
    """Monitor the games, and write the status for each stated effect, the figure and the number of weekly alarms."""
    everything = Games.read()
    later = ~np.char.startswith(everything.day, TRAINED)
    games, frozen = everything.part(later), frozen_forecasts(everything)[later]
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for name, scores in (("published", games.p), ("not retrained", frozen)):
            for effect in WINDOW_EFFECTS:
                own = watch(Path(folder) / "monitor.db", name, effect, games, scores)
                status = own.status()
                alarms = [f"{alarm.subject} by the week of {alarm.window:%Y-%m-%d}" for alarm in status.alarms]
                shown = f"alarm: {'; '.join(alarms)}" if alarms else "no alarm"
                texts.append(f"{name}, window_effect={effect:g}: {shown}; last log e-value {status.log_e_value:.2f}")
        cb.plots.save(own.plot(FAVOURITE, fig=Figure(figsize=(9.0, 5.8), layout="constrained")), IMAGE)
    tests = {name: weekly_tests(games, p) for name, p in (("published", games.p), ("not retrained", frozen))}
    texts += ["", week_effect(everything.part(~later))]
    counts = " and ".join(f"{sum(found)} of {len(found)} weeks ({name})" for name, found in tests.items())
    texts.append(f"A test of each week alone at 5 % finds miscalibration in {counts}.")
    TEXT.write_text("\n".join([*texts, "", str(status)]) + "\n", encoding="utf-8")
    print(TEXT.read_text())


if __name__ == "__main__":
    main()
