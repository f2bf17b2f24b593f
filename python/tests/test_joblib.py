"""The tests of joblib's backends (joblib/test/test_parallel.py), and others of ours."""

import concurrent.futures
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time

import joblib.parallel
import pytest
from joblib import Parallel, delayed, parallel_backend
from joblib.test import test_parallel as theirs
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

import tdf
import tdf.joblib
import work
from conftest import Workers
from test_loop import eventually
from tdf.joblib import TDFBackend, serves

# Those without a backend run with tdf as the default backend.
RUN = [
    *(("test_simple_parallel", "tdf", n_jobs, verbose) for n_jobs in (1, 2, -1, -2) for verbose in (2, 100)),
    ("test_main_thread_renamed_no_warning", "tdf"),
    ("test_background_thread_parallelism", None),
    *(("test_nested_loop", "tdf", child) for child in ("loky", "multiprocessing", "sequential", "tdf", "threading")),
    ("test_nested_loop", "threading", "tdf"),
    *(("test_parallel_kwargs", n_jobs) for n_jobs in (1, 2, 3)),
    ("test_parallel_as_context_manager", "tdf"),
    ("test_parallel_timeout_fail", "tdf"),
    ("test_dispatch_one_job", "tdf", 4, [f"{how} {n}" for some in (range(4), (4, 5)) for how in ("Produced", "Consumed") for n in some]),
    ("test_batching_auto_subprocesses", "tdf"),
    ("test_exception_dispatch",),
    ("test_nested_exception_dispatch", "tdf"),
    ("test_invalid_njobs", "tdf"),
    ("test_backend_context_manager", "tdf"),
    ("test_nested_backend_context_manager", "tdf"),
    *(("test_nested_backend_in_sequential", "tdf", n_jobs) for n_jobs in (2, -1, None)),
    *(("test_backend_nesting_level", "tdf", inner) for inner in ("loky", "multiprocessing", "tdf", "threading")),
    ("test_backend_nesting_level", "threading", "tdf"),
    *(("test_dispatch_race_condition", *of) for of in (
        (2, 2, "all", "auto"), (10, 2, "n_jobs", "auto"), (517, 2, "n_jobs", "auto"), (25, 12, "2 * n_jobs", 1), (250, 12, "2 * n_jobs", 7),
        (200, 12, "2 * n_jobs", "auto"),
    )),
    ("test_parallel_with_interactively_defined_functions", "tdf"),
    *(("test_parallel_with_unpicklable_functions_in_args", "tdf", of, place) for of, place in (
        (theirs.SQUARE_MAIN, "delayed"), (theirs.SQUARE_LOCAL, "args"), (theirs.SQUARE_LAMBDA, "kwargs"),
    )),
    ("test_parallel_with_exhausted_iterator",),
    ("test_lambda_expression", "tdf"),
    ("test_backend_batch_statistics_reset", "tdf"),
    ("test_thread_bomb_mitigation", "tdf"),
    ("test_globals_update_at_each_parallel_call",),
]

LEFT_OUT = {
    "of no backend": """test_cpu_count test_effective_n_jobs test_effective_n_jobs_None test_invalid_backend test_register_parallel_backend
        test_overwrite_default_backend test_backend_no_multiprocessing test_parameterized_backend_context_manager
        test_directly_parameterized_backend_context_manager test_retrieval_context test_joblib_exception test_safe_function
        test_invalid_batch_size test_warning_about_timeout_not_supported_by_backend test_invalid_backend_hinting_and_constraints
        test_backend_hinting_and_constraints_with_custom_backends test_global_parallel_backend test_external_backends
        test_zero_worker_backend""",
    "of another backend": """test_nested_parallel_warnings test_nested_loop_with_exception_with_loky test_mutate_input_with_threads
        test_batching_auto_threading test_default_mp_context test_loky_reuse_workers test_dask_backend_when_dask_not_installed
        test_nested_parallelism_with_dask test_parallel_with_interactively_defined_functions_default_backend
        test_parallel_with_interactively_defined_bound_method""",
    "its values are arrays in memory that processes share, or large arrays": """test_auto_memmap_on_arrays_from_generator
        test_memmap_with_big_offset test_memmapping_leaks test_no_blas_crash_or_freeze_with_subprocesses""",
    "the worker says how many threads its libraries use": """test_parallel_thread_limit test_threadpool_limitation_in_child
        test_threadpool_limitation_in_child_context test_threadpool_limitation_in_child_override
        test_threadpool_limitation_in_child_context_error""",
    "a KeyboardInterrupt on a worker is a TaskError here: test_errors": "test_error_capture",
    "it wants the words of loky: test_what_cannot_be_pickled": "test_parallel_pickling",
    "it shares a list with its child processes: test_calls_are_opened_as_others_end": "test_dispatch_multiprocessing",
    "it depends on time: test_timeout and test_abort": "test_parallel_timeout_success test_abort_backend",
    "it wants names of classes: test_nested and test_hints": "test_nested_parallelism_limit test_backend_hinting_and_constraints",
}


@pytest.fixture(scope="module")
def workers(served):
    workers = Workers(served)
    workers.start("--slots", "2", "--queue", "default", "--queue", "joblib")
    yield workers
    workers.stop()


@pytest.fixture(autouse=True)
def environment(served, workers, monkeypatch):
    monkeypatch.setenv("TDF_API", served.url)
    monkeypatch.setenv("TDF_TOKEN", served.token)


def calls_of(campaign):
    return [(task["parameters"]["call"], task) for task in tdf.Client().tasks() if task.get("campaign", "").startswith(campaign + "-")]


def call(arguments, timeout=None, stdout_regex=""):
    assert subprocess.run(arguments, check=True, capture_output=True, text=True).stdout == "[0, 1, 4, 9, 16]\n"


@pytest.mark.parametrize("test", RUN, ids=lambda of: of[0])
def test_of_joblib(test, monkeypatch, request):
    name, *arguments = test
    run = getattr(theirs, name)
    of_run = inspect.signature(run).parameters
    fixtures = {fixture: request.getfixturevalue(fixture) for fixture in ("monkeypatch", "tmpdir") if fixture in of_run}
    if "context" in of_run:  # since joblib 1.3
        fixtures["context"] = parallel_backend
    names = [parameter for parameter in of_run if parameter not in fixtures]
    if "tdf" not in arguments:
        monkeypatch.setattr(joblib.parallel, "DEFAULT_BACKEND", "tdf")
    for script in ("UNPICKLABLE_CALLABLE_SCRIPT_TEMPLATE_NO_MAIN", "UNPICKLABLE_CALLABLE_SCRIPT_TEMPLATE_MAIN"):
        monkeypatch.setattr(theirs, script, "import tdf.joblib\n" + getattr(theirs, script))
    monkeypatch.setattr(theirs, "check_subprocess_call", call)
    run(**dict(zip(names, arguments)), **fixtures)


@pytest.mark.skipif(joblib.__version__ != "1.2.0", reason="other versions have other tests")
def test_the_others_are_left_out():
    left_out = [name for names in LEFT_OUT.values() for name in names.split()]
    assert sorted({test[0] for test in RUN}.union(left_out)) == sorted(name for name in vars(theirs) if name.startswith("test_"))
    assert len(left_out) == len(set(left_out))


def test_grid_search():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "kernel": ["linear", "rbf"]}, cv=3)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with parallel_backend("tdf", campaign="search"):
        search.fit(X, y)
        assert list(search.cv_results_["mean_test_score"]) == list(here)
        forest = RandomForestClassifier(10, random_state=0, n_jobs=2)  # nested: with threads of the worker
        assert len(cross_val_score(forest, X, y, cv=3)) == 3
        with pytest.raises(ValueError, match="fits failed"):
            GridSearchCV(SVC(), {"C": [-1]}).fit(X, y)
    names = {name for name, task in calls_of("search") if "SVC" in name}
    assert len(names) > 1
    assert all(name.startswith("_fit_and_score(estimator=SVC(…), X=ndarray(150×4), y=ndarray(150), ") for name in names)


@pytest.mark.parametrize("managed", [False, True])
def test_errors(managed):
    with Parallel(n_jobs=2, backend="tdf") as kept:
        parallel = kept if managed else Parallel(n_jobs=2, backend="tdf")
        for _ in range(2):
            with pytest.raises(ZeroDivisionError) as caught:
                parallel(delayed(theirs.division)(1, n) for n in (1, 0, 1, 2))
            assert "in division\n    return x / y" in str(caught.value.__cause__)
            with pytest.raises(tdf.TaskError, match="KeyboardInterrupt"):
                parallel(delayed(theirs.interrupt_raiser)(n) for n in (1, 0))
            with pytest.raises(theirs.MyExceptionWithFinickyInit):
                parallel(delayed(theirs.exception_raiser)(n, custom_exception=True) for n in range(30))
            with pytest.raises(TimeoutError, match="text"):
                parallel(delayed(work.raise_named)("TimeoutError") for n in range(3))
            assert parallel(delayed(work.square)(n) for n in range(3)) == [0, 1, 4]
    assert kept._backend._workers is None


@pytest.mark.parametrize("at", [0, 20])
def test_what_cannot_be_pickled(at):
    """The last ones are opened in the thread of the executor."""
    with pytest.raises(pickle.PicklingError, match="pickle the call of builtins.id: cannot pickle"):
        Parallel(n_jobs=2, backend="tdf")(delayed(id)(n if n < at else threading.Lock()) for n in range(1000))


def test_calls_are_opened_as_others_end(tmp_path):
    def producer():
        for n in range(6):
            yield n
            if n > 2:  # this one was asked for when a call had ended
                assert os.listdir(tmp_path)

    calls = (delayed(work.note)(str(tmp_path), n + 1) for n in producer())
    assert Parallel(n_jobs=2, batch_size=1, pre_dispatch=3, backend="tdf")(calls) == [1, 4, 9, 16, 25, 36]


def test_timeout(tmp_path):
    assert Parallel(n_jobs=2, backend="tdf", timeout=1000)(delayed(work.square)(n) for n in range(10)) == [n * n for n in range(10)]
    with pytest.raises(theirs.TimeoutError):
        Parallel(n_jobs=2, backend="tdf", timeout=0.5)(delayed(work.wait_for)(str(tmp_path / "never")) for _ in range(3))


def test_abort(tmp_path):
    """An error of a call cancels the others, also those that run."""
    calls = [delayed(work.fail_after)(str(tmp_path / "process")), *[delayed(work.note_and_wait)(str(tmp_path / "process"), "never")] * 20]
    with pytest.raises(ValueError, match="bad"):
        with parallel_backend("tdf", campaign="aborted"):
            Parallel(n_jobs=2, batch_size=1, pre_dispatch="all")(calls)
    eventually("the calls end", lambda: all(task["state"] in ("archived", "expired", "failed") for _, task in calls_of("aborted")))
    process = int((tmp_path / "process").read_text())
    eventually("the process ends", lambda: not os.path.exists(f"/proc/{process}"))


@pytest.mark.skipif(tdf.joblib.RETRIEVES, reason="joblib knows of the error before the next callback")
def test_a_batch_that_is_opened_during_an_abort(monkeypatch):
    """It is none of the next run of the same Parallel."""
    submit, abort, opening, aborting = TDFBackend.submit, TDFBackend.abort_everything, threading.Event(), threading.Event()

    def late(self, func, callback=None):
        if threading.current_thread() is not threading.main_thread():
            opening.set()
            aborting.wait()
            time.sleep(0.2)  # so that a broken abort is over
        return submit(self, func, callback)

    def noted(self, ensure_ready=True):
        opening.wait(3)  # if joblib has noticed the error before the other call ended, it opens no batch
        aborting.set()
        abort(self, ensure_ready)

    for name, function in (("submit", late), ("apply_async", late), ("abort_everything", noted)):
        monkeypatch.setattr(TDFBackend, name, function)
    parallel = Parallel(n_jobs=2, batch_size=1, pre_dispatch=2, backend="tdf")
    with pytest.raises(ValueError, match="bad"):
        parallel([delayed(work.fail)("bad"), delayed(work.square)(2), delayed(work.square)(3)])
    assert parallel(delayed(work.square)(n) for n in range(3)) == [0, 1, 4]


def test_cancelled_by_others(tmp_path):
    def cancel():
        eventually("a call runs", lambda: any(task["state"] == "running" for _, task in calls_of("others")))
        tdf.Client().act("cancel", [task["id"] for _, task in calls_of("others")])

    thread = threading.Thread(target=cancel)
    thread.start()
    with parallel_backend("tdf", campaign="others"), pytest.raises((concurrent.futures.CancelledError, tdf.TaskError)):
        Parallel(n_jobs=2, timeout=300)(delayed(work.wait_for)(str(tmp_path / "never")) for _ in range(4))  # only a broken test needs the timeout
    thread.join()


def test_nested():
    """A call uses threads, as many as it has cores."""
    with parallel_backend("tdf", n_jobs=2):
        info = theirs._recursive_backend_info()
        assert info == [("TDFBackend", 0), ("ThreadingBackend", 1), ("SequentialBackend", 2), ("SequentialBackend", 2)]
        cores = Parallel()(delayed(joblib.effective_n_jobs)(-1) for _ in range(2))
    threads = Parallel(n_jobs=2, backend="tdf")(delayed(work.cores)() for _ in range(2))
    assert cores == threads


def test_hints():
    for backend in ("tdf", TDFBackend()):
        with pytest.raises(ValueError, match="does not support shared memory"):
            Parallel(n_jobs=2, backend=backend, require="sharedmem")
        with parallel_backend(backend, n_jobs=2):
            assert type(Parallel(prefer="threads")._backend) is TDFBackend
            assert type(Parallel(require="sharedmem")._backend) is joblib.parallel.ThreadingBackend


def test_slots(served, monkeypatch):
    eventually("the worker is there", lambda: TDFBackend(queue="joblib")._slots() == 2)
    assert TDFBackend(queue="joblib").effective_n_jobs(-1) == 2
    assert TDFBackend(queue="empty").effective_n_jobs(-1) == 2  # a worker may come
    assert TDFBackend().effective_n_jobs(7) == 7
    monkeypatch.setattr(TDFBackend, "_slots", lambda self: 10)
    assert [TDFBackend().effective_n_jobs(n) for n in (-1, -2, -20, None)] == [10, 9, 2, 1]
    monkeypatch.undo()
    submitter = served.client(token=served.add_token("joblib", "submitter"))
    assert TDFBackend(submitter).effective_n_jobs(-1) == 64
    with parallel_backend("tdf", client=submitter, campaign="joblib/submitted"):
        assert Parallel()(delayed(work.square)(n) for n in range(5)) == [0, 1, 4, 9, 16]
    with pytest.raises(tdf.APIError, match="unauthorized"):
        TDFBackend(served.client(token="wrong")).effective_n_jobs(-1)
    one = {"state": "working", "handlers": ["tdf.call"], "queues": ["gpu:3", "calls"]}
    assert [serves(one, queue) for queue in ("gpu", "calls", "default")] == [True, True, False]
    assert not serves({**one, "state": "silent"}, "gpu")
    assert not serves({**one, "handlers": []}, "gpu")
    assert serves({"state": "working", "handlers": ["tdf.call"]}, "default")


def test_calls_have_their_names():
    with parallel_backend("tdf", campaign="named"):
        assert Parallel(n_jobs=2, batch_size=3, pre_dispatch="all")(delayed(work.square)(n=n) for n in range(6)) == [0, 1, 4, 9, 16, 25]
    names = [(name, task["parameters"]["function"]) for name, task in calls_of("named")]
    assert sorted(names) == [("square(n=0) and 2 more", "work.square"), ("square(n=3) and 2 more", "work.square")]
