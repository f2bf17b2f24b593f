import copy
import math
import re

import pytest

import tdf
import work
from tdf.cores import affinity
from test_loop import eventually


def executor(served, **options):
    return tdf.Executor(served.client(), queue="calls", **options)


def test_each_call_gets_its_share(served, workers, tmp_path):
    workers.start("--slots", "2", "--resources", "cpus=4 gpus=2 memory=8G", OMP_NUM_THREADS="9")
    for round in "ab":  # the second one finds warm processes
        meeting = tmp_path / round
        meeting.mkdir()
        with executor(served, cores=2, gpus=1, memory=2**30) as e:
            shares = [env for env, _ in e.map(work.share, [str(meeting)] * 2, [2] * 2)]
        assert sorted(share["CUDA_VISIBLE_DEVICES"] for share in shares) == ["0", "1"]
        assert {share["OMP_NUM_THREADS"] for share in shares} == {share["MKL_NUM_THREADS"] for share in shares} == {"2"}
        assert {share["TDF_RESOURCES"] for share in shares} == {"cpus=2 gpus=1 memory=1G"}
    (tmp_path / "c").mkdir()
    with executor(served) as e:
        assert e.submit(work.share, str(tmp_path / "c"), 1).result()[0]["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.skipif(len(affinity()) < 2, reason="one core")
def test_cores_of_the_machine(served, workers, tmp_path):
    workers.start("--resources", "auto cpus=2")
    with executor(served, cores=1) as e:
        (_, first), (_, second) = e.map(work.share, [str(tmp_path)] * 2, [2] * 2)
        assert sorted(first + second) == affinity()[:2]
    with executor(served, cores=0) as e:
        assert e.submit(work.share, str(tmp_path), 1).result()[1] == affinity()


def test_memory_of_a_call(served, workers):
    workers.start("--slots", "1", "--resources", "cpus=1 memory=4G")
    with executor(served, memory="512M") as e:
        with pytest.raises(MemoryError):
            e.submit(work.need, 2**30).result()
        assert e.submit(work.need, 2**20).result() == 2**20
    with executor(served) as e:
        assert e.submit(work.need, 2**30).result() == 2**30


def test_what_does_not_fit_waits_for_its_turn(served, workers, tmp_path):
    workers.start("--slots", "8", "--resources", "cpus=8 licence=1")
    with executor(served, cores=0.5, resources={"licence": 1}) as e:
        assert list(e.map(work.alone, [str(tmp_path / "licence")] * 20)) == [None] * 20
    with executor(served, cores=5) as large, executor(served, cores=8) as whole:
        held = [large.submit(work.wait_for, str(tmp_path / "go")), whole.submit(work.square, 3)]
        eventually("one of them runs", lambda: any(future.running() or future.done() for future in held))
        (tmp_path / "go").touch()
        assert [future.result() for future in held][1] == 9


def test_more_than_any_worker_has(served, workers, monkeypatch, caplog):
    monkeypatch.setattr("tdf.executor.LOOK_AGAIN", 0.1)
    workers.start("--slots", "1", "--resources", "cpus=2")
    with executor(served) as e:
        assert e.submit(work.square, 2).result() == 4
    with executor(served, cores=3) as e:
        future = e.submit(work.square, 2)
        eventually("the warning", lambda: "cpus" in caplog.text)
        assert future.cancel()
    assert "cpus=3" in caplog.text and "--resources" in caplog.text


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"cores": -1}, "cores is -1; want a number"),
        ({"cores": math.nan}, "cores is nan; want a number"),
        ({"cores": 10**400}, "want a number from 0.0001 to 1e.18, or 0"),
        ({"cores": 1e-9}, "cores is 1e-09; want a number from 0.0001 to 1e.18, or 0"),
        ({"gpus": False}, "gpus is False; want a number"),
        ({"cores": "2"}, "cores is '2'; want a number"),
        ({"gpus": True}, "gpus is True; want a number"),
        ({"gpus": math.inf}, "gpus is inf; want a number"),
        ({"memory": "4 GB"}, 'memory is \'4 GB\'; want a number from 0.0001 to 1e.18, or 0, or a text such as "4G"'),
        ({"memory": "-1"}, "memory is '-1'"),
        ({"resources": {"licence": [1]}}, "licence is .1.; want a number"),
        ({"resources": {"x=1 gpus": 4}}, "resources has the name 'x=1 gpus'; want a small letter, and then"),
        ({"resources": {1: 4}}, "resources has the name 1; want"),
        ({"resources": {"": 4}}, "resources has the name ''; want"),
        ({"resources": {"Gpus": 4}}, "resources has the name 'Gpus'; want"),
        ({"timeout": math.nan}, "timeout is nan; want a number from 0 to 1000000000"),
        ({"timeout": math.inf}, "timeout is inf; want a number"),
        ({"timeout": -1}, "timeout is -1; want a number"),
        ({"timeout": True}, "timeout is True; want a number"),
        ({"timeout": [1]}, "timeout is .1.; want a number"),
        ({"backoff": math.nan}, "backoff is nan; want a number"),
        ({"resources": "gpus=1", "cores": 2}, "want either resources='gpus=1', or cores"),
        ({"tags": ["gpu"]}, "workers for functions offer no tags"),
    ],
)
def test_what_cannot_be_asked_for(served, options, problem):
    with pytest.raises(tdf.TDFError, match=problem):
        executor(served, **options)
    with pytest.raises(tdf.TDFError, match=problem):
        served.client().sweep([{}], function=dict, **options)


@pytest.mark.parametrize("timeout", [math.nan, -1, True, [5]])
@pytest.mark.parametrize("call", [
    lambda served, timeout: tdf.Client(served.url, "t", timeout=timeout),
    lambda served, timeout: executor(served).map(work.square, [], timeout=timeout),
    lambda served, timeout: served.client().campaign("times").wait(timeout),
    lambda served, timeout: served.client().sweep([{}], program="p", timeout=timeout),
])
def test_for_how_long_nothing_can_wait(served, call, timeout):
    with pytest.raises(tdf.TDFError, match=f"timeout is {re.escape(repr(timeout))}; want a number from 0"):
        call(served, timeout)
    with pytest.raises(tdf.TDFError, match="patience is nan; want a number from 0"):
        tdf.Client(served.url, "t", patience=math.nan)


@pytest.mark.parametrize("options", [{"resources": "cpus=x"}, {"resources": 5}, {"cores": 1e17}, {"resources": {"concurrency": 1}}])
def test_what_the_api_refuses(served, options):
    with executor(served, **options) as e, pytest.raises(tdf.APIError, match="resources"):
        e.submit(work.square, 2)


@pytest.mark.parametrize("offer", ["cpus=-1", "gpus=1", "cpus=nan", "auto cpus=99999", "x"])
def test_what_cannot_be_offered(served, offer):
    worker = tdf.Worker("offers", served.client(token=served.add_token("calls", "worker")), resources=offer)
    worker.program("x")(print)
    with pytest.raises(tdf.APIError, match="resources"):
        worker.run()


def test_a_worker_that_registers_again_keeps_count(served):
    worker = tdf.Worker("again", served.client(token=served.add_token("calls", "worker")), resources="cpus=2 licence=1")
    worker.handlers["x"] = print
    worker._register()
    first = copy.deepcopy(worker._stocks)
    task = tdf.Task({"id": 1, "round": 0, "claim": "c", "program": "x", "share": {"taken": [{"name": "licence", "units": 10000}]}})
    worker._threads = worker.slots  # nobody runs it
    worker._start(task)
    worker.client.call("DELETE", worker._path)
    worker._register()
    assert worker._pieces["licence", ""]["free"] == 0
    worker._let_go(task)
    worker._let_go(task)
    assert worker._stocks == first
    worker.client.call("DELETE", worker._path)
