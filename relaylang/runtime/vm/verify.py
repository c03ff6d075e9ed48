"""Checks of a program's tables before a machine reads them: every number in its range, every jump at an instruction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.runtime.failures import STATUS
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS, MASK, TAKE
from relaylang.runtime.vm.program import UNKNOWN, Packed, Spec, VMFunction, VMProgram

_MOST = 1 << 24
_BYTES = 1 << 48
#: Element types by number; 0 is none.
_DTYPES = range(1 + len(DTYPE_NUMBERS))


def verify(program: VMProgram) -> None:
    """Raises `ValueError`, with the reason, for a program that no machine may run."""
    words = program.code.tolist()
    at = 0
    for number, function in enumerate(program.functions):
        if function.entry != at or not function.entry < function.end <= len(words):
            raise ValueError(f"function {number} is not where the one before it ends")
        at = function.end
        if not 0 <= function.params <= function.generals <= function.registers < _MOST or not 0 <= function.captured < _MOST:
            raise ValueError(f"function {number} has impossible counts of registers")
    if at != len(words):
        raise ValueError("there is code behind the last function")
    for function in program.functions:
        _Check(program, function, words).run()
    for name, number in program.entries.items():
        _within("function", number, program.functions)
        if program.functions[number].captured or len(program.signatures[name].params) != program.functions[number].params:
            raise ValueError(f"@{name} has other parameters than its code")
    _tables(program)


def _tables(program: VMProgram) -> None:
    for spec in program.specs:
        _spec(spec)
    for packed in program.packed:
        for dtype, shape in (*packed.takes, *packed.outputs):
            _spec((dtype, tuple(0 if d == UNKNOWN and packed.module is not None else d for d in shape)))
    regions = {p.region for p in program.packed if p.region >= 0}
    if regions != set(range(len(regions))):
        raise ValueError("the kernels have other numbers than the library's")
    for packed in program.packed:
        if packed.region < 0 and packed.module is None:
            raise ValueError("a kernel is neither in the library nor in Relay")
        if packed.region >= 0 and len(packed.outputs) != packed.count:
            raise ValueError("a kernel has another count of results")
        if len(packed.takes) != (packed.inputs if packed.region >= 0 else 0):
            raise ValueError("a kernel has another count of types of inputs")
        counts, sizes = (packed.inputs, packed.count, packed.sizes), (packed.arena, packed.fixed)
        if not all(0 <= n < _MOST for n in counts) or not all(0 <= n < _BYTES for n in sizes):
            raise ValueError("a kernel needs impossible memory")
        _second(packed, program.packed)
        if packed.region < 0 and not packed.why:
            raise ValueError("a kernel in Relay has no reason")
        if packed.fails and packed.module is None and packed.arena < STATUS:
            raise ValueError("a kernel has no place for what it says")
        for number in (*packed.weights, *packed.constants):
            _within("weight", number, program.weights)
    for array in program.constants:
        if array.dtype.name not in DTYPE_NUMBERS:
            raise ValueError(f"a constant has elements of {array.dtype.name}")


def _second(kernel: Packed, kernels: Sequence[Packed]) -> None:
    """Check the kernel that takes over from another one."""
    if kernel.other == -1:
        return
    _within("kernel", kernel.other, kernels)
    other = kernels[kernel.other]
    same = all(getattr(kernel, name) == getattr(other, name) for name in ("inputs", "count", "takes", "outputs"))
    if not same or kernel.module is None or other.region < 0 or other.other != -1:
        raise ValueError("a kernel takes over from one with other operands")
    if other.shares and (kernel.fixed, kernel.weights) != (other.fixed, other.weights):
        raise ValueError("two kernels share weights that differ")


def _spec(spec: Spec) -> None:
    dtype, shape = spec
    if dtype not in DTYPE_NUMBERS or len(shape) > 64 or any(d < 0 for d in shape):
        raise ValueError(f"there is no tensor of the type {dtype}{list(shape)}")
    size = np.dtype(dtype).itemsize
    for d in shape:
        size *= d
    if size >= _BYTES:
        raise ValueError(f"no machine has a tensor of {size} bytes")


def _within(what: str, number: int, table: Sequence[object]) -> None:
    if not 0 <= number < len(table):
        raise ValueError(f"there is no {what} {number}")


class _Check:
    """The check of one function's code."""

    def __init__(self, program: VMProgram, function: VMFunction, words: list[int]) -> None:
        self.program = program
        self.function = function
        self.words = words
        self.jumps: list[tuple[int, int]] = []

    def run(self) -> None:
        """Walk over the instructions once. Raises `ValueError`."""
        function, table = self.function, self.program.table
        at, starts = function.entry, set[int]()
        ends = False
        while at < function.end:
            starts.add(at)
            opcode = self.words[at]
            if not 0 <= opcode < len(table):
                raise ValueError(f"there is no instruction {opcode} (at {at})")
            instruction = table[opcode]
            try:
                behind = self._operands(at, instruction.name, instruction.kinds)
            except ValueError as e:
                raise ValueError(f"{e} (at {at}, {instruction.name})") from None
            at, ends = behind, instruction.ends
        if not ends:
            raise ValueError(f"{function.name} runs past its end")
        for place, to in self.jumps:
            if to not in starts or to <= place:
                raise ValueError(f"a jump to {to} leads to no later instruction of its function (at {place})")

    def _take(self, at: int, count: int) -> list[int]:
        if count < 0 or at + count > self.function.end:
            raise ValueError("its operands reach past the function's end")
        return self.words[at : at + count]

    def _register(self, kind: str, word: int) -> None:
        number = word & MASK if kind == "t" else word
        if word < 0 or (kind == "t" and word & ~(MASK | TAKE)) or number >= self.function.registers:
            raise ValueError(f"there is no register {word}")
        if kind == "s" and number < self.function.generals:
            raise ValueError(f"the register {number} is not one of scalars")

    def _kernel(self, at: int, number: int) -> int:
        """Check the operands of a kernel. Returns the place behind them."""
        _within("kernel", number, self.program.packed)
        packed = self.program.packed[number]
        if self._take(at, 2) != [packed.inputs, packed.count]:
            raise ValueError("the kernel has other counts of operands")
        for n, operand in enumerate(self._take(at + 2, packed.inputs + packed.count)):
            self._register("r" if n < packed.inputs else "d", operand)
        return at + 2 + packed.inputs + packed.count

    def _operands(self, at: int, name: str, kinds: str) -> int:
        """Check the operands of an instruction. Returns the place behind it."""
        program, place = self.program, at
        at += 1
        wanted: int | None = None
        for kind in kinds:
            (word,) = self._take(at, 1)
            at += 1
            if kind in "dsrt":
                self._register(kind, word)
            elif kind == "n":
                for operand in self._take(at, word):
                    self._register("t", operand)
                at += word
                if wanted is not None and word != wanted:
                    raise ValueError(f"it has {word} operands instead of {wanted}")
            elif kind == "p":
                at = self._kernel(at, word)
            elif kind == "f":
                _within("function", word, program.functions)
                called = program.functions[word]
                wanted = called.captured if name == "AllocClosure" else called.params
                if name != "AllocClosure" and called.captured:
                    raise ValueError(f"{called.name} is called without what it captures")
            elif kind == "g":
                _within("constructor", word, program.constructors)
                wanted = len(program.constructors[word].inputs)
            elif kind in "cye":
                tables: dict[str, tuple[str, Sequence[object]]] = {
                    "c": ("constant", program.constants),
                    "y": ("type", program.specs),
                    "e": ("element type", _DTYPES),
                }
                _within(tables[kind][0], word, tables[kind][1])
            elif kind == "m":
                if not 0 <= word < (self.function.captured if name == "LoadFree" else _MOST):
                    raise ValueError(f"there is no field {word}")
            elif kind == "j":
                self.jumps.append((place, word))
        return at
