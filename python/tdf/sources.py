"""Notices that the source of a loaded module has changed, so that a process with the old code can be replaced."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from typing import Dict, Optional, Set, Tuple

Mark = Tuple[int, int]

INSTALLED = ("site-packages", "dist-packages")
LIBRARY = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))

CHANGED: Mark = (-1, -1)  # differs from the mark of every file
ROUNDING = 0.1  # seconds by which the time of a file may be earlier than its change


def mark(file: str) -> Optional[Mark]:
    """Returns what changes with a file, or None if there is no file, as in an archive."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class Sources:
    """The files of the modules that this process loads from now on, except those of Python and of packages that are
    installed, which are many and change with a restart of the worker.
    """

    def __init__(self) -> None:
        self.marks: Dict[str, Optional[Mark]] = {}
        self.known: Set[str] = set(sys.modules)

    def note(self, since: float) -> None:
        """Notes the modules that were loaded since a time. A file that has changed meanwhile counts as changed,
        because the module may have its earlier content.
        """
        now = time.time()
        for name in sys.modules.keys() - self.known:
            self.known.add(name)
            file = file_of(sys.modules.get(name))
            if not file or file.startswith(LIBRARY) or any(part in file.split(os.sep) for part in INSTALLED):
                continue
            found = mark(file)
            late = found is not None and since - ROUNDING <= found[0] / 1e9 <= now
            self.marks[file] = CHANGED if late else found

    def changed(self) -> bool:
        return any(mark(file) != noted for file, noted in self.marks.items())


def file_of(module: object) -> str:
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")  # which loads no lazy module
    except AttributeError:
        return ""
    return file if isinstance(file, str) else ""
