"""Each operator on tensors with a named extent: its type holds for each number in place of the name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.ir import ANY, Call, Dim, Function, IRModule, TensorType, Tuple, TupleType, Type, TypeVar, Var, is_static
from relaylang.ir.extents import with_names
from relaylang.ir.types import dim_text
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.typing import infer
from tests.consistency.calls import Made, bases_by_operator
from tests.shared import few

#: Operators that take no name where their relation takes numbers, or lose one, and why.
GAPS = {
    **dict.fromkeys(
        ("dyn.reshape", "dyn.broadcast_to", "dyn.tile", "dyn.zeros", "dyn.ones", "dyn.full", "dyn.sparse_to_dense"),
        "the rank of the result is the length of a vector",
    ),
    "squeeze": "without the attribute axis, axes of extent 1 go",
    "nn.upsampling3d": "extents times a scale that is not whole are rounded to the next even number",
    "collapse_sum_to": "the rank of the result is the length of a vector",
    "nn.contrib_conv3d_winograd_weight_transform": "it tells the kinds of kernels by their depth",
    "nn.conv2d_backward_weight": "the shape of a kernel depends on the number of channels, which is 1 for depthwise ones",
}
#: The most calls of an operator.
_CALLS = 12
N = TypeVar("n", "ShapeVar")


def _types(args: Sequence[Any], old: int, new: Dim) -> list[Type]:
    """The types of arguments, with an extent in place of another one."""

    def of(x: Any) -> TensorType:
        return TensorType([new if d == old else d for d in np.shape(x)], x.dtype.name)

    return [TupleType(list(map(of, a))) if isinstance(a, tuple) else of(a) for a in args]


def _result(name: str, attrs: Any, types: Sequence[Type]) -> Type | str:
    """The type of a call, or the title of its error."""
    params: list[Var] = []

    def operand(ty: Type) -> Any:
        if isinstance(ty, TupleType):
            return Tuple(list(map(operand, ty.fields)))
        params.append(Var(f"p{len(params)}", ty))
        return params[-1]

    mod = IRModule.from_expr(Function(params, Call(OPS[name], list(map(operand, types)), attrs), None, [N]))
    wrong = [d.title for d in infer(mod) if d.severity == "error"]
    ty = mod["main"].body.checked_type
    return wrong[0] if wrong or ty is None else ty


def _dims(ty: Type) -> Iterator[Dim]:
    if isinstance(ty, TupleType):
        for field in ty.fields:
            yield from _dims(field)
    elif isinstance(ty, TensorType):
        yield from ty.shape


def _is_simple(numbers: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether numbers are linear in the extents, or their squares times a number."""
    by = (numbers[1] - numbers[0]) / (extents[1] - extents[0])
    linear = all(numbers[0] + by * (x - extents[0]) == y for x, y in zip(extents, numbers))
    return linear or all(y * extents[0] ** 2 == numbers[0] * x * x for x, y in zip(extents, numbers))


def _faults(name: str, made: Made, number: int) -> Iterator[str]:
    _, values, args = made
    try:
        attrs = make_attrs(OPS[name].attrs, values) if OPS[name].attrs is not None else None
    except AttrError:
        return
    shapes = [x.shape for a in args for x in (a if isinstance(a, tuple) else (a,)) if isinstance(x, np.ndarray)]
    for old in sorted({d for shape in shapes for d in shape if d > 1}):
        extents = [old * k for k in (1, 2, 3, 5, 7)] if number % 2 else [old + k for k in (0, 1, 2, 3, 5)]
        known = [_result(name, attrs, _types(args, old, n)) for n in extents]
        if any(isinstance(ty, str) for ty in known):
            continue
        call = f"{shapes} {values}, n for {old}"
        ty = _result(name, attrs, _types(args, old, N))
        if isinstance(ty, str):
            yield f"{call}: {ty}"
            continue
        columns = zip(*[_dims(k) for k in known if isinstance(k, Type)])
        for axis, (dim, numbers) in enumerate(zip(_dims(ty), columns)):
            if not all(map(is_static, numbers)):
                continue
            if dim is ANY:
                if _is_simple(numbers, extents):
                    yield f"{call}: extent {axis} is ?, not {numbers}"
            elif [with_names(dim, lambda _, n=n: n) for n in extents] != list(numbers):
                yield f"{call}: extent {axis} is {dim_text(dim)}, not {numbers}"


@pytest.mark.parametrize("name", few([name for name in OPS if name != "arange"], 40))
def test_names_go_through(name: str) -> None:
    calls = bases_by_operator().get(name, [])[:_CALLS]
    faults = [fault for number, made in enumerate(calls) for fault in _faults(name, made, number)]
    assert bool(faults) == (name in GAPS), faults[:3]
