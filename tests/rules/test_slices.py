"""The rules of slices beside the interpreter: where one holds, the slices of the result are the results of the slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Call, Function, TensorType, Tuple, TupleType, Type, Var
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.rules.slices import RULES
from relaylang.typing import infer
from tests.consistency.calls import Made, bases, key
from tests.shared import few


def _tensors(arg: Any) -> list[np.ndarray]:
    return list(arg) if isinstance(arg, tuple) else [np.asarray(arg)]


def _ways(args: Sequence[Any]) -> Iterator[tuple[bool, ...]]:
    """Which arguments may be sliced together: tensors of as many entries, and one more than one."""
    def length(arg: Any) -> int:
        found = {x.shape[0] if x.ndim else 0 for x in _tensors(arg)}
        return found.pop() if len(found) == 1 else 0

    for count in range(1, min(len(args), 4) + 1):
        for chosen in combinations(range(min(len(args), 4)), count):
            lengths = {length(args[n]) for n in chosen}
            if len(lengths) == 1 and min(lengths) > 0:
                yield tuple(n in chosen for n in range(len(args)))


def _several(x: np.ndarray, sliced: bool) -> np.ndarray:
    """A sliced tensor of more than one entry: many cases have one image."""
    return np.concatenate([x, np.roll(x, 1), np.roll(x, 2)]) if sliced and x.shape[0] == 1 else x


def _function(made: Made, along: Sequence[bool]) -> Function | None:
    """The call with `?` for the extents along which it is sliced; None where the checker refuses it."""
    name, attrs, args = made
    op = OPS[name]
    params: list[Var] = []

    def leaf(x: np.ndarray, sliced: bool) -> Var:
        params.append(Var(f"p{len(params)}", TensorType((ANY, *x.shape[1:]) if sliced else x.shape, x.dtype.name)))
        return params[-1]

    operands: list[Any] = []
    for arg, sliced in zip(args, along):
        parts = [leaf(x, sliced) for x in _tensors(arg)]
        operands.append(Tuple(parts) if isinstance(arg, tuple) else parts[0])
    try:
        function = Function(params, Call(op, operands, make_attrs(op.attrs, attrs) if op.attrs is not None else None))
    except AttrError:
        return None
    return None if any(d.severity == "error" for d in infer(function, fragment=True)) else function


def _results(found: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in found] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def _opened(ty: Type | None) -> list[bool]:
    """Which of the results are sliced."""
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return [isinstance(t, TensorType) and bool(t.shape) and t.shape[0] is ANY for t in fields]


def wrong(made: Made, along: Sequence[bool]) -> str | None:
    """The difference that slicing makes where the rule says that it makes none; None otherwise."""
    function = _function(made, along)
    if function is None:
        return None
    call = function.body
    assert isinstance(call, Call)
    if not RULES[made[0]](call, along):
        return None
    inputs = [(_several(x, sliced), sliced) for arg, sliced in zip(made[2], along) for x in _tensors(arg)]
    try:
        whole = _results(evaluate(function, *[x for x, _ in inputs]))
    except RelayError:
        return None
    SLICED.add(made[0])
    count = next(x.shape[0] for x, sliced in inputs if sliced)
    parts = [_results(evaluate(function, *[x[n : n + 1] if sliced else x for x, sliced in inputs])) for n in range(count)]
    for n, (ours, sliced) in enumerate(zip(whole, _opened(call.checked_type))):
        joined = np.concatenate([p[n] for p in parts]) if sliced else parts[0][n]
        if joined.shape != ours.shape or joined.dtype != ours.dtype:
            return f"{joined.dtype}{joined.shape} in place of {ours.dtype}{ours.shape}"
        near = joined == ours if ours.dtype.kind in "biu" else np.isclose(joined, ours, 1e-5, 1e-6, equal_nan=True)
        if not near.all():
            return f"{int((~near).sum())} of {near.size} elements differ"
    return None


#: The operators with a call that was sliced.
SLICED: set[str] = set()
X = np.arange(24, dtype="float32").reshape(2, 3, 4)
#: Calls of operators whose other cases work along the first axis.
MORE: list[Made] = [
    ("debug", {}, [X]),
    ("device_copy", {}, [X]),
    ("nn.mirror_pad", {"pad_width": [[0, 0], [1, 1], [0, 2]]}, [X]),
    ("strided_slice", {"begin": [1, 0], "end": [3, 3], "strides": [1, 2], "axes": [1, 2]}, [X]),
    ("strided_slice", {"begin": [0, 1], "end": [None, 3], "strides": [1], "axes": None}, [X]),
]


@pytest.mark.parametrize("shard", few(range(4)))
def test_results_of_slices_are_slices_of_results(shard: int) -> None:
    found: dict[str, str] = {}
    for made in [*bases(), *MORE]:
        if made[0] not in RULES or len(made[0]) % 4 != shard:
            continue
        for along in _ways(made[2]):
            said = wrong(made, along)
            if said is not None:
                found[f"{key(made)} {along}"] = said
    assert found == {}
    assert {name for name in RULES if len(name) % 4 == shard} - SLICED == set()
