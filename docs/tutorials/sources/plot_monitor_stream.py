"""
Monitoring a stream
===================

A model scores rows every day. `Monitor` counts them with their outcomes, and raises an alarm when the evidence against
calibration is large. It may be looked at every day: a calibrated model ever raises an alarm with a probability of at
most 5 %.
"""

import tempfile
from pathlib import Path

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)
monitor = cb.Monitor(Path(tempfile.mkdtemp(), "monitor.db"), window="day", alpha=0.05)

# %%
# Sixty days; from day 40 on the odds of the event are half of those predicted. The rows of a day may share a random
# effect (``window_effect``), so one unusual day is no alarm.

first_alarm = None
for day in range(60):
    p = rng.beta(2, 5, 400)
    odds = p / (1 - p) * (1.0 if day < 40 else 0.5)
    y = rng.random(400) < odds / (1 + odds)
    monitor.observe(y, p, time=np.datetime64("2026-01-01") + np.timedelta64(day, "D"))
    if first_alarm is None and monitor.status().alarm:
        first_alarm = day
print(f"the change is on day 40, the alarm on day {first_alarm}")

# %%
# The status names the evidence and estimates when the change happened.

print(monitor.status())

# %%

display = monitor.plot()

# %%
# Evaluate the rows since the change.

recent = monitor.evaluate(since=np.datetime64("2026-02-10"), n_resamples=199)
print(recent.verdict, recent.direction)
