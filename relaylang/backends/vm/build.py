"""From a module to a program of the VM and its library."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.linking import objects, outsiders, parts, records
from relaylang.backends.target import Target
from relaylang.backends.vm.code import placed
from relaylang.backends.vm.kernels import NoCode, RegionCode, lower_region
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import is_static, specs_of
from relaylang.backends.vm.scalars import rows
from relaylang.backends.vm.source import ProgramEmitter
from relaylang.backends.vm.translate import translated
from relaylang.diagnostics.source import Span
from relaylang.ir import Call, Constant, Expr, Function, GlobalVar, IRModule, TensorType, Type, Var, children, rewrite, structural_hash
from relaylang.ir.typed import typed_var
from relaylang.ops.record import Op
from relaylang.passes.analysis import free_type_vars
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.instructions import NUMBERS
from relaylang.runtime.vm.program import VMFunction, VMProgram
from relaylang.typing import check

#: Constants of so many elements do not stand in the text of a kernel.
_LARGE = 64


def make_program(mod: IRModule, target: Target, entries: Sequence[str], native: bool = True) -> VMExecutable:
    """The program of some functions and all that they call. Without `native` the interpreter computes the tensors.

    Raises `RelayError`.
    """
    options = target.options
    check(mod)
    compiler, calls = Compiler(options), Calls()
    known: dict[tuple[Any, ...], RegionCode | NoCode] = {}

    def lower(region: IRModule, ways: Collection[str]) -> RegionCode | NoCode:
        """The kernels of a region; regions that are the same program share them."""
        if not native:
            return NoCode("the program is compiled without kernels")
        if len(region.functions) > 1:
            return lower_region(region, ways, compiler.isa, calls)
        main = region["main"]
        key = structural_hash(main), repr(main.body.checked_type), frozenset(ways)
        if key not in known:
            known[key] = lower_region(region, ways, compiler.isa, calls)
        return known[key]

    pool = Pool(mod, lower)
    numbers = translated(pool, [mod.get_global_var(name) for name in entries])
    # Values of constructors that the code does not use may pass through it.
    for definition in mod.type_definitions.values():
        for constructor in definition.constructors:
            pool.constructor(constructor)
    regions: list[RegionCode] = []
    interfaces = []
    region_numbers: dict[int, int] = {}
    weights = _Weights()
    for packed, region_code in zip(pool.packed, pool.regions):
        if region_code is not None:
            code, shapes = region_code.program, region_code.shapes
            packed.region = region_numbers.setdefault(id(region_code), len(regions))
            packed.arena = code.arena_bytes if shapes is None else code.prepare_bytes
            packed.fixed, packed.fails = code.fixed_bytes, code.may_fail
            packed.weights = tuple([weights.number(code.constants[name]) for name, _ in code.params])
            assert packed.module is not None
            packed.sites = tuple(region_code.sites(packed.module))
            packed.takes = specs_of(packed.module["main"].params)
            packed.sizes = 0 if shapes is None else len(shapes.sizes)
            packed.why = () if shapes is None else shapes.conditions(packed.takes)
            if packed.region == len(regions):
                regions.append(region_code)
                interfaces.append(packed.interface)
            if shapes is None:
                packed.module = None
                continue
        packed.module, packed.constants = weights.without(packed.module)
    scalars = [(row.name, len(row.operands)) for row in rows()]
    opcodes = {**NUMBERS, **{row.name: row.number for row in rows()}}
    functions: list[VMFunction] = []
    entry_numbers = set(numbers.values())
    words: list[int] = []
    offsets: list[int] = []
    spans: list[Span | None] = []
    for body in pool.codes:
        body_code = placed(body, opcodes)
        start = len(words)
        for at in body_code.jumps:
            body_code.words[at] += start
        offsets += [start + at for at, _ in body_code.nodes]
        spans += [_span(node) for _, node in body_code.nodes]
        words += body_code.words
        span = body.node.span if body.node is not None else None
        functions.append(
            VMFunction(
                body.name,
                start,
                len(words),
                body.params,
                body.captured,
                body_code.generals,
                body_code.registers,
                span,
                _types(body.node, len(functions) in entry_numbers),
            )
        )
    threads = options.get("num-threads") != 1
    emitter = ProgramEmitter(compiler.isa, threads and bool(regions), regions, interfaces)
    units = [emitter.loop(), *emitter.units(None)]  # type: ignore[arg-type]
    text = emitter.everything("made by relaylang")
    outside = outsiders(region.program for region in regions)
    library = compiler.compile(units, text, options.get("keep-c"), objects(outside, compiler))
    program = VMProgram(
        np.asarray(words, np.int32),
        functions,
        pool.constants,
        pool.constructors,
        pool.specs,
        pool.packed,
        weights.arrays,
        scalars,
        dict(numbers),
        {name: mod[name] for name in numbers},
        mod,
        np.asarray(offsets, np.int64),
        spans,
        str(target),
        records(outside),
    )
    features, functions_of_python = sorted(compiler.isa.features), [op.code.call for op, _ in outside]
    return VMExecutable(
        program, library, text, compiler.machine, features, options.get("num-threads"), parts(outside), functions_of_python
    )


class _Weights:
    """The weights of a program, each once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int] = {}
        #: modules without large constants, by the ids of those with them, which stay so that no others get these
        self._left: dict[int, tuple[IRModule, tuple[IRModule, tuple[int, ...]]]] = {}

    def number(self, array: np.ndarray) -> int:
        number = self._numbers.setdefault(id(array), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(array)
        return number

    def without(self, module: IRModule | None) -> tuple[IRModule, tuple[int, ...]]:
        """A kernel's module with parameters behind its own for large constants, and the numbers of these."""
        assert module is not None
        if id(module) not in self._left:
            self._left[id(module)] = module, self._without(module)
        return self._left[id(module)][1]

    def _without(self, module: IRModule) -> tuple[IRModule, tuple[int, ...]]:
        function = module["main"]
        parameters: dict[int, Var] = {}

        def taken(old: Expr, new: Expr) -> Expr:
            if not isinstance(new, Constant) or new.data.size < _LARGE:
                return new
            ty = TensorType(new.data.shape, new.dtype)
            return parameters.setdefault(self.number(new.data), typed_var(f"c{len(parameters)}", ty))

        body = rewrite(function.body, taken)
        if not parameters:
            return module, ()
        plain = Function([*function.params, *parameters.values()], body)
        mod = IRModule.from_expr(Function(plain.params, body, type_params=free_type_vars(plain)))
        check(mod)
        return mod, tuple(parameters)


def _types(node: Expr | None, keep_all: bool) -> tuple[Type | None, ...]:
    """The types of a function's parameters; without `keep_all`, those of tensors alone, which files keep."""
    types = [p.checked_type or p.type_annotation for p in node.params] if isinstance(node, Function) else []
    return tuple(ty if keep_all or (isinstance(ty, TensorType) and is_static(ty)) else None for ty in types)


def _span(node: Expr | None) -> Span | None:
    """The place of a node, or of the first part that has one."""
    for _ in range(4):
        if node is None or node.span is not None:
            return node.span if node is not None else None
        inner = children(node) if isinstance(node, (Call, Function)) else ()
        node = next((c for c in inner if not isinstance(c, (Op, GlobalVar, Constant))), None)
    return None
