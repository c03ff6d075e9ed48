"""Aliases: `import relaylang.op.nn` gives the module `relaylang.tvm.op.nn`, the same object under both names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class Aliases:
    """A finder and loader of modules for `sys.meta_path`. `table`: alias -> module; submodules follow."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = table

    def target(self, name: str) -> str | None:
        """The module that a name stands for, if it is an alias or stands below one."""
        head = name if name in self.table else ".".join(name.split(".", 2)[:2])
        return self.table[head] + name[len(head) :] if head in self.table else None

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        # `importlib.abc.Loader` would cost every start a module
        return ModuleSpec(name, self) if name.startswith("relaylang.") and self.target(name) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found = self.target(module.__name__)
        assert found is not None
        try:
            sys.modules[module.__name__] = importlib.import_module(found)
        except ModuleNotFoundError as problem:
            if problem.name != found:
                raise
            raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__) from None
