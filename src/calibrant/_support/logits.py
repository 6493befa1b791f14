"""Logit and expit."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats

EPS = 2.0**-24  # scores are clipped to [EPS, 1 - EPS] before the logit


def logit(score: Floats, eps: float) -> Floats:
    """Return the logits of scores clipped to [eps, 1 - eps]."""
    rest = np.clip(score, eps, 1 - eps)
    logits: Floats = np.log(rest)
    # In place, here and below: allocating memory for many rows costs as much as the arithmetic.
    np.negative(rest, out=rest)
    logits -= np.log1p(rest, out=rest)
    return logits


def expit(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), the inverse of the logit."""
    values: Floats = np.negative(x)
    with np.errstate(over="ignore"):  # 1 / inf is 0, as intended
        np.exp(values, out=values)
    values += 1
    return np.reciprocal(values, out=values)


def check_eps(eps: float) -> None:
    """Check the bound of `logit`: doubles must distinguish eps from 0 and 1 - eps from 1."""
    if not (isinstance(eps, float) and 2.0**-53 <= eps < 0.5):
        raise InputError(f"eps must be a float in [2**-53, 0.5); got {eps!r}.", argument="eps", value=eps)
