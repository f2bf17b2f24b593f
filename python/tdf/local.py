"""A TDF of its own for a script or a notebook: `tdf up` and a Python worker, which end with the script."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any, Dict, List, Optional

from .client import Client
from .cores import cores
from .errors import TDFError
from .modules import refuse_while_loading
from .token import of_tdf_up

API = re.compile(r"api +(http://[^/]+)/docs;.* curl -H (.*) http")
TAKEN = "address in use"
ATTEMPTS = 10  # with another free port each, since another process may take it first
GRACE = 30  # seconds for `tdf up` to end


class Local:
    """A running local TDF. client is its client; `url`, `token` and `port`, of Redis, are for other programs."""

    def __init__(self, guard: "subprocess.Popen[str]", port: int, url: str, token: str) -> None:
        self.port, self.url, self.token = port, url, token
        self.client = Client(url, of_tdf_up(url.partition("//")[2]))  # another program may listen there in the end
        self._guard = self.client.up = guard

    def __enter__(self) -> "Local":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends TDF and the worker. Tasks that run are lost, and without `data`, so is everything else."""
        self.client.close()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()


def up(*, workers: Optional[int] = None, data: Optional[str] = None, lease: float = 10.0, resources: str = "") -> Local:
    """Starts `tdf up` of PATH on free ports, in a directory of its own, and a worker for tdf.Executor.

    workers is the number of functions that run at once, by default one per core. data is a directory that keeps
    tasks and results; without it, they are removed at the end. resources is what the worker offers, such as "auto". All ends
    with close, with the `with` statement, or with this process.
    """
    refuse_while_loading("start tdf up")
    tdf = shutil.which("tdf")
    if tdf is None:
        raise TDFError("start tdf up: there is no command tdf in PATH; build it with `make build`, and add its directory to PATH")
    for _ in range(ATTEMPTS):
        started = start(tdf, workers or cores(), data, lease, resources)
        if started is not None:
            return started
    raise TDFError("start tdf up: every port that was free was taken at once; try again")


def start(tdf: str, workers: int, data: Optional[str], lease: float, resources: str) -> Optional[Local]:
    """Starts TDF. It returns None if its port was taken meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = "import sys, tdf.local; tdf.local.main(*sys.argv[1:])"
    command = [sys.executable, "-c", code, tdf, str(port), str(workers), str(lease), os.path.abspath(data) if data else "", resources]
    guard = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=with_path(dict(os.environ)), start_new_session=True
    )
    assert guard.stdout is not None and guard.stdin is not None
    lines: List[str] = []
    for line in guard.stdout:
        lines.append(line)
        found = API.match(line)
        if found is None:
            continue
        with open(shlex.split(found[2])[0][1:]) as header:
            token = header.read().split()[-1]
        guard.stdin.write(found[1] + "\n")
        guard.stdin.flush()
        threading.Thread(target=drain, args=(guard.stdout,), daemon=True).start()
        return Local(guard, port, found[1], token)
    guard.wait()
    text = "".join(lines).strip()
    if TAKEN in text:
        return None
    raise TDFError(f"start tdf up: {text or 'it ended at once'}")


def drain(output: IO[str]) -> None:
    with output:
        for _ in output:
            pass


def with_path(environment: Dict[str, str]) -> Dict[str, str]:
    """Lets a process import what this one can import, and keeps it from the configuration of another TDF."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    kept = {name: value for name, value in environment.items() if not name.startswith("TDF_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([here] + [os.path.abspath(path) for path in sys.path])}


def guard(tdf: str, port: str, workers: str, lease: str, data: str, resources: str) -> None:
    """Runs TDF until stdin ends, or until the parent has gone: a child of it may have inherited the pipe."""
    parent = os.getppid()
    directory = tempfile.mkdtemp(prefix="tdf-")
    running: List["subprocess.Popen[Any]"] = []
    try:
        kept = ["--data", data or os.path.join(directory, "data")] if data or shutil.which("redis-server") else []
        command = [tdf, "--redis", f"localhost:{port}", "--set", "http.listen=127.0.0.1:0", "up", "--workers", workers]
        up = subprocess.Popen(command + ["--directory", os.path.join(directory, "work")] + kept, cwd=directory, stderr=sys.stdout)
        running.append(up)
        while up.poll() is None and os.getppid() == parent:
            if not select.select([sys.stdin], [], [], 1.0)[0]:
                continue
            line = sys.stdin.readline()
            if not line:
                return
            worker = [sys.executable, "-m", "tdf.worker", "--api", line.strip(), "--slots", workers, "--lease", lease, "--quiet"]
            worker += ["--resources", resources]
            running.append(subprocess.Popen(worker, stdin=subprocess.DEVNULL))
    finally:
        end(running)
        shutil.rmtree(directory, ignore_errors=True)


def end(running: List["subprocess.Popen[Any]"]) -> None:
    for process in running[1:]:
        process.kill()  # its children notice
        process.wait()
    for process in running[:1]:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(*arguments: str) -> None:
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, lambda *_: sys.exit(1))
    guard(*arguments)
