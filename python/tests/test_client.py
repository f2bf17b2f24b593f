import fcntl
import http.server
import json
import os
import socket
import ssl
import threading

import pytest

import tdf
from tdf.client import batches, compact


def test_open_and_read(client):
    ids = client.open([{"program": "none", "input": "1", "campaign": "read"}, {"program": "none", "input": "2", "campaign": "read"}])
    one = client.open({"program": "none", "campaign": "read"})
    assert len(set(ids + one)) == 3
    assert client.task(ids[0])["input"] == "1"
    assert sorted(task["id"] for task in client.tasks(group="read", states=["open"])) == sorted(ids + one)
    assert [row["id"] for row in client.results(ids=ids)] == ids
    assert client.act("cancel", ids) == 2
    assert client.act("cancel", ids) == 0
    assert [row["outcome"] for row in client.results(ids=ids)] == ["cancelled"] * 2
    assert client.act("remove", ids) == 2
    assert list(client.results(ids=ids)) == []


def test_open_each_reads_no_further_than_it_must(client):
    read = 0

    def definitions():
        nonlocal read
        while True:
            read += 1
            yield {"program": "none", "campaign": "endless"}

    opened = client.open_each(definitions())
    first = next(opened)
    assert first > 0
    assert read == 1001
    client.campaign("endless").cancel()


def test_batches():
    assert list(batches([b"a", b"b", b"c"], 2, 100)) == [[b"a", b"b"], [b"c"]]
    assert list(batches([b"aaaa", b"bbbb", b"c"], 9, 9)) == [[b"aaaa", b"bbbb"], [b"c"]]
    assert list(batches([b"long" * 9], 9, 8)) == [[b"long" * 9]]
    assert list(batches([], 9, 8)) == []


def test_filters(client):
    client.open([{"program": "none", "campaign": "filtered", "meta": json.dumps({"a": n, "b": "x,y"})} for n in range(3)])
    assert len(list(client.tasks(group="filtered", params={"a": 1, "b": "x,y"}))) == 1
    assert client.campaign("filtered").cancel() == 3


def test_refusal_has_code_and_text(client, served):
    with pytest.raises(tdf.APIError, match="read task 999999: not_found: task 999999: there is no such task") as caught:
        client.task(999999)
    assert caught.value.status == 404
    assert caught.value.code == "not_found"
    assert caught.value.correlation_id
    with pytest.raises(tdf.APIError, match="open tasks: invalid: .*programme"):
        client.open({"programme": "x"})


def test_tokens_without_rights(served):
    with pytest.raises(tdf.APIError, match="open tasks: unauthorized: .*; set TDF_TOKEN"):
        served.client(token="wrong").open({"program": "x"})
    viewer = served.client(token=served.add_token("viewer", "viewer"))
    with pytest.raises(tdf.APIError, match="open tasks: forbidden: the token viewer has the role viewer.*; use a token"):
        viewer.open({"program": "x"})
    assert list(viewer.tasks(group="none")) == []
    submitter = served.client(token=served.add_token("sub", "submitter"))
    with pytest.raises(tdf.APIError, match="begin with sub/ for a campaign"):
        submitter.sweep({"n": [1]}, program="x", campaign="mine")
    with pytest.raises(tdf.APIError, match="unauthorized"):
        served.client(token="").open([{"program": "x", "input": "1" * 1000}] * 10_000)


def test_unreachable(monkeypatch):
    with pytest.raises(tdf.Unreachable, match="read task 1: http://127.0.0.1:1 does not answer: .*refused.*; start `tdf up`"):
        tdf.Client("http://127.0.0.1:1", "t").task(1)
    with pytest.raises(tdf.TDFError, match="no address"):
        tdf.Client("127.0.0.1:7379", "t")
    with pytest.raises(tdf.TDFError, match="in clear; use https, or insecure=True"):
        tdf.Client("http://tdf.example.org:7379", "t")
    assert tdf.Client("http://tdf.example.org:7379", "t", insecure=True).url == "http://tdf.example.org:7379"


def test_token_of_tdf_up(served, monkeypatch):
    monkeypatch.delenv("TDF_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", served.environment["XDG_CONFIG_HOME"])
    assert tdf.Client(served.url).token == served.token
    monkeypatch.setenv("TDF_TOKEN", "mine")
    monkeypatch.setenv("TDF_API", served.url)
    assert tdf.Client().token == "mine"
    assert tdf.Client().url == served.url


@pytest.mark.parametrize("host", ["127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "128.0.0.1", "::2", "127.1"])
def test_other_machines_get_no_token_in_clear(host):
    with pytest.raises(tdf.TDFError, match="in clear"):
        tdf.Client(f"http://[{host}]:1" if ":" in host else f"http://{host}:1", "t")


def test_the_token_of_a_dead_tdf_up_goes_to_nobody(faulty, tmp_path, monkeypatch):
    """Another program listens now where a killed `tdf up` did. The file is locked as long as `tdf up` runs."""
    monkeypatch.delenv("TDF_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    directory = tmp_path / "tdf"
    directory.mkdir(mode=0o700)
    path = directory / f"api-{socket.gethostname()}-127.0.0.1:{faulty.url.rpartition(':')[2]}"
    path.write_text("Authorization: Bearer secret\n")
    path.chmod(0o600)
    client = tdf.Client(faulty.url)
    assert client.token == ""
    with pytest.raises(tdf.Unreachable, match="read task 1: no `tdf up` of this user serves .* now, and TDF_TOKEN is not set; start"):
        client.task(1)
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert client.token == "secret"
        path.chmod(0o640)
        assert client.token == ""
        path.chmod(0o600)
        directory.chmod(0o770)
        assert client.token == ""
    ends_meanwhile = iter(["secret", ""])
    with pytest.raises(tdf.Unreachable, match="no `tdf up` of this user serves"):
        tdf.Client(faulty.url, lambda: next(ends_meanwhile)).task(1)
    assert Faulty.seen == []


class Faulty(http.server.BaseHTTPRequestHandler):
    """Answers with the next of its faults, and then with an empty list of ids."""

    protocol_version = "HTTP/1.1"
    faults = []
    seen = []

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.seen.append((self.path, self.headers.get("Idempotency-Key")))
        fault = self.faults.pop(0) if self.faults else "ok"
        if fault == "close":
            self.close_connection = True
            return
        if fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"ids": [')
            self.close_connection = True
            return
        if fault == "cut head":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            self.close_connection = True
            return
        if fault == "cut line":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"id": 1}\n{"id"')
            self.close_connection = True
            return
        if fault == "cut stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b'a\r\n{"id": 1}\n\r\n')
            self.close_connection = True
            return
        body = {"ok": b'{"ids": [5]}', "proxy": b"<html>bad gateway</html>", "rows": b'{"id": 1}\n{"id": 2}\n'}.get(fault)
        status = {"busy": 503, "proxy": 502, "moved": 302}.get(fault, 200)
        body = body or json.dumps({"code": "unavailable", "detail": "busy"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if fault == "busy":
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def faulty():
    Faulty.faults, Faulty.seen = [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tdf.Client(f"http://127.0.0.1:{server.server_address[1]}", "t")
    server.shutdown()
    server.server_close()


def test_repeats_with_the_same_key(faulty):
    faulty.call("GET", "/")
    Faulty.faults[:], Faulty.seen[:] = ["close", "cut", "cut head", "busy", "proxy"], []
    assert faulty.open({"program": "x"}) == [5]
    keys = {key for _, key in Faulty.seen}
    assert len(Faulty.seen) == 6
    assert len(keys) == 1
    assert None not in keys


def test_repeats_nothing_that_might_happen_twice(faulty):
    faulty.call("GET", "/")
    for fault in ("close", "cut", "cut head", "busy"):
        Faulty.faults[:], Faulty.seen[:] = [fault], []
        with pytest.raises((tdf.Unreachable, tdf.APIError)):
            faulty.act("retry", [1])
        assert len(Faulty.seen) == 1


def test_follows_no_redirect(faulty):
    Faulty.faults[:] = ["moved"]
    with pytest.raises(tdf.APIError) as caught:
        faulty.task(1)
    assert caught.value.status == 302


def test_results_continue_after_an_interruption(faulty):
    faulty.call("GET", "/")
    for cut in ("close", "cut stream", "cut head", "cut line"):
        Faulty.faults[:] = [cut, "busy", "rows"]
        assert [row["id"] for row in faulty.results(group="g")] == [1, 2]


def test_lists_are_repeated_before_their_first_row(faulty):
    """After a restart of the API, the first call may find a connection that is closed."""
    faulty.call("GET", "/")
    Faulty.faults[:] = ["close", "busy", "rows"]
    assert [row["id"] for row in faulty.tasks(group="g")] == [1, 2]
    Faulty.faults[:] = ["cut stream", "rows"]
    rows = faulty.tasks(group="g")
    assert next(rows) == {"id": 1}
    with pytest.raises(tdf.Unreachable, match="list tasks"):
        next(rows)


def test_a_fork_shares_no_connection(faulty):
    faulty.call("GET", "/")
    (kept,) = faulty._idle
    child = os.fork()
    if child == 0:
        os._exit(0 if faulty._connection() is not kept[2] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert faulty._connection() is kept[2]


def test_patience_ends(faulty):
    faulty.call("GET", "/")
    faulty.patience = 0
    Faulty.faults[:] = ["close"]
    with pytest.raises(tdf.Unreachable, match="does not answer"):
        faulty.task(1)


def test_certificate_that_is_not_trusted(tmp_path):
    import subprocess

    certificate, key = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    Faulty.faults, Faulty.seen = [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://localhost:{server.server_address[1]}"
    with pytest.raises(tdf.Unreachable, match="context=ssl.create_default_context"):
        tdf.Client(url, "t").open({"program": "x"})
    trusting = ssl.create_default_context(cafile=certificate)
    assert tdf.Client(url, "t", context=trusting).open({"program": "x"}) == [5]
    server.shutdown()
    server.server_close()


def test_values_for_json():
    import datetime

    import numpy
    import pandas

    values = [numpy.int64(3), numpy.float32(0.5), float("nan"), pandas.NaT, pandas.NA, numpy.array([1, 2]), datetime.date(2026, 1, 2), True, (1,)]
    assert json.loads(compact(values)) == [3, 0.5, None, None, None, [1, 2], "2026-01-02", True, [1]]
    times = [numpy.datetime64("2026-01-31"), numpy.datetime64("2026-01-31T00:00:00.000000001"), numpy.datetime64("NaT"), numpy.timedelta64(90, "s")]
    assert json.loads(compact(times)) == ["2026-01-31", "2026-01-31T00:00:00.000000001", None, "0:01:30"]
    assert json.loads(compact([numpy.array([[0.1]], dtype="float32"), numpy.array(times[:1]), numpy.float16("nan")])) == [[[0.1]], ["2026-01-31"], None]
    with pytest.raises(tdf.TDFError, match="use finite numbers"):
        compact({"a": float("inf")})
