#!/usr/bin/env python3
"""A worker over HTTP that needs nothing but Python's standard library (docs/http.md, "Workers").

    TDF_TOKEN=... ./worker.py [NAME]

It runs the program "square" of tasks without a source. It may be killed at any point: its tasks then run again.
"""
import http.client
import itertools
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

API = os.environ.get("TDF_API", "http://127.0.0.1:7379") + "/api/v1/work"
HEADERS = {"Authorization": "Bearer " + os.environ["TDF_TOKEN"], "Content-Type": "application/json"}
LEASE = float(os.environ.get("TDF_LEASE", "60"))  # seconds after which the tasks of a killed worker run again
AT_ONCE = 4  # tasks that run at the same time

stopping = threading.Event()


def call(path, body, method="POST", **headers):
    """Makes a call until the server has answered it. Each call may be made again: the answer is the same."""
    request = urllib.request.Request(API + path, json.dumps(body).encode(), {**HEADERS, **headers}, method=method)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as refusal:
            problem = refusal.read().decode(errors="replace")
            if refusal.code not in (429, 503) and not (path == "" and refusal.code == 409):
                print(f"{method} {path}: {problem}", file=sys.stderr)
                os._exit(1)  # also from a thread; the tasks run again
            print("waiting:", problem, file=sys.stderr)  # the name is taken, or the server is away
        except (OSError, http.client.HTTPException, ValueError) as error:
            print("waiting:", error, file=sys.stderr)
        time.sleep(0.5)


def square(task):
    number = int(task.get("input", ""))
    return {"square": number * number}


PROGRAMS = {"square": square}


def work(task):
    """Runs a task, and returns the report about it."""
    try:
        return {"action": "complete", "result": PROGRAMS[task["program"]](task)}
    except ValueError as error:  # another round would fail, too
        return {"action": "fail", "error": str(error), "permanent": True}
    except Exception as error:
        return {"action": "fail", "error": repr(error)}


class Session:
    """A session renews the claims of its tasks, and reports how they have ended."""

    def __init__(self, name):
        body = {"name": name, "host": socket.gethostname(), "pid": os.getpid(), "slots": AT_ONCE, "programs": list(PROGRAMS), "lease": LEASE}
        registered = call("", body, **{"Idempotency-Key": str(uuid.uuid4())})
        self.path, self.held, self.lock = "/" + registered["session"], {}, threading.Lock()
        self.free = threading.Semaphore(AT_ONCE)
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self):
        while True:
            time.sleep(LEASE / 3)
            with self.lock:
                runs = list(self.held.values())
            if runs:
                call(self.path + "/renewals", runs)  # a lost task needs no care: its report is refused

    def run(self, task):
        run = {name: task[name] for name in ("id", "round", "claim")}
        with self.lock:
            self.held[task["id"]] = run
        report = {**run, **work(task)}
        call(self.path + "/reports", report)
        with self.lock:
            del self.held[task["id"]]
        self.free.release()

    def loop(self):
        for number in itertools.count(1):  # a number makes the claim repeatable
            self.free.acquire()
            slots = 1
            while slots < AT_ONCE and self.free.acquire(blocking=False):
                slots += 1
            if stopping.is_set():
                break
            claimed = call(self.path + "/claims", {"most": slots, "wait": 20, "number": number})
            for task in claimed["tasks"]:
                threading.Thread(target=self.run, args=(task,)).start()
            for _ in range(slots - len(claimed["tasks"])):
                self.free.release()
        for _ in range(AT_ONCE - slots):  # until all tasks are reported
            self.free.acquire()
        call(self.path, None, method="DELETE")


if __name__ == "__main__":
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: stopping.set())
    Session(sys.argv[1] if len(sys.argv) > 1 else socket.gethostname().split(".")[0]).loop()
