"""Runs pickled functions of tdf.Executor: python -m tdf.worker --help

A token that may open tasks lets its holder run any code here, as the user of this process (docs/security.md).
Each slot has a process of its own, so that a function can be ended when its task is cancelled, and can break
only its own process.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import errno
import functools
import io
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection, Pipe
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, TextIO, Tuple, cast

from .blobs import ATTEMPTS, Blobs, Directory, Lost
from .calls import HEADER, PROGRAM, PROGRESS_BYTES, PYTHON, REMEDY, Process, read_progress, report_progress_in, where
from .client import Client, Row
from .cores import affinity, cores
from .errors import TDFError
from .loop import Fail, Task, Worker
from .sources import Sources

MOST_PRINTED = 1 << 20  # bytes of an output that the API keeps
MOST_LEAVING = 16  # processes that end with the threads of their last call
TAIL = 4 << 10  # bytes that a renewal shows of what a call prints

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT)
SHORT_PAUSE = 5.0  # seconds after which a call runs again that a shortage of its worker has ended

# The libraries that take all cores unless one of these says otherwise. Those without a variable here read the first.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(threads: int, share: Sequence[str] = ()) -> Dict[str, str]:
    """Gives the numerical libraries of a slot its share of the cores, unless the user has chosen, or the worker offers resources."""
    own = dict(pair.split("=", 1) for pair in share)
    chosen = own.get(THREADS[0]) or os.environ.get(THREADS[0]) or str(threads)
    given = {"LOKY_MAX_CPU_COUNT": chosen if own else str(threads), **dict.fromkeys(THREADS, chosen)}
    return {**os.environ, **given, **own} if own else {"TDF_CPUS": str(threads), **given, **os.environ}


def confine(all_cores: Iterable[int], cores: Sequence[int], memory: int) -> None:
    """Lets the threads of this process run on these cores only, if there are any, and bounds the memory that it may ask for."""
    if sys.platform == "linux":
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # it has ended, or the machine lacks a core
                os.sched_setaffinity(int(thread), cores or all_cores)
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (memory if memory and (most < 0 or memory < most) else most, most))


Call = Tuple[bytes, str, Optional[Row]]  # the pickle, the name of the function, and the arguments if the task is one of a sweep


Files = Tuple[Dict[str, str], Optional[str]]  # those with the blobs of a call, and the directory for blobs of its result


class Printed:
    """The outputs of a slot's process, as its calls write them."""

    def __init__(self) -> None:
        self.files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        self.progress = tempfile.TemporaryFile()
        self._reported: Optional[Row] = None
        self._lock = threading.Lock()
        self._call = 0
        self._shown, self._tail = [0, 0], b""

    def begin(self) -> Callable[[], Row]:
        """Forgets what was printed, and returns what shows the news of the next call."""
        with self._lock:
            self._clear()
            self._reported = None
            self._call += 1
            self._shown, self._tail = [0, 0], b""
            return functools.partial(self._news, self._call)

    def _news(self, call: int) -> Row:
        with self._lock:
            if call != self._call:
                return {}
            news: Row = {}
            progress = read_progress(os.pread(self.progress.fileno(), PROGRESS_BYTES, 0))
            if progress is not None and progress != self._reported:
                self._reported = news["progress"] = progress
            sizes = [os.fstat(file.fileno()).st_size for file in self.files]
            if sizes == self._shown:
                return news
            for place, file in enumerate(self.files):
                start = max(self._shown[place], sizes[place] - TAIL)
                kept = self._tail if start == self._shown[place] else b""
                self._tail = (kept + os.pread(file.fileno(), sizes[place] - start, start))[-TAIL:]
            self._shown = sizes
            stdout, stderr = (size if size <= MOST_PRINTED else -1 for size in sizes)
            news["tail"] = {"base64": base64.b64encode(self._tail).decode(), "end": sum(sizes), "stdout": stdout, "stderr": stderr}
            return news

    def is_full(self) -> bool:
        """Reports whether the disk of the outputs is full."""
        disk = os.fstatvfs(self.files[0].fileno())
        return disk.f_blocks > 0 and (disk.f_bavail if os.geteuid() else disk.f_bfree) == 0

    def read(self) -> List[bytes]:
        """Takes what the last call has printed to stdout and stderr: the end, if it is long. It shows no more news."""
        with self._lock:
            self._call += 1
            for file in self.files:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_PRINTED))
            printed = [file.read() for file in self.files]
            self._clear()
            return printed

    def _clear(self) -> None:
        """Forgets what was printed, and frees its disk."""
        for file in (*self.files, self.progress):  # the process shares the position
            file.seek(0)
            file.truncate()


class Slot:
    """A process that makes one call after another. It ends with this process."""

    def __init__(self, threads: int, share: Sequence[str] = ()) -> None:
        self.share = share
        self.modules: Optional[str] = None  # the blob with those that its calls have brought
        self.connection, of_child = Pipe()
        self.calls = 0
        self.loaded = False  # the process has loaded the last call
        self.printed = Printed()
        command = [sys.executable, "-m", "tdf.worker", "--child", str(of_child.fileno()), str(os.getpid()), str(self.printed.progress.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[of_child.fileno(), self.printed.progress.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self.printed.files[0],
            stderr=self.printed.files[1],
            env=environment(threads, share),
            start_new_session=True,  # Ctrl-C ends the worker, which ends this process later
        )
        of_child.close()

    def call(self, task: Task, call: Call, files: Files) -> Dict[str, Any]:
        """Makes the call of a task. If the process ends, or the task is cancelled, it raises EOFError."""
        task.tail = self.printed.begin()
        self.calls += 1
        self.loaded = False
        self.connection.send((self.calls, *call, *files, tuple(task.share.get("cores", ())), task.share.get("memory", 0)))
        while True:
            answer = self.answer(task)
            if answer.pop("call", 0) != self.calls:
                continue
            if "loaded" not in answer:
                return answer
            self.loaded, self.modules = True, answer["loaded"]

    def answer(self, task: Task) -> Dict[str, Any]:
        """Waits for an answer, and for the end of the process: a descendant may keep its pipe open."""
        while not self.connection.poll(0.2):
            if task.cancelled.is_set() or self.process.poll() is not None and not self.connection.poll(0):
                raise EOFError
        return dict(json.loads(self.connection.recv_bytes()))

    def end(self, seconds: float = 0) -> str:
        """Ends the process, if it does not end in time, and all that it has started. It says how the process ended."""
        try:
            self.process.wait(seconds)
            closed = False
        except subprocess.TimeoutExpired:
            closed = seconds > 0
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = self.process.wait()
        self.connection.close()
        if closed:
            return "a closed pipe to its worker"
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def call_of(task: Task) -> Tuple[str, Call]:
    """Returns the version of Python that has pickled a call, and the call. Those of a sweep begin with a line that says
    this, because their metadata are the parameters.
    """
    header = HEADER.match(task.data)
    if header is None:
        return str(task.parameters.get("python")), (task.data, str(task.parameters.get("function", "?")), None)
    wanted, function = (text.decode(errors="replace") for text in header.groups())
    return wanted, (task.data[header.end() :], function.replace(":", "."), task.parameters)


def short(task: Task, why: str) -> Fail:
    """Says that this worker, and not the call, lacks something, so that the call runs again, and the worker pauses."""
    task.pauses = True
    logging.getLogger("tdf").warning("%s; the call runs again", why)
    return Fail(why, later=SHORT_PAUSE)


class Calls:
    """The handler of pickled calls. stopping is set when the worker was told to stop."""

    def __init__(self, stopping: threading.Event, blobs: Blobs, threads: int = 1, most: int = 1) -> None:
        self.stopping, self.blobs, self.most = stopping, blobs, most  # idle processes, of each kind and of others
        self.lock = threading.Lock()
        self.idle: List[Slot] = []
        self.leaving: List[Slot] = []  # processes whose calls have ended, and whose threads have not
        self.threads = threads  # of each slot

    def __call__(self, task: Task) -> Any:
        wanted, call = call_of(task)
        function = call[1]
        if wanted != PYTHON:
            raise Fail(
                f"run {function}: Python {wanted} has pickled it, and this worker runs Python {PYTHON}; start a worker "
                f"with the same version: python{wanted} -m tdf.worker",
                unfit=True,
            )
        answer = self.with_blobs(task, call)
        if "unfit" in answer:
            raise Fail(answer["unfit"], unfit=True)
        if "error" in answer:
            result = answer["result"] if call[2] is None else None  # a sweep shows the error, and raises no exception
            raise Fail(answer["error"], permanent=not answer["retry"], result=result)
        return answer["result"]

    def with_blobs(self, task: Task, call: Call) -> Dict[str, Any]:
        """Makes a call with the files of its blobs, and stores those of its result."""
        function = call[1]
        action = f"load the call of {function}"
        try:
            for _ in range(ATTEMPTS):
                directory = self.blobs.own.path if self.blobs.kept() else None
                with self.blobs.paths(task.blobs) as paths:
                    answer = self.make(task, call, (paths, directory), f"the process of {function}")
                if "missing" not in answer:
                    break
            else:
                return {"unfit": f"{action} on {where()}: {answer['missing']}"}
            action = f"store the result of {function}"
            task.made = answer.get("made", [])
            for name in task.made:
                self.blobs.send(name)
            return answer
        except Fail:
            raise
        except Lost as error:
            raise Fail(f"{action}: {error}; submit the call again", permanent=True) from error
        except TDFError as error:
            raise Fail(f"{action} on {where()}: {error}", unfit=action.startswith("load")) from error

    def make(self, task: Task, call: Call, files: Files, process: str) -> Dict[str, Any]:
        """Makes a call in an idle process, or in a new one. It replaces a process that has old code."""
        while True:
            slot = self.slot(task, process)
            used = slot.calls > 0  # an earlier call may have left a timer or another directory, so only a new process is proof
            try:
                answer = slot.call(task, call, files)
            except (EOFError, OSError):
                if used and not slot.loaded and not task.cancelled.is_set():
                    slot.end()
                    continue
                how = slot.end(0 if task.cancelled.is_set() else 1)
                task.stdout, task.stderr = slot.printed.read()
                if how == "signal SIGTERM" and self.stopping.wait(1.0):  # Slurm sends it to all processes of a job
                    raise Fail(f"{process} ended with {how}, and the worker stops", later=0) from None
                if slot.loaded:
                    raise Fail(f"{process} ended with {how}; its output may say why") from None
                raise Fail(f"{process} on {where()} ended with {how} before it had loaded the call; {REMEDY}", unfit=True) from None
            task.stdout, task.stderr = slot.printed.read()
            if "error" in answer and slot.printed.is_full():
                slot.end()
                raise short(task, f"{process} on {where()}: the disk of its outputs is full: {answer['error'][-200:]}")
            if "result" in answer or "missing" in answer:
                self.keep(slot, answer.pop("leaves"))
                return answer
            slot.end()
            if "unfit" in answer and not used:  # a new process may also find what is installed meanwhile
                return answer

    def keep(self, slot: Slot, leaves: bool) -> None:
        """Keeps a process for the next call. If it has made its last call, or threads of the call
        still run, it ends with them, as a script does."""
        if not leaves:
            with self.lock:
                self.idle.append(slot)
            return
        self.leaving.append(slot)
        for left in [slot for slot in self.leaving if slot.process.poll() is not None] or self.leaving[:-MOST_LEAVING]:
            self.leaving.remove(left)
            left.end()

    def slot(self, task: Task, process: str) -> Slot:
        """Returns an idle process, or a new one. Libraries read the variables of a share once, and modules are loaded once."""
        share = task.share.get("env", ())
        with self.lock:
            fitting = [slot for slot in self.idle if slot.share == share and slot.modules in (None, *task.blobs)]
            fitting.sort(key=lambda slot: slot.modules is not None)
            others = [] if fitting else self.idle[: -self.most]
            self.idle = [slot for slot in self.idle if slot not in fitting[-1:] + others]
        for slot in others:
            slot.end()
        if fitting:
            return fitting[-1]
        try:
            return Slot(self.threads, share)
        except OSError as error:
            why = f"{process} on {where()} cannot be started: {error}"
            raise (short(task, why) if error.errno in SHORTAGES else Fail(why, unfit=True)) from None

    def end(self) -> None:
        for slot in self.idle + self.leaving:
            slot.end()


def flush(*streams: TextIO) -> bool:
    """Writes what a call has left in its streams, and reports whether the process can print in the next call."""
    for stream in (sys.stdout, sys.stderr, *streams):
        try:
            stream.flush()
        except Exception:  # the call has closed it, or the disk is full
            if stream in streams:
                return False
    return True


def serve(descriptor: int, parent: int, progress: int) -> None:
    """Makes the calls of a slot. It ends with the worker, even in the middle of a call."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    connection = Connection(descriptor)
    report_progress_in(progress)
    for own in (descriptor, progress):
        os.set_inheritable(own, False)
    os.register_at_fork(after_in_child=connection.close)  # only this process answers, and its end is the end of the pipe
    process, sources, streams, closed = Process(), Sources(), (sys.stdout, sys.stderr), False
    all_cores, confined = affinity(), ((), 0)
    for stream in streams:
        cast(io.TextIOWrapper, stream).reconfigure(line_buffering=True)  # whoever follows the call, or its crash, sees each line
    while True:
        try:
            number, data, function, parameters, paths, directory, cores, memory = connection.recv()
        except EOFError:
            return
        begun = time.time()

        def send(answer: Dict[str, Any]) -> None:
            connection.send_bytes(json.dumps({"call": number, **answer}).encode())

        if (cores, memory) != confined:
            confine(all_cores, cores, memory)
            confined = (cores, memory)
        put = Directory(directory).write if directory else None
        changed = closed or sources.changed()
        answer = {"changed": True} if changed else process.run(data, function, parameters, lambda: send({"loaded": process.modules}), paths, put)
        closed = not flush(*streams)
        sys.stdout, sys.stderr = streams  # the call may have replaced them
        leaves = answer.pop("last", False) or any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())
        send({**answer, "leaves": leaves})
        if leaves:
            return  # what these threads print is not the output of the next call
        sources.note(begun)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tdf.worker", description="Run the functions of tdf.Executor.")
    parser.add_argument("--name", help="the name of the worker (default: the host and the process)")
    parser.add_argument("--slots", type=int, default=cores(), help="how many functions run at once (default: one per core)")
    parser.add_argument("--resources", default="", help="what to offer: auto, or such as 'cpus=8 gpus=1 licence=1' (docs/resources.md)")
    parser.add_argument("--queue", action="append", default=[], help="claim from this queue; may be repeated")
    parser.add_argument("--lease", type=float, default=60, help="seconds after which the tasks of a killed worker run again (default: 60)")
    parser.add_argument("--grace", type=float, default=2, help="seconds to finish after SIGTERM or Ctrl-C, before tasks are released (default: 2)")
    parser.add_argument("--api", help="the address of the HTTP API (default: TDF_API, or http://127.0.0.1:7379)")
    parser.add_argument("--quiet", action="store_true", help="log only problems")
    parser.add_argument("--child", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        serve(*options.child)
        return 0
    logging.basicConfig(level=logging.WARNING if options.quiet else logging.INFO, format="%(asctime)s %(message)s")
    try:
        worker = Worker(
            options.name, Client(options.api), slots=options.slots, queues=options.queue, lease=options.lease, grace=options.grace,
            resources=options.resources,
        )
        os.environ.pop("TDF_TOKEN", None)  # functions need not see it
        calls = worker.program(PROGRAM)(Calls(worker._stopping, Blobs(worker.client), max(1, cores() // max(1, options.slots)), options.slots))
        try:
            worker.run()
        finally:
            calls.end()
        return 0
    except TDFError as error:
        print(f"tdf.worker: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
