"""The higher-order gradient against differences of the function itself, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, IRModule, TensorType, Var, post_order
from relaylang.ops import get
from relaylang.ops.build import op_call
from relaylang.passes.analysis import well_formed_problems
from relaylang.transform import InferType, gradient
from tests.growth import assert_linear

T = "Tensor[(2, 3), float64]"
PROGRAMS = {
    "operators": f"def @main(%x: {T}, %y: {T}) {{ multiply(exp(%x), add(%x, tanh(%y))) }}",
    "broadcast": f"def @main(%x: {T}, %y: Tensor[(3), float64]) {{ divide(%x, %y) }}",
    "lets": f"def @main(%x: {T}) {{ let %a = multiply(%x, %x); let %b = add(%a, %x); multiply(%a, %b) }}",
    "branches": f"""def @main(%x: {T}, %y: {T}) {{
        let %s = sum(%x);
        let %a = if (less(%s, sum(%y))) {{ exp(%x) }} else {{ multiply(%x, %y) }};
        let %b = if (less(%s, 100f64)) {{ multiply(%a, %y) }} else {{ %a }};
        add(%a, %b)
    }}""",
    "references": f"""def @main(%x: {T}, %y: {T}) {{
        let %r = ref(%x);
        ref_write(%r, multiply(ref_read(%r), %y));
        let %old = ref_read(%r);
        ref_write(%r, exp(ref_read(%r)));
        add(%old, multiply(ref_read(%r), %x))
    }}""",
    "closures": f"""def @main(%x: {T}, %y: {T}) {{
        let %scaled = fn (%a: {T}) {{ multiply(%a, %y) }};
        let %twice = fn (%f: fn ({T}) -> {T}, %a: {T}) {{ %f(%f(%a)) }};
        %twice(%scaled, %twice(fn (%b: {T}) {{ tanh(%b) }}, %x))
    }}""",
    "recursion": f"""
        def @power(%x: {T}, %n: int32) -> {T} {{
            if (less(%n, 1)) {{ ones_like(%x) }} else {{ multiply(%x, @power(%x, subtract(%n, 1))) }}
        }}
        def @main(%x: {T}) {{
            let %loop = fn (%i: int32, %a: {T}) -> {T} {{
                if (less(%i, 1)) {{ %a }} else {{ %loop(subtract(%i, 1), multiply(%a, exp(%x))) }}
            }};
            add(@power(%x, 4), %loop(3, %x))
        }}""",
    "data": f"""import "prelude.rly"
        def @main(%x: {T}, %y: {T}) {{
            let %list = Cons(%x, Cons(multiply(%x, %y), Nil));
            let %all = @map(fn (%a: {T}) {{ exp(%a) }}, %list);
            match? (%all) {{ Cons(%a, Cons(%b, Nil)) => multiply(%a, %b) }}
        }}""",
    "tuples": f"""def @main(%p: ({T}, {T})) {{
        let %joined = concatenate(%p, axis=1);
        let %parts = split(%joined, indices_or_sections=3, axis=1);
        (multiply(%parts.0, %parts.2), %p.0, %p.0)
    }}""",
    "unused": f"def @main(%x: {T}, %y: {T}) {{ %x }}",
    "whole numbers": f"""def @main(%x: {T}) {{
        let %i = add(argmax(%x, axis=[1]), 1);
        multiply(take(%x, %i, axis=1, mode="clip"), sum(cast(%i, dtype="float64")))
    }}""",
}


def total(value: Any) -> float:
    return sum(map(total, value)) if isinstance(value, tuple) else float(np.sum(value))


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [value]


def differentiated(mod: IRModule, mode: str = "higher_order") -> IRModule:
    made = IRModule(mod.functions, mod.type_definitions)
    func = gradient(mod["main"], made, mode=mode)
    made = IRModule({**made.functions, made.get_global_var("main"): func}, made.type_definitions)
    assert well_formed_problems(made) == []
    return InferType()(made)


def given_to(func: Function) -> list[Any]:
    rng = np.random.default_rng(0)

    def value(ty: Any) -> Any:
        return rng.uniform(0.3, 0.9, ty.shape) if isinstance(ty, TensorType) else tuple([value(t) for t in ty.fields])

    return [value(p.checked_type) for p in func.params]


def changed(value: Any, at: int, step: np.ndarray) -> Any:
    """A value with a step added to its leaf of this number."""
    count = 0

    def copy(part: Any) -> Any:
        nonlocal count
        if isinstance(part, tuple):
            return tuple([copy(p) for p in part])
        count += 1
        return part + step if count - 1 == at else part

    return copy(value)


def against_differences(mod: IRModule, new: IRModule) -> None:
    given = given_to(mod["main"])
    result, grads = evaluate(new, *given)
    assert total(result) == total(evaluate(mod, *given))
    flat = leaves(tuple(given))
    for number, found in enumerate(leaves(grads)):
        expected = np.zeros(flat[number].shape)
        for at in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[at] = 1e-5
            up = total(evaluate(mod, *changed(tuple(given), number, step)))
            down = total(evaluate(mod, *changed(tuple(given), number, -step)))
            expected[at] = (up - down) / 2e-5
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    mod = InferType()(relay.parse(PROGRAMS[name]))
    against_differences(mod, differentiated(mod))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["operators", "lets", "branches", "closures"])
def test_gradients_of_gradients(name: str) -> None:
    """The function that is differentiated again gives the first gradients alone."""
    mod = InferType()(relay.parse(PROGRAMS[name]))
    first = differentiated(mod)
    against_differences(first, differentiated(first))


def test_the_modes_agree() -> None:
    mod = InferType()(relay.parse(PROGRAMS["operators"]))
    given = given_to(mod["main"])
    _, one = evaluate(differentiated(mod, "first_order"), *given)
    _, other = evaluate(differentiated(mod), *given)
    for a, b in zip(one, other):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize(
    "text",
    [
        f"def @main(%x: {T}) {{ sort(%x) }}",
        f"def @main(%f: fn ({T}) -> {T}, %x: {T}) {{ %f(%x) }}",
        f"def @main(%x: {T}) {{ fn () {{ %x }} }}",
        f"type Box {{ B({T}) }} def @main(%x: {T}) {{ match (B(%x)) {{ B(%y) => %y }} }}",
    ],
)
def test_what_has_no_gradient_is_told(text: str) -> None:
    mod = InferType()(relay.parse(text))
    with pytest.raises(RelayError) as wrong:
        gradient(mod["main"], mod)
    assert wrong.value.diagnostics[0].code == "R0511"


@pytest.mark.sweep
def test_work_is_linear() -> None:
    def prepare(size: int):  # type: ignore[no-untyped-def]
        x = Var("x", TensorType((2,), "float64"))
        body: relay.ir.Expr = x
        for _ in range(size):
            body = op_call("multiply", [body, op_call("tanh", [body])])
        mod = InferType()(IRModule.from_expr(Function([x], body)))
        return lambda: gradient(mod["main"], mod)

    assert_linear(prepare)


def test_a_tensors_own_gradient_is_written_and_parts_of_tuples_add_theirs() -> None:
    """A value that is two parts of a tuple counts twice, and in TVM once."""
    alone = differentiated(InferType()(relay.parse("def @main(%x: float32) { exp(%x) }")))
    assert sum(isinstance(n, Call) and n.op is get("add") for n in post_order(alone["main"])) == 1  # to the parameter's
    pair = differentiated(InferType()(relay.parse("def @main(%x: float32) { %0 = add(%x, %x); (add(%0, %0), %0) }")))
    assert evaluate(pair, np.float32(3))[1] == (6,)
