"""Domains: sets of values on one device, and the known parts of that device. A value has a device; a function has one
for each parameter and one for its result. Domains that must agree are one domain (union by size; what an attempt joined
can be parted again).

A function's domain is split into parts on first use: types are shared, and may be large when written out. Until then it
may be *uniform*, all of it on the device of one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.ir import FuncType, Type
from relaylang.passes.devices.virtual_device import UNKNOWN, VirtualDevice


class Domains:
    """Domains by number. `canonical` completes what two devices have become together."""

    def __init__(self, canonical: Callable[[VirtualDevice], VirtualDevice]) -> None:
        self._canonical = canonical
        self._parent: list[int] = []
        self._size: list[int] = []
        self._device: list[VirtualDevice] = []
        #: A function's type before it is split, the value with which it is uniform, and its parts.
        self._type: list[FuncType | None] = []
        self._uniform: list[int | None] = []
        self._parts: list[tuple[int, ...] | None] = []
        self._defaulted: set[int] = set()
        self._undo: list[tuple[list[Any], int, Any]] | None = None

    def new(self, device: VirtualDevice = UNKNOWN, ty: Type | None = None) -> int:
        """A domain of one device, or of functions of a type."""
        self._parent.append(len(self._parent))
        self._size.append(1)
        self._device.append(device)
        self._type.append(ty if isinstance(ty, FuncType) else None)
        self._uniform.append(None)
        self._parts.append(None)
        return len(self._parent) - 1

    def of_type(self, ty: Type | None, device: VirtualDevice = UNKNOWN) -> int:
        """A domain for values of a type. The device is that of the value, or of a function's final result."""
        cell = domain = self.new(ty=ty)
        while device.known and (parts := self.parts(cell)) is not None:
            cell = parts[-1]
        self._device[cell] = device
        return domain

    def find(self, cell: int) -> int:
        while self._parent[cell] != cell:
            cell = self._parent[cell]
        return cell

    def _set(self, values: list[Any], cell: int, value: Any) -> None:
        if self._undo is not None:
            self._undo.append((values, cell, values[cell]))
        values[cell] = value

    def parts(self, cell: int) -> tuple[int, ...] | None:
        """A function's parameters and its result; None of a value."""
        cell = self.find(cell)
        ty = self._type[cell]
        if ty is not None and self._parts[cell] is None:
            parts = tuple([self.new(ty=t) for t in (*ty.arg_types, ty.ret_type)])
            self._set(self._parts, cell, parts)
            one = self._uniform[cell]
            for part in parts if one is not None else ():
                self.unify(part, one)  # type: ignore[arg-type]
        return self._parts[cell]

    def _is_function(self, cell: int) -> bool:
        return self._type[cell] is not None

    def unify(self, a: int, b: int) -> tuple[VirtualDevice, VirtualDevice] | None:
        """Make two domains one; a function that meets a value's domain has one device throughout. Returns two devices
        that contradict, where it cannot be: what went before them is joined.
        """
        work = [(a, b)]
        while work:
            a, b = (self.find(cell) for cell in work.pop())
            if a == b:
                continue
            if self._is_function(a) and self._is_function(b):
                self._join_functions(a, b, work)
            elif self._is_function(a) or self._is_function(b):
                function, value = (a, b) if self._is_function(a) else (b, a)
                self._make_uniform(function, value, work)
            else:
                joined = self._device[a].join(self._device[b])
                if joined is None:
                    return self._device[a], self._device[b]
                self._join(a, b, self._canonical(joined))
        return None

    def _join_functions(self, a: int, b: int, work: list[tuple[int, int]]) -> None:
        ours, theirs, one, other = self._parts[a], self._parts[b], self._uniform[a], self._uniform[b]
        if ours is not None and theirs is not None:
            work += zip(ours, theirs, strict=False)
        if one is not None:
            self._make_uniform(b, one, work)
        if other is not None:
            self._make_uniform(a, other, work)
        root = self._join(a, b, UNKNOWN)
        self._set(self._parts, root, theirs if ours is None else ours)
        self._set(self._uniform, root, other if one is None else one)

    def _make_uniform(self, function: int, value: int, work: list[tuple[int, int]]) -> None:
        """Put all of a function on the device of one value; its parts are unified once."""
        one = self._uniform[function]
        if one is not None:
            work.append((one, value))
            return
        self._set(self._uniform, function, value)
        work += [(part, value) for part in self._parts[function] or ()]

    def _join(self, a: int, b: int, device: VirtualDevice) -> int:
        if self._size[a] < self._size[b]:
            a, b = b, a
        self._set(self._parent, b, a)
        self._set(self._size, a, self._size[a] + self._size[b])
        self._set(self._device, a, device)
        return a

    def try_unify(self, a: int, b: int) -> bool:
        """Make two domains one where that can be, and change nothing where it cannot."""
        self._undo = []
        failed = self.unify(a, b) is not None
        if failed:
            for values, cell, value in reversed(self._undo):
                values[cell] = value
        self._undo = None
        return not failed

    def result(self, cell: int) -> int:
        """The domain of a value, or of a function's final result. A function that is not split into parts is uniform."""
        cell = self.find(cell)
        while self._is_function(cell):
            parts, one = self._parts[cell], self._uniform[cell]
            if parts is not None:
                cell = self.find(parts[-1])
                continue
            if one is None:
                one = self._uniform[cell] = self.new()
            cell = self.find(one)
        return cell

    def device(self, cell: int) -> VirtualDevice:
        """A value's device, or that of what a function returns in the end."""
        return self._device[self.result(cell)]

    def default(self, cell: int, device: VirtualDevice) -> None:
        """Complete the unknown parts of a domain's devices from `device`. The first default of a domain is its last."""
        work = [cell]
        while work:
            cell = self.find(work.pop())
            if cell in self._defaulted:
                continue
            self._defaulted.add(cell)
            parts = self._parts[cell]
            if parts is not None:
                work += parts
            elif self._is_function(cell):
                work.append(self.result(cell))
            else:
                self._device[cell] = self._canonical(self._device[cell].filled(device))
