"""What of a value of a function are fields of a result, which people see as columns."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any, Dict, List, Tuple

from .client import of_numpy

MOST_VALUE = 1 << 19  # bytes of JSON of a value that needs no pickle
MOST_FIELDS = 64 << 10  # bytes of JSON of the fields of another value
MOST_ARRAY = 1000  # numbers of an array that is a field

PICKLE = "pickle"  # the member with the value, if its fields are not all of it


def fields(value: Any) -> Tuple[Any, bool]:
    """Returns a value as JSON, and True; or, if JSON cannot have it, the members that JSON has, and False. JSON has no other types,
    numbers that are not finite, halves of characters, and lists that contain themselves, and objects may raise any exception.
    """
    with suppress(Exception):
        shown, whole = as_json(value, [MOST_VALUE])
        if whole and len(json.dumps(shown)) <= MOST_VALUE and not (isinstance(shown, dict) and PICKLE in shown):
            return shown, True
    found: Dict[str, Any] = {}
    size = 0
    for name, member in value.items() if isinstance(value, dict) else ():
        with suppress(Exception):
            of = as_json({name: member}, [MOST_FIELDS])[0]
            size += len(json.dumps(of))
            if name != PICKLE and size <= MOST_FIELDS:
                found.update(of)
    return found, False


def as_json(value: Any, left: List[int]) -> Tuple[Any, bool]:
    """Returns a value as JSON shows it, and whether this is the value. A number of NumPy is one of Python. left is how many bytes
    JSON may still have: it repeats a list that the value has several times, so it may be far larger than the value.
    """
    kind = type(value)
    left[0] -= 1 + (len(value) if kind is str else 0)
    if left[0] < 0:
        raise ValueError("the value is too large")
    if value is None or kind is bool or kind is int and value.bit_length() < 1000 or kind is float and math.isfinite(value):
        return value, True
    if kind is str:
        value.encode()
        return value, True
    if kind in (list, tuple):
        pairs = [as_json(inner, left) for inner in value]
        return [shown for shown, _ in pairs], kind is list and all(whole for _, whole in pairs)
    if isinstance(value, dict) and all(type(name) is str and as_json(name, left)[1] for name in value):
        members = {name: as_json(inner, left) for name, inner in value.items()}
        return {name: shown for name, (shown, _) in members.items()}, kind is dict and all(whole for _, whole in members.values())
    if getattr(getattr(value, "dtype", None), "kind", " ") in "biuf" and value.size <= MOST_ARRAY:
        return as_json(of_numpy(value), left)[0], value.ndim == 0
    raise TypeError(f"{kind.__name__} is not in JSON")
