"""Sessions: states that stay from run to run, on the CPU, on the VM and from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load

#: A cache of rows in place, a sum that is computed anew, and two states that change places.
TEXT = """
def @main(%x: Tensor[(3), float32], %n: int32, %rows: Tensor[(4, 3), float32], %a: Tensor[(3), float32],
          %b: Tensor[(3), float32], %w: Tensor[(3), float32]) {
  let %begin = concatenate((expand_dims(%n, axis=0), zeros(shape=[1], dtype="int32")));
  let %end = concatenate((expand_dims(%n + 1, axis=0), full(3, shape=[1], dtype="int32")));
  let %next = strided_set(%rows, expand_dims(%x * %w, axis=0), %begin, %end, ones(shape=[2], dtype="int32"));
  (sum(%next, axis=[0]), %next, %b, reverse(%a, axis=0) + %x, %n)
}
"""
STATE = {"rows": 1, "a": 2, "b": 3}
W = np.array([1, 2, 3], np.float32)
KINDS: dict[str, Any] = {"c": lambda mod: compile_module(mod, "c", params={"w": W}), "vm": compile_vm}


def steps(session: Any, count: int, **more: Any) -> list[list[np.ndarray]]:
    """The results of runs, and the states afterwards."""
    found = []
    for n in range(count):
        results = session.run(x=np.arange(3, dtype=np.float32) + n, n=np.int32(n % 4), **more)
        found.append([*results, *session.state().values()])
    return found


def expected(count: int, rows: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[list[np.ndarray]]:
    found = []
    for n in range(count):
        x = np.arange(3, dtype=np.float32) + n
        rows = rows.copy()
        rows[n % 4] = x * W
        a, b = b, a[::-1] + x
        found.append([rows.sum(0), np.int32(n % 4), rows, a, b])
    return found


def same(found: list[list[np.ndarray]], wanted: list[list[np.ndarray]]) -> None:
    for one, other in zip(found, wanted, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
def test_states_take_the_values_of_results(kind: str) -> None:
    more = {} if kind == "c" else {"w": W}
    session = KINDS[kind](relay.parse(TEXT)).session(STATE)
    zeros = [np.zeros((4, 3), np.float32), *np.zeros((2, 3), np.float32)]
    same(steps(session, 6, **more), expected(6, *zeros))
    session.reset()
    same(steps(session, 3, **more), expected(3, *zeros))
    first = np.arange(12, dtype=np.float32).reshape(4, 3)
    session.reset(rows=first, b=first[1])
    same(steps(session, 3, **more), expected(3, first, zeros[1], first[1]))
    saved = session.state()
    before = steps(session, 2, **more)
    session.reset(**saved)
    same(steps(session, 2, **more), before)
    assert first[0, 0] == 0  # the caller's array is as it was


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_of_files(kind: str, tmp_path: Path) -> None:
    artifact = KINDS[kind](relay.parse(TEXT))
    artifact.save(tmp_path / "saved")
    first = np.ones((4, 3), np.float32)
    more = {} if kind == "c" else {"w": W}
    sessions = [a.session(STATE, rows=first, a=W) for a in (artifact, load(tmp_path / "saved"))]
    one, other = (steps(session, 5, **more) for session in sessions)
    same(one, other)
    same(one, expected(5, first, W, np.zeros(3, np.float32)))


def test_one_result_is_returned_alone() -> None:
    text = "def @main(%x: float32, %s: float32) { (%s + %x, %s * 2f) }"
    session = compile_module(relay.parse(text), "c").session({"s": 0}, s=np.float32(1))
    assert [float(session.run(np.float32(n))) for n in range(3)] == [2.0, 2.0, 4.0]
    only = compile_module(relay.parse("def @main(%x: float32, %s: float32) { %s + %x }"), "c").session({"s": 0})
    assert only.run(np.float32(2)) == only.run(x=3.0) == () and only.state() == {"s": 5.0}


def test_open_extents_on_the_vm() -> None:
    text = "def @main(%x: Tensor[(?, 2), float32], %s: Tensor[(?, 2), float32]) { (sum(%s), concatenate((%s, %x))) }"
    program = compile_vm(relay.parse(text))
    with pytest.raises(RelayError, match="the state s has no zeros"):
        program.session({"s": 1})
    session = program.session({"s": 1}, s=np.zeros((0, 2), np.float32))
    for n in range(3):
        session.run(np.full((1, 2), n, np.float32))
    np.testing.assert_array_equal(session.state()["s"], [[0, 0], [1, 1], [2, 2]])


@pytest.mark.parametrize(
    ("state", "initial", "message"),
    [
        ({"row": 1}, {}, "has no input row.*did you mean rows"),
        ({"w": 1}, {}, "has no input w.*since the compilation"),
        ({"rows": 5}, {}, "no result 5.*0 to 4"),
        ({"rows": -1}, {}, "no result -1"),
        ({"rows": True}, {}, "no result True"),
        ({"rows": "1"}, {}, "no result '1'"),
        ({"rows": 2}, {}, r"rows is Tensor\[\(4, 3\), float32\], but the result 2 is Tensor\[\(3\), float32\]"),
        ({"a": 2, "b": 2}, {}, "the result 2 is the next value of a and of b"),
        ({"a": 2}, {"b": W}, "the session has no state b"),
        ({"a": 2}, {"a": W[:2]}, r"the input a is Tensor\[\(2\), float32\]"),
    ],
)
def test_what_does_not_fit(state: Any, initial: Any, message: str) -> None:
    artifact = compile_module(relay.parse(TEXT), "c", params={"w": W})
    with pytest.raises(RelayError) as raised:
        artifact.session(state, **initial)
    found = raised.value.diagnostics[0]
    assert found.code == "R0640"
    assert re.search(message, " ".join([found.title, *map(str, found.notes)]))


def test_inputs_of_a_run() -> None:
    session = compile_module(relay.parse(TEXT), "c", params={"w": W}).session(STATE)
    for named, message in (
        ({"x": W}, "no value is given for the input n"),
        ({"x": W, "n": np.int32(0), "rows": W}, "has no input rows"),
    ):
        with pytest.raises(RelayError, match=message):
            session.run(**named)
    with pytest.raises(RelayError, match="the program takes 2"):
        session.run(W, np.int32(0), W)
    assert not session.state()["rows"].any()
    session.run(W, np.int32(0))


def test_a_tuple_is_no_state() -> None:
    text = "def @main(%x: Tensor[(2), float32], %p: (Tensor[(2), float32], int32)) { (%x, (%p.0, %p.1), %p.0 + %x) }"
    artifact = compile_module(relay.parse(text), "c")
    with pytest.raises(RelayError, match="the state p must be a tensor"):
        artifact.session({"p": 1})
    with pytest.raises(RelayError, match="but the result 1 is"):
        artifact.session({"x": 1})
    x = np.ones(2, np.float32)
    results = artifact.session({"x": 2}).run(p=(x, np.int32(4)))
    np.testing.assert_array_equal(results[0], [0, 0])
    assert results[1][1] == 4
