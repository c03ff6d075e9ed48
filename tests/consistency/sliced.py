"""Calls of operators with some arguments that are sliced along an axis of unknown extent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from relaylang.ir import ANY, Call, Function, TensorType, Tuple, Var
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.typing import infer
from tests.consistency.calls import Made


def tensors(arg: Any) -> list[np.ndarray]:
    return list(arg) if isinstance(arg, tuple) else [np.asarray(arg)]


def ways(args: Sequence[Any]) -> Iterator[tuple[bool, ...]]:
    """Which arguments may be sliced together: tensors of as many entries, and at least one."""

    def length(arg: Any) -> int:
        found = {x.shape[0] if x.ndim else 0 for x in tensors(arg)}
        return found.pop() if len(found) == 1 else 0

    for count in range(1, min(len(args), 4) + 1):
        for chosen in combinations(range(min(len(args), 4)), count):
            lengths = {length(args[n]) for n in chosen}
            if len(lengths) == 1 and min(lengths) > 0:
                yield tuple(n in chosen for n in range(len(args)))


def several(x: np.ndarray, sliced: bool) -> np.ndarray:
    """A sliced tensor of more than one entry: many cases have one image."""
    return np.concatenate([x, np.roll(x, 1), np.roll(x, 2)]) if sliced and x.shape[0] == 1 else x


def function(made: Made, along: Sequence[bool]) -> Function | None:
    """The call with `?` for the extents along which it is sliced; None where the checker refuses it."""
    name, attrs, args = made
    op = OPS[name]
    params: list[Var] = []

    def leaf(x: np.ndarray, sliced: bool) -> Var:
        params.append(Var(f"p{len(params)}", TensorType((ANY, *x.shape[1:]) if sliced else x.shape, x.dtype.name)))
        return params[-1]

    operands: list[Any] = []
    for arg, sliced in zip(args, along):
        parts = [leaf(x, sliced) for x in tensors(arg)]
        operands.append(Tuple(parts) if isinstance(arg, tuple) else parts[0])
    try:
        made_function = Function(params, Call(op, operands, make_attrs(op.attrs, attrs) if op.attrs is not None else None))
    except AttrError:
        return None
    return None if any(d.severity == "error" for d in infer(made_function, fragment=True)) else made_function
