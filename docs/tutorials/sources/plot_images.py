"""
Multiclass images
=================

A classifier of handwritten digits returns ten probabilities per image. This tutorial evaluates all of them, finds the
classes that deviate, and recalibrates them with one temperature.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cb
from calibrant import plots

X, digit = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(0, 3, X.shape)  # noisy images
X_fit, X_rest, y_fit, y_rest = train_test_split(X, digit, test_size=0.6, random_state=0)
model = GaussianNB().fit(X_fit, y_fit)
proba = model.predict_proba(X_rest)
valid, test = np.arange(len(y_rest)) < 500, np.arange(len(y_rest)) >= 500

# %%
# Evaluate
# --------
# One verdict for all classes; `details` has the classes with the largest deviations.

before = cb.evaluate(y_rest[test], proba[test], n_resamples=99)
print(before.verdict, before.direction)

# %%

display = plots.ClasswiseDisplay.from_evaluation(before)

# %%
# Is the confidence calibrated? The top label is a binary forecast: the highest probability, and whether it is right.

top = cb.metrics.top_label(y_rest[test], proba[test])
print(f"mean confidence {np.average(top.score, weights=top.n):.3f}, accuracy {top.prevalence:.3f}")
classes = cb.metrics.classwise("ece", y_rest[test], proba[test])
print(f"ECE of the confidence {cb.ece(top):.3f}, mean ECE of the classes {classes.value:.3f}")

# %%
# Recalibrate
# -----------
# A naive Bayes classifier is overconfident. `SoftmaxTemperature` has one parameter; `Dirichlet` has many.

scores = {"before": proba[test]}
for cal in (cb.calibrators.SoftmaxTemperature(), cb.calibrators.Dirichlet()):
    scores[type(cal).__name__] = cal.fit(proba[valid], y_rest[valid]).predict_proba(proba[test])
for name, values in scores.items():
    top = cb.metrics.top_label(y_rest[test], values)
    print(f"{name:20} ECE of the confidence {cb.ece(top):.3f}")

# %%

tables = {name: cb.metrics.top_label(y_rest[test], values) for name, values in scores.items()}
display = plots.ReliabilityDisplay.from_predictions(tables, bins=cb.bins.EqualSize(8))
