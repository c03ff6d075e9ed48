"""From a module to a program of the VM and its library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.target import Target
from relaylang.backends.vm.code import placed
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import is_static, lower_region
from relaylang.backends.vm.scalars import rows
from relaylang.backends.vm.source import ProgramEmitter
from relaylang.backends.vm.translate import translated
from relaylang.diagnostics.source import Span
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    MetaRef,
    TensorType,
    Type,
    Var,
    children,
    rewrite,
    substitute,
)
from relaylang.ir.typed import typed_constant
from relaylang.ops.record import Op
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.instructions import NUMBERS
from relaylang.runtime.vm.program import VMFunction, VMProgram
from relaylang.typing import check


def bound(mod: IRModule, params: Mapping[str, Any], entry: str) -> IRModule:
    """The module with values in place of parameters of the entry function, and of its missing constants, by name."""
    if not params:
        return mod
    function = mod[entry]
    values: dict[Var, Expr] = {}
    left = []
    for param in function.params:
        if param.name_hint in params:
            values[param] = typed_constant(np.asarray(params[param.name_hint]))
        else:
            left.append(param)
    body = substitute(function.body, values)

    def filled(old: Expr, new: Expr) -> Expr:
        return typed_constant(np.asarray(params[new.name_hint])) if isinstance(new, MetaRef) and new.name_hint in params else new

    body = rewrite(body, filled)
    made = Function(left, body, function.ret_type, function.type_params, function.attrs, function.span)
    new = mod.with_functions({**mod.functions, mod.get_global_var(entry): made})
    check(new)
    return new


def make_program(mod: IRModule, target: Target, entries: Sequence[str], native: bool = True) -> VMExecutable:
    """The program of some functions and all that they call. Without `native` the interpreter computes the tensors.

    Raises `RelayError`.
    """
    options = target.options
    check(mod)
    pool = Pool(mod)
    numbers = translated(pool, [mod.get_global_var(name) for name in entries])
    compiler = Compiler(options)
    regions: list[Any] = []
    weights: list[np.ndarray] = []
    for packed in pool.packed:
        program = lower_region(packed.module, compiler.isa) if packed.outputs and native else None  # type: ignore[arg-type]
        if program is None:
            packed.outputs = ()
            continue
        packed.region, packed.module = len(regions), None
        packed.arena, packed.fixed = program.arena_bytes, program.fixed_bytes
        packed.weights = tuple(range(len(weights), len(weights) + len(program.params)))
        weights += [program.constants[name] for name, _ in program.params]
        regions.append(program)
    scalars = [(row.name, len(row.operands)) for row in rows()]
    opcodes = {**NUMBERS, **{row.name: row.number for row in rows()}}
    functions: list[VMFunction] = []
    entry_numbers = set(numbers.values())
    words: list[int] = []
    offsets: list[int] = []
    spans: list[Span | None] = []
    for code in pool.codes:
        found = placed(code, opcodes)
        start = len(words)
        for at in found.jumps:
            found.words[at] += start
        offsets += [start + at for at, _ in found.nodes]
        spans += [_span(node) for _, node in found.nodes]
        words += found.words
        span = code.node.span if code.node is not None else None
        functions.append(
            VMFunction(
                code.name, start, len(words), code.params, code.captured, found.generals, found.registers, span,
                _types(code.node, len(functions) in entry_numbers),
            )
        )
    threads = options.get("num-threads") != 1
    emitter = ProgramEmitter(compiler.isa, threads and bool(regions), regions)
    units = [emitter.loop(), *emitter.units(None)]  # type: ignore[arg-type]
    text = emitter.everything("made by relaylang")
    library = compiler.compile(units, text, options.get("keep-c"))
    made = VMProgram(
        np.asarray(words, np.int32), functions, pool.constants, pool.constructors, pool.specs, pool.packed, weights, scalars,
        dict(numbers), {name: mod[name] for name in numbers}, mod, np.asarray(offsets, np.int64), spans, str(target),
    )  # fmt: skip
    return VMExecutable(made, library, text, compiler.machine, sorted(compiler.isa.features), options.get("num-threads"))


def _types(node: Expr | None, whole: bool) -> tuple[Type | None, ...]:
    """The types of a function's parameters; without `whole`, those of tensors alone, which files keep."""
    types = [p.checked_type or p.type_annotation for p in node.params] if isinstance(node, Function) else []
    return tuple(ty if whole or (isinstance(ty, TensorType) and is_static(ty)) else None for ty in types)


def _span(node: Expr | None) -> Span | None:
    """The place of a node, or of the first part that has one."""
    for _ in range(4):
        if node is None or node.span is not None:
            return node.span if node is not None else None
        inner = children(node) if isinstance(node, (Call, Function)) else ()
        node = next((c for c in inner if not isinstance(c, (Op, GlobalVar, Constant))), None)
    return None
