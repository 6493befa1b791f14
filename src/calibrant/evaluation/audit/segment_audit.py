"""`audit`: find the segments of rows in which a forecast is miscalibrated, and test them on other rows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from calibrant._support.arrays import Bools, Column, Ints
from calibrant._support.columns import encode
from calibrant._support.errors import Argument, InputError, check_count, check_resample_count, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.evaluation.audit.audit_rows import read_rows
from calibrant.evaluation.audit.multicalibration_error import multicalibration_error
from calibrant.evaluation.audit.residual_blocks import AuditRows, Half, ResidualBlocks, Rule, rule_text
from calibrant.evaluation.audit.search import explained, search
from calibrant.evaluation.audit.search_notes import search_notes
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.inference.selection import after_selection, holm_threshold
from calibrant.ingest.files import Paths
from calibrant.ingest.formats import Format
from calibrant.kinds.audit import SegmentTest
from calibrant.results.audit import Audit, Segment
from calibrant.tables.rows import Missing, RowOptions

SMALLEST_SHARE, SMALLEST_SEGMENT = 0.005, 50
CANDIDATES = 8  # rules that each half hands to the other for a test
LEAST_GAIN = 6.63  # squared standardised residual, after the segments before it, of a segment that is reported


class AuditOptions(TypedDict, total=False):
    """Options of `audit` that columns and files share, as type checkers see them."""

    depth: int
    min_rows: int | None
    alpha: float
    confidence_level: float
    n_resamples: int
    random_state: RandomState
    pos_label: object
    missing: Missing
    progress: bool | None


@overload
def audit(
    y_true: Column,
    forecast: Any,
    features: Any,
    *,
    classes: Sequence[Any] | None = None,
    cluster: Column | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    **options: Unpack[AuditOptions],
) -> Audit: ...
@overload
def audit(
    y_true: Paths,
    *,
    y: str,
    forecast: Any,
    features: str | Sequence[str],
    cluster: str | None = None,
    sample_weight: str | None = None,
    frequency: str | None = None,
    format: Format | None = None,
    max_memory: int | str | None = None,
    **options: Unpack[AuditOptions],
) -> Audit: ...
def audit(
    y_true: Any,
    forecast: Any,
    features: Any,
    *,
    y: str | None = None,
    depth: int = 2,
    min_rows: int | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    random_state: RandomState = 0,
    classes: Sequence[Any] | None = None,
    cluster: Any = None,
    format: Format | None = None,
    max_memory: int | str | None = None,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> Audit:
    """Find segments of rows in which forecasts are miscalibrated.

    Segments are readable rules: up to `depth` conditions on features and on the forecast itself. The rows are split
    into two halves at random (clusters stay together). Each half is searched for the rules whose rows deviate most;
    these are tested on the other half, which did not choose them. All tests together are adjusted by Holm: if the
    forecast is calibrated in every segment, a segment is reported with a probability of at most `alpha`.

    Parameters
    ----------
    y_true, forecast : column, and scores, class probabilities, `Ordinal` or `Point`
        Outcomes 0 and 1 with scores; labels with class probabilities of shape (n, K), of which the highest of each row
        is audited (the top label), or with `Ordinal`, whose mean predicted class is audited; numbers with
        ``cb.Point(prediction)``, whose mean error is audited. Or the files of
        `scan`, with names of columns in all other arguments.
    features : frame, mapping of names to columns, array of rows and columns, list of columns, or column
        Numbers are cut at eleven quantiles, from 1 % to 99 %, categories used by value (at most thirty, the rarer ones
        together); dates are categories; a missing value is a condition, too. No row is dropped because of a feature.
    y : str, optional
        The column of outcomes of files. The forecast of files is the name of the column of scores,
        ``cb.Point("prediction")``, or ``{label: column}`` for class probabilities.
    depth : {1, 2, 3}, default 2
        The largest number of conditions of a rule. All pairs of features are searched; a third condition is added to
        the best rules of two.
    min_rows : int, optional
        Smallest segment that is searched, in rows of a half; by default 0.5 % of them and at least 50.
    alpha : float, default 0.05
        Probability of reporting any segment of a calibrated model.
    confidence_level : float, default 0.95
        Of the intervals of errors, each by itself, given that the segment is significant.
    n_resamples : int, default 199
        Null replicates of the multicalibration error, which is not computed if this is 0.
    random_state : int, Generator or None, default 0
        Of the split and of the replicates.
    classes : sequence, optional
        The class of each column of class probabilities; by default the names of a frame's columns, else 0 to K - 1.
    cluster : column, optional
        Rows of one cluster may depend on each other.
    format, max_memory
        Of files; see `scan`.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. Rows of one frequency stay together in a half.

    Returns
    -------
    Audit
        ``segments``, ``multicalibration_error``, ``to_frame()``, ``to_dict()``, ``plot()``, ``to_html()``; print it.

    See Also
    --------
    Audit, evaluate, Multicalibrator

    Notes
    -----
    Files are read twice: first for the cuts of numbers and the categories, then to encode the rows. Encoded rows lie in
    a temporary folder, with 18 bytes and 2 per feature for each row, and are searched block by block. In memory are one
    byte per row, and the rows of one segment at a time if they are in clusters or hold numbers (about 60 bytes each).
    In CSV files a feature holds numbers if all its first values are written as such. The result equals that of the same
    rows as columns, but for segments with more than a million distinct scores: these are rounded to multiples of 2**-20
    for their test.

    Numbers of a segment (predicted, observed, error, interval, p-values) are of the half that did not choose it;
    `n_rows` counts both. A rule that both halves chose has the numbers of its first significant test. Segments are
    reported because they are significant, which selects deviations that are large by chance too: the error is therefore
    the median-unbiased estimate given a significant test, nearer to 0 than that of the means, and its interval holds
    given the selection. A
    significant rule is left out if a shift of the segments before it explains its deviation; `n_explained` counts them.

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
    settings = check_audit_settings(depth, min_rows, alpha, confidence_level, n_resamples)
    seeds = seed_sequence(random_state).spawn(2)
    if y is not None:
        from calibrant.evaluation.audit.file_audit import audit_files

        if classes is not None:
            raise InputError(Argument("classes") + " must be omitted with files: the forecast names them.")
        options = {"cluster": cluster, "format": format, "max_memory": max_memory, "progress": progress, **rows}
        return audit_files(y_true, y, forecast, features, settings, seeds, **options)
    for name, value in (("format", format), ("max_memory", max_memory)):
        if value is not None:
            raise InputError(Argument(name) + " is for files, with " + Argument("y") + ", the column of outcomes.")
    split, null = seeds
    sample = read_rows(y_true, forecast, features, cluster=cluster, classes=classes, seed=split, options=rows)
    return audit_sample(sample, settings, null, progress)


def check_audit_settings(
    depth: int, min_rows: int | None, alpha: float, confidence_level: float, n_resamples: int
) -> dict[str, Any]:
    """Return the settings of an audit; raise an error if one is not possible."""
    check_share("alpha", alpha)
    check_share("confidence_level", confidence_level)
    if depth not in (1, 2, 3):
        raise InputError(f"depth must be 1, 2 or 3; got {depth!r}.", argument="depth", value=depth)
    if min_rows is not None:
        check_count("min_rows", min_rows)
    if n_resamples != 0:
        check_resample_count(n_resamples)
    return {
        "depth": depth,
        "min_rows": min_rows,
        "alpha": alpha,
        "confidence_level": confidence_level,
        "n_resamples": n_resamples,
    }


def audit_sample(
    sample: AuditRows, settings: dict[str, Any], seed: np.random.SeedSequence, progress: bool | None
) -> Audit:
    """Search, test and measure the segments of rows that were read."""
    _check_clusters(sample)
    depth, alpha, level = settings["depth"], settings["alpha"], settings["confidence_level"]
    found: list[tuple[Rule, SegmentTest]] = []
    for half in (0, 1):
        chosen = _search(sample, half, depth, settings["min_rows"], progress)
        found += [(rule, _assess(sample, rule, 1 - half, level)) for rule in chosen]
    shown = _significant(found, alpha, level)
    error = None
    if settings["n_resamples"]:
        error = multicalibration_error(
            sample, depth=depth, n_resamples=settings["n_resamples"], level=level, seed=seed, progress=progress
        )
    segments = _segments(sample, shown)
    return Audit(
        segments=segments,
        n_rows=sample.size,
        n_features=sample.n_features,
        n_tests=len(found),
        n_explained=len(shown) - len(segments),
        depth=depth,
        alpha=alpha,
        confidence_level=level,
        kind=sample.kind,
        terms=sample.terms,
        multicalibration_error=error,
        notes=(*sample.rows.notes, *search_notes(sample, _least_rows(sample.size / 2, settings["min_rows"]))),
        predicted=sample.means[0],
        observed=sample.means[1],
    )


def _significant(
    found: Sequence[tuple[Rule, SegmentTest]], alpha: float, level: float
) -> dict[Rule, tuple[SegmentTest, float]]:
    """Return the significant rules with adjusted p-values, the smallest first; errors are those given the selection.

    Of a rule that both halves chose, the first test that is significant counts: to choose the one with the larger
    deviation would select once more.
    """
    pvalues = [test.pvalue for _, test in found]
    shown: dict[Rule, tuple[SegmentTest, float]] = {}
    for i, ((rule, test), adjusted) in enumerate(zip(found, holm(pvalues), strict=True)):
        if adjusted <= alpha and rule not in shown:
            limits = (test.error, test.low, test.high)
            error, low, high = after_selection(*limits, test.pvalue, holm_threshold(pvalues, i, alpha), level)
            shown[rule] = replace(test, error=error, low=low, high=high), float(adjusted)
    return dict(sorted(shown.items(), key=lambda item: (item[1][1], item[1][0].pvalue)))


def _assess(sample: AuditRows, rule: Rule, half: Half, level: float) -> SegmentTest:
    """Test a rule on the rows of a half, which did not choose it."""
    return sample.audited.assess(sample.rows, _rule_places(sample, rule, half), level, sample.skewness)


def _rule_places(sample: AuditRows, rule: Rule, half: Half) -> Iterable[Ints]:
    """Yield the positions of the rows of a rule, block by block."""
    for place in sample.places(half):
        rows = np.ones(place.size, dtype=bool)
        for feature, condition in rule:
            rows &= sample.lookups[feature][condition][sample.codes[feature][place]]
        if rows.any():
            yield place[rows]


def _check_clusters(sample: AuditRows) -> None:
    """Raise an error if a half has too few clusters for a test."""
    if sample.rows.cluster is None:
        return
    first = sample.rows.cluster.part(np.flatnonzero(sample.is_first))
    count = 0 if not len(first) else len(np.unique(encode(first)[1]))
    if count < MIN_CLUSTERS:
        raise InputError(
            Argument("cluster")
            + f" must have at least {2 * MIN_CLUSTERS} distinct values, {MIN_CLUSTERS} in each half "
            f"of the rows; got {count} in the first half.",
            hint="Use a finer unit as cluster.",
        )


def _search(sample: AuditRows, half: int, depth: int, min_rows: int | None, progress: bool | None) -> list[Rule]:
    residuals = ResidualBlocks(sample, half)
    least = _least_rows(sum(float(block.number.sum()) for block in residuals), min_rows)
    return search(residuals, depth=depth, min_rows=least, n_rules=CANDIDATES, progress=progress)


def _least_rows(rows: float, min_rows: int | None) -> int:
    """Return the smallest segment that is searched in so many rows of a half."""
    return max(SMALLEST_SEGMENT, int(SMALLEST_SHARE * rows)) if min_rows is None else min_rows


def _segments(sample: AuditRows, shown: dict[Rule, tuple[SegmentTest, float]]) -> tuple[Segment, ...]:
    """Return the rules that are shown as segments, with what they explain of all rows and how they overlap.

    A rule whose deviation the segments before it explain is left out.
    """
    if not shown:
        return ()
    residuals = ResidualBlocks(sample, None)
    gains = explained(residuals, list(shown), least=LEAST_GAIN)
    total, (common, new) = sum(gains.values()), _common_rows(residuals, list(gains))
    texts = [rule_text(sample.features, rule) for rule in gains]
    return tuple(
        Segment(
            texts[i],
            int(common[i, i]),
            **vars(shown[rule][0]),
            adjusted_pvalue=shown[rule][1],
            share=gain / total if total > 0 else 0.0,
            n_new_rows=int(new[i]),
            overlaps=next((texts[j] for j in range(i) if _overlap(common, i, j)), None),
            conditions=tuple(sample.features[f].conditions[c] for f, c in rule),
            terms=sample.terms,
        )
        for i, (rule, gain) in enumerate(gains.items())
    )


def _common_rows(residuals: ResidualBlocks, rules: Sequence[Rule]) -> Any:
    """Return how many rows each pair of rules has in common, and how many of each no rule before it has."""
    common, new = np.zeros((len(rules), len(rules))), np.zeros(len(rules))
    for block in residuals:
        masks: Bools = np.stack([block.mask(rule) for rule in rules])
        common += (masks * block.number) @ masks.T
        before = np.logical_or.accumulate(np.vstack([np.zeros_like(masks[:1]), masks[:-1]]))
        new += (masks & ~before) @ block.number
    return common, new


def _overlap(common: Any, i: int, j: int) -> bool:
    """Return whether two rules share at least half of the rows of the smaller segment."""
    return bool(common[i, j] >= 0.5 * min(common[i, i], common[j, j]) and common[i, j] > 0)
