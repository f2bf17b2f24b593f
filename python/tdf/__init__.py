"""TDF from Python: sweeps, workers and an Executor, over the HTTP API (docs/python.md)."""

from .client import Client
from .errors import APIError, CallError, TaskError, TDFError, Unreachable
from .sweep import Campaign

__all__ = ["APIError", "CallError", "Campaign", "Client", "TDFError", "TaskError", "Unreachable"]
