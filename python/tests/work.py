"""Functions that workers import."""

import os
import signal
import subprocess
import sys
import threading
import time


def square(n):
    return n * n


def fail(text):
    raise ValueError(text)


def die(how):
    print("dying", flush=True)
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), how)


def die_with_child():
    subprocess.Popen(["sleep", "1000"], close_fds=False)
    if os.fork() == 0:
        time.sleep(1000)
    die(signal.SIGKILL)


def close_all():
    os.closerange(3, 100)
    time.sleep(1000)


def fork(how):
    """Forks a process that returns, exits or fails, and returns its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if how == "bad":
        raise RuntimeError(how)
    if how:
        sys.exit(how)


def chatter():
    print("to stdout")
    os.write(2, b"to stderr\n")
    sys.exit("leaving")


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def raise_awkward():
    raise Awkward("first", "second")


def large(size):
    return os.urandom(size)


def unpicklable():
    return threading.Lock()


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.02)
    return path


def note_and_wait(process, path):
    with open(process + ".new", "w") as to:
        to.write(str(os.getpid()))
    os.rename(process + ".new", process)
    return wait_for(path)


def note(directory, n):
    """Notes the process of the worker of this run, and returns n squared."""
    open(os.path.join(directory, f"{n}.{os.getppid()}"), "w").close()
    if n % 10 == 0:
        wait_for(os.path.join(directory, "go"))
    return n * n
