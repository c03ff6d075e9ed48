"""Functions that are called by name, as `tvm.get_global_func` and modules give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class PackedFunc:
    """A Python function under a name. Calling it calls the function."""

    __slots__ = ("__name__", "function")

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.__name__ = name or getattr(function, "__name__", "function")

    is_global = True

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def __repr__(self) -> str:
        return f"<PackedFunc {self.__name__}>"


__all__ = ["PackedFunc"]
