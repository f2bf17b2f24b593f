"""The tests of concurrent.futures in CPython's Lib/test/test_concurrent_futures that hold for processes, adapted.

Each test has the name of CPython's. Left out are:

- test_max_workers_negative, test_max_workers_too_large, test_default_workers, test_idle_process_reuse_*,
  test_saturation, test_spawn_process, test_force_shutdown_workers, test_terminate_workers: workers are separate
  processes, which the executor neither starts nor ends.
- test_processes_terminate, test_del_shutdown, test_shutdown_no_wait, test_context_manager_shutdown of the pools:
  these look at the pool's processes and threads.
- test_interpreter_shutdown, test_submit_after_interpreter_shutdown, test_hang_gh83386, test_hang_gh94440: the calls of
  a script that has ended still run.
- test_killed_child: the other calls run on, so the executor is not broken; test_executor.py has the tests of it.
- test_max_tasks_early_shutdown, test_max_tasks_per_child_defaults_to_spawn_context, test_safeguard_fork: these belong
  to the start methods of multiprocessing.
- deadlock.py: it breaks the pipes and pickles of the pool; test_executor.py breaks those of the workers.
- test_no_stale_references, test_free_reference, test_ressources_gced_in_workers and test_free_reference_yielded_future:
  these count references of the pool.
- test_future.py and the parts of test_wait.py and test_as_completed.py that make futures by hand: the code is the
  standard library's own.
"""

import collections
import concurrent.futures as futures
import contextlib
import logging
import os
import sys
import threading

import pytest

import tdf
import work
from test_loop import eventually


@pytest.fixture
def make(served, slots):
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(tdf.Executor(served.client(), queue="calls", **options))


@pytest.fixture
def executor(make):
    return make()


@pytest.fixture
def held(executor, tmp_path):
    """A call that runs until the file `go` exists."""
    future = executor.submit(work.wait_for, str(tmp_path / "go"))
    yield future
    (tmp_path / "go").touch()


# executor.py


def test_submit(executor):
    assert executor.submit(pow, 2, 8).result() == 256


def test_submit_keyword(executor):
    assert executor.submit(work.square, n=2).result() == 4
    assert executor.submit(work.capture, 1, self=2, fn=3).result() == ((1,), {"self": 2, "fn": 3})
    with pytest.raises(TypeError):
        executor.submit(fn=work.capture, arg=1)
    with pytest.raises(TypeError):
        executor.submit(arg=1)


def test_map(executor):
    assert list(executor.map(pow, range(10), range(10))) == list(map(pow, range(10), range(10)))
    assert list(executor.map(pow, range(10), range(10), chunksize=3)) == list(map(pow, range(10), range(10)))


def test_map_exception(executor):
    results = executor.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert [next(results), next(results)] == [(0, 1), (0, 1)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_map_timeout(executor, held, tmp_path):
    found = []
    with pytest.raises(futures.TimeoutError):
        for result in executor.map(work.wait_for, [str(tmp_path), str(tmp_path / "go")], timeout=0.2):
            found.append(result)
    assert found in ([], [str(tmp_path)])


def test_shutdown_race_issue12456(executor):
    executor.map(str, [2] * 6)
    executor.shutdown()


def test_swallows_falsey_exceptions(executor):
    with pytest.raises(work.FalseyBool, match="falsey"):
        executor.submit(work.raise_falsey, "FalseyBool").result()
    with pytest.raises(work.FalseyLen, match="falsey"):
        executor.submit(work.raise_falsey, "FalseyLen").result()


# test_process_pool.py, test_init.py


def test_map_chunksize(executor):
    for size in (0, -1):
        with pytest.raises(ValueError):
            list(executor.map(pow, [1], [1], chunksize=size))
    assert list(executor.map(pow, range(10), range(10), chunksize=20)) == list(map(pow, range(10), range(10)))


def test_traceback(executor):
    future = executor.submit(work.fail, "some text")
    assert type(future.exception()) is ValueError
    assert future.exception().args == ("some text",)
    assert "raise ValueError(text)" in str(future.exception().__cause__)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes since Python 3.11")
def test_exceptions_with_notes_and_groups(executor):
    error = executor.submit(work.raise_noted).exception()
    assert error.__notes__ == ["of the group"]
    assert error.exceptions[0].__notes__ == ["first", "second"]
    assert "second" in str(error.__cause__)


def test_max_tasks_per_child(make):
    executor = make(max_tasks_per_child=2, initializer=work.set_value, initargs=(1,))
    processes = [executor.submit(os.getpid).result() for _ in range(6)]
    assert set(collections.Counter(processes).values()) == {2}
    for wrong, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), ("1", TypeError)):
        with pytest.raises(error):
            make(max_tasks_per_child=wrong)


def test_initializer(make):
    first, second, without = make(initializer=work.set_value, initargs=("a",)), make(initializer=work.set_value, initargs=("b",)), make()
    for _ in range(3):
        assert first.submit(work.get_value).result() == ("a", 1)
        assert second.submit(work.get_value).result() == ("b", 1)
        assert without.submit(work.get_value).result() == (None, 0)
    with pytest.raises(TypeError):
        make(initializer="work.set_value")


def test_initializer_fails(make):
    executor = make(initializer=work.fail, initargs=("bad",))
    for _ in range(2):
        with pytest.raises(futures.BrokenExecutor, match="the initializer has failed: ValueError: bad"):
            executor.submit(work.square, 2).result()
    with pytest.raises(tdf.CallError, match="pickle the initializer work.set_value: .*lock"):
        make(initializer=work.set_value, initargs=(threading.Lock(),))
    with pytest.raises(tdf.TaskError, match="the process of work.square ended with exit status 7"):
        make(initializer=work.die, initargs=("exit",)).submit(work.square, 2).result()


# test_shutdown.py


def test_run_after_shutdown(executor):
    executor.shutdown()
    with pytest.raises(RuntimeError):
        executor.submit(pow, 2, 5)


def test_hang_issue12364(executor):
    calls = [executor.submit(work.square, n) for n in range(20)]
    executor.shutdown()
    assert [call.result() for call in calls] == [n * n for n in range(20)]


def test_cancel_futures(make, tmp_path):
    executor = make()
    calls = [executor.submit(work.wait_for, str(tmp_path / "go")) for _ in range(10)]
    eventually("a call runs", calls[0].running)
    threading.Thread(target=executor.shutdown, kwargs={"cancel_futures": True}).start()
    eventually("the others are cancelled", lambda: sum(call.cancelled() for call in calls) >= 8)
    (tmp_path / "go").touch()
    executor.shutdown()
    assert all(call.cancelled() or call.result() == str(tmp_path / "go") for call in calls)


# test_wait.py, test_as_completed.py, test_future.py


def test_running_and_cancel(executor, held, tmp_path):
    eventually("the call runs", held.running)
    assert not held.done()
    assert not held.cancel()
    (tmp_path / "go").touch()
    assert held.result() == str(tmp_path / "go")
    assert not held.running()
    assert held.done()
    waiting = tdf.Executor(executor.client, queue="nobody").submit(work.square, 1)
    assert not waiting.running()
    assert waiting.cancel()
    assert (waiting.running(), waiting.cancelled()) == (False, True)


def test_first_completed(executor, held):
    square = executor.submit(work.square, 21)
    done, rest = futures.wait([held, square], return_when=futures.FIRST_COMPLETED)
    assert (done, rest) == ({square}, {held})


def test_first_exception(executor, held):
    bad = executor.submit(work.fail, "bad")
    done, rest = futures.wait([held, bad], return_when=futures.FIRST_EXCEPTION)
    assert (done, rest) == ({bad}, {held})


def test_all_completed(executor):
    calls = {executor.submit(divmod, 2, 0), executor.submit(work.square, 2)}
    assert futures.wait(calls) == (calls, set())


def test_timeout(executor, held):
    square = executor.submit(work.square, 6)
    square.result()
    assert futures.wait([square, held], timeout=0) == ({square}, {held})
    for call in (held.result, held.exception):
        with pytest.raises(futures.TimeoutError):
            call(timeout=0)


def test_future_times_out(executor, held):
    square = executor.submit(work.square, 3)
    square.result()
    found = set()
    with pytest.raises(futures.TimeoutError, match=r"1 \(of 2\) futures unfinished"):
        for future in futures.as_completed([held, square], timeout=0):
            found.add(future)
    assert found == {square}


def test_duplicate_futures(executor):
    future = executor.submit(work.square, 2)
    assert list(futures.as_completed([future] * 5)) == [future]


def test_done_callback(executor, caplog):
    """Also with callbacks that raise, or that would end the thread that reads results."""
    seen = []
    for fails in (ValueError("of a callback"), SystemExit("of a callback")):
        future = executor.submit(work.square, 5)

        def raises(_, error=fails):
            raise error

        future.add_done_callback(raises)
        future.add_done_callback(lambda done: seen.append(done.result()))
        assert future.result() == 25
        assert executor.submit(work.square, 3).result() == 9
    with caplog.at_level(logging.CRITICAL):
        future.add_done_callback(lambda done: seen.append(done))  # it is called at once
    assert future in seen


def test_callbacks_that_exit_when_all_calls_fail(served, monkeypatch):
    executor = tdf.Executor(served.client(), queue="nobody")
    calls = [executor.submit(work.square, n) for n in range(2)]
    for call in calls:
        call.add_done_callback(lambda _: sys.exit("of a callback"))

    def revoked():
        raise tdf.TDFError("revoked")

    monkeypatch.setattr(executor, "_read", revoked)
    assert [str(call.exception(timeout=60)) for call in calls] == ["revoked"] * 2


def test_results_that_mean_nothing_and_large_arguments(executor):
    assert executor.submit(work.say, "x").result() is None
    data = os.urandom(90_000)
    assert executor.submit(work.capture, data).result() == ((data,), {})
