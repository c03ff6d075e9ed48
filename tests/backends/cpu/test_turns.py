"""Loops of a known number of turns: one operator each, in libraries and in C source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.aot import compile_aot
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.flatten import Calls, _Flattener
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.program import Program, Run, Turns, every, walk
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from tests.backends.cpu.test_loops import QUICK, module
from tests.backends.cpu.test_recursion import LOOP
from tests.backends.vm.agree import assert_same

T = "Tensor[(2, 8), float32]"
#: The sum of all states; a loop in a loop; a condition that stays true, and a branch.
PROGRAMS = {
    "sum": f"""
def @main(%x: {T}, %y: {T}) {{
  let %loop = fn (%n: int64, %a: {T}, %b: {T}) -> (int64, {T}, {T}) {{
    if (less(%n, 7i64)) {{ let %next = tanh(add(%a, %y)); %loop(add(%n, 1i64), %next, add(%b, %next)) }} else {{ (%n, %a, %b) }}
  }};
  %loop(2i64, %x, %y)
}}""",
    "nest": f"""
def @inner(%n: int32, %a: {T}, %b: {T}) -> {T} {{
  if (less(%n, 4)) {{ @inner(add(%n, 1), sigmoid(add(%a, %b)), %b) }} else {{ %a }}
}}
def @outer(%n: int32, %a: {T}) -> {T} {{
  if (less(%n, 5)) {{ @outer(add(%n, 1), @inner(0, %a, multiply(%a, 0.5f))) }} else {{ exp(%a) }}
}}
def @main(%x: {T}, %y: {T}) {{ (@outer(0, %x), @inner(1, %y, %x)) }}""",
    "branch": f"""
def @loop(%n: int32, %go: bool, %a: {T}, %rows: Tensor[(?, 8), float32]) -> ({T}, Tensor[(?, 8), float32]) {{
  if (logical_and(less(%n, 6), %go)) {{
    %0 = if (greater(max(%a), 1f)) {{ multiply(%a, 0.5f) }} else {{ add(%a, cast(%n, dtype="float32")) }};
    @loop(add(%n, 1), True, %0, concatenate((%rows, %0)))
  }} else {{ (%a, %rows) }}
}}
def @main(%x: {T}, %y: {T}) {{
  %0 = @loop(0, True, add(%x, %y), zeros(shape=[0, 8], dtype="float32"));
  (%0.0, reshape(%0.1, newshape=[12, 8]))
}}""",
    "lets that do not change": f"""
def @main(%x: {T}, %y: {T}) {{
  let %outer = fn (%n: int32, %a: {T}) -> {T} {{
    if (less(%n, 5)) {{
      let %inner = fn (%m: int32, %b: {T}, %c: {T}) -> {T} {{
        if (less(%m, 4)) {{ let %d = tanh(%y); let %e = exp(%d); %inner(add(%m, 1), add(%a, %e), %x) }} else {{ add(%b, %c) }}
      }};
      let %next = %inner(0, %a, %y);
      %outer(add(%n, 1), sigmoid(%next))
    }} else {{ %a }}
  }};
  let %z = %outer(0, %x);
  add(%z, %y)
}}""",
    "state that stays": f"""
def @loop(%n: int32, %a: {T}, %b: {T}, %c: {T}) -> ({T}, {T}, {T}) {{
  if (less(%n, 3)) {{ @loop(add(%n, 1), %b, %a, %c) }} else {{ (%a, %b, %c) }}
}}
def @main(%x: {T}, %y: {T}) {{ @loop(0, %x, %y, add(%x, %y)) }}""",
}


def loops(program: Program) -> list[Turns]:
    return [item for item in every(program.run) if isinstance(item, Turns)]


def arguments() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((2, 8), np.float32) for _ in range(2)]


def lowered(mod: IRModule, *bound: str) -> Program:
    return lower_module(mod, "main", list(bound), GENERIC, None, Calls(unroll=False))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    mod, args = module(PROGRAMS[name]), arguments()
    assert loops(lowered(mod))
    wanted = Evaluator(mod).call("main", args)
    for program in (compile_module(mod, QUICK), compile_aot(mod, "c"), compile_module(mod, QUICK, params={"y": args[1]})):
        assert_same(program.run(*args[: len(program.input_names)]), wanted)


@pytest.mark.parametrize("turns", [2, 3, 40])
def test_rows_have_places_of_their_own(turns: int) -> None:
    mod = module(LOOP.replace("TURNS", str(turns)))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((turns, 4), np.float32), rng.standard_normal((4, 4), np.float32)
    wanted = Evaluator(mod).call("main", [x, w])
    program = compile_module(mod, QUICK, params={"w": w})
    assert_same(program.run(x), wanted)
    program.set_params({"w": -w})
    assert_same(program.run(x), Evaluator(mod).call("main", [x, -w]))


def test_a_loop_of_many_turns_is_small() -> None:
    counts = []
    for turns in (40, 100_000):
        program = lowered(module(LOOP.replace("TURNS", str(turns))), "w")
        counts.append(len(every(program.run)))
        assert [item.op.turns for item in loops(program)] == [turns]
    assert counts[0] == counts[1]


LAYERS = 9


def recurrent_text(layers: int) -> str:
    """Layers in both directions, each over the results of the one before."""
    lines, data = [], "%x"
    for layer in range(layers):
        ways = []
        for way in range(2):
            name, sequence = f"{layer}_{way}", f"reverse({data}, axis=0)" if way else data
            lines.append(f"""
  %p{name} = nn.dense({sequence}, %w{way}, units=8);
  %r{name} = (let %loop = fn (%n: int32, %rows: Tensor[(?, 1, 8), float32], %h: Tensor[(1, 8), float32])
      -> (int32, Tensor[(?, 1, 8), float32], Tensor[(1, 8), float32]) {{
    if (less(%n, 40)) {{
      %s{name} = tanh(add(take(%p{name}, %n, axis=0), nn.dense(%h, %r, units=8)));
      %loop(add(%n, 1), concatenate((%rows, expand_dims(%s{name}, axis=0))), %s{name})
    }} else {{ (%n, %rows, %h) }}
  }};
  %loop(0, zeros(shape=[0, 1, 8], dtype="float32"), zeros(shape=[1, 8], dtype="float32")));
  %y{name} = reshape(%r{name}.1, newshape=[40, 1, 8]);""")
            ways.append(f"reverse(%y{name}, axis=0)" if way else f"%y{name}")
        lines.append(f"\n  %z{layer} = add({', '.join(ways)});")
        data = f"%z{layer}"
    w = "Tensor[(8, 8), float32]"
    return f"def @main(%x: Tensor[(40, 1, 8), float32], %w0: {w}, %w1: {w}, %r: {w}) {{{''.join(lines)}\n  {data}\n}}"


def test_stacked_layers_in_both_directions() -> None:
    mod = module(recurrent_text(LAYERS))
    rng = np.random.default_rng(0)
    x, *weights = [rng.standard_normal(shape, np.float32) / 4 for shape in ((40, 1, 8), *[(8, 8)] * 3)]
    params = dict(zip(("w0", "w1", "r"), weights))
    assert len(loops(lowered(mod, *params))) == 2 * LAYERS
    wanted = Evaluator(mod).call("main", [x, *weights])
    assert_same(compile_module(mod, QUICK, params=params).run(x), wanted)
    assert_same(compile_aot(mod, "c", params=params).run(x), wanted)


def test_visits_grow_with_the_layers() -> None:
    """A layer is evaluated once, wherever it is reached first."""
    counts = []
    for layers in (4, 8, 16):
        mod = module(recurrent_text(layers))
        flattener = _Flattener(mod, Calls(unroll=False), frozenset())
        flattener.run(mod["main"])
        counts.append(flattener.count)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


@pytest.mark.sweep
def test_nine_bidirectional_layers_of_onnx() -> None:
    pytest.importorskip("onnx")
    from relaylang.frontends.onnx import import_onnx
    from tests.frontends.onnx.models import model, node
    from tests.frontends.onnx.runtime import differ

    rng = np.random.default_rng(3)
    nodes, weights, data = [], {"shape": np.array([0, 0, 8], "int64")}, "x"
    for layer in range(LAYERS):
        for name, shape in (("w", (2, 12, 8)), ("r", (2, 12, 4)), ("b", (2, 24))):
            weights[f"{name}{layer}"] = rng.normal(size=shape).astype("float32")
        nodes.append(node("GRU", [data, *(f"{n}{layer}" for n in "wrb")], [f"y{layer}"], hidden_size=4, direction="bidirectional"))
        nodes.append(node("Transpose", [f"y{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        nodes.append(node("Reshape", [f"t{layer}", "shape"], [f"z{layer}"]))
        data = f"z{layer}"
    network = model(nodes, {"x": (40, 1, 8)}, [data], weights, opset=14)
    assert differ(network, {"x": rng.normal(size=(40, 1, 8)).astype("float32")}) <= 1e-5
    program = lowered(import_onnx(network).module)
    assert len(loops(program)) == 2 * LAYERS
    kernels = {id(item.kernel) for item in every(program.run) if isinstance(item, Run)}
    assert len(kernels) < 20 * LAYERS and len(walk(program.run)) < 20 * LAYERS
