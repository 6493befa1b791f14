"""Rows in time order: blocks of consecutive times that are as long as their errors depend on each other.

Blocks are clusters for every test, interval and replicate: t and F tests of few large blocks have the right critical
values under serial dependence (Bester, Conley and Hansen 2011, "Inference with dependent data using cluster covariance
estimators"), and drawing blocks is the block bootstrap (Carlstein 1986). Rows of one time are in one block, as in
Driscoll and Kraay (1998), so that they may depend on each other in any way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError, Note
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.results.uncertainty import SerialDependence
from calibrant.tables.rows import Rows

# Length of a block in reaches. The variance of blocks is too small by about reach / length, here a sixth; shorter
# blocks are more liberal, longer ones lose power (docs/studies/serial_dependence.csv).
_REACHES_PER_BLOCK = 6.0
# Standard errors above which an autocorrelation of sums over several times counts.
_SIGNIFICANT = 2.5
_FEWEST_SUMS = 20
# For the note about neighbouring rows: standard errors, rows, sums of rows, and mean squared difference of neighbours,
# in variances (2 for independent values), below which rows count as sorted.
_NEIGHBOURS_DEPEND = 3.3
_FEWEST_ROWS, _FEWEST_BLOCKS = 100, 30
_SORTED = 0.1
_LARGEST = 0.97  # autocorrelation; for larger values the reach is estimated poorly


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of one forecast: outcome less forecast, of shape (rows, columns), and a prediction that orders the rows.

    Columns are pooled: the classes of a multiclass forecast, or the single column of a score. `others` are further
    quantities that tests sum over rows.
    """

    values: Floats
    prediction: Floats
    others: tuple[Floats, ...] = ()

    @property
    def losses(self) -> Floats:
        """Sum of squares of each row: half of it is a proper score for probabilities, and the squared error."""
        found: Floats = np.einsum("ij,ij->i", self.values, self.values)
        return found

    def series(self) -> list[Floats]:
        """Return the columns whose sums tests and metrics use: errors, errors times prediction, losses and others."""
        spread = float(np.std(self.prediction))
        away = (self.prediction - self.prediction.mean()) / spread if spread > 0 else np.zeros(len(self.values))
        single = [each[:, None] for each in (self.losses, *self.others)]
        return [self.values, self.values * away[:, None], *single]


def in_time_blocks(
    rows: Rows, check: Callable[[Rows], Rows], errors: Callable[[Rows], Sequence[Errors]]
) -> tuple[Rows, SerialDependence | None]:
    """Return rows whose clusters are blocks of their times, and the dependence; rows without times stay as they are.

    `check` returns the valid rows that are used, and `errors` the errors of each of their forecasts.
    """
    if rows.time is None:
        return rows, None
    used = check(rows)
    assert used.time is not None
    times, place = np.unique(used.time.values, return_inverse=True)
    weight = np.ones(len(used)) if used.size is None else used.size.astype(np.float64)
    found = _dependence(times.size, place, weight, errors(used))
    # Rows that are not used get a block too, so that they are counted as dropped rows.
    rank = np.clip(np.searchsorted(times, rows.time.values, side="right") - 1, 0, None)
    block = rank * found.n_blocks // found.n_times
    cluster = ColumnData("time", block, rows.time.missing, rows.time.notes)
    return replace(rows, cluster=cluster, time=None, dropped=(*rows.dropped, found.note)), found


def neighbour_notes(outcome: Floats, score: Floats) -> tuple[Note, ...]:
    r"""Return a note if the errors of neighbouring rows, in the order of the rows, depend on each other.

    Errors y - p less their mean are summed over 1, 2, 4, ... rows, and
    :math:`z = \sum s_i s_{i + 1} / (\sum s_i^2 s_{i + 1}^2)^{1/2}` of neighbouring sums is compared with 3.3. Rows that
    are sorted by outcome or by score say nothing about their time.
    """
    if outcome.size < _FEWEST_ROWS or _is_sorted(outcome) or _is_sorted(score):
        return ()
    sums = outcome - score
    sums, scale = sums - sums.mean(), 1
    while len(sums) >= _FEWEST_BLOCKS:
        products = sums[1:] * sums[:-1]
        spread = float(np.sqrt(np.sum(products**2)))
        if spread > 0 and float(products.sum()) > _NEIGHBOURS_DEPEND * spread:
            over = "neighbouring rows" if scale == 1 else f"neighbouring runs of {scale:,} rows"
            text = (
                f"Errors of {over} depend on each other, and tests and intervals assume independent rows. Give the "
                "times of the rows (time=), or the units that they belong to (cluster=)."
            )
            return (Note("neighbouring_rows", 1, text),)
        pairs = len(sums) // 2
        sums, scale = sums[: 2 * pairs].reshape(pairs, 2).sum(axis=1), 2 * scale
    return ()


def _is_sorted(values: Floats) -> bool:
    """Return whether neighbouring values are nearly equal compared with the spread of all values."""
    spread = float(np.mean((values - values.mean()) ** 2))
    return spread > 0 and float(np.mean(np.diff(values) ** 2)) < _SORTED * spread


def need_blocks(found: SerialDependence | None) -> None:
    """Raise an error if errors depend on each other over so many times that too few blocks are left."""
    if found is not None and found.n_blocks < MIN_CLUSTERS:
        raise InputError(
            Argument("time")
            + f" must cover at least {MIN_CLUSTERS} blocks of dependent times; got {found.n_times:,} times, whose "
            f"errors depend on each other over about {found.reach:.0f}.",
            hint=f"About {found.n_times * MIN_CLUSTERS / found.n_blocks:,.0f} times are needed.",
            value=found.n_times,
        )


def _dependence(n_times: int, place: Ints, weight: Floats, errors: Sequence[Errors]) -> SerialDependence:
    """Return the dependence of the sums of errors per time, and the number of blocks.

    A block has six reaches, and at least the length that minimises the mean squared error of a variance of blocks,
    (reach^2 n)^(1/3). There are at least ten blocks, unless even blocks of three reaches are fewer than ten.
    """
    if n_times < MIN_CLUSTERS:
        raise InputError(
            Argument("time") + f" must have at least {MIN_CLUSTERS} distinct values for inference; got {n_times}.",
            value=n_times,
        )
    series = [each for of_model in errors for each in of_model.series()]
    # Differences of losses are what models are compared by.
    series += [(each.losses - errors[0].losses)[:, None] for each in errors[1:]]
    sums = [_sums_by_time(n_times, place, weight, columns) for columns in series]
    reach = max(map(_reach, sums))
    length = max(1.0, _REACHES_PER_BLOCK * reach, (reach**2 * n_times) ** (1 / 3))
    blocks = n_times / length
    if MIN_CLUSTERS / 2 <= blocks < MIN_CLUSTERS:
        blocks = MIN_CLUSTERS
    # Sums over rows depend on their order by rounding errors only, which must not be seen in the result.
    shown = round(_autocorrelation(sums[0]), 9)
    return SerialDependence(n_times, max(int(blocks + 1e-9), 1), shown, round(reach, 9))


def _sums_by_time(n_times: int, place: Ints, weight: Floats, columns: Floats) -> Floats:
    """Return the sums of each column per time, of its deviation from its mean."""
    away = columns - np.average(columns, weights=weight, axis=0)
    return np.stack([np.bincount(place, weights=weight * column, minlength=n_times) for column in away.T], axis=1)


def _autocorrelation(sums: Floats) -> float:
    """Return the correlation of neighbouring sums, all columns together; 0 without variance."""
    total = float(np.sum(sums**2))
    return float(np.sum(sums[1:] * sums[:-1])) / total if total > 0 else 0.0


def _reach(sums: Floats) -> float:
    r"""Return over how many times the sums depend on each other.

    The reach :math:`\sum |k| \rho_k / \sum \rho_k` of a first-order autoregressive process is
    :math:`2 r / (1 - r^2)`. It is estimated from sums over 1, 2, 4, ... times, and the largest estimate is returned: a
    weak but persistent dependence, as of days with many rows and a common shock, shows in sums over many times only.
    The autocorrelation of single times is corrected for its bias; that of longer sums counts less one standard error,
    if it exceeds two and a half.
    """
    found, scale = 0.0, 1
    sums = sums - sums.mean(axis=0)
    while len(sums) >= _FEWEST_SUMS or scale == 1:
        r, error = _autocorrelation(sums), len(sums) ** -0.5
        if scale == 1:
            r += (1 + 3 * r) / len(sums)
        else:
            r = r - error if r > _SIGNIFICANT * error else 0.0
        r = min(max(r, 0.0), _LARGEST)
        found = max(found, scale * 2 * r / (1 - r**2))
        pairs = len(sums) // 2
        sums, scale = sums[: 2 * pairs].reshape(pairs, 2, -1).sum(axis=1), 2 * scale
    return found
