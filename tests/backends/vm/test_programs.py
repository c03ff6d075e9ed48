"""Programs compiled for the VM against the interpreter: each construct of the language, and random programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from relaylang.backends.vm import compile_vm
from relaylang.backends.vm.scalars import rows
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator
from relaylang.interpreter.values import ConstructorValue, RefValue
from relaylang.ir import Expr, Function, IRModule
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.syntax import parse
from relaylang.testing import strategies
from relaylang.testing.generators.functional import Functional
from relaylang.typing import check
from tests.backends.vm.agree import assert_agrees, assert_programs_agree, outcome
from tests.backends.vm.programs import LISTS, PROGRAMS
from tests.shared import few


def module(text: str) -> IRModule:
    found = parse(text, "test.relay").module
    assert found is not None
    check(found)
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_constructs(name: str) -> None:
    text, *args = PROGRAMS[name]
    assert_agrees(module(text), *args)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["fold", "branches on tensors", "views", "tuples", "small elements"])
def test_kernels(name: str) -> None:
    text, *args = PROGRAMS[name]
    executable = assert_agrees(module(text), *args, native=True)
    assert all(item.region >= 0 for item in executable.program.packed)


OPERATORS = list(dict.fromkeys(row.operator for row in rows()))


@pytest.fixture(scope="module")
def every_row() -> tuple[IRModule, VMExecutable]:
    """A program with a function for each scalar instruction."""
    lines = []
    for number, row in enumerate(rows()):
        params = ", ".join(f"%x{n}: {dtype}" for n, dtype in enumerate(row.operands))
        attribute = f', dtype="{row.result}"' if row.converts else ""
        call = f"{row.operator}({', '.join(f'%x{n}' for n in range(len(row.operands)))}{attribute})"
        lines.append(f"def @f{number}({params}) {{ {call} }}")
    mod = module("\n".join(lines))
    executable = compile_vm(mod)
    assert not executable.program.packed
    return mod, executable


def _numbers(dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers of a type, with the ends of its range."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        return np.concatenate([[0.0, -0.0, 1.5, -2.5, 0.4, 3e9], rng.integers(-40, 40, 6) / 8]).astype(kind)
    info = np.iinfo(kind)
    ends = np.array([0, 1, 2, info.max, info.min, info.max // 2], kind)
    return np.concatenate([ends, rng.integers(info.min, info.max, 4, kind, endpoint=True)])


@pytest.mark.sample(4)
@pytest.mark.parametrize("operator", OPERATORS)
def test_scalar_instructions(operator: str, every_row: tuple[IRModule, VMExecutable]) -> None:
    """Each has the interpreter's values, at the ends of its types too."""
    mod, executable = every_row
    evaluator = Evaluator(mod)
    rng = np.random.default_rng(len(operator))
    for number, row in enumerate(rows()):
        if row.operator != operator:
            continue
        columns = [_numbers(dtype, rng) for dtype in row.operands]
        cases = [tuple(c[i % len(c)] for c in columns) for i in range(8)]
        cases += [tuple(rng.choice(c) for c in columns) for _ in range(4)]
        for case in cases:
            with np.errstate(all="ignore"):
                wanted, failure = outcome(lambda case=case, number=number: evaluator.call(f"f{number}", case))
            got, code = outcome(lambda case=case, number=number: executable.call(f"f{number}", case))
            assert code == failure, (row.name, case)
            if failure is None:
                assert got.dtype == wanted.dtype
                tolerance = 3e-7 if wanted.dtype == "float32" else 1e-15
                np.testing.assert_allclose(got, wanted, rtol=tolerance, err_msg=f"{row.name} {case}")


@pytest.mark.sweep
@settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(strategies.expressions())
def test_random_expressions(expr: Expr) -> None:
    mod = IRModule({"main": Function([], expr)}, {strategies.LIST.header: strategies.LIST})
    check(mod)
    assert_agrees(mod)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(30))
def test_random_functions(seed: int) -> None:
    made = Functional(seed, references=seed % 2 == 1, data=seed % 3 != 0).text(random.Random(seed).randint(2, 14))
    rng = np.random.default_rng(seed)
    args = [(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)]
    assert_agrees(module(made), *args, native=seed < 3)


@pytest.mark.sweep
@pytest.mark.sample(6)
@pytest.mark.parametrize("first", few(range(0, 2000, 40), 0))
def test_random_programs_of_every_construct(first: int) -> None:
    assert_programs_agree(range(first, first + 40))


@pytest.mark.sweep
@pytest.mark.sample(4)
@pytest.mark.parametrize("first", few(range(10_000, 10_100, 5), 10_000))
def test_random_programs_with_compiled_kernels(first: int) -> None:
    assert_programs_agree(range(first, first + 5), native=True)


def test_values_come_and_go() -> None:
    """Lists, cells and closures are given to a program; a closure that comes back can be called and given."""
    text = LISTS + (
        "def @add_to(%n: int32) -> fn (int32) -> int32 { fn (%x: int32) -> int32 { add(%x, %n) } }\n"
        "def @apply(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%x) }\n"
        "def @same(%t: (List[int32], ref(int32))) { %t }\n"
    )
    mod = module(text)
    executable = compile_vm(mod)
    add = executable.call("add_to", (4,))
    assert add(3) == 7 and add(5) == 9
    _, cons, nil = mod.get_type("List")
    tail = ConstructorValue(nil)
    given = ConstructorValue(cons, (np.int32(1), ConstructorValue(cons, (np.int32(2), tail))))
    found, cell = executable.call("same", ((given, RefValue(np.int32(5))),))
    assert [found.fields[0], found.fields[1].fields[0]] == [1, 2] and cell.value == 5


def test_the_limit_of_memory() -> None:
    text = LISTS + "def @main() { @build(100000000, Nil) }"
    executable = compile_vm(module(text), entries=["main"])
    with pytest.raises(RelayError, match="needs more than the 10") as failed:
        executable.call("main", memory_limit=10e6)
    assert failed.value.diagnostics[0].code == "R0408" and failed.value.diagnostics[0].span is not None
    with pytest.raises(RelayError, match="needs more than the 10"):
        executable.call("main", memory_limit=10e6)


def test_a_place_and_the_calls_of_a_failure() -> None:
    text = (
        "def @half(%x: int32, %y: int32) -> int32 { add(1, divide(%x, %y)) }\ndef @main(%x: int32) -> int32 { add(2, @half(%x, 0)) }\n"
    )
    with pytest.raises(RelayError) as failed:
        compile_vm(module(text)).call("main", (4,))
    (found,) = failed.value.diagnostics
    assert found.code == "R0404" and found.title == "divide: division by zero"
    assert found.span is not None and found.span.text == "divide(%x, %y)"
    assert found.notes[0].startswith("in @half at") and found.notes[1].startswith("in @main at")


def test_cycles_of_references_are_let_go() -> None:
    text = PROGRAMS["a reference to a function"][0]
    executable = compile_vm(module(text))
    for _ in range(3):
        assert executable.call("main", (5,)) == 15
    (machine,) = executable.loaded._idle
    assert machine.state()["live"] == machine._fixed
