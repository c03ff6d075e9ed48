"""Modules whose functions are made when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection
from typing import Any

from relaylang.tvm.op.build import documentation, function, operator_of, signatures
from relaylang.tvm.op.composed import COMPOSED


def builder(path: str) -> Callable[..., Any]:
    """The function of a path below `relaylang`, such as "nn.conv2d". Raises `KeyError`."""
    if path not in COMPOSED:
        return function(path)
    signature, make = signatures()[path], COMPOSED[path]

    def build(*args: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*args, **named)
        except TypeError as problem:
            raise TypeError(f"{path}: {problem}") from None
        bound.apply_defaults()
        return make(**bound.arguments)

    build.__signature__ = signature  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = path.rsplit(".", 1)[-1]
    build.__doc__ = documentation(path) if operator_of(path) is not None else make.__doc__ or documentation(path)
    return build


def names(prefix: str) -> list[str]:
    """The functions of a module, by what their paths begin with ("nn.", or "" for those at the top)."""
    found = (path[len(prefix) :] for path in signatures() if path.startswith(prefix))
    return sorted(name for name in found if "." not in name)


def lazy(
    module: str, prefix: str, modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module of functions, and of the `modules` below it."""

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{module}.{name}")
        if name.startswith("_") or prefix + name not in signatures() or "." in name:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        made = builder(prefix + name)
        made.__module__ = module
        setattr(sys.modules[module], name, made)
        return made

    return get, lambda: sorted({*vars(sys.modules[module]), *names(prefix), *modules})
