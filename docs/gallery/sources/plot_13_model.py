"""
Calibrated scikit-learn model
=============================

`CalibratedModel` fits the classifier and the calibrator by cross-validation. `scorers` has a scorer per
metric for searches.
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cb
from calibrant import plots

X, y = make_classification(4000, n_informative=5, n_redundant=10, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
plain = GaussianNB().fit(X_train, y_train)
model = cb.CalibratedModel(GaussianNB(), "platt").fit(X_train, y_train)
scores = {"plain": plain.predict_proba(X_test)[:, 1], "calibrated": model.predict_proba(X_test)[:, 1]}
display = plots.ReliabilityDisplay.from_predictions(y_test, scores, bins=cb.bins.EqualSize(10))

# %%
# A scorer in a search. Use a proper score, such as the Brier score or the log loss, to choose a model: a
# constant prediction is calibrated too.

search = GridSearchCV(GaussianNB(), {"var_smoothing": np.logspace(-9, 0, 4)}, scoring=cb.scorers["brier"], cv=3)
print(search.fit(X_train, y_train).best_params_)
