import asyncio
import json

import numpy
import pandas
import pytest

import tdf
from tdf.bar import Bar
from tdf.client import compact
from tdf.sweep import rows


def test_points():
    assert list(rows({"a": [1, 2], "b": "x y".split()})) == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert list(rows(iter([{"a": 1}]))) == [{"a": 1}]
    assert list(rows(pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}))) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(tdf.TDFError, match="the values of a are 'fast', which is no list"):
        list(rows({"a": "fast"}))
    with pytest.raises(tdf.TDFError, match="the point 3 is no dict"):
        list(rows([3]))


def test_sweep(client, square):
    points = [{"n": 2}, {"n": 3}, {"n": -1}]
    campaign = client.sweep(points, campaign="tested", input="{n}", **square)
    assert (campaign.opened, campaign.known) == (3, 0)
    counts = campaign.wait()
    assert (counts["succeeded"], counts["failed"]) == (2, 1)
    found = list(campaign.results())
    assert [row["parameters"] for row in found] == points
    assert [row.get("result") for row in found] == [{"square": 4}, {"square": 9}, None]
    frame = campaign.frame()
    assert list(frame["n"]) == [2, 3, -1]
    assert frame["result.square"].sum() == 13
    assert frame.ended.dt.tz is not None
    assert [group["tasks"] for group in campaign.failures()] == [1]
    assert repr(campaign) == "<tdf.Campaign tested: 3 of 3 tasks finished, 1 failed>"
    shown = campaign._repr_html_()
    assert '<progress max="3" value="3"></progress> 3 of 3 tasks finished, 1 failed' in shown
    assert f"<td>1</td><td>exit status 3</td><td>{found[2]['id']}</td><td>bad number -1</td>" in shown
    with pytest.raises(tdf.TaskError, match="failed: bad number -1"):
        campaign.wait(check=True)
    again = client.sweep(points + [{"n": 5}], campaign="tested", input="{n}", **square)
    assert (again.opened, again.known) == (1, 3)
    with pytest.raises(tdf.TDFError, match="retry campaign tested: its tasks call no function"):
        campaign.retry(function=pow)
    assert campaign.retry(input="7") == 1
    assert campaign.wait(check=True)["succeeded"] == 4
    with pytest.raises(tdf.APIError, match="open sweep tested: taken"):
        client.sweep(points, campaign="tested", extend=False, **square)


def test_texts_and_numbers_stay_apart(client):
    values = ["007", "010", "1.10", "1e5", "NA", "True", "", "12345678901234567890", "7", 7, 10, None, [1]]
    campaign = client.sweep([{"id": value, "n": n, "digits": str(n)} for n, value in enumerate(values)], program="none", campaign="texts")
    frame = campaign.frame()
    assert list(frame["parameter.id"])[:-2] == values[:-2]
    assert list(frame["parameter.id"])[-2:] == [None, "[1]"]
    assert list(frame["digits"]) == [str(n) for n in range(len(values))]
    assert frame["n"].sum() == sum(range(len(values)))
    assert campaign.cancel() == len(values)


@pytest.mark.parametrize("points", [
    {"rate": numpy.array([0.1, 0.7], dtype="float32")},
    {"rate": pandas.Series([0.1, 0.7], dtype="float32")},
    pandas.DataFrame({"rate": numpy.array([0.1, 0.7], dtype="float32")}),
    [{"rate": numpy.float32(0.1)}, {"rate": numpy.longdouble("0.7")}],
])
def test_numbers_keep_their_digits(points):
    assert [json.loads(compact(point)) for point in rows(points)] == [{"rate": 0.1}, {"rate": 0.7}]


@pytest.mark.parametrize("days", [
    pandas.date_range("2026-01-31", periods=2),
    pandas.date_range("2026-01-31", periods=2).values,
    numpy.array(["2026-01-31", "2026-02-01"], dtype="datetime64[s]"),
])
def test_times_are_no_numbers(days):
    for points in ({"day": days}, pandas.DataFrame({"day": days})):
        assert [json.loads(compact(point)) for point in rows(points)] == [{"day": "2026-01-31 00:00:00"}, {"day": "2026-02-01 00:00:00"}]


def test_sweep_in_parts(client, monkeypatch):
    monkeypatch.setattr("tdf.sweep.MOST_ROWS", 4)
    campaign = client.sweep(pandas.DataFrame({"n": range(10)}), program="none", campaign="parts")
    assert campaign.opened == 10
    assert [row["parameters"]["n"] for row in campaign.results()] == list(range(10))
    with pytest.raises(TimeoutError, match="10 of 10 tasks are not finished after 0 s"):
        campaign.wait(timeout=0)
    assert campaign.cancel() == 10


def test_refused_sweeps(client):
    with pytest.raises(tdf.TDFError, match="there are no points"):
        client.sweep([], program="none")
    with pytest.raises(tdf.APIError, match="invalid: .*bogus"):
        client.sweep({"n": [1]}, program="none", bogus=1)
    with pytest.raises(tdf.TDFError, match="wait for campaign nothing: it has no tasks"):
        client.campaign("nothing").wait()


def test_names_in_paths(client):
    name = "a/b?c #%é"
    campaign = client.sweep({"n": [1]}, program="none", campaign=name)
    assert campaign.counts()["open"] == 1
    assert campaign.cancel() == 1


def test_bar(capsys, monkeypatch):
    Bar("quiet").update(1, 2, 0)
    assert capsys.readouterr().err == ""
    with_tqdm = Bar("bar", True)
    with_tqdm.update(1, 2, 1)
    with_tqdm.close()
    assert "bar:  50%" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    line = Bar("line", True)
    line.update(1, 2, 1)
    line.close()
    assert capsys.readouterr().err == "\rline: 1 of 2, 1 failed\n"


def test_a_repr_never_fails_and_escapes(client, served):
    campaign = client.sweep({"n": [1]}, program="none", campaign="<b>&")
    assert "<b>&lt;b&gt;&amp;</b> <progress" in campaign._repr_html_()
    assert campaign.cancel() == 1
    assert repr(client.campaign("nothing")) == "<tdf.Campaign nothing: 0 of 0 tasks finished>"
    away = tdf.Client("http://127.0.0.1:1", "t", patience=1000)
    away._reached = True
    assert repr(away.campaign("gone")) == "<tdf.Campaign gone>"
    assert "http://127.0.0.1:1 does not answer" in away.campaign("gone")._repr_html_()


def test_async_wait(client, square):
    async def both():
        campaigns = [client.sweep([{"n": n}], campaign=f"async{n}", input="{n}", **square) for n in (4, -1)]
        good, bad = await asyncio.gather(client.wait(campaigns[0]), client.wait("async-1", check=True), return_exceptions=True)
        assert good["succeeded"] == 1
        assert isinstance(bad, tdf.TaskError)
        with pytest.raises(TimeoutError, match="1 of 1 tasks are not finished"):
            await client.wait(client.sweep({"n": [1]}, program="none", campaign="asleep"), timeout=0)
        waiting = asyncio.ensure_future(client.wait("asleep"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.01)
        return client.campaign("asleep").cancel()

    assert asyncio.run(both()) == 1
