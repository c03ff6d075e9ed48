"""Extents with an element type of their own, and extents that have a name."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import (
    Call,
    Extent,
    Function,
    GlobalVar,
    IRModule,
    SymbolicDim,
    TensorType,
    Var,
    extent,
    extent_dtype,
    structural_diff,
    structural_equal,
    structural_hash,
    type_text,
)
from relaylang.ir.types import TypeVar, computed_dim
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.syntax import astext, parse, parse_expr, parse_type
from relaylang.syntax.format import format_text
from relaylang.typing import infer

HEADER = '#[version = "0.0.5"]\n'
SYMBOLIC = (
    HEADER
    + """def @main(%x: Tensor[(meta[tir.Var][0], 3, meta[tir.SizeVar][0]), float32], %y: Tensor[(meta[tir.Var][0], 1, 1), float32]) {
  add(%x, %y)
}

#[metadata]
"""
    + json.dumps(
        {
            "root": 1,
            "nodes": [
                {"type_key": ""},
                {"type_key": "Map", "keys": ["tir.Var", "tir.SizeVar"], "data": [2, 3]},
                {"type_key": "Array", "data": [4]},
                {"type_key": "Array", "data": [6]},
                {"type_key": "tir.Var", "attrs": {"dtype": "int64", "name": "5", "span": "0", "type_annotation": "0"}},
                {"type_key": "runtime.String", "repr_str": "d1"},
                {"type_key": "tir.SizeVar", "attrs": {"dtype": "int32", "name": "7", "span": "0", "type_annotation": "0"}},
                {"type_key": "runtime.String", "repr_str": "n"},
            ],
            "b64ndarrays": [],
            "attrs": {"tvm_version": "0.16.dev0"},
        }
    )
)


def module(text: str) -> IRModule:
    made = parse(text if text.startswith("#[version") else HEADER + text).module
    assert made is not None
    return made


def test_the_element_type_of_an_extent_is_read_and_printed() -> None:
    text = "Tensor[(10i64, 3, 2i16, 7i8, 5u8), float32]"
    ty = parse_type(text)
    assert isinstance(ty, TensorType)
    assert ty.shape == (10, 3, 2, 7, 5)
    assert [extent_dtype(d) for d in ty.shape] == ["int64", "int32", "int16", "int8", "uint8"]
    assert type_text(ty) == astext(ty) == astext(ty, style="tvm") == text
    assert parse_type("Tensor[(3i32, 10), float32]") == parse_type("Tensor[(3, 10), float32]")
    assert format_text(f"fn (%x: {text}) {{ %x }}") == f"fn (%x: {text}) {{ %x }}\n"


def test_types_differ_by_the_element_types_of_their_extents() -> None:
    wide, plain = TensorType((Extent(10), 3)), TensorType((10, 3))
    assert wide != plain and wide == TensorType((extent(10, "int64"), 3))
    assert not structural_equal(wide, plain)
    assert structural_hash(wide) != structural_hash(plain)
    said = structural_diff(wide, plain)
    assert said == "the type Tensor[(10i64, 3), float32] on the left, the type Tensor[(10, 3), float32] on the right"
    assert type(extent(10)) is int and type(extent(1 << 40, "int64")) is int
    for made in (copy.deepcopy(wide), pickle.loads(pickle.dumps(wide))):
        assert made == wide and made.shape[0].dtype == "int64"


def test_what_is_computed_with_a_wide_extent_is_as_wide() -> None:
    n = Extent(10)
    for made, value in ((n + 1, 11), (1 + n, 11), (n - 1, 9), (11 - n, 1), (2 * n, 20), (n * 2, 20), (n // 3, 3)):
        assert made == value and extent_dtype(made) == "int64"
    assert extent_dtype(Extent(2, "int16") + 1) == "int16" and extent_dtype(Extent(2, "int16") * n) == "int64"
    assert f"{n} {n!r} {n:3d}" == "10 10  10" and json.dumps([n]) == "[10]"


def test_attributes_keep_the_types_of_their_numbers() -> None:
    for call in (
        "broadcast_to(%x, shape=[1i64, 2])",
        "reshape(%x, newshape=[2i64, -1i64])",
        "nn.max_pool2d(%x, pool_size=[2, 2], strides=[1i64, 1i64])",
        "split(%x, indices_or_sections=[2i64, 4i64], axis=1)",
        "split(%x, indices_or_sections=2i64)",
        "nn.dense(%x, %x, units=3i64)",
    ):
        made = parse_expr(call)
        for style in ("lossless", "tvm"):
            assert astext(made, style=style, header=False).split("\n")[-1] == call
        assert not structural_equal(made, parse_expr(call.replace("i64", "")), map_free_vars=True)
    # TVM keeps an `int` in place, without a type
    assert astext(parse_expr("concatenate(%x, axis=1i64)"), header=False).endswith("concatenate(%x, axis=1)")


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_the_place_of_the_extreme_has_the_type_of_the_first_extent(op: str) -> None:
    x = np.array([[3, 1, 2], [9, 8, 7]], "float32")
    for first, dtype in (("2i64", "int64"), ("2", "int32"), ("2i16", "int16")):
        mod = module(f"def @main(%x: Tensor[({first}, 3), float32]) {{ {op}(%x, axis=[1]) }}")
        assert infer(mod) == []
        assert type_text(mod["main"].checked_type.ret_type) == f"Tensor[({first}), {dtype}]"
        wanted = getattr(np, op)(x, axis=1).astype(dtype)
        values = [evaluate(mod, x)]
        if shutil.which("cc") and dtype != "int16":
            values.append(compile_module(mod, "c -cflags=-O0").run(x))
        for value in values:
            assert value.dtype == dtype
            np.testing.assert_array_equal(value, wanted)


def test_symbolic_extents() -> None:
    mod = module(SYMBOLIC)
    assert infer(mod) == []
    d, three, n = mod["main"].ret_type.shape if mod["main"].ret_type else mod["main"].checked_type.ret_type.shape
    assert (d.name_hint, d.dtype, d.type_key) == ("d1", "int64", "tir.Var") and three == 3
    assert (n.name_hint, n.dtype, n.type_key) == ("n", "int32", "tir.SizeVar")
    for style in ("lossless", "tvm"):
        text = astext(mod, style=style)
        assert "(meta[tir.Var][0], 3, meta[tir.SizeVar][0])" in text
        again = module(text)
        assert structural_equal(mod, again, map_free_vars=True) and infer(again) == []
        assert astext(again, style=style) == text
    assert format_text(SYMBOLIC).split("#[metadata]")[1] == SYMBOLIC.split("#[metadata]")[1]


def test_symbolic_extents_are_themselves_only() -> None:
    said = infer(module(SYMBOLIC.replace("%y: Tensor[(meta[tir.Var][0]", "%y: Tensor[(4")))
    assert [d.code for d in said] == ["R0301"]
    two = SYMBOLIC.replace("%y: Tensor[(meta[tir.Var][0]", "%y: Tensor[(meta[tir.SizeVar][0]")
    assert [d.code for d in infer(module(two))] == ["R0301"]
    n = SymbolicDim("n")
    x, y = Var("x", TensorType((n,))), Var("y", TensorType((SymbolicDim("n", "int64"),)))
    assert not structural_equal(Function([x], x), Function([y], y), map_free_vars=True)
    # a variable of a function stays one that a function must bind
    z = Var("z", TensorType((TypeVar("m", "ShapeVar"),)))
    assert [d.code for d in infer(IRModule({GlobalVar("main"): Function([z], z)}))] == ["R0312"]


def test_symbolic_extents_without_a_section() -> None:
    result = parse(HEADER + "def @main(%x: Tensor[(meta[tir.Var][0], 2), float32]) { nn.relu(%x) }")
    assert result.module is not None and infer(result.module) == []
    assert "(meta[tir.Var][0], 2)" in astext(result.module)


@pytest.mark.parametrize(
    "text",
    [
        "Tensor[(3f, 2), float32]",
        "Tensor[(1.5, 2), float32]",
        "Tensor[(inff64), float32]",
        "Tensor[(300u8), float32]",
        "Tensor[(True), float32]",
    ],
)
def test_an_extent_is_a_whole_number(text: str) -> None:
    with pytest.raises(RelayError) as wrong:
        parse_type(text)
    assert [d.code for d in wrong.value.diagnostics] in (["R0105"], ["R0207"])


def test_every_operator_takes_wide_extents_or_says_why() -> None:
    """No relation fails on extents of another type where it holds for plain ones."""
    differ = []
    for name, op in sorted(OPS.items()):
        if op.variadic or not op.args or len(op.args) > 3:
            continue
        for shape in ((2, 3, 4, 4), (4, 4)):
            said = []
            for dims in (shape, tuple(map(Extent, shape))):
                args = [Var(f"a{i}", TensorType(dims)) for i in range(len(op.args))]
                try:
                    attrs = make_attrs(op.attrs, {}) if op.attrs is not None else None
                except AttrError:
                    break  # an attribute that must be given
                call = Call(op, args, attrs)
                wrong = infer(IRModule({GlobalVar("main"): Function(args, call)}))
                said.append(([d.code for d in wrong], getattr(call.checked_type, "shape", None)))
            if len(said) == 2 and said[0] != said[1]:
                differ.append((name, shape, said))
    assert differ == []


def computed(body: str, ret: str = "") -> str:
    """A function over n × 4 numbers. The extents are n (V), n + n (A), n + n again (B), n - 1 (S) and int64 n (C)."""

    def of_two(key: str, a: str, b: str) -> dict[str, object]:
        return {"type_key": key, "attrs": {"a": a, "b": b, "dtype": "int32", "span": "0"}}

    keys = ["tir.Var", "tir.Add", "tir.Sub", "tir.Cast"]
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": keys, "data": [2, 3, 4, 12]},
        {"type_key": "Array", "data": [5]},
        {"type_key": "Array", "data": [7, 8]},
        {"type_key": "Array", "data": [9]},
        {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "6", "span": "0", "type_annotation": "0"}},
        {"type_key": "runtime.String", "repr_str": "n"},
        of_two("tir.Add", "5", "5"),
        of_two("tir.Add", "5", "5"),
        of_two("tir.Sub", "5", "10"),
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "1"}},
        {"type_key": "tir.Cast", "attrs": {"dtype": "int64", "span": "0", "value": "5"}},
        {"type_key": "Array", "data": [11]},
    ]
    section = json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": [], "attrs": {}})
    text = f"def @main(%x: Tensor[(V, 4), float32], %y: Tensor[(A, 4), float32]){ret} {{\n  {body}\n}}\n\n#[metadata]\n{section}"
    for letter, place in (("V", "Var][0"), ("A", "Add][0"), ("B", "Add][1"), ("S", "Sub][0"), ("C", "Cast][0")):
        text = re.sub(rf"\b{letter}\b", f"meta[tir.{place}]", text)
    return HEADER + text


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (computed("concatenate((%x, %x))", " -> Tensor[(B, 4), float32]"), []),
        (computed("add(%y, %y)", " -> Tensor[(B, 4), float32]"), []),
        (computed("add(%y, %y)", " -> Tensor[(S, 4), float32]"), ["R0302"]),
        (computed("add(%x, %y)"), ["R0301"]),
        (computed('zeros(shape=[B, S, V, C, 2], dtype="int8")', " -> Tensor[(A, S, V, C, 2), int8]"), []),
    ],
    ids=["a sum", "the same sum", "another extent", "n is not 2 n", "attributes"],
)
def test_extents_that_are_computed(text: str, codes: list[str]) -> None:
    mod = module(text)
    assert [d.code for d in infer(mod)] == codes
    for style in ("lossless", "tvm"):
        printed = astext(mod, style=style, show_types=False)
        again = module(printed)
        assert structural_equal(mod, again, map_free_vars=True)
        assert structural_hash(mod, map_free_vars=True) == structural_hash(again, map_free_vars=True)
        assert astext(again, style=style, show_types=False) == printed
    assert format_text(text).split("#[metadata]")[1] == text.split("#[metadata]")[1]


def test_computed_extents_are_what_they_are_computed_from() -> None:
    n, m = SymbolicDim("n"), SymbolicDim("m")
    total = computed_dim("tir.Add", (n, 1))
    assert total is computed_dim("tir.Add", (n, 1)) and total is not computed_dim("tir.Add", (m, 1))
    assert total is not computed_dim("tir.Add", (n, extent(1, "int64"))) and total.name_hint == "n + 1"

    def of(dim: object) -> Function:
        x = Var("x", TensorType((n, dim)))  # type: ignore[arg-type]
        return Function([x], x)

    assert structural_equal(of(total), of(total)) and not structural_equal(of(total), of(n))
    for other in (computed_dim("tir.Add", (m, 1)), computed_dim("tir.Sub", (n, 1)), computed_dim("tir.Add", (n, 2))):
        assert not structural_equal(of(total), of(other), map_free_vars=True)
    doubled = n
    for _ in range(60):  # 2**60 paths
        doubled = computed_dim("tir.Add", (doubled, doubled))
    assert structural_equal(of(doubled), of(copy.deepcopy(doubled)), map_free_vars=False) is False
    assert structural_equal(module(astext(IRModule.from_expr(of(doubled)))), IRModule.from_expr(of(doubled)), map_free_vars=True)


def test_damaged_computed_extents() -> None:
    text = computed("%y")
    for old, new, said in (
        ('"a": "5", "b": "10"', '"a": "6", "b": "10"', "computes an extent from other values"),
        ('"a": "5", "b": "10"', '"a": "5", "b": "99"', "it refers to node 99 of 13"),
        ('"a": "5", "b": "10"', '"a": "9", "b": "10"', "node 9 contains itself"),
    ):
        with pytest.raises(RelayError, match=said):
            module(text.replace(old, new))
    deep = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["tir.Add"], "data": [2]},
        {"type_key": "Array", "data": [204]},
        {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "4"}},
        {"type_key": "runtime.String", "repr_str": "n"},
    ]
    deep += [{"type_key": "tir.Add", "attrs": {"a": str(i - 1 if i > 5 else 3), "b": "3"}} for i in range(5, 205)]
    section = json.dumps({"root": 1, "nodes": deep, "b64ndarrays": [], "attrs": {}})
    with pytest.raises(RelayError, match="nests more than 100 deep"):
        module(f"{HEADER}def @main(%x: Tensor[(meta[tir.Add][0]), int8]) {{ %x }}\n#[metadata]\n{section}")


@pytest.mark.parametrize(
    ("extents", "printed"),
    [
        ("[2 * b, 4]", "[2 * b, 4]"),
        ("[b * 2, t + b]", "[2 * b, b + t]"),
        ("[b - 1, t]", "[b - 1, t]"),
        ("[b -1 - t, 2 - b]", "[b - t - 1, 2 - b]"),
        ("[(b + 1) / 2 * t]", "[t * ((b + 1) / 2)]"),
        ("[min(b, 4), max(b, t + 1), floormod(b, 3) + 1]", "[min(b, 4), max(b, t + 1), floormod(b, 3) + 1]"),
        ("[b * (t + 1), ((b))]", "[b * t + b, b]"),
        ("[2 * 3, /* a comment */ b + /* another */ 1]", "[6, b + 1]"),
    ],
)
def test_attributes_have_computed_extents(extents: str, printed: str) -> None:
    text = f'def @main[b, t](%x: Tensor[(b, t), float32]) {{\n  zeros(shape={extents}, dtype="int8")\n}}\n'
    mod = module(text)
    assert not infer(mod)
    assert f"zeros(shape={printed}, " in str(mod) and "meta[" not in str(mod)
    again = module(str(mod))
    assert not infer(again)
    assert structural_equal(mod, again) and str(again) == str(mod)
    tvm = module(astext(mod))
    assert not infer(tvm)
    assert structural_equal(tvm["main"].body.checked_type, mod["main"].body.checked_type, map_free_vars=True)
    formatted = format_text(HEADER + text)
    assert structural_equal(module(formatted), module(text)) and format_text(formatted) == formatted


@pytest.mark.parametrize(
    ("extents", "code", "said"),
    [
        ("[b / 0]", "R0105", "not an extent: it divides by 0"),
        ("[b * 2.5]", "R0109", "an extent is computed of whole numbers and names of extents alone"),
        ('["a" + 1]', "R0109", "an extent is computed of whole numbers and names of extents alone"),
        ("[?, b * ?]", "R0109", "an extent is computed of whole numbers and names of extents alone"),
        ("[True - b]", "R0109", "an extent is computed of whole numbers and names of extents alone"),
        ("[lesser(b, 2)]", "R0109", "`lesser(...)` is not an attribute's value"),
        ("[2 - 1]", "R0112", "`,` is missing between two elements"),
    ],
)
def test_wrong_computations_in_attributes(extents: str, code: str, said: str) -> None:
    text = f'{HEADER}def @main[b, t](%x: Tensor[(b, t), float32]) {{ zeros(shape={extents}, dtype="int8") }}'
    with pytest.raises(RelayError) as failed:
        module(text)
    assert [(d.code, d.title) for d in failed.value.diagnostics] == [(code, said)]


def test_a_name_of_an_attribute_that_meets_another_of_its_text() -> None:
    n, other = TypeVar("n", "ShapeVar"), TypeVar("n", "ShapeVar")
    x, y = Var("x", TensorType([n], "int8")), Var("y", TensorType([other], "int8"))
    zeros = Call(OPS["zeros"], [], make_attrs(OPS["zeros"].attrs, {"shape": [n, other], "dtype": "int8"}))
    mod = IRModule.from_expr(Function([x, y], zeros, None, [n, other]))
    assert not infer(mod)
    assert "shape=[n, n1]" in str(mod)
    again = module(str(mod))
    assert not infer(again)
    assert structural_equal(mod, again)
