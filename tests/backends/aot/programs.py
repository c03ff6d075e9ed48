"""Programs of branches and loops: name -> the text, and its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.backends.vm import programs as vm

T = "Tensor[(2, 3), float32]"
X, Y = (np.random.default_rng(n).standard_normal((2, 3)).astype("f4") for n in range(2))

#: The VM's programs that C cannot have, and a part of the reason.
REFUSED = {
    **dict.fromkeys(("list", "fold", "constructors as functions", "nested patterns", "no clause fits"), "type definition"),
    **dict.fromkeys(("references", "a reference to a function"), "a reference needs memory"),
    "an inner function that calls the outer one": "the recursion of %f is no loop",
    "polymorphic recursion": "values that grow in each turn",
}

PROGRAMS: dict[str, tuple[Any, ...]] = {
    **{name: program for name, program in vm.PROGRAMS.items() if name not in REFUSED and name != "unknown extents"},
    "loop-carried tensors change places": (
        f"""
def @loop(%i: int32, %a: {T}, %b: {T}) -> ({T}, {T}) {{
  if (less(%i, 1)) {{ (%a, %b) }} else {{ @loop(subtract(%i, 1), add(%b, 1f), %a) }} }}
def @main(%n: int32, %x: {T}, %y: {T}) {{ @loop(%n, %x, %y) }}
""",
        5,
        X,
        Y,
    ),
    "several ways round a loop": (
        f"""
def @loop(%i: int32, %a: {T}, %b: {T}) -> {T} {{
  if (less(%i, 1)) {{ %a }} else {{ if (less(%i, 5)) {{ @loop(subtract(%i, 1), add(%a, %b), %b) }}
  else {{ let %c = multiply(%b, 2f); if (equal(%i, 7)) {{ @loop(subtract(%i, 1), %c, %c) }}
  else {{ @loop(subtract(%i, 1), tanh(%c), %a) }} }} }} }}
def @main(%n: int32, %x: {T}) {{ let %l = @loop(%n, %x, %x); (%l, %n, nn.relu(%l)) }}
""",
        9,
        X,
    ),
    "loops that call each other": (
        f"""
def @up(%i: int32, %x: {T}) -> {T} {{
  if (less(%i, 1)) {{ %x }} else {{ @down(subtract(%i, 1), %i, add(%x, 1f)) }} }}
def @down(%i: int32, %k: int32, %x: {T}) -> {T} {{
  if (less(%i, 1)) {{ negative(%x) }} else {{ @up(subtract(%i, 1), multiply(%x, cast(%k, dtype="float32"))) }} }}
def @main(%n: int32, %x: {T}) {{ (@up(%n, %x), @down(%n, 3, %x), @up(4, %x)) }}
""",
        5,
        X,
    ),
    "a loop in a loop": (
        f"""
def @inner(%i: int32, %x: {T}) -> {T} {{
  if (less(%i, 1)) {{ %x }} else {{ @inner(subtract(%i, 1), multiply(%x, 0.5f)) }} }}
def @outer(%i: int32, %x: {T}) -> {T} {{
  if (less(%i, 1)) {{ %x }} else {{ @outer(subtract(%i, 1), add(@inner(%i, %x), %x)) }} }}
def @main(%n: int32, %x: {T}) {{ @outer(%n, %x) }}
""",
        4,
        X,
    ),
    "a value that outlives a branch": (
        f"""
def @go(%i: int32, %x: {T}) -> {T} {{ if (less(%i, 1)) {{ %x }} else {{ @go(subtract(%i, 1), add(%x, 1f)) }} }}
def @main(%n: int32, %x: {T}) {{
  let %a = @go(%n, %x); let %b = @go(2, %a);
  let %c = if (less(%n, 3)) {{ %a }} else {{ if (less(%n, 9)) {{ %b }} else {{ %x }} }};
  let %d = if (less(3, %n)) {{ %c }} else {{ %b }};
  (%a, %b, %c, %d, %c) }}
""",
        4,
        X,
    ),
    "a while loop of relay.loops": (
        f"""
def @main(%n: int32, %x: {T}) {{
  let %while_loop = fn (%i: int32, %s: {T}) -> (int32, {T}) {{
    if (less(%i, %n)) {{ %while_loop(add(%i, 1), add(%s, multiply(%x, cast(%i, dtype="float32")))) }} else {{ (%i, %s) }} }};
  let %r = %while_loop(0, zeros(shape=[2, 3], dtype="float32"));
  (%r.1, %r.0) }}
""",
        6,
        X,
    ),
    "one function for several types": (
        f"""
def @last[A](%n: int32, %a: A, %b: A) -> A {{ if (less(%n, 1)) {{ %a }} else {{ @last(subtract(%n, 1), %b, %a) }} }}
def @main(%n: int32, %x: {T}, %y: {T}) {{
  (@last(%n, %x, %y), @last(%n, 1i64, 2i64), @last(%n, (%x, 1f), (%y, 2f)).0) }}
""",
        3,
        X,
        Y,
    ),
    "a division by zero": (
        """
def @loop(%i: int32, %a: int32) -> int32 { if (less(%i, -1)) { %a } else { @loop(subtract(%i, 1), divide(%a, %i)) } }
def @main(%n: int32) { @loop(%n, 100) }
""",
        3,
    ),
    "weights": (
        """
def @loop(%i: int32, %h: Tensor[(1, 8), float32]) -> Tensor[(1, 8), float32] {
  if (less(%i, 1)) { %h } else {
    @loop(subtract(%i, 1), tanh(nn.dense(%h, multiply(ones(shape=[8, 8], dtype="float32"), 0.1f), units=8))) } }
def @main(%n: int32, %h: Tensor[(1, 8), float32]) { @loop(%n, %h) }
""",
        3,
        np.linspace(-1, 1, 8, dtype="f4").reshape(1, 8),
    ),
    "names": (
        """
def @loop(%i: int32, %a: float32) -> float32 { if (less(%i, 1)) { %a } else { @loop(subtract(%i, 1), multiply(%a, %a)) } }
def @main(%class: int32, %int: (float32, float32), %x: float16) { (@loop(%class, %int.1), %x, True) }
""",
        2,
        (1.5, 0.5),
        np.float16(3),
    ),
    "nothing goes in": (
        """
def @loop(%i: int64, %a: uint8) -> uint8 { if (less(%i, 1i64)) { %a } else { @loop(subtract(%i, 1i64), add(%a, %a)) } }
def @main() { @loop(3i64, 5u8) }
""",
    ),
}
