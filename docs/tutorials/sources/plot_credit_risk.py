"""
Credit risk with rare events
============================

Fewer than two percent of the clients default. A model that is trained on balanced rows predicts far too high
probabilities. This tutorial finds that, corrects it, and shows why the margin and the axes must suit rare events.
"""

# %%
# Simulated clients, and a model that is fitted on down-sampled rows, as is common practice.

import numpy as np
from sklearn.linear_model import LogisticRegression

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
n = 60_000
income, debt, late = rng.normal(size=n), rng.normal(size=n), rng.poisson(0.3, n)
X = np.column_stack([income, debt, late])
risk = 1 / (1 + np.exp(-(-5.0 - 0.8 * income + 0.7 * debt + 0.9 * late)))
default = rng.random(n) < risk
print(f"{default.mean():.2%} of the clients default")

fit, valid, test = np.split(rng.permutation(n), [20_000, 40_000])
paid = rng.choice(fit[~default[fit]], default[fit].sum(), replace=False)
rows = np.concatenate([fit[default[fit]], paid])
model = LogisticRegression().fit(X[rows], default[rows])
score = model.predict_proba(X)[:, 1]

# %%
# Evaluate
# --------
# The verdict names the direction, and the sentence below it the size: the odds are off by a large factor.

result = cb.evaluate(default[test], score[test], n_resamples=199)
print(result.verdict, result.direction)
print(f"mean score {score[test].mean():.1%}, event rate {default[test].mean():.1%}")

# %%
# The diagram has logit axes, because the event is rare.

display = plots.ReliabilityDisplay.from_predictions(
    default[test], score[test], bins=cb.bins.EqualSize(10), scale="logit"
)

# %%
# Recalibrate
# -----------
# The share of non-events that were kept is known, so `PriorShift` corrects the odds by one factor. `Platt` fits two
# numbers to the validation rows. Both are evaluated on the test rows.

kept = paid.size / (~default[fit]).sum()  # share of the clients who paid, among the fitted rows
shift = cb.calibrators.PriorShift(sampling_rate=kept).fit(score[valid], default[valid])
platt = cb.Platt().fit(score[valid], default[valid])
after = {"prior shift": shift(score[test]), "Platt": platt(score[test])}
for name, values in after.items():
    found = cb.evaluate(default[test], values, n_resamples=199)
    print(f"{name}: {found.verdict}, log-odds error {found['log-odds error'].value:.3f}")

display = plots.ReliabilityDisplay.from_predictions(default[test], after, bins=cb.bins.EqualSize(10), scale="logit")

# %%
# The margin
# ----------
# A margin in probability is a poor choice here. A constant prediction, one and a half times the event rate, has a
# small ACE:

flat = np.full(test.size, 1.5 * default[test].mean())
print(f"ACE {cb.metrics.ace(default[test], flat):.4f}")
print(cb.evaluate(default[test], flat, margin=cb.AbsoluteMargin(0.02), n_resamples=199).verdict)
print(cb.evaluate(default[test], flat, n_resamples=199).verdict)

# %%
# Decide and deploy
# -----------------
# A default costs 20 times as much as a refused client who would have paid. Calibrated scores need a threshold of 1/21.

print(cb.decisions(default[test], {"model": score[test], "Platt": after["Platt"]}, false_negative=20, n_resamples=199))
print(cb.to_sql(platt, "score"))
