"""Multinomial logistic regression of classes on log-probabilities, with a quadratic penalty, to rounding."""

from dataclasses import dataclass, field

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import InputError

__all__ = ["Problem", "log_probabilities", "softmax", "temperature_slope"]

_STEPS = 200
_HALVINGS = 40
_INNER_STEPS = 2000
_GRADIENT = 1e-10  # largest component of the gradient at the optimum
_FAR = 0.3  # a change of logits after which the preconditioner is computed anew
_NEAR = 0.01  # a change of logits below which a Newton step needs no line search
_STILL = 1e-3  # a change of logits above which a vanishing gradient means an optimum at infinity
_RIDGE = 1e-12  # added to the penalty: columns may be collinear
_SHIFTS = 5
_CHUNK = 2**21  # cells of a matrix that are worked on at once


def softmax(logits: Floats) -> Floats:
    """Return exponentials divided by their sum, row by row."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


def log_probabilities(proba: Floats, eps: float) -> Floats:
    """Return logarithms of probabilities, those below `eps` clipped to it."""
    logs: Floats = np.log(np.maximum(proba, eps))
    return logs


def chunks(shape: tuple[int, int], cells: int = _CHUNK) -> list[slice]:
    """Return slices of rows, each of at most `cells` cells, so that temporary arrays stay small."""
    rows = max(1, cells // shape[1])
    return [slice(start, start + rows) for start in range(0, shape[0], rows)]


def temperature_slope(z: Floats, code: Ints, share: Floats) -> float:
    """Return the slope s >= 0 of the softmax of s z with the smallest mean log loss; `share` sums to 1.

    Newton's method on the derivative, which falls in s, between bounds that enclose its root.
    """
    own = float(share @ z[np.arange(code.size), code])

    def derivatives(slope: float) -> tuple[float, float]:
        first, second = own, 0.0
        for rows in chunks(z.shape):
            q = softmax(slope * z[rows])
            mean = np.einsum("ij,ij->i", q, z[rows])
            square = np.einsum("ij,ij,ij->i", q, z[rows], z[rows])
            first -= float(share[rows] @ mean)
            second -= float(share[rows] @ np.maximum(square - mean**2, 0.0))
        return first, second

    if derivatives(0.0)[0] <= 0:
        return 0.0
    low, high, slope = 0.0, np.inf, 1.0
    for _ in range(_STEPS):
        first, second = derivatives(slope)
        low, high = (slope, high) if first > 0 else (low, slope)
        new = slope - first / second if second < 0 else np.inf
        if not low < new < high:
            new = 2 * slope if high == np.inf else (low + high) / 2
        if abs(new - slope) <= 1e-15 * slope:
            return new
        slope = new
    return slope


@dataclass(frozen=True)
class Problem:
    """Minimise the mean log loss of the softmax of ``W z + b`` plus a penalty ``sum(penalty * theta**2) / 2``.

    theta holds the weights and, in the last column, the intercepts: of shape (K, K + 1) for a full matrix W, of shape
    (K, 2) for a diagonal one. `share` are the weights of rows, of sum 1.

    Newton's method. Each step solves the Hessian's equations by conjugate gradients, which need no Hessian, only its
    products. They are preconditioned by the blocks of the Hessian that belong to one class.
    """

    z: Floats
    code: Ints
    share: Floats
    penalty: Floats
    full: bool
    _own: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", self.penalty + _RIDGE)
        own = np.zeros(self.penalty.shape)
        for rows in chunks(self.z.shape):
            hit = np.zeros_like(self.z[rows])
            hit[np.arange(len(hit)), self.code[rows]] = self.share[rows]
            own += self._gather(hit, rows)
        object.__setattr__(self, "_own", own)

    def solve(self) -> Floats:
        """Return theta."""
        q = np.empty_like(self.z)
        theta = self._start(q)
        loss, change, first = self._loss(theta, q), np.inf, None
        for _ in range(_STEPS):
            gradient = self._gradient(theta, q)
            size = float(np.abs(gradient).max())
            first = size if first is None else first
            if change > _FAR:
                blocks = self._blocks(q)
            # Tighter as the optimum comes near, so that the steps converge faster than linearly.
            step = self._newton_step(q, -gradient, blocks, min(0.1, max(size / max(first, 1e-300), 1e-6)))
            change = self._change(step)
            if size <= _GRADIENT:
                if change <= _STILL:
                    return self._centred(theta)
                break
            theta, loss = self._searched(theta, step, loss, gradient, change, q)
        raise InputError(
            "The fit of the weights did not converge: no finite weights are best, because some classes are separated.",
            hint="Use a larger penalty (Dirichlet), SoftmaxTemperature, or OneVsRest.",
        )

    def _start(self, q: Floats) -> Floats:
        """Return the identity map, its intercepts moved so that mean probabilities are near the class proportions.

        Far below its proportion a class has almost no curvature, and Newton's steps would be far too long.
        """
        n_classes = self.z.shape[1]
        slopes = np.eye(n_classes) if self.full else np.ones((n_classes, 1))
        theta = np.column_stack([slopes, np.zeros(n_classes)])
        proportion = np.bincount(self.code, weights=self.share, minlength=n_classes)
        tried = [(self._loss(theta, q), theta)]
        for _ in range(_SHIFTS):
            theta = theta.copy()
            theta[:, -1] += np.log(proportion + 1e-300) - np.log(self.share @ q + 1e-300)
            theta[:, -1] -= theta[:, -1].mean()
            tried.append((self._loss(theta, q), theta))
        return min(tried, key=lambda each: each[0])[1]

    def _logits(self, theta: Floats, rows: slice) -> Floats:
        z = self.z[rows]
        logits: Floats = z @ theta[:, :-1].T if self.full else z * theta[:, 0]
        logits += theta[:, -1]
        return logits

    def _gather(self, values: Floats, rows: slice) -> Floats:
        """Return the sums of ``values * z`` and of `values` per class: the adjoint of `_logits`."""
        z = self.z[rows]
        slopes = values.T @ z if self.full else np.einsum("ij,ij->j", values, z)[:, None]
        return np.column_stack([slopes, values.sum(axis=0)])

    def _loss(self, theta: Floats, q: Floats) -> float:
        """Return the penalised loss, and write the probabilities into `q`."""
        total = float(np.sum(self.penalty * theta**2)) / 2
        for rows in chunks(self.z.shape):
            logits = self._logits(theta, rows)
            own = logits[np.arange(len(logits)), self.code[rows]].copy()
            top = logits.max(axis=1, keepdims=True)
            np.exp(np.subtract(logits, top, out=logits), out=q[rows])
            sums = q[rows].sum(axis=1)
            q[rows] /= sums[:, None]
            total += float(self.share[rows] @ (np.log(sums) + top[:, 0] - own))
        return total

    def _gradient(self, theta: Floats, q: Floats) -> Floats:
        total: Floats = self.penalty * theta - self._own
        for rows in chunks(self.z.shape):
            total += self._gather(q[rows] * self.share[rows, None], rows)
        return total

    def _product(self, q: Floats, step: Floats, gauge: Floats) -> Floats:
        """Return the product of the Hessian and a step, with a curvature for sums that no probability depends on."""
        total: Floats = self.penalty * step + gauge * step.sum(axis=0)
        for rows in chunks(self.z.shape):
            moved = self._logits(step, rows)
            moved -= np.einsum("ij,ij->i", q[rows], moved)[:, None]
            moved *= q[rows]
            moved *= self.share[rows, None]
            total += self._gather(moved, rows)
        return total

    def _newton_step(self, q: Floats, target: Floats, blocks: Floats, tolerance: float) -> Floats:
        """Return the solution of Hessian times step = target, by preconditioned conjugate gradients."""
        gauge = np.where(self._free(), np.einsum("jaa->ja", blocks).mean(axis=0), 0.0)
        inverse = np.linalg.inv(blocks)

        def solve(residual: Floats) -> Floats:
            found: Floats = np.einsum("jab,jb->ja", inverse, residual)
            return found

        step, residual = np.zeros_like(target), target.copy()
        scaled = solve(residual)
        direction, power = scaled, float(np.sum(residual * scaled))
        enough = tolerance**2 * power
        for _ in range(_INNER_STEPS):
            product = self._product(q, direction, gauge)
            curvature = float(np.sum(direction * product))
            if not curvature > 0:
                break
            step = step + power / curvature * direction
            residual = residual - power / curvature * product
            scaled = solve(residual)
            last, power = power, float(np.sum(residual * scaled))
            if power <= enough:
                break
            direction = scaled + power / last * direction
        return step

    def _blocks(self, q: Floats) -> Floats:
        """Return the diagonal blocks of the Hessian, one per class, of shape (classes, width, width)."""
        n_classes, width = self.penalty.shape
        blocks = np.zeros((n_classes, width, width))
        for rows in chunks(self.z.shape):
            spread = q[rows] * (1 - q[rows]) * self.share[rows, None]
            z = self.z[rows]
            if self.full:
                columns = np.column_stack([z, np.ones(len(z))])
                for j in range(n_classes):
                    half = columns * np.sqrt(spread[:, j, None])
                    blocks[j] += half.T @ half
            else:
                blocks[:, 0, 0] += np.einsum("ij,ij,ij->j", spread, z, z)
                blocks[:, 0, 1] += np.einsum("ij,ij->j", spread, z)
                blocks[:, 1, 1] += spread.sum(axis=0)
                blocks[:, 1, 0] = blocks[:, 0, 1]
        places = np.arange(width)
        blocks[:, places, places] += self.penalty
        return blocks

    def _change(self, step: Floats) -> float:
        """Return the largest change of a logit, relative to the row's mean, that the step brings about."""
        largest = 0.0
        for rows in chunks(self.z.shape):
            moved = self._logits(step, rows)
            largest = max(largest, float(np.abs(moved - moved.mean(axis=1, keepdims=True)).max()))
        return largest

    def _searched(
        self, theta: Floats, step: Floats, loss: float, gradient: Floats, change: float, q: Floats
    ) -> tuple[Floats, float]:
        """Return theta moved by the step, halved until the loss falls enough, and the loss there."""
        slope = float(np.sum(gradient * step))
        scale = 1.0
        for _ in range(_HALVINGS):
            new = theta + scale * step
            found = self._loss(new, q)
            if change <= _NEAR or found <= loss + 1e-4 * scale * slope:
                break
            scale /= 2
        return new, found

    def _free(self) -> Bools:
        """Return which columns of theta may be moved by a constant without effect: no penalty holds them."""
        free = np.asarray((self.penalty <= _RIDGE).all(axis=0))
        if not self.full:
            free[0] = False  # each weight belongs to a column of its own
        return free

    def _centred(self, theta: Floats) -> Floats:
        """Return theta with columns that are free moved to the means of the identity map: 1 / K, and 0 for b."""
        wanted = np.append(np.full(theta.shape[1] - 1, 1 / len(theta)), 0.0)
        return np.asarray(theta - np.where(self._free(), theta.mean(axis=0) - wanted, 0.0))
