"""An Executor whose calls are tasks, which `python -m tdf.worker` runs on any machine."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import itertools
import json
import logging
import math
import numbers
import operator
import re
import shlex
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar

from .blobs import Lost, Put
from .calls import PROGRAM, PYTHON, Exceptions, Setup, name_of, unpack
from .client import MOST_BYTES, Client, Row
from .errors import APIError, CallError, TaskError, TDFError, check_number
from .labels import label
from .modules import refuse_while_loading

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")

log = logging.getLogger("tdf")

FINISHED = ("succeeded", "failed", "timed_out", "expired")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
AT_ONCE = 250  # tasks that one call opens or archives
MOST_NAME = 500  # characters of the name of a function: a task has at most 4 KiB of metadata
LOOK_AGAIN = 5.0  # seconds without a result after which the executor looks whether others have cancelled tasks, or no worker runs

MOST_SECONDS = 10**9  # of a timeout: 31 years

RESOURCE = re.compile(r"[a-z][a-z0-9._/-]*")
MEMORY = re.compile(r"\d+(\.\d+)?[KMGT]?")

NO_WORKER = ("no_worker", "unserved", "no_handler")  # codes of reasons (docs/operations.md)

# What the caller has read is of no use for longer: 1,000 short calls a second would fill Redis, and large results the disk. What it
# never reads is removed after a week.
KEPT = {"keep_archived": 60, "keep_finished": 7 * 86400}

Call = Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]


def check_properties(action: str, properties: Mapping[str, Any]) -> None:
    """Refuses numbers that no task has. NaN would be null in JSON, which stands for the default."""
    for name, value in properties.items():
        if name == "timeout" and not isinstance(value, str):
            check_number(action, name, value, 0, MOST_SECONDS, "; leave it out for no limit")
        elif isinstance(value, numbers.Real) and not isinstance(value, bool):
            check_number(action, name, value, -1e18, 1e18)


def with_request(action: str, properties: Mapping[str, Any]) -> Row:
    """Returns the properties of tasks. cores, memory, gpus and the names of a dict `resources` become their request."""
    rest = dict(properties)
    if rest.get("tags"):
        raise TDFError(f"{action}: workers for functions offer no tags; start those of some machines with --queue NAME, and set queue to it")
    amounts = {name: rest.pop(name) for name in ("cores", "memory", "gpus") if rest.get(name) is not None}
    if isinstance(rest.get("resources"), Mapping):
        amounts.update(rest.pop("resources"))
    if not amounts:
        return rest
    if rest.get("resources"):
        raise TDFError(f"{action}: want either resources={rest['resources']!r}, or {', '.join(amounts)}")
    return {**rest, "resources": " ".join(f"{'cpus' if name == 'cores' else name}={amount_of(action, name, of)}" for name, of in amounts.items())}


def amount_of(action: str, name: str, amount: Any) -> str:
    if not isinstance(name, str) or not RESOURCE.fullmatch(name):
        raise TDFError(f"{action}: resources has the name {name!r}; want a small letter, and then small letters, digits and . _ / -")
    if name == "memory" and isinstance(amount, str) and MEMORY.fullmatch(amount):
        return amount
    if isinstance(amount, bool) or amount != 0:
        check_number(action, name, amount, 0.0001, 1e18, ", or 0" + (', or a text such as "4G"' if name == "memory" else ""))
    return f"{float(amount):.4f}".rstrip("0").rstrip(".") if name != "memory" else str(math.ceil(float(amount)))


class RemoteTraceback(Exception):
    """The cause of an exception of a function: where it was raised, on the worker."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Future(concurrent.futures.Future[T]):
    """The result of a call, as concurrent.futures expects it, with the id of its task."""

    def __init__(self, executor: "Executor") -> None:
        super().__init__()
        self.id = 0
        self._executor = executor

    def result(self, timeout: Optional[float] = None) -> T:
        error = self.exception(timeout)
        if error is not None:  # that of the base class returns None for an exception that is false
            try:
                raise error
            finally:
                del error, self  # which the traceback would keep
        return super().result(0)

    def __reduce__(self) -> Any:
        raise TypeError("a future is no argument; pass its result")

    def running(self) -> bool:
        """Reports whether a worker has begun the call, and its result is not known here yet. This asks the API."""
        if self.done() or not self.id:
            return False
        try:
            task = self._executor.client.task(self.id)
        except APIError:  # it was removed
            return False
        return task["state"] != "open" and task.get("outcome") not in ("cancelled", "expired") and not self.done()

    def cancel(self) -> bool:
        """Cancels the call if no worker has begun it, and reports whether it is cancelled."""
        if self.done():
            return self.cancelled()
        return bool(self._executor._cancel_all([self]))


class Executor(concurrent.futures.Executor):
    """Runs functions on the workers of `python -m tdf.worker`.

    client is a tdf.Client, or what tdf.up has returned. The calls are the tasks of a campaign, whose name
    begins with `campaign`; with a submitter's token, that begins with the name of the token and a slash. Other
    properties are those of all tasks, such as queue="gpu", max_losses=10, timeout=3600 or max_fails=2. cores=2, memory="4G", gpus=1
    and resources={"licence": 1} are what each call needs of a worker that offers resources. By default,
    an exception of a function fails its call at once. With max_fails, up to this number of failures the call runs
    again, after any Exception, or only after those of retry_on, such as (OSError, TimeoutError). initializer is
    called with initargs in each process before its first call, and with max_tasks_per_child, a process makes at
    most so many calls; a task of map is one call. modules are further modules that travel with the calls, besides those of
    the project, which are beside the script. If the script ends
    before its calls, they still run, and their results are removed after a week. With tdf.up, the script waits for
    them at its end, except after Ctrl-C.
    """

    def __init__(
        self, client: Any = None, *, campaign: Optional[str] = None, retry_on: Optional[Exceptions] = None,
        initializer: Optional[Callable[..., object]] = None, initargs: Tuple[Any, ...] = (),
        max_tasks_per_child: Optional[int] = None, modules: Iterable[Any] = (), **properties: Any
    ) -> None:
        refuse_while_loading("make an Executor")
        properties = with_request("make an Executor", properties)
        check_properties("make an Executor", properties)
        if retry_on is None:
            retry_on = Exception if properties.get("max_fails") else ()
        elif not properties.get("max_fails"):
            raise TDFError("make an Executor: retry_on has no effect without max_fails; say how many failures a call may have, such as max_fails=2")
        issubclass(Exception, retry_on)  # raises TypeError for what is no exception
        self.retry_on = retry_on
        self.client: Client = getattr(client, "client", client) or Client()
        if not isinstance(self.client, Client):
            raise TypeError(
                f"make an Executor: client is {client!r}; want a tdf.Client, or what tdf.up has returned; the workers decide how many calls run at once"
            )
        self.campaign = f"{campaign or 'python'}-{uuid.uuid4().hex[:12]}"
        if initializer is not None and not callable(initializer):
            raise TypeError("make an Executor: the initializer is no function")
        if max_tasks_per_child is not None and max_tasks_per_child < 1:
            raise ValueError(f"make an Executor: max_tasks_per_child is {max_tasks_per_child!r}; want at least 1")
        most = 0 if max_tasks_per_child is None else operator.index(max_tasks_per_child)  # raises TypeError for 2.5
        self._setup = Setup(self.campaign, initializer, initargs, most, modules)
        self.properties: Row = {"fail_on": "exit", **KEPT, **properties}
        self._futures: Dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._warned = False
        self._news = threading.Event()  # there are futures, or the executor was shut down
        self._thread: Optional[threading.Thread] = None
        if self.client.up is not None:  # the calls would end with the script
            atexit.register(self._finish, self.client.up)

    # What concurrent.futures expects

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Opens a task that calls fn, and returns its future."""
        return self._submit([(fn, args, kwargs)])[0]

    def put_of(self) -> Put:
        """Returns what stores the arrays of one call, or of one map."""
        return self.client.blobs.remember()

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1,
        buffersize: Optional[int] = None
    ) -> Iterator[T]:
        """Returns the results of fn for all arguments, in their order.

        A task makes chunksize calls: for functions of milliseconds, choose one that lasts a second. With a
        buffersize, at most so many tasks are open at once, and the arguments are read as results are; without,
        all are opened at first.
        """
        if chunksize < 1:
            raise ValueError(f"map: chunksize is {chunksize}; want at least 1")
        check_number("map", "timeout", timeout, 0, threading.TIMEOUT_MAX)
        end = None if timeout is None else time.monotonic() + timeout
        rows = zip(*iterables)
        chunks = iter(lambda: list(itertools.islice(rows, chunksize)), [])
        calls: Iterator[Call] = ((call_all, (fn, chunk), {}) for chunk in chunks)
        futures: Deque[Future[Any]] = deque()
        fill = functools.partial(self._fill, futures, calls, buffersize, self.put_of())
        fill()
        return self._results(futures, fill if buffersize is not None else None, end)

    def _fill(self, futures: Deque[Future[Any]], calls: Iterator[Call], most: Optional[int], put: Put) -> None:
        while most is None or len(futures) <= most // 2:
            some = list(itertools.islice(calls, AT_ONCE if most is None else min(AT_ONCE, max(1, most - len(futures)))))
            if not some:
                return
            futures.extend(self._submit(some, put))

    def _results(self, futures: Deque[Future[Any]], fill: Optional[Callable[[], None]], end: Optional[float]) -> Iterator[Any]:
        try:
            while futures:
                yield from futures[0].result(None if end is None else max(0.0, end - time.monotonic()))
                futures.popleft()
                if fill is not None:
                    fill()
        finally:
            self._cancel_all(futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more calls, and waits for those that were submitted. With cancel_futures, it cancels those
        that have not begun.
        """
        with self._lock:
            self._closed = True
            thread, futures = self._thread, list(self._futures.values())
        self._news.set()
        if cancel_futures:
            self._cancel_all(futures)
        if wait and thread is not None:
            thread.join()
        if wait:
            atexit.unregister(self._finish)  # which would keep the executor

    def _finish(self, up: "subprocess.Popen[str]") -> None:
        if up.poll() is None and getattr(sys, "last_type", None) is not KeyboardInterrupt:
            self.shutdown()

    # Tasks

    def _submit(self, calls: List[Call], put: Optional[Put] = None) -> List[Future[Any]]:
        put = put or self.put_of()
        tasks = [self._task(call, put) for call in calls]
        with self._lock:
            if self._closed:
                raise RuntimeError("submit: the executor was shut down; make another one")
        futures: List[Future[Any]] = [Future(self) for _ in calls]
        for future, id in zip(futures, self.client.open(tasks)):
            future.id = id
        with self._lock:
            self._futures.update((future.id, future) for future in futures)
            if self._thread is None or not self._thread.is_alive():  # a fork has no thread of its parent
                self._thread = threading.Thread(target=self._read_all, name=f"tdf {self.campaign}", daemon=True)
                self._thread.start()
        self._news.set()
        return futures

    def _task(self, call: Call, put: Put) -> Row:
        function, args, kwargs, more = self.shown(call)
        meta = {"function": name_of(function)[:MOST_NAME], "call": label(function, args, kwargs, more), "python": PYTHON}
        packed, blobs = self._setup.pack(*call, self.retry_on, put)
        of: Row = {"program": PROGRAM, "campaign": self.campaign, "input": packed, "input_encoding": "base64", "meta": json.dumps(meta, ensure_ascii=False)}
        if blobs:
            of["blobs"] = blobs
        # a worker may open no further calls, because it would choose the code that other workers run
        return {**self.properties, **of, "generations": 0}

    def shown(self, call: Call) -> Tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any], int]:
        """Returns the function and the arguments by which people know a task, and how many further calls it makes."""
        if call[0] is not call_all:
            return (*call, 0)
        function, rows = call[1]
        return function, rows[0], {}, len(rows) - 1

    def _cancel_all(self, futures: Iterable[Future[Any]]) -> List[Future[Any]]:
        """Cancels the tasks of futures that no worker has begun, and returns the futures that it has cancelled."""
        waiting = {future.id: future for future in futures if not future.done()}
        if not waiting:
            return []
        which: Row = {"ids": list(waiting)} if len(waiting) < AT_ONCE else {"group": self.campaign}
        ids = [task["id"] for task in self.client.tasks(states=["open"], **which) if task["id"] in waiting]
        if not ids:
            return []
        self.client.act("cancel", ids)
        self._settle_all(row for row in self.client.results(states=["expired"], **which) if row["id"] in waiting)
        return [waiting[id] for id in ids if self._is_cancelled(waiting[id])]

    def _is_cancelled(self, future: Future[Any]) -> bool:
        """Reports whether a future is cancelled. If another thread is about to settle it, it waits for this."""
        with self._lock:
            unsettled = future.id in self._futures
        try:
            if not unsettled:
                future.exception()
        except concurrent.futures.CancelledError:
            return True
        return False

    # Results. A task whose result was read is archived, so that each call finds only what is new.

    def _read_all(self) -> None:
        pause, since = SHORTEST_PAUSE, time.monotonic()
        while True:
            self._news.clear()
            with self._lock:
                idle, closed = not self._futures, self._closed
                if idle and closed:
                    self._thread = None  # a call that was being submitted needs another one
                    return
            if idle:
                self._news.wait()
                pause, since = SHORTEST_PAUSE, time.monotonic()
                continue
            try:
                found = self._read()
                if not found and time.monotonic() - since > LOOK_AGAIN:
                    found, since = self._look_again(), time.monotonic()
            except Exception as error:  # for example, the token was revoked
                self._fail_all(error)
                continue
            if found:
                pause, since = SHORTEST_PAUSE, time.monotonic()
            self._news.wait(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)

    def _read(self) -> int:
        """Reads the results that there are, and returns how many futures have got theirs."""
        return self._settle_all(self.client.results(group=self.campaign, states=FINISHED))

    def _settle_all(self, rows: Iterable[Row]) -> int:
        found = 0
        for some in parts(rows):
            # what the submitting thread has not noted yet comes again
            settled = [row["id"] for row in some if self._settle(row["id"], row)]
            self.client.act("archive", settled)
            found += len(settled)
        return found

    def _look_again(self) -> int:
        """Looks for tasks that others have archived or removed. The next call looks at others."""
        with self._lock:
            ids = list(itertools.islice(self._futures, AT_ONCE))
            for id in ids:
                self._futures[id] = self._futures.pop(id)
        if not ids:
            return 0
        self._warn_without_worker(ids[0])
        rows = {row["id"]: row for row in self.client.results(ids=ids)}
        removed = {"state": "removed", "error": "someone has removed it"}
        gone = [(id, rows.get(id, removed)) for id in ids if rows.get(id, removed)["state"] in ("archived", "removed")]
        return sum(self._settle(id, row) for id, row in gone)

    def _warn_without_worker(self, id: int) -> None:
        """Logs a warning, once, if a task waits because no worker for functions runs."""
        if self._warned:
            return
        try:
            checks = self.client.call("GET", f"/tasks/{id}/explain", action=f"explain task {id}")["checks"]
        except APIError:  # a submitter may not read it, and others may have removed the task
            return
        for check in checks:
            if self._warned or check["state"] != "blocked" or check.get("code") not in NO_WORKER:
                continue
            self._warned = True
            asked = {"queue": self.properties.get("queue"), "resources": self.properties.get("resources") and "auto"}
            options = "".join(f" --{name} {shlex.quote(value)}" for name, value in asked.items() if value)
            log.warning(
                "the calls of campaign %s wait, because no worker for functions runs that can make them: %s; start one with: "
                "TDF_TOKEN=TOKEN python%s -m tdf.worker --api %s%s; tdf token add NAME --role worker prints a TOKEN",
                self.campaign, check["text"], PYTHON, self.client.url, options,
            )

    def _settle(self, id: int, row: Row) -> bool:
        """Gives a future its result, and reports whether the future waited for it. Callbacks run then, which may
        cancel other futures, so no lock is held, and pickles are loaded before.
        """
        if id not in self._futures:
            return False
        result, error = None, None
        try:
            result = result_of(row, self.client.blobs.get)
        except BaseException as raised:
            error = raised
        with self._lock:
            future = self._futures.pop(id, None)
        if future is None:
            return False
        with self._callbacks():
            if row.get("outcome") == "cancelled":
                try:
                    concurrent.futures.Future.cancel(future)
                finally:
                    future.set_running_or_notify_cancel()
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        return True

    @contextmanager
    def _callbacks(self) -> Iterator[None]:
        """Keeps callbacks that raise SystemExit, for example, from ending the thread on which all futures depend."""
        try:
            yield
        except BaseException:
            if threading.current_thread() is not self._thread:
                raise
            log.exception("a callback of campaign %s has raised an exception", self.campaign)

    def _fail_all(self, error: Exception) -> None:
        with self._lock:
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            with self._callbacks():
                future.set_exception(error)


def call_all(function: Callable[..., Any], rows: List[Tuple[Any, ...]]) -> List[Any]:
    return [function(*row) for row in rows]


def result_of(row: Row, get: Callable[[str], Any]) -> Any:
    """Returns the result of a task, or raises the exception of its function. get returns blobs by their names."""
    result = row.get("result")
    id, outcome = row.get("id", 0), row.get("outcome") or row["state"]
    if not isinstance(result, dict) or "pickle" not in result:
        raise TaskError(id, outcome, str(row.get("error") or "it has no result").strip())
    traceback = RemoteTraceback(str(result.get("traceback", "")))
    try:
        value = unpack(result["pickle"], get)
    except Lost as error:
        raise CallError(f"load the result of task {id}: {error}; submit the call again") from error
    except TDFError as error:
        raise CallError(f"load the result of task {id}: {error}") from error
    except BaseException as error:
        advice = f"{type(error).__name__}: {error}; install here what the worker has"
        if outcome == "succeeded":
            raise CallError(f"load the result of task {id}: {advice}") from error
        raise TaskError(id, outcome, f"{last_line(traceback)} (this exception cannot be loaded: {advice})") from traceback
    if outcome == "succeeded":
        return value
    if not isinstance(value, Exception) or isinstance(value, concurrent.futures.CancelledError):
        # such as KeyboardInterrupt: raised here, it would end the caller, or look like its own cancellation
        raise TaskError(id, outcome, last_line(traceback)) from traceback
    value.__cause__ = traceback
    raise value


def last_line(traceback: RemoteTraceback) -> str:
    return (traceback.text.strip().splitlines() or ["an exception"])[-1]


def parts(rows: Iterable[Row]) -> Iterator[List[Row]]:
    """Splits rows into lists: each of 250 may have printed 2 MiB and have a result of 1 MiB."""
    some: List[Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += size_of(row)
        if len(some) >= AT_ONCE or size >= MOST_BYTES:
            yield some
            some, size = [], 0
    yield some


def size_of(value: Any) -> int:
    return len(value) if isinstance(value, str) else sum(map(size_of, value.values())) if isinstance(value, dict) else 0
