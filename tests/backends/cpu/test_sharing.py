"""Shared nodes are computed once. Compile time and code grow with a program's nodes, not with its paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module, cpu
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.kernel_code import KernelCode
from relaylang.backends.cpu.pipeline import MAX_DEPTH
from relaylang.backends.vm import compile_vm
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var
from relaylang.kernels import ir
from relaylang.ops import get, make_attrs
from relaylang.typing import check

WIDTH = 64
Step = Callable[[Expr, int], Expr]


def op(name: str, *args: Expr, **attrs: Any) -> Call:
    record = get(name)
    return Call(record, list(args), make_attrs(record.attrs, attrs) if record.attrs is not None else None)


def half(value: Expr) -> Expr:
    return op("multiply", value, Constant(np.float32(0.5)))


def doubled(x: Expr, _: int) -> Expr:
    return op("add", x, x)


def swish(x: Expr, _: int) -> Expr:
    return op("multiply", x, op("sigmoid", x))


def diamond(x: Expr, _: int) -> Expr:
    return half(op("add", op("tanh", x), op("sigmoid", x)))


def diamond_of_kernels(x: Expr, _: int) -> Expr:
    """Its sides are kernels of their own: sums over the whole."""
    return op("add", op("tanh", op("cumsum", x, axis=0)), op("nn.softmax", op("sigmoid", x)))


def shifted(x: Expr, number: int) -> Expr:
    """Two places of the operand for each of the result."""
    by = 2 ** (number % 5)
    part = op("strided_slice", x, begin=[by], end=[WIDTH], strides=[1], axes=[0])
    return half(op("add", x, op("nn.pad", part, Constant(np.float32(0.25)), pad_width=[[0, by]])))


def joined(x: Expr, number: int) -> Expr:
    begin = 7 * number % WIDTH
    return op("strided_slice", op("concatenate", Tuple([x, x]), axis=0), begin=[begin], end=[begin + WIDTH], strides=[1])


def parted(x: Expr, _: int) -> Expr:
    parts = op("split", x, indices_or_sections=2, axis=0)
    low, high = TupleGetItem(parts, 0), TupleGetItem(parts, 1)
    return half(op("concatenate", Tuple([op("add", low, high), op("subtract", low, high)]), axis=0))


STEPS = (doubled, swish, diamond, diamond_of_kernels, shifted, joined, parted)


def chain(step: Step, length: int) -> IRModule:
    x = Var("x", TensorType((WIDTH,), "float32"))
    value: Expr = x
    for number in range(length):
        value = step(value, number)
    return IRModule.from_expr(Function([x], value))


def compiled(mod: IRModule) -> str:
    return Emitter(GENERIC, 1).file(lower_module(mod, "main", (), GENERIC), "test")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each operation that lowering asks for, known or not."""
    found: list[str] = []
    plain = ir.op

    def counted(name: str, *args: Any, **rest: Any) -> Any:
        found.append(name)
        return plain(name, *args, **rest)

    monkeypatch.setattr(ir, "op", counted)
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.__name__)
def test_operations_and_code_grow_with_the_nodes(step: Step, made: list[str]) -> None:
    sizes = []
    for length in (24, 96):
        made.clear()
        text = compiled(chain(step, length))
        sizes.append((len(made), len(text)))
    assert sizes[1][0] <= 5 * sizes[0][0]
    # Where places differ, a value is computed for some of them before it is kept in memory.
    assert sizes[1][0] <= 96 * (250 if step in (shifted, joined, parted) else 12)
    assert sizes[1][1] <= 5 * sizes[0][1]


@pytest.mark.sweep
@pytest.mark.parametrize("step", [doubled, swish], ids=lambda s: s.__name__)
def test_a_hundred_thousand_nodes(step: Step, made: list[str]) -> None:
    length = 100_000 if step is doubled else 50_000
    text = compiled(chain(step, length))
    # Kernels that are equal are lowered once and are one function, and a call is a line.
    assert MAX_DEPTH <= len(made) <= 12 * MAX_DEPTH
    assert len(text) <= 200_000


@pytest.mark.sweep
def test_what_is_shared_has_the_interpreters_values() -> None:
    x = Var("x", TensorType((WIDTH,), "float32"))
    results: list[Expr] = []
    for step in STEPS:
        value: Expr = x
        for number in range(20):
            value = step(value, number)
        results.append(value)
    mod = IRModule.from_expr(Function([x], Tuple(results)))
    given = np.linspace(-1, 2, WIDTH, dtype="float32")
    wanted = evaluate(mod, given)
    for step, ours, theirs in zip(STEPS, compile_module(mod, "c -num-threads=1 -cflags=-O1").run(given), wanted):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-9, err_msg=step.__name__)


def small_calls(count: int) -> IRModule:
    """Calls of different extents: elementwise, dense, transposed, summed by rows and by columns."""
    params: list[Var] = []
    results: list[Expr] = []
    for number in range(count):
        rows, columns = 3 + number // 5 % 29, 3 + number // 5 // 29 * 2
        x = Var(f"x{number}", TensorType((rows, columns), "float32"))
        params.append(x)
        if number % 5 == 0:
            results.append(op("add", x, op("tanh", x)))
        elif number % 5 == 1:
            w = Var(f"w{number}", TensorType((1 + rows % 17, columns), "float32"))
            params.append(w)
            results.append(op("nn.dense", x, w))
        elif number % 5 == 2:
            results.append(op("transpose", x, axes=[1, 0]))
        else:
            results.append(op("sum", x, axis=[number % 5 - 3]))
    return IRModule.from_expr(Function(params, Tuple(results)))


def test_small_kernels_that_differ_in_extents_are_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for many in (KernelCode.many, 1 << 30):
        monkeypatch.setattr(KernelCode, "many", many)
        texts.append(compiled(small_calls(700)))
    assert "extent0" in texts[0] and "extent0" not in texts[1]
    assert 5 * texts[0].count("R_KERNEL void") < texts[1].count("R_KERNEL void")
    # Each shows its own loops.
    assert "extent0" not in cpu.emit(small_calls(700), "loops")
    # They are many in large programs alone.
    monkeypatch.undo()
    assert "extent0" not in compiled(small_calls(50))


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", ["c", "vm"])
def test_functions_that_read_extents_from_a_table_have_the_same_bits(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mod = small_calls(600)
    check(mod)
    rng = np.random.default_rng(7)
    args = [rng.standard_normal([int(d) for d in p.type_annotation.shape]).astype("float32") for p in mod["main"].params]
    results = []
    for many in (KernelCode.many, 1 << 30):
        monkeypatch.setattr(KernelCode, "many", many)
        artifact = compile_vm(mod) if runtime == "vm" else compile_module(mod, "c -num-threads=1")
        results.append(artifact.run(*args))
    for number, (shared, plain) in enumerate(zip(*results, strict=True)):
        assert np.array_equal(shared, plain), number


def test_a_value_that_is_used_twice_is_a_local_variable() -> None:
    x = Var("x", TensorType((WIDTH,), "float32"))
    gate = op("sigmoid", x)
    text = compiled(IRModule.from_expr(Function([x], op("add", op("multiply", x, gate), op("tanh", gate)))))
    body = text[text.index("void kernel_") :]
    assert body.count("r_sigmoid_f32(") == 1
    assert body.count("for (long") == 1
