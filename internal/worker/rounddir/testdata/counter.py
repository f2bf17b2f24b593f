#!/usr/bin/env python3
import json
import os
import pathlib

here = pathlib.Path(os.environ["TDF_DIR"])


def put(name, text):
    """Replace the file in one step, so that no reader sees half of it."""
    new = here / (name + ".new")
    with open(new, "w") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(new, here / name)


def update(line):
    with open(here / "updates", "a") as f:
        f.write(line + "\n")


n = 0
if (here / "checkpoint").exists():
    n = json.loads((here / "checkpoint").read_text())["n"]
if (here / "last_error").exists():
    update("before: " + (here / "last_error").read_text().splitlines()[0])
while n < 5:
    n += 1  # the work
    put("checkpoint", json.dumps({"n": n}))
    put("progress", f"{n / 5} {n} of 5\n")
    update(f"did {n}")
put("progress", "1 done\n")
put("result.json", json.dumps({"count": n}))
