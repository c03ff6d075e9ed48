"""The rules of slices beside the interpreter: where one holds, results of slices are slices of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Call, TensorType, TupleType, Type
from relaylang.rules.slices import RULES
from tests.consistency.calls import Made, bases, key
from tests.consistency.sliced import function, several, tensors, ways
from tests.shared import few


def _results(found: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in found] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def _opened(ty: Type | None) -> list[bool]:
    """Which of the results are sliced."""
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return [isinstance(t, TensorType) and bool(t.shape) and t.shape[0] is ANY for t in fields]


def wrong(made: Made, along: Sequence[bool]) -> str | None:
    """The difference that slicing makes where the rule says that it makes none; None otherwise."""
    made_function = function(made, along)
    if made_function is None:
        return None
    call = made_function.body
    assert isinstance(call, Call)
    if not RULES[made[0]](call, along):
        return None
    inputs = [(several(x, sliced), sliced) for arg, sliced in zip(made[2], along) for x in tensors(arg)]
    try:
        whole = _results(evaluate(made_function, *[x for x, _ in inputs]))
    except RelayError:
        return None
    SLICED.add(made[0])
    count = next(x.shape[0] for x, sliced in inputs if sliced)
    parts = [_results(evaluate(made_function, *[x[n : n + 1] if sliced else x for x, sliced in inputs])) for n in range(count)]
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
        for along in ways(made[2]):
            said = wrong(made, along)
            if said is not None:
                found[f"{key(made)} {along}"] = said
    assert found == {}
    assert {name for name in RULES if len(name) % 4 == shard} - SLICED == set()
