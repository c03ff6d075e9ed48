"""What goes wrong: a code, a place, the arguments' types, the calls that led there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.interpreter import Evaluator, create_executor, evaluate
from relaylang.syntax import parse
from tests.interpreter.test_evaluate import LISTS, module

TEXT = """def @main(%x: Tensor[(3), float32], %i: Tensor[(2), int32]) -> Tensor[(2), float32] {
  let %y = multiply(%x, 2f);
  let %z = @pick(%y, %i);
  add(%z, 1f)
}
def @pick(%x: Tensor[(3), float32], %i: Tensor[(2), int32]) -> Tensor[(2), float32] {
  let %r = take(%x, %i, axis=0, mode="fast");
  negative(%r)
}
"""
X, I = np.ones(3, np.float32), np.asarray([0, 7], np.int32)


def failure(program: Any, *args: Any, **named: Any) -> list[Diagnostic]:
    with pytest.raises(RelayError) as caught:
        evaluate(program, *args, **named)
    return caught.value.diagnostics


def test_an_operator_that_fails_names_its_place_its_arguments_and_the_calls() -> None:
    (found,) = failure(module(TEXT), X, I)
    assert found.code == "R0404"
    assert found.title == "take: the index 7 is outside an axis of extent 3"
    assert found.span is not None and (found.span.line, found.span.text[:4]) == (7, "take")
    assert found.notes[0] == "the arguments are Tensor[(3), float32], Tensor[(2), int32]"
    assert found.notes[1].startswith("in @pick at test.relay:7:")
    assert found.notes[2].startswith("in @main at test.relay:3:")


def test_division_by_zero() -> None:
    for op in ("divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod"):
        (found,) = failure(module(f"def @main(%x: int32) {{ {op}(1, %x) }}"), 0)
        assert (found.code, found.title) == ("R0404", f"{op}: division by zero")
        (found,) = failure(module(f"def @main(%x: Tensor[(2), int32]) {{ {op}(1, %x) }}"), np.asarray([1, 0], np.int32))
        assert found.title == f"{op}: division by zero"


def test_a_match_that_nothing_fits() -> None:
    text = LISTS + "def @head(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h }, } }\n"
    (found,) = failure(module(text + "def @f() { @head(Nil()) }"), entry="f")
    assert found.code == "R0405"
    assert found.title == "no clause of this match fits Nil"
    assert found.span is not None and found.span.text.startswith("match?")


def test_deep_calls_are_shown_from_both_ends() -> None:
    text = "def @f(%n: int32) -> int32 { if (equal(%n, 0)) { divide(1, %n) } else { add(1, @f(subtract(%n, 1))) } }"
    (found,) = failure(module(text), 1000, entry="f")
    assert len(found.notes) == 9
    assert found.notes[-2] == "... 994 more calls ..."


@pytest.mark.parametrize(
    "args, named, code, title",
    [
        ((X,), {}, "R0401", "@main takes 2 arguments, not 1"),
        ((X, I, I), {}, "R0401", "@main takes 2 arguments, not 3"),
        ((X,), {"i": I, "j": I}, "R0401", "@main has no parameter %j"),
        ((X,), {"x": X, "i": I}, "R0401", "@main gets %x twice"),
        ((np.ones(4, np.float32), I), {}, "R0402", "the argument for %x has the shape (4,) instead of (3,)"),
        ((np.ones(3), I), {}, "R0402", "the argument for %x has elements of float64 instead of float32"),
        (("abc", I), {}, "R0402", "the argument for %x is str instead of `Tensor[(3), float32]`"),
        (((X, X), I), {}, "R0402", "the argument for %x is (Tensor[(3), float32], Tensor[(3), float32]) instead of"),
    ],
)
def test_arguments_that_do_not_fit(args: tuple[Any, ...], named: dict[str, Any], code: str, title: str) -> None:
    found = failure(module(TEXT), *args, **named)[0]
    assert found.code == code
    assert found.title.startswith(title)


def test_every_wrong_argument_is_told() -> None:
    assert [d.code for d in failure(module(TEXT), np.ones(4, np.float32), np.ones(2, np.float32))] == ["R0402"] * 2


def test_a_missing_argument_is_named_with_its_type() -> None:
    (found,) = failure(module(TEXT), X)
    assert found.notes == ("missing: %i of type Tensor[(2), int32]",)


def test_an_unknown_function() -> None:
    (found,) = failure(module(TEXT), entry="mian")
    assert found.title == "there is no function @mian"
    assert found.notes == ("did you mean @main?",)


def test_free_variables_without_values() -> None:
    found = failure(parse("add(%x, meta[relay.Constant][0] /* ty=float32 */)").expr)
    assert [d.title for d in found] == ["%x has no value", "meta[relay.Constant][0] of type float32 has no value"]


def test_a_value_that_does_not_fit_its_free_variable() -> None:
    text = "free_var %x: Tensor[(2), float32];\nadd(%x, %x)"
    (found,) = failure(parse(text).expr, values={"x": np.ones(3, np.float32)})
    assert (found.code, found.title) == ("R0402", "the value for %x has the shape (3,) instead of (2,)")


def test_a_program_that_is_wrong_is_not_run() -> None:
    found = failure(module("def @main(%x: int32) { add(%x, 1f) }"), 1)
    assert found[0].code.startswith("R03")


def test_an_expression_takes_no_arguments() -> None:
    assert failure(parse("add(1, 2)").expr, 5)[0].code == "R0401"


def test_an_unknown_executor() -> None:
    with pytest.raises(RelayError):
        create_executor("quantum")


def test_what_is_no_function_is_not_called() -> None:
    with pytest.raises(RelayError):
        Evaluator(module(TEXT)).apply(X)


def test_an_interruption_leaves_the_evaluator_usable() -> None:
    def stop(*what: Any) -> None:
        raise KeyboardInterrupt

    m = module("def @main(%x: int32) { add(%x, 1) }")
    made = Evaluator(m, observer=stop)
    with pytest.raises(KeyboardInterrupt):
        made.call("main", (1,))
    assert evaluate(m, 1) == 2
    assert np.geterr() == np.geterr()
