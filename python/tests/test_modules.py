"""Scripts in a directory of their own, whose modules no worker has."""

import os
import subprocess
import sys
import textwrap

import pytest

import tdf
from conftest import PYTHON
from tdf.modules import Modules

BEGIN = """
    import os, sys, tdf, tdf.calls
    tdf.calls.cloudpickle = None
    """


@pytest.fixture
def project(served, slots, tmp_path):
    """Writes the files of a project, and runs its script, which prints results."""

    def run(script, files=(), **more):
        (tmp_path / "project").mkdir(exist_ok=True)
        for name, text in {**dict(files), **more}.items():
            path = tmp_path / "project" / (name + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        (tmp_path / "project" / "main.py").write_text(textwrap.dedent(script))
        environment = {**os.environ, "TDF_API": served.url, "TDF_TOKEN": served.token, "PYTHONPATH": PYTHON}
        done = subprocess.run([sys.executable, "project/main.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else done.stderr

    return run


def test_modules_of_the_project(project):
    script = BEGIN + """
    import helpers, package.inner

    class Point:
        def __init__(self, x):
            self.x = x

    def here(n):
        import late
        return Point(late.add(n, helpers.TEN))

    if __name__ == "__main__":
        with tdf.Executor(tdf.Client(), queue="calls") as e:
            print(e.submit(helpers.twice, 2).result())
            print(e.submit(package.inner.where).result())
            print(e.submit(here, 1).result().x)
            print(tdf.Client().sweep({"n": [3]}, function=helpers.twice, queue="calls", campaign=f"modules-{os.getpid()}").wait()["succeeded"])
            for ten in 20, 30:
                with open("project/helpers.py", "a") as file:
                    file.write(f"TEN = {ten}\\n")
                print(e.submit(here, 1).result().x, *e.map(helpers.ten, range(1)))
    """
    assert project(
        script,
        {"package/__init__": "", "package/inner": "def where():\n    from . import deep\n    return deep.__name__, __file__.count('main')\n", "package/deep": "def plus(a, b):\n    return a + b\n"},
        helpers="TEN = 10\ndef twice(n):\n    return 2 * n\ndef ten(_):\n    return TEN\n", late="import package.deep\ndef add(a, b):\n    return package.deep.plus(a, b)\n",
    ) == ["4", "('package.deep', 0)", "11", "1", "21 20", "31 30"]


def test_names_of_installed_modules(project):
    script = BEGIN + """
    import pandas, resource

    def own():
        import pandas
        return pandas.OWN

    if __name__ == "__main__":
        with tdf.Executor(tdf.Client(), queue="calls", max_losses=0) as e:
            print(e.submit(own).result())
    """
    assert "the project's resource has the name of a module that each worker loads, " in project(script, pandas="OWN = 7\n", resource="")
    assert project(script.replace(", resource", ""), pandas="OWN = 7\n") == ["7"]


def test_the_project_comes_before_installed_modules(project):
    assert project(BEGIN + """
    import pandas

    if __name__ == "__main__":
        with tdf.Executor(tdf.Client(), queue="calls") as e:
            print(e.submit(pandas.own).result())
    """, pandas="def own():\n    return 7\n") == ["7"]


def test_a_script_without_a_guard(project):
    error = project(BEGIN + """
    def f():
        return 1

    with tdf.Executor(tdf.Client(), queue="calls") as e:
        print(e.submit(f).result())
    """)
    assert 'put what the script does below `if __name__ == "__main__":`, or install cloudpickle' in error


def test_only_the_tests_that_a_call_names_travel(project):
    """pytest loads all tests and conftest.py before the first one runs."""
    assert project(BEGIN + """
    import importlib
    app, conftest, test_a, test_b, tests = map(importlib.import_module, ("app", "conftest", "test_a", "test_b", "tests.b_test"))

    with tdf.Executor(tdf.Client(), queue="calls") as e:
        for f in app.f, test_a.f, app.f, tests.f:
            print(e.submit(f).result(), *sorted(e._setup.modules._files))
    """, {"tests/__init__": "", "tests/b_test": "def f():\n    return 3\n"}, app="def f():\n    return 1\n", conftest="", test_a="import test_c\ndef f():\n    return 2\n", test_b="", test_c="") == [
        "1 app.py", "2 app.py test_a.py test_c.py", "1 app.py test_a.py test_c.py", "3 app.py test_a.py test_c.py tests/__init__.py tests/b_test.py",
    ]


def test_a_large_module(project):
    assert project(BEGIN + """
    with open("project/large.py", "w") as file:
        file.write(f"TEXT = '{os.urandom(1_000_000).hex()}'\\ndef size():\\n    return len(TEXT)\\n")
    import large

    with tdf.Executor(tdf.Client(), queue="calls") as e:
        print(e.submit(large.size).result())
    """) == ["2000000"]


def test_modules_by_name(project, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "faraway.py").write_text("def f():\n    return __name__\n")
    script = BEGIN + """
    sys.path.append("far")
    import faraway

    with tdf.Executor(tdf.Client(), queue="calls", modules=[NAMED]) as e:
        print(e.submit(faraway.f).result())
    """
    assert project(script.replace("NAMED", "'faraway'")) == project(script.replace("NAMED", "faraway")) == ["faraway"]
    assert "No module named 'faraway'" in project(script.replace("NAMED", ""))


@pytest.mark.parametrize("named", [["no_such_module"], ["sys"], [5], ["a b"], [""]])
def test_what_cannot_travel(named):
    with pytest.raises(tdf.TDFError, match="is no module or package with sources"):
        Modules(named)
