import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import glob
import importlib
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import zlib

import pytest

import tdf
import tdf.calls
import tdf.executor
import work
from tdf.labels import label
from tdf.worker import THREADS, Calls, environment
from test_loop import Running, eventually

@pytest.fixture
def executor(served, workers):
    workers.start("--slots", "2")
    executor = tdf.Executor(served.client(), queue="calls")
    yield executor
    executor.shutdown(wait=False, cancel_futures=True)


def test_submit_and_map(executor):
    future = executor.submit(pow, 2, exp=5)
    assert future.result() == 32
    assert future.id > 0
    assert list(executor.map(pow, [2, 3], [2, 2])) == [4, 9]
    assert list(executor.map(work.square, range(25), chunksize=10)) == [n * n for n in range(25)]
    assert list(executor.map(work.square, range(25), buffersize=4)) == [n * n for n in range(25)]
    assert list(executor.map(work.square, [])) == []
    futures = [executor.submit(work.square, n) for n in range(5)]
    assert sorted(done.result() for done in concurrent.futures.as_completed(futures)) == [0, 1, 4, 9, 16]
    assert concurrent.futures.wait(futures).not_done == set()
    (function,) = {task["parameters"]["function"] for task in executor.client.tasks(ids=[futures[0].id])}
    assert function == "work.square"


def test_asyncio(executor, tmp_path):
    async def calls():
        assert await asyncio.wrap_future(executor.submit(work.square, 3)) == 9
        assert await asyncio.wrap_future(executor.submit(work.say, "x")) is None
        assert await asyncio.get_running_loop().run_in_executor(executor, work.square, 4) == 16
        with pytest.raises(ValueError, match="bad"):
            await asyncio.wrap_future(executor.submit(work.fail, "bad"))
        held = [executor.submit(work.wait_for, str(tmp_path / "go")) for _ in range(3)]  # there are two slots
        last = asyncio.wrap_future(held[-1])
        last.cancel()
        with pytest.raises(asyncio.CancelledError):
            await last
        (tmp_path / "go").touch()
        return await asyncio.gather(*map(asyncio.wrap_future, held[:2]))

    assert asyncio.run(calls()) == [str(tmp_path / "go")] * 2


def test_lambdas_and_functions_of_the_script(executor):
    factor = 3
    assert executor.submit(lambda n: n * factor, 4).result() == 12


def test_a_buffersize_bounds_what_is_open(executor):
    read = 0

    def numbers():
        nonlocal read
        while True:
            read += 1
            yield read

    results = executor.map(work.square, numbers(), buffersize=8)
    assert next(results) == 1
    assert read <= 17
    results.close()


def test_exceptions(executor):
    with pytest.raises(ValueError, match="bad") as caught:
        executor.submit(work.fail, "bad").result()
    assert "in fail\n    raise ValueError(text)" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="bad"):
        list(executor.map(work.fail, ["bad"]))
    with pytest.raises(tdf.CallError, match="Awkward: first"):
        executor.submit(work.raise_awkward).result()
    with pytest.raises(tdf.CallError, match="Textless: <.*str.* failed>"):
        executor.submit(work.raise_textless).result()
    future = executor.submit(work.chatter)
    with pytest.raises(tdf.TaskError, match="failed: SystemExit: leaving"):
        future.result()
    (row,) = executor.client.results(ids=[future.id])
    assert row["output"] == "to stdout\n"
    assert row["error"].startswith("to stderr\n")


@pytest.mark.parametrize("name", ["CancelledError", "of futures", "KeyboardInterrupt", "GeneratorExit", "Own"])
def test_exceptions_that_would_end_or_confuse_the_caller(executor, name):
    future = executor.submit(work.raise_named, name)
    with pytest.raises(tdf.TaskError, match="failed: .*(: text|CancelledError)") as caught:
        future.result()
    assert "in raise_named\n" in str(caught.value.__cause__)
    assert not future.cancelled()
    assert executor.submit(work.square, 3).result() == 9


def test_what_the_caller_cannot_load(executor, tmp_path):
    (tmp_path / "only_there.py").write_text("class Value:\n    pass\n\n\nclass Error(Exception):\n    pass\n")
    with pytest.raises(tdf.TaskError, match="failed: only_there.Error: odd .this exception cannot be loaded: ModuleNotFoundError: .*install here") as caught:
        executor.submit(work.of_worker, str(tmp_path), "error").result()
    assert "raise only_there.Error" in str(caught.value.__cause__)
    with pytest.raises(tdf.CallError, match="load the result of task .*: ModuleNotFoundError: .*; install here what the worker has"):
        executor.submit(work.of_worker, str(tmp_path), "value").result()


def test_retries(served, workers, tmp_path):
    workers.start("--slots", "1")
    cases = [
        ({}, OSError("busy"), False), ({"max_fails": 1}, OSError("busy"), True), ({"max_fails": 1, "retry_on": (OSError, KeyError)}, OSError("busy"), True),
        ({"max_fails": 1, "retry_on": OSError}, ValueError("bad"), False), ({"max_fails": 1}, KeyboardInterrupt("no"), False),
    ]
    for number, (options, error, again) in enumerate(cases):
        path = tmp_path / str(number)
        with tdf.Executor(served.client(), queue="calls", backoff=0, **options) as executor:
            future = executor.submit(work.flaky, str(path), error)
            assert (future.exception() is None) == again, (options, error)
        assert path.read_text() == ("xx" if again else "x")
    with pytest.raises(tdf.TDFError, match="retry_on has no effect without max_fails"):
        tdf.Executor(served.client(), retry_on=OSError)
    with pytest.raises(TypeError):
        tdf.Executor(served.client(), max_fails=1, retry_on="OSError")


def test_threads_of_numerical_libraries(monkeypatch):
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    assert {name: value for name, value in environment(3).items() if name in THREADS} == dict.fromkeys(THREADS, "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    assert {environment(3)[name] for name in THREADS if name != "MKL_NUM_THREADS"} == {"8"}
    assert environment(3)["MKL_NUM_THREADS"] == "2"


def test_what_was_printed_before_a_crash(executor):
    future = executor.submit(work.crash)
    with pytest.raises(tdf.TaskError, match="signal SIGSEGV"):
        future.result()
    (row,) = executor.client.results(ids=[future.id])
    assert row["output"] == "step 1\n"
    assert row["error"].startswith("step 2\n")


def test_a_call_closes_its_stdout(served, workers):
    workers.start("--slots", "1")
    with tdf.Executor(served.client(), queue="calls", keep_archived=600) as executor:
        for how in ("replaced", "closed"):
            assert executor.submit(work.silent, how).result() == "result"
            future = executor.submit(work.say, "heard")
            future.result()
            (row,) = executor.client.results(ids=[future.id])
            assert row["output"] == "heard\n"


def test_a_call_shows_what_it_prints(served, workers, tmp_path):
    """`tdf output --follow` has the lines while the call runs, and `tdf workers` says what runs."""
    workers.start("--slots", "1", "--name", "seen")
    with tdf.Executor(served.client(), queue="calls") as executor:
        future = executor.submit(work.lines_until, str(tmp_path / "go"))
        worker = "calls/seen"
        eventually("the worker runs the call", lambda: future.id in runs_of(executor.client, worker))
        follow = subprocess.Popen(["tdf", "output", str(future.id), "--follow"], env=served.environment, stdout=subprocess.PIPE, text=True)
        assert follow.stdout.readline() == "line 1\n"
        (tmp_path / "go").touch()
        future.result()
        assert follow.stdout.read() == "line 2\n"
        assert follow.wait() == 0
        eventually("the worker runs nothing", lambda: not runs_of(executor.client, worker))


def test_progress_and_output_of_threads(served, workers, tmp_path):
    workers.start("--slots", "1", "--lease", "1")
    with tdf.Executor(served.client(), queue="calls", keep_archived=600) as executor:
        for text, shown in ((None, "5 of 10"), ("ä\n" + "\ud800" * 300, "ä ???")):
            go = tmp_path / shown
            future = executor.submit(work.step, str(go), text)
            eventually("the progress is known", lambda: shown in str(executor.client.task(future.id).get("progress")))
            assert executor.client.task(future.id)["progress"]["fraction"] == 0.5
            go.touch()
            assert future.result() is None
            assert executor.client.output(future.id) == b"from a thread\nno line end"
        left = executor.submit(work.leave_thread, str(tmp_path / "late"))
        process = left.result()
        (tmp_path / "late").touch()
        eventually("the process ends with its thread", lambda: not os.path.exists(f"/proc/{process}") or not open(f"/proc/{process}/cmdline").read())
        after = executor.submit(work.say, "heard")
        after.result()
        assert executor.client.output(after.id) == b"heard\n"


def test_progress_outside_of_a_worker(tmp_path, monkeypatch):
    monkeypatch.delenv("TDF_DIR", raising=False)
    tdf.progress(1, 2)
    monkeypatch.setenv("TDF_DIR", str(tmp_path))
    for args, line in (((1, 4), "0.250000 1 of 4"), ((0.5,), "0.500000 "), ((9, 4), "1.000000 9 of 4"), ((float("nan"), 2), "0.000000 nan of 2"), ((1, 0), "0.000000 1 of 0")):
        tdf.progress(*args)
        assert (tmp_path / "progress").read_text() == line + "\n"
    monkeypatch.setenv("TDF_DIR", str(tmp_path / "gone"))
    tdf.progress(1, 2)


def test_lists_show_calls(served, client):
    executor = tdf.Executor(client, queue="nobody")
    futures = [executor.submit(work.say, text="ä\n|"), *executor._submit([(tdf.executor.call_all, (work.square, [(7,), (8,), (9,)]), {})])]
    shown = ["say(text='ä\\n|')", "square(n=7) and 2 more"]
    listed = served.run("ls", "--campaign", executor.campaign)
    table = client._fetch("GET", "/results", None, {"group": executor.campaign}, {"Accept": "text/csv"}, "read", True, lambda answer: answer.read().decode())
    for future, text in zip(futures, shown):
        assert text in listed
        assert table.count(text) == 2  # as input and as the parameter call
        assert f"input {text}" in " ".join(served.run("show", str(future.id)).split())
        assert [task["id"] for task in client.tasks(group=executor.campaign, input=text)] == [future.id]
    for text in (listed, table):
        assert "eJ" not in text  # the beginning of a pickle
    executor.shutdown(wait=False, cancel_futures=True)


def test_labels():
    class Raises:
        def __repr__(self):
            raise SystemExit("of repr")

    class Raising(int):
        def __repr__(self):
            raise ValueError("of repr")

    def fit(rate, *rest, password=None, **options):
        pass

    for args, kwargs, text in (
        ((0.1,), {}, "fit(rate=0.1)"), ((0.1, 2, "b"), {"mode": None}, "fit(rate=0.1, 2, 'b', mode=None)"),
        ((Raises(),), {"f": work.square, "c": Raises}, "fit(rate=Raises(…), f=square, c=test_labels.<locals>.Raises"[:32]),
        ((1,), {"password": "hunter2", "max_tokens": 7, "API_KEY": b"x"}, "fit(rate=1, password=…, max_tokens=7, API_KEY=…)"),
        (({"secret": "abc", "n": 1},), {}, "fit(rate={'n': 1, 'secret': …})"), (("redis://u:hunter2@host/0",), {}, "fit(rate='redis://…@host/0')"),
        (("a\nb\x1b[0m",), {"x\ny": 1}, "fit(rate='a\\nb\\x1b[0m', x�y=1)"), ((memoryview(b"abc"),), {}, "fit(rate=memoryview(3))"),
    ):
        assert label(fit, args, kwargs).startswith(text), label(fit, args, kwargs)
    assert "Raising instance" in label(fit, [Raising()], {})
    assert label(functools.partial(fit, 1, b=2), [3], {}) == "fit(rate=1, 3, b=2)"
    assert label(pow, [2, 3], {}) == "pow(base=2, exp=3)"
    assert label(lambda n: n, [4], {}) == "<lambda>(n=4)"
    for args, kwargs in ((["x" * 100_000, list(range(10**6)), {1: [[[[2]]]]}, 10**5000], {}), (range(10**5), {}), ([1], {"k" * 100_000: "v"})):
        assert len(label(fit, args, kwargs)) <= 200


def runs_of(client, name):
    return next((worker.get("runs") or [] for worker in client.call("GET", "/workers") if worker["name"] == name), [])


def test_a_process_that_dies(executor):
    with pytest.raises(tdf.TaskError, match="the process of work.die ended with exit status 7"):
        executor.submit(work.die, "exit").result()
    with pytest.raises(tdf.TaskError, match="the process of work.die ended with signal SIGSEGV"):
        executor.submit(work.die, signal.SIGSEGV).result()
    assert executor.submit(work.square, 3).result() == 9


def test_a_process_that_dies_while_its_child_lives(executor):
    with pytest.raises(tdf.TaskError, match="the process of work.die_with_child ended with signal SIGKILL"):
        executor.submit(work.die_with_child).result()
    with pytest.raises(tdf.TaskError, match="the process of work.close_all ended with a closed pipe to its worker"):
        executor.submit(work.close_all).result()


def test_what_an_earlier_call_has_left(served, workers, monkeypatch, tmp_path):
    """A call for which an earlier one has spoiled the process runs in another process, and the worker does not count as unfit."""
    workers.start("--slots", "1", PYTHONPATH=os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path)]))
    there = module(tmp_path, monkeypatch, "there_again", "def f():\n    return 1\n")
    with tdf.Executor(served.client(), queue="calls") as executor:
        process = executor.submit(work.leave_timer).result()
        eventually("the process ends", lambda: not running(process))
        second = executor.submit(work.process_of, 1)
        assert second.result() != process
        executor.submit(exec, "import sys; sys.path.clear()").result()
        third = executor.submit(there.f)
        assert third.result() == 1
        assert [executor.client.task(future.id)["round"] for future in (second, third)] == [0, 0]


def running(process):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def test_functions_that_fork(served, workers):
    workers.start("--slots", "1")
    with tdf.Executor(served.client(), queue="calls") as executor:
        futures = [executor.submit(work.fork, how) for how in (None, 3, "bad")]
        assert list(executor.map(work.square, range(5))) == [n * n for n in range(5)]
        assert [future.result() for future in futures] == [0, 3, 1]
        assert "RuntimeError: bad" in executor.client.output(futures[2].id, "stderr").decode()


def test_what_cannot_be_pickled(executor, monkeypatch):
    with pytest.raises(tdf.CallError, match="pickle the call of work.square: .*lock.*; leave out what belongs to this process"):
        executor.submit(work.square, threading.Lock())
    with pytest.raises(tdf.CallError, match="pickle the call of work.square: a future is no argument; pass its result"):
        executor.submit(work.square, executor.submit(work.square, 2))
    with pytest.raises(TypeError, match="client is 4; want a tdf.Client.*the workers decide how many calls run at once"):
        tdf.Executor(4)
    with pytest.raises(tdf.CallError, match="pickle the result of work.unpicklable: .*; leave out"):
        executor.submit(work.unpicklable).result()
    monkeypatch.setattr(tdf.calls, "cloudpickle", None)
    with pytest.raises(tdf.CallError, match="pickle the call of .*lambda.*move functions.*or install cloudpickle; leave out"):
        executor.submit(lambda: 1)
    of_script = type(work.square)(work.square.__code__, {}, "of_script")
    of_script.__module__ = "__main__"
    with pytest.raises(tdf.CallError, match="attribute lookup square on __main__ failed; .*install cloudpickle"):
        executor.submit(of_script, 1)
    assert executor.submit(work.square, 5).result() == 25


def test_too_large(executor, monkeypatch):
    """Values are limited if the API keeps no blobs."""
    monkeypatch.setattr(executor.client.blobs, "_kept", False)
    monkeypatch.setattr(executor.client.blobs, "_asked", math.inf)
    with pytest.raises(tdf.CallError, match="pickle the call of builtins.len: .* bytes, more than 131,071; write large arguments to a file"):
        executor.submit(len, os.urandom(200_000))
    answer = tdf.calls.Process().run(zlib.compress(pickle.dumps(("", b"", 0, pickle.dumps((work.large, (1_000_000,), {}, ())), [], None))), "work.large", None, int)
    assert re.search(r"pickle the result of work.large: .* bytes, more than 1,007,616; write it to a file .*set \[http\] blobs", answer["error"])
    assert len(executor.submit(work.large, 700_000).result()) == 700_000


def test_what_a_call_has_printed_leaves_the_disk():
    printed = tdf.worker.Printed()
    os.write(printed.files[0].fileno(), b"x" * (3 << 20))
    assert [len(text) for text in printed.read()] == [1 << 20, 0]
    assert [os.fstat(file.fileno()).st_size for file in printed.files] == [0, 0]


@pytest.fixture
def unfit(served, monkeypatch):
    """A worker in this process, which lacks the modules that tests write, and claims again at once."""
    monkeypatch.setattr("tdf.loop.UNFIT_PAUSE", 0)
    worker = tdf.Worker("unfit", served.client(token=served.add_token("python", "worker")), queues=["calls", "alone"])
    calls = worker.program(tdf.calls.PROGRAM)(Calls(worker._stopping, worker.client.blobs))
    with Running(worker):
        yield worker
    calls.end()


def module(directory, monkeypatch, name, text):
    (directory / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(directory))
    return importlib.import_module(name)


def test_a_shortage_of_a_worker_fails_no_call(served, unfit, monkeypatch, tmp_path):
    """Neither when its process cannot be started, nor when what it prints fills the disk: the call runs again."""
    monkeypatch.setattr("tdf.worker.SHORT_PAUSE", 0)
    executor, slots, full = tdf.Executor(served.client(), queue="alone"), [no_descriptors, tdf.worker.Slot], [True]
    monkeypatch.setattr("tdf.worker.Slot", lambda *of: slots.pop(0)(*of) if len(slots) > 1 else slots[0](*of))
    monkeypatch.setattr("tdf.worker.Printed.is_full", lambda printed: full.pop() if full else False)
    path = tmp_path / "runs"
    future = executor.submit(exec, f"file = open({str(path)!r}, 'a'); file.write('x'); assert file.tell() > 1")
    assert future.result() is None
    assert (path.read_text(), executor.client.task(future.id)["round"]) == ("xx", 2)
    executor.shutdown()


def test_a_module_that_no_worker_can_load(served, unfit, monkeypatch, tmp_path):
    executor = tdf.Executor(served.client(), queue="alone")
    lacking = module(tmp_path, monkeypatch, "lacking", "def f():\n    pass\n")
    future = executor.submit(lacking.f)
    with pytest.raises(tdf.TaskError, match="load the call of lacking.f on .*python.*: ModuleNotFoundError: No module named 'lacking'; a worker needs the modules"):
        future.result()
    assert executor.client.task(future.id)["round"] == 3
    with pytest.raises(tdf.TaskError, match="the process of builtins.len on .* ended with exit status 9 before it had loaded the call; a worker needs"):
        executor.submit(len, Loading(9)).result()
    monkeypatch.setattr("tdf.executor.PYTHON", "3.8")
    with pytest.raises(tdf.TaskError, match="Python 3.8 has pickled it, and this worker runs Python 3.*start a worker with the same version: python3.8 -m tdf"):
        executor.submit(pow, 1, 2).result()
    monkeypatch.setattr("tdf.worker.Slot", no_space)
    monkeypatch.setattr("tdf.executor.PYTHON", tdf.calls.PYTHON)
    with pytest.raises(tdf.TaskError, match="the process of builtins.pow on .* cannot be started: .*no space"):
        executor.submit(pow, 1, 2).result()
    executor.shutdown()


class Loading:
    """An argument that ends the process that loads it."""

    def __init__(self, status):
        self.status = status

    def __reduce__(self):
        return os._exit, (self.status,)


def no_descriptors(*_):
    raise OSError(errno.EMFILE, "too many open files")


def no_space(*_):
    raise OSError("no space")


def test_a_worker_without_a_module_leaves_its_calls_to_others(served, workers, unfit, monkeypatch, tmp_path):
    monkeypatch.setattr("tdf.loop.UNFIT_PAUSE", 1000)
    monkeypatch.setattr("tdf.loop.LONGEST_UNFIT_PAUSE", 1000)
    with tdf.Executor(served.client(), queue="calls") as executor:
        future = executor.submit(module(tmp_path, monkeypatch, "there", "def f():\n    return 1\n").f)
        eventually("the worker releases the task", lambda: executor.client.task(future.id)["round"] == 1)
        workers.start(PYTHONPATH=os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path)]))
        assert future.result() == 1
        assert executor.client.task(future.id)["round"] == 1


def test_a_changed_module(served, workers, monkeypatch, tmp_path):
    workers.start("--slots", "1", PYTHONPATH=os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path)]))
    text = "import os\n\n\ndef f():\n    return os.getpid(), %d\n"
    changing = module(tmp_path, monkeypatch, "changing", text % 1)
    with tdf.Executor(served.client(), queue="calls") as executor:
        processes = set()
        for version in (1, 2):
            (tmp_path / "changing.py").write_text(text % version)
            os.utime(tmp_path / "changing.py", (version, version))
            process, found = executor.submit(changing.f).result()
            assert found == version
            assert executor.submit(changing.f).result() == (process, version)
            processes.add(process)
        assert len(processes) == 2


def test_many_large_results_are_not_held_at_once():
    text = "x" * (3 << 20)
    rows = [{"id": 1, "output": text}, {"id": 2, "output": {"base64": text}, "result": {"pickle": text}}, *({"id": n} for n in range(300))]
    assert [len(some) for some in tdf.executor.parts(iter(rows))] == [2, 250, 50]


def test_a_fork_of_the_caller(executor):
    """The thread that reads results is not in the child, which gets those of its own calls."""
    assert executor.submit(work.square, 2).result() == 4
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = executor.submit(work.square, 3).result(60)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_cancel(served, workers, tmp_path):
    executor = tdf.Executor(served.client(), queue="calls")
    waiting = executor.submit(work.square, 1)
    assert waiting.cancel()
    assert waiting.cancel()
    assert waiting.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result()
    assert concurrent.futures.wait([waiting]).done == {waiting}
    workers.start("--slots", "1")
    running = executor.submit(work.wait_for, str(tmp_path / "go"))
    eventually("the call runs", lambda: executor.client.task(running.id)["state"] == "running")
    others = [executor.submit(work.square, n) for n in range(3)]
    assert not running.cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    assert all(other.cancelled() for other in others)
    with pytest.raises(RuntimeError, match="the executor was shut down"):
        executor.submit(work.square, 1)
    (tmp_path / "go").touch()
    executor.shutdown()
    assert running.result() == str(tmp_path / "go")
    assert not running.cancel()


def test_callbacks_that_cancel_the_other_calls(executor, tmp_path):
    futures, said, true = [], [], []

    def cancel_all(first):
        if not first.cancelled():
            said.extend([future.cancel() for future in futures])
            true.extend([future.cancelled() for future in futures])
            sys.exit("a callback that exits")

    for n in range(8):
        futures.append(executor.submit(work.wait_for, str(tmp_path / str(n))))
    futures[0].add_done_callback(cancel_all)
    (tmp_path / "0").touch()
    eventually("the callback ends", lambda: len(true) == 8)
    assert said == true
    assert not said[0]
    assert said[3:] == [True] * 5  # another call may have begun in each slot
    (tmp_path / "1").touch()
    (tmp_path / "2").touch()
    executor.shutdown()


def test_tasks_that_others_change(served, workers, monkeypatch, tmp_path):
    monkeypatch.setattr("tdf.executor.LOOK_AGAIN", 0)
    client, reading = served.client(), threading.Lock()

    class Held(tdf.Executor):
        def _read(self):
            with reading:
                return super()._read()

    with Held(client, queue="calls") as executor:
        cancelled, archived, removed = [executor.submit(work.square, n) for n in range(3)]
        client.act("cancel", [cancelled.id])
        with pytest.raises(concurrent.futures.CancelledError):
            cancelled.result()
        with reading:
            for action in ("cancel", "archive"):
                client.act(action, [archived.id, removed.id])
            client.act("remove", [removed.id])
        with pytest.raises(concurrent.futures.CancelledError):
            archived.result()
        with pytest.raises(tdf.TaskError, match="removed: someone has removed it"):
            removed.result()
        workers.start("--slots", "1")
        running = executor.submit(work.wait_for, str(tmp_path / "never"))
        eventually("the call runs", lambda: client.task(running.id)["state"] == "running")
        assert client.task(running.id)["generations"] == 0  # a worker opens no further calls
        client.act("cancel", [running.id])
        with pytest.raises(concurrent.futures.CancelledError):
            running.result()
        assert executor.submit(work.square, 3).result() == 9  # the slot is free again


def test_a_task_that_is_no_call(executor):
    tasks = [{"program": tdf.calls.PROGRAM, "queue": "calls", "meta": meta, "input": "x"} for meta in ('{"python": "%s"}' % tdf.calls.PYTHON, "no JSON")]
    ids = executor.client.open(tasks)
    eventually("both fail", lambda: all(row["state"] == "failed" for row in executor.client.results(ids=ids)))
    first, second = executor.client.results(ids=ids)
    assert "load the call of ?: Error -5" in first["error"]
    assert "Python None has pickled it" in second["error"]


def test_no_rights(served):
    viewer = tdf.Executor(served.client(token=served.add_token("viewer", "viewer")))
    with pytest.raises(tdf.APIError, match="open tasks: forbidden"):
        viewer.submit(pow, 1, 2)
    submitter = served.client(token=served.add_token("sub", "submitter"))
    with pytest.raises(tdf.APIError, match="begin with sub/ for a campaign"):
        tdf.Executor(submitter).submit(pow, 1, 2)
    with pytest.raises(tdf.Unreachable, match="open tasks: .*start `tdf up`"):
        tdf.Executor(tdf.Client("http://127.0.0.1:1", "t")).submit(pow, 1, 2)


def test_no_worker(served, workers, monkeypatch, caplog):
    monkeypatch.setattr("tdf.executor.LOOK_AGAIN", 0)
    with tdf.Executor(served.client(), queue="calls") as executor:
        future = executor.submit(work.square, 3)
        eventually("a warning", lambda: caplog.messages)
        assert f"start one with: TDF_TOKEN=TOKEN python{tdf.calls.PYTHON} -m tdf.worker --api {served.url} --queue calls;" in caplog.text
        workers.start()
        assert future.result() == 9
    assert len(caplog.messages) == 1


def test_a_submitter(served, workers, monkeypatch):
    monkeypatch.setattr("tdf.executor.LOOK_AGAIN", 0)  # it may not read why a task waits
    workers.start()
    with tdf.Executor(served.client(token=served.add_token("sub", "submitter")), campaign="sub/fit", queue="calls") as executor:
        assert list(executor.map(work.square, range(3))) == [0, 1, 4]


def test_refused_workers(workers):
    refused = subprocess.run(
        [sys.executable, "-m", "tdf.worker"], env={**workers.environment, "TDF_TOKEN": "wrong"}, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("tdf.worker: register worker ")
    assert "unauthorized" in refused.stderr
    for options in ({"slots": 0}, {"slots": -1}, {"slots": 1001}, {"slots": True}, {"lease": 0}, {"lease": 301}, {"lease": math.nan}, {"grace": -1}, {"grace": math.nan}):
        with pytest.raises(tdf.TDFError, match=f"make a worker: {[*options][0]} is .*; want a number from"):
            tdf.Worker(**options)
    with pytest.raises(tdf.TDFError, match="slots is 100000; want a number from 1 to 1000; start several workers if you need more"):
        tdf.Worker(slots=100_000)
    with pytest.raises(tdf.TDFError, match="make a worker: its name is empty; give one, or leave it out"):
        tdf.Worker("")


def test_functions_do_not_see_the_token(executor, workers):
    assert executor.submit(os.getenv, "TDF_TOKEN").result() is None
    assert executor.submit(os.getenv, "TDF_API").result() == workers.environment["TDF_API"]


def test_a_worker_that_is_told_to_stop_finishes(served, workers, tmp_path):
    worker = workers.start("--slots", "1", "--grace", "1000")
    with tdf.Executor(served.client(), queue="calls") as executor:
        future = executor.submit(work.wait_for, str(tmp_path / "go"))
        eventually("the call runs", lambda: executor.client.task(future.id)["state"] == "running")
        worker.terminate()
        (tmp_path / "go").touch()
        assert future.result() == str(tmp_path / "go")
        assert worker.wait() == 0
        (row,) = executor.client.results(ids=[future.id])
        assert row["round"] == 0


def test_preempted_workers_count_as_no_loss(served, workers, tmp_path):
    """The first worker's terminal is closed, so it ends before its call. With the second worker, the process of the call
    gets SIGTERM before the worker does, as in a job of Slurm.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tdf.Executor(served.client(), queue="calls", max_losses=0) as executor:
        future = executor.submit(work.note_and_wait, str(tmp_path / "process"), str(tmp_path / "go"))
        for by_job in (False, True):
            worker = workers.start("--slots", "1", "--grace", "1000" if by_job else "0")
            eventually("the call runs", (tmp_path / "process").exists)
            if by_job:
                os.kill(int((tmp_path / "process").read_text()), signal.SIGTERM)
            worker.send_signal(signal.SIGTERM if by_job else signal.SIGHUP)
            assert worker.wait() == 0
            (tmp_path / "process").unlink()
        signal.signal(signal.SIGHUP, before)
        (tmp_path / "go").touch()
        workers.start()
        future.result()
        assert executor.client.task(future.id)["round"] == 2


def test_killed_workers_lose_nothing(served, workers, tmp_path):
    """Of three workers, two are killed while they run calls that cannot end before."""
    for _ in range(3):
        workers.start("--slots", "2", "--lease", "2")
    with tdf.Executor(served.client(), queue="calls", max_losses=1000) as executor:
        results = executor.map(work.note, [str(tmp_path)] * 200, range(200))

        def at_work():
            return {int(path.rpartition(".")[2]) for path in glob.glob(str(tmp_path / "*0.*"))}

        eventually("all workers run calls", lambda: {process.pid for process in workers.running} <= at_work())
        for process in workers.running[:2]:
            process.kill()
        (tmp_path / "go").touch()
        assert list(results) == [n * n for n in range(200)]
    runs = [os.path.basename(path).partition(".")[0] for path in glob.glob(str(tmp_path / "*.*"))]
    assert len(set(runs)) == 200
    assert len(runs) > 200  # the killed runs ran again


def test_timeout_of_a_call(served, workers, tmp_path):
    """The worker itself ends a call that runs for longer than its timeout, and reports it."""
    workers.start("--name", "ends")
    with tdf.Executor(served.client(), queue="calls", timeout=1, keep_archived=600) as executor:
        call = executor.submit(work.wait_for, str(tmp_path / "never"))
        with pytest.raises(tdf.TaskError, match="timed out"):
            call.result(timeout=100)
        task = served.client().task(call.id)
    assert [line for line in task["log"] if "calls/ends: timed out" in line], task
