"""Domains: what is known of the devices of values. A value has a device; a function has one for each parameter and one for
its result. Domains that must agree are one domain (union by size; what an attempt joined can be parted again)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.ir import FuncType, Type
from relaylang.passes.devices.virtual_device import UNKNOWN, VirtualDevice


class Domains:
    """Domains by number. `canonical` completes what two devices have become together."""

    def __init__(self, canonical: Callable[[VirtualDevice], VirtualDevice]) -> None:
        self._canonical = canonical
        self._parent: list[int] = []
        self._size: list[int] = []
        self._device: list[VirtualDevice] = []
        self._parts: list[tuple[int, ...] | None] = []
        self._undo: list[tuple[int, int, int, VirtualDevice]] | None = None

    def new(self, device: VirtualDevice = UNKNOWN) -> int:
        """A domain of one device."""
        self._parent.append(len(self._parent))
        self._size.append(1)
        self._device.append(device)
        self._parts.append(None)
        return len(self._parent) - 1

    def function(self, parts: Sequence[int]) -> int:
        """The domain of functions with these parameters and, last, this result."""
        made = self.new()
        self._parts[made] = tuple(parts)
        return made

    def of_type(self, ty: Type | None, device: VirtualDevice = UNKNOWN) -> int:
        """A domain for values of a type; the device is that of the value, or of the function's result."""
        made = self.new(device)
        work = [(made, ty, device)]
        while work:
            cell, ty, here = work.pop()
            if isinstance(ty, FuncType):
                self._device[cell] = UNKNOWN
                parts = [(self.new(), t, UNKNOWN) for t in ty.arg_types] + [(self.new(here), ty.ret_type, here)]
                self._parts[cell] = tuple([part for part, _, _ in parts])
                work += parts
        return made

    def find(self, cell: int) -> int:
        while self._parent[cell] != cell:
            cell = self._parent[cell]
        return cell

    def parts(self, cell: int) -> tuple[int, ...] | None:
        """A function's parameters and its result; None of a value."""
        return self._parts[self.find(cell)]

    def unify(self, a: int, b: int) -> tuple[VirtualDevice, VirtualDevice] | None:
        """Make two domains one; a function that is to be a value has one device throughout. Returns two devices that
        contradict, where it cannot be: what went before them is joined."""
        work = [(a, b)]
        while work:
            a, b = (self.find(cell) for cell in work.pop())
            if a == b:
                continue
            ours, theirs = self._parts[a], self._parts[b]
            if ours is not None and theirs is not None:
                self._join(a, b, UNKNOWN)
                work += zip(ours, theirs, strict=False)
            elif ours is not None or theirs is not None:
                inner, one = (ours, b) if ours is not None else (theirs, a)
                work += [(part, one) for part in inner or ()]
            else:
                joined = self._device[a].join(self._device[b])
                if joined is None:
                    return self._device[a], self._device[b]
                self._join(a, b, self._canonical(joined))
        return None

    def _join(self, a: int, b: int, device: VirtualDevice) -> None:
        if self._size[a] < self._size[b]:
            a, b = b, a
        if self._undo is not None:
            self._undo.append((a, b, self._size[a], self._device[a]))
        self._parent[b] = a
        self._size[a] += self._size[b]
        self._device[a] = device

    def try_unify(self, a: int, b: int) -> bool:
        """Make two domains one where that can be, and change nothing where it cannot."""
        self._undo = []
        failed = self.unify(a, b) is not None
        if failed:
            for root, child, size, device in reversed(self._undo):
                self._parent[child], self._size[root], self._device[root] = child, size, device
        self._undo = None
        return not failed

    def device(self, cell: int) -> VirtualDevice:
        """A value's device, or that of what a function returns in the end."""
        cell = self.find(cell)
        while (parts := self._parts[cell]) is not None:
            cell = self.find(parts[-1])
        return self._device[cell]

    def default(self, cell: int, device: VirtualDevice) -> None:
        """What is unknown of the devices in a domain is as `device` has it."""
        work = [cell]
        while work:
            cell = self.find(work.pop())
            parts = self._parts[cell]
            if parts is None:
                self._device[cell] = self._canonical(self._device[cell].filled(device))
            else:
                work += parts
