"""The format, construct by construct: its text, its print, and that the print reads back as the same program.

A row is `(what it shows, text, canonical text)`; the canonical text is the text itself where it is None. Lines of a
canonical text stand as the printer writes them without types, without the version line.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaylang.ir import Constant, Function, IRModule, MetaRef, TensorType, Tuple, Var
from relaylang.ir.structural import structural_diff
from relaylang.runtime.params import load_params, save_params
from relaylang.syntax import astext, parse, parse_type
from relaylang.syntax.format import format_text
from relaylang.syntax.metadata import MetaNode, constants_of
from relaylang.typing import infer
from tests.cli.command import relay
from tests.shared import golden, needs_shared

HEADER = '#[version = "0.0.5"]\n'
LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n\n"
F32 = "Tensor[(2), float32]"

EXPRESSIONS: list[tuple[str, str, str | None]] = [
    ("an int32", "1", None),
    ("a negative literal", "-1", None),
    ("an int64, as it is out of range", "2147483648", "2147483648i64"),
    ("suffixes", "(1i8, 1i16, 1i32, 1i64, 1u8, 1u16, 1u32, 1u64)", "(1i8, 1i16, 1, 1i64, 1u8, 1u16, 1u32, 1u64)"),
    ("floats", "(1f, 1f16, 1f32, 1f64, 1bf16, 1.5, 1e3f)", "(1f, 1f16, 1f, 1f64, 1bf16, 1.5f, 1000f)"),
    ("infinities", "(inff, -inff, inff16, -inff64, infbf16)", None),
    ("not a number", "(nanf, nanf64, nanf16)", None),
    ("booleans", "(True, False)", None),
    ("line comments", "// a\n1 // b", "1"),
    ("nested comments", "/* a /* b */ c */ 1", "1"),
    ("comments of the dialect", "# a\n1 # b", "1"),
    ("type and span comments", "add(%x, 1) /* ty=int32 span=a.py:3:4 */", "free_var %x;\nadd(%x, 1)"),
    ("subtraction without blanks", "1-2", "subtract(1, 2)"),
    ("subtraction of a name", "fn (%n) { %n -1 }", "fn (%n) {\n  subtract(%n, 1)\n}"),
    ("infix operators", "1 + 2 * 3 < 4 == True", None),
    ("a graph binding", "%0 = log(1f);\n(%0, %0)", None),
    ("a let", "let %x: float32 = log(1f);\n%x", None),
    ("a sequence", "log(1f); 2", "let %_ = log(1f);\n2"),
    ("a let as a let's value", "let %x = let %y = 1; %y; %x", "let %x = (\n  let %y = 1;\n  %y\n);\n%x"),
    ("a match as a let's value", "let %x = match (1) { %y => { %y } }; %x", "let %x = match (1) {\n  %y => {\n    %y\n  },\n};\n%x"),
    ("a let in parentheses", "(let %x = 1; %x)", "let %x = 1;\n%x"),
    ("tuples", "((), (1,), (1, 2), (1, 2, 3,))", "%0 = ();\n%1 = (1,);\n%2 = (1, 2);\n%3 = (1, 2, 3);\n(%0, %1, %2, %3)"),
    ("projections", "fn (%t) { %t.0.1 }", "fn (%t) {\n  %0 = %t.0;\n  %0.1\n}"),
    ("an if", "if (True) { 1 } else { 2 }", "if (True) {\n  1\n} else {\n  2\n}"),
    ("references", "let %r = ref(1);\nlet %_ = ref_write(%r, 2);\nref_read(%r)", None),
    ("a function", "fn (%x: int32, %y: float32) -> int32 {\n  %x\n}", None),
    ("a generic function", "fn [A, B](%x: A, %y: B) -> A {\n  %x\n}", None),
    ("a function type", "fn (%f: fn (int32) -> float32) {\n  %f(1)\n}", None),
    ("a generic function type", "fn (%f: fn [A](A) -> A) {\n  %f(1)\n}", None),
    ("a reference type", "fn (%r: ref(int32)) {\n  ref_read(%r)\n}", None),
    ("tuple types", "fn (%a: (), %b: (int32,), %c: (int32, (bool, bool))) {\n  %a\n}", None),
    ("an extent that is not known", "fn (%x: Tensor[(1, ?, 3), float32]) {\n  %x\n}", None),
    ("a scalar's type", "fn (%x: Tensor[(), float32]) {\n  %x\n}", "fn (%x: float32) {\n  %x\n}"),
    ("function attributes", 'fn (%x, Primitive=1, Compiler="ethos-n", Composite="x") {\n  %x\n}', None),
    ("attribute keys", 'fn (%x, a.b=1, "my key"=2, "let"=3) {\n  %x\n}', None),
    ("attribute values", 'fn (a=1, b=-2, c=0.5f, d="s", e=None, f=[1, [2]], g=True, h=inff) {\n  ()\n}', None),
    ("maps as values", 'fn (a={"k": 1, "l": [2]}) {\n  ()\n}', None),
    ("typed attribute values", "fn (a=1i8, b=1f64, c=1u8, d=0.5f16, e=5i64) {\n  ()\n}", None),
    ("attributes of an operator", "nn.conv2d(1f, 2f, strides=[2, 2], padding=[1, 1])", None),
    ("an attribute at its default", "nn.softmax(1f, axis=-1)", "nn.softmax(1f)"),
    ("attributes of another call", 'fn (%f) {\n  %f(1, a=1, attrs_type_key="my.Attrs")\n}', None),
    ("type arguments of old calls", "fn (%f) {\n  %f(1, Tensor[(1), float32])\n}", None),
    ("names of imported models", "fn (%features.0.0_weight, %a.15, %input:0) {\n  %a.15\n}", None),
    ("a dashed name", "fn (%layer-1) { %layer-1 }", 'fn (%"layer-1") {\n  %"layer-1"\n}'),
    ("quoted names", 'fn (%"a b", %"é", %"let", %"a[0]", %"inff") {\n  %"a b"\n}', None),
    ("strings with escapes", r'fn (a="a\"b\\c\n\x41") { () }', 'fn (a="a\\"b\\\\c\\nA") {\n  ()\n}'),
    ("a free variable", f"free_var %x: {F32};\n%x", None),
    ("a free variable of 0.6", f"free_var %x: {F32}\n%x", f"free_var %x: {F32};\n%x"),
    ("a virtual device", "fn (%x {virtual_device=meta[VirtualDevice][0]}: int32) {\n  %x\n}", None),
    ("a function's virtual device", "fn (%x, virtual_device=meta[VirtualDevice][0]) {\n  %x\n}", None),
    ("statements without a semicolon", "fn (%x) {\n %1 = log(%x)\n %1\n}", "fn (%x) {\n  log(%x)\n}"),
    ("a fragment that ends in a binding", "%1 = log(1f);", "log(1f)"),
    ("custom element types", "fn (%x: Tensor[(2), custom[posit]32]) {\n  %x\n}", None),
    ("vectors", "fn (%x: Tensor[(2), float32x4]) {\n  %x\n}", None),
    ("TVM's names of 8 bit floats", "fn (%x: e4m3_float8) { %x }", "fn (%x: float8_e4m3fn) {\n  %x\n}"),
    ("a closure that calls itself", "let %f = fn (%n) {\n  %f(%n)\n};\n%f(1)", None),
    ("statements in an argument", "log(let %a = 1f; %a)", "%0 = (\n  let %a = 1f;\n  %a\n);\nlog(%0)"),
    ("a graph name in an argument", "log(%0 = add(1f, 2f); %0)", "%0 = add(1f, 2f);\nlog(%0)"),
    ("a sequence in a tuple", "(1; 2, 3)", "%0 = (\n  let %_ = 1;\n  2\n);\n(%0, 3)"),
    (
        "a match of a tuple",
        "match (1, 2) {\n  (%a, %b) => {\n    %a\n  },\n}",
        "%0 = (1, 2);\nmatch (%0) {\n  (%a, %b) => {\n    %a\n  },\n}",
    ),
    (
        "a match without parentheses",
        "let %x = 1;\nmatch %x { _ => %0 = add(%x, 1); %0 }",
        "let %x = 1;\nmatch (%x) {\n  _ => {\n    add(%x, 1)\n  },\n}",
    ),
    (
        "a graph name of two branches",
        "if (True) { %0 = log(1f); %0 } else { %0 }",
        "%0 = log(1f);\nif (True) {\n  %0\n} else {\n  %0\n}",
    ),
    ("a let that hides one", "let %a = 1; let %a = %a + %a; %a", "let %a = 1;\nlet %a1 = add(%a, %a);\n%a1"),
    ("signs in front of a number", "(--10, -42i)", "(10, -42)"),
]

MODULES: list[tuple[str, str, str | None]] = [
    ("a type", LIST + "def @f() -> List[int32] {\n  Cons(1, Nil)\n}\n", "def @f() -> List[int32] {\n  %0 = Nil;\n  Cons(1, %0)\n}\n"),
    ("a type with no arguments", "type N {\n  Z,\n  S(N),\n}\n\ndef @f(%n: N) {\n  %n\n}\n", "def @f(%n: N[]) {\n  %n\n}\n"),
    ("an external type, and more behind it", "extern type T\ntype U { V }", "extern type T\n\ntype U {\n  V,\n}\n"),
    (
        "arms",
        LIST + "def @f(%l) {\n  match (%l) {\n    Cons(%h, _) => {\n      %h\n    },\n    Nil => {\n      0\n    },\n  }\n}\n",
        None,
    ),
    ("tuple patterns", "def @f(%t) {\n  match (%t) {\n    (%a, (%b,)) => {\n      %a\n    },\n  }\n}\n", None),
    ("a match that leaves cases out", LIST + "def @f(%l) {\n  match? (%l) {\n    Nil => {\n      0\n    },\n  }\n}\n", None),
    ("an external function", "def @f = meta[relay.ExternalFunction][0]\n", None),
    ("a function that calls itself", "def @f(%n: int32) -> int32 {\n  @f(%n)\n}\n", None),
    ("generic functions", "def @f[A](%x: A) -> A {\n  %x\n}\n", None),
    ("a type called integer", "type integer {\n  I,\n}\n\ndef @f(%x: integer[]) {\n  %x\n}\n", None),
    ("names in quotes, a function as a value", 'def @"f g"(%x) {\n  %x\n}\n\ndef @main(b=@"f g") {\n  @"f g"(1)\n}\n', None),
    ("a constructor as a value", LIST + "def @f() {\n  Cons\n}\n", None),
    (
        "graph names belong to a definition",
        "def @f() { %0 = 1f; log(%0) }\ndef @g() { %0 = 2f; log(%0) }",
        "def @f() {\n  log(1f)\n}\n\ndef @g() {\n  log(2f)\n}\n",
    ),
]


@pytest.mark.parametrize(("text", "canonical"), [r[1:] for r in EXPRESSIONS], ids=[r[0] for r in EXPRESSIONS])
def test_expressions(text: str, canonical: str | None) -> None:
    expr = parse(text).value
    printed = astext(expr)
    again = parse(printed).value
    assert structural_diff(expr, again, map_free_vars=True) is None
    assert astext(again) == printed
    if "1 + 2 * 3" not in text and "meta[" not in text:
        assert printed.removeprefix(HEADER).rstrip("\n") == (canonical or text)
    made = format_text(text)
    assert format_text(made) == made


@pytest.mark.parametrize(("text", "canonical"), [r[1:] for r in MODULES], ids=[r[0] for r in MODULES])
def test_modules(text: str, canonical: str | None) -> None:
    mod = parse(text).value
    printed = astext(mod)
    again = parse(printed).value
    assert structural_diff(mod, again) is None
    assert astext(again) == printed
    if "meta[" not in text:
        assert printed.removeprefix(HEADER).endswith(canonical or text)
    made = format_text(text)
    assert format_text(made) == made
    assert structural_diff(mod, parse(made).value) is None


@pytest.mark.parametrize("header", ['#[version = "0.0.5"]', "v0.0.1", "v0.0.4", '#[version = "0.0.4"]', ""])
def test_headers(header: str) -> None:
    result = parse(f"{header}\ndef @main() {{ 1 }}")
    assert astext(result.value).startswith(HEADER)
    assert [n.code for n in result.notes] == ([] if header else ["R0150"])


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "uint64",
        "float16",
        "bfloat16",
        "int4",
        "uint4",
        "int2",
        "uint2",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3",
        "float8_e3m4",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    ],
)
def test_element_types(dtype: str) -> None:
    assert astext(parse_type(f"Tensor[(2), {dtype}]")) == f"Tensor[(2), {dtype}]"
    kind = getattr(ml_dtypes, dtype, None) or (None if "_" in dtype or dtype.endswith("t2") else dtype)
    if kind is None:
        pytest.skip(f"this ml_dtypes has no {dtype}")
    for array in (np.ones(3, "float32").astype(kind), np.array(1, "float32").astype(kind)):
        node = Function([], Constant(array))
        again = parse(astext(node)).value
        assert structural_diff(node, again) is None
        assert again.body.data.tobytes() == array.tobytes() and again.body.data.dtype == array.dtype


def test_nodes_of_any_type_in_meta_and_module_attributes() -> None:
    section = (
        '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]}, '
        '{"type_key": "Array", "data": [3]}, {"type_key": "VirtualDevice", "attrs": {"device_type_int": "2", '
        '"virtual_device_id": "1"}}], "b64ndarrays": []}'
    )
    text = (
        "def @main(%x {virtual_device=meta[VirtualDevice][0]}: int32, virtual_device=meta[VirtualDevice][0]) "
        f"{{ %x }}\n#[metadata]\n{section}"
    )
    mod = parse(text).value
    device = mod["main"].params[0].virtual_device
    assert isinstance(device, MetaNode) and device.attrs["device_type_int"] == "2"
    mod = IRModule(mod.functions, mod.type_definitions, {"runtime": "crt", "n": 3, "list": (1, "a")})
    printed = astext(mod)
    again = parse(printed).value
    assert structural_diff(mod, again) is None and again.attrs == {"runtime": "crt", "n": 3, "list": [1, "a"]}
    assert astext(again) == printed
    assert "%x {virtual_device=meta[VirtualDevice][0]}: int32" in printed
    other = IRModule.from_expr(Function([Var("x", TensorType((), "int32"))], Tuple(())))
    assert structural_diff(mod, other) is not None


def test_a_virtual_device_counts() -> None:
    with_one, without = parse("fn (%x {virtual_device=1}) { %x }").value, parse("fn (%x) { %x }").value
    assert "virtual_device" in str(structural_diff(with_one, without))


def test_a_node_that_a_recursive_function_and_the_body_share() -> None:
    text = "let %f = fn (%n) {\n  %0 = log(1f);\n  (%0, %f)\n};\n%1 = log(2f);\n(%1, %f(%1))"
    expr = parse(text).value
    shared = expr.value.body.fields[0]
    from relaylang.ir import Let

    both = Let(expr.variable, expr.value, Tuple([shared, expr.body]))
    printed = astext(both)
    again = parse(printed).value
    assert structural_diff(both, again) is None
    assert again.value.body.fields[0] is again.body.fields[0] or astext(again) == printed


@needs_shared
def test_tvms_bytes() -> None:
    for path in golden("typed"):
        mod = parse(path.read_text()).value
        infer(mod)
        assert astext(mod, style="tvm") == path.read_text(), path.name


def test_places_in_the_print() -> None:
    mod = parse("def @main(%x: int32) {\n  add(%x, 1)\n}", "a.relay").value
    infer(mod)
    text = astext(mod, show_spans=True)
    assert "add(%x, 1 /* ty=int32 span=a.relay:2:11 */) /* ty=int32 span=a.relay:2:3 */" in text
    assert structural_diff(mod, parse(text).value) is None
    assert "/* span=a.relay:2:3 */" in astext(mod, show_types=False, show_spans=True)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".params"])
def test_constants_beside_the_text(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [Constant(np.arange(6, dtype="float32").reshape(2, 3)), Constant(np.array([1, 2], ml_dtypes.bfloat16))]
    mod = IRModule(IRModule.from_expr(Function([], Tuple(values))).functions, {}, {"kept": 1})
    whole = tmp_path / "whole.relay"
    whole.write_text(astext(mod) + "\n")
    side, small, back = tmp_path / f"c{suffix}", tmp_path / "small.relay", tmp_path / "back.relay"
    assert relay(capsys, "print", whole, "--no-types", "--constants", side, "-o", small).status == 0
    assert list(load_params(side)) in (
        ["meta[relay.Constant][0]", "meta[relay.Constant][1]"],
        ["meta[relay.Constant][1]", "meta[relay.Constant][0]"],
    )
    assert all(isinstance(f, MetaRef) for f in parse(small.read_text()).value["main"].body.fields)
    assert relay(capsys, "print", small, "--no-types", "--params", side, "-o", back).status == 0
    assert back.read_text() == whole.read_text()
    again = parse(small.read_text(), constants=load_params(side)).value
    assert structural_diff(mod, again) is None


def test_constants_by_what_refers_to_them(tmp_path: Path) -> None:
    meta: dict[str, list[object]] = {}
    text = astext(Function([], Constant(np.arange(3))), meta=meta)
    kept = constants_of(meta)
    assert meta == {} and list(kept) == ["meta[relay.Constant][0]"]
    save_params(tmp_path / "a.npz", kept)
    result = parse(text, constants={**load_params(tmp_path / "a.npz"), "meta[relay.Constant][99999999999]": np.ones(1)})
    assert result.value.body.data.tolist() == [0, 1, 2] and not result.missing


def test_metadata_that_the_text_does_not_carry() -> None:
    text = "nn.dense(meta[relay.Constant][1], on_device(meta[relay.Constant][0], virtual_device=meta[VirtualDevice][0]))"
    first, second = (Constant(np.full((2, 2), n, "float32")) for n in (1, 2))
    place = MetaNode("VirtualDevice", {"device_type_int": "1"})
    result = parse(text, metadata={"relay.Constant": [first, second], "VirtualDevice": [place]})
    assert result.value.args[0] is second and result.value.args[1].args[0] is first and not result.missing
    assert result.value.args[1].attrs.virtual_device is place
    assert [(m.type_key, m.index) for m in parse(text, metadata={"relay.Constant": [None, second]}).missing] == [
        ("relay.Constant", 0),
        ("VirtualDevice", 0),
    ]
    # what the text carries comes first
    whole = astext(Function([], Constant(np.arange(3))), show_types=False)
    assert parse(whole, metadata={"relay.Constant": [first, second]}).value.body.data.tolist() == [0, 1, 2]
