"""The number of cores that this process may use, as worker/resources counts them in Go."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Iterator


def cores(root: str = "/") -> int:
    """Returns the cores of the CPU affinity, at most as many as the quotas of the cgroups allow, rounded up."""
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    for group in groups(Path(root)):
        # version 2, or version 1
        limits = (read(group / "cpu.max") or read(group / "cpu.cfs_quota_us") + " " + read(group / "cpu.cfs_period_us")).split()
        if len(limits) == 2 and all(limit.isdecimal() and int(limit) > 0 for limit in limits):  # "max" and -1 are no limit
            allowed = min(allowed, -(-int(limits[0]) // int(limits[1])))
    return allowed


def groups(root: Path) -> Iterator[Path]:
    """Yields the cgroups of this process, and those above them, down to the root, the only one that a container may see."""
    for line in read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in {"", "cpu"}.intersection(controllers.split(",")):
            group = Path(path)
            for above in [group, *group.parents]:
                yield root / "sys/fs/cgroup" / controller / str(above).lstrip("/")


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the kernel has no such file
        return ""
