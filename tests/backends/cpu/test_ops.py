"""Every lowering against the interpreter's kernel on random inputs: integers exactly, floats to their precision."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.lower import gap
from relaylang.interpreter import KERNELS
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, Var, post_order
from relaylang.kernels.dtypes import CTYPES
from relaylang.ops import get, make_attrs
from tests.backends.cpu.cases import CASES, Case
from tests.shared import few

#: The library functions behind these are less exact in single precision than numpy's.
LOOSE = {"tan": 1e-4, "power": 1e-5}


def usable(case: Case) -> bool:
    name, _, args, _ = case
    parts = [p for a in args for p in (a if isinstance(a, tuple) else (a,))]
    return gap(name) is None and all(p.dtype.name in CTYPES for p in parts)


USED = [case for case in CASES if usable(case)]
#: The first case of each operator; `make sweeps` has the others.
FIRST = {case[0]: number for number, case in reversed(list(enumerate(USED)))}.values()


def expression(case: Case, number: int) -> tuple[Expr, dict[str, np.ndarray]]:
    """The case's call, and the values of its variables."""
    name, attrs, args, constant = case
    values: dict[str, np.ndarray] = {}
    count = 0

    def leaf(part: np.ndarray) -> Expr:
        nonlocal count
        count += 1
        if count - 1 in constant:
            return Constant(np.asarray(part))
        key = f"x{number}_{count}"
        values[key] = np.asarray(part)
        return Var(key, TensorType(part.shape, part.dtype.name))

    given: list[Expr] = [Tuple([leaf(p) for p in arg]) if isinstance(arg, tuple) else leaf(arg) for arg in args]
    op = get(name)
    return Call(op, given, make_attrs(op.attrs, attrs) if op.attrs is not None else None), values


def program(cases: list[tuple[int, Case]]) -> tuple[IRModule, dict[str, np.ndarray]]:
    """Cases as one program, and its arguments."""
    values: dict[str, np.ndarray] = {}
    results: list[Expr] = []
    found: list[Var] = []
    for number, case in cases:
        call, own = expression(case, number)
        values.update(own)
        results.append(call)
        found += [node for node in post_order(call) if isinstance(node, Var)]
    return IRModule.from_expr(Function(found, Tuple(results))), values


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest) -> dict[int, Any]:
    """What each case gives that is asked for: what cannot be lowered its error, all others as one program."""
    out: dict[int, Any] = {}
    good = []
    asked = {i.callspec.params["number"] for i in request.session.items if getattr(i, "function", None) is test_op}
    for number in sorted(asked):
        case = USED[number]
        try:
            mod, _ = program([(number, case)])
            lower_module(mod, "main", (), GENERIC)
            good.append((number, case))
        except Exception as e:
            out[number] = e
    mod, values = program(good)
    results = compile_module(mod, "c -num-threads=2 -cflags=-O1").run(**values)
    out.update(zip([number for number, _ in good], results))
    return out


def same(name: str, ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(name, a, b)
        return
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if theirs.dtype.name == "bfloat16":
        np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=2**-7, atol=2**-8)
    elif theirs.dtype.kind == "f":
        tolerance = LOOSE.get(name, {2: 2e-3, 4: 5e-6, 8: 1e-12}[theirs.dtype.itemsize])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 2)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("number", few(range(len(USED)), *FIRST), ids=[f"{i}-{c[0]}" for i, c in enumerate(USED)])
def test_op(number: int, outcome: dict[int, Any]) -> None:
    name, attrs, args, _ = USED[number]
    ours = outcome[number]
    if isinstance(ours, Exception):
        raise ours
    op = get(name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        theirs = KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)
    same(name, ours, theirs)
