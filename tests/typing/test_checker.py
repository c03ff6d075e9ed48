"""Checking again after a change costs what the change concerns, and finds what a check of the whole would find."""

from __future__ import annotations

import random

import pytest

from relaylang.ir import Call, Function, GlobalVar, IRModule, Tuple, Var, const, var
from relaylang.ops import get
from relaylang.syntax import parse
from relaylang.typing import Checker, infer, inference
from relaylang.typing.program import Found


def read(text: str) -> IRModule:
    module = parse('#[version = "0.0.5"]\n' + text).module
    assert isinstance(module, IRModule)
    return module


def again(module: IRModule, text: str) -> dict[str | GlobalVar, Function | None]:
    """Functions of a text that replace those of a module."""
    known = IRModule({v: f for v, f in module.functions.items()}, module.type_definitions)
    made = parse(text, module=known).module
    assert made is not None
    return {v.name_hint: f for v, f in made.functions.items() if known.functions.get(v) is not f}


PROGRAM = """
def @a(%x: int32) -> int32 { %x }
def @b(%x: int32) -> int32 { @a(%x) }
def @c(%x: int32) { (@b(%x), 1) }
def @d(%x: int32) { @c(%x).0 }
def @e(%x: int32) { @d(%x) }
def @other(%x: float32) { %x }
"""


def test_a_body_matters_to_nobody_else() -> None:
    module = read(PROGRAM)
    checker = Checker(module)
    assert sorted(checker.looked_at) == ["a", "b", "c", "d", "e", "other"] and checker.diagnostics == []
    assert checker.update(again(module, "def @a(%x: int32) -> int32 { add(%x, 1) }")) == []
    assert checker.looked_at == ["a"]
    assert checker.update() == [] and checker.looked_at == []


def test_a_changed_type_reaches_those_who_use_it() -> None:
    module = read(PROGRAM)
    checker = Checker(module)
    assert checker.update(again(module, "def @c(%x: int32) { (@b(%x), 2f) }")) == []
    assert checker.looked_at == ["c", "d"]  # field 0 is what it was, so @e is not looked at
    assert checker.update(again(module, "def @c(%x: int32) { (1f, @b(%x)) }")) == []
    assert checker.looked_at == ["c", "d", "e"]
    assert repr(module["e"].checked_type) == "fn (int32) -> float32"


def test_errors_come_and_go() -> None:
    module = read(PROGRAM)
    checker = Checker(module)
    told = checker.update(again(module, "def @a(%x: float32) -> float32 { %x }"))
    assert [d.title for d in told] == ["argument 1 of `@a` must be `float32`, not `int32`"]
    assert set(checker.looked_at) == {"a", "b"}
    assert module["b"].checked_type is None and module["a"].checked_type is not None
    assert checker.update(again(module, "def @a(%x: int32) -> int32 { %x }")) == []
    assert set(checker.looked_at) == {"a", "b"}
    assert module["b"].checked_type is not None


def test_one_wrong_function_is_one_error() -> None:
    module = read(PROGRAM)
    checker = Checker(module)
    told = checker.update(again(module, "def @c(%x: int32) { add(%x, 1f) }"))
    assert len(told) == 1
    assert checker.update(again(module, "def @c(%x: int32) { (add(%x, 1), 1) }")) == []
    assert infer(module) == []


def test_names_that_come_and_go() -> None:
    module = read("def @f(%x: int32) -> int32 { %x }\ndef @g(%x: int32) { @f(%x) }\ndef @h() { 1 }")
    checker = Checker(module)
    told = checker.update({"f": None})
    assert [d.title for d in told] == ["the module has no function `@f`"] and checker.looked_at == ["g"]
    x = var("x", "int32")
    assert checker.update({GlobalVar("f"): Function([x], x)}) == []
    assert sorted(checker.looked_at) == ["f", "g"]


def test_recursion_is_checked_together() -> None:
    text = """def @even(%i: int32) { if (equal(%i, 0)) { True } else { @odd(subtract(%i, 1)) } }
    def @odd(%i: int32) { if (equal(%i, 0)) { False } else { @even(subtract(%i, 1)) } }
    def @main(%i: int32) { @even(%i) }"""
    module = read(text)
    checker = Checker(module)
    assert checker.diagnostics == []
    changed = "def @odd(%i: int32) { if (equal(%i, 1)) { True } else { @even(subtract(%i, 1)) } }"
    assert checker.update(again(module, changed)) == []
    assert sorted(checker.looked_at) == ["even", "odd"]


def test_open_parameters_are_found_from_the_callers() -> None:
    module = read("def @f(%x) { negative(%x) }\ndef @main() { @f(1) }\ndef @other() { 2 }")
    checker = Checker(module)
    assert checker.diagnostics == []
    assert repr(module["f"].checked_type) == "fn (int32) -> int32"
    assert checker.update(again(module, "def @main() { @f(1f) }")) == []
    assert sorted(checker.looked_at) == ["f", "main"]
    assert repr(module["f"].checked_type) == "fn (float32) -> float32"


def test_type_definitions() -> None:
    text = """type Box { Box0(int32), }
    type Outer { Outer0(Box), }
    def @f(%b: Box) { match (%b) { Box0(%x) => { %x }, } }
    def @g(%b: Outer) { match (%b) { Outer0(_) => { 1 }, } }
    def @h() { 1 }"""
    module = read(text)
    checker = Checker(module)
    box = module.get_global_type_var("Box")
    data = module.type_definitions[box]
    wider = read("type Box { Box0(int32), Box1(int32), }")
    other = next(iter(wider.type_definitions.values()))
    second = other.constructors[1]
    second.belong_to = box
    module[box] = type(data)(box, (), [*data.constructors, second])
    assert [d.code for d in checker.update()] == ["R0308"]
    assert sorted(checker.looked_at) == ["f", "g"]


def chain(n: int) -> IRModule:
    module = IRModule()
    before: GlobalVar | None = None
    for i in range(n):
        x = var("x", "int32")
        body = Call(get("add"), [x, const(1)]) if before is None else Call(before, [x])
        before = GlobalVar(f"f{i}")
        module[before] = Function([x], body)
    return module


@pytest.mark.sweep
@pytest.mark.parametrize("n", [5_000])
def test_many_functions(n: int) -> None:
    module = chain(n)
    checker = Checker(module)
    assert checker.diagnostics == [] and len(checker.looked_at) == n
    x = var("x", "int32")
    checker.update({f"f{n // 2}": Function([x], Tuple([x]))})
    assert len(checker.looked_at) == n // 2
    checker.update({f"f{n // 2}": Function([x], Tuple([const(1)]))})
    assert checker.looked_at == [f"f{n // 2}"]


def test_nodes_that_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in nodes: a change of one function visits the nodes of that function and of its users."""
    runs: list[Found] = []

    class Counting(Found):
        def __init__(self) -> None:
            super().__init__()
            runs.append(self)

    monkeypatch.setattr(inference, "Found", Counting)

    def seen() -> int:
        count = sum(len(found.order) for found in runs)
        runs.clear()
        return count

    module = chain(300)
    checker = Checker(module)
    assert checker.diagnostics == [] and seen() > 900
    x = var("x", "int32")
    checker.update({"f150": Function([x], Call(get("negative"), [x]))})
    assert seen() == 4  # a name, a parameter, a call, a function


def test_as_a_check_of_the_whole() -> None:
    """Random edits: right or wrong, and with the types, as a check from nothing finds it."""
    rng = random.Random(7)
    names = [f"f{i}" for i in range(8)]

    def body() -> str:
        kind = rng.randrange(6)
        callee = rng.choice(names)
        if kind < 2:
            return f"@{callee}(%x)"
        if kind == 2:
            return f"add(@{callee}(%x), 1)"
        return rng.choice(["%x", "1f", "add(%x, 1)", "(%x, %x)"])

    def function(name: str) -> str:
        annotation = rng.choice([" -> int32", "", ""])
        return f"def @{name}(%x: int32){annotation} {{ {body()} }}"

    module = read("\n".join(function(n) for n in names))
    checker = Checker(module)
    wrong = 0
    for _ in range(60):
        text = "\n".join(function(n) for n in rng.sample(names, rng.randrange(1, 3)))
        told = checker.update(again(module, text))
        kept = {name: repr(checker.type_of(name)) for name in names}
        whole = infer(IRModule(dict(module.functions)), fresh=True)
        assert bool(told) == bool(whole)
        if not whole:
            assert kept == {v.name_hint: repr(f.checked_type) for v, f in module.functions.items()}
        wrong += bool(told)
    assert 0 < wrong < 60


def test_unbound_variables_are_told() -> None:
    module = IRModule()
    module["f"] = Function([], Var("y"))
    assert [d.code for d in Checker(module).diagnostics] == ["R0312"]
