"""The compiler's results, kept between runs in the user's cache directory. The key is a digest of the compiler's input.

Each entry begins with a digest of its content; a damaged entry is ignored. If the directory cannot be read or written,
nothing is kept, and no error is raised.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from relaylang.runtime.files import atomic_write
from relaylang.syntax.tables import cache_directory

#: The most bytes to keep. Above that, the least recently used entries are removed, down to half of it.
LIMIT = 256 << 20
#: The limit is checked after one in this many new entries.
_SWEEP = 64


def directory() -> Path:
    """Where compiled code is kept. Raises `OSError` where the user has no home directory."""
    return cache_directory() / "objects"


def cached(key: str) -> bytes | None:
    """The content of a key's entry, or None if there is no undamaged entry."""
    try:
        path = directory() / key
        content = path.read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
    except OSError:
        return None
    return content[32:]


def store(key: str, content: bytes) -> None:
    """Keep something under a key, if that is possible."""
    with contextlib.suppress(OSError):
        folder = directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(folder / key, hashlib.sha256(content).digest() + content, durable=False)
        if int(key[:4], 16) % _SWEEP == 0:
            sweep(folder)


def sweep(folder: Path, limit: int = LIMIT) -> None:
    """Remove the least recently used entries of a folder that holds more than `limit` bytes. Raises `OSError`."""
    entries = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            stat = entry.stat()
            entries.append((stat.st_mtime, stat.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
        if total <= limit // 2:
            return
