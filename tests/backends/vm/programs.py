"""Programs of each construct of the language: name -> the text, with `@main`, and its arguments."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

LISTS = """
type List[A] { Cons(A, List[A]), Nil }
def @build(%n: int32, %l: List[int32]) -> List[int32] {
  if (less(%n, 1)) { %l } else { @build(subtract(%n, 1), Cons(%n, %l)) }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {
  match (%l) { Cons(%h, %t) => @foldl(%f, %f(%a, %h), %t), Nil => %a }
}
"""
TENSOR = np.arange(6, dtype="float32").reshape(2, 3)

PROGRAMS: dict[str, tuple[Any, ...]] = {
    "loop": (
        """
def @loop(%i: int32, %a: int64) -> int64 {
  if (less(%i, 1)) { %a } else { @loop(subtract(%i, 1), add(%a, cast(%i, dtype="int64"))) } }
def @main(%n: int32) -> int64 { @loop(%n, 0i64) }
""",
        1000,
    ),
    "mutual recursion": (
        """
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @main(%n: int32) -> bool { @even(%n) }
""",
        101,
    ),
    "list": (
        LISTS
        + """
def @main(%n: int32) { @map(fn (%x: int32) -> (int32, bool) { (multiply(%x, 3), less(%x, 5)) },
  @build(%n, Nil)) }
""",
        9,
    ),
    "fold": (
        LISTS
        + """
def @main(%n: int32, %x: Tensor[(2, 3), float32]) {
  @foldl(fn (%a: Tensor[(2, 3), float32], %b: int32) -> Tensor[(2, 3), float32] {
    add(%a, multiply(%x, cast(%b, dtype="float32"))) }, %x, @build(%n, Nil)) }
""",
        4,
        TENSOR,
    ),
    "constructors as functions": (
        LISTS
        + """
type Box { Boxed(int32) }
def @main() { @map(Boxed, @build(3, Nil)) }
""",
    ),
    "functions as values": (
        """
def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @more(%x: int32) -> int32 { add(%x, 3) }
def @main() { @twice(@more, 4) }
""",
    ),
    "closures": (
        """
def @main(%n: int32) { let %f = fn (%x: int32) -> fn (int32) -> int32 {
  fn (%y: int32) -> int32 { add(multiply(%x, %n), %y) } };
  let %g = %f(2); (%g(1), %g(%n), %f(3)(4)) }
""",
        7,
    ),
    "a closure that calls itself": (
        """
def @main(%n: int32) { let %go = fn (%i: int32, %a: int32) -> int32 {
  if (less(%i, 1)) { %a } else { %go(subtract(%i, 1), add(%a, %n)) } };
  %go(%n, 0) }
""",
        10,
    ),
    "an inner function that calls the outer one": (
        """
def @main(%n: int32) { let %f = fn (%i: int32) -> int32 { let %g = fn (%j: int32) -> int32 {
  if (less(%j, 1)) { 0 } else { add(%j, %f(subtract(%j, 1))) } }; %g(%i) }; %f(%n) }
""",
        6,
    ),
    "polymorphic recursion": (
        """
def @deep[A](%n: int32, %x: A) -> int32 {
  if (less(%n, 1)) { 0 } else { add(1, @deep(subtract(%n, 1), (%x, %x))) } }
def @main(%n: int32) { @deep(%n, 1f) }
""",
        8,
    ),
    "references": (
        """
def @main(%n: int32) { let %r = ref(%n); let %s = %r; ref_write(%s, add(ref_read(%r), 1));
  (ref_read(%r), ref_read(%s), %r) }
""",
        3,
    ),
    "a reference to a function": (
        """
def @main(%n: int32) { let %r = ref(fn (%x: int32) -> int32 { %x });
  let %f = fn (%x: int32) -> int32 { if (less(%x, 1)) { 0 } else {
    let %g = ref_read(%r); add(%x, %g(subtract(%x, 1))) } };
  ref_write(%r, %f); %f(%n) }
""",
        5,
    ),
    "tuples": (
        """
def @main(%x: Tensor[(2, 3), float32], %t: (int32, (float32, bool))) {
  let %u = (%t, add(%x, %t.1.0)); ((%u.1, %u.0.1), (), %u) }
""",
        TENSOR,
        (4, (2.5, True)),
    ),
    "a tuple that is held and returned": (
        """
def @main(%x: int32, %c: bool) { let %t = (%x, %c);
  let %u = if (%c) { let %f = fn () -> int32 { let %v = %t; match (%v) { (%a, _) => %a } }; let %y = %f(); %t } else { %t };
  (%u.0, %u.1) }
""",
        4,
        True,
    ),
    "nested patterns": (
        """
type T { Leaf(int32), Node(T, T) }
def @sum(%t: T) -> int32 { match (%t) { Node(Leaf(%a), Leaf(%b)) => multiply(%a, %b),
  Node(Node(%p, _), %q) => add(@sum(%p), @sum(%q)), Node(%p, %q) => subtract(@sum(%p), @sum(%q)),
  Leaf(%a) => %a } }
def @main() { (@sum(Node(Node(Node(Leaf(2), Leaf(3)), Leaf(9)), Node(Leaf(4), Leaf(5)))),
  @sum(Node(Leaf(7), Node(Leaf(2), Leaf(2))))) }
""",
    ),
    "a pattern of tuples": (
        """
def @main(%t: (int32, (float32, bool))) { match (%t) { (%a, (_, %b)) => (%b, add(%a, 1)) } }
""",
        (1, (2.0, False)),
    ),
    "no clause fits": (
        LISTS
        + """
def @main() { match? (@build(2, Nil)) { Nil => 1 } }
""",
    ),
    "branches on tensors": (
        """
def @main(%x: Tensor[(2, 3), float32]) { let %y = tanh(%x);
  let %z = if (less(sum(%y), 10f)) { add(%y, 1f) } else { negative(%y) };
  (multiply(%z, %y), concatenate((%z, %y), axis=1), split(%z, indices_or_sections=3, axis=1).1) }
""",
        TENSOR,
    ),
    "views": (
        """
def @main(%x: Tensor[(2, 3), float32], %c: bool) {
  let %y = if (%c) { reshape(%x, newshape=[3, 2]) } else { zeros(shape=[3, 2], dtype="float32") };
  expand_dims(%y, axis=0) }
""",
        TENSOR,
        True,
    ),
    "small elements": (
        """
def @main(%x: float16, %y: bfloat16, %z: int8) { (add(%x, %x), multiply(%y, %y), add(%z, %z)) }
""",
        np.float16(1.5),
        ml_dtypes.bfloat16(3),
        np.int8(100),
    ),
    "unknown extents": (
        """
def @main(%x: Tensor[(?, 3), float32]) { let %y = add(%x, 1f);
  (%y, shape_of(%y, dtype="int64"), argwhere(less(%y, 4f))) }
""",
        TENSOR,
    ),
}
