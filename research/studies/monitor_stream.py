"""The worked example of docs/monitor: forecasts of baseball games over seven seasons, monitored by week.

``make study-monitor-stream`` writes docs/studies/monitor_stream.txt and docs/images/monitor.svg. The same games are
monitored three times: as published, with a made-up error (the home advantage is counted twice from 2021 on), and by a
test each week, which is what the monitor replaces.
"""

import csv
import gzip
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cb

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
TEXT, IMAGE = ROOT / "docs" / "studies" / "monitor_stream.txt", ROOT / "docs" / "images" / "monitor.svg"
HOME_ADVANTAGE = 0.3  # in log-odds: odds of 1.35
CHANGE = "2021-01-01"
# Standard deviations of the effect of a week, relative to the rate of home wins: the default, and smaller ones.
WINDOW_EFFECTS = (0.2, 0.1, 0.05)
SHOWN = 0.05  # in the figure


def games() -> tuple[Any, Any, Any]:
    """Return outcome, forecast and day of each game, in order of time."""
    with gzip.open(DATA / "forecasts" / "538_mlb_games.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if float(row["prob1_outcome"]) in (0.0, 1.0)]
    rows.sort(key=lambda row: row["date"])
    y, p = (np.array([float(row[name]) for row in rows]) for name in ("prob1_outcome", "prob1"))
    return y.astype(int), p, np.array([row["date"][:10] for row in rows])


def with_error(p: Any, day: Any) -> Any:
    """Return the forecasts with the home advantage counted twice from the change on."""
    odds = p / (1 - p) * np.where(day >= CHANGE, math.exp(HOME_ADVANTAGE), 1.0)
    return odds / (1 + odds)


def weekly_tests(y: Any, p: Any, day: Any) -> list[bool]:
    """Return for each week whether its games alone are significantly miscalibrated at 5 %."""
    week = day.astype("datetime64[W]")  # from Thursday; for the number of tests it does not matter
    found = []
    for each in np.unique(week):
        chosen = week == each
        found.append(cb.evaluate(y[chosen], p[chosen], n_resamples=1).is_significant)
    return found


def week_effect(y: Any, p: Any, day: Any) -> str:
    """Return the estimate of the effect of a week in the published forecasts."""
    week = np.unique(day.astype("datetime64[W]"), return_inverse=True)[1]
    sums = (np.bincount(week, each) for each in (np.ones(len(y)), y, p, p * (1 - p)))
    found = cb.inference.dispersion(cb.inference.WindowSums.from_columns(*sums))
    return f"Estimated effect of a week on the rate: {found.window_effect:.3f} (p = {found.pvalue:.2f} for none)."


def monitor(store: Path, name: str, effect: float, rows: tuple[Any, Any, Any]) -> cb.Monitor:
    """Return the monitor of a stream with a stated effect of a week."""
    y, p, day = rows
    found = cb.Monitor(store, model=f"{name}, effect {effect:g}", window="week", window_effect=effect)
    found.observe(y, p, time=day)
    return found


def main() -> None:
    """Monitor the games, and write the status for each stated effect, the figure and the number of weekly alarms."""
    y, p, day = games()
    wrong = with_error(p, day)
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "monitor.db"
        for name, scores in (("published", p), ("with error", wrong)):
            for effect in WINDOW_EFFECTS:
                own = monitor(store, name, effect, (y, scores, day))
                status = own.status()
                alarms = [f"alarm by the week of {alarm.window:%Y-%m-%d}" for alarm in status.alarms]
                shown = ", ".join(alarms) or "no alarm"
                texts.append(f"{name}, window_effect={effect:g}: {shown}; last log e-value {status.log_e_value:.2f}")
                if effect == SHOWN and name == "with error":
                    cb.plots.save(own.plot(fig=Figure(figsize=(9.0, 5.8), layout="constrained")), IMAGE)
                    shown_status = str(status)
    tests = weekly_tests(y, p, day)
    texts += ["", week_effect(y, p, day)]
    texts.append(
        f"Weekly tests: a test of each week alone at 5 % calls the published forecasts miscalibrated in {sum(tests)} "
        f"of {len(tests)} weeks."
    )
    TEXT.write_text("\n".join([*texts, "", shown_status]) + "\n", encoding="utf-8")
    print(TEXT.read_text())


if __name__ == "__main__":
    main()
