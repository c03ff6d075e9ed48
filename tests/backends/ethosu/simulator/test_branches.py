"""Branches of the U85: TOSA's conditionals and loops, as Vela compiles them, give the reference model's integers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends.ethosu import flatbuffer
from relaylang.backends.ethosu.driver import _place
from relaylang.backends.ethosu.listing import listing
from relaylang.backends.ethosu.reference import run_tosa
from relaylang.backends.ethosu.simulator.region import run_stream
from relaylang.backends.ethosu.stream import read_stream
from relaylang.backends.ethosu.tosa import Graph, Operator
from relaylang.backends.ethosu.vela import Compiled, compile_model, settings
from relaylang.runtime.artifact import TensorSpec
from tests.shared import few

ACCELERATORS = ("ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048")
SHAPE = (1, 4, 5, 16)
#: Operators that run other regions, by the schema's numbers; the attributes are the names of these.
CONTROL = ("COND_IF", "WHILE_LOOP")


def file(graphs: list[Graph], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The file of several regions."""
    written = flatbuffer._attribute

    def attribute(builder: Any, op: Operator) -> int:
        if op.op not in CONTROL:
            return written(builder, op)
        names = [builder.CreateString(str(value)) for _, _, value in op.attributes]
        return flatbuffer._table(builder, 2, *enumerate(names))

    def region(builder: Any, graph: Graph) -> int:
        lists = (graph.operators, flatbuffer._operator), (graph.tensors.values(), flatbuffer._tensor)
        operators, tensors = (flatbuffer._offsets(builder, [make(builder, item) for item in items]) for items, make in lists)
        ends = [flatbuffer._strings(builder, names) for names in (graph.inputs, graph.outputs)]
        shapes = flatbuffer._offsets(builder, [flatbuffer._shape(builder, shape) for shape in graph.shapes.values()])
        fields = enumerate((builder.CreateString(graph.name), operators, tensors, *ends, shapes))
        blocks = flatbuffer._offsets(builder, [flatbuffer._table(builder, 6, *fields)])
        return flatbuffer._table(builder, 2, (0, builder.CreateString(graph.name)), (1, blocks))

    monkeypatch.setattr(flatbuffer, "_attribute", attribute)
    builder = pytest.importorskip("flatbuffers").Builder(1024)
    regions = flatbuffer._offsets(builder, [region(builder, graph) for graph in graphs])
    builder.StartObject(4)
    for slot, number in enumerate(flatbuffer.VERSION):
        builder.PrependInt32Slot(slot, number, -1)
    builder.PrependBoolSlot(3, False, True)
    version = builder.EndObject()
    builder.Finish(flatbuffer._table(builder, 2, (0, version), (1, regions)), file_identifier=b"TOSA")
    return bytes(builder.Output())


def conditional() -> list[Graph]:
    """The sum or the difference of two tensors."""
    main = Graph("main")
    given = [main.input("c", (1,), "bool"), *[main.input(name, SHAPE, "int32") for name in "xy"]]
    main.output(main._emit("COND_IF", given, SHAPE, "int32", (0, "name", "then"), (1, "name", "else")))
    graphs = [main]
    for name, op in (("then", "ADD"), ("else", "SUB")):
        graph = Graph(name)
        graph.output(graph.binary(op, *[graph.input(f"{name}_{given}", SHAPE, "int32") for given in "xy"]))
        graphs.append(graph)
    return graphs


def loop() -> list[Graph]:
    """Numbers doubled until a counter has 7."""
    main = Graph("main")
    given = main.input("i", (1,), "int32"), main.input("x", SHAPE, "int32")
    counted = main._emit("WHILE_LOOP", given, (1,), "int32", (0, "name", "cond"), (1, "name", "body"))
    doubled = main._tensor("doubled", SHAPE, "int32")
    made = main.operators[-1]
    main.operators[-1] = Operator(made.op, made.inputs, (counted.name, doubled.name), made.attributes)
    main.outputs = [counted.name, doubled.name]
    cond, body = Graph("cond"), Graph("body")
    count = cond.input("cond_i", (1,), "int32")
    cond.input("cond_x", SHAPE, "int32")
    cond.output(cond.binary("GREATER", cond.constant(np.array([7], np.int32)), count, dtype="bool"))
    count, x = body.input("body_i", (1,), "int32"), body.input("body_x", SHAPE, "int32")
    body.output(body.binary("ADD", count, body.constant(np.array([1], np.int32))))
    body.output(body.binary("ADD", x, x))
    return [main, cond, body]


def simulated(compiled: Compiled, stream: bytes, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> list[np.ndarray]:
    driver = {
        "weights_region": compiled.weights_region,
        "scratch": {"region": compiled.scratch_region, "bytes": compiled.scratch_size},
        "scratch_fast": {"region": compiled.scratch_fast_region, "bytes": compiled.scratch_fast_size},
        "inputs": [_place(t) for t in compiled.inputs],
        "outputs": [_place(t) for t in compiled.outputs],
    }
    return run_stream(stream, compiled.weights, driver, inputs, [TensorSpec(out.shape, out.dtype.name) for out in outputs])


def numbers() -> np.ndarray:
    return np.random.default_rng(0).integers(-1000, 1000, SHAPE).astype("int32")


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u85-256"))
@pytest.mark.parametrize(
    ("build", "inputs"),
    [
        (conditional, [np.array([True]), numbers(), numbers()[::, ::-1]]),
        (conditional, [np.array([False]), numbers(), numbers() + 5]),
        (loop, [np.array([2], np.int32), numbers()]),
        (loop, [np.array([9], np.int32), numbers()]),
    ],
)
def test_branches(build: Any, inputs: list[np.ndarray], accelerator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = file(build(), monkeypatch)
    compiled = compile_model(model, settings({"accelerator": accelerator}))
    wanted = run_tosa(model, inputs)
    for found, value in zip(simulated(compiled, compiled.command_stream, inputs, wanted), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


def test_hostile_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_model(file(loop(), monkeypatch), settings({"accelerator": "ethos-u85-256"}))
    stream = read_stream(compiled.command_stream, "x")
    branches = [command for command in stream.commands if command.name == "OP_BRANCH"]
    start = stream.commands[0].at

    def run(command: Any, condition: int, target: int) -> list[np.ndarray]:
        content = bytearray(compiled.command_stream)
        content[command.at : command.at + 8] = struct.pack("<HHI", struct.unpack_from("<H", content, command.at)[0], condition, target)
        return simulated(compiled, bytes(content), [np.array([2], np.int32), numbers()], [np.zeros(1, np.int32), numbers()])

    with pytest.raises(RelayError, match=f"R0616.*at byte {branches[0].at:#x}, OP_BRANCH, goes to byte .*where no command begins"):
        run(branches[0], 1, 2)
    with pytest.raises(RelayError, match="goes to byte 0x100020, where no command begins"):
        run(branches[0], 1, 1 << 20)
    with pytest.raises(RelayError, match=f"at byte {branches[0].at:#x}, OP_BRANCH, is where the stream exceeds 32768 branches"):
        run(branches[0], 0, branches[0].at - start)
    content = bytearray(compiled.command_stream)
    content[start : start + 8] = content[branches[0].at : branches[0].at + 8]
    with pytest.raises(RelayError, match="depends on the last operation's result, and there is none of one element"):
        simulated(compiled, bytes(content), [np.array([2], np.int32), numbers()], [np.zeros(1, np.int32), numbers()])


def test_a_listing_names_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_model(file(loop(), monkeypatch), settings({"accelerator": "ethos-u85-256"}))
    lines = listing(read_stream(compiled.command_stream, "x")).splitlines()
    branches = [line.split() for line in lines if " OP_BRANCH " in line]
    assert [words[3:] for words in branches] == [["branch_cond=1"], [], []]
    assert all(any(line.startswith(words[2]) for line in lines) for words in branches)
