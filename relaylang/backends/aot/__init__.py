"""Ahead of time: a program as one C file and a header, without an interpreter and without a runtime.

    program = compile_aot(mod, "c", static_memory=True, main=True)
    program.save("net.c")       # and net.h

A program without loops is one data-flow graph, as on the CPU backend. Any other program becomes the VM's code, whose
functions are printed as C (`instances`, `functions`). Branches and calls in tail position become C's own. All memory has
a known place in one workspace (`layout`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.backends.aot.file import AotEmitter, Face, Field, c_names, field_name
from relaylang.backends.aot.functions import Functions
from relaylang.backends.aot.instances import HINT, Instance, Instances, refused
from relaylang.backends.aot.kernels import ALIGN, Kernels
from relaylang.backends.aot.shapes import Known, Leaf, Shape, leaves, parts, shape_of
from relaylang.backends.cpu import threads_of
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.dtypes import SIZES
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import GENERIC, Isa
from relaylang.backends.cpu.linking import outsiders
from relaylang.backends.cpu.linking import parts as parts_of
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.schedule import Program
from relaylang.backends.cpu.schedule_space import schedule_of
from relaylang.backends.registry import parse_target, with_options
from relaylang.backends.target import Target
from relaylang.backends.vm.build import bound
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.kernels import lower_region
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import STATIC
from relaylang.backends.vm.translate import translated
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, Function, IRModule, parameter_names
from relaylang.runtime.aot import AotProgram
from relaylang.runtime.external import written
from relaylang.typing import check

__all__ = ["compile_aot"]

#: Options that say which instructions the C may use.
_MACHINE = ("march", "mcpu", "mattr", "cflags")


def compile_aot(mod: IRModule | Expr, target: str | Target = "c", params: Mapping[str, np.ndarray] | None = None,
                options: Mapping[str, Any] | None = None, entry: str = "main", *, name: str = "net", static_memory: bool = False,
                main: bool = False, external_weights: bool = False) -> AotProgram:  # fmt: skip
    """A function of a module, and all that it calls, as C.

    `name` begins the names in C. With `static_memory` the C calls no malloc. `main` adds a command line. With
    `external_weights` the constants are a file of their own. Raises `RelayError` (R0636 where a program needs a runtime).
    """
    targets = parse_target(target) if isinstance(target, str) else [target]
    first = with_options(targets[0], options) if options else targets[0]
    if first.name != "c":
        raise RelayError(error("R0602", f"C source is for the target c, not for {first.name}"))
    if first.get("profile"):
        raise RelayError(error("R0602", "option -profile is for libraries: C source keeps no times"))
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    check(mod)
    machine = any(first.get(key) for key in _MACHINE)
    isa = Compiler(first.options).isa if machine else GENERIC
    values = {key: np.asarray(value) for key, value in (params or {}).items()}
    threads = threads_of(first.options) or 1
    function = mod[entry]
    shapes = [_given(p.name_hint, p.checked_type, function) for p in function.params if p.name_hint not in values]

    def graph(unroll: bool) -> Whole:
        program = lower_module(mod, entry, values, isa, schedule_of(first.options), Calls(unroll=unroll))
        pool = Pool(mod, lambda module, ways: None)
        pool.codes.append(_graph(function, program, values))
        return _analysed(pool, 0, shapes, Kernels(lambda n: program, isa, threads, values))

    def loops() -> Whole:
        whole = bound(mod, values, entry)
        calls = Calls()
        pool = Pool(whole, lambda module, ways: lower_region(module, ways & {STATIC}, isa, calls))
        number = translated(pool, [whole.get_global_var(entry)])[entry]
        return _analysed(pool, number, shapes, Kernels(lambda n: _program(pool, n, isa), isa, threads, {}))

    # A graph has the best kernels. Loops stay loops where they can.
    kernels, instances, whole = _first(("R0632", lambda: graph(False)), ("R0636", loops), ("R0632", lambda: graph(True)))
    assert whole.group is not None
    if any(isinstance(token, Known) for token in whole.group.result):
        raise refused(f"@{entry} gives a function", function)
    kernels.prepare()
    outside = outsiders(kernels.programs.values())
    for op, span in outside:
        if op.code.kind not in ("c", "object"):
            form = "a Python function" if op.code.kind == "python" else "bytes for a loader in Python"
            title = f"C source cannot call the code of {op.region.compiler} for {op.region.symbol}: it is {form}"
            raise RelayError(error("R0636", title, span, notes=["its code generator may give C text or object code", HINT]))
    c_name = c_names([name])[0]
    functions = Functions(kernels, c_name.upper())
    texts = functions.write(instances.groups, whole)
    weights = bytes(kernels.weights.content)
    digest = hashlib.sha256(weights).digest()[:ALIGN]
    inputs, outputs = _inputs(function, shapes, values), _outputs(whole.group.result)
    face = Face(c_name, entry, inputs, outputs, static_memory, external_weights, functions.made[whole].frame, len(weights),
                digest, threads)  # fmt: skip
    source = AotEmitter(isa, kernels, texts, face).source(functions.made[whole], f"@{entry}, made by relaylang", main)
    return AotProgram(
        c_name, source, face.header(), digest.ljust(ALIGN, b"\0") + weights if external_weights else b"",
        [(f.relay, f.path, f.leaf.dims, f.leaf.dtype) for f in inputs], [(f.leaf.dims, f.leaf.dtype) for f in outputs],
        _structure(whole.group.result), face.workspace, partial(_library, first),
        {f"{c_name}_external{Path(part).name}": content for part, content in written(parts_of(outside)).items()},
        [(op.region.symbol, op.region.compiler) for op, _ in outside], len(weights),
    )  # fmt: skip


#: A program's kernels, its instances, and that of its entry.
Whole = tuple[Kernels, Instances, Instance]


def _analysed(pool: Pool, number: int, shapes: list[Shape], kernels: Kernels) -> Whole:
    instances = Instances(pool, kernels.program)
    whole = instances.instance(number, shapes, (), None)
    instances.analyse(whole)
    return kernels, instances, whole


def _first(*ways: tuple[str, Callable[[], Whole]]) -> Whole:
    """What the first way makes that is not refused with its code. Raises the `RelayError` (R0636) of the second."""
    refusals = []
    for code, make in ways:
        try:
            return make()
        except RelayError as problem:
            if problem.diagnostics[0].code != code:
                raise
            refusals.append(problem)
    raise refusals[1] from None


def _library(target: Target, text: str, externals: Mapping[str, bytes]) -> bytes:
    """A library of C, with the code of other compilers in files."""
    compiler = Compiler(target.options)
    objects = {f"{Path(name).stem}.o": compiler.object(content.decode()) if name.endswith(".c") else content
               for name, content in externals.items()}  # fmt: skip
    return compiler.compile([text], text, target.get("keep-c"), objects)


def _program(pool: Pool, number: int, isa: Isa) -> Program:
    """The kernels of a region. Raises the `RelayError` that says why it has none."""
    code, module = pool.regions[number], pool.packed[number].module
    assert module is not None
    return code.program if code is not None else lower_module(module, "main", [], isa)


def _graph(function: Function, program: Program, values: Mapping[str, Any]) -> FunctionCode:
    """The code of a function that is one data-flow graph: it takes its tuples apart, and runs one kernel."""
    names = [n for n, p in zip(parameter_names(function.params), function.params) if p.name_hint not in values]
    code = FunctionCode("@graph", node=function)
    numbers = {name: code.value(False) for name in names}
    code.params = len(names)
    inputs = []
    for name, _, path in program.inputs:
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
    made: dict[int, int] = {}
    stack = [structure]
    while stack:
        item = stack[-1]
        if not isinstance(item, list):
            made[id(item)] = outputs[item]
            stack.pop()
            continue
        waiting = [part for part in item if isinstance(part, list) and id(part) not in made]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        fields = [made[id(part)] if isinstance(part, list) else outputs[part] for part in item]
        made[id(item)] = code.value(False)
        code.emit("AllocTuple", ("d", made[id(item)]), ("#", len(fields)), *[("t", n) for n in fields])
    return made[id(structure)]


def _given(name: str, ty: Any, function: Function) -> Shape:
    shape = shape_of(ty)
    if shape is None or not all(leaf.dtype in SIZES for leaf in leaves(shape)):
        raise refused(f"the parameter %{name} is no tensor of a known shape", function, "state its extents in the program")
    return shape


def _inputs(function: Function, shapes: list[Shape], values: Mapping[str, Any]) -> list[Field]:
    names = [n for n, p in zip(parameter_names(function.params), function.params) if p.name_hint not in values]
    found = [(name, path, leaf) for name, shape in zip(names, shapes) for path, leaf in _paths(shape)]
    fields = c_names(field_name(name, path) for name, path, _ in found)
    return [Field(field, name, path, leaf) for field, (name, path, leaf) in zip(fields, found)]


def _outputs(shape: Shape) -> list[Field]:
    found = leaves(shape)
    names = ["output"] if len(found) == 1 else [f"output{n}" for n in range(len(found))]
    return [Field(name, "", (), leaf) for name, leaf in zip(names, found)]


def _paths(shape: Shape) -> list[tuple[tuple[int, ...], Leaf]]:
    """The tensors of a shape, each with its place in the tuples."""
    out: list[tuple[tuple[int, ...], Leaf]] = []
    stack: list[tuple[tuple[int, ...], Shape]] = [((), shape)]
    while stack:
        path, item = stack.pop()
        if isinstance(item[0], Leaf):
            out.append((path, item[0]))
        else:
            stack += reversed([((*path, n), part) for n, part in enumerate(parts(item))])
    return out


def _structure(shape: Shape) -> Any:
    """The number of an output, or a list of structures."""
    count = 0
    top: list[Any] = []
    stack = [(top, 1)]
    for token in shape:
        while stack[-1][1] == 0:
            stack.pop()
        into, left = stack.pop()
        stack.append((into, left - 1))
        if isinstance(token, Leaf):
            into.append(count)
            count += 1
        else:
            into.append([])
            stack.append((into[-1], token.parts))
    return top[0]
