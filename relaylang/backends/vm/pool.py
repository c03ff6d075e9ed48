"""The tables of a program while it is made: functions, constants, constructors, tensor types, kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import unsupported
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.kernels import NoCode, RegionCode
from relaylang.backends.vm.loops import counted_loops, ways_of_loop
from relaylang.backends.vm.regions import BROADCASTING, STATIC, alone
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Constructor, Expr, Function, GlobalVar, IRModule, Let, TensorType, post_order, rewrite
from relaylang.ir.typed import retype, typed
from relaylang.passes.normal_forms.extents_as_operands import extents_as_operands
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.runtime.external import find
from relaylang.runtime.vm.program import Packed, Spec

#: Compiles a region, given as a module, in one of some ways, or says why that cannot be.
Lower = Callable[[IRModule, frozenset[str]], RegionCode | NoCode]


def has_generator(function: Function) -> bool:
    """Whether a function is for another compiler whose code generator is here."""
    compiler = function.attrs.get("Compiler")
    return bool(compiler) and find(str(compiler)) is not None


class Pool:
    """The tables of a program, and the functions that wait for translation.

    `is_outside` tells which functions another compiler takes. The VM has the others itself, those of a compiler without a
    code generator too.
    """

    def __init__(self, mod: IRModule, lower: Lower, is_outside: Callable[[Function], bool] = has_generator) -> None:
        self.mod = mod
        self.lower = lower
        self._is_outside = is_outside
        self.codes: list[FunctionCode] = []
        self.numbers: dict[GlobalVar, int] = {}
        self.waiting: list[tuple[Function, FunctionCode]] = []
        self.constants: list[np.ndarray] = []
        self.constructors: list[Constructor] = []
        self.specs: list[Spec] = []
        self.packed: list[Packed] = []
        #: The code of each kernel; None where the interpreter computes it.
        self.regions: list[RegionCode | None] = []
        #: Functions of other compilers, by their names; some get one here.
        self.partitions: dict[GlobalVar, Function] = {}
        self._known: dict[Any, int] = {}

    def _number(self, key: Any, table: list[Any], value: Any) -> int:
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(table)
            table.append(value)
        return number

    def constant(self, data: np.ndarray) -> int:
        return self._number(("constant", id(data)), self.constants, data)

    def constructor(self, made: Constructor) -> int:
        return self._number(("constructor", made.belong_to.name_hint, made.tag), self.constructors, made)

    def spec(self, ty: TensorType) -> int:
        spec = (ty.dtype, tuple(int(d) for d in ty.shape))  # type: ignore[arg-type]
        return self._number(("spec", spec), self.specs, spec)

    def kernel(self, packed: Packed, code: RegionCode | None) -> int:
        """The number of a kernel. Another one behind it takes over where extents broadcast that the kernel takes to be equal."""
        number = len(self.packed)
        self.packed.append(packed)
        self.regions.append(code)
        if code is not None and code.shapes is not None:
            assert packed.module is not None
            other = self.lower(packed.module, frozenset({BROADCASTING}))
            if isinstance(other, RegionCode):
                packed.other = len(self.packed)
                self.packed.append(Packed(packed.inputs, packed.outputs, packed.count, module=packed.module))
                self.packed[-1].shares = other.prepares_like(code)
                self.regions.append(other)
        return number

    def function(self, name: GlobalVar) -> int:
        """The number of a module's function, which is translated in its turn."""
        if name.name_hint not in self.mod:
            raise RelayError(error("R0403", f"there is no function @{name.name_hint}", name.span))
        name = self.mod.get_global_var(name.name_hint)
        if name not in self.numbers:
            function = self.mod[name]
            if function.body is None:
                raise unsupported(f"@{name.name_hint} has no body", function)
            self.numbers[name] = len(self.codes)
            code = self.code(f"@{name.name_hint}", function)
            anf = convert(self._lifted(extents_as_operands(function)), let_results=False, enter_primitive=True)
            assert isinstance(anf, Function)
            self.waiting.append((anf, code))
        return self.numbers[name]

    def outside(self, callee: Expr) -> Function | None:
        """The function of another compiler that a call is of, if there is a code generator for it."""
        if not isinstance(callee, GlobalVar):
            return None
        if callee in self.partitions:
            return self.partitions[callee]
        if callee.name_hint not in self.mod:
            return None
        callee = self.mod.get_global_var(callee.name_hint)
        if callee in self.partitions:
            return self.partitions[callee]
        function = self.mod[callee]
        if not self._is_outside(function):
            return None
        if "global_symbol" not in function.attrs:
            function = function.with_attr("global_symbol", callee.name_hint)
        return self.partitions.setdefault(callee, function)

    def _inside(self, name: str) -> Function | None:
        """The function of a name, where it is compiled here."""
        function = self.mod[name] if name in self.mod else None
        return function if function is not None and function.body is not None and not self._is_outside(function) else None

    def _lifted(self, function: Function) -> Function:
        """The function with names for what regions take whole: functions of other compilers inside it, and counted loops."""
        if not any(isinstance(node, (Function, GlobalVar)) for node in post_order(function.body)):
            return function

        loops = counted_loops(function, self._inside)
        replaced: set[Expr] = set()

        def named(old: Expr, new: Expr) -> Expr:
            if isinstance(old, Call) and old in loops:
                assert isinstance(new, Call)
                loop, inputs = loops[old].function, [x for x in new.args if not isinstance(x, Constant)]
                call = typed(Call(loop, [*inputs, *loop.params[len(inputs) :]], None, (), old.span), loop.body.checked_type)
                ways = ways_of_loop(loop)
                if STATIC in ways or isinstance(self.lower(alone(call), ways), RegionCode):
                    name = typed(GlobalVar(f"(loop {len(self.partitions)})"), loop.checked_type)
                    self.partitions[name] = loop
                    replaced.add(old.op)
                    return loops[old].value(retype(Call(name, call.args, None, (), old.span), call))
            if isinstance(old, Let) and old.variable in replaced:
                assert isinstance(new, Let)
                return new.body
            if not (isinstance(old, Function) and old is not function and self._is_outside(old)):
                return retype(new, old)
            name = typed(GlobalVar(f"(partition {len(self.partitions)})"), old.checked_type)
            self.partitions[name] = old
            return name

        named_function = rewrite(function, named)
        assert isinstance(named_function, Function)
        return named_function

    def code(self, name: str, node: Function | None) -> FunctionCode:
        code = FunctionCode(name, node=node)
        self.codes.append(code)
        return code

    def is_only(self, made: Constructor) -> bool:
        """Whether a type has no other constructor."""
        definition = self.mod.type_definitions.get(made.belong_to)
        return definition is not None and len(definition.constructors) == 1

    def builder(self, made: Constructor) -> int:
        """The number of a function that applies a constructor."""
        key = ("builder", made.belong_to.name_hint, made.tag)
        if key not in self._known:
            self._known[key] = len(self.codes)
            code = self.code(made.name_hint, None)
            code.params = len(made.inputs)
            operands = [("t", code.value(False)) for _ in made.inputs]
            adt = code.value(False)
            code.emit("AllocADT", ("d", adt), ("g", self.constructor(made)), ("#", len(operands)), *operands)
            code.emit("Ret", ("t", adt))
        return self._known[key]
