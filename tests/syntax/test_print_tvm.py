"""`style="tvm"`: the bytes that TVM 0.16 printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaylang.ir import (
    Call,
    Constant,
    Function,
    If,
    IRModule,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    const,
    var,
)
from relaylang.ops import OPS
from relaylang.syntax import astext, parse
from relaylang.typing import infer
from tests.shared import golden, needs_shared


def call(name: str, *args):
    return Call(OPS[name], args)


def text(node, **options) -> str:
    printed = astext(node, "tvm", **options)
    assert printed.startswith('#[version = "0.0.5"]\n')
    return printed.partition("\n")[2]


@pytest.mark.sample(2)
@needs_shared
@pytest.mark.parametrize("path", [p for k in ("typed", "anf", "simplified", "fused") for p in golden(k)], ids=str)
def test_golden_files_print_as_they_are(path: Path) -> None:
    source = path.read_text()
    module = parse(source).module
    assert infer(module) == []
    assert astext(module, "tvm") == source


def test_arguments_get_graph_names_when_their_call_is_printed() -> None:
    a, b = var("a"), var("b", shape=(2,), dtype="int32")
    expr = call("add", call("add", call("log", a), b), call("exp", call("tanh", b)))
    assert text(expr) == (
        "free_var %a;\n%0 = log(%a);\nfree_var %b: Tensor[(2), int32];\n%1 = tanh(%b);\n%2 = add(%0, %b);\n%3 = exp(%1);\nadd(%2, %3)"
    )


def test_operators_come_before_arguments() -> None:
    x = var("x", shape=(2,))
    callee = Function([x], call("log", call("exp", x)))
    y = var("y")
    assert text(Function([y], Call(callee, [call("tanh", y)]))) == (
        "fn (%y) {\n  %1 = tanh(%y);\n  %2 = fn (%x: Tensor[(2), float32]) {\n    %0 = exp(%x);\n    log(%0)\n  };\n  %2(%1)\n}"
    )


def test_names_are_made_unique_and_begin_with_a_letter() -> None:
    names = ["x", "x", "x1", "_t", "0"]
    params = [var(n) for n in names]
    assert text(Function(params, Tuple(params))).startswith("fn (%x, %x1, %x11, %v_t, %v0)")


def test_a_branch_is_a_scope_and_a_let_does_not_indent() -> None:
    a = var("a")
    expr = Let(var("_t"), If(const(True), call("log", a), call("exp", a)), call("add", a, a))
    assert text(Function([a], expr)) == (
        "fn (%a) {\n  let %v_t = if (True) {\n    log(%a)\n  } else {\n    exp(%a)\n  };\n  add(%a, %a)\n}"
    )


def test_a_let_as_an_argument_stands_in_parentheses() -> None:
    a, b = var("a"), var("b")
    let = Let(a, Function([], call("log", b)), call("add", a, call("exp", a)))
    assert text(Function([b], Tuple([let, b]))) == (
        "fn (%b) {\n  %1 = (\n    let %a = fn () {\n      log(%b)\n    };\n    %0 = exp(%a);\n    add(%a, %0)\n  );\n  (%1, %b)\n}"
    )


def test_a_node_shared_between_branches_is_defined_in_the_first() -> None:
    b = var("b")
    shared = call("log", b)
    expr = If(const(True), call("exp", shared), call("tanh", shared))
    assert text(Function([b], expr)) == ("fn (%b) {\n  if (True) {\n    %0 = log(%b);\n    exp(%0)\n  } else {\n    tanh(%0)\n  }\n}")


def test_references() -> None:
    b = var("b")
    expr = RefWrite(RefCreate(call("log", b)), RefRead(RefCreate(b)))
    assert text(Function([b], expr)).splitlines()[1:-1] == [
        "  %0 = log(%b);",
        "  %1 = ref(%0);",
        "  %2 = ref(%b);",
        "  %3 = ref_read(%2);",
        "  ref_write(%1, %3)",
    ]


def test_tuples() -> None:
    b = var("b")
    assert text(Function([b], TupleGetItem(Tuple([b]), 0))).splitlines()[1:3] == ["  %0 = (%b,);", "  %0.0"]
    assert text(Tuple([])) == "()"


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (1.0, "float32", "1f"),
        (1 / 3, "float32", "0.333333f"),
        (123456789.0, "float32", "1.23457e+08f"),
        (1e-7, "float32", "1e-07f"),
        (float("nan"), "float32", "nanf"),
        (-0.0, "float32", "-0f"),
        (0.1, "float64", "0.1f64"),
        (0.1, "float16", "0.0999756f16"),
        (5, "int32", "5"),
        (-3, "int64", "-3i64"),
        (3, "int16", "3i16"),
        (True, "bool", "True"),
        (3, "int8", "meta[relay.Constant][0]"),
        (3, "uint8", "meta[relay.Constant][0]"),
    ],
)
def test_scalars(value: object, dtype: str, shown: str) -> None:
    assert text(const(value, dtype)).split("\n")[0] == shown


def test_types_fill_what_is_not_written() -> None:
    x = var("x", shape=(2,))
    mod = IRModule.from_expr(Function([x], Let(var("y"), call("log", x), call("exp", x))))
    assert infer(mod) == []
    assert text(mod) == (
        "def @main(%x: Tensor[(2), float32] /* ty=Tensor[(2), float32] */) -> Tensor[(2), float32] {\n"
        "  let %y: Tensor[(2), float32] /* ty=Tensor[(2), float32] */ = log(%x) /* ty=Tensor[(2), float32] */;\n"
        "  exp(%x) /* ty=Tensor[(2), float32] */\n"
        "}\n"
    )
    assert text(mod, show_types=False) == ("def @main(%x: Tensor[(2), float32]) {\n  let %y = log(%x);\n  exp(%x)\n}\n")


def test_function_attributes() -> None:
    f = Function([], Tuple([]), attrs={"Composite": 'x\n"q"é', "Primitive": 1, "z.b": (1, 2), "f": 1 / 3, "b": True})
    expected = 'fn (Composite="x\\n\\"q\\"\\xC3\\xA9", Primitive=1, z.b=[1, 2], f=0.333333f, b=True) {'
    assert text(f).split("\n")[0] == expected


def test_metadata_is_left_out_on_request_with_what_tvm_said() -> None:
    c = Constant(np.arange(3))
    assert "For debugging purposes the metadata section has been omitted" in text(c, show_meta_data=False)
    sink: dict[str, list] = {}
    assert text(Tuple([c, c]), meta=sink) == "(meta[relay.Constant][0], meta[relay.Constant][0])"
    assert sink["relay.Constant"][0] is c


def test_a_wrong_style_is_refused() -> None:
    with pytest.raises(ValueError, match="style"):
        astext(TensorType((1,)), "pretty")
