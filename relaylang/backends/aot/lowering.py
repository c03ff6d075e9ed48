"""The ways from a program to the instances of its functions: as one data-flow graph, or as the VM's code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.backends.aot.instances import Instance, Instances, refused
from relaylang.backends.aot.kernels import Kernels
from relaylang.backends.aot.shapes import Shape, leaves, shape_of
from relaylang.backends.cpu.external import Externals
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Program, Site
from relaylang.backends.cpu.schedule_space import Schedule
from relaylang.backends.vm.binding import bound
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.kernels import NoCode, lower_region
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import STATIC
from relaylang.backends.vm.translate import translated
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Function, IRModule, parameter_names
from relaylang.kernels.dtypes import SIZES
from relaylang.runtime.external import Generator

#: What says that a program's calls are no loops with a place for each value. Written out, they may have one.
LOOPLESS = ("R0632", "R0634", "R0636")


@dataclass
class Whole:
    """A program's kernels, the instances of its functions, and that of its entry."""

    kernels: Kernels
    instances: Instances
    entry: Instance


@dataclass
class Ways:
    """The ways of one program. `values` are bound parameters; `inputs` names the others, and `shapes` has theirs.

    `generators` are its own code generators by their compilers' names.
    """

    mod: IRModule
    entry: str
    values: Mapping[str, np.ndarray]
    inputs: Sequence[str]
    shapes: Sequence[Shape]
    isa: Isa
    schedule: Schedule
    threads: int
    generators: Mapping[str, Generator]
    kernels: Callable[..., Kernels] = Kernels

    def first(self) -> Whole:
        """The first way that does not refuse the program. A graph has the best kernels. Loops stay loops where they can.

        Raises `RelayError` (R0636) of the VM's code.
        """
        refusals = []
        for codes, make in ((("R0632",), lambda: self.graph(False)), (LOOPLESS, self.loops), (("R0632",), lambda: self.graph(True))):
            try:
                return make()
            except RelayError as problem:
                if problem.diagnostics[0].code not in codes:
                    raise
                refusals.append(problem)
        raise refusals[1] from None

    def graph(self, unroll: bool) -> Whole:
        """One data-flow graph; with `unroll`, a recursion that constants end becomes its calls."""
        program = lower_module(self.mod, self.entry, self.values, self.isa, self.schedule, Calls(Externals(self.generators), unroll))
        pool = Pool(self.mod, lambda module, ways: NoCode("it is one graph"))
        pool.codes.append(_graph(self.mod[self.entry], program, self.inputs))
        return self._analysed(pool, 0, Kernels(lambda n: (program, program.sites), self.isa, self.threads, self.values))

    def loops(self) -> Whole:
        """The VM's code, with kernels between its instructions."""
        bound_mod, calls = bound(self.mod, self.values, self.entry), Calls(Externals(self.generators))
        # A function for another compiler is refused without a code generator: C has nobody else to ask.
        pool = Pool(
            bound_mod,
            lambda module, ways: lower_region(module, ways & {STATIC}, self.isa, calls),
            lambda function: bool(function.attrs.get("Compiler")),
        )
        number = translated(pool, [bound_mod.get_global_var(self.entry)])[self.entry]
        return self._analysed(pool, number, self.kernels(lambda n: _program(pool, n, self.isa), self.isa, self.threads, {}))

    def _analysed(self, pool: Pool, number: int, kernels: Kernels) -> Whole:
        instances = Instances(pool, kernels.program)
        entry = instances.instance(number, self.shapes, (), None)
        instances.analyse(entry)
        return Whole(kernels, instances, entry)


def inputs_left(function: Function, values: Collection[str]) -> tuple[list[str], list[Shape]]:
    """The names and shapes of a function's parameters without values. Raises `RelayError` (R0636) for other values than tensors."""
    names, shapes = [], []
    for name, param in zip(parameter_names(function.params), function.params):
        if param.name_hint in values:
            continue
        shape = shape_of(param.checked_type)
        if shape is None or not all(leaf.dtype in SIZES for leaf in leaves(shape)):
            what = f"the parameter %{param.name_hint} is no tensor of a known shape"
            raise refused(what, function, "state its extents in the program")
        names.append(name)
        shapes.append(shape)
    return names, shapes


def _program(pool: Pool, number: int, isa: Isa) -> tuple[Program, Sequence[Site]]:
    """The kernels of a region and their sites. Raises the `RelayError` that says why it has none."""
    code, module = pool.regions[number], pool.packed[number].module
    assert module is not None
    if code is not None:
        return code.program, code.sites(module)
    program = lower_module(module, "main", [], isa)
    return program, program.sites


def _graph(function: Function, program: Program, names: Sequence[str]) -> FunctionCode:
    """The code of a function that is one data-flow graph: it takes its tuples apart, and runs one kernel."""
    code = FunctionCode("@graph", node=function)
    numbers = {name: code.value(False) for name in names}
    code.params = len(names)
    inputs = []
    for name, _, path in program.inputs:
        if name not in numbers:
            raise RelayError(error("R0403", f"the constant {name} has no value", function.span))
        value = numbers[name]
        for place in path:
            part = code.value(False)
            code.emit("GetField", ("d", part), ("t", value), ("m", place), node=function)
            value = part
        inputs.append(("r", value))
    outputs = [code.value(False) for _ in program.outputs]
    code.emit("InvokePacked", ("p", 0), ("#", len(inputs)), ("#", len(outputs)), *inputs, *[("d", n) for n in outputs], node=function)
    code.emit("Ret", ("t", _whole(code, program.structure, outputs)))
    return code


def _whole(code: FunctionCode, structure: Any, outputs: list[int]) -> int:
    """The value of a structure of results; see `relaylang.runtime.manifest`."""
    values: dict[int, int] = {}
    stack = [structure]
    while stack:
        item = stack[-1]
        if not isinstance(item, list):
            values[id(item)] = outputs[item]
            stack.pop()
            continue
        waiting = [part for part in item if isinstance(part, list) and id(part) not in values]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        fields = [values[id(part)] if isinstance(part, list) else outputs[part] for part in item]
        values[id(item)] = code.value(False)
        code.emit("AllocTuple", ("d", values[id(item)]), ("#", len(fields)), *[("t", n) for n in fields])
    return values[id(structure)]
