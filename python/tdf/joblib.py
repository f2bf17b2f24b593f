"""The backend "tdf" of joblib, and so of scikit-learn (docs/python.md, "joblib"). To import this module registers it."""

from __future__ import annotations

import concurrent.futures
import functools
import importlib
import logging
import multiprocessing
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, cast

from .blobs import Put
from .calls import PROGRAM, in_call
from .client import Client, Row
from .errors import APIError, TDFError
from .executor import Call, Executor
from .labels import short
from .sweep import Campaign

joblib: Any = importlib.import_module("joblib.parallel")

log = logging.getLogger("tdf")

RETRIEVES = hasattr(joblib.ParallelBackendBase, "supports_retrieve_callback")  # since joblib 1.3; earlier versions call Future.get

DEFAULT_QUEUE = "default"
UNKNOWN_SLOTS = 64  # for n_jobs=-1 with a token that may not list the workers


class Batches(Executor):
    """An Executor of joblib's batches, which are known by their first call."""

    aborted = False  # joblib waits for no result
    _put: Optional[Put] = None

    def put_of(self) -> Put:
        """Remembers arrays for all batches: as in joblib's memmapping, they may not change while Parallel runs."""
        self._put = self._put or super().put_of()
        return self._put

    def shown(self, call: Call) -> Tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any], int]:
        items = cast(Batch, call[0]).calls.items
        function, args, kwargs = items[0]
        return function, args, kwargs, len(items) - 1

    def abort(self) -> None:
        """Cancels all batches, also those that run."""
        self.shutdown(wait=False)
        try:
            Campaign(self.client, self.campaign).cancel()
        except TDFError as error:  # the error for which joblib aborts matters more
            log.warning("%s", error)


class Batch:
    """A batch with the name of its first function. To load it registers the backend on the worker, too."""

    def __init__(self, calls: Any) -> None:
        self.calls, function = calls, calls.items[0][0]
        self.__module__, self.__qualname__ = getattr(function, "__module__", __name__), short(function)

    def __call__(self) -> Any:
        return self.calls()


class TDFBackend(joblib.AutoBatchingMixin, joblib.ParallelBackendBase):  # type: ignore[misc]
    """Runs the batches of joblib as tasks. The arguments are those of an Executor."""

    supports_timeout = True
    supports_retrieve_callback = True

    def __init__(
        self, client: Any = None, *, campaign: str = "joblib", nesting_level: Optional[int] = None,
        inner_max_num_threads: Optional[int] = None, **properties: Any
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._client = client
        self._properties: Row = {"campaign": campaign, **properties}
        self._workers: Optional[Batches] = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client()
        client: Client = getattr(self._client, "client", self._client)
        return client

    def effective_n_jobs(self, n_jobs: Optional[int]) -> int:
        """Returns the number of calls at once. -1 stands for all slots of the workers for functions, and for at least
        2, because joblib runs a single job here.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None or n_jobs > 0:
            return n_jobs or 1
        if in_call():
            return int(joblib.cpu_count())
        return max(2, self._slots() + 1 + n_jobs)

    def _slots(self) -> int:
        queue = self._properties.get("queue") or DEFAULT_QUEUE
        try:
            workers = self.client.call("GET", "/workers", action="count the slots of workers")
        except APIError as error:
            if error.code != "forbidden":
                raise
            return UNKNOWN_SLOTS
        return sum(worker["slots"] for worker in workers if serves(worker, queue))

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        if in_call():  # which may open no tasks
            raise joblib.FallbackToBackend(joblib.ThreadingBackend(nesting_level=self.nesting_level))
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:
            raise joblib.FallbackToBackend(joblib.SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        self._workers = Batches(self.client, **self._properties)
        return n_jobs

    def submit(self, func: Callable[[], Any], callback: Optional[Callable[[Any], None]] = None) -> Any:
        """Opens the task of a batch. joblib may call it in the executor's thread, so an error has to be that of the job."""
        executor = self._workers
        future: concurrent.futures.Future[Any]
        try:
            if executor is None:
                raise RuntimeError("submit: the backend was terminated")
            future = executor.submit(Batch(func))
        except Exception as error:
            future = concurrent.futures.Future()
            future.set_exception(error)
        setattr(future, "get", functools.partial(result, future))
        if callback is not None:
            future.add_done_callback(functools.partial(self._done, executor, callback))
        return future

    def _done(self, executor: Optional[Batches], callback: Callable[[Any], None], future: Any) -> None:
        """Calls a callback, which opens further batches. None runs after an abort, because its batches would belong to
        the next run of the same Parallel; nor after an error, unless the callback retrieves it.
        """
        with self.parallel._lock:
            if (RETRIEVES or succeeded(future)) and not (executor is not None and executor.aborted):
                callback(future)

    apply_async = submit

    def retrieve_result_callback(self, out: Any) -> Any:
        return out.result()

    def terminate(self) -> None:
        executor, self._workers = self._workers, None
        if executor is not None:
            executor.shutdown()
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        executor, self._workers = self._workers, None
        if executor is not None:
            with self.parallel._lock:
                executor.aborted = True
            executor.abort()
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)


def serves(worker: Mapping[str, Any], queue: str) -> bool:
    """Reports whether a worker is alive and runs the functions of a queue."""
    queues = [name.partition(":")[0] for name in worker.get("queues") or [DEFAULT_QUEUE]]
    return worker["state"] in ("starting", "working") and PROGRAM in worker.get("handlers", ()) and queue in queues


def succeeded(future: "concurrent.futures.Future[Any]") -> bool:
    return not future.cancelled() and future.exception() is None


def result(future: "concurrent.futures.Future[Any]", timeout: Optional[float] = None) -> Any:
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError as error:
        if future.done():  # the function has raised it
            raise
        raise multiprocessing.TimeoutError(f"the call is not finished after {timeout} s") from error


joblib.register_parallel_backend("tdf", TDFBackend)
