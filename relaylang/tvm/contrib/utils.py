"""`tvm.contrib.utils`: temporary folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class TempDirectory:
    """A folder that is removed with the last reference to it, or by `remove`."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        if custom_path:
            os.makedirs(custom_path, exist_ok=True)
        self.temp_dir = custom_path or tempfile.mkdtemp(prefix="relay-")
        self._end = None if keep_for_debug else weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

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
