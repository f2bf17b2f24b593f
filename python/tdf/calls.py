"""Calls of functions as tasks: the pickles in which functions, arguments, results and exceptions travel."""

from __future__ import annotations

import base64
import functools
import importlib
import io
import json
import os
import pickle
import re
import socket
import sys
import threading
import traceback
import zlib
from concurrent.futures import BrokenExecutor
from types import FunctionType
from typing import Any, Callable, Dict, Optional, Tuple, Type, Union

from .errors import CallError
from .fields import MOST_FIELDS, PICKLE, fields
from .labels import short

cloudpickle: Any
try:
    cloudpickle = importlib.import_module("cloudpickle")
except ImportError:
    cloudpickle = None

PROGRAM = "tdf.call"

Exceptions = Union[Type[BaseException], Tuple[Type[BaseException], ...]]

PYTHON = "%d.%d" % sys.version_info[:2]

# The limits of the API, for base64: 128 KiB for an input, and 1 MiB for a result, with space for its other members.
MOST_CALL, MOST_RESULT = (128 << 10) - 1, (1 << 20) - (40 << 10)
MOST_TRACEBACK = 30_000

MOST_TEXT, PROGRESS_BYTES = 200, 2048  # characters of the text of a progress, and bytes of its line

# The first line of the input of a sweep's task, whose metadata are its parameters.
HEADER = re.compile(rb"#!tdf\.call (\S+) ([^\n]*)\n")

REMEDY = "a worker needs the modules that the script has: install them for this Python, or start the worker in their directory"


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", "") or type(function).__name__
    return f"{getattr(function, '__module__', None) or 'builtins'}.{name}"


def header_of(function: Callable[..., Any]) -> bytes:
    while isinstance(function, functools.partial):
        function = function.func
    name = f"{getattr(function, '__module__', None) or 'builtins'}"[:200] + ":" + short(function)
    return f"#!{PROGRAM} {PYTHON} {'_'.join(name.split())}\n".encode(errors="replace")


class Pickler(pickle.Pickler):
    """A pickler that refuses what only this script defines: workers could not load it."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the script, which workers do not have")
        return NotImplemented


def pickled(value: Any) -> bytes:
    if cloudpickle:
        return bytes(cloudpickle.dumps(value, protocol=5))
    data = io.BytesIO()
    Pickler(data, protocol=5).dump(value)
    return data.getvalue()


def pickle_of(value: Any, what: str) -> bytes:
    try:
        return pickled(value)
    except Exception as error:
        advice = "leave out what belongs to this process, such as files, locks and connections"
        if not cloudpickle:
            advice = "move functions and classes to the top of a module that workers can import, or install cloudpickle; " + advice
        raise CallError(f"pickle {what}: {error}; {advice}") from error


def pack(value: Any, what: str, most: int, remedy: str) -> str:
    """Returns a value as a compressed pickle in base64."""
    return compressed(pickle_of(value, what), what, most, remedy)


def compressed(data: bytes, what: str, most: int, remedy: str, header: bytes = b"") -> str:
    packed = base64.b64encode(header + zlib.compress(data, 1)).decode()
    if len(packed) > most:
        raise CallError(f"pickle {what}: {len(packed):,} bytes, more than {most:,}; {remedy}")
    return packed


def unpack(packed: str) -> Any:
    return pickle.loads(zlib.decompress(base64.b64decode(packed)))


class Setup:
    """What the processes of an executor do besides its calls: they call an initializer at first, and end after some calls.

    Only calls with the same initializer share a process, so the key is that of the executor if there is one.
    """

    def __init__(self, key: str = "", initializer: Optional[Callable[..., object]] = None, initargs: Tuple[Any, ...] = (), most: int = 0) -> None:
        self.key = key if initializer else ""
        self.most = most
        call = functools.partial(initializer, *initargs) if initializer else None
        self.data = pickle_of(call, f"the initializer {name_of(initializer)}") if initializer else b""

    def pack(self, function: Callable[..., Any], args: Any, kwargs: Any, retry_on: Exceptions, header: bytes = b"") -> str:
        """Returns the input of a task that calls a function, and that is retried after some exceptions."""
        what = f"the call of {name_of(function)}"
        call = self.key, self.data, self.most, pickle_of((function, args, kwargs, retry_on), what)
        remedy = "write large arguments to a file that workers can read, and pass its name"
        return compressed(pickle.dumps(call, protocol=5), what, MOST_CALL, remedy, header)


class Process:
    """The calls of a process: the key of their setup, and how many it has made."""

    def __init__(self) -> None:
        self.key: Optional[str] = None
        self.calls = 0

    def run(self, data: bytes, function: str, parameters: Optional[Dict[str, Any]], loaded: Callable[[], None]) -> Dict[str, Any]:
        """Makes a call, after it has said that the call is loaded. It returns the result of the task, and the error if
        the call raised an exception; or why this worker is unfit for the function, because it cannot load the call; or
        that the call needs another process. The answer says `last` if this process should make no further call.
        parameters are the arguments of a call of a sweep, or None.
        """
        try:
            key, setup, most, call = pickle.loads(zlib.decompress(data))
        except (zlib.error, pickle.UnpicklingError, TypeError, ValueError) as error:
            return {**raised(CallError(f"load the call of {function}: {error}")), "retry": False}
        if self.key not in (None, key):
            return {"changed": True}
        first, self.key, self.calls = self.key is None, key, self.calls + 1
        answer = initialized(setup, function, loaded) if setup and first else None
        answer = answer or make(call, function, parameters, loaded)
        return {**answer, "last": True} if most and self.calls >= most else answer


def initialized(setup: bytes, function: str, loaded: Callable[[], None]) -> Optional[Dict[str, Any]]:
    """Calls an initializer. It returns an answer if the process cannot make calls."""
    try:
        initialize: Callable[[], None] = pickle.loads(setup)
    except BaseException as error:
        return unfit(f"the initializer of {function}", error)
    loaded()
    process = os.getpid()
    try:
        initialize()
        if os.getpid() != process:
            leave()
        return None
    except BaseException as error:
        if os.getpid() != process:
            leave(error)
        broken = BrokenExecutor(f"the initializer has failed: {type(error).__name__}: {error}"[:1000])
        return {**raised(broken.with_traceback(error.__traceback__)), "retry": False, "last": True}


def unfit(what: str, error: BaseException) -> Dict[str, Any]:
    return {"unfit": f"load {what} on {where()}: {type(error).__name__}: {error}; {REMEDY}"}


def make(data: bytes, function: str, parameters: Optional[Dict[str, Any]], loaded: Callable[[], None]) -> Dict[str, Any]:
    try:
        call = pickle.loads(data)
    except BaseException as error:  # also of the modules that it imports
        return unfit(f"the call of {function}", error)
    loaded()
    process = os.getpid()
    retry_on: Exceptions = ()
    try:
        called, args, kwargs, retry_on = call
        value = called(*args, **kwargs, **parameters or {})
        if os.getpid() != process:
            leave()
        shown, whole = ({}, False) if parameters is None else fields(value)
        if whole:
            return {"result": shown}
        remedy = "write it to a file that the caller can read, and return the name of the file"
        most = MOST_RESULT - (MOST_FIELDS if shown else 0)
        return {"result": {**shown, PICKLE: pack(value, f"the result of {function}", most, remedy)}}
    except BaseException as error:
        if os.getpid() != process:
            leave(error)
        return {**raised(error), "retry": isinstance(error, retry_on)}


_progress: Optional[int] = None  # the file of a slot's process for the progress of its calls


def report_progress_in(file: int) -> None:
    global _progress
    _progress = file


def in_call() -> bool:
    """Reports whether this is the process of a worker's slot, or one that it has forked."""
    return _progress is not None


def progress(done: float, of: float = 1.0, text: Optional[str] = None) -> None:
    """Shows how far the call is: done of a number of steps, or a fraction. A text replaces "3 of 10".

    It costs little, so call it for each step, also from threads and forked processes. In a program of TDF, it writes
    the file `progress` (docs/programs.md). Elsewhere, it has no effect.
    """
    fraction = done / of if of else 0.0
    fraction = min(1.0, max(0.0, fraction)) if fraction == fraction else 0.0
    shown = " ".join((f"{done:g} of {of:g}" if text is None and of != 1 else text or "").split())
    try:
        if _progress is not None:
            line = json.dumps({"fraction": fraction, "text": shown[:MOST_TEXT]}, ensure_ascii=False).encode(errors="replace")
            os.pwrite(_progress, line.ljust(PROGRESS_BYTES), 0)
        elif "TDF_DIR" in os.environ:
            path = os.path.join(os.environ["TDF_DIR"], "progress")
            with open(f"{path}.{threading.get_native_id()}", "w", encoding="utf-8", errors="replace") as file:
                file.write(f"{fraction:.6f} {shown[:MOST_TEXT]}\n")
            os.replace(file.name, path)
    except OSError:  # as of a full disk: the call goes on
        pass


def read_progress(line: bytes) -> Optional[Dict[str, Any]]:
    """Returns what `progress` has written, or None if it is half written."""
    try:
        found = json.loads(line)
        return {"fraction": min(1.0, max(0.0, float(found["fraction"]))), "text": str(found["text"])}
    except (ValueError, TypeError, KeyError):
        return None


def where() -> str:
    return f"{socket.gethostname()}, {sys.executable}"


def leave(error: Optional[BaseException] = None) -> None:
    """Ends a process that the function has forked and that has left the function: only its parent answers."""
    status: Any = int(error is not None)
    if isinstance(error, SystemExit) and isinstance(error.code or 0, int):
        status = error.code or 0
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            status = status or 1  # as of an interpreter that ends
    os._exit(status & 255)


def raised(error: BaseException) -> Dict[str, Any]:
    """Returns the result and the error of a call that raised an exception."""
    of_function = error.__traceback__ and error.__traceback__.tb_next  # without the frame of make
    text = "".join(traceback.format_exception(type(error), error, of_function))[-MOST_TRACEBACK:]
    try:
        error.__cause__ = error.__context__ = error.__traceback__ = None
        packed = pack(error, "the exception", MOST_RESULT // 2, "make it smaller")
        unpack(packed)  # not every exception can be unpickled
    except BaseException:
        packed = pack(CallError(f"{type(error).__name__}: {error}"[:1000]), "the exception", MOST_RESULT // 2, "")
    return {"result": {PICKLE: packed, "traceback": text}, "error": text}
