"""The records against the inventory of TVM 0.16's operators."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from relaylang.ir import Call, FuncType, TupleType
from relaylang.ops import FAMILIES, OPS, get, make_attrs
from relaylang.ops.record import AttrError, OpPattern
from relaylang.repl.opdoc import example
from tests.shared import SHARED, check_each

REFERENCE = SHARED / "reference" / "relay_ops.json"
INVENTORY = json.loads(REFERENCE.read_text()) if REFERENCE.is_file() else {}
PATTERNS = {
    "elemwise": OpPattern.ELEMWISE,
    "broadcast": OpPattern.BROADCAST,
    "injective": OpPattern.INJECTIVE,
    "comm_reduce": OpPattern.COMM_REDUCE,
    "out_elemwise_fusable": OpPattern.OUT_ELEMWISE_FUSABLE,
    "opaque": OpPattern.OPAQUE,
    None: OpPattern.OPAQUE,
}
#: Operators of TVM that the inventory does not have: it took no names with capital letters, and passed over one.
BESIDE = {"log10", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"}
#: TVM registers these argument names in another order than the one in which it takes the arguments.
OTHER_ORDER = {"qnn.conv2d", "qnn.conv2d_transpose", "qnn.dense", "qnn.batch_matmul", "qnn.contrib_dense_pack"}
#: Where a record differs from the inventory otherwise: (operator, attribute or "" for the class) -> why.
DIFFERENCES = {
    ("qnn.simulated_quantize", ""): "two classes share one type key in TVM, and the inventory took the other one",
    ("nn.avg_pool2d_grad", ""): "TVM registers max_pool2d's class and makes calls with avg_pool2d's",
    ("nn.contrib_dense_pack", ""): "TVM registers dense's class and makes calls with its own",
    ("call_lowered", "metadata"): "an empty map is None",
    ("debug", "debug_func"): "TVM has no default and cannot read a call without one; here it may be left out",
    ("device_copy", "src_virtual_device"): "as debug_func",
    ("device_copy", "dst_virtual_device"): "as debug_func",
    ("memory.alloc_storage", "virtual_device"): "as debug_func",
    ("memory.alloc_tensor", "const_shape"): "one of const_shape and assert_shape is left out in every call",
    ("memory.alloc_tensor", "assert_shape"): "one of const_shape and assert_shape is left out in every call",
    ("on_device", "virtual_device"): "the device that says nothing is None",
}
#: TVM's types of attributes, and how a value is taken here.
KINDS = {
    "int": "int",
    "int32_t": "int",
    "Integer": "int",
    "IndexExpr": "int",
    "Optional<Integer>": "int",
    "bool": "bool",
    "double": "float",
    "DataType": "str",
    "String": "str",
    "tvm::String": "str",
    "std::string": "str",
    "Array<Integer>": "Ints",
    "Array<PrimExpr>": "Ints",
    "Array<IndexExpr>": "Ints",
    "Optional<Array<Integer>>": "Ints",
    "Array<FloatImm>": "Floats",
    "Array<Array<Integer>>": "NestedInts",
    "Array<Array<IndexExpr>>": "NestedInts",
}
#: Lists of expressions that hold floats.
FLOATS = {"sizes", "ratios", "steps", "offsets", "variances"}


def default_of(text: str | None) -> Any:
    """A default as C++ writes it, as Python has it; "required" where there is none."""
    if text is None:
        return "required"
    if "NullValue" in text:
        return None
    text = text.replace("static_cast<float>", "")
    if found := re.fullmatch(r"Array<\w+>\(?\{(.*?)\}\)?", text):
        numbers = [float(x.strip("() f")) for x in found[1].split(",") if x.strip()]
        return tuple(int(x) if x == int(x) and "." not in found[1] else x for x in numbers)
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"'):
        return text.strip('"')
    if found := re.fullmatch(r"DataType::(Int|Float)\((\d+)(?:, 1)?\)", text):
        return found[1].lower() + found[2]
    if found := re.fullmatch(r"Integer\((-?\d+)\)", text):
        return int(found[1])
    if text == "Map<String, ObjectRef>()":
        return {}
    if text == "VirtualDevice::FullyUnconstrained()":
        return text
    return float(text)


def is_tvms(name: str) -> None:
    op = get(name)
    known = INVENTORY[name]
    args = known["args"][: known["num_inputs"]]
    assert sorted(op.args) == sorted(args) if name in OTHER_ORDER else list(op.args) == args
    assert op.pattern == PATTERNS[known["pattern"]]
    assert op.level == known["support_level"]
    if not known["attrs_key"] or (name, "") in DIFFERENCES:
        return
    assert op.attrs is not None
    assert op.attrs.type_key == known["attrs_key"]  # type: ignore[attr-defined]
    assert list(op.schema) == [a["name"] for a in known["attrs"]]
    for attr in known["attrs"]:
        field = op.schema[attr["name"]]
        kind = "Floats" if field.name in FLOATS else KINDS.get(attr["type"], "AnyAttr")
        assert field.kind == kind, attr["name"]
        same = ("required" if field.required else field.default) == default_of(attr["default"])
        assert same != ((name, field.name) in DIFFERENCES), attr["name"]


@pytest.mark.skipif(not REFERENCE.is_file(), reason=f"no inventory at {REFERENCE}")
def test_record_is_tvms() -> None:
    check_each(is_tvms, sorted(INVENTORY))


@pytest.mark.skipif(not REFERENCE.is_file(), reason=f"no inventory at {REFERENCE}")
def test_every_operator_of_tvm_is_there() -> None:
    assert len(INVENTORY) == 293
    assert {*INVENTORY, *BESIDE} <= set(OPS)


def test_families_are_disjoint() -> None:
    assert sum(map(len, FAMILIES.values())) == len(OPS)


def test_attributes_are_coerced() -> None:
    conv = get("nn.conv2d")
    assert conv.attrs is not None
    attrs = make_attrs(conv.attrs, {"strides": [2, 2], "padding": 1, "channels": 8, "out_dtype": ""})
    assert (attrs.strides, attrs.padding, attrs.channels, attrs.out_dtype) == ((2, 2), (1,), 8, None)
    assert attrs.kernel_layout == "OIHW"
    with pytest.raises(AttrError, match="is not an attribute"):
        make_attrs(conv.attrs, {"stride": 1})
    with pytest.raises(AttrError, match="a list of whole numbers"):
        make_attrs(conv.attrs, {"strides": "2"})


def test_missing_attributes() -> None:
    reshape, transpose = get("reshape"), get("transpose")
    assert reshape.attrs is not None and transpose.attrs is not None
    with pytest.raises(AttrError, match="must be given"):
        make_attrs(reshape.attrs, {})
    assert make_attrs(transpose.attrs, {}).axes is None


@pytest.mark.parametrize("name", [op.name for op in OPS.values() if op.results])
def test_results_are_those_of_the_type(name: str) -> None:
    shown = example(get(name))
    assert shown is not None
    call, ty = shown.function.body, shown.function.checked_type
    number = get(name).results
    assert isinstance(call, Call) and isinstance(ty, FuncType) and isinstance(ty.ret_type, TupleType)
    assert (number(call.args, call.attrs) if callable(number) else number) == len(ty.ret_type.fields)


@pytest.mark.sweep
def test_every_operator_has_a_summary_and_an_example() -> None:
    for op in OPS.values():
        assert op.doc.endswith(".") and "\n" not in op.doc, op.name
        assert example(op) is not None, op.name
