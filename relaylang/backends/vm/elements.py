"""Elements of small tensors of whole numbers as sizes: shapes that a region computes, or that it is given.

`shape_of` gives the extents of a tensor. Arithmetic on them makes other sizes, and operators that move elements pick some.
An element of an input is a size of its own, which the kernel reads. So operators that take shapes as operands
(`dyn.reshape`) become those that have them as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.interpreter.compute import compute
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleGetItem, TupleType, Type, Var
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed
from relaylang.kernels.sizes import (
    MOST,
    Comparison,
    Size,
    at_least,
    bounds,
    equals,
    equate,
    has_sizes,
    largest,
    less,
    must_equal,
    number_of,
    opposite,
    sizes_of,
    smallest,
    surely_less,
    usual,
)
from relaylang.ops import get
from relaylang.ops.indexing import slice_entries
from relaylang.ops.record import Op, OpPattern, make_attrs
from relaylang.passes.rewriting import is_call
from relaylang.rules.dynamic_to_static import RULES, static_call

#: Tensors of more elements are not followed.
_MOST = 64
#: Operators that take shapes as operands.
DYNAMIC = frozenset(RULES)
#: How many operands stand in front of shapes, where there is not one.
_DATA = {"arange": 0, "dyn.zeros": 0, "dyn.ones": 0, "dyn.one_hot": 3, "dyn.sparse_to_dense": 3}
#: Operators that take numbers which may be 0 or negative: their least.
LEAST = {"dyn.nn.pad": 0, "arange": 0, "dyn.strided_slice": -MOST}
#: Operators that give extents.
EXTENTS = ("shape_of", "ndarray_size")


def _truncated(one: int, two: int) -> int | None:
    """A quotient of whole numbers that are not negative: there both ways to round agree."""
    return one // two if one >= 0 and two > 0 else None


def _remainder(one: int, two: int) -> int | None:
    return one % two if one >= 0 and two > 0 else None


def _chosen(test: Any, one: int, two: int) -> int:
    if isinstance(one, Size) and isinstance(two, Size) and one.terms == two.terms:
        return one
    return one if (test.answer() if isinstance(test, Comparison) else test) else two


_Elementwise = Callable[..., "int | Comparison | None"]
#: What operators make of single elements. None is an element that is not known.
_ELEMENTWISE: Mapping[str, _Elementwise] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _truncated,
    "mod": _remainder,
    "floor_divide": lambda a, b: a // b if b > 0 else None,
    "floor_mod": lambda a, b: a % b if b > 0 else None,
    "maximum": largest,
    "minimum": smallest,
    "negative": lambda a: -a,
    "equal": equals,
    "not_equal": lambda a, b: opposite(equals(a, b)),
    "less": less,
    "greater": lambda a, b: less(b, a),
    "less_equal": lambda a, b: opposite(less(b, a)),
    "greater_equal": lambda a, b: opposite(less(a, b)),
    "where": _chosen,
    "cast": lambda a: a + 0,
    "copy": lambda a: a,
}


#: Operators that move elements, and have another pattern.
_MOVES = ("expand_dims", "broadcast_to")
_QUOTIENTS = ("divide", "mod", "floor_divide", "floor_mod")


def is_small(ty: Any) -> bool:
    """Whether a tensor of this type is followed."""
    if not isinstance(ty, TensorType) or not ("int" in ty.dtype or ty.dtype == "bool"):
        return False
    if has_sizes(ty.shape):  # type: ignore[arg-type]
        return False
    shape = static_shape(ty)
    return shape is not None and prod(shape) <= _MOST


def _may_be_followed(call: Call) -> bool:
    """Whether the elements of a call's result follow from extents, or from those of its operands where these are known."""
    op, ty = call.op, call.checked_type
    if not isinstance(op, Op) or not all(map(is_small, ty.fields if isinstance(ty, TupleType) else [ty])):
        return False
    if op.name in EXTENTS:
        return True
    parts = _operands(call)
    if op.name in _QUOTIENTS and not (isinstance(parts[1], Constant) and parts[1].data.all()):
        return False  # by 0 it may be an error
    moves = (op.pattern == OpPattern.INJECTIVE or op.name in _MOVES) and op.name not in DYNAMIC
    return (moves or op.name in _ELEMENTWISE) and all(is_small(p.checked_type) for p in parts)


def is_followed(call: Call, known: Container[int]) -> bool:
    """Whether the elements of a call's result are known where those of constants, variables, and nodes of `known` ids are."""
    if not _may_be_followed(call):
        return False
    return all(isinstance(p, (Constant, Var)) or id(source_of(p)) in known for p in _operands(call))


def _parts(node: Expr) -> Sequence[Expr]:
    return node.fields if isinstance(node, Tuple) else [node]


def _operands(call: Call) -> list[Expr]:
    """What a call reads elements of."""
    assert isinstance(call.op, Op)
    return [] if call.op.name in EXTENTS else [p for a in call.args for p in _parts(a)]


def source_of(node: Expr) -> Expr:
    """The call that a node is a field of, or the node itself."""
    return node.tuple_value if isinstance(node, TupleGetItem) else node


def shapes_in(call: Call) -> Sequence[int]:
    """The operands of a call whose elements give extents of its result."""
    assert isinstance(call.op, Op)
    if call.op.name not in _DATA and call.op.name not in DYNAMIC:
        return ()
    return [n for n in range(_DATA.get(call.op.name, 1), len(call.args)) if is_small(call.args[n].checked_type)]


class Elements:
    """The elements of a region's tensors. `read` gives the size that is an element of an input, by its place.

    It gives None for variables that are no inputs.
    """

    def __init__(self, read: Callable[[Var, int], int | None]) -> None:
        self._read = read
        #: of calls, which stay so that no others get their ids: their results' elements
        self._known: dict[int, tuple[Expr, list[np.ndarray] | None]] = {}

    def bind(self, variable: Var, value: Expr) -> None:
        """Let a variable have the elements of a value."""
        found = self.of(value)
        self._known[id(variable)] = variable, None if found is None else [found]

    def of(self, node: Expr) -> np.ndarray | None:
        """The elements of a typed tensor, with its shape; None where they are not known."""
        stack = [source_of(node)]
        while stack:
            call = stack[-1]
            if id(call) in self._known or not isinstance(call, Call):
                stack.pop()
            elif not _may_be_followed(call):
                self._known[id(call)] = call, None
            else:
                waiting = [p for p in map(source_of, _operands(call)) if isinstance(p, Call) and id(p) not in self._known]
                stack += waiting
                if not waiting:
                    self._known[id(call)] = call, self._results(call)
        return self._of(node)

    def _of(self, node: Expr) -> np.ndarray | None:
        """The same, once the calls that it comes from are known."""
        if isinstance(node, Constant):
            return node.data if node.data.size <= _MOST else None
        if isinstance(node, Var) and id(node) not in self._known:
            ty = node.checked_type
            if not is_small(ty) or not isinstance(ty, TensorType) or ty.dtype == "bool":
                return None
            shape = static_shape(ty) or ()
            values = [self._read(node, n) for n in range(prod(shape))]
            return None if None in values else _objects(values, shape)
        elements = self._known.get(id(source_of(node)), (node, None))[1]
        return None if elements is None else elements[node.index if isinstance(node, TupleGetItem) else 0]

    def _results(self, call: Call) -> list[np.ndarray] | None:
        assert isinstance(call.op, Op)
        if call.op.name in EXTENTS:
            ty = call.args[0].checked_type
            shape = ty.shape if isinstance(ty, TensorType) else ()
            if not all(isinstance(d, int) for d in shape) or not shape:
                return None
            return [_objects(shape, (len(shape),)) if call.op.name == "shape_of" else _objects([prod(shape)], ())]  # type: ignore[arg-type]
        operands = [[self._of(p) for p in _parts(a)] for a in call.args]
        if any(x is None for parts in operands for x in parts):
            return None
        if call.op.name in _ELEMENTWISE:
            return _computed(call.op.name, [x for parts in operands for x in parts if x is not None])
        return _moved(call, operands)  # type: ignore[arg-type]


def _objects(values: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """Values as an array. numpy would make numbers of sizes."""
    array = np.empty(len(values), object)
    for n, value in enumerate(values):
        array[n] = value
    return array.reshape(tuple(shape))


def _computed(name: str, operands: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What an operator makes of each element."""
    spread = np.broadcast_arrays(*[x.astype(object) for x in operands])
    items = list(zip(*[x.reshape(-1) for x in spread]))
    if name != "where" and any(isinstance(x, Comparison) for item in items for x in item):
        return None
    values = [_ELEMENTWISE[name](*item) for item in items]
    return None if any(v is None for v in values) else [_objects(values, spread[0].shape)]


def _moved(call: Call, operands: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray] | None:
    """What an operator that moves elements makes: it is computed with the elements' numbers in place of them."""
    every: list[Any] = []
    arguments: list[Any] = []
    for arg, parts in zip(call.args, operands):
        if arguments:  # places of elements
            if any(part.dtype == object for part in parts):
                return None
            arguments.append(parts[0])
            continue
        numbered = []
        for part in parts:
            numbered.append(np.arange(len(every), len(every) + part.size).reshape(part.shape))
            every += part.reshape(-1).tolist()
        arguments.append(tuple(numbered) if isinstance(arg, Tuple) else numbered[0])
    moved = compute(call, arguments)
    results = [np.asarray(places) for places in (moved if isinstance(moved, tuple) else (moved,))]
    if any(places.dtype.kind != "i" or (places.size and not 0 <= places.min() <= places.max() < len(every)) for places in results):
        return None
    return [_objects([every[p] for p in places.reshape(-1).tolist()], places.shape) for places in results]


def the_larger(one: Expr, two: Expr, span: Span | None) -> Call:
    """The larger of two numbers."""
    return Call(get("maximum"), [one, two], None, (), span)


def static_form(call: Call, elements: Elements) -> Call | None:
    """An operator that takes shapes as operands with attributes in their place, without a type; None for unknown elements.

    Other operators stay what they are.
    """
    assert isinstance(call.op, Op)
    static: Call | None = call
    if call.op.name in DYNAMIC:
        shapes = shapes_in(call)
        static = static_call(
            call, [elements.of(a) if isinstance(a, Constant) or n in shapes else None for n, a in enumerate(call.args)]
        )
    if static is None or not is_call(static, "strided_slice"):
        return static
    # The bounds of a call may leave nothing. Attributes must not.
    return _bounded(static, _cut_off if static is not call else lambda distance: at_least(distance, 0))


def _bound(index: int, extent: int, low: int, is_lower: bool) -> int:
    """Where a bound of a slice lies: a negative one counts from the end. It is `low` at least, and `extent + low` at most.

    The number of a lower bound is not the greatest one, with which the slice would be empty.
    """
    high, least = extent + low, bounds(index)[0]
    if not isinstance(index, Size) and not isinstance(extent, Size):
        return min(max(index + extent if index < 0 else index, low), high)
    text, number, likely = f"{index}", number_of(index), usual(index)
    if surely_less(index, 0):
        text, number, likely = f"{index + extent}", number + number_of(extent), usual(index + extent)
    elif least is None or least < 0:
        text = f"({index} < 0 ? {index + extent} : {index})"
    number = min(max(number, low), number_of(high))
    return sizes_of(index, extent).atom(
        f"({text} < {low} ? {low} : {text} > {high} ? {high} : {text})",
        low,
        bounds(high)[1],
        low if is_lower and number == number_of(high) else number,
        min(likely, usual(extent)),
        index,
        extent,
    )


def _either_way(begin: int, end: int, extent: int, stride: Size) -> tuple[int, int]:
    """The first entry of a slice, and how many it has. A run gives its direction; the kernel checks that it has one."""
    stride.sizes.assume(f"{stride} == 0", False)
    low, high = f"({stride} < 0 ? -1 : 0)", f"({stride} < 0 ? {extent - 1} : {extent})"
    length, step = number_of(extent), abs(number_of(stride))
    places = []
    for bound in (begin, end):
        place = f"({bound} < 0 ? {bound + extent} : {bound})"
        text = f"({place} < {low} ? {low} : {place} > {high} ? {high} : {place})"
        number = 0 if bound is begin else length
        places.append(stride.sizes.atom(text, -1, bounds(extent)[1], number, number, bound, extent, stride))
    first, last = places
    forth, back = (f"({distance} + {by} - 1) / {by}" for distance, by in ((last - first, stride), (first - last, -stride)))
    text = f"({stride} > 0 && {last} > {first} ? {forth} : {stride} < 0 && {last} < {first} ? {back} : 0)"
    counts = (max(1, n // step) for n in (length, usual(extent)))
    return first, stride.sizes.atom(text, 0, bounds(extent)[1], *counts, first, last, stride)


def _cut_off(distance: int) -> int:
    """A distance, or 0 for a negative one."""
    if not isinstance(distance, Size) or surely_less(-1, distance):
        return max(distance, 0)
    numbers = (max(f(distance), 1) for f in (number_of, usual))
    return distance.sizes.atom(f"({distance} > 0 ? {distance} : 0)", 0, bounds(distance)[1], *numbers, distance)


def _bounded(call: Call, reach: Callable[[int], int]) -> Call:
    """A slice whose bounds lie in its data, for all extents and bounds that are sizes. `reach` is what a distance becomes."""
    ty = call.args[0].checked_type
    assert isinstance(call.op, Op) and call.op.attrs is not None and isinstance(ty, TensorType)
    shape = [d for d in ty.shape if isinstance(d, int)]
    begin, end, strides, counts = [0] * len(shape), shape[:], [1] * len(shape), shape[:]
    for axis, *ends, stride in slice_entries(call.attrs, len(shape)):
        extent, strides[axis] = shape[axis], stride
        if isinstance(stride, Size):
            begin[axis], count = _either_way(ends[0], ends[1], extent, stride)
            end[axis], counts[axis] = begin[axis] + count * stride, count
            continue
        least = 0 if stride > 0 else -1
        first, last = (_bound(bound, extent, least, (n == 0) == (stride > 0)) for n, bound in enumerate(ends))
        if stride > 0:
            distance = reach(last - first)
            begin[axis], end[axis] = first, first + distance
        else:  # Numbers count from the end, because the last one may be -1.
            distance = reach(first - last)
            begin[axis], end[axis] = first - extent, first - extent - distance
        counts[axis] = (distance + abs(stride) - 1) // abs(stride)
    attrs = make_attrs(call.op.attrs, {"begin": begin, "end": end, "strides": strides, "axes": None, "slice_mode": "end"})
    bounded = Call(call.op, call.args, attrs, (), call.span)
    return typed(bounded, TensorType(counts, ty.dtype)) if has_sizes(strides) else bounded


def type_of_sizes(call: Call, ty: Type | None, elements: Elements) -> TensorType | None:
    """The type of a call that had the type `ty`, where sizes need another rule than numbers; None for all other calls.

    `arange` may count between sizes, and `squeeze` takes away sizes, which must be 1. Diagonals have the shorter of two extents.
    """
    assert isinstance(call.op, Op)
    rule = _TYPES.get(call.op.name)
    shape = rule(call, elements) if rule is not None else None
    return TensorType(shape, ty.dtype) if shape is not None and isinstance(ty, TensorType) else None


def _range(call: Call, elements: Elements) -> list[int] | None:
    """The extent of `arange`; None for unknown starts, stops or steps."""
    values = [elements.of(a) for a in call.args]
    if any(v is None or v.dtype.kind == "f" for v in values):
        return None
    start, stop, step = (v.item() for v in values if v is not None)
    if isinstance(step, Size) or not step:
        return None
    return [-((start - stop) // step) if step > 0 else -((stop - start) // -step)]


def _squeezed(call: Call, elements: Elements) -> list[int] | None:
    """The extents that `squeeze` leaves; None where it takes none away that is a size."""
    shape: list[int] = list(call.args[0].checked_type.shape)  # type: ignore[union-attr]
    away = {axis % len(shape) for axis in call.attrs.axis or ()}
    sizes = [shape[axis] for axis in away if isinstance(shape[axis], Size)]
    for size in sizes:
        equate(size, 1)  # type: ignore[arg-type]
    return [d for axis, d in enumerate(shape) if axis not in away] if sizes else None


def _with_diagonals(call: Call, elements: Elements) -> list[int] | None:
    """The extents of a matrix whose diagonals are set. The kernel checks those of the diagonals."""
    data, diagonals = (list(arg.checked_type.shape) for arg in call.args)  # type: ignore[union-attr]
    attrs = call.attrs
    expected = [*data[:-2], *([attrs.k2 - attrs.k1 + 1] if attrs.k1 != attrs.k2 else [])]
    exist = data[-2] > -attrs.k1 and data[-1] > attrs.k2
    return data if exist and all(map(must_equal, expected, diagonals)) else None


_TYPES: Mapping[str, Callable[[Call, Elements], list[int] | None]] = {
    "arange": _range,
    "squeeze": _squeezed,
    "matrix_set_diag": _with_diagonals,
}
