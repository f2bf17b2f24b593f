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
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type, Union

from .blobs import Put, mapped
from .errors import CallError, TDFError
from .fields import MOST_FIELDS, PICKLE, fields
from .labels import short
from .modules import SCRIPT, Modules, install
from .sources import file_of

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

# Arrays of at least this size are blobs, up to a number for each pickle. So are pickles of which more than this remains, or that
# would take long to compress. Two pickles and the names of arrays are smaller than the largest input.
SMALLEST_ARRAY, MOST_ARRAYS, MOST_PICKLE, LARGE = 64 << 10, 300, 54 << 10, 4 << 20

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
    """A pickler that refuses what only a notebook defines: workers could not load it."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__" and not file_of(sys.modules["__main__"]):
            raise pickle.PicklingError(f"{value.__qualname__} is defined here, and there is no script that workers could load")
        return NotImplemented


def pickled(value: Any, put: Optional[Put] = None) -> Tuple[bytes, List[str]]:
    """Returns the pickle of a value, and the names of its large arrays, which it stores as blobs."""
    names: List[str] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        """Reports whether an array stays in the pickle: the API keeps no blobs, or it is small, or not contiguous."""
        try:
            raw = buffer.raw()
        except BufferError:
            return True
        name = put(raw) if put and len(raw) >= SMALLEST_ARRAY and len(names) < MOST_ARRAYS else None
        if name is not None:
            names.append(name)
        return name is None

    if cloudpickle:
        return bytes(cloudpickle.dumps(value, protocol=5, buffer_callback=stays)), names
    data = io.BytesIO()
    Pickler(data, protocol=5, buffer_callback=stays).dump(value)
    return data.getvalue(), names


def pickle_of(value: Any, what: str, put: Optional[Put] = None) -> Tuple[bytes, List[str]]:
    try:
        return pickled(value, put)
    except TDFError:  # of a blob
        raise
    except Exception as error:
        advice = "leave out what belongs to this process, such as files, locks and connections"
        if not cloudpickle:
            advice = "move functions and classes to the top of a module that workers can import, or install cloudpickle; " + advice
        raise CallError(f"pickle {what}: {error}; {advice}") from error


def pack(value: Any, what: str, most: int, remedy: str, put: Optional[Put] = None) -> Tuple[str, List[str]]:
    """Returns a value as a text, and the names of its blobs. The text is a compressed pickle in base64, or the name of a blob with
    the pickle. If the pickle has arrays, their names and a semicolon come before it.
    """
    data, names = pickle_of(value, what, put)
    text, arrays = in_blob(data, put) or compressed(data), ",".join(names) + ";" if names else ""
    check_size(arrays + text, what, most, remedy)
    return arrays + text, names + ([text] if ":" in text else [])


def in_blob(data: bytes, put: Optional[Put]) -> Optional[str]:
    """Stores a pickle that is large, and returns the name of its blob."""
    if put is None or len(data) <= MOST_PICKLE * 3 // 4 or len(data) <= LARGE and len(compressed(data)) <= MOST_PICKLE:
        return None
    return put(memoryview(data))


def compressed(data: bytes, header: bytes = b"") -> str:
    return base64.b64encode(header + zlib.compress(data, 1)).decode()


def check_size(packed: str, what: str, most: int, remedy: str) -> None:
    if len(packed) > most:
        raise CallError(f"pickle {what}: {len(packed):,} bytes, more than {most:,}; {remedy}, or let the API keep blobs: set [http] blobs")


def unpack(packed: str, get: Callable[[str], Any]) -> Any:
    """Returns the value of a text of `pack`, whose blobs get returns by name."""
    arrays, _, text = packed.rpartition(";")
    data = get(text) if ":" in text else zlib.decompress(base64.b64decode(text))
    return pickle.loads(data, buffers=[get(name) for name in arrays.split(",") if name])


class Setup:
    """What the processes of an executor do besides its calls: they call an initializer at first, and end after some calls.

    Only calls with the same initializer share a process, so the key is that of the executor if there is one.
    """

    def __init__(
        self, key: str = "", initializer: Optional[Callable[..., object]] = None, initargs: Tuple[Any, ...] = (), most: int = 0,
        modules: Iterable[Any] = ()
    ) -> None:
        self.key = key if initializer else ""
        self.most = most
        call = functools.partial(initializer, *initargs) if initializer else None
        self.data = pickle_of(call, f"the initializer {name_of(initializer)}")[0] if initializer else b""
        self.modules = Modules(modules)

    def pack(
        self, function: Callable[..., Any], args: Any, kwargs: Any, retry_on: Exceptions, put: Optional[Put], header: bytes = b""
    ) -> Tuple[str, List[str]]:
        """Returns the input of a task that calls a function, and that is retried after some exceptions, and its blobs."""
        what = f"the call of {name_of(function)}"
        data, names = pickle_of((function, args, kwargs, retry_on), what, put)
        call = in_blob(data, put) or data
        setup = in_blob(self.data, put) or self.data
        script = not cloudpickle and any(b"__main__" in pickled for pickled in (data, self.data))
        modules = self.modules.store(script, (data, self.data), put)
        text = compressed(pickle.dumps((self.key, setup, self.most, call, names, modules), protocol=5), header)
        check_size(text, what, MOST_CALL, "write large arguments to a file that workers can read, and pass its name")
        return text, list(dict.fromkeys(names + [name for name in (setup, call, modules) if isinstance(name, str)]))


class Process:
    """The calls of a process: the key of their setup, the archive of their modules, and how many it has made."""

    def __init__(self) -> None:
        self.key: Optional[str] = None
        self.modules: Optional[str] = None
        self.calls = 0

    def run(
        self, data: bytes, function: str, parameters: Optional[Dict[str, Any]], loaded: Callable[[], None],
        paths: Optional[Dict[str, str]] = None, put: Optional[Put] = None
    ) -> Dict[str, Any]:
        """Makes a call, after it has said that the call is loaded. It returns the result of the task, and the error if
        the call raised an exception; or why this worker is unfit for the function, because it cannot load the call; or
        that the call needs another process. The answer says `last` if this process should make no further call.
        parameters are the arguments of a call of a sweep, or None; paths are the files with its blobs, and put stores those of
        its result.
        """
        try:
            key, setup, most, call, names, modules = pickle.loads(zlib.decompress(data))
        except (zlib.error, pickle.UnpicklingError, TypeError, ValueError) as error:
            return {**raised(CallError(f"load the call of {function}: {error}")), "retry": False}
        if self.key is not None and (self.key, self.modules) != (key, modules):
            return {"changed": True}
        get = functools.partial(blob_of, paths or {})
        try:
            setup, call = (get(of) if isinstance(of, str) else of for of in (setup, call))
            buffers = [get(name) for name in names]
            if modules is not None and self.key is None:
                install((paths or {})[modules])
        except FileNotFoundError as error:
            return {"missing": str(error)}
        except BaseException as error:  # of the script
            return {**raised(error), "retry": False, "last": True}
        first, self.key, self.modules, self.calls = self.key is None, key, modules, self.calls + 1
        answer = initialized(setup, function, loaded) if setup and first else None
        answer = answer or make(call, buffers, function, parameters, loaded, put)
        return {**answer, "last": True} if most and self.calls >= most else answer


def blob_of(paths: Dict[str, str], name: str) -> memoryview:
    if name not in paths:
        raise FileNotFoundError(f"the task does not name the blob {name!r:.100}")
    return mapped(paths[name], name)


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


def make(
    data: bytes, buffers: List[memoryview], function: str, parameters: Optional[Dict[str, Any]], loaded: Callable[[], None],
    put: Optional[Put]
) -> Dict[str, Any]:
    try:
        call = pickle.loads(data, buffers=buffers)
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
        packed, names = pack(value, f"the result of {function}", most, remedy, put)
        return {"result": {**shown, PICKLE: packed}, "made": list(dict.fromkeys(names))}
    except BaseException as error:
        if os.getpid() != process:
            leave(error)
        return {**raised(error), "retry": isinstance(error, retry_on), "last": isinstance(error, MemoryError)}


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
        packed = pack(error, "the exception", MOST_RESULT // 2, "make it smaller")[0]
        unpack(packed, str)  # not every exception can be unpickled
    except BaseException:
        packed = pack(CallError("".join(traceback.format_exception_only(type(error), error)).strip()[:1000]), "the exception", MOST_RESULT // 2, "")[0]
    return {"result": {PICKLE: packed, "traceback": text}, "error": text}
