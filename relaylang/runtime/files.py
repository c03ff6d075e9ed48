"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file next to `path`. At the end of the block it becomes `path`; after a failure it goes.

    The block writes directly to a special file (`/dev/stdout`, a pipe). Raises `OSError` as writing does.
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
    temporary = _created(target, 0o666 if mode is None else stat.S_IMODE(mode))
    try:
        yield temporary
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _created(target: Path, mode: int) -> Path:
    """A new empty file beside `target`. The system applies the umask to its mode; nothing here reads or sets the umask.

    `tempfile` would give it the mode 600, and the umask cannot be read without setting it for the whole process.
    """
    for _ in range(1000):
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
        try:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        except FileExistsError:
            continue
        return temporary
    raise FileExistsError(errno.EEXIST, "no temporary name is free", str(target.parent))


def atomic_write(path: str | os.PathLike[str], content: bytes | bytearray | memoryview | str) -> None:
    """Write a file whole: text as UTF-8 with the line ends that it has. Raises `OSError`; the old file then stands."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
