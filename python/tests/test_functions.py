"""Sweeps of functions."""

import base64
import collections
import functools
import json
import math
import os
import re
import subprocess
import threading
import zlib

import numpy
import pandas
import pytest

import tdf
import work
from tdf.calls import PYTHON, header_of
from tdf.fields import MOST_FIELDS, fields
from tdf.worker import Calls


@pytest.fixture
def sweep(client, slots):
    return functools.partial(client.sweep, queue="calls")


class Odd(collections.OrderedDict):
    pass


nested = []
nested.append(nested)
doubled = functools.reduce(lambda inner, _: [inner, inner], range(60), [])  # 2**60 lists


class Raises:
    @property
    def dtype(self):
        raise KeyError("dtype")


@pytest.mark.parametrize("value, shown", [
    (0.5, 0.5), (7, 7), ("x", "x"), (True, True), (None, None), ([1, [2]], [1, [2]]), ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
    (numpy.float32(0.1), 0.1), (numpy.int64(3), 3), (numpy.array(3), 3), (numpy.bool_(True), True),
])
def test_values_that_are_json(value, shown):
    assert fields(value) == (shown, True)
    assert type(fields(value)[0]) is type(shown)


@pytest.mark.parametrize("value, shown", [
    (math.nan, {}), (1j, {}), (b"x", {}), ("\ud800", {}), ((1, 2), {}), (1 << 5000, {}), (nested, {}), (object(), {}), ("x" * (1 << 20), {}),
    ({1: 2}, {}), ({"a": 1, 2: 3}, {"a": 1}), ({"\ud800": 1, "b": 2}, {"b": 2}), ({"a": nested, "b": 2}, {"b": 2}),
    ({"a": math.inf, "b": 1}, {"b": 1}), ({"a": (1, 2), "b": object()}, {"a": [1, 2]}), (Odd(a=1), {"a": 1}), ({"pickle": "x", "a": 1}, {"a": 1}),
    ({"loss": numpy.float64(0.5), "w": numpy.arange(3), "all": numpy.zeros(9999), "t": pandas.DataFrame()}, {"loss": 0.5, "w": [0, 1, 2]}),
    ({"days": numpy.array(["2026-01-31"], dtype="datetime64[D]"), "n": 1}, {"n": 1}),
    ({"a": 1, "b": ["x" * MOST_FIELDS], "c": object()}, {"a": 1}), (doubled, {}), ({"a": doubled, "b": 2}, {"b": 2}),
    ([["x" * 500_000] * 500_000] * 500_000, {}), ([{"x" * 500_000: 1}] * 500_000, {}), (Raises(), {}), ({"a": Raises(), "b": 2}, {"b": 2}),
])
def test_values_that_are_not(value, shown):
    assert fields(value) == (shown, False)


def test_a_sweep_of_a_function(sweep, served):
    points = {"rate": [0.1, 0.5, 1, 2], "mode": ["fast", "exact"]}
    campaign = sweep(points, function=work.fit, campaign="functions")
    counts = campaign.wait()
    assert (counts["succeeded"], counts["failed"]) == (5, 3)
    frame = campaign.frame()
    assert list(frame["input"][:2]) == ['fit(rate=0.1, mode="fast")', 'fit(rate=0.1, mode="exact")']
    assert list(frame["rate"]) == [0.1, 0.1, 0.5, 0.5, 1, 1, 2, 2]
    good = frame[frame.outcome == "succeeded"]
    assert list(good["result.loss"]) == [0.01, 0.01, 0.25, 0.25, 1]
    assert "result.pickle" not in frame and "result.traceback" not in frame
    (best, value), *_ = campaign.values()
    assert best == {"rate": 0.1, "mode": "fast"}
    assert (value["loss"], value["of"]) == (0.01, (0.1, "fast"))
    waited = subprocess.run(["tdf", "wait", str(frame["id"].iloc[-1])], env=served.environment, capture_output=True, text=True)
    assert 'fit(rate=2, mode="exact")\n' in waited.stderr
    groups = {group["line"]: group for group in campaign.failures()}
    assert {line: group["tasks"] for line, group in groups.items()} == {"ValueError: rate <n> is too large": 2, "KeyError: 'exact'": 1} or groups
    failed = groups["ValueError: rate <n> is too large"]
    assert campaign.retry(failure=failed["id"], function=lambda rate, mode: rate) == 2
    assert campaign.wait()["failed"] == 1
    assert [value for _, value in campaign.values()][-2:] == [2, 2]
    assert [task["id"] for task in campaign.results(params={"rate": "2"}, outcomes=["succeeded"])] == list(frame["id"][-2:])
    for command in ("ls", "results"):
        printed = served.run(command, *(["functions"] if command == "results" else ["--campaign", "functions"]))
        assert "fit(rate=0.5" in printed
        assert "rate=2" in printed
        assert "eAE" not in printed
    again = sweep({**points, "rate": [0.1, 0.5, 1, 2, 0.2]}, function=work.fit, campaign="functions")
    assert (again.opened, again.known) == (2, 8)
    assert again.wait()["succeeded"] == 9


def test_slots_stay_warm(sweep):
    campaign = sweep({"n": range(40)}, function=work.process_of)
    assert campaign.wait(check=True)["succeeded"] == 40
    assert len({value for _, value in campaign.values()}) <= 2
    assert set(campaign.frame()["result"]) == {value for _, value in campaign.values()}


def test_parameters_are_those_of_json(sweep):
    points = pandas.DataFrame({"n": numpy.array([0.1, 0.7], dtype="float32"), "text": ["007", "7"], "list": [[1], (2,)], "day": pandas.date_range("2026-01-31", periods=2)})
    campaign = sweep(points, function=lambda **parameters: repr(parameters))
    campaign.wait(check=True)
    assert [value for _, value in campaign.values()] == [
        "{'n': 0.1, 'text': '007', 'list': [1], 'day': '2026-01-31 00:00:00'}",
        "{'n': 0.7, 'text': '7', 'list': [2], 'day': '2026-02-01 00:00:00'}",
    ]


def test_retry_on(sweep, tmp_path):
    points = [{"path": str(tmp_path / name)} for name in ("a", "b")]
    often = functools.partial(work.flaky, error=OSError("once"))
    assert sweep(points[:1], function=often, max_fails=1).wait()["succeeded"] == 1
    assert sweep(points[1:], function=often, max_fails=1, retry_on=KeyError).wait()["failed"] == 1


def test_refused(sweep, client, monkeypatch):
    for points, options, text in (
        ([{"rat": 1}], {}, r"the point \{'rat': 1\} does not fit work.fit\(rate, mode='fast'\): missing a required argument: 'rate'"),
        ([{"rate": 1, "mod": 2}], {}, "got an unexpected keyword argument 'mod'"),
        ([{"rate": 1}], {"input": "{rate}"}, "a function has no input"),
        ([{"rate": 1}], {"source": "x"}, "a function has no input and no source"),
        ([{"rate": 1}], {"program": "p"}, "want a program or a function"),
        ([{"rate": 1}], {"function": None}, "want a program or a function"),
        ([{"rate": 1}], {"tags": ["gpu"]}, "open sweep: workers for functions offer no tags"),
        ([{"resources": "gpus=1"}], {"function": dict}, "a parameter `resources` would say"),
    ):
        with pytest.raises(tdf.TDFError, match=text):
            sweep(points, **{"function": work.fit, "campaign": "refused", **options})
    assert list(client.tasks(group="refused")) == []


def test_inputs_of_others(client, slots):
    """Whoever opens a task chooses its input."""
    def run(data, meta=""):
        task = {"program": "tdf.call", "queue": "calls", "campaign": "others", "input": base64.b64encode(data).decode(), "input_encoding": "base64", "meta": meta}
        (id,) = client.open(task)
        client.campaign("others").wait()
        return client.task(id)

    header = header_of(work.fit)
    assert header == f"#!tdf.call {PYTHON} work:fit\n".encode()
    for data in (header, header + b"x", header + zlib.compress(b"x"), b"#!tdf.call", b"#!tdf.call 1\n"):
        failed = run(data, json.dumps({"python": PYTHON}))  # the metadata count if there is no header
        assert "load the call of" in failed["error"]
    for data, wanted in ((b"#!tdf.call 2.7 work:fit\n", "run work.fit: Python 2.7 has"), (b"#!tdf.call \xff \xff\n", "run \ufffd: Python \ufffd has"), (b"x", "run ?: Python None has")):
        task = tdf.Task({"id": 1, "round": 0, "claim": "c", "program": "tdf.call", "input_base64": base64.b64encode(data)})
        with pytest.raises(tdf.Fail, match=re.escape(wanted)) as caught:
            Calls(threading.Event(), tdf.Client().blobs)(task)
        assert caught.value.unfit
    for meta in ("no JSON", "[1]", json.dumps({"rat": 1})):
        wrong = run(base64.b64decode(tdf.sweep.call_of(work.fit, Exception)[0]), meta)
        assert "TypeError: fit() " in wrong["error"]
    name = header_of(type("a\nb " + "x" * 900, (), {"__call__": print, "__module__": "m" * 900})())
    assert name.count(b"\n") == 1 and len(name) < 400
