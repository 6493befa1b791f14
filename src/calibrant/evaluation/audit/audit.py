"""`audit`: find the segments of rows in which a forecast is miscalibrated, and test them on other rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import default_rng

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count, check_share
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Bools, Column, Ints
from calibrant.evaluation.audit.features import Feature, encode_feature
from calibrant.evaluation.audit.result import Audit, Segment
from calibrant.evaluation.audit.search import Residuals, Rule, explained, rule_rows, rule_text, search
from calibrant.inference.binary_components import in_the_large_test
from calibrant.inference.coefficients import calibration_in_the_large
from calibrant.inference.design import Design
from calibrant.inference.multiplicity import holm
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows
from calibrant.tables.groups import several_columns
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import check_scores, count_checked
from calibrant.tables.table_functions import row_options

__all__ = ["audit"]

SMALLEST_SHARE, SMALLEST_SEGMENT = 0.005, 50
CANDIDATES = 8  # rules that each half hands to the other for a test
_LEAST_SCORE = 1e-200  # of a variance by which squares are divided


@row_options
def audit(
    y_true: Column,
    forecast: Column,
    features: Any,
    *,
    depth: int = 2,
    min_rows: int | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Audit:
    """Find segments of rows in which scores are miscalibrated.

    Segments are readable rules: up to `depth` conditions on features and on the score itself. The rows are split into
    two halves at random (clusters stay together). Each half is searched for the rules whose rows deviate most; these
    are tested on the other half, which did not choose them. All tests together are adjusted by Holm: if the model is
    calibrated in every segment, a segment is reported with a probability of at most `alpha`.

    Parameters
    ----------
    y_true, forecast : columns
        Outcomes, 0 and 1, and scores.
    features : frame, mapping of names to columns, list of columns, or column
        Numbers are cut at eleven quantiles, from 1 % to 99 %, categories used by value (at most thirty, the rarer ones
        together); a missing value is a condition, too. No row is dropped because of a feature.
    depth : {1, 2, 3}, default 2
        The largest number of conditions of a rule. All pairs of features are searched; a third condition is added to
        the best rules of two.
    min_rows : int, optional
        Smallest segment that is searched, in rows of a half; by default 0.5 % of them and at least 50.
    alpha : float, default 0.05
        Probability of reporting any segment of a calibrated model.
    confidence_level : float, default 0.95
        Of the intervals of log-odds errors, which are not adjusted for the number of segments.
    random_state : int, Generator or None, default 0
        Of the split.
    cluster : column, optional
        Rows of one cluster may depend on each other.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Audit
        ``segments``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    Numbers of a segment (predicted, observed, log-odds error, interval, p-values) are of the half that did not choose
    it; `n_rows` counts both. A rule that both halves chose has the numbers of the half with the smaller p-value.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(0, 2, 20_000), rng.integers(0, 2, 20_000)
    >>> p = rng.uniform(0.2, 0.8, 20_000)
    >>> y = rng.random(20_000) < p + np.where(a == b, 0.1, -0.1)  # calibrated for each a and for each b
    >>> found = cb.audit(y, p, {"a": a, "b": b})
    >>> sorted(segment.rule for segment in found.segments)
    ['a = 0 and b = 0', 'a = 0 and b = 1', 'a = 1 and b = 0', 'a = 1 and b = 1']
    """
    check_share("alpha", alpha)
    check_share("confidence_level", confidence_level)
    if depth not in (1, 2, 3):
        raise InputError(f"depth must be 1, 2 or 3; got {depth!r}.", argument="depth", value=depth)
    if min_rows is not None:
        check_count("min_rows", min_rows)
    sample = _Sample.read(y_true, forecast, features, cluster, rows)
    halves = sample.halves(seed_sequence(random_state))
    found: list[tuple[Rule, _Tested]] = []
    for searched, other in (halves, halves[::-1]):
        chosen = sample.part(searched).search(depth, min_rows, progress)
        tested = sample.part(other)
        found += [(rule, tested.test(rule, confidence_level)) for rule in chosen]
    adjusted = holm([test.pvalue for _, test in found])
    shown: dict[Rule, tuple[_Tested, float]] = {}
    for (rule, test), pvalue in sorted(zip(found, adjusted, strict=True), key=lambda each: each[1]):
        if pvalue <= alpha:
            shown.setdefault(rule, (test, float(pvalue)))
    return Audit(
        segments=sample.segments(shown),
        n_rows=len(sample.rows),
        n_features=len(sample.features) - 1,
        n_tests=len(found),
        depth=depth,
        alpha=alpha,
        confidence_level=confidence_level,
        notes=sample.rows.notes,
    )


@dataclass(frozen=True)
class _Tested:
    predicted: float
    observed: float
    log_odds_error: float
    low: float
    high: float
    pvalue: float


@dataclass(frozen=True)
class _Positions:
    """Row numbers, which follow the rows that are used."""

    name: str
    values: Ints

    def __len__(self) -> int:
        return len(self.values)

    def part(self, rows: Any) -> "_Positions":
        return _Positions(self.name, self.values[rows])


@dataclass(frozen=True, eq=False)
class _Sample:
    """Validated rows and their features; the last feature is the score."""

    rows: Rows
    features: tuple[Feature, ...]

    @classmethod
    def read(
        cls, y_true: Column, forecast: Column, features: Any, cluster: Column | None, options: dict[str, Any]
    ) -> "_Sample":
        named = several_columns(features, "features") or {str(getattr(features, "name", None) or "feature"): features}
        given = {f"features[{name!r}]": column for name, column in named.items()}
        columns = [_columns.read(column, name) for name, column in given.items()]
        positions = _Positions(columns[0].name, np.arange(len(columns[0])))
        rows = Rows.read(y_true, {"forecast": forecast, "features": positions}, cluster=cluster, **options)
        _columns.check_lengths([rows.y, *columns])
        _columns.check_alignment({"y_true": y_true, **given})
        used = check_scores(rows)
        kept = used.forecasts[1].values
        read = [encode_feature(name, column.part(kept)) for name, column in zip(named, columns, strict=True)]
        return cls(replace(used, forecasts=used.forecasts[:1]), (*read, encode_feature("score", used.forecasts[0])))

    def part(self, rows: Ints | Bools) -> "_Sample":
        return _Sample(self.rows.part(rows), tuple(feature.part(rows) for feature in self.features))

    def halves(self, seed: np.random.SeedSequence) -> tuple[Ints, Ints]:
        cluster = self.rows.cluster_codes
        units = len(self.rows) if cluster is None else int(cluster.max()) + 1
        first = np.zeros(units, dtype=bool)
        first[default_rng(seed).permutation(units)[: units // 2]] = True
        inside = first if cluster is None else first[cluster]
        return np.flatnonzero(inside), np.flatnonzero(~inside)

    def residuals(self) -> Residuals:
        rows = self.rows
        score, event = rows.forecasts[0].values.astype(np.float64), rows.y.values == 1
        size = np.ones(score.size) if rows.weight is None else rows.weight.values.astype(np.float64)
        variance = size * np.where(score > 0, np.maximum(score, _LEAST_SCORE), 0.0) * (1 - score)
        return Residuals(size * (event - score), variance * size if rows.importance else variance)

    def search(self, depth: int, min_rows: int | None, progress: bool | None) -> list[Rule]:
        least = max(SMALLEST_SEGMENT, int(SMALLEST_SHARE * len(self.rows))) if min_rows is None else min_rows
        return search(
            self.features,
            self.residuals(),
            depth=depth,
            min_rows=least,
            n_rules=CANDIDATES,
            progress=lambda steps: progress_bar(steps, len(steps), "pairs of features", show=progress),
        )

    def test(self, rule: Rule, level: float) -> _Tested:
        """Test a rule on these rows, which did not choose it."""
        rows = np.flatnonzero(rule_rows(self.features, rule, len(self.rows)))
        if rows.size == 0:
            return _Tested(np.nan, np.nan, np.nan, np.nan, np.nan, 1.0)
        design = _design(self.rows.part(rows))
        table = design.table
        total = float(table.n.sum())
        estimates = calibration_in_the_large(design, level)
        error = (estimates[0].value, estimates[0].low, estimates[0].high) if estimates else (np.nan,) * 3
        pvalue = 1.0 if design.rows is None and self.rows.cluster is not None else in_the_large_test(design).pvalue
        return _Tested(float(np.sum(table.n * table.score)) / total, float(table.k.sum()) / total, *error, pvalue)

    def segments(self, shown: dict[Rule, tuple[_Tested, float]]) -> tuple[Segment, ...]:
        """Return the rules that are shown as segments, with what they explain of all rows and how they overlap."""
        rows = {rule: rule_rows(self.features, rule, len(self.rows)) for rule in shown}
        gains = explained(self.residuals(), list(rows.values()))
        total = sum(gains)
        return tuple(
            Segment(
                rule_text(self.features, rule),
                int(rows[rule].sum()),
                **vars(test),
                adjusted_pvalue=pvalue,
                share=gain / total,
                overlaps=self._overlaps(rule, rows),
            )
            for (rule, (test, pvalue)), gain in zip(shown.items(), gains, strict=True)
        )

    def _overlaps(self, rule: Rule, rows: dict[Rule, Bools]) -> str | None:
        for other, theirs in rows.items():
            if other == rule:
                return None
            if (rows[rule] & theirs).sum() >= 0.5 * (rows[rule] | theirs).sum():
                return rule_text(self.features, other)
        return None


def _design(rows: Rows) -> Design:
    """Return the design of rows; those of too few clusters are not tested."""
    if rows.cluster is None or rows.n_clusters < MIN_CLUSTERS:
        return Design(count_checked(rows))
    paired, (table,) = PairedRows.from_rows(rows)
    return Design(table, paired)
