"""The parts that make code of a function, each alone: names, frames, lifetimes, the two passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter.code import BRANCH, CALL, JUMP, RETURN, TAIL_CALL, Block, Code
from relaylang.interpreter.frame import Frame
from relaylang.interpreter.lifetimes import Lifetimes, Scope
from relaylang.interpreter.linker import Linker
from relaylang.interpreter.names import Names
from relaylang.interpreter.onlookers import Onlookers
from relaylang.interpreter.translate import Translation
from relaylang.interpreter.values import Builtin, Closure
from relaylang.interpreter.watch import Watch
from relaylang.ir import Constructor, Function, GlobalTypeVar, GlobalVar, IRModule, MetaRef, Var, const, var
from relaylang.syntax import parse
from relaylang.typing import check

X, Y, Z = Var("x"), Var("y"), Var("z")


def no_value(free: Var) -> object:
    raise AssertionError(free)


# --- names ---


def test_names_have_values() -> None:
    x = var("x", "int32")
    module = IRModule({GlobalVar("f"): Function([x], x)})
    names = Names(module, {"y": np.array(3), "meta[relay.Constant][0]": np.ones(2)})
    assert names.free_value(Y) == 3 and isinstance(names.free_value(Y), np.integer)
    assert names.value(const(4)) == 4
    assert names.value(MetaRef("relay.Constant", 0)).tolist() == [1, 1]
    closure = names.value(module.get_global_var("f"))
    assert isinstance(closure, Closure) and closure.code is names.code(module.get_global_var("f"))
    assert isinstance(names.value(Constructor("Nil", [], GlobalTypeVar("List"))), Builtin)


@pytest.mark.parametrize("atom", [MetaRef("relay.Constant", 1), GlobalVar("g")])
def test_names_without_a_value(atom: MetaRef | GlobalVar) -> None:
    with pytest.raises(RelayError, match="R0403"):
        Names(IRModule(), {}).value(atom)
    with pytest.raises(RelayError, match="the free variable %x has no value"):
        Names(IRModule(), {}).free_value(X)


# --- frames ---


def test_arguments_then_captured_values_then_the_rest() -> None:
    outer = Frame(Code("@f", Function([X, Y], X)), None, no_value)
    inner = Frame(Code("%g", Function([Z], Z)), outer, no_value)
    temporary = inner.new()
    assert inner.lookup(Z) == 0 and temporary == 1
    assert inner.lookup(Y) == -1 and inner.lookup(X) == -2 and inner.lookup(Y) == -1
    assert inner.captured == [Y, X]
    assert inner.finals((0, -1, -2, temporary)) == (0, 1, 2, 3)
    assert inner.variables() == {Z: 0, Y: 1, X: 2}
    assert outer.captured == []


def test_functions_on_the_way_capture_too() -> None:
    outer = Frame(Code("@f", Function([X], X)), None, no_value)
    middle = Frame(Code("%g", Function([Y], Y)), outer, no_value)
    inner = Frame(Code("%h", Function([Z], Z)), middle, no_value)
    inner.lookup(X)
    assert inner.captured == middle.captured == [X]


def test_constants_have_one_slot() -> None:
    frame = Frame(Code("@f", Function([X], X)), None, lambda free: f"the value of {free.name_hint}")
    one = object()
    slot = frame.constant(one, lambda: 1)
    assert frame.constant(one, lambda: 2) == slot
    frame.new()
    free = frame.lookup(Y)
    assert frame.lookup(Y) == free
    assert frame.template() == [1, None, "the value of y"]


# --- lifetimes ---


@pytest.fixture
def block() -> Iterator[Block]:
    yield Block(Code("@f", Function([], X)))


def test_a_slot_is_dropped_behind_its_last_use(block: Block) -> None:
    lifetimes, scope = Lifetimes(), Scope()
    lifetimes.own(0, scope)
    for place in range(1, 5):
        if place in (1, 3):
            lifetimes.use(0)
        lifetimes.tick(scope, (block, place))
    assert lifetimes.drops() == {(id(block), 3): [0]}


def test_a_slot_that_nothing_uses_is_dropped_at_once(block: Block) -> None:
    lifetimes, scope = Lifetimes(), Scope()
    lifetimes.own(0, scope)
    lifetimes.tick(scope, (block, 1))
    lifetimes.made(0)
    lifetimes.tick(scope, (block, 2))
    lifetimes.tick(scope, (block, 3))
    assert lifetimes.drops() == {(id(block), 2): [0]}


def test_a_call_lets_go_of_its_operands(block: Block) -> None:
    lifetimes, scope = Lifetimes(), Scope()
    lifetimes.own(0, scope)
    lifetimes.use(0)
    when = lifetimes.tick(scope, (block, 0), call=True)
    assert lifetimes.dies(0, scope, when) and not lifetimes.dies(0, Scope(), when)
    assert lifetimes.drops() == {}


def test_a_captured_slot_is_never_dropped(block: Block) -> None:
    lifetimes, scope = Lifetimes(), Scope()
    lifetimes.own(0, scope)
    lifetimes.use(0)
    when = lifetimes.tick(scope, (block, 1))
    lifetimes.hold([0])
    assert lifetimes.drops() == {} and not lifetimes.dies(0, scope, when)


def test_a_use_in_a_branch_is_a_use_where_the_branches_meet(block: Block) -> None:
    lifetimes, scope, arm = Lifetimes(), Scope(), Scope()
    lifetimes.own(0, scope)
    lifetimes.tick(scope, (block, 0))
    lifetimes.use(0)
    lifetimes.tick(arm, (block, 7))
    lifetimes.tick(scope, (block, 1))
    assert lifetimes.drops() == {(id(block), 0): [0]}  # behind the branch's end: the join


# --- the two passes ---

PROGRAM = """#[version = "0.0.5"]
def @g(%x: Tensor[(100), float32]) -> Tensor[(100), float32] { negative(%x) }
def @main(%c: bool, %x: Tensor[(100), float32]) -> Tensor[(100), float32] {
  let %y = @g(%x);
  let %f = fn (%z: Tensor[(100), float32]) -> Tensor[(100), float32] { add(%z, %y) };
  if (%c) { %f(%y) } else { %y }
}"""


def program() -> IRModule:
    module = parse(PROGRAM).module
    assert isinstance(module, IRModule)
    check(module)
    return module


def ends(translation: Translation) -> list[int]:
    return [block.end for block in translation.blocks]


def test_calls_and_branches_end_blocks() -> None:
    names = Names(program(), {})
    main = Translation(names.code(GlobalVar("main")), None, names, Onlookers())
    main.run()
    assert ends(main) == [CALL, BRANCH, TAIL_CALL, RETURN]
    assert [inner.code.name for inner in main.inner] == ["%f"]
    main.inner[0].run()
    main.resolve_captures()
    assert [v.name_hint for v in main.inner[0].code.captured] == ["y"]


def test_a_branch_that_is_bound_joins() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%c: bool) { let %a = if (%c) { 1 } else { 2 }; add(%a, 1) }'
    module = parse(text).module
    assert isinstance(module, IRModule)
    check(module)
    names = Names(module, {})
    main = Translation(names.code(GlobalVar("main")), None, names, Onlookers())
    main.run()
    assert sorted(ends(main)) == sorted([BRANCH, JUMP, JUMP, RETURN])


def test_linking_makes_code_once() -> None:
    module = program()
    names = Names(module, {})
    linker = Linker(names, Onlookers())
    code = names.code(module.get_global_var("main"))
    assert code.entry is None
    entry = linker.link(code)
    assert code.entry is entry and len(entry.nodes) == len(entry.steps)
    called = entry.callee
    assert called is names.code(module.get_global_var("g")) and called.entry is None  # it is linked when it is called


def test_onlookers_add_steps() -> None:
    watched, plain = Onlookers(watch=Watch()), Onlookers()
    assert plain.plain and not watched.plain
    code = [Names(program(), {}).code(GlobalVar("g")) for _ in range(2)]
    names = Names(program(), {})
    few = Linker(names, plain).link(code[0])
    many = Linker(names, watched).link(code[1])
    assert len(many.steps) == len(few.steps) + 1  # the function's entry
