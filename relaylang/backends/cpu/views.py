"""Which values lie in the memory of others: concatenation, padding, splitting and slicing without copies.

An operand of a concatenation is made in its place in the result, that of a padding inside the border. A slice is read
where its source lies. The plan decides which values lie where (`Plan.homes`), before any kernel is lowered.
From the outputs backwards it gives each value that puts others together its memory, and its operands theirs in it. So
a chain of concatenations lies in the memory of the last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from relaylang.backends.cpu.external import opaque_of
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lowering import Part, Selected, flat, parts_of, selected
from relaylang.ir import Call, Constant, Expr, Function, If, TensorType, Tuple, TupleGetItem, TupleType, Type, Var
from relaylang.ir.scopes import Scope
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.index import is_contiguous, reshaped, strides_of
from relaylang.kernels.sizes import surely_less

#: A tensor of a program: the id of the node that makes it, and its number among the node's tensors.
Key = tuple[int, int]
#: The tensors of a value, as its type nests them.
Keys = Key | list["Keys"]
#: A kernel, lowered on trial: its parameters have these strides.
Trial = Callable[[Function, Mapping[Var, Constant], Sequence[Sequence[int] | None]], Kernel]


class Home(NamedTuple):
    """Where a value lies: in whose memory, and there its first element and its strides."""

    base: Key
    start: int
    strides: tuple[int, ...]


def numbers_of(call: Call) -> dict[Var, Constant]:
    """The parameters of a primitive function that are constant scalars in a call."""
    assert isinstance(call.op, Function)
    return {p: a for p, a in zip(call.op.params, call.args) if isinstance(a, Constant) and a.data.ndim == 0 and a.dtype in SIZES}


def offset(first: Sequence[int], strides: Sequence[int]) -> int:
    return sum(n * s for n, s in zip(first, strides))


class Plan:
    """The plan for a fused function, whose nodes are `order`, children first; `scopes` has the block of each node.

    `bound` names the parameters with known values. What depends on these alone is computed once and stays apart.
    """

    def __init__(self, order: Sequence[Expr], body: Expr, scopes: Mapping[int, Scope], bound: Collection[str], trial: Trial) -> None:
        self.trial = trial
        self.homes: dict[Key, Home] = {}
        self.parts: dict[int, list[Part]] = {}
        self._scopes = scopes
        self._bound = bound
        self._keys: dict[int, Keys] = {}
        self._makers: dict[Key, Call] = {}
        self.shapes: dict[Key, tuple[int, ...]] = {}
        self._users: dict[Key, list[tuple[Call, int]]] = {}
        self._inputs: dict[int, list[Key]] = {}
        self._exposed: set[Key] = set()
        self._fixed: set[Key] = set()
        self._found: dict[tuple[object, ...], list[Selected] | None] = {}
        self._reads: dict[tuple[object, ...], bool] = {}
        for node in order:
            self._visit(node)
        self._exposed.update(flat(self._keys[id(body)]))
        for node in reversed(order):
            if id(node) in self.parts:
                assert isinstance(node, Call)
                self._assemble(node)

    # -- the graph ---------------------------------------------------------------------------------------------------
    def _visit(self, node: Expr) -> None:
        match node:
            case Tuple(fields):
                self._keys[id(node)] = [self._keys[id(f)] for f in fields]
            case TupleGetItem(source, index):
                keys = self._keys[id(source)]
                assert isinstance(keys, list)
                self._keys[id(node)] = keys[index]
            case _:
                self._keys[id(node)] = self._new(node)
        own = flat(self._keys[id(node)])
        if not isinstance(node, (Tuple, TupleGetItem)):
            self.shapes.update(zip(own, _shapes(node.checked_type)))
        if isinstance(node, Constant) or (isinstance(node, Var) and node.name_hint in self._bound):
            self._fixed.update(own)
        elif isinstance(node, If):
            for part in (node.cond, node.true_branch, node.false_branch):
                self._exposed.update(flat(self._keys[id(part)]))
        elif isinstance(node, Call) and isinstance(node.op, Function):
            self._visit_kernel(node, node.op, own)

    def _visit_kernel(self, node: Call, kernel: Function, own: Sequence[Key]) -> None:
        """Note the call of a kernel whose results are `own`."""
        numbers = numbers_of(node)
        inputs = [k for p, a in zip(kernel.params, node.args) if p not in numbers for k in flat(self._keys[id(a)])]
        self._inputs[id(node)] = inputs
        for number, key in enumerate(inputs):
            self._users.setdefault(key, []).append((node, number))
        if all(k in self._fixed for k in inputs) or not all(k in self.shapes for k in (*own, *inputs)):
            self._fixed.update(own)
            return
        self._makers.update((key, node) for key in own)
        parts = parts_of(kernel, numbers)
        if parts is not None:
            self.parts[id(node)] = parts

    def _new(self, node: Expr) -> Keys:
        count = 0

        def build(ty: Type | None) -> Keys:
            nonlocal count
            if isinstance(ty, TupleType):
                return [build(f) for f in ty.fields]
            count += 1
            return id(node), count - 1

        ty = node.checked_type
        return build(ty if ty is not None or not isinstance(node, Var) else node.type_annotation)

    # -- operands in the memory of results ---------------------------------------------------------------------------
    def _assemble(self, node: Call) -> None:
        key = id(node), 0
        home = self.homes.get(key) or self._adopted(node)
        if home is not None:
            self.homes[key] = home
        else:
            home = Home(key, 0, tuple(strides_of(self.shapes[key])))
        for part in self.parts[id(node)]:
            if part.param is None:
                continue
            source = self._origin(self._inputs[id(node)][part.param])
            if not self._is_free(source, node):
                continue
            strides = reshaped(part.shape, home.strides, self.shapes[source])
            if strides is None or (self._is_outside(source) and not is_contiguous(self.shapes[source], strides)):
                continue
            if self.readable(source, strides):
                self.homes[source] = Home(home.base, home.start + offset(part.first, home.strides), tuple(strides))
                self.homes[key] = home

    def _is_outside(self, key: Key) -> bool:
        """Whether code of its own makes a value: such code writes dense tensors."""
        maker = self._makers[key].op
        return isinstance(maker, Function) and opaque_of(maker) is not None

    def wanted(self, call: Call) -> list[tuple[int, ...] | None]:
        """The strides of the results of a call; None where they are contiguous."""
        homes = [self.homes.get(key) for key in flat(self._keys[id(call)])]
        return [home.strides if home is not None else None for home in homes]

    def _adopted(self, node: Call) -> Home | None:
        """The home of a value whose operands all lie in place already: inside another one's memory."""
        key = id(node), 0
        parts = self.parts[id(node)]
        homes: list[tuple[Home, list[int]]] = []
        for part in parts:
            if part.param is None:
                return None
            source = self._origin(self._inputs[id(node)][part.param])
            home = self.homes.get(source)
            strides = reshaped(self.shapes[source], home.strides, part.shape) if home is not None else None
            if home is None or strides is None:
                return None
            homes.append((home, strides))
        (base, start, _), steps = homes[0]
        if len(homes) > 1:
            # The step from one part to the next says how far elements are apart where a part has only one.
            axis = next(d for d, n in enumerate(parts[1].first) if n)
            steps[axis] = (homes[1][0].start - start) // parts[1].first[axis]
        for part, (home, strides) in zip(parts, homes):
            if home[:2] != (base, start + offset(part.first, steps)) or not _same(part.shape, strides, steps):
                return None
        if key in self._exposed or not self.readable(key, steps):
            return None
        return Home(base, start, tuple(steps))

    def _origin(self, key: Key) -> Key:
        """The value that a value is with another shape, through any number of reshapes."""
        while key in self._makers and key not in self._fixed and key not in self._exposed:
            maker = self._makers[key]
            selections = self._selected(maker)
            if selections is None:
                break
            source = self._inputs[id(maker)][selections[key[1]].param]
            shape = self.shapes[key]
            if selections[key[1]].start or not is_contiguous(shape, selections[key[1]].strides):
                break
            if math.prod(shape) != math.prod(self.shapes[source]):
                break
            key = source
        return key

    def _is_free(self, key: Key, user: Call) -> bool:
        """Whether a value may be made in the memory of one that a call makes."""
        maker = self._makers.get(key)
        if maker is None or key in self.homes or key in self._exposed or key in self._fixed or 0 in self.shapes[key]:
            return False
        return self._scopes[id(maker)] is self._scopes[id(user)] and not self.is_seen(maker)

    # -- results in the memory of operands ---------------------------------------------------------------------------
    def _selected(self, call: Call, strides: Sequence[Sequence[int] | None] = ()) -> list[Selected] | None:
        assert isinstance(call.op, Function)
        memo = (id(call), *[tuple(s) if s is not None else None for s in strides])
        if memo not in self._found:
            self._found[memo] = selected(call.op, numbers_of(call), strides)
        return self._found[memo]

    def is_seen(self, call: Call) -> bool:
        """Whether a call's results are views of its operands, when these are contiguous."""
        return self.seen(call, ()) is not None

    def seen(self, call: Call, given: Sequence[Sequence[int] | None]) -> list[Selected] | None:
        """The parts of its operands, with strides `given`, that a call's results are; None where it needs a kernel."""
        selections = self._selected(call, given)
        if selections is None:
            return None
        for number, part in enumerate(selections):
            key = id(call), number
            if key in self.homes:
                return None
            if is_contiguous(self.shapes[key], part.strides):
                continue
            if key in self._fixed or not self.readable(key, part.strides):
                return None
        return selections

    def readable(self, key: Key, strides: Sequence[int]) -> bool:
        """Whether all that use a value read it with these strides where it lies, without a copy of it."""
        todo: list[tuple[Key, tuple[int, ...]]] = [(key, tuple(strides))]
        while todo:
            key, steps = todo.pop()
            if is_contiguous(self.shapes[key], steps):
                continue
            if key in self._exposed:
                return False
            for call, number in self._users.get(key, ()):
                probe = [None] * number + [steps]
                selections = self._selected(call, probe)
                if selections is None:
                    if not self._reads_in_place(call, probe):
                        return False
                    continue
                todo += [((id(call), n), part.strides) for n, part in enumerate(selections) if part.param == number]
        return True

    def _reads_in_place(self, call: Call, strides: Sequence[tuple[int, ...] | None]) -> bool:
        """Whether a call's kernel reads its last parameter in `strides` without a copy, in any order of axes."""
        assert isinstance(call.op, Function)
        if id(call) in self.parts:
            return True
        if opaque_of(call.op) is not None:
            return False
        memo = (id(call.op), *strides)
        if memo not in self._reads:
            kernel = self.trial(call.op, numbers_of(call), strides)
            name = kernel.params[len(strides) - 1].name
            ordered = _ordered(kernel.params[len(strides) - 1].shape, strides[-1])  # type: ignore[arg-type]
            self._reads[memo] = (ordered or name in kernel.any_order) and all(read != name for read, _ in kernel.copies)
        return self._reads[memo]


def _ordered(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the axes lie in memory from outside in."""
    steps = [s for e, s in zip(shape, strides) if e != 1]
    return not any(surely_less(a, b) for a, b in pairwise(steps))


def _same(shape: Sequence[int], left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether strides reach the same elements."""
    return all(e == 1 or a == b for e, a, b in zip(shape, left, right))


def _shapes(ty: Type | None) -> list[tuple[int, ...]]:
    """The shapes of the tensors of a type, none where one is not known."""
    out: list[tuple[int, ...]] = []
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(reversed(item.fields))
        elif isinstance(item, TensorType) and all(isinstance(e, int) for e in item.shape):
            out.append(tuple(item.shape))  # type: ignore[arg-type]
        else:
            return []
    return out
