"""DynamicToStatic: each operator, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import Constant, Function, IRModule, TensorType, Tuple, Var
from relaylang.ops.build import op_call
from relaylang.rules.dynamic_to_static import RULES as STATIC
from relaylang.testing.generators.programs import T
from relaylang.transform import InferType, Sequential
from tests.passes.meaning import keeps_meaning
from tests.passes.texts import made, ops


def test_dynamic_operators_become_static() -> None:
    two = Constant(np.array([3, 2], "int64"))
    x = Var("x", T)
    first = op_call("dyn.reshape", [x, op_call("add", [two, Constant(np.array(0, "int64"))])])
    second = op_call("dyn.reshape", [op_call("exp", [x]), op_call("shape_of", [first], dtype="int64")])
    mod = InferType()(IRModule.from_expr(Function([x], op_call("nn.relu", [second]))))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == ["exp", "reshape", "nn.relu"] and new["main"].body.checked_type == TensorType((3, 2))


@pytest.mark.parametrize(
    "name, shape, operands, attrs",
    [
        ("dyn.reshape", (2, 3), [[3, -1]], {}),
        ("dyn.broadcast_to", (1, 3), [[4, 2, 3]], {}),
        ("dyn.tile", (2, 3), [[2, 1, 2]], {}),
        ("dyn.squeeze", (1, 2, 1, 3), [[0, 2]], {}),
        ("dyn.expand_dims", (2, 3), [1], {"num_newaxis": 2}),
        ("dyn.topk", (2, 5), [3], {"axis": -1, "ret_type": "both", "dtype": "int32"}),
        ("dyn.strided_slice", (4, 6), [[1, 0], [3, 5], [1, 2]], {"slice_mode": "end"}),
        ("dyn.strided_slice", (4, 6), [[1, 0], [3, 5], [1, 1]], {"slice_mode": "size"}),
        ("dyn.nn.pad", (2, 3), [[[1, 0], [0, 2]], np.float32(1.5)], {"pad_mode": "constant"}),
        ("dyn.nn.upsampling", (1, 2, 3, 3), [np.float64(2), np.float64(3)], {}),
        ("dyn.nn.upsampling3d", (1, 2, 2, 2, 2), [np.float64(2), np.float64(1), np.float64(3)], {}),
        ("dyn.image.resize2d", (1, 2, 4, 4), [[6, 3], np.zeros(4, "float32")], {"layout": "NCHW", "method": "linear"}),
        ("dyn.zeros", None, [[2, 3]], {"dtype": "float32"}),
        ("dyn.ones", None, [[2, 3]], {"dtype": "int8"}),
        ("dyn.full", (), [[2, 3]], {"dtype": "float32"}),
    ],
)
def test_each_dynamic_operator_becomes_static(
    name: str, shape: tuple[int, ...] | None, operands: list[object], attrs: dict[str, object]
) -> None:
    x = Var("x", TensorType(shape if shape is not None else ()))
    given = [Constant(np.asarray(v, np.asarray(v).dtype)) for v in operands]
    body = op_call(name, [x, *given] if shape is not None else list(given), **attrs)
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == [name.removeprefix("dyn.")]


def test_indices_and_one_hot_become_static() -> None:
    i, on, off = Var("i", TensorType((3,), "int32")), Constant(np.float32(1)), Constant(np.float32(0))
    hot = op_call("dyn.one_hot", [i, on, off, Constant(np.int32(12))], axis=-1, dtype="float32")
    sparse = op_call(
        "dyn.sparse_to_dense", [Constant(np.array([1, 4, 6])), op_call("cast", [i], dtype="float32"), off, Constant(np.array([9]))]
    )
    mod = InferType()(IRModule.from_expr(Function([i], Tuple([hot, sparse]))))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == ["one_hot", "cast", "sparse_to_dense"]
    assert {name for name in relay.ops.OPS if name.startswith("dyn.")} == set(STATIC)


def test_shapes_become_known_through_lets() -> None:
    text = """def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3, 2), float32]) {
  let %a = dyn.reshape(%x, shape_of(%y, dtype="int32"), newshape=[]);
  let %b = dyn.broadcast_to(tanh(%a), shape_of(%a, dtype="int32"), shape=[]);
  (dyn.reshape(%x, shape_of(%b, dtype="int32"), newshape=[]), %b) }"""
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), InferType()(relay.parse(text)))
    assert not any(name.startswith("dyn.") for name in ops(new))
    assert repr(new["main"].body.checked_type) == "(Tensor[(3, 2), float32], Tensor[(3, 2), float32])"
