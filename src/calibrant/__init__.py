"""Calibrant tells whether the probabilities that a model prints can be believed, and repairs them."""

from importlib import import_module

_MODULES = ("bins", "losses", "metrics", "norms", "optimality", "significance")

_HOME = {
    name: module
    for module, names in {
        "bins": "Edges EqualWidth PAVA PAVABC Quantile",
        "errors": "CalibrantWarning InputError Note",
        "gce": "Breakdown GCE",
        "metrics": "ACE ECE MCE METRICS RMSCE TCE ace ece mce rmsce tce",
        "optimality": "OptimalBins mean_within_error total_error",
        "partition": "Partition",
        "table": "ScoreTable",
        "versions": "__version__ show_versions",
    }.items()
    for name in names.split()
}

__all__ = [*sorted(_HOME), *_MODULES]  # noqa: PLE0604  (built from the map; __init__.pyi spells it out)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
