"""Every gradient against central differences of its operator, over the operator's attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, TupleType, Type, Var, const
from relaylang.ops import OPS, get
from relaylang.ops.build import op_call
from relaylang.passes.gradient import first_order_gradient, higher_order_gradient
from relaylang.rules.gradient import RULES
from relaylang.transform import InferType
from tests.passes.gradient.gradient_cases import BEYOND, Case, cases

MODES: dict[str, Callable[[Function, IRModule], Function]] = {
    "first_order": first_order_gradient.gradient,
    "higher_order": higher_order_gradient.gradient,
}
STEP = 1e-6
NO_SLOPE = {"dyn.ones", "dyn.zeros", "logical_and", "logical_or"}
"""Rules that say None for all operands, of operators that take no floats or whose operands are shapes."""


def total(value: Any) -> float:
    """The sum, without what max_pool2d makes of padding alone: the least float."""
    if isinstance(value, tuple):
        return sum(map(total, value))
    return float(np.sum(np.where(np.abs(value) > 1e300, 0, value)))


def weighed(expr: Expr, ty: Type, value: Any, rng: np.random.Generator) -> Expr:
    """The result, each element times its own weight, so that each has its own part of the gradient."""
    if isinstance(ty, TupleType):
        return Tuple([weighed(TupleGetItem(expr, i), t, value[i], rng) for i, t in enumerate(ty.fields)])
    assert isinstance(ty, TensorType)
    if ty.dtype != "float64":
        return op_call("cast", [expr], dtype="float64")
    return op_call("multiply", [expr, const(rng.uniform(0.4, 0.9, value.shape), "float64")])


def typed(function: Function) -> IRModule:
    return InferType()(IRModule.from_expr(function))


def check_gradient(params: list[Var], body: Expr, given: list[Any], mode: str) -> None:
    """The slope along a random direction in each parameter, as the gradient and as two values have it."""
    rng = np.random.default_rng(3)
    plain = typed(Function(params, body))
    value = evaluate(plain, *given)
    result = plain["main"].checked_type.ret_type  # type: ignore[union-attr]
    mod = typed(Function(params, weighed(body, result, value, rng)))
    made = IRModule(dict(mod.functions))
    made["main"] = MODES[mode](made["main"], made)
    _, grads = evaluate(InferType()(made), *given)
    for number, found in enumerate(grads):
        assert found.shape == given[number].shape
        way = rng.uniform(-1, 1, found.shape)

        def at(step: float) -> float:
            return total(evaluate(mod, *[g + step * way if i == number else g for i, g in enumerate(given)]))  # noqa: B023

        expected = (at(STEP) - at(-STEP)) / (2 * STEP)
        np.testing.assert_allclose(np.sum(found * way), expected, rtol=2e-7, atol=2e-8)


def arguments(case: Case, params: list[Var]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.uniform(case.low, case.high, p.type_annotation.shape) for p in params]  # type: ignore[union-attr]


def run(case: Case, mode: str) -> None:
    params, call = case.build()
    check_gradient(params, call, arguments(case, params), mode)


CASES = cases()
FIRST = list({case.op: case for case in reversed(CASES)}.values())


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", FIRST, ids=repr)
def test_an_operator(case: Case) -> None:
    run(case, "first_order")


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", FIRST[::4], ids=repr)
def test_an_operator_in_higher_order(case: Case) -> None:
    run(case, "higher_order")


@pytest.mark.sweep
@pytest.mark.parametrize("mode", MODES)
def test_all_attributes(mode: str) -> None:
    for case in CASES:
        try:
            run(case, mode)
        except Exception as problem:
            raise AssertionError(f"{case!r}: {problem}") from problem


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", BEYOND, ids=repr)
def test_what_a_rule_does_not_cover_is_refused(case: Case, mode: str) -> None:
    with pytest.raises(RelayError) as wrong:
        run(case, mode)
    assert [d.code for d in wrong.value.diagnostics] == ["R0511"]


def opened(case: Case) -> tuple[list[Var], Expr]:
    """The call of parameters whose first extents are not known."""
    params, call = case.build()
    for param in params:
        ty = param.type_annotation
        assert isinstance(ty, TensorType)
        if ty.shape:
            param.type_annotation = TensorType((ANY, *ty.shape[1:]), ty.dtype)
    return params, call


def run_opened(case: Case, mode: str) -> bool:
    """Whether the gradient of unknown extents is known; it is right or refused."""
    closed, _ = case.build()
    params, call = opened(case)
    try:
        typed(Function(params, call))
    except RelayError:
        return False  # the operator itself wants to know the extents
    try:
        check_gradient(params, call, arguments(case, closed), mode)
    except RelayError as wrong:
        assert [d.code for d in wrong.diagnostics] == ["R0511"], case
        return False
    return True


@pytest.mark.parametrize("case", [c for c in FIRST if c.op in ("sum", "max", "add", "nn.bias_add", "split", "exp")], ids=repr)
def test_unknown_extents(case: Case) -> None:
    assert run_opened(case, "first_order")


@pytest.mark.sweep
@pytest.mark.parametrize("mode", MODES)
def test_all_attributes_of_unknown_extents(mode: str) -> None:
    assert sum(run_opened(case, mode) for case in CASES) > 400


def test_every_rule_and_attribute_has_a_case() -> None:
    seen = {case.op for case in CASES}
    assert set(RULES) - seen == NO_SLOPE
    varied: dict[str, set[str]] = {}
    for case in CASES + BEYOND:
        schema = get(case.op).schema
        for name, value in case.attrs.items():
            default = schema[name].default
            if schema[name].required or (list(value) if isinstance(value, list) else value) != default:
                varied.setdefault(case.op, set()).add(name)
    for op in OPS.values():
        if op.name in seen:
            assert set(op.schema) - varied.get(op.name, set()) <= FIXED.get(op.name, set()), op.name


FIXED = {
    **{key: {"select_last_index"} for key in ("argmax", "argmin")},  # their results are whole numbers
    "arange": {"start", "stop", "step"},  # copies of the operands
    "broadcast_to": {"dtype"},
    "collapse_sum_to": {"dtype"},
    **{key: {"out_dtype"} for key in ("nn.matmul", "nn.dense", "nn.batch_matmul", "nn.conv2d")},  # its own test
    "dyn.reshape": {"allowzero", "newshape"},
    "contrib_reverse_reshape": {"allowzero"},
}
"""Attributes that no case varies."""


def test_casts_to_whole_numbers_have_no_slope() -> None:
    x = Var("x", TensorType((3,), "float64"))
    whole = op_call("cast", [op_call("cast", [x], dtype="int32")], dtype="float64")
    for mode in MODES:
        check_gradient([x], op_call("multiply", [whole, x]), [np.array([1.5, 2.25, -3.75])], mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("nn.dense", ((2, 3), (4, 3))),
        ("nn.matmul", ((2, 3), (3, 4))),
        ("nn.batch_matmul", ((2, 2, 3), (1, 3, 4))),
        ("nn.conv2d", ((1, 2, 4, 4), (3, 2, 2, 2))),
    ],
)
def test_results_of_another_element_type(name: str, shapes: tuple[tuple[int, ...], ...], mode: str) -> None:
    """Gradients of float16 operands are float16, whatever the product's type."""
    params = [Var(f"p{i}", TensorType(s, "float16")) for i, s in enumerate(shapes)]
    given = [np.ones(s, "float16") for s in shapes]
    found = []
    for attrs in ({}, {"out_dtype": "float32"}):
        mod = typed(Function(params, op_call(name, list(params), **attrs)))
        made = IRModule(dict(mod.functions))
        made["main"] = MODES[mode](made["main"], made)
        found.append(evaluate(InferType()(made), *given)[1])
    for plain, mixed, value in zip(*found, given):
        assert mixed.dtype == value.dtype and mixed.shape == value.shape
        np.testing.assert_array_equal(plain, mixed)


def test_zero_to_the_power() -> None:
    x, y = (Var(n, TensorType((2,), "float64")) for n in "xy")
    made = InferType()(IRModule.from_expr(first_order_gradient.gradient(Function([x, y], op_call("power", [x, y])))))
    _, (dx, dy) = evaluate(made, np.array([0.0, 2.0]), np.array([2.0, 3.0]))
    np.testing.assert_array_equal(dx, [0.0, 12.0])
    np.testing.assert_allclose(dy, [0.0, 8 * np.log(2)], rtol=1e-15)


@pytest.mark.parametrize("mode", MODES)
def test_parameters_of_unknown_length(mode: str) -> None:
    """`take` by indices of unknown length, and numbers from a start by a step that are parameters."""
    data, picked = Var("data", TensorType((3, 4), "float64")), Var("picked", TensorType((ANY,), "int32"))
    for axis, times in ((0, [0, 2, 1]), (1, [1, 0, 2]), (None, [0, 1, 3])):
        body = op_call("take", [data, picked], axis=axis)
        mod = typed(Function([data, picked], body))
        made = IRModule(dict(mod.functions))
        made["main"] = MODES[mode](made["main"], made)
        index = np.repeat(np.arange(3), times).astype("int32")
        _, (found, _) = evaluate(InferType()(made), np.ones((3, 4)), index)
        expected = np.zeros((3, 4))
        whole = expected.reshape(-1) if axis is None else expected if axis == 0 else expected.T
        np.add.at(whole, index, 1)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", MODES)
def test_arange(mode: str) -> None:
    params = [Var(n, TensorType((), "float64")) for n in ("start", "stop", "step")]
    body = op_call("arange", list(params), start=params[0], stop=params[1], step=params[2], dtype="float64")
    given = [np.float64(2.5), np.float64(22.1), np.float64(1.5)]
    check_gradient(params, body, [np.asarray(g) for g in given], mode)


@pytest.mark.parametrize("mode", MODES)
def test_all_parts_of_a_result_count(mode: str) -> None:
    """TVM's higher-order gradient forgets one of two parts that share a value: 4 for 6 (its first-order one has 6)."""
    x = Var("x", TensorType((2,), "float64"))
    y = op_call("add", [x, x])
    for body, slope in (([op_call("add", [y, y]), y], 6), ([y, op_call("add", [y, y])], 6), ([y, y], 4)):
        mod = typed(Function([x], Tuple(body)))
        made = IRModule(dict(mod.functions))
        made["main"] = MODES[mode](made["main"], made)
        _, (found,) = evaluate(InferType()(made), np.ones(2))
        np.testing.assert_array_equal(found, [slope, slope])
