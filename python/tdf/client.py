"""The client of the HTTP API (docs/http.md)."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import itertools
import json
import math
import os
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union

from .blobs import Blobs
from .errors import APIError, TDFError, Unreachable, check_number
from .token import NoToken, Token, of_tdf_up

if TYPE_CHECKING:
    from .sweep import Campaign

Row = Dict[str, Any]
T = TypeVar("T")

# The errors of a call without an answer, or with a part of one.
BROKEN = (OSError, http.client.HTTPException, json.JSONDecodeError)

JSON_LINES = "application/x-ndjson"

# A batch of tasks stays far below the 64 MiB and the 10,000 tasks of a call.
MOST_TASKS, MOST_BYTES = 1000, 8 << 20

# Connections that are idle for longer may have been closed by the server, which keeps them for two minutes.
LONGEST_IDLE = 60.0

SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


def is_this_machine(host: str) -> bool:
    """Reports whether a host is a loopback address, or localhost. Other names may lead to other machines."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def plain(value: Any) -> Any:
    """Returns a value that JSON lacks as one that it has. NaN, NaT and NA of pandas are null."""
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        return plain(of_numpy(value))
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    try:
        if value != value:
            return None
    except TypeError:  # NA
        return None
    return value if isinstance(value, float) else str(value)


def of_numpy(value: Any) -> Any:
    """Returns a number or an array of NumPy as Python has it: a float32 with its own digits, such as 0.1, and times
    not as a number of nanoseconds.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("f", "m", "M") and getattr(value, "ndim", 0) > 0:
        return list(value)
    if kind == "f" and value.dtype.itemsize != 8:
        return float(str(value))
    if kind in ("m", "M"):
        short = value if value.dtype.str[4:-1] == "D" else value.astype(f"{kind}8[us]")
        return short.tolist() if short == value or value != value else str(value)
    return value.tolist()


def compact(value: Any) -> bytes:
    try:
        return json.dumps(plain(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, TypeError) as error:
        raise TDFError(f"write {value!r:.200} as JSON: {error}; use finite numbers and whole characters") from error


def batches(lines: Iterable[bytes], most: int, size: int) -> Iterator[List[bytes]]:
    """Splits lines into lists of at most `most` lines and about `size` bytes."""
    batch: List[bytes] = []
    total = 0
    for line in lines:
        if batch and (len(batch) >= most or total + len(line) > size):
            yield batch
            batch, total = [], 0
        batch.append(line)
        total += len(line) + 1
    if batch:
        yield batch


class Client:
    """A client of the HTTP API. Threads may share it.

    url is the address of the API; without it, TDF_API counts, and then http://127.0.0.1:7379. Without a token,
    TDF_TOKEN counts, and then the token of a running `tdf up` of this user, which serves the address. token may be
    a function that returns the token for each call. context has the certificates for https.
    timeout is in seconds, for the connection and for each part of an answer. A call that may be made twice is
    repeated for up to `patience` seconds while the API does not answer; but the first call fails at once,
    because its address may be wrong. The client follows no redirects and uses no proxies. insecure allows http
    to other machines, which shows them the token.
    """

    up: "Optional[subprocess.Popen[str]]" = None  # the process of tdf.up, which ends with the script

    def __init__(
        self, url: Optional[str] = None, token: Union[str, Token, None] = None, *, context: Optional[ssl.SSLContext] = None,
        timeout: float = 90.0, patience: float = 120.0, insecure: bool = False
    ) -> None:
        self.url = (url or os.environ.get("TDF_API") or "http://127.0.0.1:7379").rstrip("/")
        at = urllib.parse.urlsplit(self.url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise TDFError(f"connect to {self.url!r}: no address of an API; want one such as https://tdf.example.org:7379")
        if at.scheme == "http" and not is_this_machine(at.hostname) and not insecure:
            raise TDFError(f"connect to {self.url}: the token would cross the network in clear; use https, or insecure=True")
        check_number(f"connect to {self.url}", "timeout", timeout, 0.001, threading.TIMEOUT_MAX)
        check_number(f"connect to {self.url}", "patience", patience, 0, math.inf)
        self.timeout, self.patience = timeout, patience
        if token is None:
            token = os.environ.get("TDF_TOKEN") or of_tdf_up(at.netloc)
        self._token = token
        self._may_lack_token = isinstance(token, str) or at.scheme == "https"  # a certificate may stand for it
        self._at, self._context = at, context
        self._idle: List[Tuple[float, int, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        self._reached = False
        self._blobs: Optional[Blobs] = None

    @property
    def token(self) -> str:
        """The token of the next call, or "" if there is none."""
        return self._token if isinstance(self._token, str) else self._token()

    # Calls

    def call(
        self, method: str, path: str, body: Any = None, *, query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None, kind: str = "application/json", repeat: Optional[bool] = None,
        action: str = ""
    ) -> Any:
        """Makes a call, and returns the value of its JSON, or None.

        The path begins after /api/v1. The body is bytes of the type `kind`, or a value for JSON. repeat says
        whether the call may be made twice; by default, GET, PUT, DELETE and calls with an Idempotency-Key may.
        action is for errors.
        """
        headers = dict(headers or {})
        if repeat is None:
            repeat = method in ("GET", "PUT", "DELETE") or "Idempotency-Key" in headers
        if body is not None:
            headers["Content-Type"] = kind
            body = body if isinstance(body, bytes) else compact(body)
        action = action or f"{method} {path}"
        read: Callable[[http.client.HTTPResponse], Any] = lambda answer: json.loads(answer.read() or b"null")
        return self._fetch(method, path, body, query, headers, action, repeat, read)

    def lines(self, path: str, query: Mapping[str, Any], action: str = "") -> Iterator[Row]:
        """Makes a call whose answer is JSON Lines, and returns each line as it comes. A call that breaks off
        raises Unreachable.
        """
        action = action or f"GET {path}"
        try:
            with self._answer("GET", path, None, query, {"Accept": JSON_LINES}, action) as answer:
                rest = b""
                while True:
                    part = answer.read1(1 << 16)
                    if not part:
                        break
                    *whole, rest = (rest + part).split(b"\n")
                    for line in whole:
                        yield json.loads(line)
                if answer.length:  # read1 takes the end of a connection for that of the answer
                    raise http.client.IncompleteRead(rest, answer.length)
        except BROKEN as error:
            raise self._unreachable(action, error) from error

    def _fetch(
        self, method: str, path: str, body: Optional[bytes], query: Optional[Mapping[str, Any]],
        headers: Mapping[str, str], action: str, repeat: bool, read: Callable[[http.client.HTTPResponse], T]
    ) -> T:
        """Makes a call until it succeeds or the patience ends, and returns what `read` makes of the answer."""
        end, pause = time.monotonic() + self.patience, SHORTEST_PAUSE
        while True:
            known = self._reached
            try:
                with self._answer(method, path, body, query, headers, action) as answer:
                    return read(answer)
            except BROKEN + (APIError,) as error:
                pause = max(pause, getattr(error, "retry_after", None) or 0.0)
                may_repeat = repeat or isinstance(error, ConnectionRefusedError)
                if not (known and may_repeat and passes(error) and time.monotonic() + pause < end):
                    if isinstance(error, APIError):
                        raise
                    raise self._unreachable(action, error) from error
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _unreachable(self, action: str, error: BaseException) -> Unreachable:
        if isinstance(error, NoToken):
            return Unreachable(f"{action}: {error}; start `tdf up`, or set TDF_API and TDF_TOKEN")
        text = f"{action}: {self.url} does not answer: {error or type(error).__name__}"
        if isinstance(error, ssl.SSLError):
            return Unreachable(text + "; trust its authority with context=ssl.create_default_context(cafile=FILE)")
        return Unreachable(text + "; start `tdf up` or `tdf serve`, or set TDF_API to the right address")

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Optional[bytes], query: Optional[Mapping[str, Any]], headers: Mapping[str, str], action: str
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a call once. The connection is kept if the answer was read to its end."""
        token, connection = self.token, self._connection()
        try:
            if connection.sock is None:
                connection.connect()
            if token != self.token or not token and not self._may_lack_token:
                # a token of a `tdf up` goes only to this `tdf up`, which ran before and after the connection was made
                raise NoToken(f"no `tdf up` of this user serves {self.url} now, and TDF_TOKEN is not set")
            target = self._at.path + "/api/v1" + path + encoded(query)
            try:
                connection.request(method, target, body, {"Authorization": "Bearer " + token, **headers})
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server that refuses a call may answer before it has read the body
            answer = connection.getresponse()
            if answer.length is None and not answer.chunked:
                raise http.client.HTTPException("the answer breaks off in its header")  # http.client takes it for a whole one
            self._reached = True
            if answer.status >= 300:
                raise refusal(action, answer)
            yield answer
            whole = answer.isclosed()
        except BaseException:
            connection.close()
            raise
        if not whole or answer.will_close:
            connection.close()
            return
        with self._lock:
            self._idle.append((time.monotonic(), os.getpid(), connection))

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                since, process, connection = self._idle.pop()
                if time.monotonic() - since < LONGEST_IDLE and process == os.getpid():  # a fork shares no connection
                    return connection
                connection.close()
        if self._at.scheme == "http":
            return http.client.HTTPConnection(self._at.netloc, timeout=self.timeout)
        return http.client.HTTPSConnection(self._at.netloc, timeout=self.timeout, context=self._context)

    def close(self) -> None:
        """Closes the idle connections. The client can still be used."""
        with self._lock:
            for _, _, connection in self._idle:
                connection.close()
            self._idle.clear()

    # Tasks

    @property
    def blobs(self) -> Blobs:
        """The large values of the API."""
        with self._lock:
            if self._blobs is None:
                self._blobs = Blobs(self)
            return self._blobs

    def open(self, tasks: Union[Mapping[str, Any], Iterable[Mapping[str, Any]]]) -> List[int]:
        """Opens a task, or any number of tasks, and returns their ids. The members are those of docs/tdf.md,
        "JSON".
        """
        return list(self.open_each([tasks] if isinstance(tasks, Mapping) else tasks))

    def open_each(self, tasks: Iterable[Mapping[str, Any]]) -> Iterator[int]:
        """Opens tasks while their ids are read, some at a time, so that neither need fit into memory."""
        for batch in batches(map(compact, tasks), MOST_TASKS, MOST_BYTES):
            body = b"[" + b",".join(batch) + b"]"
            yield from self.call("POST", "/tasks", body, headers={"Idempotency-Key": str(uuid.uuid4())}, action="open tasks")["ids"]

    def task(self, id: int) -> Row:
        """Returns a task with all of its rounds."""
        return dict(self.call("GET", f"/tasks/{id}", action=f"read task {id}"))

    def tasks(self, **filters: Any) -> Iterator[Row]:
        """Returns the tasks that pass the filters, such as group="grid" and states=["failed"], newest first."""
        return self._rows("/tasks", filters, "list tasks", False)

    def results(self, **filters: Any) -> Iterator[Row]:
        """Returns the tasks that pass the filters, with their results and outputs, sorted by id. It continues
        after an outage.
        """
        return self._rows("/results", filters, "read results", True)

    def _rows(self, path: str, filters: Mapping[str, Any], action: str, are_sorted: bool) -> Iterator[Row]:
        """Makes a call until it succeeds or the patience ends, and returns each row once. If the rows are not sorted by id, it does
        not repeat a call of which rows have come.
        """
        last, end = 0, time.monotonic() + self.patience
        while True:
            try:
                for row in self.lines(path, filters, action):
                    if not are_sorted or row["id"] > last:
                        last, end = row["id"], time.monotonic() + self.patience
                        yield row
                return
            except (Unreachable, APIError) as error:
                if last and not are_sorted or not self._reached or not passes(error) or time.monotonic() > end:
                    raise
                time.sleep(SHORTEST_PAUSE)

    def failures(self, **filters: Any) -> Iterator[Row]:
        """Returns the groups of failed rounds that have the same cause."""
        while True:
            page = self.call("GET", "/failures", query=filters, action="group failures")
            yield from page["groups"]
            if "next" not in page:
                return
            filters["cursor"] = page["next"]

    def output(self, id: int, stream: str = "stdout") -> bytes:
        """Returns what the last run of a task has printed: stdout, stderr or result."""
        action = f"read the output of task {id}"
        return self._fetch("GET", f"/tasks/{id}/output", None, {"stream": stream}, {}, action, True, http.client.HTTPResponse.read)

    def act(self, action: str, ids: Iterable[int], **options: Any) -> int:
        """Cancels, retries, requeues, archives, changes or removes tasks, and returns how many. It skips those
        that it cannot change.
        """
        done, rest = 0, iter(ids)
        while True:
            some = list(itertools.islice(rest, MOST_TASKS))
            if not some:
                return done
            body = {"action": action, "ids": some, **options}
            repeat = action not in ("retry", "requeue")
            done += self.call("POST", "/tasks/actions", body, repeat=repeat, action=f"{action} tasks")["done"]

    def push(self, directory: Union[str, "os.PathLike[str]"], name: Optional[str] = None) -> Dict[str, str]:
        """Stores a directory with a run.sh at its top, and returns the `program` and the `source` for tasks."""
        from .program import pack

        path = os.path.abspath(directory)
        query = {"name": name or os.path.basename(path)}
        stored = self.call(
            "POST", "/programs", pack(path), query=query, kind="application/gzip", repeat=True, action=f"store program {path}"
        )
        return {"program": stored["program"], "source": stored["source"]}

    # Campaigns

    def campaign(self, name: str) -> "Campaign":
        """Returns a campaign by its name. It makes no call."""
        from .sweep import Campaign

        return Campaign(self, name)

    async def wait(
        self, campaign: Union[str, "Campaign"], timeout: Optional[float] = None, *, progress: Optional[bool] = None, check: bool = False
    ) -> Dict[str, int]:
        """Waits like Campaign.wait, while other coroutines run. The calls are made in threads."""
        waited = self.campaign(campaign) if isinstance(campaign, str) else campaign
        polls = waited.polls(timeout, progress, check)
        counts: Dict[str, int] = {}
        while True:
            news = await asyncio.to_thread(lambda: next(polls, None))
            if news is None:
                return counts
            pause, counts = news
            await asyncio.sleep(pause)

    def sweep(
        self, points: Any, *, program: Optional[str] = None, function: Optional[Callable[..., Any]] = None,
        campaign: Optional[str] = None, **options: Any
    ) -> "Campaign":
        """Opens a campaign with a task for each point: tdf.sweep.open_sweep says how."""
        from .sweep import open_sweep

        return open_sweep(self, points, program=program, function=function, campaign=campaign, **options)


def passes(error: BaseException) -> bool:
    """Reports whether an error may pass. A call that the API refused for good fails again."""
    if isinstance(error, APIError):
        return error.status in (408, 429, 502, 503, 504)
    return not isinstance(error, ssl.SSLCertVerificationError)


def encoded(query: Optional[Mapping[str, Any]]) -> str:
    """Returns the query of an address. Lists have commas, except params, and None is left out."""
    pairs: List[Tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = str(value).lower()
        if name == "params" and isinstance(value, Mapping):
            pairs += [(name, f"{key}={one}") for key, one in value.items()]
        elif isinstance(value, (list, tuple, set)):
            pairs.append((name, ",".join(map(str, value))))
        else:
            pairs.append((name, str(value)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def refusal(action: str, answer: http.client.HTTPResponse) -> APIError:
    text = answer.read(1 << 20)
    try:
        problem = json.loads(text)
    except ValueError:  # of a proxy
        problem = {"detail": text[:200].decode(errors="replace").strip() or answer.reason}
    try:
        retry_after = float(answer.headers.get("Retry-After", ""))
    except ValueError:
        retry_after = None
    if retry_after is not None and not math.isfinite(retry_after):
        retry_after = None
    return APIError(action, answer.status, problem, retry_after)
