from __future__ import annotations

import numpy as np
import pytest

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IncompleteType,
    IRModule,
    Let,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    TypeVar,
    Var,
    const,
    var,
)
from relaylang.ir.structural import assert_structural_equal, structural_diff, structural_equal, structural_hash
from relaylang.ops import OPS, make_attrs
from relaylang.syntax import parse, parse_expr


def call(name: str, *args: Expr) -> Call:
    return Call(OPS[name], args)


def same(left: object, right: object, **options: bool) -> bool:
    equal = structural_equal(left, right, **options)
    assert structural_equal(right, left, **options) == equal
    if equal:
        assert structural_hash(left, **options) == structural_hash(right, **options)
    return equal


def test_names_of_what_is_bound_do_not_count() -> None:
    def program(x: str, y: str) -> Function:
        p, q = var(x, shape=(2,)), var(y)
        return Function([p], Let(q, call("log", p), call("add", p, q)))

    assert same(program("x", "y"), program("a", "x"))
    assert not same(program("x", "y"), Function([p := var("x", shape=(2,))], Let(q := var("y"), call("log", p), q)))


def test_free_variables_are_themselves_unless_mapped() -> None:
    x, y = var("x"), var("y")
    assert same(call("log", x), call("log", x))
    assert not same(call("log", x), call("log", y))
    assert same(call("log", x), call("log", y), map_free_vars=True)
    assert not same(call("add", x, y), call("add", x, x), map_free_vars=True)
    assert not same(x, var("z", shape=(1,)), map_free_vars=True)


def test_sharing_of_calls_counts_and_that_of_constants_does_not() -> None:
    x = var("x")
    shared, c, field = call("log", x), const(1.0), TupleGetItem(x, 0)
    assert not same(call("add", shared, shared), call("add", call("log", x), call("log", x)))
    assert same(call("add", c, c), call("add", const(1.0), const(1.0)))
    assert same(Tuple([field, field, TupleGetItem(field, 1)]), Tuple([TupleGetItem(x, 0), field, TupleGetItem(field, 1)]))
    assert same(Tuple([Tuple([]), Tuple([])]), (lambda t: Tuple([t, t]))(Tuple([])))
    assert not same(Tuple([field, field]), Tuple([field, TupleGetItem(x, 1)]))


def test_constants_compare_by_bits() -> None:
    assert same(const(float("nan")), const(float("nan")))
    assert not same(const(0.0), const(-0.0))
    assert not same(const(1, "int32"), const(1, "int64"))
    assert not same(Constant(np.zeros((1, 2))), Constant(np.zeros((2, 1))))
    assert same(Constant(np.zeros((2, 2)).T), Constant(np.zeros((2, 2))))


def test_types_compare_up_to_bound_type_variables() -> None:
    a, b = TypeVar("A"), TypeVar("B")
    assert same(FuncType([a], a, [a]), FuncType([b], b, [b]))
    assert not same(FuncType([a], a, [a]), FuncType([b], a, [b]))
    x, y = Var("x", a), Var("y", b)
    assert same(Function([x], x, a, [a]), Function([y], y, b, [b]))
    assert same(Var("x", IncompleteType()), Var("y"), map_free_vars=True)


def test_attributes() -> None:
    x = var("x")
    clip = OPS["clip"]
    low = Call(clip, [x], make_attrs(clip.attrs, {"a_min": 0.0, "a_max": 6.0}))
    high = Call(clip, [x], make_attrs(clip.attrs, {"a_min": 0.0, "a_max": 7.0}))
    assert structural_diff(low, high) == "at attrs.a_max: 6.0 on the left, 7.0 on the right"
    one, true = Function([], Tuple([]), attrs={"a": 1}), Function([], Tuple([]), attrs={"a": True})
    assert structural_diff(one, true) == "at attrs.a: 1 on the left, True on the right"
    assert same(Function([], Tuple([]), attrs={"a": 1, "b": 2}), Function([], Tuple([]), attrs={"b": 2, "a": 1}))
    assert not same(Function([], Tuple([]), attrs={"a": np.int8(1)}), one)


def test_the_first_difference_has_a_path() -> None:
    x = var("x")
    left = IRModule.from_expr(If(const(True), call("log", x), x))
    right = IRModule.from_expr(If(const(True), call("exp", x), x))
    assert structural_diff(left, right) == "at @main.body.true_branch.op: operator log on the left, operator exp on the right"
    with pytest.raises(ValueError, match=r"not structurally equal: at @main\.body\.true_branch\.op"):
        assert_structural_equal(left, right)
    assert_structural_equal(left, left)
    other = IRModule({GlobalVar("f"): left["main"]})
    assert structural_diff(left, other) == "the functions main on the left, the functions f on the right"


def test_the_hash_is_the_same_in_every_run() -> None:
    assert structural_hash(TensorType((1, 2), "int8")) == structural_hash(TensorType((1, 2), "int8"))
    assert structural_hash(const(1)) == structural_hash(const(1)) != structural_hash(const(2))


@pytest.mark.sweep
def test_depth_and_sharing_cost_no_more_than_size() -> None:
    def deep() -> Expr:
        x = var("x")
        e: Expr = x
        for _ in range(30_000):
            e = call("log", e)
        fields: Expr = e
        for _ in range(2_000):
            fields = TupleGetItem(fields, 0)
        wide = Tuple([fields] * 2_000)
        for _ in range(60):
            wide = Tuple([wide, wide])
        return Function([x], wide)

    assert same(deep(), deep())


#: Pairs of programs, and whether TVM 0.16 finds them structurally equal (its hashes agree with that for each pair).
AS_TVM = [
    ("fn (%x) { %0 = log(%x); add(%0, %0) }", "fn (%x) { add(log(%x), log(%x)) }", False),
    ("fn (%x) { %0 = (%x,); add(%0.0, %0.0) }", "fn (%x) { add((%x,).0, (%x,).0) }", False),
    ("fn (%x) { (1f, 1f) }", "fn (%y) { %0 = 1f; (%0, %0) }", True),
    ("fn (%x) { %0 = fn (%y) { %y }; (%0, %0) }", "fn (%x) { (fn (%y) { %y }, fn (%y) { %y }) }", False),
    ("fn (%x) { let %y = %x; %y }", "fn (%a) { let %b = %a; %b }", True),
    ("fn (%x) { let %y = %x; %y }", "fn (%a) { let %b = %a; %a }", False),
    (
        "fn (%x) { %0 = if (True) { %x } else { %x }; (%0, %0) }",
        "fn (%x) { (if (True) { %x } else { %x }, if (True) { %x } else { %x }) }",
        False,
    ),
    ("fn (%x) { %0 = ref(%x); (%0, %0) }", "fn (%x) { (ref(%x), ref(%x)) }", False),
    ("fn (%x) { %0 = (%x, 1f).0; (%0, %0) }", "fn (%x) { %1 = (%x, 1f); (%1.0, %1.0) }", True),
    ("fn (%x: Tensor[(1), float32]) { %x }", "fn (%x) { %x }", False),
    ("fn (%x: Tensor[(1), float32]) { %x }", "fn (%x: Tensor[(1), float16]) { %x }", False),
    ("fn (%x) -> Tensor[(1), float32] { %x }", "fn (%x) { %x }", False),
    ("fn [A](%x: A) -> A { %x }", "fn [B](%x: B) -> B { %x }", True),
    ("fn (%x, a=1) { %x }", "fn (%x) { %x }", False),
    ("fn (%x, a=1, b=2) { %x }", "fn (%x, b=2, a=1) { %x }", True),
    ("fn (%x) { nn.softmax(%x, axis=-1) }", "fn (%x) { nn.softmax(%x) }", True),
    ("fn (%x) { nn.softmax(%x, axis=0) }", "fn (%x) { nn.softmax(%x) }", False),
    ("fn (%x, %y) { add(%x, %y) }", "fn (%y, %x) { add(%x, %y) }", False),
    ("fn (%x, %y) { add(%x, %y) }", "fn (%y, %x) { add(%y, %x) }", True),
    ("fn (%x) { ref_read(ref(%x)) }", "fn (%y) { ref_read(ref(%y)) }", True),
    ("fn (%x) { match (%x) { (%a, %b) => { %a } } }", "fn (%x) { match (%x) { (%c, %d) => { %c } } }", True),
    ("fn (%x) { match (%x) { (%a, %b) => { %a } } }", "fn (%x) { match (%x) { (%c, _) => { %c } } }", False),
    ("fn (%x) { match (%x) { (%a, %b) => { %a } } }", "fn (%x) { match? (%x) { (%a, %b) => { %a } } }", False),
    ("fn (%x) { 1 }", "fn (%x) { 1i64 }", False),
    ("fn (%x) { () }", "fn (%x) { ((),).0 }", False),
    ("fn (%x) { %0 = (%x, %x); (%0, %0) }", "fn (%x) { ((%x, %x), (%x, %x)) }", False),
    ("fn (%x) { let %f = fn (%n) { %f(%n) }; %f }", "fn (%x) { let %g = fn (%n) { %g(%n) }; %g }", True),
    ("fn (%x) { %0 = (%x, 1f); %1 = %0.0; add(%1, %1) }", "fn (%x) { %0 = (%x, 1f); add(%0.0, %0.0) }", True),
]


@pytest.mark.parametrize(("left", "right", "equal"), AS_TVM)
def test_equality_is_tvms(left: str, right: str, equal: bool) -> None:
    assert same(parse(left).value, parse(right).value) is equal


def test_public_names() -> None:
    import relaylang.ir as ir

    one, other = parse("fn (%x) { %x }").value, parse("fn (%y) { %y }").value
    assert ir.structural_equal(one, other) and ir.structural_hash(one) == ir.structural_hash(other)
    ir.assert_structural_equal(one, other)


def test_differences_say_what_stands_there() -> None:
    x = Var("x")
    seven, eight = Function([x], Tuple([x, const(7)])), Function([x], Tuple([x, const(8)]))
    where = "at body.fields[1]: "
    assert structural_diff(seven, eight) == f"{where}the constant 7 of int32 on the left, the constant 8 of int32 on the right"
    assert structural_diff(seven, Function([x], x)) == "at body: a tuple of 2 fields on the left, node 1 again on the right"
    assert structural_diff(seven, IRModule()) == "a function of 1 parameter on the left, a module without types on the right"


def test_a_parameter_binds_named_extents() -> None:
    def of(n: SymbolicDim, m: SymbolicDim) -> Function:
        x, y = Var("x", TensorType((n, 2))), Var("y", TensorType((n, m)))
        return Function([x, y], Tuple([x, y]))

    n, m = SymbolicDim("n"), SymbolicDim("m")
    assert structural_equal(of(n, m), of(m, n)) and structural_hash(of(n, m)) == structural_hash(of(m, SymbolicDim("k")))
    assert not structural_equal(of(n, m), of(n, n))
    assert not structural_equal(of(n, m), of(SymbolicDim("n", "int64"), m))


def test_maps_by_parameters() -> None:
    def of(name: str, key: int) -> Function:
        params = [Var(name, TensorType((2,))), Var("y", TensorType((2,)))]
        return Function(params, Tuple([]), attrs={"values": {params[key]: const(1)}})

    assert same(of("x", 0), of("z", 0)) and not same(of("x", 0), of("x", 1))


def test_close_floats_of_attributes() -> None:
    one, other = [parse_expr(f"nn.lrn(meta[relay.Constant][0], alpha={a})") for a in ("1e-5f", "9.999999747378752e-06f")]
    assert structural_diff(one, other, close=True) is None and structural_diff(one, other) is not None
    assert structural_diff(1e-5, 1.1e-5, close=True) is not None
