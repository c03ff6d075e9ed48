"""Lowerings of operators, one file a family, as in `relaylang.ops`.

`RECIPES`: operators whose result is computed element by element where it is used. `ANCHORS`: operators with loops of
their own. `lowered()` names all that the backend can compile.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.backends.cpu.kernel import AnchorLowering, Kernel, Value
from relaylang.backends.cpu.lower import nn_conv, nn_dense, nn_norm, nn_pool, qnn, reduce, tensor, transform
from relaylang.ir import Call

Lowering = Callable[[Kernel, Call, list[Any]], Value]

RECIPES: dict[str, Lowering] = {**tensor.RECIPES, **transform.RECIPES, **nn_norm.RECIPES, **qnn.RECIPES}
ANCHORS: dict[str, AnchorLowering] = {
    **reduce.ANCHORS,
    **nn_norm.ANCHORS,
    **nn_pool.ANCHORS,
    **nn_dense.ANCHORS,
    **nn_conv.ANCHORS,
    **qnn.ANCHORS,
}


def lowered() -> frozenset[str]:
    """The operators that have a lowering."""
    return frozenset(RECIPES) | frozenset(ANCHORS)
