"""Times of programs with control flow on the VM, beside the interpreter and TVM 0.16's VM: `make bench-vm`.

Encoders of open batch and sequence, recurrent layers of open length and batch, and decoders' steps run beside onnxruntime.

RELAY_ORACLE names a Python with TVM 0.16, and RELAY_ORACLE_TARGET its target for this processor.
`--write` writes the tables to benchmarks/results/vm.md. Tables that are not measured stay there as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.decoders import decoders
from benchmarks.machine import model
from benchmarks.timing import best, paired, peer_session

RESULTS = Path(__file__).parent / "results" / "vm.md"
LISTS = """
type Chain[A] { Link(A, Chain[A]), End }
def @iota(%n: int32, %l: Chain[int32]) -> Chain[int32] {
  if (less(%n, 1)) { %l } else { @iota(subtract(%n, 1), Link(%n, %l)) }
}
def @each[A, B](%f: fn (A) -> B, %l: Chain[A]) -> Chain[B] {
  match (%l) { Link(%h, %t) => Link(%f(%h), @each(%f, %t)), End => End }
}
def @fold[A, B](%f: fn (A, B) -> A, %a: A, %l: Chain[B]) -> A {
  match (%l) { Link(%h, %t) => @fold(%f, %f(%a, %h), %t), End => %a }
}
"""
CELL = """
def @cell(%x: Tensor[(1, 128), float32], %h: Tensor[(1, 128), float32], %c: Tensor[(1, 128), float32],
          %w: Tensor[(512, 128), float32], %u: Tensor[(512, 128), float32])
    -> (Tensor[(1, 128), float32], Tensor[(1, 128), float32]) {
  let %g = split(add(nn.dense(%x, %w, units=512), nn.dense(%h, %u, units=512)), indices_or_sections=4, axis=1);
  let %d = add(multiply(sigmoid(%g.0), %c), multiply(sigmoid(%g.1), tanh(%g.2)));
  (multiply(sigmoid(%g.3), tanh(%d)), %d)
}
"""
WEIGHTS = "%w: Tensor[(512, 128), float32], %u: Tensor[(512, 128), float32]"
T = "Tensor[(1, 128), float32]"
#: Name -> the text and the arguments of @main: numbers, or shapes of random tensors.
PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "loop of 100 000": (
        """
def @loop(%i: int32, %a: int32) -> int32 { if (less(%i, 1)) { %a } else { @loop(subtract(%i, 1), add(%a, %i)) } }
def @main(%n: int32) -> int32 { @loop(%n, 0) }
""",
        [100_000],
    ),
    "fib(20)": (
        """
def @fib(%n: int32) -> int32 { if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) } }
def @main(%n: int32) -> int32 { @fib(%n) }
""",
        [20],
    ),
    "list of 1 000, map and fold": (
        LISTS
        + """
def @main(%n: int32) -> int32 {
  let %l = @each(fn (%x: int32) -> int32 { multiply(%x, 2) }, @iota(%n, End));
  @fold(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, %l)
}
""",
        [1000],
    ),
    "LSTM 128 of 40 steps, length at run time": (
        CELL
        + f"""
def @steps(%n: int32, %x: {T}, %h: {T}, %c: {T}, {WEIGHTS}) -> {T} {{
  if (less(%n, 1)) {{ %h }} else {{
    let %s = @cell(%x, %h, %c, %w, %u);
    @steps(subtract(%n, 1), %x, %s.0, %s.1, %w, %u)
  }}
}}
def @main(%n: int32, %x: {T}, {WEIGHTS}) -> {T} {{
  @steps(%n, %x, zeros(shape=[1, 128], dtype="float32"), zeros(shape=[1, 128], dtype="float32"), %w, %u)
}}
""",
        [40, (1, 128), (512, 128), (512, 128)],
    ),
    "tree LSTM 128, 63 nodes": (
        CELL
        + f"""
type Tree {{ Leaf, Node(Tree, Tree) }}
def @grown(%n: int32) -> Tree {{ if (less(%n, 1)) {{ Leaf }} else {{ Node(@grown(subtract(%n, 1)), @grown(subtract(%n, 1))) }} }}
def @state(%t: Tree, %x: {T}, {WEIGHTS}) -> ({T}, {T}) {{
  match (%t) {{
    Leaf => (%x, %x),
    Node(%a, %b) => {{
      let %l = @state(%a, %x, %w, %u);
      let %r = @state(%b, %x, %w, %u);
      @cell(%x, add(%l.0, %r.0), add(%l.1, %r.1), %w, %u)
    }},
  }}
}}
def @main(%n: int32, %x: {T}, {WEIGHTS}) -> {T} {{ let %s = @state(@grown(%n), %x, %w, %u); %s.0 }}
""",
        [6, (1, 128), (512, 128), (512, 128)],
    ),
}


#: The networks whose extents are `?`: the axes that are, and the batches and the images' extents.
NETWORKS = (
    ("mobilenet", (0,), (1, 224)),
    ("mobilenet", (0,), (8, 224)),
    ("mobilenet", (0, 2, 3), (1, 224)),
    ("mobilenet", (0, 2, 3), (1, 160)),
    ("resnet", (0, 2, 3), (1, 224)),
)


def arguments(spec: list[Any]) -> list[np.ndarray]:
    """The arguments of @main, the same in both processes."""
    rng = np.random.default_rng(0)
    return [np.int32(s) if isinstance(s, int) else (rng.standard_normal(s) / 12).astype("float32") for s in spec]


def peer() -> None:
    """In TVM's process: the times of its VM, as JSON."""
    import tvm
    from tvm import relay

    found = {}
    for name, (text, spec) in PROGRAMS.items():
        target = os.environ.get("RELAY_ORACLE_TARGET", "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3")
        try:
            mod = tvm.parser.fromtext('#[version = "0.0.5"]\n' + text)
            with tvm.transform.PassContext(opt_level=3):
                machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, target), tvm.cpu())
            values = [tvm.nd.array(a) for a in arguments(spec)]
            result = machine.invoke("main", *values)
            found[name] = (best(lambda m=machine, v=values: m.invoke("main", *v)), result.numpy().tolist())
        except Exception as failed:
            print(f"{name}: {str(failed).strip().splitlines()[-1][:200]}", file=sys.stderr)
    print(json.dumps(found))


def opened(mod: Any, axes: Sequence[int]) -> Any:
    """A network with `?` for some axes of its data."""
    from relaylang.ir import ANY, Function, IRModule, TensorType, Var, substitute
    from relaylang.typing import check

    main = mod["main"]
    data = main.params[0]
    ty = data.checked_type
    images = Var(data.name_hint, TensorType([ANY if d in axes else n for d, n in enumerate(ty.shape)], ty.dtype))
    made = IRModule.from_expr(Function([images, *main.params[1:]], substitute(main.body, {data: images})))
    check(made, fresh=True)
    return made


def unknown() -> list[str]:
    """The rows of networks of unknown extents, beside the same networks compiled for these extents."""
    from relaylang.backends import compile_module
    from relaylang.backends.vm import compile_vm
    from relaylang.ir.binding import bind_params
    from relaylang.tvm.relay.testing import mobilenet, resnet

    lines = ["| network | `?` | data | VM, first run (ms) | VM (ms) | known extents (ms) | ratio |", "|---|---|---|---|---|---|---|"]
    for name, axes, (batch, side) in NETWORKS:
        network: Any = {"mobilenet": mobilenet, "resnet": resnet}[name]
        mod, given = network.get_workload(batch_size=batch, image_shape=(3, side, side))
        params = {key: value.numpy() for key, value in given.items()}
        executable = compile_vm(bind_params(opened(mod, axes), params), entries=["main"])
        data = np.random.default_rng(0).random((batch, 3, side, side), "float32")
        known = compile_module(mod, "c", params=params)
        assert executable.loaded.library  # in memory before the clock runs
        begin = time.perf_counter()
        found = executable.call("main", (data,))
        first = (time.perf_counter() - begin) * 1e3
        np.testing.assert_allclose(found, known.run(data), rtol=1e-3, atol=1e-6)
        ours = theirs = float("inf")
        for _ in range(5):  # in turns: the clock of the processor changes
            ours = min(ours, best(lambda d=data, e=executable: e.call("main", (d,))))
            theirs = min(theirs, best(lambda d=data, k=known: k.run(d)))
        axis = "".join("NCHW"[d] for d in axes)
        shape = f"{batch} x 3 x {side} x {side}"
        lines.append(f"| {name} | {axis} | {shape} | {first:.2f} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")
    return lines


#: Encoders of open batch and sequence: layers and width; and the batches and sequences of the runs.
ENCODERS = [(layers, width) for layers in (2, 6) for width in (64, 384, 768)]
LENGTHS = ((1, 16), (4, 64), (1, 128))


def encoder(layers: int, width: int) -> tuple[str, dict[str, np.ndarray]]:
    """A transformer's encoder with heads of 64, as importers write it, and its weights."""
    rng = np.random.default_rng(0)
    heads = max(1, width // 64)
    weights: dict[str, np.ndarray] = {}
    lines = [
        '  let %s = shape_of(%x, dtype="int64");',
        "  let %b = strided_slice(%s, begin=[0], end=[1], strides=[1], axes=[0]);",
        "  let %t = strided_slice(%s, begin=[1], end=[2], strides=[1], axes=[0]);",
    ]

    def weight(name: str, *shape: int) -> str:
        weights[name] = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype("float32")
        return f"%{name}"

    def dense(data: str, name: str, units: int, depth: int) -> str:
        return f"add(nn.dense({data}, {weight(name, units, depth)}), {weight(name + 'b', units)})"

    def norm(data: str, name: str) -> str:
        return f"nn.layer_norm({data}, {weight(name + 'g', width)}, {weight(name + 'o', width)})"

    def joined(*parts: int | str) -> str:
        return f"concatenate(({', '.join(p if isinstance(p, str) else f'expand_dims({p}i64, axis=0)' for p in parts)}))"

    size, x = width // heads, "%x"
    for n in range(layers):
        for part in "qkv":
            split = joined("%b", "%t", heads, size)
            lines += [
                f"  let %{part}{n} = dyn.reshape({dense(x, f'w{part}{n}_', width, width)}, {split}, newshape=None);",
                f"  let %h{part}{n} = reshape(transpose(%{part}{n}, axes=[0, 2, 1, 3]), newshape=[-3, -2]);",
            ]
        back = joined("%b", heads, "%t", size)
        lines += [
            f"  let %a{n} = nn.softmax(multiply(nn.batch_matmul(%hq{n}, %hk{n}, transpose_b=True), {size**-0.5}f));",
            f"  let %c{n} = nn.batch_matmul(%a{n}, %hv{n}, transpose_b=False);",
            f"  let %d{n} = transpose(dyn.reshape(%c{n}, {back}, newshape=None), axes=[0, 2, 1, 3]);",
            f"  let %e{n} = dyn.reshape(%d{n}, {joined('%b', '%t', width)}, newshape=None);",
            f"  let %p{n} = add({x}, {dense(f'%e{n}', f'p{n}_', width, width)});",
            f"  let %f{n} = {norm(f'%p{n}', f'n{n}_')};",
            f"  let %g{n} = nn.relu({dense(f'%f{n}', f'u{n}_', 4 * width, width)});",
            f"  let %l{n} = add(%f{n}, {dense(f'%g{n}', f'l{n}_', width, 4 * width)});",
            f"  let %x{n} = {norm(f'%l{n}', f'm{n}_')};",
        ]
        x = f"%x{n}"
    params = [f"%{name}: Tensor[({', '.join(map(str, w.shape))}{',' * (w.ndim == 1)}), float32]" for name, w in weights.items()]
    head = f"def @main(%x: Tensor[(?, ?, {width}), float32], {', '.join(params)})"
    return f"{head} {{\n" + "\n".join([*lines, f"  {x} }}"]), weights


def encoders() -> list[str]:
    """The rows of encoders, beside onnxruntime on their export. Both have one thread."""
    import relaylang as relay
    from relaylang.backends.vm import compile_vm
    from relaylang.export.onnx import export_onnx
    from relaylang.ir.binding import bind_params

    lines = ["| encoder | batch, sequence | VM (ms) | onnxruntime (ms) | ratio | fallbacks |", "|---|---|---|---|---|---|"]
    for layers, width in ENCODERS:
        text, weights = encoder(layers, width)
        mod = relay.transform.InferType()(bind_params(relay.parse(text), weights))
        executable = compile_vm(mod, "c -num-threads=1", entries=["main"])
        session = peer_session(export_onnx(mod))
        for batch, length in LENGTHS:
            data = np.random.default_rng(1).standard_normal((batch, length, width)).astype("float32")
            (theirs,) = session.run(None, {"x": data})
            np.testing.assert_allclose(executable.call("main", (data,)), theirs, rtol=1e-3, atol=1e-4)
            ratio, ours, peer_time = paired(partial(executable.call, "main", (data,)), partial(session.run, None, {"x": data}))
            shape, fallbacks = f"{batch}, {length}", len(executable.fallbacks())
            lines.append(f"| {layers} layers of {width} | {shape} | {ours:.2f} | {peer_time:.2f} | {ratio:.2f} | {fallbacks} |")
    return lines


#: Stacks of bidirectional layers: ONNX's operator, layers and width; and the steps and batches of the runs.
STACKS = [(kind, layers, width) for kind in ("GRU", "LSTM") for layers, width in ((2, 64), (2, 256), (9, 64))]
STEPS = ((40, 1), (40, 8), (200, 1))


def stack(kind: str, layers: int, width: int) -> Any:
    """An ONNX model of bidirectional layers whose length and batch are open, as PyTorch exports them."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    gates = {"GRU": 3, "LSTM": 4}[kind]
    attributes = {"hidden_size": width, "direction": "bidirectional", **({"linear_before_reset": 1} if kind == "GRU" else {})}
    nodes, weights, x, depth = [], [numpy_helper.from_array(np.array([0, 0, -1]), "shape")], "x", width
    for n in range(layers):
        shapes = {"w": (2, gates * width, depth), "r": (2, gates * width, width), "b": (2, 2 * gates * width)}
        for name, shape in shapes.items():
            weights.append(numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(width)).astype("float32"), f"{name}{n}"))
        nodes += [
            helper.make_node(kind, [x, *(f"{name}{n}" for name in shapes)], [f"y{n}"], **attributes),
            helper.make_node("Transpose", [f"y{n}"], [f"t{n}"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"t{n}", "shape"], [f"x{n}"]),
        ]
        x, depth = f"x{n}", 2 * width
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["steps", "batch", d]) for n, d in (("x", width), (x, depth))]
    graph = helper.make_graph(nodes, kind, ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def recurrent() -> list[str]:
    """The rows of stacked recurrent layers on the VM, beside onnxruntime on the imported file. Both have one thread."""
    from relaylang.backends.vm import compile_vm
    from relaylang.frontends.onnx import import_onnx

    lines = ["| bidirectional layers | steps, batch | VM (ms) | onnxruntime (ms) | ratio | fallbacks |", "|---|---|---|---|---|---|"]
    for kind, layers, width in STACKS:
        network = stack(kind, layers, width)
        executable = compile_vm(import_onnx(network).module, "c -num-threads=1", entries=["main"])
        session = peer_session(network)
        for steps, batch in STEPS:
            data = np.random.default_rng(1).standard_normal((steps, batch, width)).astype("float32")
            np.testing.assert_allclose(executable.call("main", (data,)), session.run(None, {"x": data})[0], rtol=1e-3, atol=1e-4)
            ratio, ours, theirs = paired(partial(executable.call, "main", (data,)), partial(session.run, None, {"x": data}))
            name = f"{layers} {kind} of {width}"
            lines.append(f"| {name} | {steps}, {batch} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {len(executable.fallbacks())} |")
    return lines


#: Networks of `make peers` with branches, and the shape of their sound.
BRANCHES = {"silero_vad": (1, 576), "silero_vad_16k_op15": (1, 512), "silero_vad_half": (1, 512), "silero_vad_op18_ifless": (1, 512)}


def branches() -> list[str]:
    """The rows of ONNX networks with `If`, beside onnxruntime on the file. Both have one thread."""
    import onnx

    from relaylang.backends.vm import compile_vm
    from relaylang.frontends.onnx import import_onnx
    from tests.frontends.networks import data

    lines = ["| network with branches | VM (ms) | onnxruntime (ms) | ratio | fallbacks |", "|---|---|---|---|---|"]
    for name, shape in BRANCHES.items():
        network = onnx.load_from_string(data(f"{name}.onnx"))
        executable = compile_vm(import_onnx(network).module, "c -num-threads=1", entries=["main"])
        sound = np.random.default_rng(0).standard_normal(shape).astype("float32") * np.float32(0.1)
        values = {"input": sound, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000, np.int64)}
        feeds = {i.name: values[i.name] for i in network.graph.input}
        session, args = peer_session(network), tuple(feeds.values())
        for ours, theirs in zip(executable.call("main", args), session.run(None, feeds), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
        ratio, own, peer_time = paired(partial(executable.call, "main", args), partial(session.run, None, feeds))
        lines.append(f"| {name} | {own:.3f} | {peer_time:.3f} | {ratio:.2f} | {len(executable.fallbacks())} |")
    return lines


def programs() -> list[str]:
    """The rows of programs with control flow, beside the interpreter and TVM's VM."""
    import relaylang as relay
    from relaylang.backends.vm import compile_vm
    from relaylang.interpreter import Evaluator

    oracle = os.environ.get("RELAY_ORACLE")
    theirs: dict[str, Any] = {}
    if oracle:
        done = subprocess.run([oracle, __file__, "peer"], capture_output=True, text=True)
        print(done.stderr[-2000:], file=sys.stderr)
        theirs = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    lines = ["| program | VM (ms) | interpreter (ms) | TVM 0.16's VM (ms) | VM / TVM |", "|---|---|---|---|---|"]
    for name, (text, spec) in PROGRAMS.items():
        mod = relay.parse(text)
        values = tuple(arguments(spec))
        executable = compile_vm(mod, entries=["main"])
        evaluator = Evaluator(mod)
        np.testing.assert_allclose(executable.call("main", values), evaluator.call("main", values), rtol=1e-3, atol=1e-4)
        ours = best(lambda e=executable, v=values: e.call("main", v))
        interpreted = best(lambda e=evaluator, v=values: e.call("main", v))
        peer_time = theirs.get(name)
        if peer_time is not None:
            np.testing.assert_allclose(executable.call("main", values), peer_time[1], rtol=1e-3, atol=1e-4)
        beside = f"{peer_time[0]:.2f} | {ours / peer_time[0]:.3f}" if peer_time is not None else "- | -"
        lines.append(f"| {name} | {ours:.3f} | {interpreted:.2f} | {beside} |")
    return lines


#: The tables by name, in the order of the file, each with the first column's head.
TABLES: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "programs": ("program", programs),
    "networks": ("network", unknown),
    "encoders": ("encoder", encoders),
    "recurrent": ("bidirectional layers", recurrent),
    "branches": ("network with branches", branches),
    "decoder": ("decoder with cache", decoders),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/vm.md")
    parser.add_argument("names", nargs="*", metavar="TABLE", help=f"tables to measure: {', '.join(TABLES)} (all)")
    options = parser.parse_args()
    for name in options.names:
        if name not in TABLES:
            parser.error(f"there is no table {name}")
    tables = {}
    for name, (head, rows) in TABLES.items():
        if not options.names or name in options.names:
            tables[head] = "\n".join(rows())
            print(tables[head], end="\n\n", flush=True)
    if options.write:
        text = "# Programs with control flow\n\nWritten by `make bench-vm WRITE=1`: least times of a run, one process at a time.\n"
        text += f"{model()}, {os.cpu_count()} processors."
        if options.names:
            title, text, *old = RESULTS.read_text().strip().split("\n\n")
            text = f"{title}\n\n{text}"
            tables = {table.split("|")[1].strip(): table for table in old} | tables
        RESULTS.write_text("\n\n".join([text, *(tables[head] for head, _ in TABLES.values() if head in tables)]) + "\n")


if __name__ == "__main__":
    peer() if sys.argv[1:] == ["peer"] else main()
