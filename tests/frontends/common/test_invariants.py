"""What the turns of a loop do not change is computed once, before the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends.target import Target
from relaylang.backends.vm.build import make_program
from relaylang.frontends.common import Builder, Listing, Report
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.recurrent import UNROLLED, recurrence
from relaylang.frontends.options import Options
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Expr, Function, IRModule, Let, TensorType, post_order
from relaylang.syntax import astext
from tests.growth import assert_linear

TURNS = UNROLLED + 3


@pytest.fixture
def b() -> Builder:
    return new_builder()


def new_builder() -> Builder:
    return Builder(Listing("net"), Report("net"), Options())


def tensor(*shape: Any) -> TensorType:
    return TensorType(shape, "float32")


def counted(mod: IRModule, *inputs: Any) -> tuple[Any, Counter[str]]:
    """The value of a program, and how often it evaluated each operator."""
    calls: Counter[str] = Counter()

    def count(binding: Any, value: Any, seconds: float) -> None:
        calls[binding.value.op.name] += 1

    return evaluate(mod, *inputs, observer=count), calls


def loop(b: Builder, turn: Callable[[Expr], Expr], first: Expr, turns: int = 4) -> Expr:
    """The last state of a loop."""
    start = b.const(0, "int32")
    return while_loop(b, lambda v: b.op("less", v[0], turns), lambda v: [b.op("add", v[0], 1), turn(v[1])], [start, first])[1]


def values(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype="float32").reshape(shape)


def layers(b: Builder, x: Expr, weights: list[tuple[np.ndarray, np.ndarray]]) -> Expr:
    """Stacked layers: h = tanh(x w + h r)."""
    for w, r in weights:
        product = b.op("nn.dense", x, b.const(w), units=len(w))
        first = b.const(np.zeros((1, len(r)), "float32"))

        def step(row: Expr, states: list[Expr], r: np.ndarray = r) -> list[Expr]:
            return [b.op("tanh", b.op("add", row, b.op("nn.dense", states[0], b.const(r), units=len(r))))]

        x, _ = recurrence(b, product, [first], step)
    return x


@pytest.mark.parametrize("count", [1, 3])
def test_each_layer_of_a_stack_computes_its_inputs_product_once(b: Builder, count: int) -> None:
    rng = np.random.default_rng(0)
    weights = [tuple(0.4 * rng.standard_normal((2, 4, 4), "float32")) for _ in range(count)]
    x = b.variable("x", tensor(TURNS, 1, 4))
    mod = finish(b, [x], [layers(b, x, weights)]).module  # type: ignore[arg-type]
    data = values(TURNS, 1, 4)
    found, calls = counted(mod, data)
    assert calls["nn.dense"] == count * (1 + TURNS) and calls["tanh"] == count * TURNS
    want = data
    for w, r in weights:
        state, rows = np.zeros((1, 4), "float32"), []
        for row in want @ w.T:
            state = np.tanh(row + state @ r.T)
            rows.append(state)
        want = np.stack(rows)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    compiled = make_program(mod, Target("c", {"num-threads": 1}), ["main"]).run(data)
    np.testing.assert_allclose(compiled, want, rtol=1e-5, atol=1e-6)


def test_a_loop_inside_a_loop_leaves_its_invariants_before_both(b: Builder) -> None:
    x = b.variable("x", tensor(2, 2))
    fixed = b.op("exp", x)

    def outer(state: Expr) -> Expr:
        scaled = b.op("tanh", state)
        return loop(b, lambda inner: b.op("add", b.op("multiply", inner, scaled), fixed), state)

    mod = finish(b, [x], [loop(b, outer, x)]).module
    found, calls = counted(mod, values(2, 2))
    assert calls["exp"] == 1 and calls["tanh"] == 4 and calls["multiply"] == 16
    want = values(2, 2)
    for _ in range(4):
        scaled = np.tanh(want)
        for _ in range(4):
            want = want * scaled + np.exp(values(2, 2))
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_a_later_loop_does_not_repeat_an_earlier_one(b: Builder) -> None:
    x = b.variable("x", tensor(2, 2))
    first = loop(b, lambda state: b.op("sin", state), x)
    mod = finish(b, [x], [loop(b, lambda state: b.op("add", b.op("cos", state), first), x)]).module
    assert counted(mod, values(2, 2))[1]["sin"] == 4


def test_what_one_branch_uses_stays_in_it(b: Builder) -> None:
    x = b.variable("x", tensor(2, 2))
    root = b.op("sqrt", x)

    def turn(state: Expr) -> Expr:
        return b.if_(b.op("less", b.op("sum", state), 0.0), b.op("add", state, root), b.op("add", state, 1.0))

    mod = finish(b, [x], [loop(b, turn, x)]).module
    assert counted(mod, np.ones((2, 2), "float32"))[1]["sqrt"] == 0


def test_weights_and_extents_stay_where_the_loop_reads_them() -> None:
    b = Builder(Listing("net"), Report("net"), Options(freeze=False))
    x, w = b.variable("x", tensor(ANY, 2)), b.weight("w", values(2, 2))
    rows = b.slice(b.shape_of(x), [0], [1], [0])

    def turn(state: Expr) -> Expr:
        product = b.op("nn.dense", state, b.op("transpose", w), units=2)
        return b.op("dyn.reshape", product, b.concat([rows, b.const(np.array([2]))], 0))

    assert not [node for node in post_order(loop(b, turn, x)) if isinstance(node, Let) and not isinstance(node.value, Function)]


def test_the_text_of_a_program_has_the_invariant_before_the_loop(b: Builder) -> None:
    x = b.variable("x", tensor(2, 2))
    fixed = b.op("exp", x)
    text = astext(finish(b, [x], [loop(b, lambda state: b.op("add", state, fixed), x)]).module, show_types=False)
    assert text.index("let %invariant: Tensor[(2, 2), float32] = exp(%x);") < text.index("let %while_loop")
    assert "add(%v1, %invariant)" in text


def test_many_loops_behind_each_other_are_searched_in_linear_time() -> None:
    def prepare(count: int) -> Callable[[], object]:
        def run() -> None:
            b = new_builder()
            x = b.variable("x", tensor(2, 2))
            for _ in range(count):
                before = x
                x = loop(b, lambda state, before=before: b.op("add", state, b.op("exp", before)), x)  # type: ignore[misc]

        return run

    assert_linear(prepare, 40)
