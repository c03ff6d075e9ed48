"""Figures of programs, and the passes that are functions of expressions."""

from __future__ import annotations

import pytest

from relaylang.analysis import CallGraph, count_layers, list_fake_quantized_op_freqs
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Var, type_text
from relaylang.ops import get
from relaylang.syntax import astext, parse
from relaylang.transform import BatchingOps, InferTypeLocal, PassContext, ToANormalFormExpr


def test_call_graph() -> None:
    graph = CallGraph(
        parse("""
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @main(%n: int32) { (@even(%n), @even(add(%n, 1)), @odd(%n)) }
""").module
    )
    assert [graph.ref_count(name) for name in ("even", "odd", "main")] == [3, 2, 0]
    assert [graph.global_call_count(name) for name in ("even", "odd", "main")] == [1, 1, 3]
    assert [graph.is_recursive(graph.module.get_global_var(name)) for name in ("even", "odd", "main")] == [True, True, False]
    assert graph.print_var("main") == "@main: named 0 times\n  calls @even: 2\n  calls @odd: 1"
    with pytest.raises(KeyError):
        graph.ref_count("none")


def test_layers_are_those_of_the_longest_way() -> None:
    text = "fn (%x, %w) { %0 = nn.dense(%x, %w, units=4); add(nn.dense(nn.relu(%0), %w, units=4), nn.dense(%x, %w, units=4)) }"
    expr = parse(text).expr
    assert expr is not None
    assert count_layers(expr, ["nn.dense"]) == 2
    assert count_layers(expr, ["nn.dense", "nn.relu", "add"]) == 4
    assert count_layers(IRModule.from_expr(expr), ["nn.conv2d"]) == 0
    with pytest.raises(KeyError):
        count_layers(expr, ["nn.conv"])


@pytest.mark.sweep
def test_layers_of_a_long_chain() -> None:
    x = Var("x", TensorType((2,)))
    expr: Expr = x
    for _ in range(100_000):
        expr = Call(get("nn.relu"), [expr])
    assert count_layers(Function([x], expr), ["nn.relu"]) == 100_000


DEQUANTIZED = '%0 = qnn.dequantize(%x, 0.5f, 0, out_dtype="float32");'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("nn.relu(add(nn.relu(%0), nn.relu(%0)))", {"nn.relu": 3, "add": 1}),
        ("add(%0, 1f)", {"add": 1}),
        ("add(%0, %y)", {}),  # a variable is no quantized value
        ("%0", {}),
        ("concatenate((split(%0, indices_or_sections=2, axis=1).0, %0), axis=1)", {"concatenate": 1, "split": 1}),
        ("if (True) { %0 } else { nn.relu(%0) }", {}),
    ],
)
def test_operators_between_quantized_values(body: str, found: dict[str, int]) -> None:
    main = f'{DEQUANTIZED} qnn.quantize({body}, 0.5f, 0, out_dtype="int8")'
    mod = parse(f"def @main(%x: Tensor[(1, 8), int8], %y: Tensor[(1, 8), float32]) {{ {main} }}").module
    assert list_fake_quantized_op_freqs(mod) == found


def test_functions_of_expressions() -> None:
    expr = parse("fn (%x: Tensor[(2), float32]) { nn.relu(add(%x, %x)) }").expr
    assert expr is not None
    assert type_text(InferTypeLocal(expr)) == "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"
    assert astext(ToANormalFormExpr(expr), show_types=False).count("let ") == 2


def test_batching_combines_all_three() -> None:
    mod = parse("""def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(3, 4, 8), float32]) {
      %0 = split(%w, indices_or_sections=3);
      (nn.dense(%x, squeeze(%0.0, axis=[0]), units=4), nn.dense(%x, squeeze(%0.1, axis=[0]), units=4),
       nn.dense(%x, squeeze(%0.2, axis=[0]), units=4))
    }""").module
    with PassContext(opt_level=4):
        text = astext(BatchingOps()(mod), show_types=False)
    assert text.count("nn.batch_matmul(") == 1 and "nn.dense(" not in text
