"""Errors of evaluation: a code, a place, the arguments' types, the calls that led there."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.interpreter import Evaluator, RefValue, evaluate
from relaylang.interpreter.time_limit import OutOfTime, time_limit
from relaylang.repl.session import Session
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


# What a program can do wrong while it runs: operator, types, the calls; and what cannot be wrong.

BAD = "def @main({p}) {{ let %out = @f({a}); (%out, 1) }}\ndef @f({p}) {{\n  {body}\n}}\n"


def ints(*values: Any) -> np.ndarray:
    return np.asarray(values, np.int32)


M = np.ones((3, 4), np.float32)
MATRIX = "%x: Tensor[(3, 4), float32]"
PAIR = "%i: Tensor[(2), int32]"


@pytest.mark.parametrize(
    "body, params, args, title, note",
    [
        ("divide(%a, %b)", ["%a: int32", "%b: int32"], (1, 0), "divide: division by zero", "int32, int32"),
        ("floor_mod(%a, %b)", ["%a: int8", "%b: int8"], (1, 0), "floor_mod: division by zero", "int8, int8"),
        ("left_shift(%a, %b)", ["%a: int32", "%b: int32"], (1, -1), "left_shift: a shift by -1 bits", "int32, int32"),
        ("right_shift(7, %i)", [PAIR], (ints(3, -2),), "right_shift: a shift by -2 bits", "int32, Tensor[(2), int32]"),
        (
            'take(%x, %i, axis=1, mode="fast")',
            [MATRIX, PAIR],
            (M, ints(0, -9)),
            "take: the index -9 is outside an axis of extent 4",
            "Tensor[(3, 4), float32], Tensor[(2), int32]",
        ),
        (
            "gather(%x, %i, axis=0)",
            [MATRIX, "%i: Tensor[(1, 4), int32]"],
            (M, ints([0, 1, 2, 3])),
            "gather: the index 3 is outside an axis of extent 3",
            "Tensor[(3, 4), float32], Tensor[(1, 4), int32]",
        ),
        (
            "gather_nd(%x, %i)",
            [MATRIX, "%i: Tensor[(2, 1), int32]"],
            (M, ints([0], [7])),
            "gather_nd: the index 7 is outside an axis of extent 4",
            "Tensor[(3, 4), float32], Tensor[(2, 1), int32]",
        ),
        (
            "scatter_elements(%x, %i, %x, axis=0)",
            [MATRIX, "%i: Tensor[(3, 4), int32]"],
            (M, np.full((3, 4), 7, np.int32)),
            "scatter_elements: the index 7 is outside an axis of extent 3",
            "Tensor[(3, 4), float32], Tensor[(3, 4), int32], Tensor[(3, 4), float32]",
        ),
        ("ref_read(%r)", ["%r: ref(int32)"], (RefValue(),), "ref_read: the reference has no value yet", "ref(int32)"),
        (
            'dyn.full(1f, %s, shape=None, dtype="float32")',
            ["%s: Tensor[(1), int64]"],
            (np.asarray([10**15]),),
            "there is not enough memory for dyn.full: ",
            "float32, Tensor[(1), int64]",
        ),
        (
            f"repeat(%x, repeats={2**60}, axis=0)",
            [MATRIX],
            (M,),
            "there is not enough memory for repeat: more than any machine",
            "Tensor[(3, 4), float32]",
        ),
    ],
)
def test_the_stack_and_the_types_are_shown(body: str, params: list[str], args: Any, title: str, note: str) -> None:
    names = ", ".join(p.split(":")[0] for p in params)
    (found,) = failure(module(BAD.format(p=", ".join(params), a=names, body=body)), *args)
    assert found.title.startswith(title)
    assert found.notes[0].split(" ", 3)[3] == note
    assert [n.rpartition(":")[0] for n in found.notes[1:]] == ["in @f at test.relay:3", "in @main at test.relay:1"]
    assert found.span is not None and found.span.line == 3


@pytest.mark.parametrize("mode, wanted", [("clip", [1, 4]), ("wrap", [4, 2])])
def test_modes_that_take_every_index(mode: str, wanted: list[int]) -> None:
    m = module(f'def @main(%x: Tensor[(4), int32], %i: Tensor[(2), int32]) {{ take(%x, %i, axis=0, mode="{mode}") }}')
    assert evaluate(m, ints(1, 2, 3, 4), ints(-1, 5)).tolist() == wanted


def test_a_match_tells_the_type_of_its_value() -> None:
    text = LISTS + "def @head(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h }, } }\n"
    (found,) = failure(module(text + "def @f() { add(@head(Nil()), 1) }"), entry="f")
    assert found.notes[0] == "the value is of type List[int32]"
    assert [n.split(" at ")[0] for n in found.notes[1:]] == ["in @head", "in @f"]


@pytest.mark.parametrize(
    "given, wanted",
    [
        ((1, 2, 3), "is (int, int, int) instead of `(int32, int32)`"),
        ((1, "a"), "is str instead of `int32` in field 1"),
        ((1, ints(1, 2)), "has the shape (2,) instead of () in field 1"),
        (7, "is int32 instead of `(int32, int32)`"),
    ],
)
def test_tuples_that_do_not_fit(given: Any, wanted: str) -> None:
    (found,) = failure(module("def @main(%p: (int32, int32)) { %p.0 }"), given)
    assert found.title == f"the argument for %p {wanted}"


@pytest.mark.parametrize(
    "ty, given", [("List[int32]", 5), ("ref(int32)", 3), ("fn (int32) -> int32", 7), ("fn (int32) -> int32", abs)]
)
def test_values_of_another_kind(ty: str, given: Any) -> None:
    (found,) = failure(module(LISTS + f"def @f(%p: {ty}) {{ %p }}"), given, entry="f")
    assert found.code == "R0402" and found.title.endswith(f"instead of `{ty}`")


def test_memory_has_a_limit_that_the_caller_gives() -> None:
    m = module("""def @main(%x: float32) { let %a = @big(%x); sum(%a) }
    def @big(%x: float32) {
      add(zeros(shape=[1000, 1000], dtype="float32"), %x)
    }""")
    (found,) = failure(m, 1.0, memory_limit=1_000_000)
    assert (found.code, found.title) == ("R0408", "the program needs more than the 1.0 MB that it may use")
    assert found.notes[0] == "the value is Tensor[(1000, 1000), float32], 4.0 MB"
    assert found.notes[2].startswith("in @big at test.relay:3:")
    assert evaluate(m, 1.0, memory_limit=20_000_000) == 1e6


def test_the_session_goes_on() -> None:
    session = Session()
    session.execute("def @f(%n: int32) -> int32 { if (equal(%n, 0)) { divide(1, %n) } else { add(1, @f(subtract(%n, 1))) } }")
    wrong = ["@f(100000)", "left_shift(1, -1)", "@f(1, 2)", "@f(1f)", "@g(1)", "add(%x, 1)", "take([1, 2], 7)", "@f("]
    for text in wrong:
        with pytest.raises(RelayError):
            session.execute(text)
    assert session.execute("add(1, 2)") == "3 : int32"


@pytest.mark.parametrize("end", ["at once", "too late", "in between"])
def test_a_limit_of_time_leaves_nothing_behind(end: str) -> None:
    """Under a profiler, Python 3.11 does not go on where an exception was sent to a thread and taken back."""

    def spend(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass

    for _ in range(1 if end != "in between" else 20):
        with contextlib.suppress(OutOfTime), time_limit({"at once": 60.0, "too late": 0.01, "in between": 0.02}[end]):
            spend({"at once": 0.0, "too late": 5.0, "in between": 0.02}[end])
    entered: list[str] = []
    sys.setprofile(lambda frame, event, _: entered.append(event))
    try:
        (lambda: None)()
    finally:
        sys.setprofile(None)
    assert "call" in entered
