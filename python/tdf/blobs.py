"""Values of any size: blobs in directories, by their SHA-256 (docs/blobs.md). Processes map them instead of copying them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import itertools
import mmap
import os
import pickle
import re
import threading
import time
import uuid
import weakref
from collections import Counter
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from .errors import APIError, TDFError

if TYPE_CHECKING:
    from .client import Client

PART = 8 << 20  # bytes of a blob that one call carries
CHUNK = 1 << 20
SMALLEST_MAP = 1 << 20  # smaller blobs are read, because a process has a limited number of maps
MOST_CACHE = 20 << 30
SHARE = 4  # the cache takes at most a quarter of what the disk has for it
RESERVE = 20  # blobs leave a twentieth of the disk free
PART_LIFE = 86400.0  # seconds after which the beginning of a blob is removed if nobody continues it
ATTEMPTS = 3  # to use a file that other processes may remove
MEMORY = 600.0  # seconds for which the name of an array is remembered; the API keeps its blob for an hour
MOST_KNOWN = 10_000  # files that were read
LOOK_AGAIN = 60.0  # seconds after which a client asks again whether the API keeps blobs

NAME = re.compile("([0-9a-f]{64}):([0-9]+)")

# Stores a buffer of bytes, and returns the name of the blob, or None if the API keeps no blobs.
Put = Callable[[memoryview], Optional[str]]


class Lost(TDFError):
    """A blob is not stored any more."""


def split(name: str) -> Tuple[str, int]:
    """Returns the SHA-256 and the size of a blob, whose name is SHA256:BYTES."""
    found = NAME.fullmatch(name)
    if found is None:
        raise TDFError(f"the name of a blob is {name!r:.100}; want SHA256:BYTES")
    return found[1], int(found[2])


def name_of(buffer: Any) -> str:
    return f"{hashlib.sha256(buffer).hexdigest()}:{len(buffer)}"


def mapped(path: str, name: str) -> memoryview:
    """Returns the content of a file, read-only, as long as the file has the size of its name."""
    size = split(name)[1]
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size != size:
            raise FileNotFoundError(errno.ENOENT, f"the file does not have {size} bytes", path)
        if size >= SMALLEST_MAP:
            try:
                return pages(descriptor, size)
            except OSError:  # too many maps
                pass
        return memoryview(file.read())


libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def pages(descriptor: int, size: int) -> memoryview:
    """Maps a file. A map of the module mmap would keep its file open, and a process may have only some 1,000 files."""
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    array = (ctypes.c_char * size).from_address(address)
    weakref.finalize(array, libc.munmap, address, size).atexit = False  # other exit handlers may read it
    return pickle.PickleBuffer(array).raw().toreadonly()


class Directory:
    """Blobs as files, which processes may share: that of an API, or a cache. Its layout is that of docs/blobs.md."""

    young = 60.0  # seconds for which a new file is taken for intact

    def __init__(self, path: str) -> None:
        self.path, self.parts = path, os.path.join(path, "parts")
        self._intact: Set[Tuple[str, int, int]] = set()

    def place(self, name: str) -> str:
        sha256 = split(name)[0]
        return os.path.join(self.path, sha256[:2], sha256)

    def has(self, name: str) -> bool:
        """Reports whether a blob is there. Each process reads a file once, because users and faults change files; but not one
        that has just been stored, as in internal/blob/intact.go.
        """
        try:
            with open(self.place(name), "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
                stat = os.fstat(file.fileno())
                state = name, stat.st_ino, stat.st_mtime_ns
                if stat.st_size != split(name)[1]:
                    return False
                if state in self._intact or abs(time.time() - stat.st_mtime) < self.young:
                    return True
                if sha256_of(file) != split(name)[0]:
                    return False
        except OSError:  # it is no file, or another process has removed it
            return False
        if len(self._intact) >= MOST_KNOWN:
            self._intact.clear()
        self._intact.add(state)
        return True

    def write(self, buffer: memoryview) -> str:
        """Stores bytes, and returns their name. It hashes what it writes: other threads may change the buffer meanwhile."""
        os.makedirs(self.parts, exist_ok=True)
        self.check_space(len(buffer))
        temporary = os.path.join(self.parts, f"{uuid.uuid4().hex}.new")
        sha256 = hashlib.sha256()
        try:
            with open(temporary, "xb", buffering=0) as file:
                for at in range(0, len(buffer), CHUNK):
                    part = bytes(buffer[at : at + CHUNK])
                    sha256.update(part)
                    while part:
                        part = part[file.write(part) :]
                name = f"{sha256.hexdigest()}:{len(buffer)}"
                if not self.has(name):
                    os.fsync(file.fileno())
                    self.keep(temporary, name)
        except OSError as error:
            raise TDFError(f"store {len(buffer):,} bytes in {self.path}: {error.strerror}") from error
        finally:
            remove(temporary)
        return name

    def keep(self, temporary: str, name: str) -> None:
        os.makedirs(os.path.dirname(self.place(name)), exist_ok=True)
        os.replace(temporary, self.place(name))

    def check_space(self, size: int) -> None:
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize - size < disk.f_blocks * disk.f_frsize // RESERVE:
            raise TDFError(f"store {size:,} bytes: the disk of {self.path} has too little space: blobs leave a {RESERVE}th of it free")


class Cache(Directory):
    """The blobs of other machines. The files that were not used for the longest time go first."""

    young = 0.0

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.held: "Counter[str]" = Counter()  # the files that this process needs
        self._lock = threading.Lock()

    def has(self, name: str) -> bool:
        """Reports whether a blob is there, and notes that it is used."""
        has, path = super().has(name), self.place(name)
        with suppress(OSError):  # another process has removed it
            os.utime(path, ns=(time.time_ns(), os.lstat(path).st_mtime_ns), follow_symlinks=False)
        return has

    def make_room(self, size: int) -> None:
        """Removes files until further bytes fit. Processes that have mapped a file keep it."""
        with self._lock:
            os.makedirs(self.parts, exist_ok=True)
            found: List[Tuple[int, int, str]] = []
            for directory, _, files in os.walk(self.path):
                for file in files:
                    try:
                        stat = os.stat(os.path.join(directory, file))
                    except OSError:
                        continue
                    if directory != self.parts:
                        found.append((stat.st_atime_ns, stat.st_size, os.path.join(directory, file)))
                    elif time.time() - stat.st_mtime > PART_LIFE:
                        remove(os.path.join(directory, file))
            disk = os.statvfs(self.path)
            total = sum(size for _, size, _ in found)
            most = min(MOST_CACHE, (disk.f_bavail * disk.f_frsize + total) // SHARE)
            for _, bytes_of, path in sorted(found):
                if total + size <= most:
                    break
                if not self.held[os.path.basename(path)]:
                    remove(path)
                    total -= bytes_of
        self.check_space(size)


def remove(path: str) -> None:
    with suppress(OSError):  # another process may have done it
        os.remove(path)


def sha256_of(file: IO[bytes]) -> str:
    sha256 = hashlib.sha256()
    file.seek(0)
    for part in iter(lambda: file.read(CHUNK), b""):
        sha256.update(part)
    return sha256.hexdigest()


def cache_path() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tdf", "blobs")


class Blobs:
    """The blobs of an API. Threads may share it."""

    def __init__(self, client: "Client") -> None:
        self.client = client
        self.cache = Cache(cache_path())
        self.shared: Optional[Directory] = None  # that of the API, if this machine has it
        self.own: Directory = self.cache  # in which the processes of this machine store blobs
        self._kept: Optional[bool] = None
        self._asked = 0.0
        self._lock = threading.Lock()

    def kept(self) -> bool:
        """Reports whether the API keeps blobs, and finds its directory if it is on this machine."""
        with self._lock:
            if self._kept is None or not self._kept and time.monotonic() - self._asked > LOOK_AGAIN:
                self._kept, self._asked = self._find(), time.monotonic()
            return self._kept

    def _find(self) -> bool:
        try:
            place = self.client.call("GET", "/blobs", action="find the directory of the blobs")
            with open(os.path.join(place["path"], "id")) as file:
                if file.read() != place["id"]:
                    return True
        except APIError as error:
            if error.code not in ("not_found", "forbidden"):
                raise
            return error.code == "forbidden"  # who only reads may not ask for the directory
        except (OSError, UnicodeDecodeError):
            return True
        self.shared = Directory(place["path"])
        if os.stat(self.shared.parts).st_uid == os.geteuid():  # the API could not remove the files of another user
            self.own = self.shared
        return True

    # Store

    def put(self, buffer: memoryview) -> Optional[str]:
        """Stores a buffer, and returns its name, or None if the API keeps no blobs."""
        if not self.kept():
            return None
        name = name_of(buffer)
        self.send(name, buffer)
        return name

    def send(self, name: str, buffer: Optional[memoryview] = None) -> None:
        """Stores a blob, and continues where an earlier call has stopped. Without a buffer, it is a file that a process of this
        machine has made.
        """
        size, made = split(name)[1], buffer is None
        have = self._add(name, 0, b"")
        if have < size and buffer is not None and self.shared is not None and self.own is self.shared:
            name, before = self.own.write(buffer), name
            if name != before:
                raise TDFError("store an array: another thread has changed it meanwhile")
            have = self._add(name, 0, b"")
        if have < size and made:
            buffer = mapped(self.own.place(name), name)
        while buffer is not None and have < size:
            have = self._add(name, have, bytes(buffer[have : have + PART]))
        if made and self.own is self.cache:
            remove(self.own.place(name))

    def _add(self, name: str, start: int, part: bytes) -> int:
        sha256, size = split(name)
        answer = self.client.call(
            "PUT", f"/blobs/{sha256}", part or None, query={"bytes": size, "from": start}, kind="application/octet-stream",
            action=f"store a blob of {size:,} bytes"
        )
        return int(answer["have"])

    def remember(self) -> Put:
        """Returns a `put` that hashes an array once as long as the caller holds it, and does not change it."""
        known: Dict[Tuple[int, int], Tuple["weakref.ref[Any]", float, Optional[str]]] = {}

        def put(buffer: memoryview) -> Optional[str]:
            key, owner = identity(buffer)
            if key in known and known[key][0]() is owner and time.monotonic() - known[key][1] < MEMORY:
                return known[key][2]
            name = self.put(buffer)
            try:
                known[key] = weakref.ref(owner, lambda _: known.pop(key, None)), time.monotonic(), name
            except TypeError:  # nothing says when it ends
                pass
            return name

        return put

    # Read

    def get(self, name: str) -> memoryview:
        """Returns the content of a blob, read-only."""
        for _ in range(ATTEMPTS - 1):
            try:
                return mapped(self.path(name), name)
            except FileNotFoundError:
                continue
        return mapped(self.path(name), name)

    def path(self, name: str) -> str:
        """Returns the file with a blob, which it downloads if this machine does not have it."""
        self.kept()
        for directory in (self.shared, self.cache):
            if directory is not None and directory.has(name):
                return directory.place(name)
        self._download(name)
        return self.cache.place(name)

    @contextmanager
    def paths(self, names: Iterable[str]) -> Iterator[Dict[str, str]]:
        """Returns the files with blobs, which the cache keeps meanwhile."""
        held = Counter(split(name)[0] for name in names)
        with self._lock:
            self.cache.held += held
        try:
            yield {name: self.path(name) for name in names}
        finally:
            with self._lock:
                self.cache.held -= held

    def _download(self, name: str) -> None:
        sha256, size = split(name)
        part = os.path.join(self.cache.parts, sha256)
        try:
            self.cache.make_room(size)
            for attempt in itertools.count(1):
                with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b", buffering=0) as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    if self.cache.has(name):  # another process has downloaded it, before or after this one has made the file
                        if is_at(file.fileno(), part):
                            os.remove(part)
                        return
                    if not is_at(file.fileno(), part):
                        continue
                    self._read(sha256, size, file)
                    if sha256_of(file) == sha256:
                        return self.cache.keep(part, name)
                    file.truncate(0)
                if attempt == ATTEMPTS:
                    raise TDFError(f"read blob {sha256}: the bytes that came have another SHA-256; the disk of {self.cache.path} or of the API may be damaged")
        except OSError as error:
            if isinstance(error, TDFError):
                raise
            remedy = "set XDG_CACHE_HOME to a directory on a disk with space"
            raise TDFError(f"read blob {sha256}: {error.strerror} in {self.cache.path}; {remedy}") from error

    def _read(self, sha256: str, size: int, file: IO[bytes]) -> None:
        """Continues a file."""
        have = file.seek(0, os.SEEK_END)
        if have > size:
            file.truncate(0)
            have = file.seek(0)
        while have < size:
            query = {"from": have, "most": PART}
            try:
                data = self.client._fetch("GET", f"/blobs/{sha256}", None, query, {}, f"read blob {sha256}", True, lambda answer: answer.read())
            except APIError as error:
                if error.code == "not_found":
                    raise Lost(f"blob {sha256} is not stored any more") from error
                raise
            if not data:
                raise TDFError(f"read blob {sha256}: it has {have:,} bytes instead of {size:,}")
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            have += len(data)


def is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def identity(buffer: memoryview) -> Tuple[Tuple[int, int], Any]:
    """Returns where a buffer is, and the object that owns this memory."""
    owner: Any = buffer.obj
    place = (getattr(owner, "__array_interface__", None) or {}).get("data", (id(owner), True))[0]
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    return (place, len(buffer)), owner
