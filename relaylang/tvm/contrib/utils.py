"""`tvm.contrib.utils`: temporary folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar


class TempDirectory:
    """A folder that is removed with the last reference to it, or by `remove`.

    With `keep_for_debug` it stays, by a number in the folder `_DEBUG_PARENT_DIR`. `set_keep_for_debug` sets the default.
    """

    _KEEP_FOR_DEBUG: ClassVar[bool] = False
    _DEBUG_PARENT_DIR: ClassVar[str | None] = None
    _NUM_TEMPDIR_CREATED: ClassVar[int] = 0

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        keep = TempDirectory._KEEP_FOR_DEBUG if keep_for_debug is None else keep_for_debug
        if custom_path:
            os.makedirs(custom_path, exist_ok=True)
        self.temp_dir = custom_path or (self._numbered() if keep else tempfile.mkdtemp(prefix="relay-"))
        self._end = None if keep else weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @classmethod
    def _numbered(cls) -> str:
        """A new folder of those that stay."""
        if TempDirectory._DEBUG_PARENT_DIR is None:
            TempDirectory._DEBUG_PARENT_DIR = tempfile.mkdtemp(prefix="relay-debug-")
        path = os.path.join(TempDirectory._DEBUG_PARENT_DIR, f"{TempDirectory._NUM_TEMPDIR_CREATED:05d}")
        TempDirectory._NUM_TEMPDIR_CREATED += 1
        os.mkdir(path)
        return path

    @classmethod
    @contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """The default of new folders within a `with` block: they stay, or do not with `set_to=False`."""
        before, TempDirectory._KEEP_FOR_DEBUG = TempDirectory._KEEP_FOR_DEBUG, set_to
        try:
            yield
        finally:
            TempDirectory._KEEP_FOR_DEBUG = before

    @property
    def path(self) -> Path:
        return Path(self.temp_dir)

    def relpath(self, name: str) -> str:
        """The path of a name in the folder."""
        return os.path.join(self.temp_dir, name)

    def __truediv__(self, other: str) -> Path:
        return self.path / other

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Remove the folder now."""
        if self._end is not None:
            self._end()

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new temporary folder, or one at a path, which is removed afterwards, too."""
    return TempDirectory(custom_path, keep_for_debug)


__all__ = ["TempDirectory", "tempdir"]
