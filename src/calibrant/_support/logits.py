"""Logits of probabilities, and their inverse."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats

EPS = 2.0**-24  # how near to 0 and 1 a score may lie before its logit is that of a score so near


def logit(score: Floats, eps: float) -> Floats:
    """Logits of scores that are kept `eps` away from 0 and 1, where it is infinite."""
    rest = np.clip(score, eps, 1 - eps)
    logits: Floats = np.log(rest)
    # In place, here and below: to take fresh memory for many rows costs as much as the arithmetic.
    np.negative(rest, out=rest)
    logits -= np.log1p(rest, out=rest)
    return logits


def expit(x: Floats) -> Floats:
    """The inverse of the logit, 1 / (1 + exp(-x))."""
    values: Floats = np.negative(x)
    with np.errstate(over="ignore"):  # 1 / inf is the 0 that is meant
        np.exp(values, out=values)
    values += 1
    return np.reciprocal(values, out=values)


def check_eps(eps: float) -> None:
    """How near to 0 and 1 scores may lie: a share that doubles can tell from both."""
    if not (isinstance(eps, float) and 2.0**-53 <= eps < 0.5):
        raise InputError(f"eps must lie between 2**-53 and 0.5; it is {eps!r}.", argument="eps", value=eps)
