"""What the C compiler made, kept between runs in the user's cache directory under a digest of what it was made from.

An entry holds a digest of itself in front, so that a damaged one is no entry. A directory that cannot be read or written
means that nothing is kept, never an error.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from relaylang.runtime.files import atomic_write
from relaylang.syntax.tables import cache_directory

#: When more than this is kept (bytes), what was not used for longest goes, down to half of it.
LIMIT = 256 << 20
#: One in so many new entries looks whether there is too much.
_SWEEP = 64


def directory() -> Path:
    """Where compiled code is kept. Raises `OSError` where the user has no home directory."""
    return cache_directory() / "objects"


def cached(key: str) -> bytes | None:
    """What is kept under a key, None where there is nothing whole."""
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
        atomic_write(folder / key, hashlib.sha256(content).digest() + content)
        if int(key[:4], 16) % _SWEEP == 0:
            sweep(folder)


def sweep(folder: Path, limit: int = LIMIT) -> None:
    """Remove what was not used for longest where there is more than `limit`. Raises `OSError`."""
    entries = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            found = entry.stat()
            entries.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
        if total <= limit // 2:
            return
