"""The diagnostics of wrong programs: code, place, number and words.

errors.txt holds programs with their diagnostics. `! LINE:COLUMN CODE TITLE` is an error. Below it, `! - TEXT LABEL` is a
further place (`line N` for a place of several lines), and `! = NOTE` a note.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import Diagnostic
from relaylang.ir import (
    Call,
    Constructor,
    Function,
    GlobalTypeVar,
    IRModule,
    Tuple,
    TupleType,
    TypeData,
    Var,
    const,
    var,
)
from relaylang.ir.types import FuncType, RefType, TensorType, TypeCall, TypeVar
from relaylang.ops import get
from relaylang.syntax import parse
from relaylang.typing import infer


def programs() -> list[tuple[str, list[str]]]:
    made = []
    for block in (Path(__file__).parent / "errors.txt").read_text().split("\n\n"):
        lines = block.splitlines()
        said = [line.removeprefix("! ") for line in lines if line.startswith("! ")]
        made.append(("\n".join(line for line in lines if not line.startswith("! ")), said))
    return made


def told(diagnostics: list[Diagnostic]) -> list[str]:
    out = []
    for d in diagnostics:
        assert d.span is not None
        out.append(f"{d.span.line}:{d.span.column} {d.code} {d.title}")
        for label in d.labels:
            if not label.primary:
                text = label.span.text
                out.append(f"- {f'line {label.span.line}' if chr(10) in text else f'`{text}`'} {label.text}")
        out += [f"= {note}" for note in d.notes]
    return out


@pytest.mark.parametrize(("program", "said"), programs(), ids=lambda x: x[-1][:60] if isinstance(x, list) else "")
def test_errors(program: str, said: list[str]) -> None:
    module = parse(program).module
    assert isinstance(module, IRModule)
    assert told(infer(module)) == said


X = var("x", shape=(2, 3))
A = TypeVar("A")
N = TypeVar("N", "ShapeVar")
BOX = GlobalTypeVar("Box")


def typed(annotation: object) -> IRModule:
    return IRModule.from_expr(Function([Var("x", annotation)], const(1)))  # type: ignore[arg-type]


def defined(*constructors: Constructor, type_vars: tuple[TypeVar, ...] = ()) -> IRModule:
    module = IRModule.from_expr(Function([], const(1)))
    module[BOX] = TypeData(BOX, type_vars, constructors)
    return module


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (typed(TensorType((-1,))), "dimension 0 is -1, which is negative"),
        (typed(TupleType([TensorType((2**63,))])), "does not fit 64 bits"),
        (typed(TensorType((2,), "floaty")), "`floaty` is not an element type"),
        (typed(TensorType((A,))), "dimension 0 of `Tensor[(A), float32]` is `A`, which stands for a type"),
        (typed(N), "`N` stands for an extent, not for a type"),
        (typed(A), "nothing binds the type variable `A`"),
        (typed(TensorType((N,))), "nothing binds the type variable `N`"),
        (typed(RefType(TypeCall(BOX, []))), "the type `Box` is not defined"),
        (typed(BOX), "`Box` is a type definition"),
        (typed(TypeCall(A, [TensorType()])), "`A`, a type parameter, takes no type arguments"),
        (typed(TypeCall(TensorType(), [])), "this type takes no type arguments"),
        (IRModule.from_expr(Function([X, X], X)), "the parameter `%x` is bound twice"),
        (IRModule({**IRModule.from_expr(Function([], Var("y", TensorType()))).functions}), "binds the variable `%y`"),
        (IRModule.from_expr(Function([], Call(get("add"), [get("add"), const(1)]))), "must be called"),
        (IRModule.from_expr(Function([], Tuple([get("add")]))), "must be called"),
        (defined(Constructor("C", [], BOX), Constructor("C", [], BOX)), "the constructor `C` is defined twice"),
        (defined(Constructor("C", [A], BOX)), "nothing binds the type variable `A`"),
        (defined(type_vars=(A, A)), "binds its type parameter `A` twice"),
        (defined(Constructor("C", [], GlobalTypeVar("Other"))), "belongs to `Other`"),
        (defined(Constructor("C", [TypeCall(BOX, [A])], BOX), type_vars=(A,)), ""),
    ],
)
def test_programs_made_by_hand(module: IRModule, said: str) -> None:
    assert [said in d.title for d in infer(module)] == ([True] if said else [])


def test_a_polymorphic_type_binds_its_parameters() -> None:
    assert infer(typed(FuncType([A], A, [A]))) == []


def test_a_wide_wrong_program_is_told_in_linear_time() -> None:
    wrong = Call(get("add"), [X, var("y", shape=(5,))])
    body = Tuple([Call(get("add"), [wrong, wrong]) for _ in range(5_000)] + [Call(get("add"), [X, const(1)])] * 2)
    assert len(infer(IRModule.from_expr(body))) == 2
