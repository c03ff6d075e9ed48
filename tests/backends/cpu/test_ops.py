"""Every lowering against the interpreter's kernel on random inputs: integers exactly, floats to their precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu.dtypes import CTYPES
from relaylang.backends.cpu.lower import lowered
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.ops import get, make_attrs
from tests.backends.cpu.cases import CASES, Case

#: The library functions behind these are less exact in single precision than numpy's.
LOOSE = {"tan": 1e-4, "power": 1e-5}


def usable(case: Case) -> bool:
    name, _, args, _ = case
    parts = [p for a in args for p in (a if isinstance(a, tuple) else (a,))]
    return name in lowered() and all(p.dtype.name in CTYPES for p in parts)


USED = [case for case in CASES if usable(case)]


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


def compiled(cases: list[Case]) -> list[Any]:
    """All cases as one program, and what it gives."""
    values: dict[str, np.ndarray] = {}
    results = []
    for number, case in enumerate(cases):
        call, own = expression(case, number)
        values.update(own)
        results.append(call)
    found: list[Var] = []
    for call in results:
        for arg in call.args:
            found += [a for a in (arg.fields if isinstance(arg, Tuple) else (arg,)) if isinstance(a, Var)]
    mod = IRModule.from_expr(Function(found, Tuple(results)))
    return list(compile_module(mod, "c -num-threads=1").run(**values))


@pytest.fixture(scope="module")
def outcome() -> dict[int, Any]:
    """What each case gives: all in one program, or one by one where that does not compile."""
    try:
        return dict(enumerate(compiled(USED)))
    except RelayError:
        out: dict[int, Any] = {}
        for number, case in enumerate(USED):
            try:
                out[number] = compiled([case])[0]
            except RelayError as e:
                out[number] = e
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
    if theirs.dtype.kind == "f":
        tolerance = LOOSE.get(name, {2: 2e-3, 4: 5e-6, 8: 1e-12}[theirs.dtype.itemsize])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 2)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("number", range(len(USED)), ids=[f"{i}-{c[0]}" for i, c in enumerate(USED)])
def test_op(number: int, outcome: dict[int, Any]) -> None:
    name, attrs, args, _ = USED[number]
    ours = outcome[number]
    if isinstance(ours, RelayError) and ours.diagnostics[0].code == "R0632":
        pytest.skip(ours.diagnostics[0].title)
    if isinstance(ours, RelayError):
        raise ours
    op = get(name)
    with np.errstate(all="ignore"):
        theirs = KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)
    same(name, ours, theirs)
