"""Loops that people write by hand are exported as one layer of ONNX, where they compute what the layer computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import relaylang as relay
from relaylang.export import export_onnx
from relaylang.ir import IRModule
from tests.export.peers import onnx_outputs
from tests.export.programs import interpreted

X, H, ROWS = "%x: Tensor[(7, 2, 3), float32]", "Tensor[(2, 4), float32]", "Tensor[(?, 2, 4), float32]"
WEIGHTS = "%w: Tensor[(16, 3), float32], %u: Tensor[(16, 4), float32], %b: Tensor[(16), float32]"
CELL = f"""
def @cell(%t: Tensor[(2, 3), float32], %h: {H}, %c: {H}, {WEIGHTS}) -> ({H}, {H}) {{
  let %g = split(nn.bias_add(add(nn.dense(%t, %w, units=16), nn.dense(%h, %u, units=16)), %b), indices_or_sections=4, axis=1);
  let %d = add(multiply(sigmoid(%g.0), %c), multiply(sigmoid(%g.1), tanh(%g.2)));
  (multiply(sigmoid(%g.3), tanh(%d)), %d)
}}
"""
NEXT = "%x, %s.0, %s.1, %w, %u, %b)"


def lstm(
    condition: str, index: str, turn: str, first: int, end: str = "%h", kind: str = H, swapped: bool = False, after: str = NEXT
) -> str:
    """A function that calls itself for each step of an LSTM, with its cell as a function."""
    again = f"{{ let %s = @cell(take(%x, {index}, axis=0), %h, %c, %w, %u, %b); @steps({turn}, {after} }}"
    branches = f"{{ {end} }} else {again}" if swapped else f"{again} else {{ {end} }}"
    return f"""{CELL}
def @steps(%i: int32, {X}, %h: {H}, %c: {H}, {WEIGHTS}) -> {kind} {{ if ({condition}) {branches} }}
def @main({X}, %h0: {H}, {WEIGHTS}) -> {kind} {{ @steps({first}, %x, %h0, tanh(%h0), %w, %u, %b) }}
"""


BOTH = f"""
def @main({X}, {WEIGHTS}, %w2: Tensor[(16, 3), float32], %u2: Tensor[(16, 4), float32]) {{
  let %z = zeros(shape=[2, 4], dtype="float32");
  let %none = zeros(shape=[0, 2, 4], dtype="float32");
  let %cell = fn (%t: Tensor[(2, 3), float32], %h: {H}, %c: {H}, %wi: Tensor[(16, 3), float32], %ui: Tensor[(16, 4), float32]) {{
    let %g = split(add(add(nn.dense(%t, %wi, units=16), nn.dense(%h, %ui, units=16)), %b), indices_or_sections=4, axis=1);
    let %d = add(multiply(sigmoid(%g.0), %c), multiply(sigmoid(%g.1), tanh(%g.2)));
    (multiply(sigmoid(%g.3), tanh(%d)), %d)
  }};
  let %forward = fn (%i: int32, %o: {ROWS}, %h: {H}, %c: {H}) -> ({ROWS}, {H}, {H}) {{
    if (less(%i, 7)) {{
      let %s = %cell(take(%x, %i, axis=0), %h, %c, %w, %u);
      %forward(add(%i, 1), concatenate((%o, expand_dims(%s.0, axis=0))), %s.0, %s.1)
    }} else {{ (%o, %h, %c) }}
  }};
  let %backward = fn (%i: int32, %o: {ROWS}, %h: {H}, %c: {H}) -> ({ROWS}, {H}, {H}) {{
    if (less(%i, 7)) {{
      let %s = %cell(take(%x, subtract(6, %i), axis=0), %h, %c, %w2, %u2);
      %backward(add(%i, 1), concatenate((expand_dims(%s.0, axis=0), %o)), %s.0, %s.1)
    }} else {{ (%o, %h, %c) }}
  }};
  let %a = %forward(0, %none, %z, %z);
  let %q = %backward(0, %none, %z, %z);
  (concatenate((%a.0, %q.0), axis=2), %a.1, %q.2)
}}
"""
GRU_WEIGHTS = ", ".join(f"%{w}{g}: Tensor[(4, {n}), float32]" for g in "zrn" for w, n in (("w", 3), ("u", 4)))
GRU = f"""
def @gru(%i: int32, {X}, %o: {ROWS}, %h: {H}, {GRU_WEIGHTS}) -> {ROWS} {{
  if (less(%i, 7)) {{
    let %t = take(%x, %i, axis=0);
    let %z = sigmoid(add(nn.dense(%t, %wz, units=4), nn.dense(%h, %uz, units=4)));
    let %r = sigmoid(add(nn.dense(%t, %wr, units=4), nn.dense(%h, %ur, units=4)));
    let %n = tanh(add(nn.dense(%t, %wn, units=4), nn.dense(multiply(%r, %h), %un, units=4)));
    let %k = add(multiply(subtract(1f, %z), %n), multiply(%z, %h));
    @gru(add(%i, 1), %x, concatenate((%o, expand_dims(%k, axis=0))), %k, %wz, %uz, %wr, %ur, %wn, %un)
  }} else {{ %o }}
}}
def @main({X}, %h0: {H}, {GRU_WEIGHTS}) -> {ROWS} {{
  @gru(0, %x, zeros(shape=[0, 2, 4], dtype="float32"), %h0, %wz, %uz, %wr, %ur, %wn, %un)
}}
"""
RNN_WEIGHTS = "%w: Tensor[(3, 4), float32], %u: Tensor[(4, 4), float32]"
RNN = f"""
def @rnn(%i: int32, %n: int32, %x: Tensor[(?, 2, 3), float32], %o: {ROWS}, %h: {H}, {RNN_WEIGHTS}) -> ({ROWS}, {H}) {{
  if (greater_equal(%i, %n)) {{ (%o, %h) }} else {{
    let %k = sigmoid(add(nn.matmul(take(%x, %i, axis=0), %w, units=4), nn.dense(%h, %u, units=4)));
    @rnn(add(%i, 1), %n, %x, concatenate((%o, expand_dims(%k, axis=0))), %k, %w, %u)
  }}
}}
def @main(%x: Tensor[(?, 2, 3), float32], %h0: {H}, {RNN_WEIGHTS}) {{
  @rnn(0, take(shape_of(%x, dtype="int32"), 0), %x, zeros(shape=[0, 2, 4], dtype="float32"), %h0, %w, %u)
}}
"""
JOINED_WEIGHTS = "%w: Tensor[(16, 7), float32], %b: Tensor[(16), float32]"
JOINED = f"""
def @steps(%i: int32, {X}, %h: {H}, %c: {H}, {JOINED_WEIGHTS}) -> {H} {{
  if (less(%i, 7)) {{
    let %rows = concatenate((take(%x, %i, axis=0), %h), axis=1);
    let %g = split(nn.bias_add(nn.dense(%rows, %w, units=16), %b), indices_or_sections=4, axis=1);
    let %d = add(multiply(HARD(add(%g.0, 1f)), %c), multiply(HARD(%g.1), tanh(%g.2)));
    @steps(add(%i, 1), %x, multiply(HARD(%g.3), tanh(%d)), %d, %w, %b)
  }} else {{ %h }}
}}
def @main({X}, %h0: {H}, {JOINED_WEIGHTS}) -> {H} {{ @steps(0, %x, %h0, %h0, %w, %b) }}
"""
HARD = "def @hard(%x: Tensor[(2, 4), float32]) { clip(add(multiply(%x, 0.3f), 0.5f), a_min=0f, a_max=1f) }\n"
#: A program, its layer and the layer's direction.
LAYERS: dict[str, tuple[str, str, str]] = {
    "last state": (lstm("less(%i, 7)", "%i", "add(%i, 1)", 0), "LSTM", "forward"),
    "all results": (lstm("less(%i, 7)", "%i", "add(1, %i)", 0, "(%i, %c, tanh(%h))", f"(int32, {H}, {H})"), "LSTM", "forward"),
    "backward": (lstm("less(%i, 0)", "%i", "subtract(%i, 1)", 6, swapped=True), "LSTM", "reverse"),
    "steps left": (lstm("equal(%i, 0)", "subtract(7, %i)", "subtract(%i, 1)", 7, swapped=True), "LSTM", "forward"),
    "both": (BOTH, "LSTM", "bidirectional"),
    "gates apart": (GRU, "GRU", "forward"),
    "open length": (RNN, "RNN", "forward"),
    "joined rows": (JOINED.replace("HARD(", "sigmoid("), "LSTM", "forward"),
    "hard gates": (HARD + JOINED.replace("HARD(", "@hard("), "LSTM", "forward"),
}
#: Programs that a layer would change.
OTHERS = {
    "a step is left out": lstm("less(%i, 6)", "%i", "add(%i, 1)", 0),
    "the first step is left out": lstm("less(%i, 7)", "%i", "add(%i, 1)", 1),
    "every other step": lstm("less(%i, 7)", "%i", "add(%i, 2)", 0),
    "a state is changed": lstm("less(%i, 7)", "%i", "add(%i, 1)", 0, after="%x, add(%s.0, 1f), %s.1, %w, %u, %b)"),
    "states are exchanged": lstm("less(%i, 7)", "%i", "add(%i, 1)", 0, after="%x, %s.1, %s.0, %w, %u, %b)"),
    "weights change": lstm("less(%i, 7)", "%i", "add(%i, 1)", 0, after="%x, %s.0, %s.1, multiply(%w, 1.1f), %u, %b)"),
    "the sequence changes": lstm("less(%i, 7)", "%i", "add(%i, 1)", 0, after="tanh(%x), %s.0, %s.1, %w, %u, %b)"),
    "it may end before": lstm("less(multiply(%i, %i), 30)", "%i", "add(%i, 1)", 0),
    "update of another gate": GRU.replace("subtract(1f, %z)", "subtract(1f, %r)"),
    "another activation": RNN.replace("sigmoid(", "erf("),
    "rows of another value": RNN.replace("expand_dims(%k", "expand_dims(negative(%k)"),
}


def program(text: str) -> tuple[IRModule, list[np.ndarray]]:
    """A typed module, and inputs of seven steps."""
    module = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"]\n{text}'))
    rng = np.random.default_rng(0)
    shapes = [[n if isinstance(n, int) else 7 for n in p.checked_type.shape] for p in module["main"].params]
    return module, [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]


def exported(text: str) -> list[Any]:
    """The layers of a program's export, which gives the program's results."""
    module, inputs = program(text)
    model = export_onnx(module)
    for ours, theirs in zip(interpreted(module, inputs), onnx_outputs(model, inputs), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-6)
    return list(model.graph.node)


@pytest.mark.parametrize("name", LAYERS)
def test_a_loop_is_a_layer(name: str) -> None:
    text, kind, direction = LAYERS[name]
    nodes = exported(text)
    (layer,) = [n for n in nodes if n.op_type == kind]
    assert [a.s.decode() for a in layer.attribute if a.name == "direction"] == [direction]
    assert not {"Loop", "MatMul", "Gemm"} & {n.op_type for n in nodes}


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_a_layer_stays_a_loop(name: str) -> None:
    kinds = [n.op_type for n in exported(OTHERS[name])]
    assert "Loop" in kinds
    assert not {"LSTM", "GRU", "RNN"} & set(kinds)


def test_a_loop_that_begins_twice_is_two_layers() -> None:
    text = lstm("less(%i, 7)", "%i", "add(%i, 1)", 0)
    again = text.replace("{ @steps(0, %x, %h0", "{ let %z = @steps(0, %x, %h0, %h0, %w, %u, %b); @steps(0, %x, %z")
    kinds = [n.op_type for n in exported(again)]
    assert kinds.count("LSTM") == 2
    assert "Loop" not in kinds


def test_many_loops_in_linear_time() -> None:
    """Each is searched once: the ones below it are not part of it."""
    text = lstm("less(%i, 7)", "%i", "add(%i, 1)", 0)
    calls = [f"let %h{n + 1} = @steps(0, %x, %h{n}, %h{n}, %w, %u, %b);" for n in range(300)]
    head, _, _ = text.rpartition("{ @steps(0")
    module, _ = program(f"{head}{{ {' '.join(calls)} %h300 }}")
    assert [n.op_type for n in export_onnx(module).graph.node].count("LSTM") == 300
