"""The rewrites for detection networks of PyTorch: they find TVM's forms, and keep what these compute."""

from __future__ import annotations

import numpy as np

import relaylang as relay
from relaylang.ir import Call, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.transform import InferType
from relaylang.tvm.torch_rewrites import (
    rewrite_batched_nms_with_max_out_size,
    rewrite_nms_to_batched_nms,
    rewrite_scatter_to_gather,
)

#: Boxes shifted by their classes, as torchvision's `batched_nms` does.
_SHIFTED = """
    %0 = multiply(cast(%classes, dtype="float32"), add(max(%boxes), 1f));
    %1 = add(%boxes, expand_dims(%0, axis=1));
    %2 = expand_dims(concatenate((expand_dims(%scores, axis=-1), %1), axis=-1), axis=0);
    %3 = vision.non_max_suppression(%2, %count, %indices, -1, 0.5f, force_suppress=True, top_k=-1, coord_start=1,
      score_index=0, id_index=-1, return_indices=True, invalid_to_bottom=False);
"""
_PARAMS = (
    "%boxes: Tensor[(4, 4), float32], %scores: Tensor[(4), float32], %classes: Tensor[(4), int64],"
    " %count: Tensor[(1), int32], %indices: Tensor[(1, 4), int32]"
)
_INPUTS = (
    np.array([[0, 0, 4, 4], [0, 0, 4, 3.9], [0, 0, 4, 4], [8, 8, 9, 9]], "float32"),
    np.array([0.9, 0.8, 0.7, 0.6], "float32"),
    np.array([0, 0, 1, 1]),
    np.array([4], "int32"),
    np.arange(4, dtype="int32")[None],
)


def operators(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and isinstance(n.op, Op)]


def computed(mod: IRModule, *inputs: object) -> list[np.ndarray]:
    value = relay.create_executor("debug", mod).evaluate()(*inputs)
    return [np.asarray(part) for part in (value if isinstance(value, (list, tuple)) else [value])]


def test_boxes_are_suppressed_within_their_classes() -> None:
    mod = InferType()(relay.parse(f"def @main({_PARAMS}) {{ {_SHIFTED} (%3.0, %3.1) }}"))
    new = rewrite_nms_to_batched_nms(mod)
    assert "multiply" in operators(mod) and "multiply" not in operators(new)
    (call,) = {n for n in post_order(new["main"]) if isinstance(n, Call) and n.op == relay.op.get("vision.non_max_suppression")}
    assert (call.attrs.id_index, call.attrs.coord_start, call.attrs.force_suppress) == (0, 2, False)
    before, after = computed(mod, *_INPUTS), computed(new, *_INPUTS)
    count = int(before[1].reshape(()))
    assert count == int(after[1].reshape(())) == 3
    np.testing.assert_array_equal(before[0][0, :count], after[0][0, :count])


def test_the_suppression_ends_at_the_boxes_that_are_kept() -> None:
    text = f"""def @main({_PARAMS}, %some: bool, %none: Tensor[(?), int64], %zero: Tensor[(1), int32], %one: Tensor[(1), int32]) {{
      {_SHIFTED}
      %4 = squeeze(%3.0, axis=[0]);
      %5 = dyn.strided_slice(%4, %zero, squeeze(%3.1, axis=[1]), %one, begin=None, end=None, strides=None, slice_mode="size");
      %6 = if (%some) {{ %none }} else {{ cast(%5, dtype="int64") }};
      strided_slice(%6, begin=[0], end=[2], strides=[1]) }}"""
    mod = InferType()(relay.parse(text))
    mod = rewrite_nms_to_batched_nms(mod)
    new = rewrite_batched_nms_with_max_out_size(mod)
    (call,) = {n for n in post_order(new["main"]) if isinstance(n, Call) and n.op == relay.op.get("vision.non_max_suppression")}
    assert int(call.args[3].data) == 2
    rest = (False, np.zeros((0,), "int64"), np.array([0], "int32"), np.array([1], "int32"))
    (before,), (after,) = computed(mod, *_INPUTS, *rest), computed(new, *_INPUTS, *rest)
    np.testing.assert_array_equal(before, after)
    assert after.tolist() == [0, 2]


def test_features_of_all_levels_are_gathered_at_once() -> None:
    level = """
      %w{n} = argwhere(equal(%levels, {n}i64)); %s{n} = split(%w{n}, indices_or_sections=1, axis=1);
      %i{n} = reshape(squeeze(%s{n}.0, axis=[1]), newshape=[-1, 1, 1, 1]);
      %e{n} = repeat(repeat(repeat(%i{n}, repeats=3, axis=1), repeats=1, axis=2), repeats=1, axis=3);
      %r{next} = scatter_elements(%r{n}, %e{n}, %f{n}, axis=0, reduction="update");
    """
    text = """def @main(%levels: Tensor[(5), int64], %f0: Tensor[(3, 3, 1, 1), float32], %f1: Tensor[(2, 3, 1, 1), float32],
      %r0: Tensor[(5, 3, 1, 1), float32]) { BODY reshape(%r2, newshape=[0, -1, 1, 1]) }"""
    body = "".join(level.format(n=n, next=n + 1) for n in range(2))
    for name in ("w", "s", "i", "e"):
        for n in range(2):
            body = body.replace(f"%{name}{n}", f"%{ {'w': 10, 's': 20, 'i': 30, 'e': 40}[name] + n }")
    text = text.replace("BODY", body).replace("%r1", "%51").replace("%r2", "%52")
    mod = InferType()(relay.parse(text))
    new = rewrite_scatter_to_gather(mod, 2)
    assert "scatter_elements" in operators(mod) and "scatter_elements" not in operators(new)
    inputs = (
        np.array([0, 1, 0, 1, 0]),
        np.arange(9, dtype="float32").reshape(3, 3, 1, 1),
        np.arange(100, 106, dtype="float32").reshape(2, 3, 1, 1),
        np.zeros((5, 3, 1, 1), "float32"),
    )
    (before,), (after,) = computed(mod, *inputs), computed(new, *inputs)
    np.testing.assert_array_equal(before, after)


def test_another_program_stays_as_it_is() -> None:
    mod = InferType()(relay.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }"))
    for rule in (rewrite_nms_to_batched_nms, rewrite_batched_nms_with_max_out_size, lambda m: rewrite_scatter_to_gather(m, 4)):
        assert relay.ir.structural_equal(rule(mod), mod)
