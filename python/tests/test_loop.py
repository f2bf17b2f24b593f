import threading
import time

import pytest

import tdf


def eventually(what, true):
    """Waits until a condition holds. The limit only keeps a broken test from running for ever."""
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Running:
    """A worker in a thread of this process."""

    def __init__(self, worker):
        self.worker, self.problem = worker, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.worker.run()
        except BaseException as error:
            self.problem = error

    def __enter__(self):
        return self.worker

    def __exit__(self, *_):
        self.worker.stop()
        self.thread.join()


@pytest.fixture
def worker(served):
    return tdf.Worker("tests", served.client(token=served.add_token("python", "worker")), slots=2, lease=9, queues=["loop"])


def opened(client, program, *inputs, **properties):
    return client.open([{"program": program, "input": text, "queue": "loop", **properties} for text in inputs])


def finished(client, ids):
    rows = list(client.results(ids=ids))
    return all(row["state"] in ("succeeded", "failed", "timed_out", "archived") for row in rows) and rows


def outcome(client, ids):
    eventually("the tasks are finished", lambda: finished(client, ids))
    return list(client.results(ids=ids))


def test_results_and_failures(client, worker):
    @worker.program("square")
    def square(task):
        task.stdout = b"squaring"
        return {"square": int(task.input) ** 2}

    @worker.program("permanent")
    def permanent(task):
        raise tdf.Fail("never", permanent=True, result={"n": 1})

    @worker.program("later")
    def later(task):
        if task.round == 0:
            raise tdf.Fail("not yet", later=0)
        return task.parameters

    @worker.program("refused")
    def refused(task):
        nested = 1
        for _ in range(200):
            nested = [nested]
        return nested

    @worker.program("unserializable")
    def unserializable(task):
        return float("inf")

    with Running(worker):
        good, bad = outcome(client, opened(client, "square", "12", "x"))
        assert good["result"] == {"square": 144}
        assert good["output"] == "squaring"
        assert good["worker"] == "python/tests"
        assert "ValueError: invalid literal" in bad["error"]
        (never,) = outcome(client, opened(client, "permanent", "", max_fails=9))
        assert (never["state"], never["round"], never["result"]) == ("failed", 0, {"n": 1})
        (put_off,) = outcome(client, opened(client, "later", "", meta='{"a": 1}'))
        assert (put_off["state"], put_off["round"], put_off["result"]) == ("succeeded", 1, {"a": 1})
        (deep,) = outcome(client, opened(client, "refused", ""))
        assert deep["state"] == "failed"
        assert "levels" in deep["error"]
        (infinite,) = outcome(client, opened(client, "unserializable", ""))
        assert "use finite numbers" in infinite["error"]


def test_cancel_progress_and_checkpoint(client, worker):
    started, seen = threading.Event(), []

    @worker.program("slow")
    def slow(task):
        if task.round == 1:
            seen.append(task.checkpoint)
            return "second"
        task.progress(0.5, "half")
        task.save(b"\xffstate")
        started.set()
        task.cancelled.wait()
        seen.append("cancelled")

    with Running(worker):
        (id,) = opened(client, "slow", "")
        started.wait()
        eventually("the progress is known", lambda: "half" in str(client.task(id).get("progress")))
        assert client.act("requeue", [id]) == 1
        (row,) = outcome(client, [id])
        assert row["result"] == "second"
        assert sorted(map(str, seen)) == sorted(["cancelled", str(b"\xffstate")])


def test_short_rounds_are_prefetched_and_given_back(client, worker):
    release, order = threading.Event(), []

    @worker.program("short")
    def short(task):
        if task.input == "long":
            release.wait()
        order.append(task.id)

    calls, call = [], worker.client.call
    worker.client.call = lambda method, path, *rest, **more: (calls.append(path), call(method, path, *rest, **more))[1]
    short_ones = opened(client, "short", *map(str, range(400)))
    with Running(worker):
        assert {row["state"] for row in outcome(client, short_ones)} == {"succeeded"}
        assert len(calls) < 400
        assert all(row["seconds"] < 5 for row in client.results(ids=short_ones))
        late = opened(client, "short", "long", "long", "x", "y", "z")
        others = tdf.Worker("others", worker.client, slots=1, queues=["loop"])
        others.program("short")(short)
        eventually("the long ones run", lambda: all(client.task(id)["state"] == "running" for id in late[:2]))
        with Running(others):
            assert {row["round"] for row in outcome(client, late[2:])} == {0}
            release.set()
        outcome(client, late)
    assert len(order) == 405


def test_a_refused_report_fails_only_its_round(client, worker):
    both = threading.Barrier(2)

    @worker.program("pair")
    def pair(task):
        both.wait()
        return float("inf") if task.input == "bad" else task.input

    with Running(worker):
        good, bad = outcome(client, opened(client, "pair", "good", "bad"))
        assert (good["state"], bad["state"]) == ("succeeded", "failed")
        assert "use finite numbers" in bad["error"]


def test_a_lost_session_begins_again(client, worker):
    @worker.program("echo")
    def echo(task):
        return task.input

    with Running(worker):
        (first,) = outcome(client, opened(client, "echo", "a"))
        worker.client.call("DELETE", worker._path)
        (second,) = outcome(client, opened(client, "echo", "b"))
        assert (first["result"], second["result"]) == ("a", "b")


def test_signals(client, worker, monkeypatch):
    exits = []
    monkeypatch.setattr("os._exit", exits.append)
    worker.grace = 1000
    started, returned = threading.Event(), threading.Event()

    @worker.program("slow")
    def slow(task):
        started.set()
        task.cancelled.wait()
        returned.set()

    running = Running(worker)
    (id,) = opened(client, "slow", "")
    started.wait()
    worker._await_copies = lambda: worker._signalled(15)  # as timeout(1) sends it
    worker._signalled(15)
    assert worker._deadline > time.monotonic() + 900
    assert client.task(id)["state"] == "running"
    worker._signalled(2)
    running.thread.join()
    assert running.problem is None
    assert returned.is_set()
    task = client.task(id)
    assert (task["state"], task.get("losses", 0)) == ("open", 0)
    worker._signalled(2)
    assert exits == [130]
    assert client.act("cancel", [id]) == 1


def test_a_name_has_one_worker(client, worker, served):
    @worker.program("echo")
    def echo(task):
        return task.input

    with Running(worker):
        outcome(client, opened(client, "echo", "a"))
        second = tdf.Worker("tests", worker.client, lease=1)
        second.program("echo")(echo)
        second._stopping.set()
        with pytest.raises(tdf.APIError, match="register worker tests: taken"):
            second.run()


def test_refused_workers(served):
    with pytest.raises(tdf.TDFError, match="it has no programs; decorate"):
        tdf.Worker("w", served.client()).run()
    viewer = tdf.Worker("w", served.client(token=served.add_token("viewer", "viewer")))
    viewer.program("x")(print)
    with pytest.raises(tdf.APIError, match="register worker w: forbidden"):
        viewer.run()
    away = tdf.Worker("w", tdf.Client("http://127.0.0.1:1", "t"))
    away.program("x")(print)
    with pytest.raises(tdf.Unreachable, match="register worker w: .*start `tdf up`"):
        away.run()
