"""Rows that are written in place: no copy of a tensor whose old value nothing else needs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit, lower_module
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.program import Program, Run, Turns, every
from relaylang.interpreter import Evaluator
from tests.backends.cpu.test_loops import QUICK

T = "Tensor[(64, 8), float32]"
ROW = "Tensor[(1, 8), float32]"
#: Operators that write row %n of %s.
WRITES = {
    "strided_set": 'strided_set(%s, %x, stack((%n, 0), axis=0), stack((add(%n, 1), 8), axis=0), ones(shape=[2], dtype="int32"))',
    "scatter_nd": "scatter_nd(%s, reshape(%n, newshape=[1, 1]), %x)",
    "scatter_elements": "scatter_elements(%s, broadcast_to(%n, shape=[1, 8]), %x, axis=0)",
    "sum": 'scatter_nd(%s, reshape(%n, newshape=[1, 1]), %x, mode="add")',
}


def lowered(text: str) -> Program:
    return lower_module(relay.transform.InferType()(relay.parse(text)), "main", [], GENERIC, None, Calls(unroll=False))


def copies(program: Program) -> list[Any]:
    """The stages that copy an operand, and whose result may lie elsewhere."""
    return [stage for item in every(program.run) if isinstance(item, Run) for stage in item.kernel.stages if stage.copied is not None]


def main(body: str, params: str = "") -> str:
    return f"def @main(%n: int32, %x: {ROW}, %s: {T}{params}) {{ {body} }}"


def check_runs(text: str, args: list[Any]) -> None:
    """The results of separate memory, and of a session, are the interpreter's."""
    mod = relay.transform.InferType()(relay.parse(text))
    wanted = Evaluator(mod).call("main", args)
    artifact = compile_module(mod, QUICK)
    for found, one in zip(artifact.run(*args), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-6)
    session = artifact.session({"s": 0}, s=args[2])
    rest = session.run(*args[:2], *args[3:])
    for found, one in zip(rest if isinstance(rest, tuple) else [rest], wanted[1:], strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-6)
    np.testing.assert_allclose(session.state()["s"], wanted[0], rtol=1e-6)


def arguments(*more: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [np.int32(5), rng.standard_normal((1, 8), np.float32), rng.standard_normal((64, 8), np.float32), *more]


@pytest.mark.parametrize("name", WRITES)
def test_a_row_is_written_into_the_state(name: str) -> None:
    text = main(f"let %t = {WRITES[name]}; (%t, sum(%t, axis=[0]))")
    assert lowered(text).in_place == [(2, 0)]
    # The kernel of the copy runs where the result is other memory alone. No other kernel writes 64 rows.
    c = emit(relay.parse(text), "c", options={"num-threads": 1}, isa="generic")
    (condition,) = re.findall(r"if \(!\((b\[\d+\] == b\[\d+\])\)\) kernel_\w+\(b, 0, \d+\);", c)
    assert len(set(re.findall(r"b\[\d+\]", condition))) == 2
    check_runs(text, arguments())


@pytest.mark.parametrize(
    "body",
    [
        "let %t = WRITE; (%t, add(%s, %s))",  # the old value is needed afterwards
        "let %t = WRITE; (%t, %s)",
        "let %t = WRITE; (%t, subtract(sum(%t, axis=[0]), sum(%s, axis=[0])))",
        "(scatter_nd(%s, reshape(%n, newshape=[1, 1]), strided_slice(%s, begin=[7], end=[8], strides=[1], axes=[0])), %x)",
        '(scatter_elements(%s, cast(less(%s, 0f), dtype="int32"), %s, axis=0), %x)',  # the rows are the tensor itself
        "(exp(WRITE), %x)",
        "let %t = WRITE; (add(%t, %s), %t)",
    ],
)
@pytest.mark.parametrize("name", ["strided_set", "scatter_nd"])
def test_old_values_stay_where_they_are_needed(body: str, name: str) -> None:
    check_runs(main(body.replace("WRITE", WRITES[name])), arguments())


def test_a_chain_is_written_in_one_place() -> None:
    second = WRITES["scatter_nd"].replace("%s", "%t").replace("%n", "%m")
    third = WRITES["scatter_elements"].replace("%s", "%u").replace("%x", "exp(%x)")
    text = main(f"let %t = {WRITES['strided_set']}; let %u = {second}; ({third}, %m)", ", %m: int32")
    program = lowered(text)
    assert len(copies(program)) == 3 and program.in_place == [(2, 0)]
    outputs = {id(s) for item in every(program.run) if isinstance(item, Run) for s in item.outputs if s.shape == (64, 8)}
    assert len(outputs) == 3 and program.arena_bytes < 64 * 8 * 4  # all three lie in the output
    c = emit(relay.parse(text), "c", options={"num-threads": 1}, isa="generic")
    assert len(re.findall(r"if \(!\(b\[\d+\] == b\[\d+\]\)\)", c)) == 1
    check_runs(text, arguments(np.int32(6)))
    check_runs(text, arguments(np.int32(5)))
    kept = compile_module(relay.parse(text), "c -keep-values")
    for found, one in zip(
        kept.run(*arguments(np.int32(6))), Evaluator(relay.parse(text)).call("main", arguments(np.int32(6))), strict=True
    ):
        np.testing.assert_allclose(found, one, rtol=1e-6)


def test_elements_are_written_where_they_are_read() -> None:
    text = main("(where(equal(%s, 0f), %s, tanh(%s)), %n)")
    assert lowered(text).in_place == [(2, 0)]
    check_runs(text, arguments())


def test_states_of_a_loop_stay_in_place() -> None:
    rows = "Tensor[(64, 8), float32]"
    text = f"""
def @loop(%i: int32, %s: {rows}, %x: {ROW}, %y: {ROW}) -> ({rows}, {ROW}, {ROW}) {{
  if (less(%i, 40)) {{
    let %t = scatter_nd(%s, reshape(%i, newshape=[1, 1]), %x);
    @loop(add(%i, 1), %t, %y, add(%x, max(%t, axis=[0], keepdims=True)))
  }} else {{ (%s, %x, %y) }}
}}
def @main(%n: int32, %x: {ROW}, %s: {T}) {{ let %r = @loop(3, %s, %x, %x); (%r.0, %r.1, %r.2, %n) }}"""
    program = lowered(text)
    (loop,) = [item for item in program.run if isinstance(item, Turns)]
    assert loop.in_place == {0}
    assert loop.work.shape[0] < 64 * 8 * 4  # two places of the rows alone
    mod = relay.transform.InferType()(relay.parse(text))
    for found, one in zip(compile_module(mod, QUICK).run(*arguments()), Evaluator(mod).call("main", arguments()), strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    """Writes and sums of earlier values in any order: in a session and outside, they are the interpreter's."""
    rng = np.random.default_rng(seed)
    lines, names = [], ["%s"]
    for number in range(8):
        source = names[-1] if rng.random() < 0.7 else str(rng.choice(names))
        other = str(rng.choice(names))
        rows = ["%x", f"strided_slice({other}, begin=[3], end=[4], strides=[1], axes=[0])"][int(rng.integers(2))]
        kind = str(rng.choice([*WRITES, "add"]))
        value = f"add({source}, {other})" if kind == "add" else WRITES[kind].replace("%s", source).replace("%x", rows)
        lines.append(f"let %v{number} = {value.replace('%n', 'add(%n, ' + str(rng.integers(4)) + ')')};")
        names.append(f"%v{number}")
    results = [names[-1], *rng.choice(names[:-1], 2)]
    check_runs(main(" ".join([*lines, f"({', '.join(results)})"])), arguments())
