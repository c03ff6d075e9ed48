"""The lossless style: a print reads back as the same program, and prints as the same text."""

from __future__ import annotations

import gzip
import json
import random

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    ANY,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    MetaRef,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    const,
    var,
)
from relaylang.ir.structural import structural_diff
from relaylang.ops import OPS
from relaylang.syntax import astext, parse, parse_type
from relaylang.syntax.printer import text_blocks
from relaylang.testing.generators.any_ir import AnyPrograms
from relaylang.typing import infer
from tests.growth import Run, assert_linear
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, needs_shared


def call(name: str, *args: Expr) -> Call:
    return Call(OPS[name], args)


def read(text: str) -> IRModule | Expr:
    result = parse(text)
    return result.module if result.module is not None else result.expr


def check(node: IRModule | Expr) -> str:
    """Print, read, compare, print again. Returns the text without its header."""
    text = astext(node)
    again = read(text)
    assert structural_diff(node, again, map_free_vars=True) is None
    assert astext(again, show_types=False) == astext(node, show_types=False)
    return text.partition("\n")[2]


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 6))
def test_random_programs(rng: random.Random, depth: int) -> None:
    check(AnyPrograms(rng).module(depth))


@pytest.mark.sweep
def test_many_random_programs() -> None:
    for seed in range(150):
        check(AnyPrograms(random.Random(seed)).module(2 + seed % 5))


@pytest.mark.sweep
@needs_shared
def test_files() -> None:
    paths = [*GOLDEN.glob("*.relay"), *FRAGMENTS.glob("*.relay"), *CORPUS.glob("calyx*/*.relay")]
    assert len(paths) > 60
    for path in paths:
        node = read(path.read_text())
        check(node)
        infer(node)
        check(node)


@pytest.mark.sweep
@needs_shared
def test_programs_that_tvm_printed() -> None:
    with gzip.open(CORPUS / "tvm_passes.jsonl.gz", "rt") as lines:
        texts = dict.fromkeys(text for line in lines for side, text in json.loads(line).items() if side in ("in", "out"))
    left = 0
    for text in texts:
        try:
            node = read(text)
        except RelayError:  # an operator that not even TVM has
            left += 1
            continue
        check(node)
    assert len(texts) > 1_000 and left <= 4


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (0.0186579, "float32", "0.0186579f"),
        (1 / 3, "float32", "0.33333334f"),
        (1 / 3, "float64", "0.3333333333333333f64"),
        (16777216.0, "float32", "16777216f"),
        (123456789.0, "float32", "1.2345679e+08f"),
        (1e-45, "float32", "1e-45f"),
        (5e-324, "float64", "5e-324f64"),
        (1.7976931348623157e308, "float64", "1.7976931348623157e+308f64"),
        (0.1, "float16", "0.1f16"),
        (65504.0, "float16", "65504f16"),
        (-0.0, "float32", "-0f"),
        (float("inf"), "float32", "inff"),
        (-float("inf"), "float64", "-inff64"),
        (float("nan"), "float32", "nanf"),
        (-128, "int8", "-128i8"),
        (255, "uint8", "255u8"),
        (-(2**31), "int32", "-2147483648"),
        (2**63 - 1, "int64", "9223372036854775807i64"),
        (2**64 - 1, "uint64", "18446744073709551615u64"),
        (False, "bool", "False"),
    ],
)
def test_scalars(value: object, dtype: str, shown: str) -> None:
    assert check(const(value, dtype)) == shown


@pytest.mark.sweep
def test_every_float16_and_bfloat16() -> None:
    for kind in (np.float16, ml_dtypes.bfloat16):
        bits = np.arange(65536, dtype=np.uint16).view(kind)
        finite = bits[np.isfinite(bits.astype("float32"))]
        text = astext(Tuple([Constant(np.array(value)) for value in finite]))
        assert "meta[" not in text
        found = np.array([c.data for c in parse(text).expr.fields])
        assert found.dtype == bits.dtype and found.tobytes() == finite.tobytes()


def test_a_nan_of_its_own_keeps_its_bits() -> None:
    c = Constant(np.array(0x7FC00001, np.uint32).view(np.float32))
    assert "meta[relay.Constant][0]" in check(c)


def test_names_that_are_no_names_are_quoted() -> None:
    names = ["x", "a b", "é", "let", "a.15", "features.0.0_weight", "0", "input:0", "layer-1", 'q"', "", "_", "\n"]
    params = [var(n) for n in names]
    text = check(Function(params, Tuple(params)))
    assert text.split(")")[0] == (
        r'fn (%x, %"a b", %"é", %"let", %a.15, %features.0.0_weight, %"0", %input:0, %"layer-1", %"q\"", %"", %_, %"\n"'
    )
    again = read(astext(Function(params, Tuple(params))))
    assert [p.name_hint for p in again.params] == names


@pytest.mark.parametrize("node", [None, "add(1, 2)", 3, np.ones(2)])
def test_what_is_no_program(node: object) -> None:
    with pytest.raises(TypeError, match="a module, an expression, a type or a pattern, not"):
        astext(node)  # type: ignore[arg-type]


def test_words_of_the_language_as_names() -> None:
    """Bare where TVM reads them behind `%` and `@`: `%data` is what most networks call their input."""
    free = "data case meta True False None inf nan nanf Tensor import".split()
    taken = "let fn def if else match type extern ref ref_read ref_write free_var inff".split()
    for name in free + taken:
        shown = name if name in free else f'"{name}"'
        text = f"""def @{shown}(%{shown}: int32) -> int32 {{
  let %x = @{shown}(%{shown});
  match (%x) {{ %{shown} => %{shown} }}
}}"""
        assert f"let %x = @{shown}(%{shown});" in check(read(text)), name


def test_a_field_is_not_a_variable_of_that_name() -> None:
    a, other = var("a"), var("a.15")
    assert "(%a).15" in check(Function([a, other], Tuple([TupleGetItem(a, 15), other])))
    numbered = var("0.1")
    shared = Tuple([a, a])
    assert "(%0).1" in check(Function([a, numbered], Tuple([shared, TupleGetItem(shared, 1), numbered])))


def test_global_names_and_attribute_keys() -> None:
    gv = GlobalVar("f-g")
    f = Function([], Call(gv, []), attrs={"my key": 1, "relay.reshape_only": 1, "let": "a\tb"})
    text = check(IRModule({gv: f}))
    assert text.startswith(r'def @"f-g"("my key"=1, relay.reshape_only=1, "let"="a\tb") {' + '\n  @"f-g"()')


def test_attributes_keep_their_order_and_their_types() -> None:
    attrs = {k: k for k in "qwertyuiop"}
    attrs |= {"i8": np.int8(3), "u8": np.uint8(3), "b": True, "f64": np.float64(0.1), "f": 0.1, "huge": 1e300, "n": None}
    attrs |= {"any": ANY, "list": (1, (2.5, "x")), "map": {"k": (1,)}, "i64": np.int64(1), "big": 2**40}
    again = read(astext(Function([], Tuple([]), attrs=attrs)))
    assert list(again.attrs) == list(attrs)
    assert {k: type(v) for k, v in again.attrs.items()} == {k: type(v) for k, v in attrs.items()}
    assert again.attrs == attrs


def test_a_node_shared_between_branches_stands_before_them() -> None:
    b = var("b")
    shared = call("log", call("exp", b))
    text = check(Function([b], If(const(True), call("exp", shared), call("tanh", shared))))
    assert text.startswith("fn (%b) {\n  %0 = exp(%b);\n  %1 = log(%0);\n  if (True) {\n    exp(%1)\n  }")


def test_a_function_shared_between_branches_stands_before_them() -> None:
    b, x = var("b"), var("x")
    shared = Function([x], call("log", call("exp", x)))
    inner = If(const(False), Call(shared, [b]), b)
    text = check(Function([b], If(const(True), inner, Call(shared, [call("log", b)]))))
    assert text.startswith("fn (%b) {\n  %1 = fn (%x) {\n    %0 = exp(%x);\n    log(%0)\n  };\n  if (True) {")


def test_sharing_across_lets_and_arms_keeps_within_binders() -> None:
    x, y = var("x"), var("y")
    shared = call("log", y)
    body = Let(y, call("exp", x), If(const(True), shared, call("add", shared, x)))
    text = check(Function([x], body))
    assert text.index("let %y") < text.index("= log(%y)") < text.index("if (True)")


def test_a_let_as_the_value_of_a_let() -> None:
    a, b = var("a"), var("b")
    assert check(Let(a, Let(b, const(1), b), a)) == "let %a = (\n  let %b = 1;\n  %b\n);\n%a"


def test_literals_as_tuples_and_callees_stand_in_parentheses() -> None:
    assert check(TupleGetItem(const(5), 0)) == "(5).0"
    assert check(Call(const(-5), [const(1)])) == "(-5)(1)"
    gv = GlobalVar("main")
    assert "(@main).0" in check(IRModule({gv: Function([], TupleGetItem(gv, 0))}))


def test_types() -> None:
    a, n = TypeVar("A"), TypeVar("n", "ShapeVar")
    header = GlobalTypeVar("List")
    types = {
        TensorType(()): "float32",
        TensorType((1, ANY), "bool"): "Tensor[(1, ?), bool]",
        TupleType([TensorType(())]): "(float32,)",
        RefType(TupleType([])): "ref(())",
        FuncType([a], a, [a]): "fn [A](A) -> A",
        TypeCall(header, []): "List[]",
    }
    for ty, text in types.items():
        assert astext(ty) == text
        if header not in (getattr(ty, "func", None),):
            assert parse_type(text) == ty
    x = Var("x", TensorType((n, 2)))
    assert check(Function([x], x, TensorType((n, 2)))).startswith("fn (%x: Tensor[(meta[tir.Var][0], 2), float32]) -> ")


def test_type_variables_of_one_name_are_kept_apart() -> None:
    outer, inner = TypeVar("A"), TypeVar("A")
    x, y = Var("x", outer), Var("y", inner)
    f = Function([x], Function([y], Tuple([x, y]), TupleType([outer, inner]), [inner]), None, [outer])
    assert check(f).startswith("fn [A](%x: A) {\n  fn [A1](%y: A1) -> (A, A1) {")


def test_external_types_functions_and_module_attributes() -> None:
    ghost = GlobalTypeVar("Ghost")
    external = Function([], None, attrs={"external": MetaRef("relay.ExternalFunction", 0)})
    mod = IRModule({GlobalVar("e"): external}, {ghost: TypeData(ghost, [], [], extern=True)})
    text = check(mod)
    assert text.startswith("extern type Ghost\n\ndef @e = meta[relay.ExternalFunction][0]\n")
    mod = IRModule({GlobalVar("main"): Function([], Tuple([]))}, attrs={"target": "c", "opt": (1, 2.5)})
    assert read(astext(mod)).attrs == {"target": "c", "opt": [1, 2.5]}
    check(mod)


def test_missing_metadata_stays_missing() -> None:
    ref = MetaRef("relay.Constant", 3, TensorType((2,)))
    assert check(call("log", ref)) == "log(meta[relay.Constant][3] /* ty=Tensor[(2), float32] */)"


@pytest.mark.parametrize("let", [False, True])
def test_a_long_text_is_a_few_blocks_and_costs_linear_time(let: bool) -> None:
    def program(n: int) -> Expr:
        value: Expr = var("x", shape=(1,))
        lines = []
        for _ in range(n):
            value = call("log", value)
            if let:
                lines.append((Var("y"), value))
                value = lines[-1][0]
        for variable, bound in reversed(lines):
            value = Let(variable, bound, value)
        return value

    def prepare(n: int) -> Run:
        expr = program(n)
        return lambda: astext(expr)

    assert_linear(prepare)
    expr = program(9_000)
    blocks = text_blocks(expr)
    assert len(blocks) < 5_000
    assert "".join(blocks) == astext(expr)


@pytest.mark.sweep
def test_large_programs() -> None:
    x = var("x", shape=(1,))
    n = 5_000
    chain: Expr = x
    lets: Expr = x
    ifs: Expr = x
    refs: Expr = x
    functions: Expr = x
    for _ in range(n):
        chain = call("log", chain)
        lets = Let(var("y"), call("log", x), lets)
        ifs = If(const(True), ifs, x)
        refs = RefWrite(refs, x)
        functions = Function([var("z")], functions)
    wide = Tuple([call("log", x) for _ in range(n)])
    for expr in (chain, lets, ifs, refs, functions, wide):
        text = astext(Function([x], expr))
        assert len(text) < 400 * n
        assert astext(Function([x], expr), "tvm", show_types=False).count("\n") == text.count("\n")


@pytest.mark.sweep
def test_sharing_in_deep_nests_is_linear() -> None:
    x = var("x", shape=(1,))
    shared = call("log", x)
    lets: Expr = x
    ifs: Expr = x
    for _ in range(5_000):
        lets = Let(var("y"), If(const(True), shared, call("exp", shared)), lets)
        ifs = If(const(True), ifs, call("exp", shared))
    text = astext(Function([x], Tuple([ifs, lets, shared])))
    assert text.startswith('#[version = "0.0.5"]\nfn (%x: Tensor[(1), float32]) {\n  %0 = log(%x);')
