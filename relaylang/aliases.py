"""Modules without a file: second names such as `relaylang.op.nn`, and functions of operators such as `relaylang.tvm.op.nn`.

One finder stands on `sys.meta_path`. Each package whose modules it makes has a loader; `relaylang.tvm.install` adds that of `tvm`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Protocol


class Modules(Protocol):
    """A loader of modules without a file; see `importlib.abc.Loader`, which would cost every start a module."""

    def find(self, name: str) -> ModuleSpec | None:
        """The specification of a module; None for one that the loader does not make."""


class Finder:
    """The finder of modules without a file. `loaders`: the package above -> the loader."""

    def __init__(self) -> None:
        self.loaders: dict[str, Modules] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        loader = self.loaders.get(name.partition(".")[0])
        return loader.find(name) if loader is not None else None


class Aliases:
    """The loader of second names and of functions of operators.

    `table`: alias -> module, the same object under both names; submodules follow. `operators`: module -> how the paths of its
    operators begin. `namespace` is the module whose `lazy` makes their functions.
    """

    def __init__(self, table: Mapping[str, str], operators: Mapping[str, str], namespace: str) -> None:
        self.namespace = namespace
        self.table = table
        self.operators = operators

    def target(self, name: str) -> str | None:
        """The module that a name stands for, if it is an alias or stands below one."""
        head = name if name in self.table else ".".join(name.split(".", 2)[:2])
        return self.table[head] + name[len(head) :] if head in self.table else None

    def find(self, name: str) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in self.operators or self.target(name) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in self.operators:
            prefix = self.operators[module.__name__]
            module.__doc__ = f"Functions that make calls of the operators `{prefix}*`."
            lazy = importlib.import_module(self.namespace).lazy
            module.__getattr__, module.__dir__ = lazy(module.__name__, prefix)  # type: ignore[method-assign]
            return
        target = self.target(module.__name__)
        assert target is not None
        try:
            sys.modules[module.__name__] = importlib.import_module(target)
        except ModuleNotFoundError as problem:
            if problem.name != target:
                raise
            raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__) from None


FINDER = Finder()
