"""
Confidences of a language model
===============================

A language model answers each prompt five times and states its confidence. The answers of one prompt depend on each
other, so the prompt is the cluster. The answers are in a JSON lines file, as evaluation harnesses write it.
"""

# %%
# A file of answers
# -----------------
# Here the file is simulated: some prompts are hard for the model, and it does not know which.

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
path = Path(tempfile.mkdtemp(), "answers.jsonl")
with path.open("w") as file:
    for prompt in range(1200):
        hard = rng.normal(0, 1.0)
        for _ in range(5):
            confidence = float(np.clip(rng.beta(6, 2), 0.01, 0.99).round(2))
            chance = 1 / (1 + np.exp(-(0.6 * np.log(confidence / (1 - confidence)) - 0.2 - hard)))
            topic = "code" if prompt % 3 == 0 else "text"
            row = {"prompt": prompt, "topic": topic, "confidence": confidence, "correct": int(rng.random() < chance)}
            file.write(json.dumps(row) + "\n")
print(path.read_text().splitlines()[0])

# %%
# Evaluate with clusters
# ----------------------
# With `cluster`, intervals and tests use the prompts as units. Without it they treat 6,000 answers as independent.

answers = pd.read_json(path, lines=True)
y, p = answers["correct"], answers["confidence"]
for options in ({}, {"cluster": answers["prompt"]}):
    result = cb.evaluate(y, p, n_resamples=199, **options)
    bias = result["bias"].interval
    unit = "clusters" if options else "rows"
    print(f"{unit:8}: {result.verdict} ({result.direction}); bias {bias.low:+.3f} to {bias.high:+.3f}")

# %%

display = plots.ReliabilityDisplay.from_predictions(y, p, bins=cb.bins.EqualSize(8))

# %%
# Topics, and a correction
# ------------------------
# Half of the prompts fit the calibrator; the others evaluate it. All answers of a prompt stay together.

first = (answers["prompt"] < 600).to_numpy()
cal = cb.Platt().fit(p[first], y[first])
after = cb.evaluate(
    y[~first], cal(p[~first]), by=answers["topic"][~first], cluster=answers["prompt"][~first], n_resamples=199
)
print(after.verdict, {name: group.verdict for name, group in after.groups.items()})

# %%
# The command line reads the same file:
#
# .. code-block:: console
#
#    $ calibrant evaluate answers.jsonl --label correct --score confidence --cluster prompt --by topic
