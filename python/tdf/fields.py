"""What of a value of a function are fields of a result, which people see as columns."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Tuple

from .client import of_numpy

MOST_VALUE = 1 << 19  # bytes of JSON of a value that needs no pickle
MOST_FIELDS = 64 << 10  # bytes of JSON of the fields of another value
MOST_ARRAY = 1000  # numbers of an array that is a field

PICKLE = "pickle"  # the member with the value, if its fields are not all of it

# What JSON does not have: other types, numbers that are not finite, halves of characters, lists that contain themselves.
UNKNOWN = (TypeError, ValueError, RecursionError)


def fields(value: Any) -> Tuple[Any, bool]:
    """Returns a value as JSON, and True; or, if JSON cannot have it, the members that JSON has, and False."""
    try:
        shown, whole = as_json(value)
        if whole and len(json.dumps(shown)) <= MOST_VALUE and not (isinstance(shown, dict) and PICKLE in shown):
            return shown, True
    except UNKNOWN:
        pass
    found: Dict[str, Any] = {}
    size = 0
    for name, member in value.items() if isinstance(value, dict) else ():
        try:
            of = as_json({name: member})[0]
            size += len(json.dumps(of))
        except UNKNOWN:
            continue
        if name != PICKLE and size <= MOST_FIELDS:
            found.update(of)
    return found, False


def as_json(value: Any) -> Tuple[Any, bool]:
    """Returns a value as JSON shows it, and whether this is the value. A number of NumPy is one of Python."""
    kind = type(value)
    if value is None or kind is bool or kind is int and value.bit_length() < 1000 or kind is float and math.isfinite(value):
        return value, True
    if kind is str:
        value.encode()
        return value, True
    if kind in (list, tuple) and len(value) <= MOST_VALUE:
        pairs = [as_json(inner) for inner in value]
        return [shown for shown, _ in pairs], kind is list and all(whole for _, whole in pairs)
    if isinstance(value, dict) and all(type(name) is str and name.encode() is not None for name in value):
        members = {name: as_json(inner) for name, inner in value.items()}
        return {name: shown for name, (shown, _) in members.items()}, kind is dict and all(whole for _, whole in members.values())
    if getattr(getattr(value, "dtype", None), "kind", " ") in "biuf" and value.size <= MOST_ARRAY:
        return as_json(of_numpy(value))[0], value.ndim == 0
    raise TypeError(f"{kind.__name__} is not in JSON")
