"""Sweeps, and the campaigns that they open (docs/tdf.md, "Sweeps")."""

from __future__ import annotations

import copy
import html
import importlib
import inspect
import io
import itertools
import math
import time
import urllib.parse
import uuid
from http.client import HTTPResponse
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, cast

from .bar import Bar
from .blobs import Put
from .calls import PROGRAM, Exceptions, Setup, header_of, name_of
from .client import JSON_LINES, Client, Row, batches, compact
from .errors import TaskError, TDFError, check_number
from .executor import check_properties, result_of, with_request
from .fields import PICKLE
from .labels import short

# A call adds at most this to a campaign, so that it ends in time. Each further call reads the points that are there.
MOST_ROWS, MOST_BYTES = 100_000, 32 << 20

UNFINISHED = ("open", "running", "executed")
FAILED = ("failed", "timed_out", "expired")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 2.0

SHOWN_CAUSES, MOST_CAUSE = 5, 300  # groups of failures in a notebook, and characters of a message
REPR_TIMEOUT = 3.0


def rows(points: Any) -> Iterator[Mapping[str, Any]]:
    """Returns the points of a sweep: those of a DataFrame, of a dict of lists, in which the last one changes
    fastest, or of an iterable of dicts.
    """
    if hasattr(points, "itertuples") and hasattr(points, "columns"):
        names = [str(name) for name in points.columns]
        columns = (own_digits(points.iloc[:, place]) for place in range(len(names)))
        return (dict(zip(names, row)) for row in zip(*columns))
    if isinstance(points, Mapping):
        return grid(points)
    return map(point, points)


def grid(points: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name, values in points.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TDFError(f"open sweep: the values of {name} are {values!r:.100}, which is no list; write [{values!r:.100}]")
    return (dict(zip(points, values)) for values in itertools.product(*map(own_digits, points.values())))


def own_digits(values: Any) -> Iterable[Any]:
    """Keeps pandas from turning float32 values into those of Python, such as 0.1 into 0.10000000149011612."""
    dtype = getattr(values, "dtype", None)
    narrow = getattr(dtype, "kind", "") == "f" and getattr(dtype, "itemsize", 8) < 8
    return cast(Iterable[Any], values.to_numpy() if narrow and hasattr(values, "to_numpy") else values)


def point(of: Any) -> Mapping[str, Any]:
    if not isinstance(of, Mapping):
        raise TDFError(f'open sweep: the point {of!r:.100} is no dict; write {{"name": value}} for each point')
    return of


def arguments(function: Callable[..., Any], points: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the points that are arguments of a function, and raises an error for others."""
    try:
        signature: Optional[inspect.Signature] = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions in C
        signature = None
    for of in points:
        try:
            if signature is not None:
                signature.bind(**of)
        except TypeError as error:
            raise TDFError(f"open sweep: the point {of!r:.100} does not fit {name_of(function)}{signature}: {error}") from None
        if "resources" in of:
            raise TDFError("open sweep: a parameter `resources` would say what the tasks ask for; give it another name")
        yield of


def call_of(function: Callable[..., Any], retry_on: Exceptions, put: Optional[Put] = None) -> Tuple[str, List[str]]:
    """Returns the input of tasks that call a function with their parameters, and their blobs."""
    return Setup().pack(function, (), {}, retry_on, put, header_of(function))


def open_sweep(
    client: Client, points: Any, *, program: Optional[str] = None, function: Optional[Callable[..., Any]] = None,
    campaign: Optional[str] = None, input: Optional[str] = None, extend: bool = True, retry_on: Exceptions = Exception,
    **properties: Any
) -> "Campaign":
    """Opens a campaign with a task for each point, and closes it.

    points is a list of dicts, a dict of lists (a grid) or a DataFrame. Each task runs a program, or calls a function
    with its point as arguments. Without a campaign, it gets a name of its own. input is the template of the input of a
    program, such as "--rate {rate}". Other properties, such as source and max_fails, are those of all tasks. With
    max_fails, a function is called again after exceptions of retry_on. A campaign that exists gets only the points that
    it does not have, so a script may be started again; with extend=False, it is refused.
    """
    if (program is None) == (function is None):
        raise TDFError("open sweep: want a program or a function")
    found, name = rows(points), campaign or f"{program}-{uuid.uuid4().hex[:8]}"
    if function is not None:
        if input is not None or "source" in properties:
            raise TDFError("open sweep: a function has no input and no source; the points are its arguments")
        properties = with_request("open sweep", properties)
        found, name = arguments(function, found), campaign or f"{short(function)}-{uuid.uuid4().hex[:8]}"
        call, blobs = call_of(function, retry_on, client.blobs.put)
        properties = {"fail_on": "exit", **properties, "input": call, "input_encoding": "base64", "generations": 0}
        if blobs:
            properties["blobs"] = blobs
    check_properties("open sweep", properties)
    task = compact({"program": program or PROGRAM, "campaign": name, **properties})
    opened = Campaign(client, name)
    parts = 0
    for batch in batches(map(compact, found), MOST_ROWS, MOST_BYTES):
        query = {"input": input, "extend": extend or parts > 0}
        repeat = bool(query["extend"])
        answer = client.call(
            "POST", "/sweeps", b"\n".join([task, *batch]), kind=JSON_LINES, query=query, repeat=repeat, action=f"open sweep {name}"
        )
        opened.opened, opened.known, parts = opened.opened + answer["opened"], opened.known + answer["known"], parts + 1
    if parts == 0:
        raise TDFError(f"open sweep {name}: there are no points; give at least one")
    return opened


def unfinished(counts: Mapping[str, int]) -> int:
    return sum(counts[state] for state in UNFINISHED)


def failed(counts: Mapping[str, int]) -> int:
    return sum(counts[state] for state in FAILED)


def progress_of(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    problems = f", {failed(counts):,} failed" if failed(counts) else ""
    return f"{total - unfinished(counts):,} of {total:,} tasks finished{problems}"


def cause(group: Row) -> str:
    """Returns the row of a group of failures in a table."""
    example = group["example"]
    cells = (f"{group['tasks']:,}", group["how"], example["id"], example.get("line", "")[:MOST_CAUSE])
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"


class Campaign:
    """The tasks of a campaign, which is a group in the HTTP API."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self.opened = 0  # the tasks that the sweep has opened
        self.known = 0  # the points that the campaign had already

    def __repr__(self) -> str:
        try:
            return f"<tdf.Campaign {self.name}: {progress_of(self._at_once().counts())}>"
        except Exception:  # the API does not answer, or refuses: a repr never fails
            return f"<tdf.Campaign {self.name}>"

    def _repr_html_(self) -> str:
        """Returns the progress and the failures by cause, as notebooks show them."""
        title = f"<b>{html.escape(self.name)}</b>"
        try:
            at_once = self._at_once()
            counts = at_once.counts()
            groups = list(itertools.islice(at_once.client.failures(group=self.name), SHOWN_CAUSES)) if failed(counts) else []
        except Exception as error:
            return f"{title}: {html.escape(str(error))}"
        total = sum(counts.values())
        bar = f'<progress max="{max(1, total)}" value="{total - unfinished(counts)}"></progress>'
        rows = "".join(cause(group) for group in groups)
        table = f"<table><tr><th>Tasks</th><th>Failure</th><th>Example</th><th>Message</th></tr>{rows}</table>" if rows else ""
        return f"<div>{title} {bar} {progress_of(counts)}</div>{table}"

    def _at_once(self) -> "Campaign":
        """Returns the campaign for calls that do not wait long for an API that does not answer."""
        client = copy.copy(self.client)
        client.timeout, client.patience, client._idle = REPR_TIMEOUT, 0.0, []
        return Campaign(client, self.name)

    def counts(self) -> Dict[str, int]:
        """Returns the number of tasks in each state."""
        return dict(self._group()["tasks"])

    def _group(self) -> Row:
        path = "/groups/" + urllib.parse.quote(self.name, safe="")
        return dict(self.client.call("GET", path, action=f"read campaign {self.name}"))

    def wait(self, timeout: Optional[float] = None, progress: Optional[bool] = None, check: bool = False) -> Dict[str, int]:
        """Waits until all tasks are finished, and returns the number of tasks in each state.

        A bar shows the progress on a terminal and in notebooks, or always with progress=True. If the timeout
        ends before, TimeoutError is raised. With check=True, a task that did not succeed raises TaskError.
        """
        for pause, counts in self.polls(timeout, progress, check):
            time.sleep(pause)
        return counts

    def polls(self, timeout: Optional[float], progress: Optional[bool], check: bool) -> Iterator[Tuple[float, Dict[str, int]]]:
        """Yields the numbers of tasks in each state until all tasks are finished, and for how long to pause after each."""
        check_number(f"wait for campaign {self.name}", "timeout", timeout, 0, math.inf)
        end = None if timeout is None else time.monotonic() + timeout
        bar, pause, before = Bar(self.name, progress), SHORTEST_PAUSE, -1
        try:
            while True:
                counts = self.counts()
                total, rest = sum(counts.values()), unfinished(counts)
                if total == 0:
                    raise TDFError(f"wait for campaign {self.name}: it has no tasks; `tdf campaigns` lists the campaigns")
                bar.update(total - rest, total, failed(counts))
                if rest == 0:
                    break
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"wait for campaign {self.name}: {rest} of {total} tasks are not finished after {timeout} s")
                pause = SHORTEST_PAUSE if rest != before else min(1.5 * pause, LONGEST_PAUSE)
                before = rest
                yield pause if end is None else min(pause, max(0.0, end - time.monotonic())), counts
        finally:
            bar.close()
        if check:
            for task in self.results(states=FAILED):
                error = str(task.get("error") or task.get("exit") or "no reason was given").strip()
                raise TaskError(task["id"], task["outcome"], error)
        yield 0.0, counts

    def results(self, **filters: Any) -> Iterator[Row]:
        """Returns the tasks with `parameters` and `result`, sorted by id, without keeping them in memory."""
        return self.client.results(group=self.name, **filters)

    def values(self, **filters: Any) -> Iterator[Tuple[Row, Any]]:
        """Returns the parameters and the whole value of the function for each task that has succeeded, sorted by id.
        Values that JSON cannot have are pickles, which run code of the workers here.
        """
        for row in self.results(**{"outcomes": ["succeeded"], "no_output": True, **filters}):
            result = row.get("result")
            pickled = row["program"] == PROGRAM and isinstance(result, dict) and PICKLE in result
            yield row.get("parameters", {}), result_of(row, self.client.blobs.get) if pickled else result

    def frame(self, **filters: Any) -> Any:
        """Returns the results as a DataFrame, with the columns of docs/python.md, "CSV"."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise TDFError("read results as a DataFrame: pandas is missing; install it, or use results()") from error
        usual = {"parse_dates": ["opened", "started", "ended"], "keep_default_na": False, "na_values": [""]}  # a worker may be called NA
        types = {name: str for name in ("input", "exit", "output", "error", "base64")}
        query, kind, action = {"group": self.name, **filters}, {"Accept": "text/csv"}, f"read results of {self.name}"
        read: Callable[[HTTPResponse], Any] = lambda answer: pandas.read_csv(io.BytesIO(answer.read()), dtype=types, **usual)
        table = self.client._fetch("GET", "/results", None, query, kind, action, True, read)
        for name, values in self._texts(**filters).items():
            column = f"parameter.{name}" if f"parameter.{name}" in table else name
            if column in table:
                table[column] = [values.get(id, cell) for id, cell in zip(table["id"], table[column])]
        return table

    def _texts(self, **filters: Any) -> Dict[str, Dict[int, Any]]:
        """Returns parameters and members of results by task, if some of them are texts: in CSV, "007" is like 7."""
        found: Dict[str, Dict[int, Any]] = {}
        for row in self.results(**{**filters, "no_output": True}):
            for prefix, members in (("", row.get("parameters")), ("result.", row.get("result"))):
                for name, value in members.items() if isinstance(members, dict) else ():
                    if not isinstance(value, (dict, list)):
                        found.setdefault(prefix + name, {})[row["id"]] = value
        return {name: values for name, values in found.items() if any(isinstance(value, str) for value in values.values())}

    def failures(self) -> List[Row]:
        """Returns the groups of failed rounds that have the same cause."""
        return list(self.client.failures(group=self.name))

    def retry(
        self, *, failure: Optional[str] = None, function: Optional[Callable[..., Any]] = None, retry_on: Exceptions = Exception,
        **changes: Any
    ) -> int:
        """Runs the tasks that have failed, timed out or expired again, or only those of a group of failures by its
        `id`. They call another function or have changed properties, if these are given. It returns how many run.
        """
        if function is not None:
            changes["input"] = call_of(function, retry_on)[0]
        options = {"changes": changes} if changes else {}
        tasks = list(self.client.tasks(group=self.name, outcomes=FAILED, failure=failure))
        if function is not None and any(task["program"] != PROGRAM for task in tasks):
            raise TDFError(f"retry campaign {self.name}: its tasks call no function; change its program with source=client.push(DIRECTORY)['source']")
        ids = [task["id"] for task in tasks]
        return self.client.act("retry", ids, **options)

    def cancel(self) -> int:
        """Cancels the open and running tasks, and returns how many."""
        ids = [task["id"] for task in self.client.tasks(group=self.name, states=UNFINISHED)]
        return self.client.act("cancel", ids)
