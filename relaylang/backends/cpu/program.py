"""Programs of the backend: instructions on memory slots, in the order in which they run.

A slot is one tensor in memory. `relaylang.backends.cpu.schedule` makes the instructions, `emit` writes them as C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.external import ExternalOp
from relaylang.backends.cpu.kernel import Kernel, Pack
from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.schedule_space import Space
from relaylang.backends.cpu.turns import LoopOp
from relaylang.backends.cpu.views import offset
from relaylang.diagnostics.source import Span
from relaylang.ir import (
    Function,
    TensorType,
)
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import reshaped, strides_of
from relaylang.kernels.sizes import largest
from relaylang.runtime.failures import STATUS

#: A way in which a program fails: the operator, the kind of fault (`relaylang.diagnostics.faults`), and the call's place.
Site = tuple[str, str, Span | None]


class Slot:
    """A tensor in memory: an input, a bound parameter, or made by an instruction."""

    __slots__ = ("kind", "number", "shape", "dtype", "first", "last", "offset", "fixed")

    def __init__(self, kind: str, number: int, shape: Sequence[int], dtype: str) -> None:
        self.kind = kind  # "input", "param", "made", "output"
        self.number = number
        self.shape = tuple(shape)
        self.dtype = dtype
        self.first = -1
        self.last = -1
        self.offset = -1
        self.fixed = False  # made by the prepare list and kept

    @property
    def bytes(self) -> int:
        return -(-largest(SIZES[self.dtype] * math.prod(self.shape), 1) // 64) * 64


class View:
    """A tensor in a slot: its shape, its first element and its strides; by default all of the slot."""

    __slots__ = ("slot", "shape", "start", "strides")

    def __init__(self, slot: Slot, shape: Sequence[int], start: int = 0, strides: Sequence[int] | None = None) -> None:
        self.slot = slot
        self.shape = tuple(shape)
        self.start = start
        self.strides = tuple(strides_of(shape) if strides is None else strides)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether nothing else lies in the slot."""
        return self.size == math.prod(self.slot.shape)

    def part(self, first: Sequence[int], shape: Sequence[int]) -> View:
        return View(self.slot, shape, self.start + offset(first, self.strides), self.strides)

    def lies_at(self, other: View) -> bool:
        """Whether this is the same memory as another view, which may have another shape."""
        steps = reshaped(self.shape, self.strides, other.shape)
        same = steps is not None and all(e == 1 or a == b for e, a, b in zip(other.shape, steps, other.strides))
        return same and self.slot is other.slot and self.start == other.start


Place = View | list[Any]


class Run:
    """Run a kernel."""

    def __init__(
        self, kernel: Kernel, inputs: list[View], results: list[View], packs: list[Slot], text: str, function: Function
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.results = results
        self.packs = packs
        self.text = text
        self.function = function
        self.work: Slot | None = None
        #: The number of the kernel's first site among the program's.
        self.first_site = 0

    @property
    def sites(self) -> list[Site]:
        """The ways in which the run fails. A kernel that equal functions share has the calls of one of them."""
        if not self.kernel.sites:
            return []
        assert self.kernel.source is not None
        own = dict(zip(calls_of(self.kernel.source.function), calls_of(self.function)))
        calls = [(own.get(site.call, site.call), site.kind) for site in self.kernel.sites]
        return [((c.span and c.span.operator) or c.op.name, kind, c.span) for c, kind in calls]  # type: ignore[attr-defined]

    @property
    def outputs(self) -> list[Slot]:
        return [v.slot for v in self.results]

    @property
    def read(self) -> list[View]:
        """The inputs that the kernel reads as they are."""
        return [view for n, view in enumerate(self.inputs) if n in self.kernel.reads]

    def reads(self) -> list[Slot]:
        return [*[v.slot for v in self.read], *self.packs]


class PackIn:
    """Bring a parameter into a kernel's layout."""

    def __init__(self, kernel: Kernel, pack: Pack, inputs: list[View], output: Slot) -> None:
        self.kernel = kernel
        self.pack = pack
        self.inputs = inputs
        self.outputs = [output]

    def reads(self) -> list[Slot]:
        return [v.slot for v in self.inputs]


class Copy:
    """Copy a contiguous tensor."""

    def __init__(self, source: View, target: Slot) -> None:
        self.source = source
        self.outputs = [target]

    def reads(self) -> list[Slot]:
        return [self.source.slot]


class Branch:
    """Run one of two lists by a condition; both write the same outputs."""

    def __init__(self, cond: View, yes: list[Any], no: list[Any], outputs: list[Slot]) -> None:
        self.cond = cond
        self.yes = yes
        self.no = no
        self.outputs = outputs

    def reads(self) -> list[Slot]:
        return [self.cond.slot]


class Outside:
    """Call external code on dense tensors, and with memory for its work where it wants some."""

    def __init__(self, op: ExternalOp, inputs: list[View], results: list[View], work: Slot | None, function: Function) -> None:
        self.op = op
        self.inputs = inputs
        self.results = results
        self.work = work
        self.function = function

    @property
    def outputs(self) -> list[Slot]:
        return [v.slot for v in self.results]

    def reads(self) -> list[Slot]:
        return [v.slot for v in self.inputs]


class Turns:
    """Run a program once for each turn of a loop.

    It takes the turn, the states and the other values. It gives the next states and rows. A state stays in its place, or lies in
    one of two places in turn.
    """

    def __init__(self, op: LoopOp, region: Program, inputs: list[View], results: list[View], function: Function) -> None:
        self.op = op
        self.region = region
        self.inputs = inputs
        self.results = results
        self.function = function
        #: The states, by number, that each turn writes over: they lie where the loop's result does.
        self.in_place = {state for state in range(op.states) if (state + 1, state) in region.in_place}
        apart = sum(view.slot.bytes for n, view in enumerate(results[: op.states]) if n not in self.in_place)
        self.work = Slot("made", 0, (region.arena_bytes + 2 * apart,), "uint8")

    @property
    def outputs(self) -> list[Slot]:
        return [v.slot for v in self.results]

    def reads(self) -> list[Slot]:
        return [v.slot for v in self.inputs]


class Looped:
    """Call a function in C, which calls others and kernels. It is the only instruction of a program whose loops stay loops.

    `regions` are the kernels, by their numbers in the functions' `text`. `call` is the first call; it returns 0, or the number
    of an error. `helpers` are the parts of `csrc/` that the functions use.
    """

    def __init__(
        self,
        regions: Mapping[int, Program],
        text: str,
        call: str,
        helpers: frozenset[str],
        inputs: list[Slot],
        outputs: list[Slot],
    ) -> None:
        self.regions = regions
        self.text = text
        self.call = call
        self.helpers = helpers
        self.inputs = inputs
        self.outputs = outputs

    def reads(self) -> list[Slot]:
        return self.inputs


Instruction = Run | PackIn | Copy | Branch | Outside | Turns | Looped


class Program:
    """The instructions, slots and functions to emit."""

    def __init__(self) -> None:
        self.inputs: list[tuple[str, TensorType, list[Any]]] = []  # name, type, position in a tuple-typed parameter
        self.params: list[tuple[str, TensorType]] = []
        self.constants: dict[str, np.ndarray] = {}
        self.outputs: list[Slot] = []
        self.structure: Any = None
        self.prepare: list[Instruction] = []
        self.run: list[Instruction] = []
        self.fixed_bytes = 0
        self.arena_bytes = 0
        self.prepare_bytes = 0  # of the arena, that the prepare list needs
        #: The decisions for the program as a whole.
        self.space = Space()
        #: The external code, in the order of the library's table of calls.
        self.externals: list[ExternalOp] = []
        #: Their places in the text.
        self.places: dict[int, Span | None] = {}
        #: Whether it has functions that may fail.
        self.fails = False
        #: The ways in which kernels fail.
        self.sites: list[Site] = []
        self.live_bytes = 0  # the least that any arena could have
        #: The inputs and outputs, by number, that may be the same memory.
        self.in_place: list[tuple[int, int]] = []
        #: The values that lie where an output is written over them.
        self.in_outputs: list[Slot] = []

    def parameter(self, name: str, ty: TensorType, constants: Mapping[str, np.ndarray]) -> int:
        """The number of a parameter of a region. `constants` has the values of the region's constants by name."""
        data = constants.get(name)
        for number, (known, _) in enumerate(self.params):
            if known == name if data is None else self.constants.get(known) is data:
                return number
        if data is not None:
            name = f"constant:{len(self.constants)}"
            self.constants[name] = data
        self.params.append((name, ty))
        return len(self.params) - 1

    @property
    def may_fail(self) -> bool:
        return bool(self.externals or self.sites) or self.fails

    @property
    def status(self) -> int | None:
        """Where in the arena a run says how it failed; None where it cannot."""
        return self.arena_bytes - STATUS if self.may_fail else None


def copied_bytes(program: Program) -> int:
    """The bytes that kernels copy as they are, in a run: into their results, or before they use them."""
    total = 0
    for item in walk(program.run):
        if isinstance(item, Run):
            total += item.kernel.moved + sum(size for _, size in item.kernel.copies)
        elif isinstance(item, Copy):
            total += item.source.size * SIZES[item.source.slot.dtype]
    return total


def walk(items: Sequence[Instruction]) -> list[Instruction]:
    """The instructions in the order in which they run, branches behind their condition one after the other."""
    out: list[Instruction] = []
    stack: list[Instruction] = list(reversed(items))
    while stack:
        item = stack.pop()
        out.append(item)
        if isinstance(item, Branch):
            stack.extend(reversed(item.no))
            stack.extend(reversed(item.yes))
    return out


def every(items: Sequence[Instruction]) -> list[Instruction]:
    """The same with those of the programs inside them."""
    out: list[Instruction] = []
    waiting = [items]
    while waiting:
        for item in walk(waiting.pop()):
            out.append(item)
            if isinstance(item, Turns):
                waiting.append(item.region.run)
            elif isinstance(item, Looped):
                waiting += [region.run for region in item.regions.values()]
    return out


def number_sites(program: Program) -> None:
    """Give the program all sites of its kernels, and the kernels their numbers."""
    program.sites = []
    for item in every(program.run):
        if isinstance(item, Run):
            item.first_site = len(program.sites)
            program.sites += item.sites


def take_in(program: Program, region: Program, numbers: Sequence[int]) -> None:
    """Let a program prepare what a region of it needs. `numbers` are those of the region's parameters in the program."""
    slots: dict[int, Slot] = {}
    for item in every([*region.prepare, *region.run]):
        packs, work = (item.packs, item.work) if isinstance(item, Run) else ((), None)
        views = [v.slot for v in item.inputs] if isinstance(item, Run) else []
        slots |= {id(s): s for s in (*item.reads(), *item.outputs, *packs, *views, *([work] if work is not None else []))}
    for slot in slots.values():
        if slot.kind == "param":
            slot.number = numbers[slot.number]
        elif slot.fixed:
            slot.offset += program.fixed_bytes
    program.fixed_bytes += -(-region.fixed_bytes // 64) * 64
    program.prepare += region.prepare
    status = STATUS if program.may_fail else 0
    program.arena_bytes = largest(program.arena_bytes - status, region.prepare_bytes) + status
    program.prepare_bytes = max(program.prepare_bytes, region.prepare_bytes)
