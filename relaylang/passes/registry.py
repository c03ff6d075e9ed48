"""The table of passes, read from their files: `PASSES["FoldConstant"]` imports the one file that defines it.

A file `fold_constant.py` of a wing with a `class FoldConstant(Pass)` is a pass, and so is one with a
`class BatchingOps(Sequential)`. The table reads the names from the text of the files. It imports none of the files before
somebody asks for its pass.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from relaylang.services import folders

if TYPE_CHECKING:
    from relaylang.passes.manager import Pass

_TOP = Path(__file__).parents[1]
_CLASS = re.compile(r"^class ([A-Z]\w*)\((?:Pass|Sequential)\):$", re.M)


class PassTable(Mapping[str, "type[Pass]"]):
    """The passes of some packages and of the folders in them, by name. The folder of their top package is `top`."""

    def __init__(self, packages: tuple[str, ...], top: Path = _TOP) -> None:
        self.packages = packages
        self.top = top

    @cached_property
    def modules(self) -> dict[str, str]:
        """Each pass's name and the module that defines it, in the order of names."""
        modules: dict[str, str] = {}
        for package in self.packages:
            folder = self.top.joinpath(*package.split(".")[1:])
            for file in folder.rglob("[!_]*.py"):
                module = ".".join((package, *file.relative_to(folder).with_suffix("").parts))
                own = file.stem.replace("_", "")
                modules.update({n: module for n in _CLASS.findall(file.read_text(encoding="utf-8")) if n.lower() == own})
        return dict(sorted(modules.items()))

    def __getitem__(self, name: str) -> type[Pass]:
        pass_class: type[Pass] = getattr(importlib.import_module(self.modules[name]), name)
        return pass_class

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __contains__(self, name: object) -> bool:
        return name in self.modules


#: Every pass of the language.
PASSES = PassTable(folders("passes"))

__all__ = ["PASSES", "PassTable"]
