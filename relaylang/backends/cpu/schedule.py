"""From a fused expression to instructions on memory slots.

A slot is one tensor in memory. Values that depend on bound parameters and constants alone (packed weights, folded
normalisations) go into the `prepare` list. It runs once, when the artifact is loaded. The other values go into the
`run` list, and so do those of extents that are known only in a run. The branches of an `if` have lists of their own.
Values that both branches need, or a branch and the rest, are computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeGuard

import numpy as np

from relaylang.backends.cpu.external import ExternalOp, opaque_of
from relaylang.backends.cpu.kernel import Kernel, nbytes, static_shape, tensor_types, unsupported
from relaylang.backends.cpu.lowering import Part, flat
from relaylang.backends.cpu.program import Branch, Copy, Instruction, Outside, PackIn, Place, Program, Run, Slot, Turns, View
from relaylang.backends.cpu.turns import LoopOp
from relaylang.backends.cpu.views import Key, Plan, numbers_of
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    If,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    rewrite,
)
from relaylang.ir.scopes import Scope, common
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import is_contiguous
from relaylang.kernels.sizes import Size, has_sizes
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.fusion.fuse_ops import is_closed

#: In so many kernels of a program, constant scalars stand in the code. In further ones they are parameters, so that
#: kernels which differ in their constants alone are compiled once.
SPECIALISED = 150


def _reads_sizes(item: Instruction) -> bool:
    """Whether the code of a kernel, or of what packs its weights, has extents that are known only in a run."""
    if isinstance(item, PackIn):
        return any(has_sizes((*buf.shape, *buf.strides)) for buf in (*item.pack.sources, item.pack.target))
    for node in post_order(item.function.body) if isinstance(item, Run) else ():
        attributes = (
            [getattr(node.attrs, name) for name in node.attrs.keys()] if isinstance(node, Call) and node.attrs is not None else []
        )
        while attributes:
            value = attributes.pop()
            if isinstance(value, Size):
                return True
            attributes += value if isinstance(value, tuple) else ()
        if isinstance(node.checked_type, TensorType) and has_sizes(node.checked_type.shape):  # type: ignore[arg-type]
            return True
    return False


class _Scope(Scope):
    """A block of instructions: the program's, or a branch's."""

    __slots__ = ("items",)

    def __init__(self, parent: _Scope | None = None) -> None:
        super().__init__(parent)
        self.items: list[Instruction] = []


def _order(expr: Expr) -> list[Expr]:
    """Every node once, children first, kernels as leaves."""
    out: list[Expr] = []
    done: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            out.append(node)
            continue
        if id(node) in done or isinstance(node, Function):
            continue
        done.add(id(node))
        stack.append((node, True))
        stack.extend((c, False) for c in reversed(children(node)))
    return out


#: Lowers a function: `lower(function, numbers, given, wanted, done)`, as `lowering.lower_function` has them.
Lower = Callable[..., Kernel]


def make_program(
    function: Function,
    bound: Collection[str],
    lower: Lower,
    describe: Callable[[Function], str],
    nested: Callable[[Function], Program],
) -> Program:
    """The instructions of a fused function. `bound` names the parameters whose values are known when it is loaded.

    `nested` makes the program of a function, which is a loop's turn.
    """
    return _Maker(bound, lower, describe, nested).make(function)


class _Maker:
    def __init__(
        self, bound: Collection[str], lower: Lower, describe: Callable[[Function], str], nested: Callable[[Function], Program]
    ) -> None:
        self.bound = bound
        self.nested = nested
        self.lower = lower
        self.describe = describe
        self.program = Program()
        self.root = _Scope()
        self.fixed: set[int] = set()
        self.packed: dict[tuple[Any, ...], Slot] = {}
        self.places: dict[int, Place] = {}
        self.scopes: dict[int, _Scope] = {}
        self.bases: dict[Key, Slot] = {}
        self.made = 0
        self.kernels = 0

    def make(self, function: Function) -> Program:
        for param in function.params:
            self.places[id(param)] = self._param(param)
        order = _order(function.body)
        branches: dict[int, tuple[_Scope, _Scope]] = {}
        self.scopes[id(function.body)] = self.root
        for node in reversed(order):
            scope = self.scopes[id(node)]
            inner = [scope] * len(children(node))
            if isinstance(node, If):
                branches[id(node)] = (_Scope(scope), _Scope(scope))
                inner = [scope, *branches[id(node)]]
            for child, where in zip(children(node), inner):
                known = self.scopes.get(id(child))
                self.scopes[id(child)] = where if known is None else common(known, where)
        self.plan = Plan(order, function.body, self.scopes, self.bound, self.lower)
        for node in order:
            self._node(node, branches)
        self._outputs(function.body)
        program = self.program
        program.run = self.root.items
        return program

    def _slot(self, kind: str, shape: Sequence[int], dtype: str) -> Slot:
        if kind == "made":
            self.made += 1
            return Slot(kind, self.made, shape, dtype)
        table = self.program.params if kind == "param" else self.program.inputs
        return Slot(kind, len(table), shape, dtype)

    def _param(self, param: Var) -> Place:
        ty = param.checked_type or param.type_annotation
        kind = "param" if param.name_hint in self.bound else "input"

        def build(ty: Type | None, path: list[int]) -> Place:
            if isinstance(ty, TupleType):
                return [build(f, [*path, n]) for n, f in enumerate(ty.fields)]
            shape = static_shape(ty, param)
            assert isinstance(ty, TensorType)
            slot = self._slot(kind, shape, ty.dtype)
            if kind == "param":
                self.program.params.append((param.name_hint, ty))
                self.fixed.add(id(slot))
            else:
                self.program.inputs.append((param.name_hint, ty, path))
            return View(slot, shape)

        return build(ty, [])

    def _constant(self, node: Constant) -> View:
        ty = TensorType(node.data.shape, node.dtype)
        shape = static_shape(ty, node)
        name = f"constant:{len(self.program.constants)}"
        self.program.constants[name] = np.asarray(node.data, order="C")
        slot = self._slot("param", shape, node.dtype)
        self.program.params.append((name, ty))
        self.fixed.add(id(slot))
        return View(slot, shape)

    def _place(self, node: Expr) -> Place:
        """Where a value is; a constant gets its place when it is first asked for."""
        if isinstance(node, Constant) and id(node) not in self.places:
            self.places[id(node)] = self._constant(node)
        return self.places[id(node)]

    def _new(self, node: Expr) -> Place:
        """The memory of a value: fresh slots, or where the plan puts it."""
        count = 0

        def build(ty: Type | None) -> Place:
            nonlocal count
            if isinstance(ty, TupleType):
                return [build(f) for f in ty.fields]
            shape = static_shape(ty, node)
            assert isinstance(ty, TensorType)
            count += 1
            home = self.plan.homes.get((id(node), count - 1))
            if home is None:
                return View(self._slot("made", shape, ty.dtype), shape)
            if home.base not in self.bases:
                self.bases[home.base] = self._slot("made", self.plan.shapes[home.base], ty.dtype)
            return View(self.bases[home.base], shape, home.start, home.strides)

        return build(node.checked_type)

    def _put(self, scope: _Scope, item: Instruction) -> None:
        """Append an instruction: to the prepare list where all that it is given is fixed.

        Some of that is not read: parts of a result that lie in their place. What may fail belongs to a run, which reports it.
        """
        inputs = [v.slot for v in item.inputs] if isinstance(item, Run) else []
        fails = isinstance(item, (Branch, Outside, Turns)) or (isinstance(item, Run) and item.kernel.sites)
        fixed = not fails and all(id(s) in self.fixed for s in [*inputs, *item.reads()])
        if fixed and not _reads_sizes(item):
            self.program.prepare.append(item)
            self.fixed.update(id(s) for s in item.outputs)
        else:
            scope.items.append(item)

    def _node(self, node: Expr, branches: dict[int, tuple[_Scope, _Scope]]) -> None:
        scope = self.scopes[id(node)]
        place: Place
        match node:
            case Var():
                if id(node) not in self.places:
                    raise unsupported(f"the variable %{node.name_hint} has no value", node)
                return
            case Constant():
                return
            case Tuple(fields):
                place = [self._place(f) for f in fields]
            case TupleGetItem(tuple_value, index):
                field_places = self._place(tuple_value)
                assert isinstance(field_places, list)
                place = field_places[index]
            case If(cond):
                place = self._new(node)
                for value, inner in zip((node.true_branch, node.false_branch), branches[id(node)]):
                    for source, target in zip(flat(self._place(value)), flat(place)):
                        inner.items.append(Copy(source, target.slot))
                test = flat(self._place(cond))[0]
                outputs = [v.slot for v in flat(place)]
                scope.items.append(Branch(test, branches[id(node)][0].items, branches[id(node)][1].items, outputs))
            case Call(op, args) if isinstance(op, Function) and is_closed(op):
                place = self._kernel(node, op, args, scope)
            case _:
                raise unsupported(f"{type(node).__name__} cannot be compiled", node)
        self.places[id(node)] = place

    def _outside(self, node: Call, op: ExternalOp, function: Function, args: Sequence[Expr], scope: _Scope) -> Place:
        """Call external code."""
        assert isinstance(function.body, Call)
        inputs = self._dense_operands(function, args, scope)
        place = self._new(node)
        if id(op) not in self.program.places:
            self.program.externals.append(op)
            self.program.places[id(op)] = function.body.span or node.span
        work = Slot("made", 0, (op.code.workspace,), "uint8") if op.code.workspace else None
        self._put(scope, Outside(op, inputs, flat(place), work, function))
        return place

    def _dense_operands(self, function: Function, args: Sequence[Expr], scope: _Scope) -> list[View]:
        """The operands of an operator with code of its own; tensors that do not lie dense are copied before."""
        by_param = dict(zip(function.params, args))
        assert isinstance(function.body, Call)
        inputs = []
        for arg in function.body.args:
            view = flat(self._place(by_param[arg] if isinstance(arg, Var) else arg))[0]
            inputs.append(view if is_contiguous(view.shape, view.strides) else self._dense(view, scope))
        return inputs

    def _dense(self, view: View, scope: _Scope) -> View:
        """A copy of a view, in memory of its own."""
        ty = TensorType(view.shape, view.slot.dtype)
        param = typed_var("x", ty)
        function = typed(Function([param], op_call("copy", [param], ty), ty, (), {"Primitive": 1}), FuncType([ty], ty))
        kernel = self.lower(function, {}, [view.strides])
        copy = View(self._slot("made", view.shape, view.slot.dtype), view.shape)
        self._put(scope, Run(kernel, [view], [copy], [], self.describe(function), function))
        return copy

    def _kernel(self, node: Call, function: Function, args: Sequence[Expr], scope: _Scope) -> Place:
        own = opaque_of(function)
        if isinstance(own, ExternalOp):
            return self._outside(node, own, function, args, scope)
        if isinstance(own, LoopOp):
            results = self._new(node)
            self._put(scope, Turns(own, self.nested(own.body), self._dense_operands(function, args, scope), flat(results), function))
            return results
        numbers = numbers_of(node)
        inputs: list[View] = flat([self._place(a) for p, a in zip(function.params, args) if p not in numbers])
        selections = self.plan.seen(node, [v.strides for v in inputs])
        if selections is not None:
            views = [inputs[part.param] for part in selections]
            types = tensor_types(node.checked_type, node)
            parts = [View(v.slot, t.shape, v.start + p.start, p.strides) for v, t, p in zip(views, types, selections)]  # type: ignore[arg-type]
            return parts if isinstance(node.checked_type, TupleType) else parts[0]
        done: set[int] = set()
        place: Place | None = None
        if id(node) in self.plan.parts:
            place = self._new(node)
            done = _in_place(self.plan.parts[id(node)], inputs, flat(place)[0])
            if len(done) == len(self.plan.parts[id(node)]):
                return place
        self.kernels += 1
        # Quantised arithmetic is made for its scales: its code depends on its constants.
        if self.kernels > SPECIALISED and not _is_quantised(function):
            function, args = _with_open_numbers(function, args)
            numbers = {}
            inputs = flat([self._place(a) for a in args])
        kernel = self.lower(function, numbers, [v.strides for v in inputs], self.plan.wanted(node), done)
        place = place or self._new(node)
        results = flat(place)
        run = Run(kernel, inputs, results, self._packs(kernel, inputs, scope), self.describe(function), function)
        if kernel.work:
            run.work = Slot("made", 0, (sum(nbytes(b) for b in kernel.work),), "uint8")
        self._put(scope, run)
        return place

    def _packs(self, kernel: Kernel, inputs: Sequence[View], scope: _Scope) -> list[Slot]:
        """The slots of a kernel's packed weights; equal ones are packed once."""
        by_name = {p.name: v for p, v in zip(kernel.params, inputs)}
        packs = []
        for pack in kernel.packs:
            sources = [by_name[b.name] for b in pack.sources]
            key = (pack.text, *[(id(v.slot), v.start) for v in sources])
            slot = self.packed.get(key)
            if slot is None or id(slot) not in self.fixed:
                slot = self._slot("made", pack.target.shape, pack.target.dtype)
                self.packed[key] = slot
                self._put(scope, PackIn(kernel, pack, sources, slot))
            packs.append(slot)
        return packs

    def _outputs(self, body: Expr) -> None:
        root_made = {id(s) for item in self.root.items for s in item.outputs}
        taken: set[int] = set()

        def build(place: Place) -> Any:
            if isinstance(place, list):
                return [build(p) for p in place]
            slot = place.slot
            number = len(self.program.outputs)
            if place.is_whole and slot.kind == "made" and id(slot) in root_made and id(slot) not in taken:
                taken.add(id(slot))
                slot.kind, slot.number = "output", number
            else:
                target = Slot("output", number, place.shape, slot.dtype)
                self.root.items.append(Copy(place, target))
                slot = target
            out = Slot("output", number, place.shape, slot.dtype)
            self.program.outputs.append(out)
            return number

        self.program.structure = build(self._place(body))


def _is_quantised(function: Function) -> bool:
    """Whether a function calls operators of quantised tensors."""
    calls = (n for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Op))
    return any(call.op.name.startswith("qnn.") for call in calls)  # type: ignore[attr-defined]


def _in_place(parts: Sequence[Part], inputs: Sequence[View], joined: View) -> set[int]:
    """The numbers of the parts of a result that lie in their place already."""
    return {
        n
        for n, (shape, first, param) in enumerate(parts)
        if 0 in shape or (param is not None and inputs[param].lies_at(joined.part(first, shape)))
    }


def _with_open_numbers(function: Function, args: Sequence[Expr]) -> tuple[Function, list[Expr]]:
    """A kernel whose constant scalars are parameters, and its arguments."""
    numbers: dict[int, Var] = {}
    values: list[Expr] = []

    def lift(old: Expr, new: Expr) -> Expr:
        if not _is_number(new):
            return retype(new, old)
        if id(new) not in numbers:
            numbers[id(new)] = typed_var("number", TensorType((), new.dtype))
            values.append(new)
        return numbers[id(new)]

    body = rewrite(function.body, lift)
    if not numbers:
        return function, list(args)
    opened = Function([*function.params, *numbers.values()], body, function.ret_type, (), function.attrs, function.span)
    return opened, [*args, *values]


def _is_number(node: Expr) -> TypeGuard[Constant]:
    """Whether a constant is a scalar that can stand in the code."""
    return isinstance(node, Constant) and node.data.ndim == 0 and node.dtype in SIZES
