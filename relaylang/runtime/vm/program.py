"""A program of the Relay VM: code, functions, constants, kernels, and the types that they have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.ir import Constructor, Function, IRModule, Type
from relaylang.runtime.manifest import External
from relaylang.runtime.vm.instructions import Instruction, table

#: The version of files and of machines.
VERSION = 10

#: The extent of a kernel's result that is computed when the kernel runs.
UNKNOWN = -1
#: A tensor's element type and shape.
Spec = tuple[str, tuple[int, ...]]


@dataclass
class VMFunction:
    """A function: where its code begins and ends, how many parameters and captured values it has, and its registers.

    The registers from `generals` on hold scalars only. `types` are the parameters' types, None where they are not known.
    """

    name: str
    entry: int
    end: int
    params: int
    captured: int
    generals: int
    registers: int
    span: Span | None = None
    types: tuple[Type | None, ...] = ()


@dataclass
class Packed:
    """A kernel: a region of the library, or where `region` is -1 a Relay function (`module`) that the host evaluates.

    `outputs` are its results' types; those of a Relay function are found when it runs. `weights` are the numbers of the
    program's weights that the kernel reads. A kernel of the library with a `module` is for some extents of its inputs.
    The kernel of the number `other` takes others (-1: none does), and the host takes the rest. With `shares` it reads the
    weights that the first one has prepared. A kernel reads so many numbers (`sizes`) that are computed from these extents.
    `fails` says whether the arena's end says how a run failed (`relaylang.runtime.manifest.STATUS`), and `sites` in which
    ways: operators, kinds of faults, places. `constants` are the numbers of the weights that the host gives the function
    behind its inputs. `takes` are the inputs' types of a kernel of the library. A value may have other extents, for `?` fits
    any type. `why` says why the host evaluates it: one reason, or of a kernel of the library the conditions of which one
    failed.
    """

    inputs: int
    outputs: tuple[Spec, ...]
    count: int
    region: int = -1
    arena: int = 0
    fixed: int = 0
    weights: tuple[int, ...] = ()
    module: IRModule | None = None
    constants: tuple[int, ...] = ()
    sizes: int = 0
    fails: bool = False
    sites: tuple[tuple[str, str, Span | None], ...] = ()
    takes: tuple[Spec, ...] = ()
    why: tuple[str, ...] = ()
    other: int = -1
    shares: bool = False

    def reason(self, failed: int, shapes: Sequence[tuple[int, ...]]) -> str:
        """Why the host evaluates a call: the condition that `failed`, counted from 1, of inputs of some shapes."""
        if self.region < 0:
            return self.why[0]
        return f"{', '.join(f'x{n} {shape}' for n, shape in enumerate(shapes))}: the code is for {self.why[failed - 1]}"

    @property
    def words(self) -> int:
        """The most numbers that are computed from the extents of the inputs, or the count of these extents."""
        taken, written = (sum(len(shape) for _, shape in specs) for specs in (self.takes, self.outputs))
        return max(taken, 1 + self.sizes + written)

    @property
    def interface(self) -> str:
        """What the library and the file of a program must say alike of a kernel, as JSON."""
        return json.dumps([self.takes, self.outputs, self.arena, self.fixed, self.sizes, self.fails, self.shares, len(self.weights)])


@dataclass
class VMProgram:
    """All that a machine needs beside its library.

    `places` has the offset of each instruction and its place in the Relay text. `module` has the module's functions as
    they were, or declarations of them, and its types. `externals` is the code of other compilers, in the order of the
    library's table of calls. `late` are the constants that have no value yet (`late`), by name.
    """

    code: np.ndarray
    functions: list[VMFunction]
    constants: list[np.ndarray]
    constructors: list[Constructor]
    specs: list[Spec]
    packed: list[Packed]
    weights: list[np.ndarray]
    scalars: list[tuple[str, int]]
    entries: dict[str, int]
    signatures: dict[str, Function]
    module: IRModule
    offsets: np.ndarray
    spans: list[Span | None]
    target: str = "c"
    externals: tuple[External, ...] = ()
    late: dict[str, int] = field(default_factory=dict)
    table: list[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        self.table = table(self.scalars)

    @property
    def modules(self) -> list[IRModule | None]:
        """The Relay functions of kernels. None for those without, and for kernels that have another one's."""
        others = {kernel.other for kernel in self.packed}
        return [None if n in others else kernel.module for n, kernel in enumerate(self.packed)]

    def place(self, pc: int) -> Span | None:
        """The place in the Relay text of the instruction at an offset, or around it."""
        at = int(np.searchsorted(self.offsets, pc, "right")) - 1
        return self.spans[at] if at >= 0 else None

    def function_at(self, pc: int) -> VMFunction:
        """The function whose code an offset lies in."""
        return next(f for f in self.functions if f.entry <= pc < f.end)

    def operands(self, pc: int) -> list[tuple[str, int]]:
        """The operands of the instruction at an offset, each with its kind; counts have the kind `#`."""
        words, kinds = self.code, self.table[int(self.code[pc])].kinds
        at = pc + 1
        out: list[tuple[str, int]] = []
        for kind in kinds:
            word = int(words[at])
            at += 1
            if kind == "n":
                out.append(("#", word))
                out += [("t", int(w)) for w in words[at : at + word]]
                at += word
            elif kind == "p":
                ins, outs = int(words[at]), int(words[at + 1])
                out += [("p", word), ("#", ins), ("#", outs)]
                out += [("r", int(w)) for w in words[at + 2 : at + 2 + ins]]
                out += [("d", int(w)) for w in words[at + 2 + ins : at + 2 + ins + outs]]
                at += 2 + ins + outs
            else:
                out.append((kind, word))
        return out
