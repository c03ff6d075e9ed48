"""Packages that add something, for tests: made in a folder as an installation leaves them, and forgotten afterwards."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from relaylang.backends.registry import BACKENDS
from relaylang.ops import OPS
from relaylang.ops.extensions import EXTENSIONS
from relaylang.partition import PATTERN_TABLES
from relaylang.partition.support import OP_SUPPORT
from relaylang.runtime.external import CODEGENS


def install(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]], code: str = "") -> None:
    """A package of one module in a folder: its code, and its metadata with entry points (group -> name -> value)."""
    module = name.replace("-", "_")
    if code:
        (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "".join(
        f"[relaylang.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items()) + "\n"
        for group, rows in groups.items()
    )
    (info / "entry_points.txt").write_text(points)


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """A context whose registrations, imports and paths are undone at its end."""
    tables: list[dict] = [CODEGENS, OPS, EXTENSIONS, BACKENDS, PATTERN_TABLES, OP_SUPPORT]
    kept = [dict(table) for table in tables]
    support = {target: dict(rows) for target, rows in OP_SUPPORT.items()}
    path = list(sys.path)
    try:
        yield
    finally:
        added = tuple([p for p in sys.path if p and p not in path])
        for name, module in list(sys.modules.items()):
            if added and str(getattr(module, "__file__", None) or "").startswith(added):
                del sys.modules[name]
        sys.path[:] = path
        for table, old in zip(tables, kept):
            table.clear()
            table.update(old)
        for target, rows in support.items():
            OP_SUPPORT[target] = rows
