"""Functions that workers import."""

import asyncio
import builtins
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time

import tdf


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


def leave_timer():
    """Leaves a timer that ends the process after the call."""
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return os.getpid()


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


def crash():
    """Ends as a program does whose memory is broken: without Python."""
    print("step 1")
    print("step 2", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGSEGV)


class Own(BaseException):
    pass


def raise_named(name):
    raise {"CancelledError": asyncio.CancelledError, "of futures": concurrent.futures.CancelledError}.get(name) or getattr(builtins, name, Own)("text")


def silent(how):
    """Closes the stream to which it prints."""
    if how == "replaced":
        sys.stdout = open(os.devnull, "w")
    sys.stdout.close()
    return "result"


def say(text):
    print(text)


def flaky(path, error):
    """Raises an error if it runs for the first time."""
    with open(path, "a") as file:
        file.write("x")
        if file.tell() == 1:
            raise error


def lines_until(path):
    print("line 1")
    wait_for(path)
    print("line 2")


def capture(*args, **kwargs):
    return args, kwargs


value, initialized = None, 0


def set_value(to):
    global value, initialized
    value, initialized = to, initialized + 1


def get_value():
    return value, initialized


class FalseyBool(Exception):
    def __bool__(self):
        return False


class FalseyLen(Exception):
    def __len__(self):
        return 0


def raise_falsey(name):
    raise {"FalseyBool": FalseyBool, "FalseyLen": FalseyLen}[name]("falsey")


def raise_noted():
    inner = ValueError("inner")
    inner.add_note("first")
    inner.add_note("second")
    group = ExceptionGroup("several", [inner])  # noqa: F821
    group.add_note("of the group")
    raise group


def step(path, text=None):
    """Prints from a thread, reports half of its work from another one, and waits."""
    for function, args in ((print, ("from a thread",)), (tdf.progress, (5, 10, text))):
        thread = threading.Thread(target=function, args=args)
        thread.start()
        thread.join()
    print("no line end", end="")
    wait_for(path)


def leave_thread(path):
    """Leaves a thread that prints after the call has ended."""
    threading.Thread(target=lambda: print("late", wait_for(path))).start()
    return os.getpid()


def of_worker(path, what):
    """Returns or raises what only a worker can import."""
    sys.path.insert(0, path)
    import only_there

    if what == "value":
        return only_there.Value()
    raise only_there.Error("odd")


def chatter():
    print("to stdout")
    os.write(2, b"to stderr\n")
    sys.exit("leaving")


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one)


class Textless(Exception):
    def __str__(self):
        raise ValueError


def raise_textless():
    raise Textless(threading.Lock())


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


def fit(rate, mode="fast"):
    if rate > 1:
        raise ValueError(f"rate {rate} is too large")
    return {"loss": round(rate * rate, 6), "of": (rate, {"fast": "fast"}[mode] if rate == 1 else mode)}


def process_of(n):
    return os.getpid()


def fail_after(path):
    wait_for(path)
    fail("bad")


def cores():
    return int(os.environ["TDF_CPUS"])


def first(array):
    return array[0]


def add_first(one, other):
    return one[0] + other[0]


def scaled(array, n):
    return {"n": n, "array": array * n, "token": os.environ.get("TDF_TOKEN")}


def fail_with(array):
    raise ValueError("large")


def share(meeting, together):
    """Waits until some calls run at the same time, and returns what each has got."""
    with open(os.path.join(meeting, str(os.getpid())), "w"):
        while len(os.listdir(meeting)) < together:
            time.sleep(0.01)
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TDF_RESOURCES")
    return {name: os.environ.get(name) for name in names}, sorted(os.sched_getaffinity(0))


def need(size):
    return len(bytearray(size))


def alone(path):
    os.mkdir(path)  # fails if another call is here
    time.sleep(0.02)
    os.rmdir(path)
