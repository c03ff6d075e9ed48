"""Configurations that are in force inside `with`."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar, TypeVar

_S = TypeVar("_S", bound="Scoped")


class Scoped:
    """A configuration. Each subclass has a stack of its own, for each thread and task."""

    _in_force: ClassVar[ContextVar[tuple[Any, ...]]]

    def __init_subclass__(cls) -> None:
        cls._in_force = ContextVar(cls.__name__, default=())

    def __enter__(self: _S) -> _S:
        self._in_force.set((*self._in_force.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._in_force.set(self._in_force.get()[:-1])

    @classmethod
    def current(cls: type[_S]) -> _S | None:
        """The innermost configuration that is in force."""
        stack = cls._in_force.get()
        return stack[-1] if stack else None
