"""`Regions`: which scores deviate, which ones were judged and which were not."""

import math
from dataclasses import dataclass
from typing import Any

from calibrant._support.formatting import line_html, short_percent
from calibrant._support.plain_data import PlainResult, plain

_SCORES = ("score", "range")  # places that are named by scores, not by rows
_NEARLY_1 = 0.9995


@dataclass(frozen=True, repr=False)
class Region(PlainResult):
    """A range of scores: its rows, events and expected events.

    Attributes
    ----------
    place : str
        "top" or "bottom" of the scores, "score" for a single one, or "range" where rows with a score of exactly 0 or 1,
        which belong to no region, lie beyond.
    low, high : float
        Lowest and highest score.
    n, share : float
        Number of rows (or their weight), and their share of all rows.
    events, expected : float
        Observed events, and the sum of the scores.
    ratio, ratio_low, ratio_high, level : float
        Observed over expected events (O/E) with its interval, which does not assume calibration.
    of : str
        The class, or the threshold of ordered classes, whose probability the score is; '' for one event.

    See Also
    --------
    Regions, BinaryDetails

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.001, 0.1, 0.5], [10_000, 3000, 400], [60, 300, 200])
    >>> cb.evaluate(table, n_resamples=19).details.regions.deviating[0]
    Region(score 0.001 (74.6 % of rows): O/E 6.00 (95 % CI 4.58 to 7.72))
    """

    place: str
    low: float
    high: float
    n: float
    share: float
    events: float
    expected: float
    ratio: float
    ratio_low: float
    ratio_high: float
    level: float
    of: str = ""

    @property
    def name(self) -> str:
        """The region in words: "top 0.1 % of rows (scores from 0.12)"."""
        rows, of = short_percent(self.share), f"{self.of}: " if self.of else ""
        if self.place == "score":
            return f"{of}score {self.low:.3g} ({rows} of rows)"
        if self.place == "range":
            highest = f"{self.high:.3g}" if self.high < _NEARLY_1 else "below 1"
            return f"{of}scores {self.low:.3g} to {highest} ({rows} of rows)"
        limit = f"from {self.low:.3g}" if self.place == "top" else f"up to {self.high:.3g}"
        return f"{of}{self.place} {rows} of rows (scores {limit})"

    @property
    def where(self) -> str:
        """The region after a verb: "in the top 0.1 % of rows (scores from 0.12)"."""
        of = f"for {self.of} " if self.of else ""
        name = self.name.removeprefix(f"{self.of}: ")
        return f"{of}at {name}" if self.place in _SCORES else f"{of}in the {name}"

    @property
    def noun(self) -> str:
        """The region with an article: "the top 0.1 % of rows (scores from 0.12)"."""
        return self.name if self.of or self.place in _SCORES else f"the {self.name}"

    def ratio_text(self) -> str:
        """Format O/E with its interval.

        Returns
        -------
        str
            Such as "O/E 0.95 (0.81 to 1.1)".
        """
        value, low, high = (_ratio(each) for each in (self.ratio, self.ratio_low, self.ratio_high))
        return f"O/E {value} ({low} to {high})"

    def counts_text(self) -> str:
        """Format observed and expected events.

        Returns
        -------
        str
            Such as "26 events, 69.1 expected".
        """
        events = f"{self.events:,.6g} event{'' if self.events == 1 else 's'}"
        return f"{events}, {_count(self.expected)} expected"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the name as plain data for JSON.

        Returns
        -------
        dict
            Numbers and text, as ``json.dumps`` takes them.
        """
        return {"name": self.name, **plain(self)}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        level = f"{100 * self.level:g} % CI"
        value, low, high = (_ratio(each) for each in (self.ratio, self.ratio_low, self.ratio_high))
        return f"Region({self.name}: O/E {value} ({level} {low} to {high}))"


@dataclass(frozen=True, repr=False)
class Regions:
    """What the tests of regions of the scores found; see the Notes of `evaluate`.

    Attributes
    ----------
    factor, wide_factor : float
        A judged region must have its odds shown right up to `factor`, one with few events up to `wide_factor`.
    n_tested, n_judged, n_judged_widely : int
        Number of regions that were tested, of those with enough information to be judged, and of those among them that
        are judged by the wide factor.
    deviating : tuple of Region
        Disjoint regions with a significant deviation, that with the largest difference of events first; empty if the
        deviation of all rows together is more significant.
    not_shown : Region or None
        The region whose odds are least shown to be right up to the factor, if that is the reason why the deviation is
        not shown to lie within the margin.
    not_judged : tuple of Region
        The largest regions with too little information: the verdict makes no claim for their scores.

    See Also
    --------
    Region, Evaluation

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.001, 0.1, 0.5], [10_000, 3000, 400], [12, 300, 200])
    >>> regions = cb.evaluate(table, n_resamples=19).details.regions
    >>> regions.n_tested, regions.n_judged, regions.not_judged
    (5, 5, ())
    """

    factor: float
    wide_factor: float
    n_tested: int
    n_judged: int
    n_judged_widely: int
    deviating: tuple[Region, ...] = ()
    not_shown: Region | None = None
    not_judged: tuple[Region, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts.
        """
        names = ("factor", "wide_factor", "n_tested", "n_judged", "n_judged_widely")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        found["deviating"] = [region.to_dict() for region in self.deviating]
        found["not_shown"] = None if self.not_shown is None else self.not_shown.to_dict()
        found["not_judged"] = [region.to_dict() for region in self.not_judged]
        return found

    _repr_html_ = line_html

    def __repr__(self) -> str:
        return f"Regions({self.n_tested} tested, {self.n_judged} judged, {len(self.deviating)} deviating)"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if 0.095 <= value < 99.5 or value == 0 else f"{value:.2g}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 999.5 or math.isinf(value) else f"{value:.3g}"
