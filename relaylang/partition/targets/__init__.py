"""The accelerators: a file or a package each, with its pattern table, its checks and its `RECIPE`.

The table reads the names from the text of the files: `RECIPE = Recipe("cmsis-nn", ...)`. A file is imported when somebody
asks for its accelerator.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

from relaylang.partition.recipe import Recipe

_RECIPE = re.compile(r'^RECIPE = Recipe\(\s*"([^"]+)"', re.M)


@cache
def _files() -> dict[str, str]:
    """Each accelerator's name and its module."""
    modules: dict[str, str] = {}
    folders = [Path(path) for path in __path__]
    for file in sorted([f for path in folders for f in (*path.glob("[!_]*.py"), *path.glob("*/__init__.py"))]):
        own = _RECIPE.search(file.read_text(encoding="utf-8"))
        if own is not None:
            modules[own[1]] = file.parent.name if file.stem == "__init__" else file.stem
    return modules


def target_names() -> list[str]:
    """The names of the accelerators in this folder."""
    return sorted(_files())


def find_target(name: str) -> ModuleType | None:
    """The module of an accelerator; None for a name that has no file here."""
    return importlib.import_module(f"{__name__}.{_files()[name]}") if name in _files() else None


def recipe_of(name: str) -> Recipe:
    """An accelerator's recipe: its file's, or TVM's steps for a name that has no file here."""
    module = find_target(name)
    return Recipe(name) if module is None else module.RECIPE


__all__ = ["find_target", "recipe_of", "target_names"]
