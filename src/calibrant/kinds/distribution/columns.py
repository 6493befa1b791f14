"""Predictive distributions as columns of files: means and standard deviations, quantiles, or samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.columns import (
    ForecastColumns,
    Model,
    NamesOfColumns,
    Option,
    check_numbers,
    keyed_models,
    matching_columns,
)


def _find_models(option: str, given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    find = {
        "mean": _gaussian_models,
        "poisson": _poisson_models,
        "negative_binomial": _negative_binomial_models,
        "quantile": _quantile_models,
        "sample": _sample_models,
    }[option]
    return find(given, names)


def _poisson_models(given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    return _with_exposure(given, [Model(mean, (mean,)) for mean in dict.fromkeys(given["poisson"])])


def _negative_binomial_models(given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return one model per mean, with the dispersion that is given in the same place."""
    return _with_exposure(given, _pairs(given, "negative_binomial", "dispersion"))


def _with_exposure(given: Mapping[str, Any], models: Sequence[Model]) -> tuple[Model, ...]:
    """Return the models with the column of exposures, if one is given: that of all models."""
    exposures = tuple(dict.fromkeys(given["exposure"]))
    if len(exposures) > 1:
        raise InputError(Argument("exposure") + f" must name one column; got {', '.join(exposures)}.")
    return tuple(Model(model.name, (*model.columns, *exposures), exposures) for model in models)


def _gaussian_models(given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return one model per mean, with the standard deviation that is given in the same place."""
    return tuple(_pairs(given, "mean", "sd"))


def _pairs(given: Mapping[str, Any], first: str, second: str) -> list[Model]:
    """Return one model per column of the first option, with the column of the second one in the same place."""
    means, others = given[first], given[second]
    if len(means) != len(others):
        counts = f"got {len(means)} and {len(others)}."
        raise InputError(Argument(first) + " and " + Argument(second) + f" must be given equally often; {counts}")
    if len(set(means)) < len(means):
        raise InputError(Argument(first) + f" must name different columns; got {', '.join(means)}.")
    return [Model(mean, (mean, other)) for mean, other in zip(means, others, strict=True)]


def _quantile_models(given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return models whose columns are in the order of the levels."""
    models = keyed_models("quantile", given, names, name="quantiles", form="LEVEL=COLUMN", key="level", read=_level)
    return tuple(map(_sorted_by_level, models))


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not 0 < level < 1:
        raise InputError(
            Argument("quantile") + f" must have a level between 0 and 1, as in 0.05=q05; got {text!r}.", value=text
        )
    return level


def _sorted_by_level(model: Model) -> Model:
    pairs = sorted(zip(model.keys, model.columns, strict=True))
    return Model(model.name, tuple(column for _, column in pairs), tuple(level for level, _ in pairs))


def _sample_models(given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return one model of all columns that are named, and one model of each pattern."""
    entries = list(dict.fromkeys(given["sample"]))
    columns = tuple(entry for entry in entries if "*" not in entry)
    models = [Model("samples", columns)] if columns else []
    for pattern in (entry for entry in entries if "*" in entry):
        if pattern.count("*") > 1:
            raise InputError(Argument("sample") + f" must have one * at most; got {pattern!r}.", value=pattern)
        matches = matching_columns("sample", pattern, names())
        models.append(Model(pattern, tuple(column for column, _ in matches)))
    return tuple(models)


def _forecast(option: str, model: Model, values: Any) -> Any:
    from calibrant.forecasts.counts import NegativeBinomial, Poisson
    from calibrant.forecasts.distributions import Gaussian, Quantiles, Samples

    if option == "mean":
        return Gaussian(values[:, 0], values[:, 1])
    exposure = {"exposure": values[:, -1]} if option in ("poisson", "negative_binomial") and model.keys else {}
    if option == "poisson":
        return Poisson(values[:, 0], **exposure)
    if option == "negative_binomial":
        return NegativeBinomial(values[:, 0], values[:, 1], **exposure)
    return Quantiles(model.keys, values) if option == "quantile" else Samples(values)


COLUMNS = ForecastColumns(
    noun="distributions",
    options=(
        Option("mean", "Means of normal distributions; with --sd."),
        Option("sd", "Standard deviations; with --mean.", completes=("mean",)),
        Option("poisson", "Means of Poisson distributions of counts."),
        Option("negative_binomial", "Means of negative binomial distributions of counts; with --dispersion."),
        Option("dispersion", "Dispersions; with --negative-binomial.", completes=("negative_binomial",)),
        Option("exposure", "Exposures; means of counts are then rates.", completes=("poisson", "negative_binomial")),
        Option(
            "quantile",
            "Quantiles of distributions: once per level (0.05=q05), or one pattern such as 'q*'; * is the level.",
            metavar="LEVEL=COLUMN",
        ),
        Option(
            "sample",
            "Samples of distributions, such as members of an ensemble: columns, or a pattern such as 'member_*'.",
        ),
    ),
    outcome="number",
    check=check_numbers,
    forecast=_forecast,
    find_models=_find_models,
    is_one_column=False,
    special_options=("relative_margin",),
    margin=("distributions 0.01", "Distributions: coverage error; means have the margin of point predictions."),
)
