"""Modules whose functions are made when they are first asked for."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from relaylang.tvm.op.build import documentation, function, functions
from relaylang.tvm.op.composed import COMPOSED


@cache
def signatures() -> dict[str, inspect.Signature]:
    """Every function's parameters, by its path below `relaylang`."""
    parameters = {path: signature.parameters for path, signature in functions().items()}
    return parameters | {path: _plain(make) for path, make in COMPOSED.items() if path not in parameters}


def _plain(make: Callable[..., Any]) -> inspect.Signature:
    """A function's parameters without its annotations."""
    written = inspect.signature(make)
    parameters = [p.replace(annotation=p.empty) for p in written.parameters.values()]
    return inspect.Signature(parameters)


@cache
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
    build.__doc__ = documentation(path) if path in functions() else make.__doc__
    return build


def names(prefix: str) -> list[str]:
    """The functions of a module by the prefix of their paths ("nn.", or "" for those at the top)."""
    paths = (path[len(prefix) :] for path in signatures() if path.startswith(prefix))
    return sorted(name for name in paths if "." not in name)


def lazy(module: str, prefix: str, modules: Collection[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module of functions, and of the `modules` below it."""

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{module}.{name}")
        if name.startswith("_") or prefix + name not in signatures() or "." in name:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        generated = builder(prefix + name)
        generated.__module__ = module
        setattr(sys.modules[module], name, generated)
        return generated

    return get, lambda: sorted({*vars(sys.modules[module]), *names(prefix), *modules})
