"""The helpers of `tvm.relay.testing`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, Function, IRModule, TensorType, post_order
from relaylang.ops.record import Op
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.legalize import Legalize
from relaylang.tvm.arrays import Array
from relaylang.tvm.executor import create_executor
from relaylang.tvm.expression_passes import gradient
from relaylang.tvm.op.build import operand
from relaylang.tvm.prelude import Prelude
from relaylang.tvm.relay.testing.init import create_workload
from relaylang.tvm.relay.testing.nat import count, make_nat_expr, make_nat_value
from relaylang.tvm.testing import __getattr__ as helper_of_tests


def run_opt_pass(expr: Expr, opt_pass: Pass, import_prelude: bool = False) -> Expr:
    """An expression after a pass over a module with it as @main."""
    if not isinstance(opt_pass, Pass):
        raise AssertionError(f"{opt_pass!r:.60} is no pass")
    mod = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(mod)
    transformed = opt_pass(InferType()(mod))["main"]
    return transformed if isinstance(expr, Function) else transformed.body


def run_infer_type(expr: Expr) -> Expr:
    """An expression with types."""
    return run_opt_pass(expr, InferType())


def run_as_python(expr: Expr, mod: IRModule | None = None, target: Any = "llvm") -> Any:
    """The value of an expression, whose functions and types are those of a module. TVM writes a Python program for it."""
    return create_executor("debug", mod, target=target).evaluate(operand(expr))


def rand(dtype: str, *shape: int) -> np.ndarray:
    """Random numbers between 0 and 1."""
    return np.random.rand(*shape).astype(dtype).view(Array)


def _np_randn_from_type(t: TensorType, scale: float = 1, mean: float = 0) -> np.ndarray:
    """Random numbers of a normal distribution, as a tensor of a type."""
    return np.asarray(mean + scale * np.random.randn(*[int(d) for d in t.concrete_shape])).astype(t.dtype)


def count_ops(expr: Expr) -> Counter[str]:
    """How many calls of each operator there are."""
    return Counter([n.op.name for n in post_order(expr) if isinstance(n, Call) and isinstance(n.op, Op)])


def ctx_list() -> list[tuple[str, Any]]:
    """The targets that tests run on, each with its device."""
    return enabled_targets()


def enabled_targets() -> list[tuple[str, Any]]:
    """The targets that tests run on, each with its device."""
    targets: list[tuple[str, Any]] = helper_of_tests("enabled_targets")()
    return targets


def check_grad(
    func: Function,
    inputs: Sequence[np.ndarray] | None = None,
    test_inputs: Sequence[np.ndarray] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Any = None,
    executor_kind: str = "debug",
) -> None:
    """Raise `AssertionError` unless a function's gradients agree with central differences of the step `eps`.

    Random inputs have the deviation `scale` (default: 10 * eps) around `mean`. `test_inputs` are those of `inputs`
    whose gradients count; default: all. The tolerances are those of numpy's `assert_allclose`.
    """
    forward = run_infer_type(func)
    assert isinstance(forward, Function)
    backward = run_opt_pass(run_infer_type(gradient(forward, mode=mode)), Legalize())
    if inputs is None:
        spread = 10 * eps if scale is None else scale
        inputs = [_np_randn_from_type(p.checked_type, spread, mean) for p in forward.params]  # type: ignore[arg-type]
    tested = inputs if test_inputs is None else test_inputs
    places = [[x is array for array in inputs].index(True) for x in tested]
    for target, dev in target_devices if target_devices is not None else enabled_targets():
        slopes = create_executor(executor_kind, device=dev, target=target).evaluate(backward)
        value = create_executor(executor_kind, device=dev, target=target).evaluate(forward)
        _, gradients = slopes(*inputs)
        assert places, "there is no gradient to test"
        for place in places:
            np.testing.assert_allclose(
                gradients[place].astype("float64"), _differences(inputs, place, eps, value), atol=atol, rtol=rtol
            )


def _differences(inputs: Sequence[np.ndarray], place: int, eps: float, value: Any) -> np.ndarray:
    """The central differences of the sum of a function's results, by each element of one input."""
    x = inputs[place]
    differences = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        kept = x[at]
        x[at] = kept + eps
        above = value(*inputs).astype("float64")
        x[at] = kept - eps
        below = value(*inputs).astype("float64")
        x[at] = kept
        differences[at] = np.sum((above - below) / (2 * eps))
    return differences


__all__ = [
    "Prelude",
    "check_grad",
    "count",
    "count_ops",
    "create_executor",
    "create_workload",
    "ctx_list",
    "enabled_targets",
    "gradient",
    "make_nat_expr",
    "make_nat_value",
    "rand",
    "run_as_python",
    "run_infer_type",
    "run_opt_pass",
]
