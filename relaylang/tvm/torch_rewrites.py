"""`tvm.relay.frontend.pytorch_utils`: rewrites for detection networks, as TVM's importer of PyTorch makes them.

The networks of torchvision shift the boxes of each class apart, so that one suppression serves all classes.
They scatter the features of each level into one tensor, and keep the best boxes after the suppression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.ir import Expr, Function, If, IRModule, const
from relaylang.passes.infer_type import InferType
from relaylang.patterns import (
    DFPattern,
    DFPatternCallback,
    is_constant,
    is_if,
    is_op,
    is_tuple,
    is_tuple_get_item,
    rewrite,
    wildcard,
)
from relaylang.tvm import op
from relaylang.tvm.torch_graph import getattr_attr_name, is_version_greater_than


class _Rewrite(DFPatternCallback):
    """Replaces what a pattern matches. `make` gets the matched root, and the values of the parts in their order."""

    def __init__(self, pattern: DFPattern, parts: list[DFPattern], make: Callable[..., Expr]) -> None:
        super().__init__()
        self.pattern, self.parts, self.make = pattern, parts, make

    def callback(self, pre: Expr, post: Expr, node_map: Any) -> Expr:
        return self.make(post, *[node_map[part][0] for part in self.parts])


def _in_main(mod: IRModule, rule: _Rewrite) -> IRModule:
    main = rewrite(rule, InferType()(mod)["main"])
    assert isinstance(main, Function)
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): main}))


def _suppression(data: Expr, count: Expr, indices: Expr, most: int, threshold: Expr) -> Any:
    """A suppression within each class, of rows (class, score, four coordinates)."""
    return op.vision.non_max_suppression(
        data,
        count,
        indices,
        most,
        threshold,
        force_suppress=False,
        top_k=-1,
        coord_start=2,
        score_index=1,
        id_index=0,
        return_indices=True,
        invalid_to_bottom=False,
    )


def rewrite_nms_to_batched_nms(mod: IRModule) -> IRModule:
    """A module whose @main suppresses boxes within their classes, where it shifted the boxes of each class apart."""
    boxes, scores, classes, threshold, count, indices = parts = [wildcard() for _ in range(6)]
    offsets = is_op("multiply")(is_op("cast")(classes), is_op("add")(is_op("max")(boxes), is_constant()))
    # the slice of the offsets, with which TVM writes `offsets[:, None]`, may stand between
    column = is_op("expand_dims")(offsets) | is_op("expand_dims")(is_op("strided_slice")(offsets))
    shifted = is_op("add")(boxes, column)
    data = is_op("expand_dims")(is_op("concatenate")(is_tuple([is_op("expand_dims")(scores), shifted])))
    pattern = is_op("vision.non_max_suppression")(data, count, indices, is_constant(), threshold)

    def make(root: Expr, boxes: Expr, scores: Expr, classes: Expr, threshold: Expr, count: Expr, indices: Expr) -> Expr:
        columns = [op.cast(op.expand_dims(classes, axis=-1), "float32"), op.expand_dims(scores, axis=-1), boxes]
        rows = op.expand_dims(op.concatenate(columns, -1), 0)
        suppressed: Expr = _suppression(rows, count, indices, -1, threshold).tuple_value
        return suppressed

    return _in_main(mod, _Rewrite(pattern, list(parts), make))


def rewrite_batched_nms_with_max_out_size(mod: IRModule) -> IRModule:
    """A module whose @main ends the suppression at as many boxes as it keeps afterwards."""
    cond, empty, data, count, indices, threshold = parts = [wildcard() for _ in range(6)]
    kept = is_op("vision.non_max_suppression")(data, count, indices, is_constant(), threshold)
    rows, size = (is_op("squeeze")(is_tuple_get_item(kept, n)) for n in range(2))
    anything = [wildcard() for _ in range(2)]
    cut = is_op("dyn.strided_slice")(rows, anything[0], size, anything[1])
    pattern = is_op("strided_slice")(is_if(cond, empty, is_op("cast")(cut)))

    def make(root: Any, cond: Expr, empty: Expr, data: Expr, count: Expr, indices: Expr, threshold: Expr) -> Expr:
        suppressed = _suppression(data, count, indices, int(root.attrs.end[0]), threshold)
        rows, size = op.squeeze(suppressed[0], axis=[0]), op.squeeze(suppressed[1], axis=[1])
        first = op.strided_slice(rows, begin=const([0]), end=size, slice_mode="size")
        return If(cond, empty, op.cast(first, "int64"))

    return _in_main(mod, _Rewrite(pattern, list(parts), make))


def rewrite_scatter_to_gather(mod: IRModule, num_scales: int) -> IRModule:
    """A module whose @main gathers the features of all levels at once, where it scattered those of each level."""
    levels, features = wildcard(), [wildcard() for _ in range(num_scales)]
    scattered: DFPattern = wildcard()
    for feature in features:
        where = is_op("split")(is_op("argwhere")(is_op("equal")(levels, is_constant())))
        index: DFPattern = is_op("squeeze")(is_tuple_get_item(where, 0))
        index = is_op("reshape")(is_tuple_get_item(is_tuple([index]), 0) | index)
        for _ in range(3):
            index = is_op("repeat")(index)
        scattered = is_op("scatter_elements")(scattered, index, feature)

    def make(root: Expr, levels: Expr, *features: Expr) -> Expr:
        positions = [op.split(op.argwhere(op.equal(levels, const(n, "int64"))), 1, axis=1)[0] for n in range(num_scales)]
        rows = op.concatenate([op.cast(op.squeeze(where, axis=[1]), "int64") for where in positions], 0)
        order = op.cast(op.argsort(rows), "int64")
        return op.reshape(op.take(op.concatenate(list(features), 0), order, axis=0), [0, -1, 1, 1])

    return _in_main(mod, _Rewrite(is_op("reshape")(scattered), [levels, *features], make))


__all__ = [
    "getattr_attr_name",
    "is_version_greater_than",
    "rewrite_batched_nms_with_max_out_size",
    "rewrite_nms_to_batched_nms",
    "rewrite_scatter_to_gather",
]
