"""Nested plain data with some values changed."""

import copy
from typing import Any

from tests.fuzz.choices import Choices


def places(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values in nested data, outer ones first; of long lists the first three."""
    inside = data.items() if isinstance(data, dict) else enumerate(data[:3]) if isinstance(data, list) else ()
    return [place, *(found for key, value in inside for found in places(value, (*place, key)))]


def mutate(data: Any, choices: Choices) -> Any:
    """Return a copy with one to three values replaced, removed, repeated, or exchanged with another value."""
    changed = copy.deepcopy(data)
    for _ in range(choices.whole(1, 3)):
        known = [place for place in places(changed) if place]
        if not known:
            break
        *outer, key = choices.pick(known)
        holder = changed
        for each in outer:
            holder = holder[each]
        kind = choices.whole(0, 5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif kind == 2:
            *others, last = choices.pick(known)
            source = changed
            for each in others:
                source = source[each] if isinstance(source, dict) and each in source else {}
            holder[key] = copy.deepcopy(source.get(last)) if isinstance(source, dict) else None
        else:
            holder[key] = choices.value()
    return changed
