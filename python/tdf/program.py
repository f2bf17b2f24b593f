"""Packs the directory of a program (docs/programs.md). The API stores the same archive for it as `tdf push`."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
from typing import IO, Callable, Dict, List, Tuple, cast

from .errors import TDFError

IGNORE = ".tdfignore"
LEFT_OUT = (".git", ".venv", "__pycache__")
RESERVED = ".tdf-"  # names with this prefix are those of workers' own files

# The API accepts 64 MiB, and refuses an archive that could be an attack because it is far smaller than its files.
MOST_BYTES = 64 << 20
MOST_RATIO = 100

# The parts of a pattern, as path.Match of Go reads it.
CHARACTER = r"(?:\\.|[^\\\]-])"
PART = re.compile(rf"(?P<any>\*)|(?P<one>\?)|\[(?:(?P<but>\^)|(?!\^))(?P<of>(?:{CHARACTER}(?:-{CHARACTER})?)+)\]|\\(?P<escaped>.)|(?P<plain>[^*?\[\\])", re.DOTALL)
RANGE = re.compile(rf"({CHARACTER})(?:-({CHARACTER}))?", re.DOTALL)

Pattern = Callable[[str, bool], bool]


def pack(directory: str) -> bytes:
    """Returns a tar of the directory, which is the same for the same files."""
    try:
        zipped, size = packed(directory)
        return zipped if size <= MOST_RATIO * len(zipped) else packed(directory, compresslevel=0)[0]
    except (OSError, ValueError, tarfile.TarError) as error:
        raise TDFError(f"store program {directory}: {error}") from error


def packed(directory: str, compresslevel: int = 6) -> Tuple[bytes, int]:
    """Returns the archive, and the size of its tar."""
    if not os.path.isfile(os.path.join(directory, "run.sh")):
        raise ValueError("it has no run.sh; put a script with this name at its top")
    zipped = io.BytesIO()
    with gzip.GzipFile(fileobj=zipped, mode="wb", mtime=0, compresslevel=compresslevel) as to:
        with tarfile.open(fileobj=cast(IO[bytes], to), mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, path in sorted(entries(directory).items(), key=lambda entry: os.fsencode(entry[0])):
                add(tar, name, path)
                if zipped.tell() > MOST_BYTES:
                    raise ValueError(f"it has more than 64 MiB; list the files that run.sh does not need in a {IGNORE}")
        size = to.tell()
    return zipped.getvalue(), size


def entries(directory: str) -> Dict[str, str]:
    """Returns the paths of the files, directories and links of a program by their names in the archive."""
    ignored, found = patterns(directory), {}
    below = [""]
    while below:
        inside = below.pop()
        for entry in os.scandir(os.path.join(directory, inside)):
            name, is_directory = inside + entry.name, entry.is_dir(follow_symlinks=False)
            if entry.name in LEFT_OUT or entry.name.startswith(RESERVED) or name == IGNORE or any(match(name, is_directory) for match in ignored):
                continue
            found[name] = entry.path
            if is_directory:
                below.append(name + "/")
    if "run.sh" in found:
        found["run.sh"] = script(directory, found["run.sh"])
    return found


def script(directory: str, path: str) -> str:
    """Returns the path of run.sh. A link inside the directory stands for its file."""
    real, root = os.path.realpath(path), os.path.realpath(directory)
    if os.path.commonpath([real, root]) != root:
        raise ValueError("run.sh is a symbolic link that leads out of the directory")
    return real


def add(tar: tarfile.TarFile, name: str, path: str) -> None:
    found, entry = os.lstat(path), tarfile.TarInfo(name)
    if stat.S_ISDIR(found.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISLNK(found.st_mode):
        entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        entry.mode = 0o755 if found.st_mode & 0o111 or name == "run.sh" else 0o644
        with open(path, "rb") as file:
            entry.size = os.fstat(file.fileno()).st_size
            tar.addfile(entry, file)
        return
    else:
        raise ValueError(f"{name} is a socket, a pipe or a device, which cannot be packed; remove it, or list it in a {IGNORE}")
    tar.addfile(entry)


def patterns(directory: str) -> List[Pattern]:
    """Reads .tdfignore. Its rules are those of `tdf push` (docs/tdf.md, "Programs")."""
    try:
        with open(os.path.join(directory, IGNORE), encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = [line.removeprefix("\ufeff").strip() for line in file]
    except FileNotFoundError:
        return []
    return [pattern(number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]


def pattern(number: int, line: str) -> Pattern:
    glob, only_directories = (line[:-1], True) if line.endswith("/") else (line, False)
    if glob.startswith("./"):
        glob = glob[1:]
    whole = "/" in glob
    expression = translated(glob[1:] if glob.startswith("/") else glob)
    if line.startswith("!") or "**" in line or not expression:
        raise ValueError(f"{IGNORE}, line {number}: {line!r} is not a valid pattern; *, ? and [a-z] are possible, ! and ** are not")
    matches = re.compile(expression, re.DOTALL).fullmatch
    return lambda name, is_directory: bool(matches(name if whole else name.rpartition("/")[2])) and (is_directory or not only_directories)


def translated(glob: str) -> str:
    """Returns a pattern as a regular expression, or "" if it is invalid."""
    parts, at = [], 0
    while at < len(glob):
        part = PART.match(glob, at)
        if part is None:
            return ""
        at = part.end()
        if part["any"]:
            parts.append("[^/]*")
        elif part["one"]:
            parts.append("[^/]")
        elif part["of"]:
            parts.append(one_of(part["of"], bool(part["but"])))
        else:
            parts.append(re.escape(part["escaped"] or part["plain"]))
    return "".join(parts)


def one_of(ranges: str, but: bool) -> str:
    bounds: List[Tuple[str, str]] = [(low[-1], (high or low)[-1]) for low, high in RANGE.findall(ranges)]
    valid = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in bounds if low <= high)
    if not valid:
        return "." if but else "(?!)"
    return f"[{'^' if but else ''}{valid}]"
