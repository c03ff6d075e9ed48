"""What nodes, types and modules answer to scripts that were written for TVM."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import (
    ANY,
    Function,
    GlobalVar,
    IRModule,
    TensorType,
    Tuple,
    structural_diff,
    structural_equal,
    structural_hash,
)
from relaylang.partition import get_pattern_table
from relaylang.transform import InferType


def test_the_unknown_dimension_is_called_any() -> None:
    assert relay.Any() is ANY


def test_tuples_have_a_length_and_fields_by_number() -> None:
    x, y = relay.var("x"), relay.var("y")
    both = Tuple([x, y])
    assert len(both) == 2 and both[1] is y and both[-1] is y and list(both) == [x, y]
    with pytest.raises(IndexError):
        both[2]
    assert Tuple([])  # an expression, with any fields


def test_uint1_is_bool() -> None:
    assert TensorType((), "uint1") == TensorType((), "bool")
    assert relay.const(1, "uint1").dtype == "bool"


@pytest.mark.parametrize("value", [1.5, [1.5], np.float64(1.5), np.zeros(2)])
def test_constants_are_floats_of_32_bits(value: object) -> None:
    assert relay.const(value).dtype == "float32" and relay.const(value, "float64").dtype == "float64"


@pytest.mark.parametrize("value", [1, [1, 2], np.int64(1), np.arange(3)])
def test_constants_are_integers_of_32_bits(value: object) -> None:
    assert relay.const(value).dtype == "int32" and relay.const(value, "int64").dtype == "int64"


def test_constants_keep_what_32_bits_do_not_hold_and_other_types() -> None:
    assert relay.const(1 << 40).data == 1 << 40 and relay.const(np.array([0, -(1 << 31) - 1])).dtype == "int64"
    assert relay.const(np.zeros(2, "float16")).dtype == "float16" and relay.const(np.uint8(1)).dtype == "uint8"
    assert relay.Constant(np.zeros(2)).dtype == "float64"


def test_a_module_takes_a_file_of_the_standard_library() -> None:
    mod = IRModule()
    mod.import_from_std("nat.rly")
    assert {"nat_add", "nat_iterate"} <= {gv.name_hint for gv in mod} and len(mod.get_type("nat")) == 3


def test_a_gradient_of_a_global_function() -> None:
    mod = InferType()(relay.parse("def @f(%x: Tensor[(2), float32]) { multiply(%x, %x) }"))
    found = relay.transform.gradient(mod.get_global_var("f"), mod)
    value, (slope,) = relay.create_executor("debug").evaluate(found)(np.array([1, 3], "float32"))
    assert value.tolist() == [1, 9] and slope.tolist() == [2, 6]
    with pytest.raises(relay.RelayError, match="no function @g"):
        relay.transform.gradient(GlobalVar("g"), mod)


def test_rules_for_passes_and_tables_are_found_beside_the_operators() -> None:
    from relaylang.op.contrib import get_pattern_table as beside

    assert beside is get_pattern_table is relay.op.contrib.get_pattern_table
    assert relay.op.register_alter_op_layout is relay.transform.register_alter_op_layout
    assert relay.qnn.requantize is relay.qnn.op.requantize


def test_a_shape_of_numbers_is_concrete() -> None:
    assert TensorType((2, 3)).concrete_shape == (2, 3)
    with pytest.raises(TypeError, match="no number"):
        _ = TensorType((2, ANY)).concrete_shape


def test_functions_and_modules_are_copied_with_other_attributes() -> None:
    x = relay.var("x", shape=(2,))
    func = Function([x], x).with_attr("a", 1).with_attr({"b": 2, "c": 3}).with_attrs({"c": 4}).without_attr("a")
    assert func.attrs == {"b": 2, "c": 4} and func.params == (x,)

    mod = IRModule.from_expr(func)
    other = mod.with_attr("p", "q").with_attrs({"r": "s"})
    assert (other.get_attr("p"), other.get_attr("t"), mod.get_attr("p")) == ("q", None, None)
    assert other.without_attr("p").attrs == {"r": "s"} and other["main"] is func


def test_a_module_takes_what_another_one_has() -> None:
    text = "type T { A } def @f(%x: float32) { %x } def @g(%x: float32) { %x }"
    mod, other = relay.parse(text), relay.parse("type T { A, B } def @f(%x: float32) { negative(%x) } def @h() { 1 }")
    f = mod.get_global_var("f")
    mod.update(other)
    assert sorted(gv.name_hint for gv in mod) == ["f", "g", "h"] and mod.get_global_var("f") is f
    assert mod[f] is other["f"] and len(mod.get_type("T")) == 3
    mod.update({GlobalVar("g"): other["h"]})
    assert mod["g"] is other["h"] and len(mod) == 3


BARE = "def @main(%x: Tensor[(2), float32]) { let %y = add(%x, %x); negative(%y) }"
WRITTEN = BARE.replace("{ let %y", "-> Tensor[(2), float32] { let %y: Tensor[(2), float32]")


def test_found_types_stand_for_annotations_that_the_other_side_has() -> None:
    bare, written = relay.parse(BARE), relay.parse(WRITTEN)
    assert "type unknown" in str(structural_diff(bare, written))
    InferType()(bare)
    assert structural_equal(bare, written) and structural_equal(written, bare)
    assert structural_equal(bare, relay.parse(BARE))
    assert structural_hash(bare) == structural_hash(relay.parse(BARE))

    wrong = relay.parse(WRITTEN.replace("-> Tensor[(2)", "-> Tensor[(3)"))
    assert structural_diff(bare, wrong) == (
        "at @main.ret_type: the type Tensor[(2), float32] on the left, the type Tensor[(3), float32] on the right"
    )
    other = InferType()(relay.parse(WRITTEN.replace("negative", "exp")))
    assert "operator negative on the left, operator exp on the right" in str(structural_diff(bare, other))


def test_rows_of_pattern_tables_are_taken_apart_as_tuples() -> None:
    row = get_pattern_table("dnnl")[0]
    assert [row[0], row[1]] == list(row)[:2] == [row.name, row.pattern]
