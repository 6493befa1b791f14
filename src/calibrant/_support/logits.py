"""Logit and expit."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.pieces import in_pieces
from calibrant._support.typing import Floats

EPS = 2.0**-24  # scores are clipped to [EPS, 1 - EPS] before the logit


def logit(score: Floats, eps: float) -> Floats:
    """Return the logits of scores clipped to [eps, 1 - eps]."""

    def of_piece(score: Floats) -> Floats:
        inside = np.clip(score, eps, 1 - eps)
        found: Floats = np.log(inside) - np.log1p(-inside)
        return found

    return in_pieces(of_piece, score)


def expit(x: Floats, out: Floats | None = None) -> Floats:
    """Return 1 / (1 + exp(-x)), the inverse of the logit; in `out` if it is given, which may be x."""
    with np.errstate(over="ignore"):  # 1 / inf is 0, as intended
        return in_pieces(_expit, x, out=out)


def _expit(x: Floats) -> Floats:
    values: Floats = np.negative(x)
    np.exp(values, out=values)
    values += 1
    return np.reciprocal(values, out=values)


def check_eps(eps: float) -> None:
    """Check the bound of `logit`: doubles must distinguish eps from 0 and 1 - eps from 1."""
    if not (isinstance(eps, float) and 2.0**-53 <= eps < 0.5):
        raise InputError(f"eps must be a float in [2**-53, 0.5); got {eps!r}.", argument="eps", value=eps)
