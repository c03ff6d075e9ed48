"""Programs with loops for target `c`: their functions in C, between the kernels of a library.

The library takes constants as parameters. It packs them when it is loaded, as that of one data-flow graph does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.backends.aot.face import error_rows
from relaylang.backends.aot.functions import Functions
from relaylang.backends.aot.instances import refused
from relaylang.backends.aot.kernels import Kernels, Lower, tables
from relaylang.backends.aot.lowering import LOOPLESS, Ways, inputs_left
from relaylang.backends.aot.shapes import Known, Leaf, leaves, paths, structure
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.linking import outsiders
from relaylang.backends.cpu.program import Looped, Program, Slot, take_in
from relaylang.backends.cpu.schedule_space import Schedule
from relaylang.ir import IRModule, TensorType
from relaylang.kernels.dtypes import CTYPES
from relaylang.runtime.failures import STATUS

#: Bound parameters of up to so many elements may be part of kernels.
_SMALL = 16


class LinkedKernels(Kernels):
    """Kernels whose constants are the parameters of a library, `whole`. `values` are bound parameters by name."""

    head = ("const void* const* params", "char* fixed", "int64_t* status", "int threads", "char* work")
    passed = ("params", "fixed", "status", "threads")
    watched = True

    def __init__(self, lower: Lower, isa: Isa, whole: Program, values: Mapping[str, np.ndarray]) -> None:
        super().__init__(lower, isa, 0, {})
        self._whole = whole
        self._names = {id(value): name for name, value in values.items() if value.size > _SMALL}
        self._numbers: dict[int, int] = {}

    def _number(self, data: np.ndarray) -> int:
        """The number of a constant among the library's parameters."""
        number = self._numbers.get(id(data))
        if number is None:
            number = self._numbers[id(data)] = len(self._whole.params)
            name = self._names.get(id(data), f"constant:{number}")
            self._whole.params.append((name, TensorType(data.shape, data.dtype.name)))
            self._whole.constants[name] = data
        return number

    def constant(self, data: np.ndarray) -> str:
        return f"(const char*)params[{self._number(data)}]"

    def prepare(self) -> None:
        """Give all kernels one list of parameters, and one memory of prepared values."""
        library_program = self._whole
        for program in self._programs.values():
            numbers = [self._number(program.constants[name]) for name, _ in program.params]
            take_in(library_program, program, numbers)
            library_program.places |= program.places

    def call(self, number: int, inputs: Sequence[str], outputs: Sequence[str], arena: str, failed: str) -> list[str]:
        lines = [*tables(inputs, outputs), f"run_{number}(in, out, params, fixed, {arena}, threads);"]
        lines.append(f"if (r_stopped()) return {failed};")
        return lines + self.failing(number, arena, failed)

    def may_fail(self, number: int) -> bool:
        return self.program(number).may_fail


def looped(mod: IRModule, entry: str, values: Mapping[str, np.ndarray], isa: Isa, schedule: Schedule) -> Program:
    """The program of a function whose recursive calls become loops. Raises `RelayError` (R0636 where one is no loop)."""
    library_program = Program()
    names, shapes = inputs_left(mod[entry], values)
    code = Ways(
        mod,
        entry,
        values,
        names,
        shapes,
        isa,
        schedule,
        0,
        {},
        lambda lower, isa, *_: LinkedKernels(lower, isa, library_program, values),
    ).loops()
    assert code.entry.group is not None
    result = code.entry.group.result
    if any(isinstance(token, Known) for token in result):
        raise refused(f"@{entry} gives a function", mod[entry])
    library_program.inputs = [
        (name, TensorType(leaf.dims, leaf.dtype), list(path)) for name, shape in zip(names, shapes) for path, leaf in paths(shape)
    ]
    library_program.outputs = [Slot("output", n, leaf.dims, leaf.dtype) for n, leaf in enumerate(leaves(result))]
    library_program.structure = structure(result)
    code.kernels.prepare()
    functions = Functions(code.kernels, "R")
    texts = functions.write(code.instances.groups, code.entry)
    first = functions.made[code.entry]
    taken = [Slot("input", n, ty.shape, ty.dtype) for n, (_, ty, _) in enumerate(library_program.inputs)]  # type: ignore[arg-type]
    arguments = [_taken(n, Leaf(slot.dtype, slot.shape)) for n, slot in enumerate(taken)]
    arguments += [f"out[{n}]" for n in range(len(library_program.outputs))]
    library_program.arena_bytes = max(library_program.arena_bytes, first.frame) + STATUS
    library_program.live_bytes = library_program.arena_bytes
    library_program.fails = True
    enumeration = "\n".join(["enum {", *error_rows("R"), "};"])
    library_program.run = [
        Looped(
            code.kernels.programs,
            "\n\n".join([enumeration, *(function.text for function in texts)]),
            f"{first.name}({', '.join([*LinkedKernels.passed, 'arena', *arguments])})",
            frozenset(helper for function in texts for helper in function.helpers),
            taken,
            library_program.outputs,
        )
    ]
    library_program.sites = code.kernels.sites
    library_program.externals = [op for op, _ in outsiders(code.kernels.programs.values())]
    return library_program


def _taken(number: int, leaf: Leaf) -> str:
    """An input as a function takes it: a number, or an address."""
    return f"*(const {CTYPES[leaf.dtype]}*)in[{number}]" if leaf.is_scalar else f"in[{number}]"


__all__ = ["LOOPLESS", "looped"]
