"""Files that are cut, hostile or of operators that Relay lacks: diagnostics with places, and bounded work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.common.protobuf import messages
from relaylang.frontends.formats import format_of, import_bytes
from relaylang.frontends.options import Options
from relaylang.frontends.tensorflow import import_tensorflow
from relaylang.frontends.tensorflow.bundle import table_entries, unsnapped
from relaylang.frontends.tensorflow.schema import tensorflow
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from relaylang.runtime.budget import Budget
from tests.frontends.tensorflow.recorded import cases

pytest.importorskip("google.protobuf", reason="the importer reads messages by protobuf")


def graph(*nodes: tuple[str, ...], functions: dict[str, list[tuple[str, ...]]] | None = None) -> Any:
    """A GraphDef of nodes (name, operator, operands ...) behind the input `x` of four float32."""
    made = tensorflow()["GraphDef"]()
    x = made.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = 1
    x.attr["shape"].shape.dim.add().size = 4
    for name, op, *inputs in nodes:
        made.node.add(name=name, op=op, input=inputs)
    for name, body in (functions or {}).items():
        function = made.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="a", type=1)
        function.signature.output_arg.add(name="r", type=1)
        for node, op, *inputs in body:
            function.node_def.add(name=node, op=op, input=inputs)
        function.ret["r"] = f"{body[-1][0]}:y:0"
    return made


def refused(model: Any, *outputs: str, options: Options | None = None) -> Any:
    """The diagnostics of a model."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with pytest.raises(RelayError) as raised:
        import_tensorflow(data, options or Options(), "net.pb", outputs)
    return raised.value.diagnostics


def test_operators_that_relay_lacks_are_listed_at_once() -> None:
    model = graph(
        ("a", "Rellu", "x"), ("b", "FancyOp", "x"), ("c", "FancyOp", "b"), ("d", "RandomUniform", "x"), ("y", "AddN", "a", "c", "d")
    )
    (problem,) = refused(model)
    assert (problem.code, problem.title) == ("R0801", "4 layers of 3 operators cannot be converted")
    said = "\n".join(problem.notes)
    assert "did you mean Relu?" in said and "random numbers differ" in said and "first in b" in said
    (again,) = refused(graph(("a", "FancyOp", "x"), ("b", "FancyOp", "x"), ("y", "AddV2", "a", "b")))
    assert "2 x FancyOp" in again.notes[0]


def test_graphs_that_are_wrong_are_named() -> None:
    wrong = {
        "the graph has a cycle through": graph(("a", "AddV2", "x", "b"), ("b", "Relu", "a"), ("y", "Relu", "b")),
        "the graph has no node z": graph(("y", "Relu", "z")),
        "takes at most 1": graph(("y", "Relu", "x", "x")),
        "the operand 1 is missing": graph(("y", "AddV2", "x")),
        "takes the result 3 of x": graph(("y", "Relu", "x:3")),
        "is no tensor's name": graph(("y", "Relu", "x:1:2:3")),
        "it enters a loop": graph(("y", "Enter", "x")),
        "it leaves no loop": graph(("y", "Exit", "x")),
        "no Switch before it": graph(("y", "Merge", "x", "x")),
        "the attribute strides is missing": graph(("y", "MaxPool", "x")),
    }
    for said, model in wrong.items():
        titles = " ".join(d.title for d in refused(model, "y"))
        assert said in titles or "axes" in titles, (said, titles)
    assert refused(graph(("y", "Relu", "x")), "why")[0].code == "R0804"
    assert refused(graph(("y", "Relu", "x")), options=Options({"z": (1,)}))[0].code == "R0804"
    assert refused(tensorflow()["GraphDef"]())[0].code == "R0802"


def test_cut_files_are_refused() -> None:
    data = cases()["Conv2D SAME 1"].graph
    for end in range(1, len(data), 97):
        with pytest.raises(RelayError):
            import_tensorflow(data[:end])


def test_a_small_file_cannot_ask_for_much() -> None:
    model = graph(("y", "Relu", "c"))
    const = model.node.add(name="c", op="Const")
    tensor = const.attr["value"].tensor
    tensor.dtype = 1
    tensor.float_val.append(1.0)
    for _ in range(3):
        tensor.tensor_shape.dim.add().size = 1 << 20
    assert refused(model)[0].code == "R0016"
    doubling = {f"f{i}": [("l", f"f{i + 1}", "a"), ("r", f"f{i + 1}", "l:r:0")] for i in range(40)}
    found = refused(graph(("y", "f0", "x"), functions={**doubling, "f40": [("o", "Relu", "a")]}))
    assert found[0].code == "R0016"
    assert "64 deep" in str(refused(graph(("y", "f", "x"), functions={"f": [("o", "f", "a")]}))[0].notes)


def test_long_and_shared_graphs_are_read_in_linear_work() -> None:
    nodes = [(f"n{i}", "AddV2", f"n{i - 1}" if i else "x", f"n{i - 1}" if i else "x") for i in range(2000)]
    made = import_tensorflow(graph(*reversed(nodes)).SerializeToString())
    assert len(made.listing.layers) == 2001
    assert relay.infer(made.module, fresh=True) == []


def test_formats_are_known_by_their_contents() -> None:
    from google.protobuf import text_format

    data = cases()["Conv2D SAME 1"].graph
    proto = tensorflow()["GraphDef"].FromString(data)
    text = text_format.MessageToString(proto).encode()
    saved = tensorflow()["SavedModel"](saved_model_schema_version=1)
    saved.meta_graphs.add().graph_def.CopyFrom(proto)
    for content in (data, text, saved.SerializeToString(), text_format.MessageToString(saved).encode()):
        found = format_of(content)
        assert found is not None and found.name == "tensorflow"
    assert format_of(b"node = 1") is None and format_of(b"\x0a\x00") is None
    made = import_bytes(text, "net.pbtxt")
    assert made is not None and structural_equal(made.module, import_tensorflow(data).module)
    with pytest.raises(RelayError, match="in line 2"):
        import_tensorflow(b'node { op: "Relu" }\nnode { op: ')


def test_blocks_compressed_by_snappy() -> None:
    budget = Budget("net", 0)
    # "abcd", then eight bytes copied from four before: the copy overlaps itself.
    assert unsnapped(bytes([12, 12]) + b"abcd" + bytes([17, 4]), budget) == b"abcdabcdabcd"
    assert unsnapped(bytes([6, 20]) + b"snappy", budget) == b"snappy"
    for wrong in (b"", bytes([12, 12]) + b"ab", bytes([4, 17, 4]), bytes([255] * 12)):
        with pytest.raises((IndexError, ValueError)):
            unsnapped(wrong, budget)
    with pytest.raises(RelayError):
        unsnapped(bytes([255, 255, 255, 255, 127, 0]), budget)
    with pytest.raises(ValueError, match="footer"):
        table_entries(b"no table" * 20, budget)


def test_messages_come_from_a_table() -> None:
    table = "M: a 1 int32*; b 2 {string N};\n    c 3 K\nN: x 1 float @one; y 2 string @one\nenum K: A 0; B 1\n"
    made = messages(table, "test.table", "tensorflow")
    m = made["M"](a=[1, 2], c=1)
    m.b["k"].y = "text"
    again = made["M"].FromString(m.SerializeToString())
    assert (list(again.a), again.b["k"].WhichOneof("one"), again.c) == ([1, 2], "y", 1)


def test_values_and_texts_of_inputs() -> None:
    model = graph(("y", "AddV2", "x", "x"))
    made = import_tensorflow(model.SerializeToString(), Options(values={"x": np.ones(4, "float32")}))
    assert not made.module["main"].params
    model.node[0].attr["dtype"].type = 7
    assert refused(model)[0].code == "R0801"
    del model.node[0].attr["shape"]
    model.node[0].attr["dtype"].type = 1
    assert import_tensorflow(model.SerializeToString(), Options({"x": (2, 2)})).module["main"].params[0].checked_type.shape == (2, 2)


@pytest.mark.parametrize("rows", [[3, 0, 3, 5], [0, 1, 2], [], [5, 4, 4]])
def test_empty_rows_of_sparse_tensors_are_filled(rows: list[int]) -> None:
    made = tensorflow()["GraphDef"]()
    given = {"at": (np.array([[r, i] for i, r in enumerate(rows)], "int64").reshape(-1, 2), 9), "v": (np.arange(len(rows)) + 0.5, 1)}
    for name, (value, dtype) in given.items():
        node = made.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = dtype
        for extent in value.shape:
            node.attr["shape"].shape.dim.add().size = extent
    made.node.add(name="shape", op="Const").attr["dtype"].type = 9
    tensor = made.node[-1].attr["value"].tensor
    tensor.dtype, tensor.tensor_content = 9, np.array([6, 9], "int64").tobytes()
    tensor.tensor_shape.dim.add().size = 2
    made.node.add(name="d", op="Const").attr["dtype"].type = 1
    tensor = made.node[-1].attr["value"].tensor
    tensor.dtype, tensor.tensor_content = 1, np.float32(-1.5).tobytes()
    made.node.add(name="y", op="SparseFillEmptyRows", input=["at", "v", "shape", "d"])
    mod = import_tensorflow(made.SerializeToString(), Options(), "net.pb", ("y:0", "y:1", "y:2", "y:3")).module
    assert relay.infer(mod, fresh=True) == []
    values = [value.astype("float32" if name == "v" else value.dtype) for name, (value, _) in given.items()]
    found = [np.asarray(v) for v in Evaluator(mod).call("main", tuple(values))]
    empty = [r for r in range(6) if r not in rows]
    entries = [(r, i, i + 0.5, i) for i, r in enumerate(rows)] + [(r, 0, -1.5, -1) for r in empty]
    entries.sort(key=lambda e: (e[0], e[3]))
    assert [v.dtype.name for v in found] == ["int64", "float32", "bool", "int64"]
    np.testing.assert_array_equal(found[0], np.array([e[:2] for e in entries]))
    np.testing.assert_array_equal(found[1], np.array([e[2] for e in entries], "float32"))
    np.testing.assert_array_equal(found[2], [r in empty for r in range(6)])
    places = [e[3] for e in entries]
    np.testing.assert_array_equal(found[3], [places.index(i) for i in range(len(rows))])


def test_a_picture_in_the_place_of_its_file() -> None:
    """Old classifiers begin with the file of a picture: a placeholder or a constant of texts."""
    rows = np.arange(24).reshape(2, 4, 3).astype("uint8")
    for kind in ("Placeholder", "Const"):
        made = graph(("contents", kind), ("decoded", "DecodeJpeg", "contents"), ("y", "Cast", "decoded"))
        nodes = {node.name: node for node in made.node}
        nodes["contents"].attr["dtype"].type = 7
        nodes["decoded"].attr["channels"].i = 3
        nodes["y"].attr["SrcT"].type, nodes["y"].attr["DstT"].type = 4, 1
        if kind == "Const":
            nodes["contents"].attr["value"].tensor.dtype = 7
            nodes["contents"].attr["value"].tensor.string_val.append(b"file")
        mod, _ = relay.frontend.from_tensorflow(made.SerializeToString(), shape={"contents": (2, 4, 3)}, outputs=["y"])
        np.testing.assert_array_equal(np.asarray(Evaluator(mod).call("main", (rows,))), rows.astype("float32"))
        (problem,) = refused(made, "y")
        assert problem.code == "R0801"
        (problem,) = refused(made, "y", options=Options({"contents": (2, 4, 4)}))
        assert "it has 3 channels, and the picture 4" in problem.title
