"""A real `tdf up`, built from this tree by the Go test of python/, serves all tests."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys

import pytest

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PYTHON)
os.environ["PYTHONPATH"] = PYTHON  # for the processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and the processes they start, ignore it

import tdf  # noqa: E402


class Served:
    """A running `tdf up`: its address, the token of an operator, and its command with the right Redis."""

    def __init__(self, directory):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TDF_")}
        self.environment.update(XDG_CONFIG_HOME=str(directory / "config"), TDF_CFG_REDIS_PORT=str(self.port))
        command = ["tdf", "--set", "http.listen=127.0.0.1:0", "up", "--data", str(directory / "data"), "--workers", "2"]
        self.process = subprocess.Popen(command, cwd=directory, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.tokens = {}
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            found = re.match(r"api +(http://[^/]+)/docs;.* curl -H (.*) http", line)
            if found:
                break
        else:
            pytest.exit("tdf up has ended: " + "".join(lines), 1)
        self.url = found[1]
        with open(shlex.split(found[2])[0][1:]) as header:
            self.token = header.read().split()[-1]

    def client(self, **options):
        options.setdefault("token", self.token)
        return tdf.Client(self.url, **options)

    def run(self, *arguments):
        return subprocess.run(["tdf", *arguments], env=self.environment, check=True, capture_output=True, text=True).stdout

    def add_token(self, name, role):
        if name not in self.tokens:
            self.tokens[name] = self.run("token", "add", name, "--role", role).strip()
        return self.tokens[name]

    def stop(self):
        self.process.terminate()
        self.process.communicate()


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("tdf"))
    yield served
    served.stop()


@pytest.fixture
def client(served):
    with_token = served.client()
    yield with_token
    with_token.close()


@pytest.fixture(scope="session")
def square(served, tmp_path_factory):
    """A program that squares the parameter n, and fails for -1."""
    directory = tmp_path_factory.mktemp("square")
    (directory / "run.sh").write_text(
        '#!/bin/sh\n[ "$1" != -1 ] || { echo "bad number $1" >&2; exit 3; }\nexpr "$1" \\* "$1" | sed "s/.*/{\\"square\\": &}/" >"$TDF_DIR/result.json"\necho "squared $1"\n'
    )
    (directory / "run.sh").chmod(0o755)
    return served.client().push(directory)


class Workers:
    """Processes of python -m tdf.worker for the queue "calls", which import the modules of this directory."""

    def __init__(self, served):
        token = served.add_token("calls", "worker")
        self.environment = {**os.environ, "TDF_API": served.url, "TDF_TOKEN": token}
        self.running = []

    def start(self, *arguments, **environment):
        command = [sys.executable, "-m", "tdf.worker", "--queue", "calls", "--lease", "9", *arguments]
        process = subprocess.Popen(command, cwd=os.path.dirname(os.path.abspath(__file__)), env={**self.environment, **environment})
        self.running.append(process)
        return process

    def stop(self):
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()
        self.running.clear()


@pytest.fixture
def workers(served):
    workers = Workers(served)
    yield workers
    workers.stop()


@pytest.fixture(scope="module")
def slots(served):
    """A worker with two slots."""
    workers = Workers(served)
    workers.start("--slots", "2")
    yield workers
    workers.stop()
