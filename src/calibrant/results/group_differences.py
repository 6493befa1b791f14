"""`Heterogeneity`: whether groups differ, by how much, and estimates of groups that use all of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from calibrant._support.errors import Note
from calibrant._support.formatting import ResultMapping, line_html, p_text
from calibrant._support.plain_data import finite, frame_from_rows, number
from calibrant._support.plain_data import label as json_label
from calibrant.results.text import format_level
from calibrant.results.uncertainty import Estimate


class GroupEstimate(NamedTuple):
    """Deviation of one group: from its own rows, and shrunken towards the mean of all groups.

    Attributes
    ----------
    estimate, low, high : float
        From the rows of the group alone, with confidence interval.
    shrunken, shrunken_low, shrunken_high : float
        Shrunken towards the mean of all groups, with interval.

    See Also
    --------
    Heterogeneity

    Examples
    --------
    >>> from calibrant.results import GroupEstimate
    >>> GroupEstimate(0.9, 0.2, 1.6, 0.5, 0.0, 1.0).shrunken
    0.5
    """

    estimate: float
    low: float
    high: float
    shrunken: float
    shrunken_low: float
    shrunken_high: float


@dataclass(frozen=True, repr=False)
class Heterogeneity:
    """Heterogeneity between groups: a test that they differ, and the standard deviation between them.

    Attributes
    ----------
    name : str
        The deviation of a group: "log-odds shift" (observed less predicted log-odds, at the slope of all groups) or
        "mean error" (prediction less outcome).
    test : str
        Name of the test.
    pvalue : float
        p-value of the hypothesis that all groups have the same deviation. NaN if it cannot be tested.
    sd, low, high : float
        Standard deviation of the true deviations of groups with its confidence interval. An infinite limit means that
        the data do not bound it.
    level : float
        Confidence level of all intervals.
    n_groups : int
        Number of groups with information.
    mean : Estimate
        Mean deviation over groups, each with about the same weight if groups differ much.
    new_low, new_high : float
        Prediction interval: a new group of the same population of groups deviates by so much.
    groups : mapping of group to GroupEstimate
        Deviation of each group: `estimate`, `low`, `high` from its rows alone, and `shrunken`, `shrunken_low`,
        `shrunken_high`, which shrink it towards the mean (empirical Bayes). Shrunken intervals hold for 95 % of
        the groups on average; those of extreme groups are not selected by chance.
    unit : str
        Unit of deviations: "1" for log-odds, "y" for the unit of the outcome.
    notes : tuple of Note

    See Also
    --------
    evaluate, Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> hospital = np.repeat(np.arange(100), 50)
    >>> p = rng.random(5000)
    >>> odds = p / (1 - p) * np.exp(rng.normal(0, 0.5, 100))[hospital]
    >>> result = cb.evaluate(rng.random(5000) < odds / (1 + odds), p, by=hospital)
    >>> result.heterogeneity.pvalue < 1e-6, result.heterogeneity.low < 0.5 < result.heterogeneity.high
    (True, True)
    """

    name: str
    test: str
    pvalue: float
    sd: float
    low: float
    high: float
    level: float
    n_groups: int
    mean: Estimate
    new_low: float
    new_high: float
    groups: Mapping[Any, GroupEstimate] = field(default_factory=dict)
    unit: str = "1"
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", ResultMapping(self.groups))

    @property
    def is_known(self) -> bool:
        """Whether heterogeneity could be estimated."""
        return not math.isnan(self.sd)

    def is_significant(self, alpha: float) -> bool:
        """Return whether the test rejects equal groups.

        Parameters
        ----------
        alpha : float
            Significance level.

        Returns
        -------
        bool
        """
        return self.pvalue <= alpha

    def scaled(self, unit: float) -> "Heterogeneity":
        """Return the same result in another unit of deviations.

        Parameters
        ----------
        unit : float
            Factor of all deviations.

        Returns
        -------
        Heterogeneity
        """
        names = ("sd", "low", "high", "new_low", "new_high")
        sizes: dict[str, Any] = {name: unit * getattr(self, name) for name in names}
        of_mean = ("value", "standard_error", "low", "high")
        sizes["mean"] = replace(self.mean, **{name: unit * getattr(self.mean, name) for name in of_mean})
        groups = {key: GroupEstimate(*(unit * each for each in group)) for key, group in self.groups.items()}
        return replace(self, groups=groups, **sizes)

    def sd_text(self) -> str:
        """State the standard deviation between groups with its interval.

        Returns
        -------
        str
            "0.25 (95% CI 0.22 to 0.28)"; "unknown" where it could not be estimated.
        """
        if not self.is_known:
            return "unknown"
        shown = "unbounded" if math.isinf(self.high) else f"{self.high:.3g}"
        return f"{self.sd:.3g} ({format_level(self.level, 'CI')} {self.low:.3g} to {shown})"

    def sentences(self) -> list[str]:
        """State the test, the standard deviation, and the prediction interval.

        Returns
        -------
        list of str
            One sentence per element.
        """
        if not self.is_known:
            return [f"Heterogeneity between groups: unknown. {' '.join(note.text for note in self.notes)}".rstrip()]
        found = [
            f"Heterogeneity between {self.n_groups:,} groups: standard deviation of the {self.name} {self.sd_text()}; "
            f"test of equal groups {p_text(self.pvalue)}."
        ]
        if not math.isnan(self.new_low):
            limits = f"{self.new_low:+.3g} to {self.new_high:+.3g}"
            found.append(
                f"{self.name.capitalize()} over groups: {self.mean.value:+.3g} "
                f"({self.mean.low:+.3g} to {self.mean.high:+.3g}); "
                f"prediction interval for a new group {limits}."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts; NaN and infinite numbers are None.
        """
        numbers = {name: getattr(self, name) for name in ("pvalue", "sd", "low", "high", "new_low", "new_high")}
        result: dict[str, Any] = {"name": self.name, "test": self.test, "unit": self.unit, "n_groups": self.n_groups}
        for name, value in numbers.items():
            result |= number(name, value)
        result |= {"level": self.level, "mean": self.mean.to_dict()}
        result["groups"] = [{"group": json_label(key), **finite(each._asdict())} for key, each in self.groups.items()]
        result["notes"] = [note.to_dict() for note in self.notes]
        return result

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per group: its own estimate and the shrunken one, each with limits.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            Columns group, estimate, low, high, shrunken, shrunken_low, shrunken_high.
        """
        return frame_from_rows([{"group": str(key), **each._asdict()} for key, each in self.groups.items()], backend)

    _repr_html_ = line_html

    def __repr__(self) -> str:
        return (
            f"Heterogeneity({self.name}: sd {self.sd_text()} between {self.n_groups:,} groups, {p_text(self.pvalue)})"
        )
