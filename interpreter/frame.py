"""The frame of a function: a numbered slot for each argument, captured value, constant and temporary."""

from __future__ import annotations

from collections.abc import Callable

from relaylang.interpreter.code import Code
from relaylang.interpreter.values import Value
from relaylang.ir import Var


class Frame:
    """Numbers the slots of one function.

    While the function is translated, arguments and temporaries are 0, 1, 2, ... and captured values -1, -2, ... `final`
    gives the places once the number of captured values is known: arguments, captured values, then the rest.
    `free_value` gives the value of a variable that no function binds.
    """

    def __init__(self, code: Code, outer: Frame | None, free_value: Callable[[Var], Value]) -> None:
        self.outer = outer
        self.captured = code.captured
        self.slots: dict[Var, int] = {p: i for i, p in enumerate(code.function.params)}
        self._arity = code.arity
        self._count = code.arity
        self._free_value = free_value
        self._values: dict[int, Value] = {}  # of slots that hold constants
        self._constants: dict[int, tuple[object, int]] = {}  # slots by the id of their objects, which are kept

    def new(self) -> int:
        """Another slot."""
        self._count += 1
        return self._count - 1

    def constant(self, key: object, value: Callable[[], Value]) -> int:
        """The slot of a constant, which `key` identifies."""
        known = self._constants.get(id(key))
        if known is None:
            known = self._constants[id(key)] = (key, self.new())
            self._values[known[1]] = value()
        return known[1]

    def lookup(self, var: Var) -> int:
        """A variable's slot. Each function captures a variable that an outer function binds."""
        slot = self.slots.get(var)
        if slot is not None:
            return slot
        path = [self]
        outer = self.outer
        while outer is not None and var not in outer.slots:
            path.append(outer)
            outer = outer.outer
        if outer is None:
            slot = self.constant(var, lambda: self._free_value(var))
            self.slots[var] = slot
            return slot
        for frame in path:
            frame.captured.append(var)
            frame.slots[var] = -len(frame.captured)
        return self.slots[var]

    def final(self, slot: int) -> int:
        """A slot's place, once all captured values are known."""
        if slot < 0:
            return self._arity - 1 - slot
        return slot if slot < self._arity else slot + len(self.captured)

    def finals(self, slots: tuple[int, ...]) -> tuple[int, ...]:
        """The places of slots."""
        return tuple([self.final(s) for s in slots])

    def variables(self) -> dict[Var, int]:
        """The variables and their places."""
        return {v: self.final(s) for v, s in self.slots.items()}

    def template(self) -> list[Value]:
        """The values behind arguments and captured values when the function is entered: constants, and room."""
        return [self._values.get(s) for s in range(self._arity, self._count)]


__all__ = ["Frame"]
