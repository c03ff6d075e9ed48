"""Functions under names for everybody: `tvm.register_func`, `tvm.get_global_func`. Here they are Python's alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from relaylang.diagnostics import did_you_mean
from relaylang.passes.devices.lexical import devices_of
from relaylang.tvm.external import PREFIX, SourceModule, added, removed

Function = Callable[..., Any]

_FUNCTIONS: dict[str, Function] = {
    "runtime.CSourceModuleCreate": SourceModule,
    "relay.transform.RecoverVirtualDeviceMap": lambda mod, expr: devices_of(expr, mod),
}


@overload
def register_func(func_name: str | Function, f: None = None, override: bool = False) -> Callable[[Function], Function]: ...
@overload
def register_func(func_name: str, f: Function, override: bool = False) -> Function: ...
def register_func(func_name: str | Function, f: Function | None = None, override: bool = False) -> Function:
    """Register a Python function under a name; without `f` a decorator. A function alone has its own name.

    Returns the function, as TVM does. A function `relay.ext.NAME` is a code generator; see `relaylang.tvm.external`.
    Raises `ValueError` for a name that is taken, but for `override`.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if not isinstance(func_name, str):
        raise ValueError("a function is registered under a text")

    def register(function: Function) -> Function:
        if func_name in _FUNCTIONS and not override:
            raise ValueError(f"the global function {func_name} is registered already; override=True replaces it")
        if func_name.startswith(PREFIX):
            added(func_name, function)
        _FUNCTIONS[func_name] = function
        return function

    return register(f) if f is not None else register


@overload
def get_global_func(name: str) -> Function: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> Function | None: ...
def get_global_func(name: str, allow_missing: bool = False) -> Function | None:
    """The function that is registered under a name. With `allow_missing`, None where there is none.

    Raises `ValueError`.
    """
    function = _FUNCTIONS.get(name)
    if function is None and not allow_missing:
        near = did_you_mean(name, _FUNCTIONS)
        raise ValueError(f"there is no global function {name}" + (f"; did you mean {near}?" if near else ""))
    return function


def list_global_func_names() -> list[str]:
    """The names of all registered functions."""
    return sorted(_FUNCTIONS)


def remove_global_func(name: str) -> None:
    """Forget the function of a name, if there is one."""
    if _FUNCTIONS.pop(name, None) is not None and name.startswith(PREFIX):
        removed(name)


def register_object(type_key: str | type | None = None) -> Any:
    """A decorator that leaves its class as it is: classes have no registry here."""
    return type_key if isinstance(type_key, type) else lambda cls: cls


def py_str(text: bytes) -> str:
    """The text of bytes in UTF-8."""
    return text.decode("utf-8")


__all__ = [
    "get_global_func",
    "list_global_func_names",
    "py_str",
    "register_func",
    "register_object",
    "remove_global_func",
]
