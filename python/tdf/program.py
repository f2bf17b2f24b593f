"""Packs the directory of a program (docs/programs.md)."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from typing import Optional

from .errors import TDFError

LEFT_OUT = (".git", ".venv", "__pycache__")

# The API accepts 64 MiB.
MOST_BYTES = 64 << 20


def pack(directory: str) -> bytes:
    """Returns a tar of the directory, which is the same for the same files."""
    if not os.path.isfile(os.path.join(directory, "run.sh")):
        raise TDFError(f"store program {directory}: it has no run.sh; put a script with this name at its top")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(os.listdir(directory)):
            tar.add(os.path.join(directory, name), name, filter=entry)
    zipped = gzip.compress(packed.getbuffer(), mtime=0)
    if len(zipped) > MOST_BYTES:
        raise TDFError(f"store program {directory}: it has more than 64 MiB; leave out the files that run.sh does not need")
    return zipped


def entry(of: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
    if os.path.basename(of.name) in LEFT_OUT:
        return None
    of.uid = of.gid = of.mtime = 0
    of.uname = of.gname = ""
    return of
