"""The texts by which people know calls, such as fit(rate=0.1), in lists of tasks."""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
from enum import Enum
from numbers import Number
from pathlib import PurePath
from typing import Any, Callable, Iterator, Mapping, Sequence

MOST = 200  # characters of a text

SECRET = r"[\w-]*(?:pass(?:word|wd|phrase)|pwd|secret|token(?![a-z])|api_?key|private_?key|credential|authorization)[\w-]*"
SECRET_NAME = re.compile(SECRET, re.IGNORECASE)
SECRET_ITEM = re.compile(rf"({SECRET}['\"]?\s*[=:]\s*)('[^']*'?|\"[^\"]*\"?|[^\s,)\]}}]+)", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(://)[^/@\s'\"]+@")


class Shown(reprlib.Repr):
    """Shows small values of Python's own types. Others have their class: their repr may be slow, or show secrets."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 60, 60

    def repr_instance(self, x: Any, level: int) -> str:
        if x is None or isinstance(x, (bool, Number, str, bytes, PurePath, Enum)):
            return super().repr_instance(x, level)
        if isinstance(x, type) or inspect.isroutine(x):
            return short(x)
        shape = x.shape if hasattr(type(x), "shape") else ()
        inside = "×".join(map(str, shape)) if isinstance(shape, tuple) and shape else "…"
        return f"{type(x).__name__}({inside})"


def short(function: Any) -> str:
    """Returns the name of a function, without its module and the function that defines it."""
    name = getattr(function, "__qualname__", None)
    return str(name if isinstance(name, str) else type(function).__name__).rpartition("<locals>.")[2][:100]


def label(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], more: int = 0) -> str:
    """Returns the text of a call, which has `more` further calls in its task. It never fails, and it hides the values
    of arguments whose names are those of secrets.
    """
    called: Any = function
    while isinstance(called, functools.partial):
        called, args, kwargs = called.func, (*called.args, *args), {**called.keywords, **kwargs}
    try:
        text = f"{short(called)}({', '.join(shown(called, args, kwargs))})"
    except Exception:  # of an argument
        text = f"{short(called)}(…)"
    text = IN_ADDRESS.sub(r"\1…@", SECRET_ITEM.sub(r"\1…", text))
    text = "".join(c if c.isprintable() else "�" for c in text)
    text = text if len(text) <= MOST else text[: MOST - 2] + "…)"
    return f"{text} and {more} more" if more else text


def shown(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[str]:
    value = Shown().repr
    try:
        names = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some functions in C
        names = []
    for place, arg in enumerate(args[:20]):
        named = place < len(names) and names[place].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield item(names[place].name, arg) if named else value(arg)
    for name, arg in list(kwargs.items())[:20]:
        yield item(name, arg)


def item(name: str, arg: Any) -> str:
    name = name[:60]
    return f"{name}=…" if SECRET_NAME.fullmatch(name) else f"{name}={Shown().repr(arg)}"
