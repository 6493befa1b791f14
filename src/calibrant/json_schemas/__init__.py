"""JSON Schemas of the JSON that Calibrant writes.

Each document has the keys ``result`` and ``schema_version``, which name its schema: ``evaluation`` and 4 are those of
``evaluation-4.json``. Files of calibrators have ``format`` and ``version`` instead. The schemas follow draft 2020-12.

>>> from calibrant import json_schemas
>>> json_schemas.load("evaluation")["$id"]
'urn:calibrant:schema:evaluation:4'
"""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from calibrant._support.errors import InputError

__all__ = ["load", "names"]

_PREFIX = "urn:calibrant:schema:"


def names() -> dict[str, int]:
    """Return the name of each kind of document and the version of its schema.

    Returns
    -------
    dict of str to int

    See Also
    --------
    load

    Examples
    --------
    >>> from calibrant import json_schemas
    >>> json_schemas.names()["check"]
    3
    """
    return {name: version for name, version in sorted(_versions()) if name != "parts"}


def load(name: str, *, version: int | None = None) -> dict[str, Any]:
    """Return a schema as plain data; schemas that it refers to are included, so that it needs no other file.

    Parameters
    ----------
    name : str
        Kind of document, the value of its key ``result``; `names` lists them.
    version : int, optional
        Version of the schema, the value of the key ``schema_version``. Default is the newest.

    Returns
    -------
    dict
        JSON Schema, draft 2020-12.

    See Also
    --------
    names

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant import json_schemas
    >>> import jsonschema  # doctest: +SKIP
    >>> result = cb.evaluate([0, 1] * 50, [0.2, 0.7] * 50, n_resamples=39)
    >>> jsonschema.validate(result.to_dict(), json_schemas.load("evaluation"))  # doctest: +SKIP
    """
    known = names()
    if name not in known:
        raise InputError(f"name must be one of {', '.join(known)}; got {name!r}.", argument="name", value=name)
    versions = sorted(each for found, each in _versions() if found == name)
    if version is not None and version not in versions:
        listed = " or ".join(map(str, versions))
        raise InputError(f"version of {name} must be {listed}; got {version!r}.", argument="version", value=version)
    schema = _read(name, versions[-1] if version is None else version)
    return {**schema, "$defs": {**schema.get("$defs", {}), **_needed(schema)}}


def _needed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other schemas that a schema refers to, directly or through others, by their ids."""
    found: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        for reference in _references(waiting.pop()):
            if reference not in found and reference != schema["$id"]:
                name, version = reference.removeprefix(_PREFIX).split(":")
                found[reference] = _read(name, int(version))
                waiting.append(found[reference])
    return found


def _references(value: Any) -> Iterator[str]:
    """Yield the ids of other schemas that a part of a schema refers to."""
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str) and target.startswith(_PREFIX):
            yield target.partition("#")[0]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _read(name: str, version: int) -> dict[str, Any]:
    text = files(__name__).joinpath(f"{name}-{version}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _versions() -> Iterator[tuple[str, int]]:
    for file in files(__name__).iterdir():
        found = re.fullmatch(r"(\w+)-(\d+)\.json", file.name)
        if found:
            yield found[1], int(found[2])
