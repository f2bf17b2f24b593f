import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import pytest

import tdf
from conftest import PYTHON
from tdf.cores import cores
from test_loop import eventually

HERE = os.path.dirname(os.path.abspath(__file__))


def descendants(pid):
    """Returns a process and all that it has started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], check=True, capture_output=True, text=True).stdout
    children = {}
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, rest = set(), [pid]
    while rest:
        found.add(rest[-1])
        rest.extend(children.get(rest.pop(), []))
    return found


def alive(pids):
    living = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] != "Z":
                    living.add(pid)
        except OSError:
            pass
    return living


# Affinity, and quotas of cgroups of both versions, also those above. A container sees only the root's.
@pytest.mark.parametrize("file, text, expected", [
    ("", "", 4),
    ("a/b/cpu.max", "150000 100000", 2),
    ("a/cpu.max", "50000 100000", 1),
    ("cpu.max", "max 100000", 4),
    ("cpu/cpu.cfs_quota_us", "250000", 3),
    ("cpu/c/cpu.cfs_quota_us", "-1", 4),
])
def test_cores_are_those_that_may_be_used(file, text, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5})
    for name, content in {"proc/self/cgroup": "2:cpu,cpuacct:/c\n1:name=systemd:/\n0::/a/b\n",
                          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/" + (file or "x"): text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert cores(str(tmp_path)) == expected


def test_the_example_of_the_package():
    with tdf.up() as t, tdf.Executor(t) as e:
        assert list(e.map(pow, [2, 3], [2, 2])) == [4, 9]
        started = descendants(t._guard.pid)
    assert len(started) >= 4  # the guard, tdf up, the worker and its slot
    executor = weakref.ref(e)
    del e
    gc.collect()
    assert executor() is None  # atexit does not keep it
    eventually("all processes have ended", lambda: not alive(started))


SCRIPT = """
import os, sys, time, tdf, work
t = tdf.up(workers=1)
e = tdf.Executor(t)
future = e.submit(work.wait_for, "/nonexistent/file")
while t.client.task(future.id)["state"] != "running":
    time.sleep(0.02)
print(t._guard.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_script_that_dies_leaves_nothing_behind(how, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join([PYTHON, HERE])}
    script = subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)
    guard = int(script.stdout.readline())
    started = descendants(guard)
    assert len(started) >= 4
    script.send_signal(how)
    script.wait()
    eventually("all processes have ended", lambda: not alive(started))
    eventually("the directory is removed", lambda: not list(tmp_path.glob("tdf-*")))


def test_a_script_ends_after_its_calls(tmp_path):
    script = "import pathlib, tdf\ntdf.Executor(tdf.up(workers=1).client).submit(pathlib.Path('called').touch)"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": PYTHON}, cwd=tmp_path, check=True)
    assert (tmp_path / "called").exists()


def test_data_stay(tmp_path):
    with tdf.up(data=str(tmp_path / "data")) as t:
        (id,) = t.client.open({"program": "none"})
    with tdf.up(data=str(tmp_path / "data")) as t:
        assert t.client.task(id)["state"] == "open"


def test_no_command_in_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tdf.TDFError, match="there is no command tdf in PATH; build it with `make build`"):
        tdf.up()


def test_a_start_that_fails(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tdf.TDFError, match="start tdf up: .*file"):
        tdf.up(data=str(tmp_path / "file" / "data"))


def test_a_taken_port(monkeypatch):
    tries = []

    def taken(*arguments):
        tries.append(arguments)
        return real(*arguments) if len(tries) == 3 else None

    real = tdf.local.start
    monkeypatch.setattr(tdf.local, "start", taken)
    with tdf.up(workers=1) as t:
        assert t.client.call("GET", "/stats")
    assert len(tries) == 3
