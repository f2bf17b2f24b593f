import base64
import errno
import functools
import hashlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections import namedtuple

import numpy
import pytest

import tdf
import tdf.blobs
import tdf.calls
import tdf.worker
import work
from tdf.blobs import Blobs, Cache, Directory, Lost, name_of
from conftest import Workers
from test_loop import eventually


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def far(client, monkeypatch):
    """The blobs of a client on another machine."""
    monkeypatch.setattr(Blobs, "_find", lambda self: True)
    return Blobs(client)


class Sent:
    """The bytes that a client sends and reads, by the name of the blob."""

    def __init__(self, monkeypatch):
        self.parts, self.hashed = [], []
        fetch, named = tdf.Client._fetch, tdf.blobs.name_of

        def counted(client, method, path, body, query, *rest):
            if path.startswith("/blobs/"):
                self.parts.append((method, (query or {}).get("from"), len(body or b"")))
            return fetch(client, method, path, body, query, *rest)

        monkeypatch.setattr(tdf.Client, "_fetch", counted)
        monkeypatch.setattr(tdf.blobs, "name_of", lambda buffer: self.hashed.append(len(buffer)) or named(buffer))


@pytest.fixture
def sent(monkeypatch):
    return Sent(monkeypatch)


def value(size=3_000_000):
    return memoryview(os.urandom(size))


# The store of a client


def test_parts(far, sent, monkeypatch):
    """A store goes on where an earlier one has stopped, and sends nothing if the blob is there."""
    monkeypatch.setattr(tdf.blobs, "PART", 1_000_000)
    data = value()
    name = name_of(data)
    assert far._add(name, 0, bytes(data[:500])) == 500
    del sent.parts[:]
    assert far.put(data) == name
    assert sent.parts == [("PUT", 0, 0), ("PUT", 500, 1_000_000), ("PUT", 1_000_500, 1_000_000), ("PUT", 2_000_500, 999_500)]
    del sent.parts[:]
    assert far.put(data) == name and sent.parts == [("PUT", 0, 0)]
    del sent.parts[:]
    assert far.get(name) == data
    assert [start for _, start, _ in sent.parts] == [0, 1_000_000, 2_000_000]
    assert far.get(name) == data and len(sent.parts) == 3  # from the cache
    assert far.get(far.put(memoryview(b""))) == b""


def test_the_same_machine(client, served, sent):
    """A client that has the directory of the API uses its files."""
    blobs, data = Blobs(client), value()
    name = blobs.put(data)
    assert {size for _, _, size in sent.parts} == {0}
    found = blobs.get(name)
    assert found == data and found.readonly
    assert blobs.path(name).startswith(blobs.shared.path) and not os.path.exists(blobs.cache.path)
    os.remove(blobs.path(name))
    assert found == data  # it stays mapped
    with pytest.raises(Lost, match="is not stored any more"):
        blobs.get(name)
    assert Blobs(served.client(token=served.add_token("reader", "viewer"))).kept()


def test_damaged_shared(client, tmp_path):
    """A damaged file in the directory of the API is an error for readers, and storing the same content replaces it."""
    blobs, data = Blobs(client), value()
    path = blobs.path(blobs.put(data))
    with open(path, "r+b") as file:
        file.write(b"something else")
    os.utime(path, (0, 0))
    with pytest.raises(tdf.TDFError, match="read blob .*: the bytes that came have another SHA-256; the disk of .* or of the API may be damaged"):
        blobs.get(name_of(data))
    assert blobs.get(blobs.put(data)) == data
    with open(path, "r+b") as file:
        file.write(b"something else")
    os.utime(path, (0, 0))
    assert Directory(blobs.shared.path).write(data) == name_of(data) and open(path, "rb").read() == data


def test_another_directory(client, monkeypatch, tmp_path):
    """A directory with another id is that of another machine, and files in one of another user come over the API."""
    call = tdf.Client.call
    (tmp_path / "id").write_text("other")
    monkeypatch.setattr(tdf.Client, "call", lambda self, method, path, *rest, **more: {"id": "x", "path": str(tmp_path)} if path == "/blobs" else call(self, method, path, *rest, **more))
    blobs, data = Blobs(client), value()
    assert blobs.get(blobs.put(data)) == data and blobs.shared is None and blobs.own is blobs.cache
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    blobs = Blobs(client)
    assert blobs.kept() and blobs.shared is not None and blobs.own is blobs.cache


@pytest.mark.parametrize("damage", ["truncated", "longer", "changed", "empty", "link", "directory"])
def test_damaged_cache(far, damage, tmp_path):
    data = value()
    path = far.path(far.put(data))
    if damage == "truncated":
        os.truncate(path, 100)
    elif damage == "longer":
        open(path, "ab").write(b"x")
    elif damage == "changed":
        open(path, "r+b").write(b"something else")
    elif damage == "empty":
        open(path, "w").close()
    elif damage == "link":
        os.rename(path, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", path)
    else:
        os.remove(path)
        os.mkdir(path)
        with pytest.raises(tdf.TDFError, match="read blob .*: Is a directory in .*; set XDG_CACHE_HOME"):
            far.get(name_of(data))
        return
    assert far.get(name_of(data)) == data
    assert not os.path.islink(path)


def test_damaged_part(far, sent):
    """The beginning of a blob may be that of a download which was killed, or anything else."""
    os.makedirs(far.cache.parts)
    for begun in (lambda data: data[:1000], lambda data: b"x" * 1000, lambda data: bytes(data) + b"x", lambda data: data):
        data = value()
        name = far.put(data)
        with open(os.path.join(far.cache.parts, tdf.blobs.split(name)[0]), "wb") as part:
            part.write(begun(data))
        assert far.get(name) == data
    assert ("GET", 1000, 0) in sent.parts
    assert os.listdir(far.cache.parts) == []


def test_wrong_answers(far, monkeypatch):
    monkeypatch.setattr(tdf.Client, "_fetch", lambda *args: b"x" * 70_000)
    with pytest.raises(tdf.TDFError, match="read blob 0000.*: the bytes that came have another SHA-256"):
        far.get("0" * 64 + ":70000")
    monkeypatch.setattr(tdf.Client, "_fetch", lambda *args: b"")
    with pytest.raises(tdf.TDFError, match="it has 0 bytes instead of 70,000"):
        far.get("0" * 64 + ":70000")
    for name in ("../../etc/passwd", "0" * 64, "0" * 64 + ":-1", "A" * 64 + ":1", "0" * 64 + ":1:path", "0" * 64 + ":1\n"):
        with pytest.raises(tdf.TDFError, match="the name of a blob is"):
            far.get(name)


DOWNLOAD = "import sys, tdf.blobs, tdf; tdf.blobs.Blobs._find = lambda self: True; print(tdf.blobs.name_of(tdf.Client(insecure=True).blobs.get(sys.argv[1])))"


def test_several_processes(far, served):
    """Processes that need the same blob at the same time download it once, or each a part, and all have the right one."""
    name = far.put(value(20_000_000))
    environment = {**os.environ, "TDF_API": served.url, "TDF_TOKEN": served.token}
    processes = [subprocess.Popen([sys.executable, "-c", DOWNLOAD, name], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    threads = [threading.Thread(target=far.get, args=(name,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert [process.communicate()[0].strip() for process in processes] == [name] * 3
    for thread in threads:
        thread.join()
    assert os.listdir(far.cache.parts) == []


def test_bound_of_the_cache(far, monkeypatch):
    """The files that nobody has used for the longest time go, but none that this process needs."""
    monkeypatch.setattr(tdf.blobs, "MOST_CACHE", 3_500_000)
    names = [far.put(value(1_000_000)) for _ in range(5)]
    for place, name in enumerate(names[:3]):
        path = far.path(name)
        os.utime(path, ns=(place * 10**9, os.stat(path).st_mtime_ns))
    kept = far.get(names[1])
    with far.paths(names[:1]) as paths:
        os.utime(paths[names[0]], ns=(0, os.stat(paths[names[0]]).st_mtime_ns))
        os.utime(far.path(names[1]), ns=(10**9, os.stat(far.path(names[1])).st_mtime_ns))
        far.path(names[3])
        assert [far.cache.has(name) for name in names] == [True, False, True, True, False]
    assert hashlib.sha256(kept).hexdigest() == tdf.blobs.split(names[1])[0]
    part = os.path.join(far.cache.parts, "old")
    open(part, "w").close()
    os.utime(part, (0, 0))
    far.path(names[4])
    assert os.listdir(far.cache.parts) == []


Disk = namedtuple("Disk", "f_bavail f_frsize f_blocks")


def test_full_disk(client, far, monkeypatch):
    data = value()
    name = far.put(data)
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(4, 1_000_000, 100))
    with pytest.raises(tdf.TDFError, match="store 3,000,000 bytes: the disk of .* has too little space: blobs leave a 20th of it free"):
        far.get(name)
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(100, 1_000_000, 100))
    monkeypatch.setattr(os, "makedirs", fails(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(tdf.TDFError, match="read blob .*: No space left on device in .*; set XDG_CACHE_HOME"):
        far.get(name)
    with pytest.raises(OSError, match="No space left"):
        Directory("/nowhere").write(data)


def fails(error):
    def function(*_, **__):
        raise error

    return function


def test_write_hashes_what_it_writes(tmp_path):
    directory = Directory(str(tmp_path))
    data = value()
    assert directory.write(data) == directory.write(data) == name_of(data)
    assert open(directory.place(name_of(data)), "rb").read() == data and os.listdir(directory.parts) == []


def test_many_maps(tmp_path):
    """Maps keep no files open, and blobs that cannot be mapped are read."""
    directory = Directory(str(tmp_path))
    name = directory.write(value(tdf.blobs.SMALLEST_MAP))
    maps = [tdf.blobs.mapped(directory.place(name), name) for _ in range(3000)]
    assert len(os.listdir("/proc/self/fd")) < 1000 and maps[0] == maps[-1]
    shown = numpy.frombuffer(maps[0], numpy.uint8)
    del maps
    assert shown.sum() > 0 and not shown.flags.writeable
    with pytest.raises(ValueError):
        shown.flags.writeable = True


# Arguments and results


@pytest.fixture
def executor(client, slots):
    with tdf.Executor(client, campaign="blobs", queue="calls") as executor:
        yield executor


def random(*shape):
    return numpy.random.default_rng().random(shape)


ARRAYS = {
    "large": lambda: random(100_000), "fortran": lambda: numpy.asfortranarray(random(300, 400)), "strided": lambda: random(400, 400)[::2, ::3],
    "slice": lambda: random(1000, 100)[100:900], "empty": lambda: random(0, 7), "small": lambda: random(10), "objects": lambda: numpy.array([{"a": 1}, None] * 50_000),
    "texts": lambda: numpy.array(["x" * 20, "y"] * 10_000), "read-only": lambda: readonly(random(50_000)), "bytes": lambda: os.urandom(3_000_000),
    "bytearray": lambda: bytearray(os.urandom(300_000)), "nested": lambda: {"a": [random(100_000), 7], "b": random(20, 20)}, "scalars": lambda: numpy.zeros(100_000)[0],
    "times": lambda: numpy.array(["2020-01-01"] * 20_000, "datetime64[s]"), "record": lambda: numpy.zeros(10_000, [("a", "i8"), ("b", "f4")]),
    "list": lambda: list(os.urandom(300_000)), "many": lambda: [random(9000) for _ in range(tdf.calls.MOST_ARRAYS + 3)],
}


def readonly(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", ARRAYS)
def test_values(executor, kind):
    """Each value is the same after it has travelled to a worker and back."""
    sent = ARRAYS[kind]()
    (found,), _ = executor.submit(work.capture, sent).result()
    assert type(found) is type(sent)
    numpy.testing.assert_equal(found, sent)
    assert getattr(found, "dtype", None) == getattr(sent, "dtype", None)
    if kind in ("large", "fortran", "slice"):
        assert not found.flags.writeable and found.flags.f_contiguous == sent.flags.f_contiguous
        assert found.copy().flags.writeable
    if kind == "small":
        assert found.flags.writeable


def test_names_in_redis(executor, client, served):
    """The task and its result have the names of the blobs, each once, and no value."""
    array = random(200_000)
    future = executor.submit(work.capture, array, again=array)
    future.result()
    row = next(client.results(ids=[future.id]))
    name = name_of(memoryview(array).cast("B"))
    assert client.task(future.id)["blobs"] == [name]
    packed = row["result"]["pickle"]
    assert packed.startswith(f"{name};") and len(packed) < 500
    failed = executor.submit(work.fail_with, array)
    with pytest.raises(ValueError) as caught:
        failed.result()
    assert caught.value.args[0] == "large"


def test_each_array_is_hashed_once(executor, sent):
    """For one map. A submit hashes again, because the array may have changed."""
    array, rows = random(300_000), random(3, 30_000)
    sums, before = [array[0] + row[0] for row in rows], array[0]
    assert list(executor.map(work.add_first, itertools.repeat(array, 3), rows)) == sums
    assert sorted(sent.hashed) == [240_000] * 3 + [2_400_000]
    assert list(executor.map(work.add_first, itertools.repeat(array, 3), iter(rows), buffersize=1)) == sums
    assert sorted(sent.hashed) == [240_000] * 6 + [2_400_000] * 2
    first = executor.submit(work.first, array)
    array[0] = 7
    assert (executor.submit(work.first, array).result(), first.result()) == (7, before)


def test_what_is_remembered_ends_with_the_array(far, sent):
    put = far.remember()
    for n in range(3):  # each array may get the memory of the one before
        array = numpy.full(100_000, n)
        assert put(pickle.PickleBuffer(array).raw()) == put(pickle.PickleBuffer(array[:]).raw()) == name_of(memoryview(array).cast("B"))
    assert put(memoryview(array[:50_000]).cast("B")) != put(memoryview(array).cast("B"))
    assert sent.hashed == [800_000, 800_000, 800_000, 400_000]


def test_lost(executor, client, slots):
    """A call whose blob is lost says what to do, and so does a result."""
    executor.submit(work.square, 2).result()
    array = random(100_000)
    held = tdf.Executor(client, campaign="lost", queue="later")
    future = held.submit(work.first, array)
    os.remove(client.blobs.path(client.task(future.id)["blobs"][0]))
    client.act("change", [future.id], changes={"queue": "calls"})
    with pytest.raises(tdf.TaskError, match="load the call of work.first: blob .* is not stored any more; submit the call again"):
        future.result()
    held.shutdown()
    name = "0" * 64 + ":70000"
    with pytest.raises(tdf.CallError, match="load the result of task 7: blob 0.* is not stored any more; submit the call again"):
        tdf.executor.result_of({"id": 7, "state": "finished", "outcome": "succeeded", "result": {"pickle": name}}, client.blobs.get)


def test_large_initializer(client, slots):
    data = os.urandom(400_000)
    with tdf.Executor(client, campaign="initialized", queue="calls", initializer=work.set_value, initargs=(data,)) as executor:
        assert executor.submit(work.get_value).result()[0] == data


def test_sweep(client, slots):
    array = random(100_000)
    campaign = client.sweep([{"n": 1}, {"n": 2}], function=functools.partial(work.scaled, array), campaign="large", queue="calls")
    campaign.wait(check=True)
    for parameters, found in campaign.values():
        assert found["n"] == parameters["n"]
        numpy.testing.assert_equal(found["array"], array * parameters["n"])
    assert [row["result"]["n"] for row in campaign.results()] == [1, 2]


# Workers


def test_other_machines(client, served, tmp_path):
    """A worker and a script that do not have the directory use their own caches, and need no token in functions."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "sitecustomize.py").write_text("import tdf.blobs\ntdf.blobs.Blobs._find = lambda self: True\n")
    workers = Workers(served)
    path = os.pathsep.join([str(far), os.environ["PYTHONPATH"]])
    workers.start("--queue", "far", "--slots", "2", PYTHONPATH=path, XDG_CACHE_HOME=str(tmp_path / "there"))
    try:
        with tdf.Executor(client, campaign="far", queue="far") as executor:
            array = random(300_000)
            found = list(executor.map(work.scaled, itertools.repeat(array, 4), range(2, 6)))  # a result that equals the argument leaves the cache with it
        for row in found:
            numpy.testing.assert_equal(row["array"], array * row["n"])
        cache = Cache(str(tmp_path / "there" / "tdf" / "blobs"))
        kept = [file for _, _, files in os.walk(cache.path) for file in files]
        assert kept == [name_of(memoryview(array).cast("B"))[:64]]  # results are not kept there
    finally:
        workers.stop()


def test_removed_between_open_and_run(client, monkeypatch):
    """Another process may remove a file of the cache before the slot's process has mapped it."""
    calls = tdf.worker.Calls(threading.Event(), Blobs(client))
    answers = [{"missing": "x"}, {"result": {}, "made": []}]
    monkeypatch.setattr(calls, "make", lambda *args: answers.pop(0))
    task = tdf.Task({"id": 1, "round": 0, "claim": "c", "program": "tdf.call", "input": ""})
    assert calls.with_blobs(task, (b"", "f", None)) == {"result": {}, "made": []}
    monkeypatch.setattr(calls, "make", lambda *args: {"missing": "no file x"})
    assert "no file x" in calls.with_blobs(task, (b"", "f", None))["unfit"]
    data, (name,) = tdf.calls.Setup().pack(len, (random(20_000),), {}, (), name_of)
    for paths in ({}, {name: "/nowhere"}, {name: __file__}):
        assert list(tdf.calls.Process().run(base64.b64decode(data), "len", None, int, paths)) == ["missing"]


def test_unreachable(client, monkeypatch):
    """A worker that cannot reach blobs gives the call back."""
    calls = tdf.worker.Calls(threading.Event(), Blobs(client))
    task = tdf.Task({"id": 1, "round": 0, "claim": "c", "program": "tdf.call", "input": "", "blobs": ["0" * 64 + ":7"]})
    for error, unfit in ((tdf.TDFError("the disk is full"), True), (tdf.Unreachable("no answer"), True), (Lost("it is gone"), False)):
        monkeypatch.setattr(Blobs, "path", fails(error))
        with pytest.raises(tdf.Fail, match=f"load the call of f.*: {error}") as caught:
            calls.with_blobs(task, (b"", "f", None))
        assert caught.value.unfit == unfit
        assert ("permanent" in caught.value.report) != unfit
