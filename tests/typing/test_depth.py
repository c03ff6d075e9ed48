"""Programs of any depth and width, in time that grows with their size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaylang.ir import Call, Expr, Function, If, IRModule, Let, Tuple, Var, var
from relaylang.ops import get
from relaylang.syntax import parse
from relaylang.typing import infer
from tests.growth import assert_linear
from tests.shared import few

N = 100_000
X = var("x", shape=(10,))
C = var("c", "bool")


def main(body: Expr) -> IRModule:
    return IRModule.from_expr(Function([X, C], body))


def lets(bindings: list[tuple[Var, Expr]], body: Expr) -> Expr:
    for variable, value in reversed(bindings):
        body = Let(variable, value, body)
    return body


def chain(n: int) -> Expr:
    body: Expr = X
    for _ in range(n):
        body = Call(get("add"), [body, X])
    return body


def many_lets(n: int) -> Expr:
    bindings: list[tuple[Var, Expr]] = []
    last = X
    for i in range(n):
        bindings.append((Var(f"v{i}"), Call(get("add"), [last, X])))
        last = bindings[-1][0]
    return lets(bindings, last)


def left_ifs(n: int) -> Expr:
    body: Expr = X
    for _ in range(n):
        body = If(C, body, Call(get("negative"), [X]))
    return body


def right_ifs(n: int) -> Expr:
    body: Expr = X
    for _ in range(n):
        body = If(C, Call(get("negative"), [X]), body)
    return body


def functions(n: int) -> Expr:
    body: Expr = X
    for _ in range(n):
        body = Function([var("y", "int32")], body)
    return body


def primitive_calls(n: int) -> Expr:
    body: Expr = X
    for _ in range(n):
        y = var("y", shape=(10,))
        body = Call(Function([y], Call(get("add"), [y, y]), attrs={"Primitive": 1}), [body])
    return body


def local_functions(n: int) -> Expr:
    bindings: list[tuple[Var, Expr]] = []
    callee: Expr = get("negative")
    for i in range(n):
        y = Var("y")
        bindings.append((Var(f"f{i}"), Function([y], Call(callee, [y]))))
        callee = bindings[-1][0]
    return lets(bindings, Call(callee, [X]))


@pytest.mark.parametrize("program", few([chain, many_lets, left_ifs, right_ifs, functions, primitive_calls, local_functions], chain))
@pytest.mark.parametrize("size", few([N // 10, N], N // 10))
def test_depth(program: Callable[[int], Expr], size: int) -> None:
    module = main(program(size))
    assert infer(module) == []
    assert module["main"].checked_type is not None

    def prepare(n: int) -> Callable[[], object]:
        small = main(program(n))
        return lambda: infer(small)

    assert_linear(prepare)


def test_wide_tuple() -> None:
    concatenate = get("concatenate")
    assert concatenate.attrs is not None
    wide = Tuple([Call(get("negative"), [X]) for _ in range(10_000)])
    module = main(Call(concatenate, [wide], concatenate.attrs()))
    assert infer(module) == []
    assert repr(module["main"].checked_type).endswith("-> Tensor[(100000), float32]")


@pytest.mark.sweep
def test_unknown_all_the_way_down() -> None:
    """A fragment whose type is open at every level."""
    body: Expr = X
    for _ in range(20_000):
        body = Function([Var("y")], body)
    said = infer(body, fragment=True)
    assert len(said) == 20_000
    assert body.checked_type is not None


def _curried(n: int) -> str:
    return f"def @main(%x: Tensor[(2), float32]) {{ {'fn (%a) { ' * n}%x{' }' * n}{'(%x)' * n} }}"


def _of_functions(n: int) -> str:
    lets = "".join(f"let %f{i + 1} = fn (%a) {{ %f{i} }}; " for i in range(n))
    return f"def @main(%x: float32) {{ let %f0 = fn (%a: float32) {{ %a }}; {lets}%f{n}{'(%x)' * (n + 1)} }}"


def _thunks(n: int) -> str:
    lets = "".join(f"let %t{i + 1} = fn () {{ %t{i} }}; " for i in range(n))
    return f"def @main(%t0: float32) {{ {lets}%t{n}{'()' * n} }}"


def _recursive(n: int) -> str:
    lets = "".join(f"let %f{i} = fn (%a: float32) {{ if (True) {{ %f{i}(%a) }} else {{ %a }} }}; " for i in range(n))
    return f"def @main(%x: float32) {{ {lets}%f0(%x) }}"


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [_curried, _of_functions, _thunks, _recursive])
def test_types_of_functions_that_nest_are_found_in_linear_time(text: Callable[[int], str]) -> None:
    def prepare(n: int) -> Callable[[], object]:
        module = parse(text(n)).module

        def run() -> None:
            assert module is not None
            assert not [d for d in infer(module, fresh=True) if d.severity == "error"]

        return run

    assert_linear(prepare, small=100)
