"""A progress bar: that of tqdm if it is installed, which also works in notebooks, or else a line on a terminal."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional


class Bar:
    """A bar of finished tasks. With show=None, it is shown only on a terminal or in a notebook."""

    def __init__(self, label: str, show: Optional[bool] = None) -> None:
        self.label = label
        notebook = "ipykernel" in sys.modules
        self.shown = (sys.stderr.isatty() or notebook) if show is None else show
        self._tqdm: Any = None
        if self.shown:
            try:
                self._tqdm = importlib.import_module("tqdm.auto").tqdm(desc=label, unit="task", total=0)
            except ImportError:
                pass

    def update(self, done: int, total: int, failed: int) -> None:
        if not self.shown:
            return
        if self._tqdm is None:
            problems = f", {failed} failed" if failed else ""
            sys.stderr.write(f"\r{self.label}: {done} of {total}{problems}")
            sys.stderr.flush()
            return
        self._tqdm.total, self._tqdm.n = total, done
        if failed:
            self._tqdm.set_postfix(failed=failed, refresh=False)
        self._tqdm.refresh()

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        elif self.shown:
            sys.stderr.write("\n")
