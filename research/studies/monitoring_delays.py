"""Windows until an alarm after a change, beside other ways to watch a stream.

Windows of 200 rows with 10 % events change at window 100; or one of 20 groups with 50 rows per window does. Compared:

* e-processes of `cb.inference.EProcess`, valid without end;
* a two-sided CUSUM of the windows' standardised residuals, with the threshold at which 5 % of calibrated streams alarm
  within the 500 windows of this study (by simulation; it says nothing about longer streams);
* `evaluate`'s joint test of each week, with Bonferroni's correction for the weeks of this study (Holm's, when the
  weeks to come count as not rejected);
* a conformal test martingale of PIT values, the idea of PITMonitor: ranks among earlier windows, and a bet by the
  histogram of earlier ranks, with the same start weights. It tests whether the stream stays as it is, not calibration.

Writes docs/studies/monitoring_delays.csv and its summary (30 minutes on two cores). ``--missing 4`` runs at most four
cells that the file does not have yet.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import calibrant as cb
from calibrant.inference import EProcess, log_mean_e
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from research.studies.designs import run_cells, write
from research.studies.monitoring import ALPHA, Stream, draw_groups, first_alarms, first_group_alarms

STREAMS, SLOW_STREAMS, WINDOWS, CHANGE = 400, 100, 500, 100
BASE = Stream(0.1, 200, change=CHANGE)
CHANGES = {
    "none": {},
    "shift 0.2": {"shift": 0.2},
    "shift 0.5": {"shift": 0.5},
    "shift -0.5": {"shift": -0.5},
    "slope 0.7": {"slope": 0.7},
}
EFFECTS = (0.0, 0.2)


def draws(stream: Stream, n_streams: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n and k: streams x windows x scores."""
    rng = np.random.default_rng([seed, 77])
    counted = [stream.draw(t, rng, n_streams) for t in range(WINDOWS)]
    return np.stack([n for n, _ in counted], axis=1), np.stack([k for _, k in counted], axis=1)


def cusum(n: np.ndarray, k: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return the larger of both CUSUM statistics per stream and window, with a reference value of 1/4."""
    residual = ((k - n * score).sum(axis=-1)) / np.sqrt((n * score * (1 - score)).sum(axis=-1))
    up = down = np.zeros(len(n))
    values = np.empty(residual.shape)
    for t in range(residual.shape[1]):
        up = np.maximum(0, up + residual[:, t] - 0.25)
        down = np.maximum(0, down - residual[:, t] - 0.25)
        values[:, t] = np.maximum(up, down)
    return values


def first_above(values: np.ndarray, limit: float) -> np.ndarray:
    above = values >= limit
    return np.where(above.any(axis=1), above.argmax(axis=1) + 1, 0)


def cusum_alarms(stream: Stream) -> np.ndarray:
    calibrated = cusum(*draws(replace(BASE, change=WINDOWS, effect=stream.effect), 4 * STREAMS, 5), stream.score)
    limit = np.quantile(calibrated.max(axis=1), 1 - ALPHA)
    return first_above(cusum(*draws(stream, STREAMS, 1), stream.score), limit)


def weekly_alarms(stream: Stream) -> np.ndarray:
    n, k = draws(stream, SLOW_STREAMS, 1)
    weeks = WINDOWS // 7
    first = np.zeros(SLOW_STREAMS, dtype=int)
    for i in range(SLOW_STREAMS):
        for week in range(weeks):
            days = slice(7 * week, 7 * week + 7)
            table = cb.ScoreTable.from_counts(stream.score, n[i, days].sum(axis=0), k[i, days].sum(axis=0))
            if BinaryTests.from_design(Design(table)).omnibus.pvalue <= ALPHA / weeks:
                first[i] = 7 * week + 7
                break
    return first


def conformal_alarms(stream: Stream) -> np.ndarray:
    n, k = draws(stream, SLOW_STREAMS, 1)
    return np.array([_conformal(n[i], k[i], stream.score, np.random.default_rng([9, i])) for i in range(SLOW_STREAMS)])


def _conformal(n: np.ndarray, k: np.ndarray, score: np.ndarray, rng: np.random.Generator) -> int:
    path = _conformal_path(n, k, score, rng, until=np.log(1 / ALPHA))
    return int(first_above(path[None], np.log(1 / ALPHA))[0])


def _conformal_path(
    n: np.ndarray, k: np.ndarray, score: np.ndarray, rng: np.random.Generator, until: float = np.inf
) -> np.ndarray:
    """Return the log of the martingale after each window, up to a value at which it may stop."""
    bins = 10
    past = np.sort(rng.random(200))  # as if one calibrated window had come before
    seen = np.ones(bins)
    process, path = -np.inf, []
    for t in range(1, len(n) + 1):
        p = np.repeat(score, n[t - 1])
        y = np.concatenate([np.arange(size) < events for size, events in zip(n[t - 1], k[t - 1], strict=True)])
        v = rng.random(p.size)
        pit = np.where(y, 1 - p + v * p, v * (1 - p))
        rank = (np.searchsorted(past, pit) + rng.random(pit.size)) / (past.size + 1)
        counts = np.bincount((rank * bins).astype(int), minlength=bins)
        log_e = float(counts @ np.log(bins * seen / seen.sum()))
        process = np.logaddexp(process, -np.log(t * (t + 1.0))) + log_e
        path.append(np.logaddexp(process, -np.log(t + 1.0)))
        if path[-1] >= until:
            break
        seen = 0.9 * seen + counts + 0.1
        past = np.sort(np.concatenate([past, pit]), kind="stable")
    return np.array(path)


GROUPS, GROUP_STREAMS = 20, 100
GROUP = replace(BASE, size=50, scores=5)


def group_alarms(stream: Stream, process: EProcess) -> np.ndarray:
    """Return the first alarms where only one of the groups changes as the stream does."""
    return first_group_alarms(
        replace(GROUP, change=WINDOWS, effect=stream.effect),
        process,
        groups=GROUPS,
        seed=3,
        n_streams=STREAMS,
        windows=WINDOWS,
        changed=replace(GROUP, effect=stream.effect, shift=stream.shift),
    )


def group_cusum_alarms(stream: Stream) -> np.ndarray:
    """Return the first alarms of the largest CUSUM over groups."""
    steady = replace(GROUP, change=WINDOWS, effect=stream.effect)
    limit = np.quantile(_group_cusum(steady, steady, 5, 4 * STREAMS).max(axis=1), 1 - ALPHA)
    return first_above(_group_cusum(steady, replace(GROUP, effect=stream.effect, shift=stream.shift), 1), limit)


def _group_cusum(stream: Stream, changed: Stream, seed: int, n_streams: int = STREAMS) -> np.ndarray:
    rng = np.random.default_rng([seed, 78])
    counted = [draw_groups(stream, changed, GROUPS, t, rng, n_streams) for t in range(WINDOWS)]
    n, k = (np.stack(part, axis=2) for part in zip(*counted, strict=True))
    values = cusum(*(a.reshape(n_streams * GROUPS, WINDOWS, -1) for a in (n, k)), stream.score)
    return np.asarray(values.reshape(n_streams, GROUPS, WINDOWS).max(axis=1))


def group_weekly_alarms(stream: Stream) -> np.ndarray:
    """Return the first alarms of the joint test of each week and group, corrected for their number."""
    n, k, score = _group_draws(stream)
    weeks = WINDOWS // 7
    first = np.zeros(len(n), dtype=int)
    for i in range(len(n)):
        for week in range(weeks):
            days = slice(7 * week, 7 * week + 7)
            counts = (a[i, :, days].sum(axis=1) for a in (n, k))
            tables = (cb.ScoreTable.from_counts(score, *each) for each in zip(*counts, strict=True))
            values = (BinaryTests.from_design(Design(table)).omnibus.pvalue for table in tables)
            if min(values) <= ALPHA / weeks / GROUPS:
                first[i] = 7 * week + 7
                break
    return first


def group_conformal_alarms(stream: Stream) -> np.ndarray:
    """Return the first alarms of the mean of the martingales of all groups."""
    n, k, score = _group_draws(stream)
    first = np.zeros(len(n), dtype=int)
    for i in range(len(n)):
        rng = np.random.default_rng([9, i])
        paths = np.array([_conformal_path(n[i, g], k[i, g], score, rng) for g in range(GROUPS)])
        first[i] = first_above(log_mean_e(paths.T)[None], np.log(1 / ALPHA))[0]
    return first


def _group_draws(stream: Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n and k, streams x groups x windows x scores, of which the first group changes, and the scores."""
    rng = np.random.default_rng([1, 79])
    steady = replace(GROUP, change=WINDOWS, effect=stream.effect)
    changed = replace(GROUP, effect=stream.effect, shift=stream.shift)
    counted = [draw_groups(steady, changed, GROUPS, t, rng, GROUP_STREAMS) for t in range(WINDOWS)]
    n, k = (np.stack(part, axis=2) for part in zip(*counted, strict=True))
    return n, k, steady.score


def e_process(**options: Any) -> Callable[[Stream], np.ndarray]:
    return lambda stream: first_alarms(stream, EProcess(**options), seed=1, n_streams=STREAMS, windows=WINDOWS)


def grouped(**options: Any) -> Callable[[Stream], np.ndarray]:
    return lambda stream: group_alarms(stream, EProcess(**options))


METHODS: dict[str, Callable[[Stream], np.ndarray]] = {
    "e-process, window effects (default), margin 0.1": e_process(),
    "e-process, window effects, margin 0": e_process(margin=0.0),
    "e-process, any dependence, margin 0": e_process(margin=0.0, dependence="any"),
    "e-process, independent rows, margin 0.1": e_process(dependence="independent"),
    "e-process, independent rows, margin 0": e_process(margin=0.0, dependence="independent"),
    "CUSUM, tuned to these 500 windows": cusum_alarms,
    "evaluate each week, corrected": weekly_alarms,
    "conformal martingale of PIT values": conformal_alarms,
}
GROUP_METHODS: dict[str, Callable[[Stream], np.ndarray]] = {
    "e-process, window effects (default), margin 0.1": grouped(),
    "e-process, window effects, margin 0": grouped(margin=0.0),
    "e-process, independent rows, margin 0.1": grouped(dependence="independent"),
    "e-process, independent rows, margin 0": grouped(margin=0.0, dependence="independent"),
    "CUSUM, tuned to these 500 windows": group_cusum_alarms,
    "evaluate each week, corrected": group_weekly_alarms,
    "conformal martingale of PIT values": group_conformal_alarms,
}
GROUP_CHANGES = {"one of 20 groups: none": {}, "one of 20 groups: shift 0.5": {"shift": 0.5}}


@dataclass(frozen=True)
class Cell:
    """A row of the table."""

    method: str
    change: str
    effect: float

    def run(self) -> dict[str, Any]:
        """Return the row."""
        methods = GROUP_METHODS if self.change in GROUP_CHANGES else METHODS
        stream = replace(BASE, effect=self.effect, **(CHANGES | GROUP_CHANGES)[self.change])
        first = methods[self.method](stream)
        late = np.where(first > CHANGE, first - CHANGE, WINDOWS)
        changed = not self.change.endswith("none")
        valid = late[(first == 0) | (first > CHANGE)]
        return {
            "method": self.method,
            "change": self.change,
            "day effect": self.effect,
            "streams": first.size,
            "alarm before the change": f"{np.mean((first > 0) & (first <= CHANGE)):.3f}",
            "alarm ever": f"{np.mean(first > 0):.3f}",
            "median delay": f"{np.median(valid):.0f}" if changed and np.median(valid) < WINDOWS else "",
        }


def main() -> None:
    cells = [
        Cell(method, change, effect)
        for methods, changes in ((GROUP_METHODS, GROUP_CHANGES), (METHODS, CHANGES))
        for method in methods
        for effect in EFFECTS
        for change in changes
    ]
    rows = run_cells("monitoring_delays", {(cell.method, cell.change, str(cell.effect)): cell for cell in cells})
    write("monitoring_delays_summary", summary(rows))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per method: false alarms of calibrated streams, with effects of days too, and median delays."""
    found: dict[str, dict[str, Any]] = {}
    shown = [change for change in (*CHANGES, *GROUP_CHANGES) if not change.endswith("none")]
    for row in rows:
        own = found.setdefault(row["method"], {"method": row["method"]})
        steady = float(row["day effect"]) == 0
        if row["change"] == "none":
            own["false alarms" if steady else "with day effects"] = f"{100 * float(row['alarm ever']):.0f} %"
        elif steady and row["change"] in shown:
            own[row["change"]] = row["median delay"] or "> 400"
    names = ["method", "false alarms", "with day effects", *shown]
    return [{name: found[method].get(name, "") for name in names} for method in METHODS]


if __name__ == "__main__":
    main()
