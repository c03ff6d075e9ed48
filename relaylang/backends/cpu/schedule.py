"""From a fused expression to instructions on memory slots.

A slot is one tensor in memory. Values that depend on bound parameters and constants alone (packed weights, folded
normalisations) go into the `prepare` list. It runs once, when the artifact is loaded. The other values go into the
`run` list. The branches of an `if` have lists of their own. Values that both branches need, or a branch and the rest,
are computed before.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeGuard

import numpy as np

from relaylang.backends.cpu.dtypes import SIZES
from relaylang.backends.cpu.kernel import Kernel, Pack, nbytes, static_shape, tensor_types, unsupported
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
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
from relaylang.ir.typed import retype, typed_var
from relaylang.ops.record import Op
from relaylang.passes.fusion.fuse_ops import is_closed

#: In so many kernels of a program, constant scalars stand in the code. In further ones they are parameters, so that
#: kernels which differ in their constants alone are compiled once.
SPECIALISED = 150


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
        total = SIZES[self.dtype]
        for extent in self.shape:
            total *= extent
        return -(-max(total, 1) // 64) * 64


class View:
    """A slot seen with another shape."""

    __slots__ = ("slot", "shape")

    def __init__(self, slot: Slot, shape: Sequence[int]) -> None:
        self.slot = slot
        self.shape = tuple(shape)


Place = View | list[Any]


class Run:
    """Run a kernel."""

    def __init__(self, kernel: Kernel, inputs: list[Slot], outputs: list[Slot], packs: list[Slot], text: str) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.outputs = outputs
        self.packs = packs
        self.text = text
        self.work: Slot | None = None

    def reads(self) -> list[Slot]:
        return [*self.inputs, *self.packs]


class PackIn:
    """Bring a parameter into a kernel's layout."""

    def __init__(self, kernel: Kernel, pack: Pack, inputs: list[Slot], output: Slot) -> None:
        self.kernel = kernel
        self.pack = pack
        self.inputs = inputs
        self.outputs = [output]

    def reads(self) -> list[Slot]:
        return self.inputs


class Copy:
    """Copy a tensor."""

    def __init__(self, source: Slot, target: Slot) -> None:
        self.source = source
        self.outputs = [target]

    def reads(self) -> list[Slot]:
        return [self.source]


class Branch:
    """Run one of two lists by a condition; both write the same outputs."""

    def __init__(self, cond: Slot, yes: list[Any], no: list[Any], outputs: list[Slot]) -> None:
        self.cond = cond
        self.yes = yes
        self.no = no
        self.outputs = outputs

    def reads(self) -> list[Slot]:
        return [self.cond]


Instruction = Run | PackIn | Copy | Branch


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


def make_program(function: Function, bound: Collection[str], lower: Callable[[Function, dict[Var, Constant]], Kernel],
                 describe: Callable[[Function], str]) -> Program:  # fmt: skip
    """The instructions of a fused function. `bound` names the parameters whose values are known when it is loaded."""
    return _Maker(bound, lower, describe).make(function)


class _Maker:
    def __init__(self, bound: Collection[str], lower: Callable[[Function, dict[Var, Constant]], Kernel],
                 describe: Callable[[Function], str]) -> None:  # fmt: skip
        self.bound = bound
        self.lower = lower
        self.describe = describe
        self.program = Program()
        self.root = _Scope()
        self.fixed: set[int] = set()
        self.packed: dict[tuple[Any, ...], Slot] = {}
        self.places: dict[int, Place] = {}
        self.scopes: dict[int, _Scope] = {}
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
        for node in order:
            self._node(node, branches)
        self._outputs(function.body)
        program = self.program
        program.run = self.root.items
        _plan(program)
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

    def _flat(self, place: Place) -> list[View]:
        out: list[View] = []
        stack: list[Place] = [place]
        while stack:
            item = stack.pop()
            if isinstance(item, list):
                stack.extend(reversed(item))
            else:
                out.append(item)
        return out

    def _new(self, ty: Type | None, node: Expr) -> Place:
        """Fresh slots for a value of a type."""
        if isinstance(ty, TupleType):
            return [self._new(f, node) for f in ty.fields]
        shape = static_shape(ty, node)
        assert isinstance(ty, TensorType)
        return View(self._slot("made", shape, ty.dtype), shape)

    def _put(self, scope: _Scope, item: Instruction) -> None:
        """Append an instruction: to the prepare list where all that it reads is fixed."""
        if not isinstance(item, Branch) and all(id(s) in self.fixed for s in item.reads()):
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
                whole = self._place(tuple_value)
                assert isinstance(whole, list)
                place = whole[index]
            case If(cond):
                place = self._new(node.checked_type, node)
                for value, inner in zip((node.true_branch, node.false_branch), branches[id(node)]):
                    for source, target in zip(self._flat(self._place(value)), self._flat(place)):
                        inner.items.append(Copy(source.slot, target.slot))
                test = self._flat(self._place(cond))[0].slot
                outputs = [v.slot for v in self._flat(place)]
                scope.items.append(Branch(test, branches[id(node)][0].items, branches[id(node)][1].items, outputs))
            case Call(op, args) if isinstance(op, Function) and is_closed(op):
                place = self._kernel(node, op, args, scope)
            case _:
                raise unsupported(f"{type(node).__name__} cannot be compiled", node)
        self.places[id(node)] = place

    def _kernel(self, node: Call, function: Function, args: Sequence[Expr], scope: _Scope) -> Place:
        numbers = {p: a for p, a in zip(function.params, args) if _is_number(a)}
        self.kernels += 1
        if self.kernels > SPECIALISED and not _wants_numbers(function):
            function, args = _with_open_numbers(function, args)
            numbers = {}
        inputs = self._flat([self._place(a) for p, a in zip(function.params, args) if p not in numbers])
        if function.attrs.get("relay.reshape_only") and len(inputs) == 1:
            return View(inputs[0].slot, tensor_types(node.checked_type, node)[0].shape)  # type: ignore[arg-type]
        kernel = self.lower(function, numbers)
        place = self._new(node.checked_type, node)
        slots = [v.slot for v in inputs]
        by_name = {p.name: s for p, s in zip(kernel.params, slots)}
        packs = []
        for pack in kernel.packs:
            sources = [by_name[b.name] for b in pack.sources]
            key = (pack.text, *[id(s) for s in sources])
            slot = self.packed.get(key)
            if slot is None or id(slot) not in self.fixed:
                slot = self._slot("made", pack.target.shape, pack.target.dtype)
                self.packed[key] = slot
                self._put(scope, PackIn(kernel, pack, sources, slot))
            packs.append(slot)
        outputs = [v.slot for v in self._flat(place)]
        run = Run(kernel, slots, outputs, packs, self.describe(function))
        if kernel.work:
            run.work = Slot("made", 0, (sum(nbytes(b) for b in kernel.work),), "uint8")
        self._put(scope, run)
        return place

    def _outputs(self, body: Expr) -> None:
        root_made = {id(s) for item in self.root.items for s in item.outputs}
        taken: set[int] = set()

        def build(place: Place) -> Any:
            if isinstance(place, list):
                return [build(p) for p in place]
            slot = place.slot
            number = len(self.program.outputs)
            if slot.kind == "made" and id(slot) in root_made and id(slot) not in taken:
                taken.add(id(slot))
                slot.kind, slot.number = "output", number
            else:
                target = Slot("output", number, place.shape, slot.dtype)
                self.root.items.append(Copy(slot, target))
                slot = target
            out = Slot("output", number, place.shape, slot.dtype)
            self.program.outputs.append(out)
            return number

        self.program.structure = build(self._place(body))


def _wants_numbers(function: Function) -> bool:
    """Whether a kernel's code depends on its constants: quantised arithmetic is made for its scales."""
    return any(isinstance(n, Call) and isinstance(n.op, Op) and n.op.name.startswith("qnn.") for n in post_order(function.body))


def _with_open_numbers(function: Function, args: Sequence[Expr]) -> tuple[Function, list[Expr]]:
    """A kernel whose constant scalars are parameters, and its arguments."""
    found: dict[int, Var] = {}
    values: list[Expr] = []

    def lift(old: Expr, new: Expr) -> Expr:
        if not _is_number(new):
            return retype(new, old)
        if id(new) not in found:
            found[id(new)] = typed_var("number", TensorType((), new.dtype))
            values.append(new)
        return found[id(new)]

    body = rewrite(function.body, lift)
    if not found:
        return function, list(args)
    made = Function([*function.params, *found.values()], body, function.ret_type, (), function.attrs, function.span)
    return made, [*args, *values]


def _is_number(node: Expr) -> TypeGuard[Constant]:
    """Whether a constant is a scalar that can stand in the code."""
    return isinstance(node, Constant) and node.data.ndim == 0 and node.dtype in SIZES


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


def _lives(items: list[Instruction]) -> list[Slot]:
    """The slots that instructions make, with the first and the last instruction that touches each."""
    slots: dict[int, Slot] = {}
    for position, item in enumerate(items):
        touched = [*item.reads(), *item.outputs]
        if isinstance(item, Run) and item.work is not None:
            touched.append(item.work)
        for slot in touched:
            if slot.kind != "made":
                continue
            if slot.first < 0:
                slot.first = position
            slot.last = position
            slots[id(slot)] = slot
    return list(slots.values())


def _plan(program: Program) -> None:
    """Give every slot its place. Values that prepare keeps lie in the fixed memory, the rest in a reused arena."""
    prepare, run = walk(program.prepare), walk(program.run)
    made_before = {id(s): s for item in prepare for s in item.outputs}
    kept: dict[int, Slot] = {}
    for item in run:
        for slot in item.reads():
            if id(slot) in made_before:
                kept[id(slot)] = slot
    total = 0
    for slot in kept.values():
        slot.fixed = True
        slot.offset = total
        total += slot.bytes
    program.fixed_bytes = total
    sizes = []
    for items in (prepare, run):
        slots = [s for s in _lives(items) if not s.fixed]
        sizes.append(_place(slots))
    program.arena_bytes = max(sizes)


def _place(slots: list[Slot]) -> int:
    """Offsets for slots with known lives, none of which overlap in time and place. Returns the arena's size.

    Large slots come first, each at the lowest place that is free throughout its life. Very many slots are placed in
    order of time from a list of free stretches, which is linear.
    """
    if len(slots) > 1500:
        return _place_in_order(slots)
    placed: list[Slot] = []
    total = 0
    for slot in sorted(slots, key=lambda s: (-s.bytes, s.first)):
        at = 0
        for other in placed:  # in order of offset
            if other.last < slot.first or other.first > slot.last:
                continue
            if other.offset - at >= slot.bytes:
                break
            at = max(at, other.offset + other.bytes)
        slot.offset = at
        total = max(total, at + slot.bytes)
        low, high = 0, len(placed)
        while low < high:
            middle = (low + high) // 2
            if placed[middle].offset < at:
                low = middle + 1
            else:
                high = middle
        placed.insert(low, slot)
    return total


def _place_in_order(slots: list[Slot]) -> int:
    starts: dict[int, list[Slot]] = {}
    ends: dict[int, list[Slot]] = {}
    for slot in slots:
        starts.setdefault(slot.first, []).append(slot)
        ends.setdefault(slot.last, []).append(slot)
    free: dict[int, list[int]] = {}  # stretches by size
    total = 0
    for position in sorted({*starts, *ends}):
        for slot in starts.get(position, ()):
            same = free.get(slot.bytes)
            if same:
                slot.offset = same.pop()
            else:
                slot.offset = total
                total += slot.bytes
        for slot in ends.get(position, ()):
            free.setdefault(slot.bytes, []).append(slot.offset)
    return total
