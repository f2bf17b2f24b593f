"""The loop of a worker over the HTTP API (docs/http.md, "Workers"): claim, renew, report, cancel."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import logging
import math
import os
import queue
import signal
import socket
import threading
import time
import traceback
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Tuple, TypeVar

from .client import Client, Row
from .cores import machine
from .errors import APIError, TDFError, check_number

log = logging.getLogger("tdf")

MOST_WAIT = 20.0  # seconds for which a claim waits
MOST_SLOTS = 1000  # as [worker] concurrency: each is a thread, and for functions a process
MOST_CLAIMS = 100  # of a call
SHORT_RUN, PREFETCHED, REPORTED_AFTER, LAST_RUNS = 0.02, 0.05, 0.025, 16  # as in worker/prefetch.go
MOST_JOINT = 64 << 10  # characters of a report that travels with a claim and other reports
MOST_ERROR = 30_000  # characters of an error; its end says most
FOLLOWED_PAUSE = 1.0  # seconds between two renewals of a task that a person follows
LOST = ("not_found", "taken", "expired")  # the codes of a session that has ended
LAST_PATIENCE = 10.0  # seconds for the last calls of a worker that was told to stop
SAME_SIGNAL = 0.05  # seconds in which copies of a signal may come
CLAIMED_BACK = 0.5  # seconds in which a claim that waits may get released tasks, and releases them again
UNFIT_PAUSE, LONGEST_UNFIT_PAUSE = 1.0, 60.0  # seconds in which another worker may claim a task that does not fit here

Handler = Callable[["Task"], Any]
H = TypeVar("H", bound=Handler)


class Fail(TDFError):
    """A handler raises Fail to say how its round fails.

    With permanent, the task fails for good. With later, it runs again after this number of seconds, and no
    failure is counted. With unfit, another worker gets it. result is stored as the result of the round.
    """

    def __init__(self, error: str, *, permanent: bool = False, later: Optional[float] = None, unfit: bool = False, result: Any = None) -> None:
        super().__init__(error)
        self.report: Row = {"action": "fail", "error": error[-MOST_ERROR:]}
        for name, value in (("permanent", permanent), ("later", later), ("unfit", unfit), ("result", result)):
            if value is not None and value is not False:
                self.report[name] = value
        self.unfit = unfit


class Task:
    """A claimed task, as its handler gets it.

    input is its text, data are its bytes, args are the words of the input, and parameters those of a sweep.
    checkpoint is what an earlier round has saved, or None. blobs are the names of what it needs. share has `env`, `cores` and
    `memory` if the worker offers resources. The handler may set
    stdout, stderr, and made, the names of new blobs, which are reported with the result. If the task is cancelled, lost
    or out of time, cancelled is set, and the handler should return: its result no longer counts.
    """

    def __init__(self, row: Row) -> None:
        self.id, self.round, self.program = int(row["id"]), int(row["round"]), str(row["program"])
        self.path = ""  # of the worker's session
        self.began = self.ended = 0.0  # when the handler was called, and when it returned
        self.run = {name: row[name] for name in ("id", "round", "claim")}
        self.input = str(row.get("input", ""))
        self.data = binary(row, "input") or b""
        self.args: List[str] = row.get("args") or []
        self.checkpoint = binary(row, "checkpoint")
        self.parameters: Row = parameters(row)
        self.blobs: List[str] = row.get("blobs") or []
        self.made: List[str] = []
        self.share: Row = row.get("share") or {}
        self.taken: List[Row] = self.share.get("taken", [])
        self.stdout = self.stderr = b""
        self.cancelled = threading.Event()
        self.timed_out = False
        seconds = row.get("seconds")  # until its time is over
        self._timer = None if seconds is None else threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._time_out)
        self.pauses = False  # the worker lacks something, and pauses its claims
        self.followed = False  # a person watches what it prints
        self.tail: Callable[[], Row] = dict  # returns the news of a call for a renewal: `tail` and `progress`
        self._news: Row = {}
        self._lock = threading.Lock()

    def progress(self, fraction: float, text: str = "") -> None:
        """Shows how far the round is, from 0 to 1, with the next renewal."""
        with self._lock:
            self._news["progress"] = {"fraction": fraction, "text": text}

    def save(self, checkpoint: bytes) -> None:
        """Saves data for the next round, up to 1 MiB, with the next renewal."""
        with self._lock:
            self._news["checkpoint_base64"] = base64.b64encode(checkpoint).decode()

    def begin(self) -> None:
        if self._timer:
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        self.ended = time.monotonic()
        if self._timer:
            self._timer.cancel()

    def _time_out(self) -> None:
        self.timed_out = not self.cancelled.is_set()
        self.cancelled.set()

    def renewal(self) -> Row:
        with self._lock:
            news, self._news = self._news, {}
        return {**self.run, **news, **self.tail()}


def binary(row: Row, name: str) -> Optional[bytes]:
    if name + "_base64" in row:
        return base64.b64decode(row[name + "_base64"])
    return str(row[name]).encode() if name in row else None


def parameters(row: Row) -> Row:
    try:
        found = json.loads(row.get("meta", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Worker:
    """A worker that runs the programs of its handlers.

    name is 1 to 100 letters, digits, dots, hyphens and underscores; by default, the host and the process. A
    name belongs to one living worker. slots is the number of tasks at once, each in a thread. lease is in
    seconds, from 1 to 300: if the worker is killed, its tasks run again after this time. After SIGTERM, tasks
    that still run after `grace` seconds are released, which counts neither as a loss nor as a failure. resources is what the
    worker offers (docs/resources.md, "Offers"), such as "auto" or "cpus=4 licence=1"; slots then bounds the tasks that ask for
    nothing.
    """

    def __init__(
        self, name: Optional[str] = None, client: Optional[Client] = None, *, slots: int = 1,
        queues: Iterable[str] = (), tags: Iterable[str] = (), lease: float = 60.0, grace: float = 2.0, resources: str = ""
    ) -> None:
        for what, amount, least, most in (("slots", slots, 1, MOST_SLOTS), ("lease", lease, 1, 300), ("grace", grace, 0, math.inf)):
            check_number("make a worker", what, amount, least, most, "; start several workers if you need more" if what == "slots" else "")
        if name == "":  # of an unset variable
            raise TDFError("make a worker: its name is empty; give one, or leave it out for the host and the process")
        host = socket.gethostname().split(".")[0]
        self.name, self.slots, self.lease = name or f"{host}-{os.getpid()}", slots, lease
        self.client = copy.copy(client or Client())
        self.client.patience = math.inf  # an outage ends no round
        self.queues, self.tags, self.resources = list(queues), list(tags), resources
        self._stocks: List[Row] = []  # what is free
        self._pieces: Dict[Tuple[str, str], Row] = {}
        self.handlers: Dict[str, Handler] = {}
        self._free, self._threads = slots, 0
        self._held: Dict[int, Task] = {}
        self._claimed: "queue.SimpleQueue[Task]" = queue.SimpleQueue()
        self._ended: List[Tuple[Task, Row]] = []  # rounds that the next claim reports
        self._runs: Deque[float] = deque(maxlen=LAST_RUNS)  # seconds
        self._gathers = False  # a claim follows soon
        self._news = threading.Event()  # there are free slots or ended rounds, or the worker stops
        self._lock = threading.Lock()
        self.grace, self._signals, self._same_signal = grace, 0, False
        self._stopping = threading.Event()
        self._deadline = math.inf  # for what runs
        self._unfit = 0  # rounds in a row that did not fit this worker
        self._resumes = 0.0  # until this time, it claims nothing
        self._problem: Optional[BaseException] = None
        self._path = ""

    def program(self, name: str) -> Callable[[H], H]:
        """Makes the decorated function the handler of a program. It gets a Task, and returns the result, a
        value for JSON.
        """

        def decorate(handler: H) -> H:
            self.handlers[name] = handler
            return handler

        return decorate

    def run(self) -> None:
        """Works until stop is called, or until SIGTERM or SIGINT in the main thread. After stop, it finishes what runs.
        After a signal, this may take `grace` seconds. A second signal releases it at once, and a third one ends
        the process.
        """
        if not self.handlers:
            raise TDFError('run worker: it has no programs; decorate a function with @worker.program("NAME")')
        if threading.current_thread() is threading.main_thread():
            for stop in (signal.SIGTERM, signal.SIGINT):
                signal.signal(stop, lambda number, _: self._signalled(number))
            if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
                signal.signal(signal.SIGHUP, lambda number, _: None if self._signals else self._signalled(number))
        self._register()
        claiming, renewing = [threading.Thread(target=self._guard, args=(loop,), daemon=True) for loop in (self._claim_all, self._renew_all)]
        claiming.start()
        renewing.start()
        while not self._stopping.wait(1.0):
            pass  # a wait without a limit would not let signals in on every system
        while self._held and self._problem is None and time.monotonic() < self._deadline:
            time.sleep(0.02)
        if self._problem is not None:
            raise self._problem
        if self._end_tasks():
            claiming.join(CLAIMED_BACK)
        self._last_call("DELETE", "", None, "end the session")

    def _await_copies(self) -> None:
        time.sleep(SAME_SIGNAL)

    def _signalled(self, number: int) -> None:
        if self._same_signal:
            return
        if not self._signals:  # timeout(1) sends one to its command, and one to its whole group
            self._same_signal = True
            self._await_copies()
            self._same_signal = False
        self._signals += 1
        if self._signals > 2:
            os._exit(128 + number)
        self._deadline = time.monotonic() + (self.grace if self._signals == 1 else 0)
        self.stop()

    def _end_tasks(self) -> int:
        """Lets the handlers that still run return, for up to a second, releases their tasks, and returns how many."""
        with self._lock:
            tasks = [task for task in self._held.values() if not task.cancelled.is_set()]
            for task in tasks:
                task.cancelled.set()
        end = time.monotonic() + 1.0
        while any(self._held.get(task.id) is task for task in tasks) and time.monotonic() < end:
            time.sleep(0.02)
        self._release(tasks)
        return len(tasks)

    def _release(self, tasks: List[Task]) -> None:
        if tasks:
            body = [{**task.run, "action": "release", "error": "the worker stops"} for task in tasks]
            self._last_call("POST", "/reports", body, "release tasks")

    def _last_call(self, method: str, path: str, body: Any, action: str) -> None:
        client = copy.copy(self.client)
        client.patience = LAST_PATIENCE
        client.call(method, self._path + path, body, repeat=True, action=action)

    def stop(self) -> None:
        """Lets run return when the running tasks have finished. Any thread may call it."""
        self._stopping.set()
        self._news.set()

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as error:
            self._problem = error
            self.stop()

    def _register(self) -> None:
        """Begins a session. If an earlier start still has the name, it waits until the lease of this start has
        ended.
        """
        body = {"name": self.name, "host": socket.gethostname(), "pid": os.getpid(), "slots": self.slots, "lease": self.lease}
        body.update(programs=list(self.handlers), queues=self.queues, tags=self.tags)
        if self.resources:
            body.update(resources=self.resources, machine=machine())
        end, key = time.monotonic() + 1.5 * self.lease + 5, str(uuid.uuid4())
        while True:
            try:
                answer = self.client.call("POST", "/work", body, headers={"Idempotency-Key": key}, action=f"register worker {self.name}")
                break
            except APIError as refusal:
                if refusal.code != "taken" or time.monotonic() + (refusal.retry_after or 0) > end or self._stopping.is_set():
                    raise
                log.info("%s", refusal)
                time.sleep(min(1.0, self.lease / 3))
        self._path = "/work/" + answer["session"]
        self._numbers = itertools.count(1)
        if not self._stocks and "free" in answer:
            self._stocks = answer["free"]
            self._pieces = {(stock["name"], piece.get("label", "")): piece for stock in self._stocks for piece in stock["pieces"]}
            self._free, self.slots = answer["slots"], answer["slots"]
        log.info("worker %s runs %s", answer["worker"], ", ".join(self.handlers))

    def _begin_again(self, why: TDFError) -> None:
        """Begins another session after the server has given this one up, as after a long sleep of the machine."""
        if getattr(why, "code", "") not in LOST:
            raise why
        log.warning("%s; the worker registers again", why)
        with self._lock:
            for task in self._held.values():
                task.cancelled.set()
        self._register()

    def _claim_all(self) -> None:
        """Claims tasks for the free slots, and reports the rounds that have ended with the next claim. If rounds are short,
        it prefetches tasks, and a call reports many rounds (worker/prefetch.go).
        """
        while not self._stopping.is_set():
            with self._lock:
                self._news.clear()
                now = time.monotonic()
                free = self._free + len(self._ended)
                prefetch = self._goal() - max(0, -free)
                due = bool(self._ended) and (free >= 0 or now - self._ended[0][0].ended >= REPORTED_AFTER)
                waits, pause = free > 0 and not self._ended, self._resumes - now
                self._gathers = not waits
                ended, self._ended = (self._ended, []) if due else ([], self._ended)
                late = free < 0 and any(0 < task.began < now - PREFETCHED for task in self._held.values() if not task.ended)
            if late:
                self._give_back()
            if due and (free < 0 or pause > 0) and prefetch <= 0:
                self._report(ended)
            elif waits and pause > 0:
                self._stopping.wait(pause)
            elif due or waits:
                most = min(max(0, free), 1 if self._unfit else MOST_CLAIMS)
                # a report ends the wait of a worker with resources, unless it comes before
                longest = 2.0 if self._stocks and self._held else MOST_WAIT
                self._claim(most, min(prefetch, MOST_CLAIMS - most), ended, min(longest, self.lease / 3) if waits else 0)
            else:
                self._news.wait(REPORTED_AFTER if self._ended or free < 0 else None)
        with self._lock:
            ended, self._ended, self._gathers = self._ended, [], False
        self._give_back()
        self._report(ended)

    def _goal(self) -> int:
        """Returns how many tasks to have beyond those that run."""
        mean = sum(self._runs) / LAST_RUNS
        return 0 if self._stocks or len(self._runs) < LAST_RUNS or mean >= SHORT_RUN or self._unfit else min(int(self.slots * PREFETCHED / mean), MOST_CLAIMS)

    def _give_back(self) -> None:
        """Gives back the tasks that have not started: others may have time for them."""
        unstarted: List[Task] = []
        try:
            while True:
                unstarted.append(self._claimed.get_nowait())
        except queue.Empty:
            pass
        self._runs.clear()
        if unstarted:
            self._last_call("POST", "/reports", [{**task.run, "action": "release", "unstarted": True} for task in unstarted], "give tasks back")
        for task in unstarted:
            self._let_go(task)

    def _claim(self, most: int, prefetch: int, ended: List[Tuple[Task, Row]], wait: float) -> None:
        body: Row = {"most": most, "wait": wait, "number": next(self._numbers)}
        if prefetch > 0 and not wait:
            body["prefetch"] = prefetch
        if self._stocks:
            with self._lock:
                body["free"] = copy.deepcopy(self._stocks)
        if ended:
            body["reports"] = [{**task.run, **report} for task, report in ended]
        rows: List[Row] = []
        try:
            # a numbered claim may be repeated
            answer = self.client.call("POST", self._path + "/claims", body, repeat=True, action="claim tasks")
            rows = answer["tasks"]
            for (task, _), reported in zip(ended, answer.get("reports", ())):
                self._reported(task, reported)
        except TDFError as error:
            self._report(ended)  # one of them may be the reason
            if not self._stopping.is_set() and (not ended or getattr(error, "code", "") in LOST):
                self._begin_again(error)
        if self._stopping.is_set():
            return self._release([Task(row) for row in rows])
        for task in map(Task, rows):
            self._start(task)

    def _report(self, ended: List[Tuple[Task, Row]]) -> None:
        for task, report in ended:
            self._send(task, report)

    def _start(self, task: Task) -> None:
        task.path = self._path
        with self._lock:
            earlier = self._held.get(task.id)
            self._held[task.id] = task
            self._free -= 1
            for part in task.taken:
                self._pieces[part["name"], part.get("label", "")]["free"] -= part["units"]
            begins = self._threads < self.slots
            self._threads += begins
        if earlier is not None:
            earlier.cancelled.set()  # its lease has ended
        task.begin()
        self._claimed.put(task)
        if begins:
            threading.Thread(target=self._guard, args=(self._work,), daemon=True).start()

    def _work(self) -> None:
        """Runs the tasks of a slot, one after the other."""
        while True:
            task = self._claimed.get()
            report = self._run(task)
            joins = report is not None and report["action"] == "complete" and sum(len(str(value)) for value in report.values()) < MOST_JOINT
            with self._lock:
                joins = joins and self._gathers and task.path == self._path
                if joins and report:
                    self._ended.append((task, report))
            if joins:
                self._news.set()
            elif report:
                self._send(task, report)
            else:
                self._let_go(task)

    def _run(self, task: Task) -> Optional[Row]:
        """Runs a task, and returns its report, or None if it was cancelled or is lost."""
        if task.cancelled.is_set():
            return None
        task.began = time.monotonic()
        report = self._report_of(task)
        task.end()
        with self._lock:
            self._runs.append(task.ended - task.began)
            self._give_share(task)
        if task.timed_out:
            return {"action": "time_out", **{name: report[name] for name in ("stdout_base64", "stderr_base64") if name in report}}
        self._pause(task.pauses or bool(report.get("unfit")))
        return None if task.cancelled.is_set() else {**report, "seconds": round(task.ended - task.began, 6)}

    def _give_share(self, task: Task) -> None:
        for part in task.taken:
            self._pieces[part["name"], part.get("label", "")]["free"] += part["units"]
        task.taken = []

    def _let_go(self, task: Task) -> None:
        with self._lock:
            self._give_share(task)
            if self._held.get(task.id) is task:
                del self._held[task.id]
            self._free += 1
        self._news.set()

    def _pause(self, unfit: bool) -> None:
        """Pauses claims after a round that did not fit this worker, or for which it lacked something, and for twice as long
        after each further one.
        """
        with self._lock:
            if not unfit:
                self._unfit = 0
            elif time.monotonic() >= self._resumes:  # several slots may find it at once
                self._resumes = time.monotonic() + min(UNFIT_PAUSE * 2.0**self._unfit, LONGEST_UNFIT_PAUSE)
                self._unfit += 1

    def _report_of(self, task: Task) -> Row:
        try:
            result = self.handlers[task.program](task)
            report: Row = {"action": "complete"} if result is None else {"action": "complete", "result": result}
            if task.made:
                report["made"] = task.made
        except Fail as failure:
            report = failure.report
        except BaseException:  # also SystemExit, or CancelledError of asyncio
            report = {"action": "fail", "error": traceback.format_exc()[-MOST_ERROR:]}
        for name, printed in (("stdout_base64", task.stdout), ("stderr_base64", task.stderr)):
            if printed:
                report[name] = base64.b64encode(printed).decode()
        return report

    def _send(self, task: Task, report: Row) -> None:
        """Reports how a round has ended. If the API refuses the report for good, the round fails, and its error
        says why.
        """
        try:
            self._send_once(task, report)
        except TDFError as error:
            log.warning("%s", error)
            if not isinstance(error, APIError) or error.code not in LOST:
                self._send_once(task, {"action": "fail", "error": str(error), "permanent": True})
                return
            self._let_go(task)

    def _send_once(self, task: Task, report: Row) -> None:
        # a report may come twice
        answer = self.client.call("POST", task.path + "/reports", {**task.run, **report}, repeat=True, action=f"report task {task.id}")
        self._reported(task, answer["reports"][0])

    def _reported(self, task: Task, answer: Row) -> None:
        if not answer["accepted"]:
            log.warning("task %d: %s", task.id, answer.get("detail"))
        self._let_go(task)

    def _renew_all(self) -> None:
        """Renews claims every third of a lease, and at once when the tasks change. People see what it runs, and tasks
        that they follow are renewed each second.
        """
        told: Any = None
        due = time.monotonic()
        while not self._stopping.is_set() or self._held:
            time.sleep(min(FOLLOWED_PAUSE, self.lease / 3))
            with self._lock:
                tasks = [task for task in self._held.values() if not task.cancelled.is_set()]
                state = (self._path, [task.id for task in tasks])
            now = time.monotonic()
            all_due = now >= due or state != told
            if all_due:
                due = now + self.lease / 3
            try:
                self._renew(tasks if all_due else [task for task in tasks if task.followed])
                due_alone = all_due and not tasks and now < self._resumes
                if (state != told or due_alone) and not self._stopping.is_set():  # a stopping worker ends its session
                    with self._lock:
                        beat: Row = {"runs": state[1]}
                        if self._stocks:
                            beat["free"] = copy.deepcopy(self._stocks)
                    self.client.call("POST", self._path + "/heartbeat", beat, repeat=True, action="send a heartbeat")
                told = state
            except APIError as error:
                log.warning("%s", error)  # the next claim registers again if the session is lost
                if error.code in LOST:
                    for task in tasks:
                        task.cancelled.set()

    def _renew(self, tasks: List[Task]) -> None:
        if not tasks:
            return
        body = [task.renewal() for task in tasks]
        answer = self.client.call("POST", self._path + "/renewals", body, repeat=True, action="renew claims")
        lost = {(of["id"], of["round"]): of.get("detail", "its claim is lost") for of in answer["lost"]}
        for task in tasks:
            task.followed = task.id in answer.get("followed", ())
            if (task.id, task.round) in lost:
                log.info("task %d: %s", task.id, lost[task.id, task.round])
                task.cancelled.set()
