"""Nodes, types and old names as scripts of other projects use them. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import parser, relay
from tvm.relay.frontend.common import fold_constant, get_relay_op, set_span, shape_of, try_infer_value

TEXT = '#[version = "0.0.5"]\n'


def test_a_parameter_gets_the_type_that_inference_finds() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w, units=4))))
    assert str(mod["main"].params[1].type_annotation) == "Tensor[(4, 3), float32]"
    assert mod["main"].body.args[1] is mod["main"].params[1] and w.type_annotation is None


def test_let_variables_get_types_from_the_reader_and_lose_none_in_inner_functions() -> None:
    mod = parser.parse(TEXT + "def @main(%x: Tensor[(4), int32]) { let %f = fn (%y) { negative(%y) }; let %z = %f(%x); %z }")
    body = mod["main"].body
    assert body.body.var.type_annotation.concrete_shape == (4,)
    assert str(body.value.params[0].type_annotation) == "Tensor[(4), int32]" == str(mod["main"].ret_type)


def test_variables_of_a_normal_form_have_no_types_yet() -> None:
    mod = relay.fromtext(TEXT + "def @main(%x: Tensor[(4), int32]) { let %a: Tensor[(4), int32] = negative(%x); abs(%a) }")
    let = relay.transform.ToANormalForm()(mod)["main"].body
    assert let.var.type_annotation is not None and let.body.var.type_annotation is None
    typed = relay.transform.InferType()(relay.transform.ToANormalForm()(mod))
    assert str(typed["main"].body.body.var.type_annotation) == "Tensor[(4), int32]"


def test_the_reader_has_its_names_in_tvm_parser() -> None:
    assert str(parser.fromtext(TEXT + "def @main(%x: Tensor[(2), int8]) { %x }")["main"].ret_type) == "Tensor[(2), int8]"
    assert parser.parse_expr(TEXT + "add(1, 2)").op.name == "add"
    parser.SpanCheck()(parser.parse(TEXT + "def @main(%x: Tensor[(2), int8]) { negative(%x) }"))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_the_element_type_of_a_constant_is_a_text_for_scripts_and_a_type_for_numpy(dtype: str) -> None:
    data = relay.const(np.array([1, 0]), dtype).data
    assert isinstance(data.dtype, str) and data.dtype == dtype and dtype[:3] in data.dtype and {dtype: 1}[data.dtype]
    assert np.dtype(data.dtype) == data.numpy().dtype and data.dtype == data.numpy().dtype
    assert data.dtype != "complex64" and data.dtype.itemsize == data.numpy().itemsize
    assert np.array_equal(data.view(np.uint8), data.numpy().view(np.uint8))


def test_attributes_are_read_by_key() -> None:
    attrs = relay.nn.lrn(relay.var("d", shape=(1, 4, 2, 2))).attrs
    assert attrs.get_str("axis") == 1 and attrs.get_int("axis") == 1 and "axis" in attrs.keys()


def test_arguments_that_are_assigned_are_read_again_and_change_no_text() -> None:
    call = relay.negative(relay.var("x", shape=(2,)))
    text = str(call)
    call.args = ["a cell"]
    assert call.args == ["a cell"] and str(call) == text
    assert str(relay.transform.InferType()(tvm.IRModule.from_expr(call))).count("negative(%x)") == 1


def test_simplify_expr_keeps_batch_flatten() -> None:
    x = relay.var("x", shape=(1, 4))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.batch_flatten(x)))
    assert "batch_flatten" in str(relay.transform.SimplifyExpr()(mod))


def test_star_imports_give_the_names_of_a_module() -> None:
    names: dict = {}
    exec("from tvm.relay import *\nfrom tvm.relay.dataflow_pattern import *", names)
    assert names["nn"].conv2d is relay.nn.conv2d and names["is_op"]("add") is not None and "backends" not in names


def test_names_of_earlier_versions() -> None:
    assert tvm.context("cpu", 0) == tvm.cpu(0) and relay.Module is tvm.IRModule
    assert tvm.contrib.util.tempdir is tvm.contrib.utils.tempdir and tvm.module.load is tvm.runtime.load_module
    data = relay.var("d", shape=(1, 3, 4, 4))
    for given, mode in (((), "half_pixel"), ((True,), "align_corners"), ((False,), "asymmetric")):
        call = relay.image.resize(data, (8, 8), "NCHW", "bilinear", *given)
        assert (call.attrs.method, call.attrs.coordinate_transformation_mode) == ("linear", mode)
    with pytest.raises(ValueError, match="nearest_neighbor"):
        relay.image.resize(data, (8, 8), method="lanczos")
    assert {"llvm", "c", "cuda"} <= set(tvm.target.Target.list_kinds())
    assert tvm.target.target.micro("host").attrs["model"] == "host" and tvm.target.mali().device_name == "mali"
    tvm.testing.utils.install_request_hook(depth=3)


def test_types_say_whether_an_extent_is_unknown() -> None:
    known, unknown = relay.TensorType((2, 3)), relay.TensorType((relay.Any(), 3))
    assert not relay.ty.is_dynamic(known) and relay.ty.is_dynamic(unknown)
    assert relay.ty.is_dynamic(relay.TupleType([known, relay.FuncType([known], unknown)])) and not relay.ty.type_has_any(known)


def test_importers_of_ones_own_find_operators_shapes_and_values() -> None:
    x = relay.var("x", shape=(2, 3))
    assert get_relay_op("softmax") is relay.nn.softmax and get_relay_op("add") is relay.add
    with pytest.raises(tvm.error.OpNotImplemented, match="no operator softmaxx"):
        get_relay_op("softmaxx")
    assert np.array_equal(shape_of(x).data.numpy(), [2, 3]) and shape_of(relay.var("y", shape=(relay.Any(),))).op.name == "shape_of"
    assert try_infer_value(relay.const(2) + relay.const(3)) == (5, True) and try_infer_value(x) == (x, False)
    assert fold_constant(relay.const(2) + relay.const(3)).data == 5


def test_nodes_of_a_layer_get_its_name_and_keep_the_places_that_they_have() -> None:
    x = relay.var("x", shape=(2,))
    first = set_span(relay.nn.relu(x), "first")
    second = set_span(relay.abs(relay.negative(first)), "second")
    assert [second.span.source_name.name, second.args[0].span.source_name.name] == ["second", "second"]
    assert second.args[0].args[0] is first and first.span.source_name.name == "first" and first.args[0] is x
