"""Modules under TVM's names: `import tvm` and everything below it, found in the table of `names`.

A face holds nothing itself. It looks a name up in its homes at the first use. Where they do not have it, it says what to
use instead.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from relaylang.aliases import FINDER
from relaylang.tvm.names import SPELLINGS, exists, homes, present
from relaylang.tvm.notes import absent, missing

_NOTHING = object()


def _lookup(home: ModuleType, name: str) -> Any:
    """A name of a module of ours. The module's own imports, and packages below it, are no names of it."""
    own = vars(home)
    shown = own.get("__all__")
    if name in own and not isinstance(own[name], ModuleType):
        value = own[name]
        if shown is None or name in shown or name.startswith("_") or getattr(value, "__module__", None) == home.__name__:
            return value
    if name in own or "__getattr__" not in own:
        return _NOTHING
    value = getattr(home, name, _NOTHING)
    return _NOTHING if isinstance(value, ModuleType) else value


class Face(ModuleType):
    """A module of TVM's name whose names are those of modules of ours."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"`{name}`, as relaylang has it.")
        self.__path__: list[str] = []
        if name == "tvm":  # scripts look for files beside the package
            self.__file__ = __file__

    def _homes(self) -> Iterator[tuple[ModuleType, frozenset[str]]]:
        """Each home, and which of its names are here; all where there are none."""
        for row in homes(self.__name__):
            home, _, names = row.partition(":")
            yield importlib.import_module(home), frozenset(names.split())

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        other = SPELLINGS.get(f"{self.__name__}.{name}")
        if other is not None:
            home_name, _, own = other.partition(":")
            value = getattr(importlib.import_module(home_name), own)
            self.__dict__[name] = value
            return value
        if present(f"{self.__name__}.{name}") or absent(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        for home, names in self._homes():
            value = _lookup(home, name) if not names or name in names else _NOTHING
            if value is not _NOTHING:
                self.__dict__[name] = value
                return value
        raise AttributeError(missing(f"{self.__name__}.{name}"), name=name, obj=self)

    def __dir__(self) -> list[str]:
        attribute_names = {name for name in vars(self) if not name.startswith("__")}
        if not homes(self.__name__):
            parents = (row.rpartition(".") for row in SPELLINGS)
            attribute_names.update(name for parent, _, name in parents if parent == self.__name__ and not name.startswith("_"))
        for home, chosen in self._homes():
            if chosen:
                attribute_names.update(chosen)
                continue
            own = vars(home)
            names = [n for n in own.get("__all__") or dir(home) if not n.startswith("_") and not isinstance(own.get(n), ModuleType)]
            # a package of ours is a name of TVM only where TVM has one of that name
            attribute_names.update(n for n in names if n in own or homes(f"{self.__name__}.{n}") or not exists(f"{home.__name__}.{n}"))
        return sorted(attribute_names)


class Faces:
    """The loader of `tvm` and the modules below it."""

    def find(self, name: str) -> ModuleSpec:
        if not present(name) and not absent(name):
            # without the module's name in the error, `from tvm import topi` passes the message on
            raise ModuleNotFoundError(missing(name))
        return ModuleSpec(name, self, is_package=not name.endswith(".__main__"))  # type: ignore[arg-type]

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m` runs: the code of our module."""
        home = homes(name)[0].partition(":")[0]
        spec = find_spec(home)
        return spec.loader.get_code(home) if spec is not None and isinstance(spec.loader, InspectLoader) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Face(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A face has nothing to run."""


def stand_in() -> None:
    """Put the finder in front of all others. Raises `ImportError` where a TVM is loaded already."""
    loaded = sys.modules.get("tvm")
    if loaded is not None and not isinstance(loaded, Face):
        raise ImportError("the TVM of this environment is loaded already: import relaylang.tvm.install before tvm", name="tvm")
    if "tvm" not in FINDER.loaders:
        FINDER.loaders["tvm"] = Faces()
        # in front of finders of packages that are installed in place
        sys.meta_path.remove(FINDER)  # type: ignore[arg-type]
        sys.meta_path.insert(0, FINDER)  # type: ignore[arg-type]
