"""Writes behind a tensor's end: each target gives the interpreter's error, and runs again afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.aot import compile_aot
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import Evaluator
from relaylang.ir import IRModule
from relaylang.runtime.artifact import load
from tests.backends.vm.agree import outcome

QUICK = "c -num-threads=1 -cflags=-O1"
TARGETS: dict[str, Callable[[IRModule], Callable[..., Any]]] = {
    "interpreter": lambda mod: lambda *args: Evaluator(mod).call("main", args),
    "c": lambda mod: compile_module(mod, QUICK).run,  # type: ignore[attr-defined]
    "threads": lambda mod: compile_module(mod, "c -num-threads=2 -cflags=-O1").run,  # type: ignore[attr-defined]
    "vm": lambda mod: compile_vm(mod, QUICK).run,
    "aot": lambda mod: compile_aot(mod, "c -cflags=-O1").run,
    "static aot": lambda mod: compile_aot(mod, "c -cflags=-O1", static_memory=True).run,
    "bare metal": lambda mod: compile_bare_metal(mod, "c -cflags=-O1").run,
}
C, X, N = "%c: Tensor[(4, 3), float32]", "%x: Tensor[(1, 3), float32]", "%n: int32"
SLICE = "strided_set(%c, %s, stack((N, 0), axis=0), stack((add(N, 1), 3), axis=0), stack((1, 1), axis=0))"
#: A write of a row at `N`, and the words about row 5.
WRITES = {
    "strided_set": (SLICE, "strided_set: the slice from 5 of an axis of extent 4 has 0 elements, the new value 1"),
    "scatter_nd": ("scatter_nd(%c, reshape(N, newshape=[1, 1]), %s)", "scatter_nd: the index 5 is outside an axis of extent 4"),
    "scatter_elements": (
        "scatter_elements(%c, broadcast_to(N, shape=[1, 3]), %s, axis=0)",
        "scatter_elements: the index 5 is outside an axis of extent 4",
    ),
}
#: Programs around the write: alone, fused, in a loop with a known number of turns, and in one whose end an input gives.
PROGRAMS = {
    "alone": f"def @main({C}, {X}, {N}) {{ let %s = tanh(%x);\n  WRITE }}",
    "fused": f"def @main({C}, {X}, {N}) {{ let %s = tanh(%x);\n let %d =\n WRITE;\n (exp(%d), add(%d, %d)) }}",
    "turns": f"""def @f(%i: int32, {C}, %s: Tensor[(1, 3), float32], %n: int32) -> Tensor[(4, 3), float32] {{
  if (less(%i, 4)) {{ let %d =
    WRITE;
    @f(add(%i, 1), %d, %s, %n) }} else {{ %c }} }}
def @main({C}, {X}, {N}) {{ @f(0, %c, %x, %n) }}""",
    "loop": f"""def @f(%i: int32, {C}, %s: Tensor[(1, 3), float32]) -> Tensor[(4, 3), float32] {{
  if (less(%i, 6)) {{ let %d =
    WRITE;
    @f(add(%i, 1), %d, tanh(%s)) }} else {{ %c }} }}
def @main({C}, {X}, {N}) {{ @f(%n, %c, %x) }}""",
}


def module(program: str, write: str) -> IRModule:
    number = "%i" if program == "loop" else "%n"
    return relay.transform.InferType()(relay.parse(PROGRAMS[program].replace("WRITE", write.replace("N", number)), "cache.relay"))


def arguments(row: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((4, 3), np.float32), rng.standard_normal((1, 3), np.float32), np.asarray(row, "int32")]


def parts(value: Any) -> list[np.ndarray]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def refused(run: Callable[..., Any], *args: Any) -> Any:
    with pytest.raises(RelayError) as wrong:
        run(*args)
    (said,) = wrong.value.diagnostics
    return said


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_write_behind_the_end_is_an_error(target: str, name: str, program: str) -> None:
    write, words = WRITES[name]
    mod = module(program, write)
    run = TARGETS[target](mod)
    said = refused(run, *arguments(3 if program == "loop" else 5))
    assert (said.code, said.title) == ("R0404", words if program != "loop" else words.replace("5", "4"))
    span = said.labels[0].span
    assert span is not None and span.source.name == "cache.relay" and span.text.startswith(name)
    assert span.line == relay_line(program)
    wanted = Evaluator(mod).call("main", arguments(2 if program != "loop" else 6))
    for ours, theirs in zip(parts(run(*arguments(2 if program != "loop" else 6))), parts(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def relay_line(program: str) -> int:
    return PROGRAMS[program][: PROGRAMS[program].index("WRITE")].count("\n") + 1


def vm_session(mod: IRModule, **initial: Any) -> Any:
    return compile_vm(mod, QUICK).session({"c": 0}, **initial)


def c_session(mod: IRModule, **initial: Any) -> Any:
    return compile_module(mod, QUICK).session({"c": 0}, **initial)  # type: ignore[attr-defined]


@pytest.mark.parametrize("begin", [c_session, vm_session])
@pytest.mark.parametrize("name", WRITES)
def test_a_full_cache_leaves_the_session_as_it_was(begin: Callable[..., Any], name: str) -> None:
    text = f"def @main({C}, {X}, {N}) {{ let %s = tanh(%x);\n let %d = WRITE; (%d, sum(%d, axis=[0])) }}"
    mod = relay.transform.InferType()(relay.parse(text.replace("WRITE", WRITES[name][0].replace("N", "%n")), "cache.relay"))
    session = begin(mod)
    x = np.ones((1, 3), "float32")
    for row in range(4):
        session.run(x * row, np.asarray(row, "int32"))
    before = session.state()["c"]
    np.testing.assert_allclose(before, np.tanh(np.arange(4, dtype="float32"))[:, None] * np.ones((1, 3)), rtol=1e-5)
    for _ in range(2):
        assert refused(session.run, x, np.asarray(4, "int32")).title == WRITES[name][1].replace("5", "4")
        np.testing.assert_array_equal(session.state()["c"], before)
    np.testing.assert_allclose(session.run(x, np.asarray(0, "int32")), before.sum(axis=0) + np.tanh(1), rtol=1e-5)


@pytest.mark.parametrize("name", WRITES)
def test_rows_of_named_extents(name: str) -> None:
    write = WRITES[name][0].replace("N", "%n")
    text = f"def @main[k](%c: Tensor[(k, 3), float32], {X}, {N}) {{ let %s = tanh(%x);\n  WRITE }}".replace("WRITE", write)
    mod = relay.transform.InferType()(relay.parse(text, "cache.relay"))
    program = compile_vm(mod, QUICK)
    for extent in (4, 2, 7):
        args = [np.zeros((extent, 3), "float32"), np.ones((1, 3), "float32"), np.asarray(5, "int32")]
        if extent == 7:
            np.testing.assert_allclose(program.run(*args), Evaluator(mod).call("main", args), rtol=1e-6)
            continue
        said = refused(program.run, *args)
        assert (said.title, said.labels[0].span.line) == (WRITES[name][1].replace("extent 4", f"extent {extent}"), 2)
    assert program.fallbacks() == []


def test_equal_kernels_keep_their_lines() -> None:
    """A loop's two writes are one kernel. Each call has its own place, also in a file."""
    text = f"""def @f(%i: int32, {C}, %n: int32, %m: int32) -> Tensor[(4, 3), float32] {{
  if (less(%i, 2)) {{
    let %s = ones(shape=[1, 3], dtype="float32");
    let %c1 = scatter_nd(%c, reshape(%n, newshape=[1, 1]), %s);
    let %k = max(%c1);
    let %c2 = if (greater(%k, 100f)) {{ %c }} else {{
      scatter_nd(%c1, reshape(%m, newshape=[1, 1]), %s) }};
    @f(add(%i, 1), %c2, %n, %m) }} else {{ %c }} }}
def @main({C}, %n: int32, %m: int32, %i: int32) {{ @f(%i, %c, %n, %m) }}"""
    mod = relay.transform.InferType()(relay.parse(text, "cache.relay"))
    for name in ("c", "vm", "aot", "interpreter"):
        run = TARGETS[name](mod)
        for rows, line in (((7, 1), 4), ((1, 7), 7)):
            args = [np.zeros((4, 3), "float32"), *(np.asarray(n, "int32") for n in (*rows, 0))]
            said = refused(run, *args)
            assert (said.title, said.labels[0].span.line) == ("scatter_nd: the index 7 is outside an axis of extent 4", line), name


@pytest.mark.parametrize("compiler", [compile_module, compile_vm])
def test_files_keep_the_places(tmp_path: Path, compiler: Callable[..., Any]) -> None:
    mod = module("fused", WRITES["scatter_nd"][0])
    compiler(mod, QUICK).save(tmp_path / "program.tar")
    said = refused(load(tmp_path / "program.tar").run, *arguments(5))
    assert said.title == WRITES["scatter_nd"][1]
    assert said.labels[0].span.line == relay_line("fused") and said.labels[0].span.text.startswith("scatter_nd(")


def test_constants_fail_when_the_program_runs() -> None:
    text = """def @main(%x: Tensor[(4, 3), float32], %w: Tensor[(4, 3), float32], %at: Tensor[(1, 2), int64]) {
  add(%x, scatter_nd(%w, %at, ones(shape=[2, 3], dtype="float32"))) }"""
    mod = relay.transform.InferType()(relay.parse(text))
    x, w = np.zeros((4, 3), "float32"), np.ones((4, 3), "float32")
    program = compile_module(mod, QUICK, params={"w": w, "at": np.array([[0, 4]])})
    assert refused(program.run, x).title == "scatter_nd: the index 4 is outside an axis of extent 4"  # type: ignore[attr-defined]
    program.set_params({"at": np.array([[0, 3]])})  # type: ignore[attr-defined]
    np.testing.assert_array_equal(program.run(x), w)  # type: ignore[attr-defined]


def test_slices_of_all_kinds() -> None:
    """Begins, ends and strides of any sign: the interpreter's values, or its words."""
    text = """def @main(%c: Tensor[(5, 4), int32], %v: Tensor[(2, 4), int32],
  %b: Tensor[(1), int64], %e: Tensor[(1), int64], %s: Tensor[(1), int64]) { strided_set(%c, %v, %b, %e, %s) }"""
    mod = relay.transform.InferType()(relay.parse(text))
    programs = [compile_module(mod, QUICK).run, compile_vm(mod, QUICK).run]  # type: ignore[attr-defined]
    evaluator = Evaluator(mod)
    c, v = np.arange(20, dtype="int32").reshape(5, 4), -np.ones((2, 4), "int32")
    kinds = set()
    for begin in range(-7, 8, 2):
        for end in range(-7, 9):
            for step in (-2, -1, 0, 1, 3):
                args = [c, v, *(np.array([n]) for n in (begin, end, step))]
                wanted, failure = outcome(lambda args=args: evaluator.call("main", args))
                kinds.add(failure and failure[1].split()[1])
                for run in programs:
                    got, found = outcome(lambda run=run, args=args: run(*args))
                    assert (found and found[:2]) == (failure and failure[:2]), args[2:]
                    if failure is None:
                        np.testing.assert_array_equal(got, wanted)
    assert kinds == {None, "the", "a"}


def test_memory_that_no_machine_has_names_the_kernel() -> None:
    text = """def @main(%x: Tensor[(5000000, 1), float32], %y: Tensor[(5000000, 1), float32]) {
  let %z = nn.dense(%x, %y, units=None);
  sum(cumsum(%z, axis=0)) }"""
    said = refused(compile_module, relay.transform.InferType()(relay.parse(text)), QUICK)
    assert said.code == "R0408" and "bytes are needed" in said.title
    assert said.labels[0].span.line in (2, 3) and said.notes[0].startswith("most is in use at ")
