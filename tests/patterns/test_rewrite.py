"""Rewriting and partitioning with patterns, what callbacks may do wrong, explanations, and patterns as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Var, const, free_vars, post_order
from relaylang.ir.structural import structural_diff, structural_equal
from relaylang.patterns import (
    DFPattern,
    DFPatternCallback,
    callback_pass,
    dominates,
    explain_match,
    find_groups,
    function_pattern,
    has_attr,
    is_constant,
    is_if,
    is_let,
    is_op,
    is_var,
    parse_pattern,
    partition,
    pattern_text,
    rewrite,
    wildcard,
)
from relaylang.plugins.files import load_file
from relaylang.syntax import astext, parse
from relaylang.testing.generators.programs import Programs
from relaylang.transform import InferType, Sequential
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning
from tests.shared import FRAGMENTS, ROOT, needs_shared


def expr(text: str) -> Expr:
    found = parse(text).expr
    assert found is not None
    return found


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


class Rewrites(DFPatternCallback):
    def __init__(self, pattern: DFPattern, make: Callable[..., Any], **options: bool) -> None:
        super().__init__(**options)
        self.pattern = pattern
        self.make = make

    def callback(self, pre: Expr, post: Expr, node_map: Any) -> Any:
        return self.make(pre, post, node_map)


X = wildcard()
TWO_RELUS = is_op("nn.relu")(is_op("nn.relu")(X))
ONE_RELU = Rewrites(TWO_RELUS, lambda pre, post, at: Call(post.op, [at[X][0]]))
CHAIN = "fn (%x: Tensor[(2, 3), float32]) { nn.relu(nn.relu(nn.relu(nn.relu(%x)))) }"


def ops(node: Expr) -> list[str]:
    return [n.op.name for n in post_order(node) if isinstance(n, Call) and hasattr(n.op, "name")]


def test_rewriting_goes_on_until_nothing_changes() -> None:
    before = expr(CHAIN)
    assert ops(rewrite(ONE_RELU, before)) == ["nn.relu"] and len(ops(before)) == 4
    assert ops(ONE_RELU.rewrite(before)) == ["nn.relu"]
    once = Rewrites(TWO_RELUS, ONE_RELU.make, rewrite_once=True)
    assert len(ops(rewrite(once, before))) == 2
    assert rewrite(ONE_RELU, expr("fn (%x) { tanh(%x) }")) is not None


def test_several_callbacks_take_turns() -> None:
    to_tanh = Rewrites(is_op("nn.relu")(X), lambda pre, post, at: Call(relay.ops.get("tanh"), [at[X][0]]))
    both = rewrite([ONE_RELU, to_tanh], expr(CHAIN))
    assert ops(both) == ["tanh", "tanh"]


def test_the_node_map_has_rewritten_operands() -> None:
    seen: list[tuple[Any, Any]] = []

    def make(pre: Any, post: Any, at: Any) -> Any:
        seen.append((pre, at[X][0]))
        return Call(relay.ops.get("tanh"), [at[X][0]])

    made = rewrite(Rewrites(is_op("nn.relu")(X), make), expr("fn (%x) { nn.relu(nn.relu(%x)) }"))
    assert ops(made) == ["tanh", "tanh"]
    assert ops(seen[1][0]) == ["nn.relu", "nn.relu"] and ops(seen[1][1]) == ["tanh"]


def test_sharing_is_kept() -> None:
    made = rewrite(ONE_RELU, expr("fn (%x) { %0 = nn.relu(nn.relu(exp(%x))); add(%0, multiply(%0, %0)) }"))
    assert sorted(ops(made)) == ["add", "exp", "multiply", "nn.relu"]


def test_what_is_used_outside_is_not_taken() -> None:
    inside = "fn (%x) { %0 = nn.relu(%x); (nn.relu(%0), %0) }"
    assert structural_equal(rewrite(ONE_RELU, expr(inside)), expr(inside))


@pytest.mark.parametrize(
    "make, code, says",
    [
        (lambda pre, post, at: None, "R0521", "returned nothing (None)"),
        (lambda pre, post, at: 3, "R0521", "returned a int"),
        (lambda pre, post, at: at[wildcard()][0], "R0520", "is no part of the pattern"),
        (lambda pre, post, at: 1 // 0, "R0502", "ZeroDivisionError"),
        (lambda pre, post, at: Call(post.op, [Call(post.op, [post])]), "R0523", "does not end"),
    ],
)
def test_wrong_callbacks_are_told(make: Any, code: str, says: str) -> None:
    callback = Rewrites(TWO_RELUS, make)
    with pytest.raises(RelayError) as wrong:
        rewrite(callback, expr("fn (%x: Tensor[(2, 3), float32]) { nn.relu(nn.relu(%x)) }"))
    assert wrong.value.diagnostics[0].code == code and says in str(wrong.value) and "Rewrites" in str(wrong.value)
    assert code == "R0523" or wrong.value.diagnostics[0].span is not None


def test_a_rewrite_of_the_wrong_shape_is_told() -> None:
    callback = Rewrites(is_op("nn.relu")(X), lambda pre, post, at: const(np.zeros((5, 7), "float32")))
    mod = module("def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { add(nn.relu(%x), %x) }")
    before = astext(mod)
    with pytest.raises(RelayError) as wrong:
        Sequential([callback_pass(callback)])(mod)
    assert wrong.value.diagnostics[0].code == "R0522" and "Rewrites made a program" in str(wrong.value)
    mod = module("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    with pytest.raises(RelayError) as wrong:
        callback_pass(callback)(mod)
    assert "changed the type of @main" in str(wrong.value)
    assert "nn.relu" in astext(mod) and "add" in before


def test_a_callback_without_a_pattern_is_told() -> None:
    with pytest.raises(RelayError):
        rewrite(DFPatternCallback(), expr(CHAIN))


def test_types_are_there_where_a_callback_requires_them() -> None:
    seen: list[Any] = []

    def make(pre: Any, post: Any, at: Any) -> Any:
        seen.append(pre.checked_type)
        return post

    text = "fn (%x: Tensor[(2, 3), float32]) { nn.relu(%x) }"
    rewrite(Rewrites(is_op("nn.relu")(X), make), expr(text))
    rewrite(Rewrites(is_op("nn.relu")(X), make, require_type=True), expr(text))
    rewrite(Rewrites(is_op("nn.relu")(X).has_dtype("float32"), make), expr(text))
    assert seen[0] is None and seen[1] == seen[2] == TensorType((2, 3))


# ---- partitioning


def test_partitions_are_functions_with_tvms_attributes_and_names() -> None:
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), is_constant()))
    made = partition(pattern, expr("fn (%x) { tanh(nn.relu(add(exp(%x), 1f))) }"), {"Composite": "toy"})
    call = next(n for n in post_order(made) if isinstance(n, Call) and isinstance(n.op, Function))
    assert isinstance(call.op, Function)
    assert call.op.attrs == {"PartitionedFromPattern": "add_nn.relu_", "Composite": "toy"}
    assert [p.name_hint for p in call.op.params] == ["FunctionVar_0_0"] and ops(call.args[0]) == ["exp"]
    assert pattern.partition(expr("fn (%x) { tanh(%x) }")) is not None


def test_a_check_may_refuse() -> None:
    text = "fn (%x) { nn.relu(tanh(nn.relu(%x))) }"
    found = expr(text)
    root = found.body  # type: ignore[attr-defined]
    made = partition(is_op("nn.relu")(wildcard()), found, check=lambda node: node is not root)
    assert [isinstance(n.op, Function) for n in post_order(made) if isinstance(n, Call)].count(True) == 1


def test_inputs_are_parameters_in_the_patterns_order() -> None:
    a, b = is_var("a"), is_var("b")
    made = partition(is_op("add")(a, is_op("nn.relu")(b)), expr("fn (%a, %b) { add(nn.relu(%b), %a) }"))
    call = made.body  # type: ignore[attr-defined]
    assert [v.name_hint for v in call.args] == ["a", "b"]


def test_a_group_that_would_make_a_circle_is_not_taken() -> None:
    text = "fn (%x) { %0 = nn.relu(%x); add(tanh(exp(%0)), %0) }"
    groups = find_groups(is_op("tanh")(is_op("exp")(is_op("nn.relu")(wildcard()))), expr(text))
    assert groups == []


@pytest.mark.parametrize("seed", range(10))
def test_partitioned_programs_compute_the_same(seed: int) -> None:
    unary = is_op("nn.relu") | is_op("tanh") | is_op("exp") | is_op("negative")
    binary = is_op("add") | is_op("multiply") | is_op("subtract")
    pattern = unary(binary(wildcard(), wildcard())) | binary(wildcard(), unary(wildcard()))
    mod = Programs(seed).module(20)

    def run(given: IRModule) -> IRModule:
        return given.with_functions({gv: partition(pattern, f) for gv, f in given.functions.items()})  # type: ignore

    keeps_meaning(run, mod, seed)


# ---- dominators

ELEMWISE = has_attr({"TOpPattern": 0})
PATH = ELEMWISE(wildcard()) | has_attr({"TOpPattern": 1})(wildcard(), wildcard())
DIAMOND = dominates(is_op("nn.conv2d")(wildcard(), wildcard()), PATH, is_op("add")(wildcard(), wildcard()))
CONV = "%0 = nn.conv2d(%x, %w, kernel_size=[1, 1]);"


def test_a_diamond_is_dominated() -> None:
    good = expr(f"fn (%x, %w) {{ {CONV} %1 = nn.relu(%0); %2 = nn.relu(%1); add(%2, nn.leaky_relu(%1)) }}")
    assert DIAMOND.match(good.body)  # type: ignore[attr-defined]
    also = is_op("add")(wildcard(), wildcard()).dominates(is_op("nn.conv2d")(wildcard(), wildcard()), PATH)
    assert also.match(good.body)  # type: ignore[attr-defined]
    made = partition(DIAMOND, good)
    assert [v.name_hint for v in made.body.args] == ["x", "w"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        f"fn (%x, %w) {{ {CONV} add(nn.relu(%0), %x) }}",  # a way that does not come from the convolution
        f"fn (%x, %w) {{ {CONV} add(nn.softmax(%0), nn.relu(%0)) }}",  # an operator that is not on the path
    ],
)
def test_what_is_not_dominated_does_not_match(text: str) -> None:
    assert not DIAMOND.match(expr(text).body)  # type: ignore[attr-defined]


def test_a_way_past_the_child_is_no_domination() -> None:
    text = f"fn (%x, %w) {{ {CONV} %1 = nn.relu(%0); (add(%1, %0), exp(%1)) }}"
    assert find_groups(DIAMOND, expr(text)) == []


@pytest.mark.sweep
def test_a_long_path_takes_no_recursion() -> None:
    node: Expr = Call(relay.ops.get("nn.conv2d"), [Var("x"), Var("w")])
    for _ in range(20_000):
        node = Call(relay.ops.get("nn.relu"), [node])
    assert DIAMOND.match(Call(relay.ops.get("add"), [node, node]))


# ---- the other kinds


def test_branches_lets_and_functions_match() -> None:
    found = expr("fn (%c: bool, %x, %y) { if (%c) { %x } else { nn.relu(%y) } }")
    assert is_if(is_var("c"), is_var("x"), is_op("nn.relu")(wildcard())).match(found.body)  # type: ignore
    assert not is_if(is_var("c"), is_var("y"), wildcard()).match(found.body)  # type: ignore[attr-defined]
    assert function_pattern(None, is_if(wildcard(), wildcard(), wildcard())).match(found)
    assert not function_pattern([wildcard()], wildcard()).match(found)
    let = expr("let %a = 1f; nn.relu(%a)")
    assert is_let(is_var("a"), is_constant(), is_op("nn.relu")(is_var("a"))).match(let)


def test_quotients_match_in_either_association() -> None:
    x, y, z = is_var("x"), is_var("y"), is_var("z")
    assert ((x * y) / z).match(expr("fn (%x, %y, %z) { multiply(%x, divide(%y, %z)) }").body)  # type: ignore
    assert (x * (y / z)).match(expr("fn (%x, %y, %z) { divide(multiply(%y, %x), %z) }").body)  # type: ignore
    assert not ((x * y) / z).match(expr("fn (%x, %y, %z) { multiply(%x, add(%y, %z)) }").body)  # type: ignore
    assert (x + y - z).match(expr("fn (%x, %y, %z) { subtract(add(%x, %y), %z) }").body)  # type: ignore


def test_a_redirected_wildcard_matches_chains() -> None:
    link = wildcard()
    link.redirect_to(is_op("nn.relu")(link) | is_var("x"))  # type: ignore[attr-defined]
    assert not is_op("tanh")(link).match(expr("fn (%y) { tanh(%y) }").body)  # type: ignore[attr-defined]
    endless = wildcard()
    endless.redirect_to(endless)  # type: ignore[attr-defined]
    with pytest.raises(RelayError):
        endless.match(const(1))


# ---- explanations


def test_an_explanation_tells_the_node_that_failed() -> None:
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), is_constant()), wildcard()))
    text = "fn (%x, %w, %b) {\n  %0 = nn.conv2d(%x, %w, kernel_size=[1, 1]);\n  nn.relu(nn.bias_add(%0, %b))\n}"
    found = explain_match(pattern, expr(text).body)  # type: ignore[attr-defined]
    assert not found and isinstance(found.failed_at, Var) and found.failed_at.name_hint == "w"
    assert str(found) == "a constant is wanted as weight of nn.conv2d, and it is the variable %w"
    said = found.diagnostic()
    assert said is not None and said.span is not None and "`const` is wanted here" in str(said)
    assert explain_match(wildcard(), const(1)) and str(explain_match(wildcard(), const(1))) == "it matches"


@pytest.mark.parametrize(
    "pattern, text, reason",
    [
        ("nn.relu(_)", "tanh(%x)", "a call of nn.relu is wanted, and it is a call of tanh"),
        ("clip(_, a_min=0f)", "clip(%x, a_min=1f, a_max=2f)", "a_min=0.0 is wanted, and a call of clip has a_min=1.0"),
        ("_ @ axis=1", "tanh(%x)", "a call of tanh has no attribute axis"),
        ("(_, _)", "(%x,)", "a tuple of 2 is wanted, and it has 1"),
        ("subtract($a, $a)", "subtract(%x, %y)", "one node is wanted in both places of `_`: it was the variable %x"),
        ("(exp | tanh)(_, _)", "tanh(%x)", "a call with 2 arguments is wanted"),
        ("(exp | log)(_)", "tanh(%x)", "exp or log is wanted"),
        ("fn (_) { _ }", "fn (%a: int32, %b: int32) { %a }", "a function of 1 parameter is wanted"),
        ("_ : int8", "tanh(%x)", "int8 is wanted, and a call of tanh is float32"),
        ("nn.relu(_) | exp(_)", "tanh(%x)", "a call of nn.relu or exp is wanted, and it is a call of tanh"),
    ],
)
def test_reasons(pattern: str, text: str, reason: str) -> None:
    node = expr(f"fn (%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {{ {text} }}")
    said = str(explain_match(parse_pattern(pattern), node.body))  # type: ignore[attr-defined]
    assert reason.split(",")[0] in said


# ---- text


@pytest.mark.parametrize(
    "text, same",
    [
        ("qnn.conv2d(_, const, ...)", None),
        ("nn.relu?(nn.conv2d(_, var))", None),
        ("nn.conv2d(_, _, groups=1, strides=[2, 2])", None),
        ("(_, tuple).0", None),
        ("(add(_, 1f) | %x)", None),
        ("_ : int8", "_: int8"),
        ("_ : Tensor[(1, _, 3), _]", "_: Tensor[(1, _, 3), _]"),
        ("_ : Tensor[(1, ?), float32]", "_: Tensor[(1, ?), float32]"),
        ("fn (_) { nn.relu(_) }", None),
        ("if (_) { _ } else { _ }", None),
        ("let var = _; _", None),
        ("dominates(nn.conv2d(...), _, add(_, _))", None),
        ("op(_)", None),
        ('_ @ Composite="a"', None),
    ],
)
def test_patterns_are_read_and_written(text: str, same: str | None) -> None:
    found = parse_pattern(text)
    assert pattern_text(found) == str(found) == (same or text)
    assert str(parse_pattern(str(found))) == str(found)


@pytest.mark.parametrize(
    "text", ["", "nn.rel(_)", "add(_", "add(_, _, _)", "nn.conv2d(_, _, group=1)", "1 2", "$a=_ $a", "?", '"', "(" * 500]
)
def test_wrong_patterns_are_told(text: str) -> None:
    with pytest.raises(RelayError) as wrong:
        parse_pattern(text)
    assert wrong.value.diagnostics[0].code == "R0525"


def test_names_in_text_stand_for_one_node() -> None:
    assert parse_pattern("add($a=nn.relu(_), $a)").match(expr("fn (%x) { %0 = nn.relu(%x); add(%0, %0) }").body)  # type: ignore


# ---- the two passes of the tutorial


@needs_shared
def test_pytorchs_quantized_convolution_becomes_tflites() -> None:
    found = load_file(str(ROOT / "examples" / "qnn_passes.py"))
    passes = [callback_pass(found[n]()) for n in ("QnnQuantizeConstFold", "RemoveClipAfterRequantize")]
    torch = expr((FRAGMENTS / "qnn_conv_from_pytorch.relay").read_text())
    rng = np.random.default_rng(0)
    values = {
        "features.0.0_weight": rng.uniform(-0.4, 0.4, (32, 3, 3, 3)).astype("float32"),
        "features.0.0_bias": rng.uniform(-0.5, 0.5, 32).astype("float32"),
    }
    free = {v.name_hint: v for v in free_vars(torch)}
    image = Var("input", TensorType((1, 3, 224, 224)))
    bound = relay.ir.substitute(torch, {free[n]: Constant(v) for n, v in values.items()} | {free["input"]: image})
    mod = InferType()(IRModule.from_expr(Function([image], bound)))
    new = Sequential(passes)(mod)
    constants = [n for n in post_order(new["main"]) if isinstance(n, Constant) and n.data.ndim]
    assert [(c.dtype, c.data.shape) for c in constants] == [("int8", (32, 3, 3, 3)), ("int32", (32,))]
    tflite = expr((FRAGMENTS / "qnn_conv_from_tflite.relay").read_text())
    theirs = {v.name_hint: v for v in free_vars(tflite)}
    filled = relay.ir.rewrite(tflite, lambda old, new: constants[new.index] if isinstance(new, relay.ir.MetaRef) else new)
    filled = relay.ir.substitute(filled, {theirs["input"]: image})
    assert structural_diff(new["main"].body, filled) is None
    data = rng.uniform(0, 1, (1, 3, 224, 224)).astype("float32")
    np.testing.assert_array_equal(evaluate(mod, data), evaluate(new, data))


# ---- size


@pytest.mark.sweep
def test_rewriting_and_partitioning_are_linear() -> None:
    def prepare(n: int) -> Callable[[], None]:
        x = Var("x", TensorType((2, 3)))
        node: Expr = x
        for i in range(n):
            node = Call(relay.ops.get("nn.relu" if i % 3 else "tanh"), [node])
        function = Function([x], node)

        def run() -> None:
            assert len(ops(rewrite(ONE_RELU, function))) == n - n // 3
            partition(is_op("tanh")(is_op("nn.relu")(wildcard())), function)

        return run

    assert_linear(prepare, 600)
    prepare(10_000)()


def test_a_function_of_any_parameters_stays_whole() -> None:
    """The body belongs to the match; values that the function takes from outside are inputs."""
    x, y, z, own, other = (relay.var(n, shape=(2,), dtype="float32") for n in "xyzab")
    pattern = relay.dataflow_pattern.FunctionPattern(None, wildcard() + wildcard())(None) + wildcard()
    for params, body, args, inputs in (
        ([own], relay.add(own, own), [x], 2),
        ([own, other], relay.add(own, other), [x, z], 3),
        ([own, other], relay.add(relay.add(own, other), own), [x, z], 3),
        ([own], relay.add(own, x), [x], 2),
    ):
        call = relay.add(relay.Call(relay.Function(params, body), args), y)
        made = pattern.partition(call)
        assert len(made.args) == len(made.op.params) == inputs
        whole = relay.IRModule.from_expr(relay.Function([x, y, z], made))
        plain = relay.IRModule.from_expr(relay.Function([x, y, z], call))
        values = np.float32([1, 2]), np.float32([3, 5]), np.float32([7, 9])
        results = [relay.evaluate(relay.transform.InferType()(m), *values) for m in (whole, plain)]
        np.testing.assert_array_equal(*results)


def test_attributes_of_calls_of_no_operator() -> None:
    f, x = relay.var("f"), relay.var("x")
    call = relay.Call(f, [x], attrs={"mode": "fast", "axes": [0, 1]})
    for wanted, fits in (({"mode": "fast"}, True), ({"axes": (0, 1)}, True), ({}, True), ({"mode": "slow"}, False), ({"k": 1}, False)):
        assert wildcard()(wildcard()).has_attr(wanted).match(call) is fits
