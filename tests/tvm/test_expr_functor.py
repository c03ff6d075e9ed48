"""Visitors and mutators as classes, the scope builder, and values for parameters, under TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from relaylang.ir import Call, Constant, Expr, Function, IRModule, Let, TensorType, Var, assert_structural_equal
from relaylang.transform import PassContext

PROGRAM = """
type Pair[A] { Two(A, A), None_ }
def @main(%c: bool, %x: float32) {
  let %t = (%x, 2f);
  let %r = ref(%t.0);
  let %u = ref_write(%r, add(%t.1, 3f));
  let %f = fn (%p: Pair[float32]) { match (%p) { Two(%a, %b) => add(%a, %b), None_ => ref_read(%r) } };
  if (%c) { %f(Two(%x, 1f)) } else { meta[relay.Constant][0] }
}
"""


def main_of(text: str) -> Function:
    func = relay.syntax.parse(text).module["main"]
    assert isinstance(func, Function)
    return func


def test_a_visitor_meets_every_node_once_and_a_mutator_that_changes_nothing_returns_its_argument() -> None:
    met: list[Expr] = []

    class All(ExprVisitor):
        def visit(self, expr: Expr) -> None:
            if expr not in self.memo_map:
                met.append(expr)
            super().visit(expr)

    func = main_of(PROGRAM)
    All().visit(func)
    walked = list(relay.ir.post_order(func))
    assert len(met) == len(set(met)) and set(walked) <= set(met)
    assert ExprMutator().visit(func) is func


def test_a_mutator_rebuilds_what_stands_above_a_change_and_keeps_sharing() -> None:
    class Double(ExprMutator):
        def visit_constant(self, const: Constant) -> Expr:
            return Constant(np.multiply(const.data, 2, dtype=const.data.dtype))

        def visit_call(self, call: Call) -> Expr:
            return super().visit_call(call)

    changed = Double().visit(main_of(PROGRAM))
    wanted = PROGRAM.replace("2f", "4f").replace("3f", "6f").replace("1f", "2f")
    assert relay.astext(changed) == relay.astext(main_of(wanted))

    x = relay.var("x", shape=(2,))
    shared = relay.add(x, relay.const(np.ones(2, "float32")))
    tuple_ = Double().visit(relay.Tuple([shared, shared]))
    assert tuple_.fields[0] is tuple_.fields[1] is not shared


def test_a_mutator_may_give_new_variables_to_lets_and_functions() -> None:
    class Rename(ExprMutator):
        def visit_var(self, var: Var) -> Var:
            return Var(var.name_hint + "2", var.type_annotation)

    func = main_of("def @main(%x: float32) { let %y = add(%x, 1f); multiply(%y, %x) }")
    new = Rename().visit(func)
    assert [p.name_hint for p in new.params] == ["x2"] and new.body.variable.name_hint == "y2"
    assert_structural_equal(new, func)
    assert relay.analysis.free_vars(new) == []


def test_a_node_without_a_method_is_named() -> None:
    class Count(ExprFunctor):
        def visit_call(self, call: Call) -> int:
            return sum(self.visit(a) for a in call.args)

    x = relay.var("x", shape=())
    with pytest.raises(TypeError, match="Count met a Var and has no visit_var"):
        Count().visit(relay.add(x, x))


def chain(length: int) -> Expr:
    expr: Expr = relay.var("x", shape=(2,))
    for _ in range(length):
        expr = relay.negative(expr)
    return expr


@pytest.mark.sweep
def test_programs_of_any_depth_are_visited_in_the_contexts_of_the_caller() -> None:
    levels: set[int] = set()

    class Sines(ExprMutator):
        def visit_call(self, call: Call) -> Expr:
            levels.add(PassContext.current().opt_level)
            args = [self.visit(a) for a in call.args]
            return relay.sin(*args)

    with PassContext(opt_level=1):
        changed = Sines().visit(chain(30_000))
    assert levels == {1}
    assert {n.op.name for n in relay.ir.post_order(changed) if isinstance(n, Call)} == {"sin"}

    body: Expr = relay.var("x0", shape=())
    for i in range(5000):
        body = Let(Var(f"x{i}", TensorType(())), relay.const(1.0), body)
    assert ExprMutator().visit(body) is body


def test_what_a_deep_visit_raises_comes_to_the_caller() -> None:
    class Refuse(ExprVisitor):
        def visit_var(self, var: Var) -> None:
            raise LookupError(var.name_hint)

    with pytest.raises(LookupError, match="x"):
        Refuse().visit(chain(500))


def test_scopes_are_built_from_top_to_bottom() -> None:
    sb = relay.ScopeBuilder()
    c, x = relay.var("c", "bool"), relay.var("x", shape=())
    y = sb.let("y", relay.add(x, x))
    z = sb.let(("z", TensorType(())), relay.add(y, x))
    with sb.if_scope(c):
        sb.ret(sb.let(relay.var("w"), relay.negative(z)))
    with sb.else_scope():
        sb.ret(y)
    wanted = main_of(
        "def @main(%c: bool, %x: float32) { let %y = add(%x, %x); let %z: float32 = add(%y, %x); "
        "if (%c) { let %w = negative(%z); %w } else { %y } }"
    )
    assert_structural_equal(Function([c, x], sb.get()), wanted)


def test_scopes_in_the_wrong_order_are_refused() -> None:
    sb = relay.ScopeBuilder()
    with pytest.raises(RuntimeError, match="ret was not called"):
        sb.get()
    with pytest.raises(RuntimeError, match="follows an if_scope"), sb.else_scope():
        pass
    with sb.if_scope(relay.const(True)):
        sb.ret(relay.const(1))
        with pytest.raises(RuntimeError, match="still open"):
            sb.get()
    with pytest.raises(RuntimeError, match="no else_scope"):
        sb.get()
    with pytest.raises(RuntimeError, match="has its value already"):
        sb.ret(relay.const(1))


def test_parameters_get_values_by_name_and_variables_expressions() -> None:
    func = main_of("def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) { add(%x, %w) }")
    bound = relay.build_module.bind_params_by_name(func, {"w": np.ones(2, "float32"), "other": np.ones(1)})
    assert [p.name_hint for p in bound.params] == ["x"]
    result = relay.create_executor("debug", IRModule.from_expr(bound)).evaluate()(np.ones(2, "float32"))
    assert result.tolist() == [2, 2]

    y = relay.var("y", shape=(2,))
    again = relay.bind(func, {func.params[1]: relay.negative(y)})
    assert [p.name_hint for p in again.params] == ["x", "y"]
    assert relay.bind(func, {}) is func
    assert isinstance(relay.bind(func.body, {func.params[0]: y}), Call)

    twice = Function([Var("w"), Var("w")], y)
    with pytest.raises(relay.RelayError, match="2 parameters are called %w"):
        relay.build_module.bind_params_by_name(twice, {"w": np.ones(2)})


def test_modules_have_their_parts_under_tvms_names() -> None:
    import relaylang.op
    import relaylang.qnn

    assert relaylang.op.nn.conv2d is relay.nn.conv2d and relaylang.qnn.transform.Legalize().info.name == "Legalize"
    assert relay.expr.Call is relay.Call and relay.ty.TensorType is TensorType and relay.adt.Match is relay.Match
