"""Check the options of an evaluation or a comparison against the defaults of the kind of forecast."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from calibrant._support.arrays import Column
from calibrant._support.errors import Argument, InputError, Text, check_resample_count, check_share
from calibrant._support.random_streams import RandomState
from calibrant.inference.resampling import check_resamples
from calibrant.kinds.base import Defaults, Kind
from calibrant.metrics.bins import EqualSize, choose_bins
from calibrant.results.settings import AbsoluteMargin, Focus, Margin, RelativeMargin, Settings


def check_settings(
    kind: Kind,
    given: Mapping[str, Any],
    margin: Margin | None,
    alpha: float,
    confidence_level: float,
    n_resamples: int | None,
    random_state: RandomState,
) -> tuple[Settings, dict[str, Any]]:
    """Check the options of an evaluation of one kind of forecast; return its settings, and the options for its rows.

    `given` has the options that not all kinds have; None stands for the default. `alpha` is the level of the tests, and
    of TCE among the default metrics. `n_bins` are bins of the default metrics, unless the kind takes `bins`: then they
    are those of the bias by bin.
    """
    defaults: Defaults = kind.defaults.DEFAULTS
    options = {name: value for name, value in given.items() if value is not None}
    for name, value in options.items():
        if name not in defaults.options:
            raise InputError(Argument(name) + f" must be omitted for forecasts of kind {kind.name!r}; got {value!r}.")
    checked = _check_margin(defaults.margin if margin is None else margin, defaults)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(Argument("alpha") + f" must lie below 0.5; got {alpha!r}.", value=alpha)
    level = float(check_share("confidence_level", confidence_level))
    count = defaults.n_resamples if n_resamples is None else n_resamples
    count = check_resample_count(count, least=defaults.least_resamples)
    if isinstance(checked, AbsoluteMargin):  # its test uses resampling
        check_resamples(count, alpha)
    used = count if defaults.n_resamples else 0
    metrics, costs, n_bins, bins = (options.pop(name, None) for name in ("metrics", "costs", "n_bins", "bins"))
    if "bins" in defaults.options and (bins is not None or n_bins is not None):
        n_bins, bins = None, choose_bins(EqualSize, n_bins, bins)
    panel = kind.defaults.panel(metrics, alpha=float(alpha), n_bins=n_bins, costs=costs)
    focus = options.get("focus")
    if focus is not None:
        focus = options["focus"] = Focus.parse(focus)
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    return Settings(checked, float(alpha), level, used, seed, panel, bins, margin is None, focus), options


def time_option(y_true: Any, time: Column | None) -> dict[str, Any]:
    """Return the option `time` for reading rows, empty if it is not given; a table has no times."""
    if time is None:
        return {}
    if isinstance(y_true, Mapping) or hasattr(y_true, "n_dropped"):
        raise InputError(
            Argument("time")
            + f" must be given with rows; got a {type(y_true).__name__}, which does not contain their times.",
            hint="Pass outcomes, forecasts and times as columns.",
        )
    return {"time": time}


def _check_margin(margin: Margin, defaults: Defaults) -> Margin:
    """Return the margin if it is a positive number, or an absolute margin where the kind has one."""
    if isinstance(margin, AbsoluteMargin) and defaults.takes_absolute_margin:
        return margin
    if isinstance(margin, RelativeMargin) and defaults.takes_relative_margin:
        return margin
    number: Any = margin
    if isinstance(number, Real) and not isinstance(number, bool) and 0 < float(number) <= defaults.largest_margin:
        return float(number)
    hint: str | Text = f"The default is {defaults.margin:g}."
    if defaults.takes_absolute_margin:
        hint = (
            "0.1 means odds that are accurate to about 10 % on average. For a margin of ACE use "
            + Argument("absolute_margin", python="cb.AbsoluteMargin")
            + "."
        )
    if defaults.takes_relative_margin:
        relative = Argument("relative_margin", python="cb.RelativeMargin")
        hint = f"The default is {defaults.margin:g}. For a share of the mean outcome use " + relative + "."
    condition = f" must be a positive number {defaults.unit}, at most {defaults.largest_margin:g}; got {margin!r}."
    raise InputError(Argument("margin") + condition, hint=hint, value=margin)
