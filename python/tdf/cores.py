"""What this process may use of its machine, as internal/worker/resources finds it in Go."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

GPU = re.compile(r"\d{1,9}|(GPU|MIG)-.*")


def cores(root: str = "/", allowed: Optional[List[int]] = None) -> int:
    """Returns the cores of the CPU affinity, at most as many as the quotas of the cgroups allow, rounded up."""
    most = len(affinity() if allowed is None else allowed)
    for group in groups(Path(root), "cpu"):
        # version 2, or version 1
        limits = (read(group / "cpu.max") or read(group / "cpu.cfs_quota_us") + " " + read(group / "cpu.cfs_period_us")).split()
        if len(limits) == 2 and all(limit.isdecimal() and int(limit) > 0 for limit in limits):  # "max" and -1 are no limit
            most = min(most, -(-int(limits[0]) // int(limits[1])))
    return most


def machine(root: str = "/", allowed: Optional[List[int]] = None) -> Dict[str, Any]:
    """Returns the cores, the memory and the GPUs, as a worker with resources="auto" tells them to the API."""
    top, allowed = Path(root), affinity() if allowed is None else allowed
    nodes = {core: int(path.parent.name[4:]) for path in top.glob("sys/devices/system/node/node[0-9]*/cpulist") for core in listed(read(path))}
    first = sorted(allowed, key=lambda core: nodes.get(core, 0))[: cores(root, allowed)]
    total = re.search(r"^MemTotal:\s+(\d+) kB", read(top / "proc/meminfo"), re.M)
    limits = [read(group / name).strip() for group in groups(top, "memory") for name in ("memory.max", "memory.limit_in_bytes")]
    memory = min([int(limit) for limit in limits if limit.isdecimal() and int(limit) > 0] + ([int(total[1]) << 10] if total else []), default=0)
    variable, gpus = "CUDA_VISIBLE_DEVICES", visible("CUDA_VISIBLE_DEVICES", len(list(top.glob("proc/driver/nvidia/gpus/*"))))
    if not gpus:
        found = [read(path).strip() for path in top.glob("sys/class/kfd/kfd/topology/nodes/*/gpu_id")]
        gpus = visible("ROCR_VISIBLE_DEVICES", sum(id not in ("", "0") for id in found))
        variable = "ROCR_VISIBLE_DEVICES" if gpus else variable
    numbered = [{"number": core, "node": nodes.get(core, 0)} for core in first]
    return {"cores": numbered, "memory": min(memory, 1 << 50) >> 20 << 20, "gpus": gpus, "variable": variable}


def affinity() -> List[int]:
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else list(range(os.cpu_count() or 1))


def visible(variable: str, count: int) -> List[str]:
    """Returns the names of GPUs: those in the variable, up to the first that is none, or else all."""
    if variable not in os.environ:
        return [str(number) for number in range(count)]
    names: List[str] = []
    for name in map(str.strip, os.environ[variable].split(",")):
        if not GPU.fullmatch(name) or name in names:
            break
        names.append(name)
    return names


def listed(text: str) -> Iterator[int]:
    """Yields the numbers of a list such as 0-3,8."""
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        yield from range(int(low), int(high or low) + 1)


def groups(root: Path, wanted: str) -> Iterator[Path]:
    """Yields the cgroups of this process with a controller, and those above them, down to the root, the only one that a container may see."""
    for line in read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in {"", wanted}.intersection(controllers.split(",")):
            group = Path(path)
            for above in [group, *group.parents]:
                yield root / "sys/fs/cgroup" / controller / str(above).lstrip("/")


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the kernel has no such file
        return ""
