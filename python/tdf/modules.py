"""The modules of a project travel with its calls: workers need only libraries (docs/python.md, "Modules")."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import re
import sys
import threading
import time
import types
import zipfile
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

from .blobs import MEMORY, Put
from .errors import CallError, TDFError
from .sources import INSTALLED, LIBRARY, Mark, file_of, mark

SCRIPT = "__mp_main__"  # what multiprocessing calls the script in its processes, so both sides know its classes by this name
TEST = re.compile(r"tests?|conftest|test_.*|.*_test")  # what pytest loads before it runs the first test


def project() -> str:
    """Returns the directory of the script, or the current one of a notebook, or of python -m."""
    main = sys.modules["__main__"]
    of_script = getattr(main, "__spec__", None) is None and file_of(main)
    return os.path.join(os.path.dirname(os.path.abspath(of_script)) if of_script else os.getcwd(), "")


def is_installed(file: str) -> bool:
    return file.startswith(LIBRARY) or any(part in file.split(os.sep) for part in INSTALLED)


class Modules:
    """The modules of the project that calls may need: those that are loaded, those that they import, and those that the user
    names. A package travels whole.
    """

    def __init__(self, named: Iterable[Union[str, types.ModuleType]] = ()) -> None:
        self.named = [name.__name__ if isinstance(name, types.ModuleType) else name for name in ([named] if isinstance(named, str) else named)]
        self.project = project()
        self._called: Set[str] = set()  # the tests that calls have named
        self._left_out: Set[str] = set()  # the other tests that are loaded
        self._files: Dict[str, str] = {}  # by their names in the archive
        self._marks: Dict[str, Optional[Mark]] = {}
        self._imports: Dict[Tuple[str, Optional[Mark]], List[str]] = {}
        self._loaded = -1
        self._stored: Dict[bool, Tuple[Optional[str], float]] = {}
        self._lock = threading.Lock()
        for name in self.named:
            if not isinstance(name, str) or not list(files_of(name, "")):
                raise TDFError(f"travel with modules: {name!r} is no module or package with sources; want names, such as modules=['helpers']")

    def store(self, with_script: bool, pickles: Sequence[bytes], put: Optional[Put]) -> Optional[str]:
        """Stores an archive of the modules as they are now, and returns the name of its blob. It returns None if there are no
        modules, or the API keeps no blobs. pickles are those of the call.
        """
        with self._lock:
            if len(sys.modules) != self._loaded or named(self._left_out, pickles) or any(mark(file) != noted for file, noted in self._marks.items()):
                self._loaded, before = len(sys.modules), self._marks
                self._files = self._find(pickles)
                self._marks = {file: mark(file) for file in [*self._files.values(), file_of(sys.modules["__main__"])]}
                if self._marks != before:
                    self._stored.clear()
            name, until = self._stored.get(with_script, (None, 0.0))
            if put is not None and time.monotonic() > until:
                data = self._pack(with_script)
                name = put(memoryview(data)) if data else None
                self._stored[with_script] = name, time.monotonic() + MEMORY
            return name

    def _pack(self, with_script: bool) -> bytes:
        files = dict(self._files)
        if with_script:
            sys.modules.setdefault(SCRIPT, sys.modules["__main__"])
            files[SCRIPT + ".py"] = file_of(sys.modules["__main__"])
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name, file in sorted(files.items()):
                with contextlib.suppress(FileNotFoundError), open(file, "rb") as source:
                    archive.writestr(zipfile.ZipInfo(name), source.read(), zipfile.ZIP_DEFLATED)  # the same content is the same archive
        return data.getvalue() if files else b""

    def _find(self, pickles: Sequence[bytes]) -> Dict[str, str]:
        """Returns the files by their names in the archive. A test is there if one of them imports it, or if a call has named it."""
        found: Dict[str, str] = {}
        seen: Set[str] = set()
        files = [(name.partition(".")[0], file_of(module)) for name, module in list(sys.modules.items())]
        loaded = {name for name, file in files if file.startswith(self.project) and not is_installed(file)}
        tests = set(filter(TEST.fullmatch, loaded))
        self._called |= named(tests, pickles)
        self._left_out = tests - self._called
        main = file_of(sys.modules["__main__"])
        waiting = [*(loaded - self._left_out), *self.named, *(self._imported(main) if main.startswith(self.project) else ())]
        while waiting:
            name = waiting.pop()
            if name in seen or name in ("__main__", SCRIPT, "tdf"):
                continue
            seen.add(name)
            for path, file in files_of(name, "" if name in self.named else self.project):
                found[path] = file
                waiting += self._imported(file)
        return found

    def _imported(self, file: str) -> List[str]:
        key = file, mark(file)
        if key not in self._imports:
            self._imports[key] = imports(file)
        return self._imports[key]


def named(modules: Set[str], pickles: Sequence[bytes]) -> Set[str]:
    return {name for name in modules if any(name.encode() in pickled for pickled in pickles)}


def files_of(name: str, below: str) -> Iterator[Tuple[str, str]]:
    """Yields the names and the files of the sources of a module, or of its whole package, if it is in a directory, and not installed."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    place = name.replace(".", "/")
    for directory in spec.submodule_search_locations or ():
        for at, directories, names in os.walk(directory):
            directories[:] = [inner for inner in directories if inner.isidentifier() and inner != "__pycache__"]
            for each in names:
                file = os.path.join(at, each)
                if each.endswith(".py") and file.startswith(below) and not (below and is_installed(file)):
                    yield place + file[len(directory) :].replace(os.sep, "/"), file
    origin = spec.origin or ""
    if spec.submodule_search_locations is None and origin.endswith(".py") and origin.startswith(below) and not (below and is_installed(origin)):
        yield place + ".py", origin


def imports(file: str) -> List[str]:
    """Returns the top-level names that a source imports, also in its functions."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []
    names: List[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.partition(".")[0])
    return names


# On a worker


loading = False  # this process loads the script, to find its functions


def install(path: str) -> None:
    """Lets this process import the modules of an archive, before all others."""
    with zipfile.ZipFile(path) as archive:
        names = {name.partition("/")[0].partition(".")[0] for name in archive.namelist()}
        taken = sorted((names - {SCRIPT}) & set(sys.modules))
        if taken:
            raise CallError(f"the project's {taken[0]} has the name of a module that each worker loads, {file_of(sys.modules[taken[0]]) or 'of Python'}; rename it")
        sys.path.insert(0, path)
        if SCRIPT in names:
            load_script(archive.read(SCRIPT + ".py"), path)


def load_script(source: bytes, path: str) -> None:
    global loading
    script: Any = types.ModuleType(SCRIPT)
    script.__file__ = os.path.join(path, SCRIPT + ".py")
    sys.modules["__main__"] = sys.modules[SCRIPT] = script
    loading = True
    try:
        exec(compile(source, script.__file__, "exec"), script.__dict__)
    finally:
        loading = False


def refuse_while_loading(action: str) -> None:
    if loading:
        raise TDFError(
            f"{action}: a worker loads the script to find its functions; put what the script does below `if __name__ == \"__main__\":`, or "
            "install cloudpickle here and on the workers"
        )
