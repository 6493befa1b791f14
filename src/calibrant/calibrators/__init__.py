"""Calibrators: scikit-learn estimators that repair probabilities, one family a file.

Score maps turn one column of scores into probabilities; models on features hold a classifier and repair what it says.
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'Calibrators need scikit-learn: pip install "calibrant[sklearn]".', name="sklearn"
    ) from error
