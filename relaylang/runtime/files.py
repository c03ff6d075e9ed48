"""Files written whole or not at all, alone or several together, and flushed to the disk.

A file is written under a temporary name beside its own, flushed, and renamed; then its folder is flushed. A process that
is killed meanwhile leaves the temporary file. The next process that writes into the folder removes it: a lock on the file
says whether somebody still writes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    flock = None  # type: ignore[assignment]

#: The names of temporary files.
_TEMPORARY = re.compile(r"\..{1,100}\.[0-9a-f]{12}\.part", re.S)
#: Seconds for which a process may be about to lock its file. Without locks, seconds after which nobody writes.
_NEW, _OLD = 60.0, 7 * 86400.0
#: The folders that this process has looked through.
_looked_through: set[str] = set()


@dataclass(frozen=True)
class _Written:
    """A temporary file that is complete, and what it becomes."""

    temporary: Path
    target: Path
    durable: bool

    def put(self) -> None:
        os.replace(self.temporary, self.target)


#: The files that wait for the end of `together`; None outside of it.
_waiting: ContextVar[list[_Written] | None] = ContextVar("waiting", default=None)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Put the files that the block writes in their places at its end. After a failure, put none there.

    Raises `OSError` as writing does.
    """
    if _waiting.get() is not None:
        yield
        return
    files: list[_Written] = []
    token = _waiting.set(files)
    try:
        yield
        _put(files)
    except BaseException:
        for file in files:
            file.temporary.unlink(missing_ok=True)
        raise
    finally:
        _waiting.reset(token)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], durable: bool = True) -> Iterator[Path]:
    """A temporary file next to `path`. At the end of the block it becomes `path`; after a failure it goes.

    The block writes directly to a special file (`/dev/stdout`, a pipe). With `durable` False, nothing is flushed:
    for caches, which check what they read. Raises `OSError` as writing does.
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except OSError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        yield target
        return
    target = Path(os.path.realpath(target))
    _look_through(target.parent)
    temporary, handle = _created(target, 0o666 if mode is None else stat.S_IMODE(mode))
    try:
        try:
            yield temporary
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        written, waiting = _Written(temporary, target, durable), _waiting.get()
        if waiting is None:
            _put([written])
        else:
            waiting.append(written)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _put(files: list[_Written]) -> None:
    """Rename complete files, and flush their folders. After a failure, those that were renamed first go or are as before."""
    kept: list[tuple[Path, Path | None]] = []
    try:
        for file in files:
            kept.append((file.target, _second_name(file.target) if len(files) > 1 else None))
            file.put()
    except BaseException:
        for target, old in reversed(kept[:-1]):
            if old is not None:
                os.replace(old, target)
            else:
                target.unlink(missing_ok=True)
        raise
    finally:
        for _, old in kept:
            if old is not None:
                old.unlink(missing_ok=True)
    for folder in dict.fromkeys(file.target.parent for file in files if file.durable):
        _flush(folder)


def _second_name(path: Path) -> Path | None:
    """Another name for a file. None where it is missing, or the file system has no such names."""
    name = _temporary_name(path)
    try:
        os.link(path, name)
    except (OSError, NotImplementedError):
        return None
    return name


def _flush(folder: Path) -> None:
    """Flush a folder's names to the disk, where the system does that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.part")


def _created(target: Path, mode: int) -> tuple[Path, int]:
    """A new empty file beside `target`, open and locked. The system applies the umask to its mode; nothing here reads or
    sets the umask.

    `tempfile` would give it the mode 600, and the umask cannot be read without setting it for the whole process.
    """
    for _ in range(1000):
        temporary = _temporary_name(target)
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            continue
        if flock is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                flock(handle, LOCK_EX | LOCK_NB)
        return temporary, handle
    raise FileExistsError(errno.EEXIST, "no temporary name is free", str(target.parent))


def _look_through(folder: Path) -> None:
    """Remove temporary files that nobody writes any more from a folder, once in this process."""
    name = str(folder)
    if name in _looked_through:
        return
    _looked_through.add(name)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_orphan(entry)


def _remove_orphan(entry: os.DirEntry[str]) -> None:
    """Remove a temporary file unless somebody may still write it. Raises `OSError`."""
    status = entry.stat(follow_symlinks=False)
    age = time.time() - max(status.st_mtime, status.st_ctime)
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not stat.S_ISREG(status.st_mode) or not own or age < _NEW:
        return
    if flock is None:
        if age > _OLD:
            os.unlink(entry.path)
        return
    handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        flock(handle, LOCK_EX | LOCK_NB)  # fails while its process lives
        os.unlink(entry.path)
    finally:
        os.close(handle)


def atomic_write(path: str | os.PathLike[str], content: bytes | bytearray | memoryview | str, durable: bool = True) -> None:
    """Write a file whole: text as UTF-8 with the line ends that it has. `durable` is as for `atomic_path`.

    Raises `OSError`; the old file then stands.
    """
    with atomic_path(path, durable) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


__all__ = ["atomic_path", "atomic_write", "together"]
