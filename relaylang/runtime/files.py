"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path` to write to: it becomes `path` at the end of the block, and goes where that fails.

    What is no regular file (`/dev/stdout`, a pipe) is written directly. Raises `OSError` as writing does.
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
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def atomic_write(path: str | os.PathLike[str], content: bytes | bytearray | memoryview | str) -> None:
    """Write a file whole: text as UTF-8 with the line ends that it has. Raises `OSError`; the old file then stands."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
