"""Lowerings of operators, one file a family, as in `relaylang.ops`.

`RECIPES`: operators whose result is computed element by element where it is used. `ANCHORS`: operators with loops of
their own. `lowered()` names all that the backend can compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.backends.cpu.kernel import AnchorLowering, Kernel, Value
from relaylang.backends.cpu.lower import (
    algorithm,
    boxes,
    image,
    nn_conv,
    nn_dense,
    nn_grad,
    nn_norm,
    nn_pool,
    nn_sparse,
    qnn,
    random,
    reduce,
    sampling,
    scatter,
    signal,
    tensor,
    transform,
    vision,
)
from relaylang.backends.cpu.lower.texts import with_texts
from relaylang.ir import Call
from relaylang.rules.decompositions import RULES

#: Operators that simplification for inference replaces (`passes.simplify_inference`).
SIMPLIFIED = frozenset({"nn.layer_norm", "nn.group_norm", "nn.instance_norm", "nn.l2_normalize"})

Lowering = Callable[[Kernel, Call, list[Any]], Value]

#: Recipes that write stages of their own.
APART: dict[str, Lowering] = {
    **algorithm.RECIPES,
    **boxes.RECIPES,
    **nn_sparse.RECIPES,
    **random.RECIPES,
    **scatter.APART,
    **signal.RECIPES,
    **vision.APART,
}
RECIPES: dict[str, Lowering] = {
    **APART,
    **tensor.RECIPES,
    **transform.RECIPES,
    **scatter.RECIPES,
    **image.RECIPES,
    **vision.RECIPES,
    **nn_norm.RECIPES,
    **qnn.RECIPES,
}
ANCHORS: dict[str, AnchorLowering] = {
    **reduce.ANCHORS,
    **scatter.ANCHORS,
    **algorithm.ANCHORS,
    **nn_norm.ANCHORS,
    **nn_pool.ANCHORS,
    **nn_dense.ANCHORS,
    **nn_conv.ANCHORS,
    **nn_grad.ANCHORS,
    **nn_sparse.ANCHORS,
    **image.ANCHORS,
    **sampling.ANCHORS,
    **signal.ANCHORS,
    **qnn.ANCHORS,
}


#: Operators whose stages need finished operands: they are never fused with their producers.
ALONE = frozenset(
    [*APART, *scatter.ANCHORS, *algorithm.ANCHORS, *sampling.ANCHORS, *signal.ANCHORS, *nn_grad.ANCHORS, *nn_sparse.ANCHORS]
)
#: Operators that read data with a border in place, with the border that a call wants (`halos`).
HALOS = nn_conv.HALOS
#: Operators that lay their operands out in a result: an operand may be made in its place.
ASSEMBLIES = transform.ASSEMBLIES
#: Operators whose results are their operand with another shape.
RESHAPES = transform.RESHAPES
#: Operators whose results are parts of their operand, perhaps with another shape: they may be read in place.
SELECTIONS = transform.SELECTIONS
#: Operators that the backend cannot compile, with the reasons. A name that ends in a dot stands for all names below it.
GAPS: dict[str, str] = {
    **dict.fromkeys(
        ["dyn.", "argwhere", "sparse_fill_empty_rows", "vm."],
        "the result's shape is known only when the program runs",
    ),
    "memory.kill": "memory is planned when the program is compiled",
    **dict.fromkeys(
        [
            "nn.bitpack",
            "nn.bitserial_conv2d",
            "nn.bitserial_dense",
            "nn.contrib_conv2d_gemm_weight_transform",
            "nn.contrib_conv2d_gemm_without_weight_transform",
            "nn.contrib_conv2d_winograd_weight_transform",
            "nn.contrib_conv2d_winograd_without_weight_transform",
            "nn.contrib_conv3d_winograd_weight_transform",
            "nn.contrib_conv3d_winograd_without_weight_transform",
            "auto_scheduler_layout_transform",
            "meta_schedule_layout_transform",
        ],
        "no code: made by TVM's schedules for its own",
    ),
}


def lowered() -> frozenset[str]:
    """The operators that have a lowering, or are put together from those that have."""
    return frozenset(RECIPES) | frozenset(ANCHORS) | frozenset(RULES) | SIMPLIFIED | with_texts()


def gap(name: str) -> str | None:
    """Why an operator cannot be compiled, None where it can."""
    if name in lowered():
        return None
    family = name.partition(".")[0] + "."
    return GAPS.get(name) or GAPS.get(family) or "no code yet"
