#!/usr/bin/env python3
"""A worker over HTTP with the package tdf (docs/python.md).

    PYTHONPATH=../../python TDF_TOKEN=... ./worker.py [NAME]

It runs the program "square" of tasks without a source. It may be killed at any point: its tasks then run again.
"""
import os
import sys

import tdf

worker = tdf.Worker(*sys.argv[1:2], slots=4, lease=float(os.environ.get("TDF_LEASE", "60")))


@worker.program("square")
def square(task):
    try:
        number = int(task.input)
    except ValueError as error:  # another round would fail, too
        raise tdf.Fail(str(error), permanent=True)
    return {"square": number * number}


worker.run()
