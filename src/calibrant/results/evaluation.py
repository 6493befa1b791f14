"""`Evaluation`: the result of `evaluate`, for any kind of forecast."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from calibrant._support.errors import Note
from calibrant._support.formatting import PrintedResult, ResultMapping
from calibrant._support.lazy import cached_property
from calibrant._support.plain_data import finite, frame_from_rows, number
from calibrant._support.plain_data import label as json_label
from calibrant.results import sentences
from calibrant.results.details import Details
from calibrant.results.settings import AbsoluteMargin, RelativeMargin, Settings
from calibrant.results.text import GroupTable, ResultText, RowTable, n_rows, row_counts
from calibrant.results.uncertainty import Estimate, Interval, MetricMapping, MetricResult, SerialDependence
from calibrant.results.verdict import MISCALIBRATED, Deviation, TestResult, Verdict

if TYPE_CHECKING:
    from calibrant._support.file_writing import FilePath
    from calibrant.results.group_differences import Heterogeneity

SCHEMA_VERSION = 4


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(PrintedResult):
    """Calibration of one forecast: verdict, metrics, tests, groups and breakdowns; see `evaluate`.

    Text, frame, JSON, figure and report read these results and recompute nothing.

    Attributes
    ----------
    kind : str
        binary, multiclass, ordinal, labels, point or distribution.
    table : ScoreTable, ClassTable, ConfusionTable or MeanTable
        The evaluated rows.
    metrics : mapping of name to MetricResult
        Each metric with its confidence interval, its null distribution and an adjusted p-value. A metric is found under
        its displayed name and under its name in `METRICS`, in any case: "Brier" and "brier", "log loss" and "log_loss".
    breakdowns : mapping of name to Breakdown, BiasByBin or Coverage
        For probabilities the `Breakdown` of each metric over bins, and always ECE, ACE and a test-based one; for
        several classes those of the top label and of the classes with the largest deviations; for labels
        "proportions"; for points "bias by bin"; for distributions also "coverage", if there are central intervals.
    decision : Verdict
        The omnibus test and the size of the deviation, which decide the verdict.
    details : Details
        Results that only this kind has: `BinaryDetails`, `MulticlassDetails`, `OrdinalDetails`, `LabelsDetails`,
        `PointDetails`, `DistributionDetails`.
    settings : Settings
    groups : mapping
        The evaluation of each group, by the values of `by`.
    by : str or None
        Name of the column of the groups.
    adjusted : mapping
        For each group the p-value of its omnibus test, and this p-value adjusted for the number of groups: by Holm,
        which decides the verdict on the group, and by Benjamini and Hochberg.
    serial_dependence : SerialDependence or None
        With `time`: the estimated dependence of errors in time, and the blocks of times that were used.
    heterogeneity : Heterogeneity or None
        With groups: a test that they differ, the standard deviation between them, and shrunken estimates. None in
        groups, and for predicted labels and ordered classes, whose deviations have no single size.
    mean_over_clusters : Estimate or None
        With 3 to 9 clusters: calibration in the large as the mean over clusters, which is all that is tested.
    own_notes : tuple of Note
        Notes of this evaluation; `notes` has those of its parts too.

    See Also
    --------
    evaluate, MetricResult, Comparison, Settings

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = cb.evaluate(table, n_resamples=99)
    >>> result.verdict, result.n_rows
    ('inconclusive', 300)
    >>> round(result["ECE"].value, 4)
    0.0467
    """

    kind: str
    table: RowTable
    metrics: Mapping[str, MetricResult]
    breakdowns: Mapping[str, Any]
    decision: Verdict
    details: Details
    settings: Settings
    groups: "Mapping[Any, Evaluation]" = field(default_factory=dict)
    by: str | None = None
    adjusted: Mapping[Any, Mapping[str, float]] = field(default_factory=dict)
    own_notes: tuple[Note, ...] = ()
    serial_dependence: SerialDependence | None = None
    heterogeneity: "Heterogeneity | None" = None
    mean_over_clusters: Estimate | None = None

    def __post_init__(self) -> None:
        for name in ("metrics", "breakdowns"):
            object.__setattr__(self, name, MetricMapping(getattr(self, name)))
        object.__setattr__(self, "groups", ResultMapping(self.groups))  # printed as a short table

    def __getitem__(self, name: str) -> MetricResult:
        try:
            return self.metrics[name]
        except KeyError:
            raise KeyError(f"{name!r} is not a metric of this evaluation; it has {', '.join(self.metrics)}.") from None

    @property
    def n_rows(self) -> int:
        """Number of rows used; a row with frequency 5 counts as five."""
        return n_rows(self.table)

    @property
    def equivalence(self) -> Deviation:
        """Size of the deviation, and whether it is shown to lie within the margin."""
        return self.decision.deviation

    @property
    def coefficients(self) -> tuple[Estimate, ...]:
        """Calibration slope and intercepts with confidence intervals, where they are defined."""
        found = self.details.coefficients
        return found if self.mean_over_clusters is None else (self.mean_over_clusters, *found)

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test; in a group, adjusted for the number of groups. NaN if there is no test."""
        return self.decision.pvalue

    @cached_property
    def tests(self) -> dict[str, TestResult]:
        """All tests by name. Those behind the verdict come first; only they have an `adjusted_pvalue`."""
        found = [*self.decision.adjusted_omnibus.components.values(), *self.details.other_tests]
        return ResultMapping({test.name: test for test in found})

    @property
    def is_significant(self) -> bool:
        """Whether the omnibus test rejects calibration."""
        return self.decision.is_significant

    @property
    def is_within_margin(self) -> bool:
        """Whether the deviation is shown to lie within the margin."""
        return self.decision.deviation.within

    @property
    def direction(self) -> str:
        """Significant directions, comma-joined; '' if there is none.

        overestimates or underestimates (calibration in the large, mean error), overconfident or underconfident (slope,
        or width of predictive distributions), or local: a significant deviation of another kind.
        """
        return self.decision.direction

    @property
    def region(self) -> str:
        """The scores with the deviation that costs most events, such as "score 0.001 (20 % of rows)".

        '' where no deviation is significant, where that of all rows together is more significant than that of any
        region, and for forecasts without scores. ``details.regions.deviating`` has the counts.
        """
        return self.details.region(self)

    @property
    def verdict(self) -> str:
        """calibrated, negligible, miscalibrated or inconclusive; `evaluate` states the rule."""
        return self.decision.verdict

    @property
    def passed(self) -> bool:
        """Whether neither all rows nor a group are miscalibrated: what ``calibrant check`` decides without thresholds.

        `verdict` is that of all rows together: it can be calibrated where groups deviate in opposite directions.

        Examples
        --------
        >>> import calibrant as cb
        >>> high, low = (cb.ScoreTable.from_counts([0.3, 0.7], [2000, 2000], k) for k in ([900, 1600], [300, 1200]))
        >>> result = cb.evaluate({"north": high, "south": low}, n_resamples=99)
        >>> result.is_significant, result.groups["north"].verdict, result.passed
        (False, 'miscalibrated', False)
        """
        return not self.n_miscalibrated_groups and self.verdict != MISCALIBRATED

    @property
    def n_miscalibrated_groups(self) -> int:
        """Number of groups whose verdict is miscalibrated."""
        return sum(group.verdict == MISCALIBRATED for group in self.groups.values())

    @property
    def margin(self) -> float:
        """The margin; `evaluate` states its unit for each kind."""
        margin = self.settings.margin
        return margin.value if isinstance(margin, AbsoluteMargin | RelativeMargin) else margin

    @cached_property
    def rows_to_decide(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict; None for other verdicts."""
        return self.details.rows_to_decide(self) if self.verdict == "inconclusive" else None

    @property
    def log_odds_error(self) -> Interval:
        """The log-odds error with its confidence interval; for probabilities of events and of classes."""
        error = self.details.log_odds_error
        if error is None:
            raise self._undefined("log_odds_error", "that of probabilities", " Use .equivalence.")
        return error

    @property
    def mean_score(self) -> float:
        """Mean score of all rows; for binary probabilities."""
        return self._event_means("mean_score")[0]

    @property
    def event_rate(self) -> float:
        """Event rate of all rows; for binary probabilities."""
        return self._event_means("event_rate")[1]

    def _event_means(self, name: str) -> tuple[float, float]:
        """Return the mean score and the event rate, of which the attribute `name` was asked for."""
        means = self.details.event_means(self.table)
        if means is None:
            raise self._undefined(name, "that of probabilities of one event")
        return means

    def _undefined(self, name: str, kinds: str, hint: str = "") -> AttributeError:
        return AttributeError(f"kind must be {kinds} for {name}; got {self.kind!r}.{hint}")

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        found: dict[tuple[str, str], Note] = {}
        metrics = (notes for m in self.metrics.values() for notes in (m.interval.notes, m.null.notes))
        of_groups = () if self.heterogeneity is None else self.heterogeneity.notes
        for notes in (self.own_notes, of_groups, *metrics, *(test.notes for test in self.details.other_tests)):
            for note in notes:
                if note.code != "few_events":  # the tests have it; here their resampling p-values are shown
                    found.setdefault((note.code, note.template), note)
        return tuple(found.values())

    @cached_property
    def worst_first(self) -> "dict[Any, Evaluation]":
        """The groups, ordered by verdict (miscalibrated first), adjusted p-value and size of the deviation."""

        def key(item: tuple[Any, Evaluation]) -> tuple[float, ...]:
            group = item[1]
            pvalue = 1.0 if math.isnan(group.pvalue) else group.pvalue
            size = group.decision.deviation.value
            return sentences.severity(group.verdict), pvalue, 0.0 if math.isnan(size) else -size

        return dict(sorted(self.groups.items(), key=key))

    def without_inference(self, note: Note, n_clusters: int, mean: Estimate | None = None) -> "Evaluation":
        """Return the estimates without tests and intervals, for rows in too few clusters.

        Parameters
        ----------
        note : Note
            The reason.
        n_clusters : int
            Number of clusters.
        mean : Estimate, optional
            Calibration in the large as the mean over clusters, which is then the only test.

        Returns
        -------
        Evaluation
            Its verdict is inconclusive or, if the mean over clusters is significant, miscalibrated; limits and p-values
            are NaN.
        """
        return replace(
            self,
            metrics={name: metric.without_inference() for name, metric in self.metrics.items()},
            breakdowns={name: _without_inference(breakdown) for name, breakdown in self.breakdowns.items()},
            decision=self.decision.without_tests(mean),
            mean_over_clusters=mean,
            details=self.details.without_inference(n_clusters),
            own_notes=(*self.own_notes, note),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all results and settings as plain data for JSON, with the same keys for every kind.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, with a ``schema_version``; NaN and infinite numbers are None.
        """
        slow = self.details.slow_to_dict() if self.decision.adjusted_pvalue is None else {}  # else it is a group
        result: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "result": "evaluation",
            "kind": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "region": self.region,
            "passed": self.passed,
            "headline": self.headline(),
            **number("pvalue", self.pvalue),
            "n_rows": self.n_rows,
            **row_counts(self.table),
            **self.details.sizes(self.table),
            "metrics": [metric.to_dict() for metric in self.metrics.values()],
            "equivalence": self.decision.deviation.to_dict(),
            "coefficients": [coefficient.to_dict() for coefficient in self.coefficients],
            "tests": [test.to_dict() for test in self.tests.values()],
            "breakdowns": {name: finite(breakdown.to_dict()) for name, breakdown in self.breakdowns.items()},
            "details": self.details.to_dict() | slow,
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "by": self.by,
        }
        if self.serial_dependence is not None:
            result["serial_dependence"] = self.serial_dependence.to_dict()
        if self.heterogeneity is not None:
            result["heterogeneity"] = self.heterogeneity.to_dict()
        result["groups"] = [
            {"group": json_label(name), "adjusted": _numbers(self.adjusted[name]), **group.to_dict()}
            for name, group in self.groups.items()
        ]
        return result

    def to_json(self) -> str:
        """Return `to_dict` as JSON text.

        Returns
        -------
        str
            JSON text; NaN and infinite numbers are null.
        """
        return to_json_text(self.to_dict())

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per metric and group: value, interval, null range, p-value.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            One row per metric of all rows (group "all"), then one per metric of each group.
        """
        rows = self.rows(group="all")
        rows += [row for name, group in self.groups.items() for row in group.rows(group=str(name))]
        return frame_from_rows(rows, backend)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """Return one row per metric, with further columns before it.

        Parameters
        ----------
        **columns
            Columns to put first, by name; their values are repeated in each row.

        Returns
        -------
        list of dict
            One dict of column names and values per metric.
        """
        about = {**self.details.frame_columns(self.table), "verdict": self.verdict, "direction": self.direction}
        return [{**columns, **metric.to_row(), **about} for metric in self.metrics.values()]

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the verdict and the diagrams behind it; return a `calibrant.plots.EvaluationDisplay`.

        Parameters
        ----------
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        EvaluationDisplay
            The display, drawn; ``display.figure_`` is the figure.
        """
        from calibrant import plots

        return plots.EvaluationDisplay(self).plot(fig=fig)

    @overload
    def to_html(self, path: None = None, *, title: str = ..., audit: Any = ..., monitor: Any = ...) -> str: ...
    @overload
    def to_html(self, path: "FilePath", *, title: str = ..., audit: Any = ..., monitor: Any = ...) -> "FilePath": ...
    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str = "Calibration report",
        audit: Any = None,
        monitor: Any = None,
    ) -> str | PathLike[str]:
        """Return the report as one self-contained HTML page, or write it to `path`.

        Equal results give identical pages.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced, completely or not at all.
        title : str, default="Calibration report"
            Title of the page.
        audit : Audit, optional
            Adds a section on segments. It must be of the same rows and forecast: an audit with another number of rows,
            mean forecast or mean outcome is an error.
        monitor : Monitor, optional
            Adds a section on the monitored model.

        Returns
        -------
        str or path
            The page; where `path` is given, the path.
        """
        from calibrant import report

        page = report.evaluation_page(self, title=title, audit=audit, monitor=monitor)
        return report.write_page(page, path)

    def _text(self) -> ResultText:
        return ResultText(
            self.headline(),
            [*self.sentences(), self.sizes_text()],
            self.cells(),
            list(self.reasons()),
            self.notes,
            groups=self.group_table(),
        )

    def headline(self) -> str:
        """Return the verdict in one line.

        Returns
        -------
        str
            "Verdict: ", and the verdict with its direction.
        """
        return f"Verdict: {self.details.headline(self)}"

    def sentences(self) -> list[str]:
        """Return sentences that explain the verdict.

        Returns
        -------
        list of str
            One sentence per element; empty for points and distributions, whose headline explains the verdict.
        """
        return self.details.sentences(self)

    def sizes_text(self) -> str:
        """Format the number of rows and the means of predictions and outcomes.

        Returns
        -------
        str
            One line, as in the printed result.
        """
        return self.details.sizes_text(self.table)

    def cells(self) -> list[list[str]]:
        """Return the table of metrics as text; its first row is the header.

        Returns
        -------
        list of lists of str
            Name, value, interval, null range and adjusted p-value of each metric; empty text where one does not exist.
        """
        level = f"{100 * self.settings.confidence_level:g} % CI"
        header = ["", "value", level, "expected if calibrated", "adjusted p"]
        return [header, *([name, *metric.cells()] for name, metric in self.metrics.items())]

    def reasons(self) -> Iterable[str]:
        """State the tests behind the verdict, the coefficients and other tests.

        Returns
        -------
        iterable of str
            One sentence per element.
        """
        found = list(self.details.reasons(self))
        return found if self.heterogeneity is None else [*found, *self.heterogeneity.sentences()]

    def group_table(self) -> GroupTable | None:
        """Return the table of groups, worst first; None without groups. `to_frame` has all their metrics.

        Returns
        -------
        GroupTable or None
            Groups in the order of `worst_first`; None without groups.
        """
        if not self.groups:
            return None
        level = f"{100 * self.settings.confidence_level:g} %"
        by = str(self.by or "group")
        cells = [[str(name), *group.details.group_cells(group)] for name, group in self.worst_first.items()]
        return GroupTable.build(by, [[by, *self.details.group_header(level)], *cells])


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    return {key: each for name, value in values.items() for key, each in number(name, value).items()}


def to_json_text(result: dict[str, Any]) -> str:
    """Return plain data without NaN and infinity as JSON text."""
    return json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)


def _without_inference(breakdown: Any) -> Any:
    """Return a breakdown without tests and intervals, where it has these for dependent rows too."""
    strip = getattr(breakdown, "without_inference", None)
    return breakdown if strip is None else strip()
