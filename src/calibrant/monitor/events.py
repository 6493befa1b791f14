"""Kinds of forecast that a monitor watches, and the binary events by which each kind is tested."""

from typing import Any

from calibrant._support.columns import check_classes
from calibrant._support.errors import Argument, InputError, check_option
from calibrant.monitor.observations import NO_EVENT, check_text, group_key

__all__ = ["BINARY", "DISTRIBUTION", "LEVELS", "MULTICLASS", "event_labels", "event_text", "given_kind", "rate_words"]

BINARY, MULTICLASS, DISTRIBUTION = "binary", "multiclass", "distribution"
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
MOST_CLASSES = 1_000


def given_kind(given: dict[str, Any]) -> dict[str, Any]:
    """Return kind, classes and levels as they are stored, of those that are given; classes or levels imply the kind."""
    implied = [kind for name, kind in (("classes", MULTICLASS), ("levels", DISTRIBUTION)) if name in given]
    if not implied and "kind" not in given:
        return {}
    kind = given.get("kind", implied[0] if implied else BINARY)
    check_option("kind", kind, (BINARY, MULTICLASS, DISTRIBUTION))
    if any(each != kind for each in implied):
        name = "levels" if DISTRIBUTION in implied and kind != DISTRIBUTION else "classes"
        raise InputError(Argument(name) + f" must be left out for forecasts of the kind {kind!r}.")
    found = {"kind": kind}
    if kind == MULTICLASS:
        return found | {"classes": _read_classes(given.get("classes"))}
    if kind == DISTRIBUTION:
        return found | {"levels": _read_levels(given.get("levels", LEVELS))}
    return found


def _read_classes(classes: Any) -> tuple[Any, ...]:
    if classes is None:
        raise InputError(
            Argument("classes") + " must be given for the kind 'multiclass': the class of each column of probabilities."
        )
    names = [each.item() if hasattr(each, "item") else each for each in check_classes(classes, "classes")]
    for name in names:
        if isinstance(name, str):
            check_text("classes", name)
    bad = [each for each in names if isinstance(each, bool) or not isinstance(each, (str, int))]
    if bad or len(names) > MOST_CLASSES:
        found = repr(bad[0]) if bad else f"{len(names):,}"
        raise InputError(
            Argument("classes") + f" must be at most {MOST_CLASSES:,} labels, text or whole numbers; got {found}.",
            value=classes,
        )
    return tuple(names)


def _read_levels(levels: Any) -> tuple[float, ...]:
    try:
        found = tuple(float(each) for each in levels)
    except (TypeError, ValueError):
        found = ()
    rising = all(a < b for a, b in zip((0.0, *found), (*found, 1.0), strict=True))
    if not found or not rising:
        raise InputError(
            Argument("levels") + f" must be numbers between 0 and 1, strictly increasing; got {levels!r}.", value=levels
        )
    return found


def event_labels(kind: str, classes: tuple[Any, ...] | None, levels: tuple[float, ...] | None) -> dict[str, Any]:
    """Return the label of each event that is tested, by its key: classes, levels, or the one event of binary scores."""
    labels = classes if kind == MULTICLASS else levels if kind == DISTRIBUTION else None
    return {NO_EVENT: None} if labels is None else {group_key(label): label for label in labels}


def event_text(kind: str, label: Any) -> str:
    """Return an event in words.

    >>> event_text("multiclass", "cat"), event_text("distribution", 0.9)
    ('class cat', 'above the 90 % quantile')
    """
    if kind == DISTRIBUTION:
        return f"{'below' if label <= 0.5 else 'above'} the {100 * label:g} % quantile"
    return f"class {label}"


def rate_words(kind: str) -> tuple[str, str, str]:
    """Return the words for both rates of a window, and for what they are rates of."""
    if kind == MULTICLASS:
        return "mean confidence", "accuracy", "most probable class"
    if kind == DISTRIBUTION:
        return "nominal", "observed", "coverage of the central interval"
    return "predicted", "observed", "event rate"
