"""The Prelude: its names and types are TVM's, and each function computes what its Python counterpart does."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.cli.fmt import formatted
from relaylang.diagnostics import RelayError
from relaylang.interpreter import ConstructorValue, evaluate
from relaylang.ir import ANY, Call, Function, GlobalTypeVar, IRModule, TypeCall, const, scalar_type, var
from relaylang.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps, get_tensor_array_shape
from relaylang.stdlib import library as std
from relaylang.tvm.parser import parse
from relaylang.typing import infer
from tests.shared import PATIENCE

TYPES = Path(__file__).parent / "prelude_types.txt"
HEAD = '#[version = "0.0.5"]\nimport "prelude.rly"\nimport "nat.rly"\n'


def everything() -> IRModule:
    p = Prelude()
    std.import_from_std(p.mod, "prelude.rly")
    std.import_from_std(p.mod, "nat.rly")
    TensorArrayOps(p, "float32").register()
    for shape, batch in (((2, 3), None), ((), None), ((ANY, 3), None), ((4,), 1)):
        StaticTensorArrayOps(p, "float32", shape, batch).register()
    assert infer(p.mod) == []
    return p.mod


def test_names_and_types_are_tvms() -> None:
    mod = everything()
    ours = {f"@{v.name_hint}": repr(f.checked_type) for v, f in mod.functions.items()}
    for v, data in mod.type_definitions.items():
        head = f"{v.name_hint}[{', '.join(x.name_hint for x in data.type_vars)}]"
        ours[head] = ", ".join(f"{c.name_hint}({', '.join(map(repr, c.inputs))})" for c in data.constructors)
    theirs = dict(line.split(": ", 1) for line in TYPES.read_text().splitlines())
    assert {name: ours.get(name) for name in theirs} == theirs
    extra = {name for name in ours if name not in theirs}
    assert extra == {
        "@nat_add",
        "@nat_double",
        "@nat_iterate",
        "@nat_nth",
        "@nat_update",
        "nat[]",  # nat.rly
        "@tensor_array_gather_float32",
        "@tensor_array_gather_helper_float32",  # TVM has them and leaves them out
    }


# --- values ---


def listed(items: list[str]) -> str:
    return reduce(lambda rest, x: f"Cons({x}, {rest})", reversed(items), "Nil")


def plain(value: Any) -> Any:
    """A value in Python's terms: lists, trees as (value, below), numbers."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if not isinstance(value, ConstructorValue):
        return value.tolist() if isinstance(value, np.ndarray) else value
    name = value.constructor.name_hint
    if name in ("Cons", "Nil"):
        out = []
        while value.fields:
            out.append(plain(value.fields[0]))
            value = value.fields[1]
        return out
    if name in ("zero", "succ"):
        return 0 if name == "zero" else 1 + plain(value.fields[0])
    if name == "Rose":
        return plain(value.fields[0]), plain(value.fields[1])
    return plain(value.fields[0]) if value.fields else None


def run(body: str) -> Any:
    module = parse(f"{HEAD}def @main() {{ {body} }}")
    assert infer(module) == []
    return plain(evaluate(module))


XS = [3, 1, 4, 1, 5]
L = listed(list(map(str, XS)))
SHORT = "Cons(10, Cons(20, Nil))"
MINUS = "fn (%a: int32, %b: int32) -> int32 { %a - %b }"
INC = "fn (%a: int32) -> int32 { %a + 1 }"
TWICE = "fn (%a: int32) -> int32 { %a * 2 }"
STEP = "fn (%s: int32, %x: int32) -> (int32, int32) { (%s + %x, %s * %x) }"
DOWN = "fn (%n: int32) -> Option[(int32, int32)] { if (%n == 0) { None } else { Some((%n - 1, %n * %n)) } }"
TREE = f"Rose(1, {listed(['Rose(2, Nil)', 'Rose(3, Cons(Rose(4, Nil), Nil))'])})"
THREE, TWO = "succ(succ(succ(zero)))", "succ(succ(zero))"


def accumulate(items: list[int]) -> tuple[int, list[int]]:
    state, out = 7, []
    for x in items:
        state, made = state + x, state * x
        out.append(made)
    return state, out


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@id(3)", 3),
        (f"@compose({INC}, {TWICE})(5)", 11),
        (f"@flip({MINUS})(1, 10)", 9),
        (f"@iterate({TWICE}, 5)(1)", 32),
        (f"@iterate({TWICE}, 0)(1)", 1),
        (f"@hd({L})", XS[0]),
        (f"@tl({L})", XS[1:]),
        (f"@nth({L}, 0)", XS[0]),
        (f"@nth({L}, 4)", XS[4]),
        (f"@length({L})", len(XS)),
        ("@length(Nil)", 0),
        (f"@update({L}, 2, 9)", [3, 1, 9, 1, 5]),
        (f"@map({TWICE}, {L})", [2 * x for x in XS]),
        (f"@foldl({MINUS}, 100, {L})", reduce(lambda a, b: a - b, XS, 100)),
        (f"@foldr({MINUS}, 100, {L})", reduce(lambda a, b: b - a, reversed(XS), 100)),
        (f"@foldr1({MINUS}, {L})", reduce(lambda a, b: b - a, reversed(XS))),
        (f"@sum({L})", sum(XS)),
        (f"@concat({L}, {SHORT})", [*XS, 10, 20]),
        (f"@filter(fn (%x: int32) {{ %x > 2 }}, {L})", [x for x in XS if x > 2]),
        (f"@zip({L}, {SHORT})", list(zip(XS, [10, 20]))),
        (f"@zip({SHORT}, {L})", list(zip([10, 20], XS))),
        (f"@rev({L})", XS[::-1]),
        (f"@map_accuml({STEP}, 7, {L})", (lambda s, out: (s, out[::-1]))(*accumulate(XS))),
        (f"@map_accumr({STEP}, 7, {L})", (lambda s, out: (s, out[::-1]))(*accumulate(XS[::-1]))),
        (f"@unfoldr({DOWN}, 4)", [16, 9, 4, 1]),
        (f"@unfoldl({DOWN}, 4)", [1, 4, 9, 16]),
        (f"@tmap({INC}, {TREE})", (2, [(3, []), (4, [(5, [])])])),
        (f"@size({TREE})", 4),
        (f"@nat_double({THREE})", 6),
        (f"@nat_add({THREE}, {TWO})", 5),
        (f"@nat_nth({L}, {TWO})", 4),
        (f"@nat_update({L}, {TWO}, 9)", [3, 1, 9, 1, 5]),
        (f"@nat_iterate({TWICE}, {THREE})(1)", 8),
    ],
    ids=lambda x: x.split("(")[0] if isinstance(x, str) else "",
)
def test_function(body: str, expected: Any) -> None:
    assert run(body) == expected


def test_long_lists() -> None:
    body = "@sum(@rev(@map(fn (%x: int32) { %x + 1 }, @unfoldr(fn (%n: int32) -> Option[(int32, int32)] { "
    body += "if (%n == 0) { None } else { Some((%n - 1, 1)) } }, 5000))))"
    assert run(body) == 10_000


# --- tensor arrays ---

ROWS = np.arange(12, dtype="float32").reshape(4, 3)


def array(p: Prelude, text: str, *args: np.ndarray) -> Any:
    module = parse('#[version = "0.0.5"]\n' + text, init_module=p.mod)
    assert infer(module) == []
    return plain(evaluate(module, *args))


DYNAMIC = """def @main(%x: Tensor[(?, ?), float32], %i: Tensor[(?,), int32]) {{
  let %rows = @tensor_array_unstack_tensor2_float32(%x);
  {}
}}"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%rows", list(ROWS)),
        ("@tensor_array_read_float32(%rows, 2)", ROWS[2]),
        ("@tensor_array_float32(2)", [None, None]),
        (
            '@tensor_array_write_float32(%rows, 1, tensor1_float32(ones(shape=[3], dtype="float32")))',
            [ROWS[0], np.ones(3), ROWS[2], ROWS[3]],
        ),
        ("@tensor_array_stack_float32(%rows)", ROWS),
        ("@tensor_array_gather_float32(%rows, %i)", ROWS[[3, 1]]),
        ("@tensor_array_concat_float32(%rows)", ROWS.ravel()),
        (
            "@tensor_array_scatter_float32(%rows, %i, Cons(@nth(%rows, 0), Cons(@nth(%rows, 2), Nil)))",
            [ROWS[0], ROWS[2], ROWS[2], ROWS[0]],
        ),
        ("@tensor_array_split_float32(@tensor_array_float32(2), tensor2_float32(%x), %i)", [ROWS[:3], ROWS[3:]]),
        ("@tensor_take_float32(tensor2_float32(%x), 1, 3)", ROWS[1:3]),
        ("@tensor_expand_dims_float32(tensor2_float32(%x))", ROWS[None]),
    ],
)
def test_dynamic_tensor_arrays(body: str, expected: Any) -> None:
    p = Prelude()
    TensorArrayOps(p, "float32").register()
    got = array(p, DYNAMIC.format(body), ROWS, np.array([3, 1], "int32"))
    assert (
        got == plain(np.asarray(expected))
        if isinstance(expected, np.ndarray)
        else got == [None if e is None else e.tolist() for e in expected]
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%rows", list(ROWS)),
        ("@tensor_array_read_float32_3(%rows, 2)", ROWS[2]),
        ("@tensor_array_float32_3(2)", [None, None]),
        ("@tensor_array_stack_float32_3(%rows)", ROWS),
        ("@tensor_array_gather_float32_3(%rows, %i)", ROWS[[3, 1]]),
        (
            "@tensor_array_scatter_float32_3(%rows, %i, Cons(@nth(%rows, 0), Cons(@nth(%rows, 2), Nil)))",
            [ROWS[0], ROWS[2], ROWS[2], ROWS[0]],
        ),
        (
            "@tensor_array_split_float32_4_3(@tensor_array_float32_any_3(2), tensor_constructor_float32_4_3(%x), %i)",
            [ROWS[:3], ROWS[3:]],
        ),
        ("@tensor_get_data_float32_3(@nth(%rows, 1))", ROWS[1]),
        ("@tensor_array_concat_float32_4_3(Cons(tensor_constructor_float32_any_3(%x), Nil))", ROWS),
    ],
)
def test_static_tensor_arrays(body: str, expected: Any) -> None:
    p = Prelude()
    for shape in ((3,), (4, 3), (ANY, 3)):
        StaticTensorArrayOps(p, "float32", shape).register()
    text = f"""def @main(%x: Tensor[(4, 3), float32], %i: Tensor[(?,), int32]) {{
      let %rows = @tensor_array_unstack_float32_4_3(%x);
      {body}
    }}"""
    got = array(p, text, ROWS, np.array([3, 1], "int32"))
    assert (
        got == plain(np.asarray(expected))
        if isinstance(expected, np.ndarray)
        else got == [None if e is None else e.tolist() for e in expected]
    )


def test_known_numbers_of_indices_and_lengths() -> None:
    p = Prelude()
    ops = StaticTensorArrayOps(p, "float32", (ANY, 3))
    ops.register()
    ops.define_tensor_array_split((4, 3), (2,), True)
    ops.define_tensor_array_scatter((2,))
    assert infer(p.mod) == []
    assert repr(p.get_type_static("tensor_t", "float32", (ANY, 3))) == "static_tensor_float32_any_3_t"
    assert "Tensor[(2), int32]" in repr(p.mod["tensor_array_split_float32_any_3"].checked_type)
    assert "Tensor[(2), int32]" in repr(p.mod["tensor_array_scatter_float32_any_3_indices_2"].checked_type)


def test_shape_of_an_array() -> None:
    p = Prelude()
    fixed = StaticTensorArrayOps(p, "int32", (ANY, 3))
    fixed.register()
    assert get_tensor_array_shape(Call(fixed.get_global_var("tensor_array"), [const(2)]), "int32", p) == (ANY, 3)
    assert get_tensor_array_shape(Call(p.get_var("tensor_array", "int32"), [const(2)]), "int32", p) is None
    with pytest.raises(ValueError, match="a tensor array is wanted"):
        get_tensor_array_shape(const(2), "int32", p)


# --- what it costs, and how it comes into a module ---


def test_only_what_is_used_comes_along() -> None:
    p = Prelude()
    assert not p.mod.functions and not p.mod.type_definitions
    assert p.sum.name_hint == "sum"
    assert {v.name_hint for v in p.mod.functions} == {"sum", "foldl"}
    assert [v.name_hint for v in p.mod.type_definitions] == ["List"]
    mod = parse(HEAD + "def @main(%t: Tree[int32]) { @size(%t) }")
    assert {v.name_hint for v in mod.functions} == {"main", "size", "sum", "map", "foldl"}
    assert {v.name_hint for v in mod.type_definitions} == {"List", "Tree"}
    assert not parse(HEAD + "def @main() { 1 }").type_definitions


def test_names_of_the_interface() -> None:
    mod = IRModule()
    p = Prelude(mod)
    assert p.mod is mod
    assert p.cons is mod.get_type("List")[1] and p.nil is mod.get_constructor("List", "Nil")
    assert isinstance(p.l, GlobalTypeVar) and p.l(scalar_type("int32")) == TypeCall(p.l, [scalar_type("int32")])
    assert [p.optional, p.some, p.none] == list(mod.get_type("Option"))
    assert [p.tree, p.rose] == list(mod.get_type("Tree"))
    assert [p.nat, p.z, p.s] == list(mod.get_type("nat"))
    assert p.get_name("tensor_t", "int8") == "tensor_int8_t"
    assert p.get_type("tensor_t", "int8") is p.mod.get_global_type_var("tensor_int8_t")
    assert p.get_ctor("tensor_int8_t", "tensor2", "int8") is p.get_tensor_ctor("tensor2", "int8")
    assert p.get_name_static("tensor_array_read", "int8", (2, ANY), 1) == "tensor_array_read_int8_batch1_2_any"
    with pytest.raises(AttributeError, match="no `nothing`"):
        _ = p.nothing
    with pytest.raises(KeyError):
        mod.get_global_var("nothing")
    assert "map" in {v.name_hint for v in mod.functions} or mod.get_global_var("map")


def test_one_definition_for_all_modules() -> None:
    one, other = Prelude(), Prelude()
    assert one.l is other.l and one.map is other.map
    assert one.mod.functions[one.map] is other.mod.functions[other.map]
    xs = var("xs", TypeCall(one.l, [scalar_type("int32")]))
    one.mod["main"] = Function([xs], Call(other.sum, [xs]))
    assert infer(one.mod) == []


def test_own_definitions_are_not_overridden() -> None:
    own = "def @map(%x: int32) { %x }\n"
    mod = parse(HEAD + own + "def @main() { @map(1) }")
    assert {v.name_hint for v in mod.functions} == {"map", "main"}
    with pytest.raises(RelayError, match="needs its own `@map`"):
        parse(HEAD + own + "def @main(%t: Tree[int32]) { @tmap(fn (%x: int32) { @map(%x) }, %t) }")
    with pytest.raises(RelayError, match="there is no library `gradient"):
        parse('import "gradients.rly"\ndef @main() { 1 }')


def test_errors_keep_their_places() -> None:
    with pytest.raises(RelayError) as caught:
        parse('#[version = "0.0.5"]\nimport "prelude.rly";\ndef @main() { @mapp(1) }')
    assert [(d.span.line, d.span.column) for d in caught.value.diagnostics if d.span] == [(3, 15)]


def test_nothing_is_read_by_those_who_do_not_ask() -> None:
    code = (
        "import relaylang; from relaylang.stdlib import library as std; "
        "relaylang.parse('def @main(%x: int32) { %x }'); p = relaylang.prelude.Prelude(); "
        "assert std.library.cache_info().currsize == 0; p.map; assert std.library.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_every_element_type() -> None:
    for dtype, canonical in itertools.product(std.DTYPES, ["tensor_array_stack", "tensor_array_unstack_tensor6"]):
        p = Prelude()
        assert p.get_global_var(canonical, dtype) in p.mod.functions
        assert infer(p.mod) == []


@pytest.mark.parametrize("read", [parse, formatted])
def test_an_unknown_library_has_a_place(read: Callable[[str, str], object]) -> None:
    with pytest.raises(RelayError) as wrong:
        read('#[version = "0.0.5"]\nimport "no.rly"\n1', "net.relay")
    (found,) = wrong.value.diagnostics
    assert found.code == "R0221" and found.span is not None and found.span.text == "no.rly"
