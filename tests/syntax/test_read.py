"""Each construct of the text format, read."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import (
    ANY,
    Call,
    Constant,
    Constructor,
    Extent,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IncompleteType,
    IRModule,
    Let,
    Match,
    MetaRef,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeCall,
    TypeData,
    Var,
    scalar_type,
    structural_equal,
)
from relaylang.ir.visit import post_order
from relaylang.ops import OPS
from relaylang.syntax import astext, fromtext, is_complete, parse, parse_expr, parse_type
from relaylang.syntax.format import format_text
from relaylang.syntax.tokeniser import tokenise
from relaylang.typing import infer
from tests.growth import assert_linear

LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"


def shape_of(expr) -> str:
    """An expression of calls as nested text, for short assertions."""
    if isinstance(expr, Call):
        name = getattr(expr.op, "name", None) or expr.op.name_hint
        return f"{name}({', '.join(map(shape_of, expr.args))})"
    if isinstance(expr, Constant):
        return str(expr.data)
    if isinstance(expr, TupleGetItem):
        return f"{shape_of(expr.tuple_value)}.{expr.index}"
    return expr.name_hint


# ---- literals


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("1", "int32", 1),
        ("-1", "int32", -1),
        ("2147483647", "int32", 2**31 - 1),
        ("2147483648", "int64", 2**31),
        ("-2147483648", "int32", -(2**31)),
        ("-2147483649", "int64", -(2**31) - 1),
        ("-9223372036854775808", "int64", -(2**63)),
        ("-128i8", "int8", -128),
        ("127i8", "int8", 127),
        ("7i16", "int16", 7),
        ("7i32", "int32", 7),
        ("7i64", "int64", 7),
        ("255u8", "uint8", 255),
        ("18446744073709551615u64", "uint64", 2**64 - 1),
        ("1f", "float32", 1.0),
        ("1.5", "float32", 1.5),
        ("1e-05f", "float32", np.float32(1e-5)),
        ("-0.5f16", "float16", -0.5),
        ("0.1f64", "float64", 0.1),
        ("2.f", "float32", 2.0),
        ("1E3f", "float32", 1000.0),
        ("1.5bf16", "bfloat16", 1.5),
        ("inff", "float32", np.inf),
        ("-inff", "float32", -np.inf),
        ("inff16", "float16", np.inf),
        ("True", "bool", True),
        ("False", "bool", False),
    ],
)
def test_literals(text: str, dtype: str, value: object) -> None:
    constant = parse_expr(text)
    assert isinstance(constant, Constant)
    assert constant.dtype == dtype and constant.data.dtype.name == dtype and constant.data.shape == ()
    assert constant.data == value


def test_nan_and_minus_zero() -> None:
    assert np.isnan(parse_expr("nanf").data)
    assert np.signbit(parse_expr("-0f").data)


@pytest.mark.parametrize(
    "text",
    [
        "128i8",
        "1 - 128i8",
        "300u8",
        "-1u8",
        "9223372036854775808",
        "1e40f",
        "1e-60f",
        "70000f16",
        "1.5i8",
        "1q",
        "1f7",
        "18446744073709551616u64",
        "1e400f64",
    ],
)
def test_a_number_that_does_not_fit_is_said_and_never_wraps(text: str) -> None:
    with pytest.raises(RelayError) as caught:
        parse_expr(text)
    assert [d.code for d in caught.value.diagnostics] == ["R0105"]


# ---- operators, calls, projections


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1-2", "subtract(1, 2)"),
        ("%n -1", "subtract(n, 1)"),
        ("%n-1", "subtract(n, 1)"),
        ("1 - -2", "subtract(1, -2)"),
        ("1 + 2 * 3", "add(1, multiply(2, 3))"),
        ("1 - 2 - 3", "subtract(subtract(1, 2), 3)"),
        ("8 / 4 / 2", "divide(divide(8, 4), 2)"),
        ("1 < 2 == 3 >= 4", "equal(less(1, 2), greater_equal(3, 4))"),
        ("1 != 2", "not_equal(1, 2)"),
        ("1 <= 2 > 3", "greater(less_equal(1, 2), 3)"),
        ("-%x", "negative(x)"),
        ("-%x * 2", "multiply(negative(x), 2)"),
        ("--1", "1"),
        ("---1", "-1"),
        ("- -1i8", "1"),
        ("-42i", "-42"),
        ("--%x", "negative(negative(x))"),
        ("(1 + 2) * 3", "multiply(add(1, 2), 3)"),
        ("%n-1 * 2", "subtract(n, multiply(1, 2))"),
        ("%n-1-2", "subtract(subtract(n, 1), 2)"),
        ("nn.relu(%x)", "nn.relu(x)"),
        ("nn.relu (%x)", "nn.relu(x)"),
        ("%f(%x)(%y)", None),
        ("add(%x, %y,)", "add(x, y)"),
    ],
)
def test_infix_operators_and_calls(text: str, meaning: str | None) -> None:
    expr = parse_expr(text)
    if meaning is None:
        assert isinstance(expr, Call) and isinstance(expr.op, Call)
    else:
        assert shape_of(expr) == meaning


def test_projections() -> None:
    expr = parse_expr("fn (%t) { (%t.0.1, ((%t, 1),).0.0) }").body
    t = expr.fields[0].tuple_value.tuple_value
    assert (expr.fields[0].tuple_value.index, expr.fields[0].index) == (0, 1)
    assert isinstance(t, Var)
    assert isinstance(expr.fields[1], TupleGetItem)


def test_a_dotted_number_is_a_name_where_one_is_in_scope_else_a_field() -> None:
    assert parse_expr("fn (%a.15) { %a.15 }").body.name_hint == "a.15"
    field = parse_expr("fn (%a) { %a.15 }").body
    assert isinstance(field, TupleGetItem) and field.index == 15
    both = parse_expr("fn (%a, %a.15) { (%a.15, %a.14) }").body
    assert isinstance(both.fields[0], Var) and isinstance(both.fields[1], TupleGetItem)
    assert parse("%input.1").free_vars[0].name_hint == "input.1"


@pytest.mark.parametrize("name", ["features.0.0_weight", "input:0", "layer-1", "conv1/weights", "a_b", "StatefulCall:0"])
def test_names_of_imported_models(name: str) -> None:
    function = parse_expr(f"fn (%{name}: int32) {{ add(%{name}, 1) }}")
    assert function.params[0].name_hint == name
    assert function.body.args[0] is function.params[0]
    assert parse(f"let %{name} = 1; %{name}").expr.variable.name_hint == name


@pytest.mark.parametrize("name", ["a b", "é", "let", "a[0]", 'q"uote', "back\\slash", "new\nline", "1st"])
def test_quoted_names(name: str) -> None:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    function = parse_expr(f'fn (%"{quoted}") {{ %"{quoted}" }}')
    assert function.params[0].name_hint == name
    assert function.body is function.params[0]
    assert parse(f'def @"{quoted}"() {{ @"{quoted}"() }}').module.get_global_var(name)


@pytest.mark.parametrize(
    "text",
    [
        "fn (%layer-1) { %layer-1-2 }",
        "fn (%x: int32, %layer-1: int32) { %layer-1-2 }",
        "let %layer-1 = 3; %layer-1-2",
        "free_var %layer-1; %layer-1-2",
        "match (3) { %layer-1 => %layer-1-2 }",
        "match? ((3, 4)) { (%layer-1, _) => { %layer-1-2 }, }",
        "match? ((3, (4, 5))) { (_, (_, %layer-1: int32)) => %layer-1-2 }",
        "match? ((3, 4)) { (%a, _) => add(%a-1, %a), (%layer-1, %b-1) => /* a */ %layer-1-2 }",
        "match (3) { case %layer-1 { %layer-1-2 } }",
        "match (3) { case (%a-1, %layer-1) { %layer-1-2 } }",
    ],
)
def test_every_binding_of_a_name_with_a_dash_counts(text: str) -> None:
    assert ("local", "%layer-1") in [(token.kind, token.text) for token in tokenise(text)][3:]
    calls = [node for node in post_order(parse_expr(text)) if isinstance(node, Call)]
    assert shape_of(calls[-1]) == "subtract(layer-1, 2)"


def test_a_name_with_a_dash_may_be_bound_inside_a_constructor_or_outside_of_the_text() -> None:
    module = parse(
        "type L[A] { Cons(A, L[A]), Nil, }\n"
        "def @f(%l: L[int32]) -> int32 { match (%l) { Cons(%layer-1, _) => { %layer-1 }, Nil => { 0 }, } }"
    ).module
    clause = module["f"].body.clauses[0]
    assert clause.rhs is clause.lhs.patterns[0].var
    outside = Var("layer-1")
    assert parse("%layer-1-1", variables={"layer-1": outside}).expr.args[0] is outside


def test_a_name_with_a_dash_is_told_from_a_subtraction_by_what_is_bound() -> None:
    body = parse_expr("fn (%layer-1, %n) { %layer-1 - %n-1 }").body
    assert shape_of(body) == "subtract(subtract(layer-1, n), 1)"


def test_call_attributes() -> None:
    conv = parse_expr('nn.conv2d(%x, %w, strides=[2, 2], padding=[1], kernel_size=[3, 3], out_dtype="int32")')
    assert conv.attrs.strides == (2, 2)
    assert conv.attrs.padding == (1,)
    assert conv.attrs.out_dtype == "int32"
    assert conv.attrs.data_layout == "NCHW"
    pad = parse_expr("nn.pad(%x, 0f, pad_width=[[0, 0], [1, 1]])")
    assert pad.attrs.pad_width == ((0, 0), (1, 1))
    assert parse_expr("clip(%x, a_min=-1f, a_max=1e-05f)").attrs.a_max == 1e-05
    assert parse_expr("nn.dense(%x, %w, units=None)").attrs.units is None
    assert parse_expr('zeros(shape=[1, ?], dtype="float32")').attrs.shape == (1, ANY)
    assert parse_expr("reshape(%x, newshape=[1i64, -1i64])").attrs.newshape == (1, -1)
    assert parse_expr("nn.softmax(%x, axis = 1)").attrs.axis == 1
    assert parse_expr("nn.softmax(%x, /* which */ axis=1 /* this */)").attrs.axis == 1
    assert parse_expr('nn.softmax(%x, "axis"=1)').attrs.axis == 1


def test_attributes_of_a_call_of_no_operator() -> None:
    call = parse_expr('%f(%x, k=[1, 2], attrs_type_key="my.Attrs")')
    assert call.attrs.type_key == "my.Attrs"
    assert call.attrs.values == {"k": (1, 2)}


def test_type_arguments_of_old_calls() -> None:
    call = parse_expr("add(%x, %y, Tensor[(1), float32], Tensor[(2), float32])")
    assert call.type_args == [TensorType((1,)), TensorType((2,))]
    assert len(call.args) == 2


# ---- statements


def test_graph_bindings_share_and_lets_nest() -> None:
    expr = parse_expr("%0 = add(%x, 1); %1 = add(%0, %0); multiply(%1, %0)")
    assert expr.args[0].args[0] is expr.args[0].args[1] is expr.args[1]
    let = parse_expr("let %a: int32 = 1; let %b = %a; (%a, %b)")
    assert isinstance(let, Let) and isinstance(let.body, Let)
    assert let.variable.type_annotation == scalar_type("int32")
    assert let.body.value is let.variable
    assert let.body.body.fields == (let.variable, let.body.variable)


def test_a_graph_name_holds_in_its_whole_function() -> None:
    """TVM's print names a node that several branches share where it meets it first."""
    branches = parse_expr("if (%c) { %1 = (%x, 2f); %1.0 } else { if (%d) { %1.1 } else { log(%1.1) } }")
    shared = branches.true_branch.tuple_value
    assert isinstance(shared, Tuple)
    assert branches.false_branch.true_branch.tuple_value is shared
    assert branches.false_branch.false_branch.args[0].tuple_value is shared
    arms = parse_expr("match (%x) { (%a, _) => { %0 = log(%y); %0 }, _ => %0 }")
    assert arms.clauses[0].rhs is arms.clauses[1].rhs
    module = parse("def @f(%c: bool) { let %a = { %0 = log(2f); %0 }; if (%c) { %0 } else { let %b = 1f; %0 } }").module
    assert module is not None
    let = module["f"].body
    assert let.body.true_branch is let.value and let.body.false_branch.body is let.value


def test_a_lets_value_means_the_variable_that_the_let_hides() -> None:
    """Outside functions; the language reference shadows like this."""
    outer = parse_expr("let %a = 1; let %a = %a + %a; let %a = { let %a = %a * 2; %a }; %a")
    middle = outer.body
    assert middle.value.args == (outer.variable, outer.variable) and middle.variable is not outer.variable
    assert middle.body.value.value.args[0] is middle.variable
    recursive = parse_expr("let %f = 1; let %f = fn (%x) { %f(%x) }; %f").body
    assert recursive.value.body.op is recursive.variable


def test_statements_in_brackets() -> None:
    call = parse_expr("add(let %a = 1; %a, %0 = log(%x); %0)")
    assert isinstance(call.args[0], Let) and shape_of(call.args[1]) == "log(x)"
    assert parse_expr("(1; 2, 3)").fields[0].body.data == 2
    assert isinstance(parse_expr("if (let %c = True; %c) { 1 } else { 2 }").cond, Let)
    assert isinstance(parse_expr("match (let %c = True; %c) { _ => 2 }").data, Let)
    assert isinstance(parse_expr("match (%a, %b) { _ => 2 }").data, Tuple)
    assert isinstance(parse_expr("match (%a, %b).0 { _ => 2 }").data, TupleGetItem)
    assert isinstance(parse_expr("match? %f(1) { _ => 2 }").data, Call)
    assert isinstance(parse_expr("ref(1; 2)").value, Let)
    assert isinstance(parse_expr("ref_write(let %r = ref(1); %r, 1; 2)").value, Let)
    assert isinstance(parse_expr("nn.softmax(let %a = %x; %a, axis=1)").args[0], Let)
    arms = parse_expr("match (%x) { (%a, _) => %0 = log(%a); %0, _ => let %b = 1; 2; %b }").clauses
    assert shape_of(arms[0].rhs) == "log(a)" and isinstance(arms[1].rhs.body, Let)
    nested = parse_expr("(let %a = let %b = 1; %b; %a)")
    assert isinstance(nested.value, Let) and nested.body is nested.variable


def test_an_expression_for_a_module_uses_its_functions() -> None:
    foo = parse_expr("@foo")
    assert isinstance(foo, GlobalVar) and foo.name_hint == "foo"
    assert parse_expr("@foo(1, @foo(2))").args[1].op is not None
    for text in ("def @main() { @foo }", "@foo"):
        with pytest.raises(RelayError, match="unknown function `@foo`"):
            parse(text)


def test_a_pattern_in_parentheses_is_a_tuple_of_one() -> None:
    """As TVM reads and prints it."""
    text = '#[version = "0.0.5"]\ntype L { Nil, } def @main(%x: (L[],)) { match (%x) { (Nil) => 1, (%y,) => 2 } }'
    module = parse(text).module
    assert module is not None
    first, second = (clause.lhs for clause in module["main"].body.clauses)
    assert isinstance(first, PatternTuple) and isinstance(first.patterns[0], PatternConstructor)
    assert isinstance(second, PatternTuple) and infer(module) == []
    assert structural_equal(parse(astext(module, style="tvm")).value, module)


def test_parentheses_around_a_pattern_of_a_value_that_is_no_tuple() -> None:
    text = "type L { Nil, B(int32), } def @main(%x: L) { match (%x) { (Nil) => 1, (B(%y)) => %y } }"
    module = parse(text).module
    assert module is not None
    said = infer(module)
    assert [(d.code, d.fix.replacement) for d in said if d.fix] == [("R0309", "Nil"), ("R0309", "B(%y)")]
    repaired = text
    for d in reversed(said):
        assert d.fix is not None
        repaired = d.fix.apply(repaired)
    again = parse(repaired).module
    assert again is not None and infer(again) == []


def test_a_sign_apart_from_its_number_in_a_list() -> None:
    assert parse_expr("reshape(%x, newshape=[1, - 1,-   2])").attrs.newshape == (1, -1, -2)
    assert parse_expr("reshape(%x, newshape=[1, - /* c */ 1])").attrs.newshape == (1, -1)
    for text in ("[1, --1]", "[-]", "[1, .]", "[- -1]", "[. 2]"):
        with pytest.raises(RelayError, match=r"value is wanted|an attribute's value|expected"):
            parse_expr(f"reshape(%x, newshape={text})")


def test_gaps_in_the_bounds_of_a_slice() -> None:
    x = np.arange(24, dtype="float32").reshape(4, 6)
    for attrs, wanted in (
        ("begin=[0, 0], end=[None, None], strides=[1], axes=None", x),
        ("begin=[1, None], end=[None, 3], strides=[1, 2], axes=None", x[1:, :3:2]),
        ("begin=[None], end=[-1], strides=[1], axes=[1]", x[:, :-1]),
        ('begin=[1, 2], end=[None, 3], strides=[1], slice_mode="size", axes=None', x[1:, 2:5]),
    ):
        text = f"strided_slice(%x, {attrs})"
        function = parse_expr(f"fn (%x: Tensor[(4, 6), float32]) {{ {text} }}")
        np.testing.assert_array_equal(evaluate(function, x), wanted)
        for style in ("lossless", "tvm"):
            assert text in astext(parse_expr(text), style=style)
    with pytest.raises(RelayError, match="must be a list of whole numbers"):
        parse_expr("reshape(%x, newshape=[None, 1])")


def test_an_output_padding_of_two_numbers_for_one_axis() -> None:
    """TVM's importer of ONNX gives it so; the first number counts."""

    def shape(attrs: str) -> tuple[object, ...]:
        types = "%d: Tensor[(1, 6, 22), float32], %k: Tensor[(6, 4, 3), float32]"
        mod = parse(f"def @main({types}) {{ nn.conv1d_transpose(%d, %k, kernel_size=[3], padding=[1], {attrs}) }}").module
        assert mod is not None and not [d for d in infer(mod) if d.severity == "error"]
        given = np.ones((1, 6, 22), "float32"), np.ones((6, 4, 3), "float32")
        assert evaluate(mod, *given).shape == mod["main"].checked_type.ret_type.shape
        return mod["main"].checked_type.ret_type.shape

    assert shape("output_padding=[0, 0]") == (1, 4, 22)
    assert shape("strides=[2], output_padding=[1, 0]") == (1, 4, 44)


def test_external_types() -> None:
    """`extern type T` is the definition without constructors; TVM's core library has one."""
    handle = GlobalTypeVar("Handle")
    made = IRModule(type_definitions={handle: TypeData(handle, [], [])})
    read = parse('#[version = "0.0.5"]\nextern type Handle').value
    assert structural_equal(made, read) and "extern type Handle" in astext(read)
    std = IRModule()
    std.import_from_std("core.rly")
    assert [t.name_hint for t in std.type_definitions] == ["Storage"]


def test_a_sequence_is_a_let_of_nothing() -> None:
    let = parse_expr("ref_write(%r, 1); 2")
    assert isinstance(let, Let) and let.variable.name_hint == "_"
    assert isinstance(let.value, RefWrite)


def test_a_let_as_a_lets_value() -> None:
    let = parse_expr("let %a = let %b = 1; %b; add(%a, %a)")
    assert isinstance(let.value, Let)
    assert let.value.body is let.value.variable
    assert let.body.args == (let.variable, let.variable)
    braces = parse_expr("let %a = { let %b = 1; %b }; %a")
    assert isinstance(braces.value, Let)
    matched = parse(LIST + "def @f(%l: List[int32]) { let %a = match (%l) { Nil => 0, _ => 1, }; %a }").module
    assert isinstance(matched["f"].body.value, Match)


def test_a_lets_function_may_call_itself() -> None:
    let = parse_expr("let %f = fn (%n) { %f(%n) }; %f")
    assert let.value.body.op is let.variable


def test_shadowed_names_come_back() -> None:
    expr = parse_expr("fn (%x) { ((let %x = 1; %x), %x) }")
    first, second = expr.body.fields
    assert first.body is first.variable
    assert second is expr.params[0]


def test_a_fragment_that_ends_in_a_binding_has_its_value() -> None:
    assert shape_of(parse_expr("%0 = add(%x, 1);")) == "add(x, 1)"
    let = parse_expr("let %a = 1;")
    assert let.body is let.variable
    assert shape_of(parse_expr("add(1, 2);")) == "add(1, 2)"
    assert shape_of(parse_expr("%out = add(%x, 1)")) == "add(x, 1)"


def test_statements_end_with_their_line() -> None:
    expr = parse_expr("%0 = add(%x, 1)\n%1 = fn (%y) {\n  %2 = add(%y, %0)\n  %2\n}\nlet %z = %1\n%z")
    assert isinstance(expr, Let)
    with pytest.raises(RelayError):
        parse_expr("%0 = add(%x, 1) %0")


def test_a_statement_that_ends_with_its_line_ends_with_its_last_token() -> None:
    for text, meant in (("-1\n%x", "-1; %x"), ("%0 = 1\n-1\n%0", "%0 = 1 - 1; %0")):
        assert structural_equal(parse_expr(text), parse_expr(meant), map_free_vars=True)
        assert format_text(text).split() == meant.split()
    text = "let %a = add(%x,\n %y)\nlet %b = (%a)\n%b"
    whole = parse_expr(text)
    assert [str(let.value.span.text) for let in (whole, whole.body)] == ["add(%x,\n %y)", "%a"]


def test_declared_free_variables() -> None:
    result = parse("free_var %x: Tensor[(2), float32]\nfree_var %y;\nadd(%x, %y)")
    assert [v.name_hint for v in result.free_vars] == ["x", "y"]
    assert result.expr.args == tuple(result.free_vars)
    assert result.free_vars[0].type_annotation == TensorType((2,))


def test_control_flow_tuples_and_references() -> None:
    expr = parse_expr("if (%c) { 1 } else { %0 = 2; %0 }")
    assert isinstance(expr, If) and expr.false_branch.data == 2
    assert parse_expr("()").fields == ()
    assert len(parse_expr("(1,)").fields) == 1
    assert len(parse_expr("(1, 2,)").fields) == 2
    assert isinstance(parse_expr("(1)"), Constant)
    assert isinstance(parse_expr("(%a, %b)"), Tuple)
    assert isinstance(parse_expr("ref(1)"), RefCreate)
    assert isinstance(parse_expr("ref_read(%r)"), RefRead)
    assert isinstance(parse_expr("ref_write(%r, 1)"), RefWrite)


# ---- functions and modules


def test_functions() -> None:
    function = parse_expr(
        'fn [A](%x: A, %y: Tensor[(1), float32], Primitive=1, Compiler="ethos-n", hash.key="k", "my key"=1f, t=True) -> A { %x }'
    )
    assert isinstance(function, Function)
    (a,) = function.type_params
    assert function.params[0].type_annotation is a and function.ret_type is a
    assert list(function.attrs.items()) == [("Primitive", 1), ("Compiler", "ethos-n"), ("hash.key", "k"), ("my key", 1.0), ("t", True)]
    assert isinstance(function.attrs["my key"], float) and function.attrs["t"] is True
    assert parse_expr("fn () { 1 }").params == ()


def test_attribute_values_keep_their_type() -> None:
    attrs = parse_expr('fn (a=1i8, b=1i64, c=0.5f64, d=2f16, e=[1, [2f, "x"]], f=None, g={"k"=1}) { 1 }').attrs
    assert isinstance(attrs["a"], np.int8) and isinstance(attrs["b"], np.int64)
    assert isinstance(attrs["c"], np.float64) and isinstance(attrs["d"], np.float16)
    assert attrs["e"] == (1, (2.0, "x")) and attrs["f"] is None and attrs["g"] == {"k": 1}


def test_modules() -> None:
    result = parse("def @main(%x: int32) { @f(%x) }\ndef @f[A](%x: A) -> A { %x }")
    mod = result.module
    assert [v.name_hint for v in mod.functions] == ["main", "f"] or {v.name_hint for v in mod.functions} == {"main", "f"}
    assert mod["main"].body.op is mod.get_global_var("f")
    assert [n.code for n in result.notes] == ["R0150"]
    assert not parse('#[version = "0.0.5"]\ndef @main() { 1 }').notes


@pytest.mark.parametrize("header", ['#[version = "0.0.5"]', "v0.0.1", "v0.0.4", '#[version = "0.0.4"]'])
def test_headers_of_all_versions(header: str) -> None:
    assert parse(f"{header}\ndef @main() {{ 1 }}").module["main"].body.data == 1
    assert parse_expr(f"{header}\n%x").name_hint == "x"
    assert not parse(f"{header}\ndef @main() {{ 1 }}").notes


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ('#[verison = "0.0.5"]', 'the text has no version header: `#[verison = "0.0.5"]` is a comment'),
        ('#[Version = "0.0.5"]', 'the text has no version header: `#[Version = "0.0.5"]` is a comment'),
        ("# version 0.0.5", "the text has no version header: `# version 0.0.5` is a comment"),
        ('// #[version = "0.0.5"]', 'the text has no version header: `// #[version = "0.0.5"]` is a comment'),
        ('#[version = "0.1.0"]', "no TVM wrote the version 0.1.0: the text is read as 0.0.5"),
        ('#[version = "0.0.6"]', "no TVM wrote the version 0.0.6: the text is read as 0.0.5"),
        ("#[version = latest]", "the version header has no version: the text is read as 0.0.5"),
    ],
)
def test_headers_of_no_version(header: str, said: str) -> None:
    (note,) = parse(f"{header}\ndef @main() {{ 1 }}").notes
    assert (note.code, note.severity, note.title) == ("R0150", "note", said)
    assert note.fix is not None and note.fix.apply(f"{header}\n") == '#[version = "0.0.5"]\n'


def test_an_empty_module_has_a_header() -> None:
    assert len(fromtext('#[version = "0.0.5"]\n')) == 0


def test_graph_names_belong_to_one_definition() -> None:
    mod = parse("def @f() { %0 = 1; %0 }\ndef @g() { %0 = 2; %0 }").module
    assert mod["f"].body.data == 1 and mod["g"].body.data == 2


def test_external_functions() -> None:
    function = parse("def @ext = meta[relay.ExternalFunction][0];\ndef @main() { @ext(1) }").module["ext"]
    assert function.body is None


def test_definitions_then_an_expression() -> None:
    result = parse("def @f(%x) { %x }\n@f(1)")
    assert result.module is not None and result.expr.op is result.module.get_global_var("f")


def test_a_session_knows_what_came_before() -> None:
    first = parse("type T { A(int32), B, }\ndef @f(%t: T) { 1 }").module
    second = parse("def @g() { @f(A(2)) }", module=first).module
    assert {v.name_hint for v in second.functions} == {"f", "g"}
    assert second["g"].body.op is first.get_global_var("f")
    known = Var("x")
    result = parse("%y = add(%x, %z)", variables={"x": known})
    assert result.expr.args[0] is known
    assert [v.name_hint for v in result.free_vars] == ["z"]
    assert result.bindings == {"y": result.expr}


# ---- algebraic types


def test_type_definitions_and_matches() -> None:
    mod = parse(
        LIST + "extern type Handle\nextern type Other;\ntype integer { I, }\n"
        "def @f[A](%l: List[A], %p: (int32, integer)) -> int32 {\n"
        "  match? (%l) { Cons(%h: A, Cons(_, %t)) => { 1 }, Nil() => 2, %any => 3, }\n}\n"
        "def @g(%p) { match (%p) { (%a, _) => %a, } }"
    ).module
    clauses = mod["f"].body.clauses
    assert not mod["f"].body.complete
    assert isinstance(clauses[0].lhs, PatternConstructor)
    inner = clauses[0].lhs.patterns[1]
    assert isinstance(inner.patterns[0], PatternWildcard) and isinstance(inner.patterns[1], PatternVar)
    assert clauses[0].lhs.patterns[0].var.type_annotation is mod["f"].type_params[0]
    assert isinstance(mod["g"].body.clauses[0].lhs, PatternTuple)
    assert mod.type_definitions[mod.get_global_type_var("Handle")].extern
    cons = mod.get_constructor("List", "Cons")
    assert isinstance(cons.inputs[1], TypeCall) and cons.inputs[1].func is mod.get_global_type_var("List")
    assert mod.get_constructor("List", "Nil").tag == cons.tag + 1


def test_constructors_as_values_also_above_their_definition() -> None:
    mod = parse("def @f() { (Nil, Cons, Nil(), Cons(1, Nil)) }\n" + LIST).module
    nil, cons, nil_call, call = mod["f"].body.fields
    assert isinstance(nil, Call) and nil.op is mod.get_constructor("List", "Nil")
    assert isinstance(cons, Constructor) and cons is mod.get_constructor("List", "Cons")
    assert nil_call.op is nil.op and call.op is cons
    assert isinstance(cons.inputs[1], TypeCall)


def test_the_documented_dialect() -> None:
    mod = parse(
        "# a list\ndata List<a> {\n  Nil : () -> List\n  Cons : (a, List[a]) -> List\n}\n"
        "def @hd(%l: List<int32>) { match(%l) { case Nil() { 0 } case Cons(h, _) { h * 2 } } }\n"
    ).module
    head = mod["hd"].body.clauses[1]
    assert shape_of(head.rhs) == "multiply(h, 2)"
    assert head.rhs.args[0] is head.lhs.patterns[0].var


# ---- types


def test_types() -> None:
    assert parse_type("Tensor[(1, ?, 3), float32]") == TensorType((1, ANY, 3))
    assert parse_type("Tensor[(), int8]") == TensorType((), "int8") == parse_type("int8")
    assert parse_type("Tensor[(2,), int8]") == TensorType((2,), "int8")
    assert parse_type("Tensor[(2i64, 3 /* c */), bfloat16]") == TensorType((Extent(2), 3), "bfloat16")
    assert parse_type("(int32, (bool,))") == TupleType([scalar_type("int32"), TupleType([scalar_type("bool")])])
    assert parse_type("()") == TupleType([])
    assert parse_type("(int32)") == TupleType([scalar_type("int32")])
    assert parse_type("fn (int32) -> bool") == FuncType([scalar_type("int32")], scalar_type("bool"))
    generic = parse_type("fn [A](A) -> A")
    assert isinstance(generic, FuncType) and generic.ret_type is generic.type_params[0]
    assert parse_type("ref(int32)") == RefType(scalar_type("int32"))
    assert isinstance(parse_type("_"), IncompleteType)
    assert parse_type("custom[posites2]32") == TensorType((), "custom[posites2]32")
    assert parse_type("Tensor[(1), custom[posites2]32]") == TensorType((1,), "custom[posites2]32")
    shaped = parse_expr("fn [n](%x: Tensor[(n, 3), float32]) { %x }")
    assert shaped.params[0].type_annotation.shape[0] is shaped.type_params[0]
    assert shaped.type_params[0].kind == "ShapeVar"


def test_equal_types_of_one_text_are_one_object() -> None:
    function = parse_expr("fn (%x: Tensor[(7, 9), float32], %y: Tensor[(7, 9), float32]) { %x }")
    assert function.params[0].type_annotation is function.params[1].type_annotation


# ---- metadata and comments


def test_a_missing_section() -> None:
    result = parse("(meta[relay.Constant][3] /* ty=(int32, bool) span=a/b.c:1:2 */, meta[relay.Constant][3], meta[X][0])")
    first, again, other = result.expr.fields
    assert isinstance(first, MetaRef) and first is again
    assert first.type_annotation == TupleType([scalar_type("int32"), scalar_type("bool")])
    assert other.type_annotation is None
    assert result.missing == [first, other]


def test_comments() -> None:
    text = "/* a /* b */ c */ %x // d\n # e\n + /**/ 1 /* f * g */ /* ty=int32 span=a:1:2 */"
    assert shape_of(parse_expr(text)) == "add(x, 1)"
    assert shape_of(parse_expr("add(%x /* one */ /* two */, // three\n 1)")) == "add(x, 1)"
    assert parse_expr('fn (k="/* no comment */ // #") { 1 }').attrs["k"] == "/* no comment */ // #"


def test_strings() -> None:
    text = r'fn (k="a\"b\\c\n\t\x41\u00e9\xC3\xA9", l="ä\
") { 1 }'
    attrs = parse_expr(text).attrs
    assert attrs["k"] == 'a"b\\c\n\tA\u00e9\u00e9' and attrs["l"] == "ä"


def test_line_ends_and_byte_order_mark() -> None:
    assert shape_of(parse_expr("\ufeff%0 = add(%x, 1)\r\n# c\r\nadd(%0, 2)\r\n")) == "add(add(x, 1), 2)"


# ---- spans


def test_spans_are_places_in_the_text() -> None:
    text = (
        '#[version = "0.0.5"]\n// c\n/* d */ def @main(%x: Tensor[(3), float32]) {\n  %0 = nn.relu(%x) /* ty=x */;\n  add(%0, 1f)\n}\n'
    )
    main = parse(text, "a.relay").module["main"]
    add = main.body
    assert str(add.span) == "a.relay:5:3" and add.span.text == "add(%0, 1f)"
    assert add.args[0].span.text == "nn.relu(%x)"
    assert (add.args[0].span.line, add.args[0].span.column, add.args[0].span.end_column) == (4, 8, 19)
    assert add.args[1].span.text == "1f"
    assert main.span.text.startswith("def @main(") and main.span.text.endswith("}")


def test_spans_behind_a_split_name_and_a_nested_comment() -> None:
    expr = parse_expr("%n-1 /* /* */ */ + nn.relu(%m-22)")
    assert expr.span.text == "%n-1 /* /* */ */ + nn.relu(%m-22)"
    assert expr.args[1].span.text == "nn.relu(%m-22)"
    assert expr.args[1].args[0].span.text == "%m-22"


def test_infix_spans_cover_their_operands() -> None:
    expr = parse_expr("1 + %x * 3 - 4")
    assert expr.args[0].args[1].span.text == "%x * 3"
    assert expr.args[0].span.text == "1 + %x * 3"


# ---- entry points


def test_fromtext_and_parse_expr() -> None:
    assert isinstance(fromtext("fn () { 1 }"), Function)
    with pytest.raises(RelayError) as caught:
        parse_expr("def @f() { 1 }")
    assert caught.value.diagnostics[0].code == "R0110"
    assert isinstance(parse_expr("add"), type(OPS["add"]))
    assert isinstance(parse("def @f() { @f }").module["f"].body, GlobalVar)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("add(1, 2)", True),
        ("add(1,", False),
        ("def @f() {", False),
        ("def @f() { 1 }", True),
        ('fn (k="a', False),
        ("/* /* */", False),
        ("/* */ 1", True),
        ("1 +", False),
        ("let %x =", False),
        ("let %x = 1", True),
        (")", True),
        ("%n-1", True),
        ("if (%c) { 1 }", False),
        ("", True),
        ("$", True),
        ("type T {", False),
    ],
)
def test_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("fn (%x: (int32)) { %x }", "fn (%x: (int32,)) { %x }"),
        ("fn (%x: ((int32))) { %x }", "fn (%x: ((int32,),)) { %x }"),
        ("fn (%x) -> (fn (int32) -> bool) { %x }", "fn (%x) -> (fn (int32) -> bool,) { %x }"),
        ("fn (%x: ref((int32))) { %x }", "fn (%x: ref((int32,))) { %x }"),
        ("fn (%x: fn ((int32), bool) -> bool) { %x }", "fn (%x: fn ((int32,), bool) -> bool) { %x }"),
        ("fn (%x: (int32 /* a */)) { %x }", "fn (%x: (int32 /* a */,)) { %x }"),
    ],
)
def test_a_type_alone_in_parentheses_is_a_tuple_of_one(text: str, canonical: str) -> None:
    result = parse(text)
    assert [note.code for note in result.notes] == ["R0153"] and result.notes[0].span is not None
    assert not parse(canonical).notes
    assert structural_equal(result.expr, parse_expr(canonical))
    assert format_text(text) == canonical + "\n"


def test_parentheses_in_a_type_group_in_texts_of_tvm_0_6() -> None:
    text = "v0.0.4\ndef @f(%x: (int32)) -> (int32) { %x }\n"
    result = parse(text)
    assert result.module is not None and result.module["f"].ret_type == scalar_type("int32") and not result.notes
    assert format_text(text).endswith("def @f(%x: int32) -> int32 { %x }\n")


@pytest.mark.parametrize(("count", "value"), [(0, 7), (1, -7), (2, 7), (5, -7), (4000, 7)])
def test_signs_in_front_of_a_number_are_counted(count: int, value: int) -> None:
    assert parse_expr("-" * count + "7").data == value
    assert parse_expr("- /* a */ " * count + "7").data == value


@pytest.mark.parametrize("operand", ["7", "%x", "(7)", "inff"])
def test_chains_of_signs_are_read_in_linear_time(operand: str) -> None:
    assert_linear(lambda n: lambda: parse("-" * n + operand), small=500)
