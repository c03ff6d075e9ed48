"""Functions, definitions, matches and references: their types, and the errors in them."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import Call, Function, IRModule, Let, TensorType, Tuple, Var, const, rewrite, var
from relaylang.ops import get
from relaylang.syntax import parse
from relaylang.typing import InferType, check, infer, type_of

HEADER = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


def read(text: str) -> IRModule:
    module = parse(HEADER + text, "t").module
    assert isinstance(module, IRModule)
    return module


def said(text: str) -> list[Diagnostic]:
    return infer(read(text))


def main_type(text: str) -> str:
    module = read(text)
    diagnostics = infer(module)
    assert not diagnostics, [str(d) for d in diagnostics]
    return repr(module["main"].checked_type)


def test_recursion_without_annotation() -> None:
    text = """def @loop(%i: int32) { if (equal(%i, 0)) { 1f } else { @loop(subtract(%i, 1)) } }
    def @main() { @loop(3) }"""
    assert main_type(text) == "fn () -> float32"


def test_mutual_recursion_in_any_order() -> None:
    text = """def @main(%i: int32) { @even(%i) }
    def @even(%i: int32) { if (equal(%i, 0)) { True } else { @odd(subtract(%i, 1)) } }
    def @odd(%i: int32) { if (equal(%i, 0)) { False } else { @even(subtract(%i, 1)) } }"""
    assert main_type(text) == "fn (int32) -> bool"


def test_local_recursion() -> None:
    text = """def @main(%n: int32) {
      let %f = fn (%i: int32) { if (less(%i, 1)) { 0f } else { %f(subtract(%i, 1)) } };
      %f(%n) }"""
    assert main_type(text) == "fn (int32) -> float32"


def test_polymorphic_functions_and_types() -> None:
    text = (
        LIST
        + """
    def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
      match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil }, } }
    def @main(%x: Tensor[(2), float32]) {
      (@map(fn (%y: Tensor[(2), float32]) { sum(%y) }, Cons(%x, Nil)), @map(fn (%z: int32) { %z }, Cons(1, Nil))) }"""
    )
    assert main_type(text) == "fn (Tensor[(2), float32]) -> (List[float32], List[int32])"


def test_polymorphic_function_as_argument() -> None:
    text = """def @id[A](%x: A) -> A { %x }
    def @twice(%f: fn (int32) -> int32, %x: int32) { %f(%f(%x)) }
    def @main() { @twice(@id, 1) }"""
    assert main_type(text) == "fn () -> int32"


def test_parameters_are_inferred_from_use() -> None:
    text = """def @f(%a, %b) { nn.conv2d(%a, %b, kernel_size=[3, 3], channels=8) }
    def @main(%x: Tensor[(1, 4, 8, 8), float32], %w) { @f(%x, %w) }"""
    assert main_type(text) == ("fn (Tensor[(1, 4, 8, 8), float32], Tensor[(8, 4, 3, 3), float32]) -> Tensor[(1, 8, 6, 6), float32]")


def test_branches_join_unknown_extents() -> None:
    text = """def @main(%c: bool, %x: Tensor[(2, 3), float32], %y: Tensor[(2, ?), float32]) {
      if (%c) { (%x, 1) } else { (%y, 2) } }"""
    assert main_type(text).endswith("-> (Tensor[(2, ?), float32], int32)")


def test_references() -> None:
    text = """def @main(%x: float32) { let %r = ref(%x); let %u = ref_write(%r, 2f); (%u, ref_read(%r), %r) }"""
    assert main_type(text) == "fn (float32) -> ((), float32, ref(float32))"


def test_open_list_takes_its_element_from_use() -> None:
    text = LIST + "def @main() { let %l = Nil; Cons(1f, %l) }"
    assert main_type(text) == "fn () -> List[float32]"


def one_error(text: str, code: str, *words: str) -> Diagnostic:
    diagnostics = said(text)
    assert [d.code for d in diagnostics] == [code], [str(d) for d in diagnostics]
    shown = str(diagnostics[0])
    assert diagnostics[0].span is not None
    for word in words:
        assert word in shown
    return diagnostics[0]


def test_types_are_told_apart_by_name() -> None:
    text = """type Numbers { Empty, Single(int32), }
    type Numbers2 { Empty2, Single2(int32), }
    def @sum(%n: Numbers[]) -> int32 { match (%n) { Empty => { 0 }, Single(%x) => { %x }, } }
    def @main() { @sum(Empty2()) }"""
    found = one_error(text, "R0302", "must be `Numbers[]`, not `Numbers2[]`", "types of different names differ")
    assert found.span is not None and found.span.text == "Empty2()"
    places = {label.text for label in found.labels if not label.primary}
    assert {"`Numbers` is defined here", "`Numbers2` is defined here"} <= places


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("def @f(%x: int32) { %x } def @main() { @f(1, 2) }", "R0303", ["takes 1 argument, not 2"]),
        ("def @main() { abs(1, 2) }", "R0303", ["takes 1 argument, not 2", "data"]),
        ("def @main(%x: int32) { %x(1) }", "R0305", ["it is `int32`"]),
        ("def @main(%x: int32) { let %t = (%x, %x); %t.2 }", "R0306", ["no field 2"]),
        ("def @main(%x: int32) { %x.0 }", "R0306", ["not of `int32`"]),
        ("def @main(%x: int32) { if (%x) { 1 } else { 2 } }", "R0307", ["must be `bool`, not `int32`"]),
        ("def @main(%x: bool) { if (%x) { 1 } else { 2f } }", "R0302", ["`int32` and `float32`"]),
        ("def @main(%x: int32) -> float32 { %x }", "R0302", ["t:2:35", "must be `float32`, not `int32`"]),
        ("def @main(%x: int32) { let %y: float32 = %x; %y }", "R0302", ["the value of `%y`", "declared here"]),
        ("def @main() { let %f = fn (%n) { %f(%f) }; 1 }", "R0310", ["contains itself"]),
        ("def @main(%x: int32) { ref_read(%x) }", "R0313", ["`int32`"]),
        ("def @main(%x) { log(%x) }", "R0304", ["the type of `%x` is not known"]),
        (LIST + "def @main(%l) { match (%l) { Nil => { 1 }, _ => { 2 }, } }", "R0304", ["`%l`"]),
        (LIST + "def @main(%x: List[int32, int32]) { 1 }", "R0311", ["has 1 type parameter, not 2"]),
        (LIST + "def @main(%x: (int32, int32)) { match (%x) { Nil => { 1 }, _ => { 2 }, } }", "R0309", ["`Nil`"]),
        ("def @main(%x: (int32, int32)) { match (%x) { (%a, _, _) => { %a }, } }", "R0309", ["3 fields"]),
        (LIST + "def @main(%x: List[int32]) { match (%x) { Nil => { 1 }, } }", "R0308", ["`Cons(_, _)`"]),
    ],
)
def test_one_error(text: str, code: str, words: list[str]) -> None:
    one_error(text, code, *words)


def test_one_wrong_call_is_one_error_and_checking_goes_on() -> None:
    text = """def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) {
      let %a = add(%x, %y); let %b = multiply(%a, %x); let %c = (%b, nn.relu(%a));
      let %d = subtract(%y, %x); (%c.0, %d) }"""
    assert [d.span.line for d in said(text) if d.span is not None] == [3, 4]


def test_errors_point_at_the_use_of_a_shared_node() -> None:
    text = """def @main(%x: Tensor[(2), float32]) {
      %0 = negative(%x);
      nn.bias_add(%0, ones(shape=[3], dtype="float32"), axis=0) }"""
    found = one_error(text, "R0301", "argument 2 (bias)")
    assert found.span is not None and found.span.text.startswith("ones(")
    text = "def @main(%x: Tensor[(2), float32]) {\n  %0 = sum(%x);\n  nn.softmax(%0) }"
    found = one_error(text, "R0301", "axis=-1")
    assert found.span is not None and (found.span.line, found.span.text) == (4, "%0")


def test_nothing_is_written_where_there_are_errors() -> None:
    module = read("def @main(%x: int32) { add(%x, 1f) }")
    assert infer(module)
    assert module["main"].checked_type is None
    with pytest.raises(RelayError):
        check(module)
    with pytest.raises(RelayError):
        InferType()(module)


def test_checked_nodes_cost_nothing_and_stale_ones_are_found() -> None:
    x = var("x", shape=(2, 3))
    y = Var("y")
    body = Let(y, Call(get("negative"), [x]), Call(get("add"), [y, y]))
    first = IRModule.from_expr(Function([x], body))
    assert infer(first) == []
    kept = body.body.checked_type
    assert infer(first) == [] and body.body.checked_type is kept
    # The same let with another value: its body has to be looked at again.
    cast = get("cast")
    assert cast.attrs is not None
    wider = Let(y, Call(cast, [x], cast.attrs(dtype="float64")), body.body)
    second = IRModule.from_expr(Function([x], wider))
    assert infer(second) == []
    assert wider.checked_type == TensorType((2, 3), "float64")


def test_a_changed_function_is_seen_by_its_callers() -> None:
    module = read("def @f(%x: int32) { %x } def @main(%x: int32) { @f(%x) }")
    assert infer(module) == []
    f = module["f"]
    module["f"] = Function(f.params, Tuple([f.params[0]]))
    assert infer(module) == []
    assert repr(module["main"].checked_type) == "fn (int32) -> (int32,)"


def test_rewritten_programs_are_typed_again() -> None:
    module = read("def @main(%x: Tensor[(2), float32]) { negative(abs(%x)) }")
    assert infer(module) == []

    def to_sum(old: object, new: object) -> object:
        if isinstance(new, Call) and new.op is get("abs"):
            op = get("sum")
            assert op.attrs is not None
            return Call(op, new.args, op.attrs())
        return new

    module["main"] = rewrite(module["main"], to_sum)  # type: ignore[arg-type]
    assert InferType()(module) is module
    assert repr(module["main"].checked_type) == "fn (Tensor[(2), float32]) -> float32"


def test_type_of() -> None:
    assert type_of(Call(get("add"), [const(1), const(2)])) == TensorType((), "int32")
