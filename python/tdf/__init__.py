"""TDF from Python: sweeps, workers and an Executor, over the HTTP API (docs/python.md)."""

from .calls import progress
from .client import Client
from .errors import APIError, CallError, TaskError, TDFError, Unreachable
from .executor import Executor, Future
from .local import Local, up
from .loop import Fail, Task, Worker
from .sweep import Campaign

__all__ = ["APIError", "CallError", "Campaign", "Client", "Executor", "Fail", "Future", "Local", "TDFError", "Task", "TaskError"]
__all__ += ["Unreachable", "Worker", "progress", "up"]
