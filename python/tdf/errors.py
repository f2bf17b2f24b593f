"""The errors of this package. Each message says what was tried, why it failed, and what to do."""

from __future__ import annotations

import numbers
import pickle
from typing import Any, Mapping, Optional


class TDFError(Exception):
    """The base class of all errors of this package."""


class Unreachable(TDFError, ConnectionError):
    """The API did not answer, or broke off its answer."""


def check_number(action: str, name: str, value: Any, least: float, most: float, more: str = "") -> None:
    """Raises an error for a value that is not in the range: NaN is in none, and True is no number. None stands for what is not given."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not least <= value <= most):  # type: ignore[operator]
        raise TDFError(f"{action}: {name} is {value!r}; want a number from {least} to {most}{more}")


REMEDIES = {
    "unauthorized": "set TDF_TOKEN, or the argument token, to a token that `tdf token add` has printed",
    "forbidden": "use a token that may do it: `tdf token add NAME --role ROLE`",
    "full": "remove finished tasks, or raise the limit",
    "misdirected": "name this host in [http] hosts",
}


class APIError(TDFError):
    """The API refused a call. The codes are those of docs/http.md, "Errors"."""

    def __init__(self, action: str, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail", ""))
        self.correlation_id = str(problem.get("correlation_id", ""))
        self.retry_after = retry_after
        remedy = REMEDIES.get(self.code)
        super().__init__(f"{action}: {self.code or status}: {self.detail}" + (f"; {remedy}" if remedy else ""))


class CallError(TDFError, pickle.PicklingError):
    """A function, its arguments or its result cannot be pickled, or are too large."""


class TaskError(TDFError):
    """A task failed without an exception of its function: it was lost, it timed out, or it was removed."""

    def __init__(self, id: int, state: str, error: str) -> None:
        self.id, self.state, self.error = id, state, error
        super().__init__(f"task {id} {state}: {error}")
