"""`Audit`: the result of `audit`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError, Note
from calibrant._support.formatting import PrintedResult, TableText, format_pvalue
from calibrant._support.plain_data import PlainResult, frame_from_columns, number, plain
from calibrant._support.sql_dialects import get_dialect
from calibrant.results.audit_conditions import Condition
from calibrant.results.evaluation import to_json_text
from calibrant.tables.rows import several_columns

if TYPE_CHECKING:
    from calibrant._support.file_writing import FilePath


@dataclass(frozen=True)
class ResidualTerms:
    """How the residuals of one kind of forecast are described.

    Attributes
    ----------
    error : str
        Name of the error of a segment, and of its column.
    about : str
        The feature that describes the forecast, in a sentence.
    is_share : bool
        Whether forecasts and outcomes are shares; otherwise numbers, whose errors have the sign of prediction less
        outcome.
    """

    error: str = "log_odds_error"
    about: str = "the score"
    is_share: bool = True

    def format_mean(self, value: float) -> str:
        """Format a mean prediction or outcome."""
        return f"{100 * value:.3g} %" if self.is_share else f"{value:.4g}"

    @property
    def error_format(self) -> str:
        """Format of errors."""
        return "+.2f" if self.is_share else "+.3g"


@dataclass(frozen=True)
class MulticalibrationError(PlainResult):
    r"""The largest cumulative calibration error of segments, in standard deviations; see `calibrant.audit`.

    With the rows of a segment s in order of score, :math:`C_j = \sum_{i \le j} w_i (y_i - p_i)` and :math:`\sigma_s^2 =
    \sum w_i^2 p_i (1 - p_i)`, it is the largest :math:`(\max_j C_j - \min_j C_j) / \sigma_s` over all segments,
    multiplied by the standard deviation of all rows, :math:`\sigma / \sum w_i`. `sigma` is the value before this
    multiplication. Segments are all rows and the combinations of conditions on features, whose three values are the
    thirds of numbers, and the two most common categories and the others (Guy, Haimovich, Linder, Okati, Perini, Tax and
    Tygert 2025; MCGrad computes the same value). For numbers the variance is half the mean squared difference of
    residuals that are neighbours in the order of predictions.

    Attributes
    ----------
    value, sigma : float
        In units of the score, and in standard deviations.
    expected, low, high : float
        Mean and range of the value if the forecast is calibrated.
    pvalue : float
        Share of replicates of a calibrated forecast with a value at least as large. Unlike the smallest p-value of the
        segments it accounts for their number.
    segment : str
        The segment with the largest error.
    n_rows, n_segments, n_resamples : int
        Numbers of rows (at most a million, drawn at random), segments and replicates.
    replicates : ndarray
        Values under calibration.

    See Also
    --------
    audit, Multicalibrator

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> error = found.multicalibration_error
    >>> error.segment, error.value > error.high, error.pvalue < 0.05
    ('region = 2', True, True)
    """

    value: float
    sigma: float
    expected: float
    low: float
    high: float
    pvalue: float
    segment: str
    n_rows: int
    n_segments: int
    n_resamples: int
    replicates: Floats = field(default_factory=lambda: np.empty(0), compare=False, repr=False)

    def __float__(self) -> float:
        return self.value

    def sentence(self) -> str:
        """Return the value and what is expected of a calibrated forecast in one sentence.

        Returns
        -------
        str
            The sentence that a printed audit shows.
        """
        if not self.n_segments:
            return "Multicalibration error: undefined, because no segment has a variance."
        text = f"Multicalibration error {self.value:.3g} ({self.sigma:.2f} standard deviations, in {self.segment})"
        limits = f"expected if calibrated {self.expected:.3g}, {self.low:.3g} to {self.high:.3g}"
        return f"{text}; {limits}; p {format_pvalue(self.pvalue)}."


@dataclass(frozen=True)
class Segment:
    """A segment of rows that is shown to be miscalibrated.

    Attributes
    ----------
    rule : str
        The conditions, joined by "and".
    n_rows : int
        Number of rows that meet the rule.
    predicted, observed : float
        Mean score and event rate; mean prediction and mean outcome of numbers.
    error, low, high : float
        The log-odds error with its confidence interval: calibration in the large, in log-odds; positive if the forecast
        underestimates; NaN if only one outcome occurs. Of numbers the mean error: prediction less outcome. Given that
        the segment is significant: the median-unbiased estimate, nearer to 0 than that of `predicted` and `observed`,
        and limits that end at 0.
    pvalue, adjusted_pvalue : float
        Of the hypothesis that the segment is calibrated in the large; adjusted by Holm for all tested segments.
    share : float
        Share of what all segments explain: the gain in deviance by a shift of this segment's forecasts, after the
        segments before it, divided by the sum of these gains.
    n_new_rows : int
        Number of its rows that no segment before it has.
    overlaps : str or None
        The rule of the first segment before it with which it shares at least half of the rows of the smaller one.
    conditions : tuple of Condition
    terms : ResidualTerms
        How residuals of this kind of forecast are described.

    See Also
    --------
    Audit, Condition

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> segment = found.segments[0]
    >>> segment.rule, segment.direction, segment.mask({"region": [0, 1, 2]})
    ('region = 2', 'underestimates', array([False, False,  True]))
    """

    rule: str
    n_rows: int
    predicted: float
    observed: float
    error: float
    low: float
    high: float
    pvalue: float
    adjusted_pvalue: float
    share: float
    n_new_rows: int
    overlaps: str | None
    conditions: tuple[Condition, ...] = field(default=(), repr=False)
    terms: ResidualTerms = ResidualTerms()

    @property
    def log_odds_error(self) -> float:
        """The error of a segment of probabilities."""
        if not self.terms.is_share:
            raise AttributeError("A segment of point predictions has no log_odds_error; it has mean_error.")
        return self.error

    @property
    def mean_error(self) -> float:
        """Mean prediction less mean outcome."""
        return self.predicted - self.observed if self.terms.is_share else self.error

    @property
    def direction(self) -> str:
        """Whether the forecast overestimates or underestimates."""
        return "underestimates" if self.observed > self.predicted else "overestimates"

    def sentence(self) -> str:
        """Return the means and the error as a phrase: "underestimates: ...".

        Returns
        -------
        str
            Direction, means, number of rows and adjusted p-value.
        """
        form = "{:.1%}" if self.terms.is_share else "{:.4g}"
        means = f"predicted {form.format(self.predicted)}, observed {form.format(self.observed)}".replace("%", " %")
        return f"{self.direction}: {means} in {self.n_rows:,} rows, adjusted p {format_pvalue(self.adjusted_pvalue)}"

    def mask(self, features: Any, *, forecast: Mapping[str, Any] | None = None) -> Bools:
        """Return which rows of other data meet the rule.

        Parameters
        ----------
        features : frame, mapping of names to columns, or list of columns
            With the features of the rule.
        forecast : mapping of name to column, optional
            Columns for conditions on the forecast: ``{"score": p}``.

        Returns
        -------
        array of bool
            One value per row.
        """
        columns = several_columns(features, "features") or {}
        both = next((name for name in forecast or {} if name in columns), None)
        if both is not None:
            raise InputError(
                f"forecast must not have the name of a feature; got {both!r} in both.",
                hint="Rename the feature before the audit.",
                argument="forecast",
            )
        given = {**columns, **(forecast or {})}
        found: Bools | None = None
        for condition in self.conditions:
            if condition.feature not in given:
                raise InputError(
                    f"features must have the column {condition.feature!r} of the rule; got {', '.join(given)}.",
                    hint="Pass conditions on the forecast as forecast={'score': column}.",
                    argument="features",
                )
            own = condition.mask(_columns.read(given[condition.feature], condition.feature))
            found = own if found is None else found & own
        return np.ones(len(next(iter(given.values()), ())), dtype=bool) if found is None else found

    def to_sql(self, dialect: str = "duckdb", *, columns: Mapping[str, str] | None = None) -> str:
        """Return the rule as an SQL predicate, for a WHERE clause.

        Parameters
        ----------
        dialect : str
            As in `to_sql`. SQL Server and Redshift ignore spaces at the end of text.
        columns : mapping, optional
            Names of columns that differ from those of the features: ``{"score": "p_default"}``.

        Returns
        -------
        str
            A predicate; "1 = 1" for a segment of all rows.
        """
        sql, names = get_dialect(dialect), dict(columns or {})
        parts = [
            condition.to_sql(names.get(condition.feature, condition.feature), sql) for condition in self.conditions
        ]
        return " AND ".join(parts) or "1 = 1"


_FIELDS = [name for name in Segment.__dataclass_fields__ if name not in ("conditions", "terms")]


@dataclass(frozen=True, eq=False, repr=False)
class Audit(PrintedResult):
    """Segments of rows that are miscalibrated; see `audit`.

    Attributes
    ----------
    segments : tuple of Segment
        The segments shown, smallest p-value first.
    n_rows, n_features, n_tests, depth : int
        Rows and features searched, rules tested, and the largest number of conditions of a rule.
    alpha, confidence_level : float
    kind : str
        binary, multiclass (the top label), ordinal (the mean predicted class) or point.
    terms : ResidualTerms
        How residuals of this kind are described.
    n_explained : int
        Number of significant rules that are left out because the segments before them explain their deviation.
    multicalibration_error : MulticalibrationError or None
        None where it was not computed.
    notes : tuple of Note
    predicted, observed : float
        Mean forecast (score, top-label probability or prediction) and mean outcome of all rows.

    See Also
    --------
    audit, Segment

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> found.verdict, [segment.rule for segment in found.segments]
    ('1 miscalibrated segment', ['region = 2'])
    """

    segments: tuple[Segment, ...]
    n_rows: int
    n_features: int
    n_tests: int
    depth: int
    alpha: float
    confidence_level: float
    kind: str = ""
    terms: ResidualTerms = ResidualTerms()
    n_explained: int = 0
    multicalibration_error: MulticalibrationError | None = None
    notes: tuple[Note, ...] = ()
    predicted: float = math.nan
    observed: float = math.nan

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        count = len(self.segments)
        if not count:
            return "no miscalibrated segment shown"
        return "1 miscalibrated segment" if count == 1 else f"{count} miscalibrated segments"

    @property
    def error_name(self) -> str:
        """The column of the error of a segment: log_odds_error, or mean_error for numbers."""
        return self.terms.error

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per segment.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend` with the columns that `columns` returns.
        """
        rows = self.rows()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(self.columns())}
        return frame_from_columns(columns, backend)

    def columns(self) -> list[str]:
        """Return the names of the columns of `to_frame`.

        Returns
        -------
        list of str
            The column of the error has the name `error_name`.
        """
        return [self.error_name if name == "error" else name for name in _FIELDS]

    def rows(self) -> list[list[Any]]:
        """Return the values of each segment, in the order of `columns`.

        Returns
        -------
        list of lists
            One list per segment.
        """
        return [[getattr(segment, name) for name in _FIELDS] for segment in self.segments]

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        own = plain(self, skip=("segments", "multicalibration_error", "kind", "terms")) | {"schema_version": 2}
        found = self.multicalibration_error
        return {
            "result": "audit",
            "kind": self.kind,
            "verdict": self.verdict,
            **own,
            "multicalibration_error": None if found is None else found.to_dict(),
            "segments": [
                plain(each, skip=("conditions", "terms", "error")) | number(self.error_name, each.error)
                for each in self.segments
            ],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        Returns
        -------
        str
            JSON text; NaN and infinite numbers are null.
        """
        return to_json_text(self.to_dict())

    def plot(self, **options: Any) -> Any:
        """Draw the segments; see `calibrant.plots.SegmentDisplay`.

        Parameters
        ----------
        **options
            ``ax`` and ``fig``; see `calibrant.plots.SegmentDisplay`.

        Returns
        -------
        SegmentDisplay
            The display, drawn.
        """
        from calibrant.plots import SegmentDisplay

        return SegmentDisplay.from_audit(self, **options)

    def plot_map(self, **options: Any) -> Any:
        """Draw all rows as tiles of segments; see `calibrant.plots.SegmentMapDisplay`.

        Parameters
        ----------
        **options
            ``ax`` and ``fig``; see `calibrant.plots.SegmentMapDisplay`.

        Returns
        -------
        SegmentMapDisplay
            The display, drawn.
        """
        from calibrant.plots import SegmentMapDisplay

        return SegmentMapDisplay.from_audit(self, **options)

    @overload
    def to_html(self, path: None = None, *, title: str = ...) -> str: ...
    @overload
    def to_html(self, path: "FilePath", *, title: str = ...) -> "FilePath": ...
    def to_html(
        self, path: str | PathLike[str] | None = None, *, title: str = "Calibration audit"
    ) -> str | PathLike[str]:
        """Return the report as one self-contained HTML page, or write it to `path`.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced, completely or not at all.
        title : str, default="Calibration audit"
            Title of the page.

        Returns
        -------
        str or path
            The page; where `path` is given, the path.
        """
        from calibrant import report

        return report.write_page(report.audit_page(self, title=title), path)

    def _text(self) -> TableText:
        after = [*map(str.strip, self.overlap_lines()), *(f"note: {note.text}" for note in self.notes)]
        return TableText([f"Verdict: {self.verdict}", *self.sentences()], self.cells(), after)

    def overlap_lines(self) -> list[str]:
        """Return which segments overlap.

        Returns
        -------
        list of str
            One line for each segment that overlaps an earlier one.
        """
        return [f"  {s.rule} overlaps {s.overlaps}." for s in self.segments if s.overlaps]

    def sentences(self) -> list[str]:
        """Return what was searched, and the multicalibration error.

        Returns
        -------
        list of str
            One sentence per element.
        """
        rows, features, conditions, rules = (
            f"{count:,} {name}" + ("" if count == 1 else "s")
            for count, name in (
                (self.n_rows, "row"),
                (self.n_features, "feature"),
                (self.depth, "condition"),
                (self.n_tests, "rule"),
            )
        )
        lines = [
            f"{rows}, {features} and {self.terms.about}, rules of up to {conditions}; {rules} tested on rows that did "
            "not choose " + ("it." if self.n_tests == 1 else "them.")
        ]
        if self.segments:
            lines.append(
                "Rows are counted in both halves; the other numbers are of the half that did not choose a rule. Errors "
                "and intervals allow for the selection of significant segments; predicted and observed means do not."
            )
        if self.n_explained:
            rules, own = ("rule is", "its") if self.n_explained == 1 else ("rules are", "their")
            lines.append(f"{self.n_explained} more {rules} significant; the segments below explain {own} deviation.")
        found = self.multicalibration_error
        return lines if found is None else [*lines, found.sentence()]

    def cells(self) -> Sequence[Sequence[str]]:
        """Return the table of segments as text; its first row is the header.

        Returns
        -------
        sequence of sequences of str
            One row per segment.
        """
        level = f"{self.confidence_level:.0%} CI".replace("%", " %")
        error = self.error_name.replace("log_odds", "log-odds").replace("_", " ")
        heading = ["segment", "rows", "predicted", "observed", error, level, "adjusted p", "share"]
        return [heading, *(_cells(segment) for segment in self.segments)]


def _cells(segment: Segment) -> list[str]:
    """Return the numbers of a segment as text."""
    means, form = map(segment.terms.format_mean, (segment.predicted, segment.observed)), segment.terms.error_format
    known = np.isfinite(segment.low) and np.isfinite(segment.high)
    return [
        segment.rule,
        f"{segment.n_rows:,}",
        *means,
        format(segment.error, form) if np.isfinite(segment.error) else "",
        f"{segment.low:{form}} to {segment.high:{form}}" if known else "",
        format_pvalue(segment.adjusted_pvalue),
        f"{100 * segment.share:.0f} %",
    ]
