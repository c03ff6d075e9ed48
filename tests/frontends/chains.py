"""Models of many layers as bytes of a file, in every format: a chain of activations, and doublings with 2^n paths."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

from relaylang.frontends.common import Imported
from relaylang.frontends.darknet import import_darknet
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options

SHAPE = (2, 3)
#: Layers of a model: the number of each, and of its operands. The number 0 is the input "t0".
Layers = list[tuple[int, ...]]


def chain(size: int) -> Layers:
    """Each layer has the layer before it as its operand."""
    return [(i + 1, i) for i in range(size)]


def doublings(size: int) -> Layers:
    """Each layer adds the layer before it to itself: two to the power of `size` paths."""
    return [(i + 1, i, i) for i in range(size)]


def onnx(layers: Layers) -> bytes:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Relu" if len(of) == 1 else "Add", [f"t{i}" for i in of], [f"t{n}"]) for n, *of in layers]
    ends = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, SHAPE) for i in (0, len(layers))]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return model


def tflite(layers: Layers) -> bytes:
    from tests.frontends.tflite.files import Op, T, file

    ops = [
        Op("RELU", [f"t{of[0]}"], [f"t{n}"]) if len(of) == 1 else Op("ADD", [f"t{i}" for i in of], [f"t{n}"], "AddOptions")
        for n, *of in layers
    ]
    return file({f"t{i}": T(SHAPE) for i in range(len(layers) + 1)}, ops, ["t0"], [f"t{len(layers)}"])


def mxnet(layers: Layers) -> bytes:
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "t0", "inputs": []}]
    for n, *of in layers:
        rule = {"op": "relu"} if len(of) == 1 else {"op": "elemwise_add"}
        nodes.append({**rule, "name": f"t{n}", "inputs": [[i, 0, 0] for i in of]})
    return json.dumps(
        {"nodes": nodes, "arg_nodes": [0], "heads": [[len(layers), 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    ).encode()


def _graph(layers: Layers) -> Any:
    from relaylang.frontends.tensorflow.schema import tensorflow

    made = tensorflow()["GraphDef"]()
    given = made.node.add(name="t0", op="Placeholder")
    given.attr["dtype"].type = 1
    for extent in SHAPE:
        given.attr["shape"].shape.dim.add().size = extent
    for n, *of in layers:
        made.node.add(name=f"t{n}", op="Relu" if len(of) == 1 else "AddV2", input=[f"t{i}" for i in of])
    return made


def graphdef(layers: Layers) -> bytes:
    data: bytes = _graph(layers).SerializeToString()
    return data


def savedmodel(layers: Layers) -> bytes:
    from relaylang.frontends.tensorflow.schema import tensorflow

    saved = tensorflow()["SavedModel"](saved_model_schema_version=1)
    graph = saved.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.CopyFrom(_graph(layers))
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for ends, name in ((signature.inputs, "t0"), (signature.outputs, f"t{len(layers)}")):
        ends[name].name, ends[name].dtype = f"{name}:0", 1
        for extent in SHAPE:
            ends[name].tensor_shape.dim.add().size = extent
    data: bytes = saved.SerializeToString()
    return data


def _keras(layers: Layers, third: bool = False) -> str:
    """The configuration of Keras 2, or of Keras 3."""

    def one(kind: str, name: str, of: list[int], **more: Any) -> dict[str, Any]:
        places = [[f"t{i}", 0, 0] for i in of]
        calls: list[Any] = [[[*place, {}] for place in places]] if of else []
        if third and of:
            tensors = [{"class_name": "__keras_tensor__", "config": {"shape": SHAPE, "keras_history": place}} for place in places]
            calls = [{"args": tensors if kind == "Activation" else [tensors], "kwargs": {}}]
        return {"module": "keras.layers", "class_name": kind, "config": {"name": name, **more}, "name": name, "inbound_nodes": calls}

    listed = [one("InputLayer", "t0", [], **{"batch_shape" if third else "batch_input_shape": SHAPE})]
    for n, *of in layers:
        listed.append(one("Activation", f"t{n}", of, activation="relu") if len(of) == 1 else one("Add", f"t{n}", of))
    ends = {"input_layers": [["t0", 0, 0]], "output_layers": [[f"t{len(layers)}", 0, 0]]}
    return json.dumps({"class_name": "Functional", "config": {"name": "net", "layers": listed, **ends}})


def h5(layers: Layers) -> bytes:
    import h5py

    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file.attrs["keras_version"], file.attrs["model_config"] = "2.9.0", _keras(layers)
        file.create_group("model_weights")
    return out.getvalue()


def keras(layers: Layers) -> bytes:
    import h5py

    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file.create_group("layers")
    return _zip(
        {
            "metadata.json": b'{"keras_version": "3.8.0"}',
            "config.json": _keras(layers, True).encode(),
            "model.weights.h5": weights.getvalue(),
        }
    )


def _zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def mlir(layers: Layers) -> bytes:
    kind = f"tensor<{SHAPE[0]}x{SHAPE[1]}xf32>"
    rules = {1: "negate", 2: "add"}
    lines = [f"  %t{n} = stablehlo.{rules[len(of)]} {', '.join(f'%t{i}' for i in of)} : {kind}\n" for n, *of in layers]
    return f"func.func @main(%t0: {kind}) -> {kind} {{\n{''.join(lines)}  return %t{len(layers)} : {kind}\n}}\n".encode()


def mlirbc(layers: Layers) -> bytes:
    return artifact(mlir(layers).decode())


def artifact(text: str) -> bytes:
    """A portable artifact of MLIR's text."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        stablehlo.register_dialect(context)
        context.load_all_available_dialects()
        module = ir.Module.parse(text)
        data: bytes = stablehlo.serialize_portable_artifact(module, stablehlo.get_minimum_version())
    return data


def mlmodel(layers: Layers) -> bytes:
    from relaylang.frontends.coreml.schema import coreml

    made = coreml()["Model"](specificationVersion=4)
    made.description.input.add(name="t0").type.multiArrayType.shape.extend(SHAPE)
    made.description.output.add(name=f"t{len(layers)}")
    made.neuralNetwork.arrayInputShapeMapping = 1
    for n, *of in layers:
        layer = made.neuralNetwork.layers.add(name=f"l{n}", input=[f"t{i}" for i in of], output=[f"t{n}"])
        (layer.sin if len(of) == 1 else layer.addBroadcastable).SetInParent()
    data: bytes = made.SerializeToString()
    return data


def mlprogram(layers: Layers) -> bytes:
    from relaylang.frontends.coreml.schema import coreml

    made = coreml()["Model"](specificationVersion=6)
    made.description.SetInParent()
    function = made.mlProgram.functions["main"]
    function.opset = "CoreML5"
    given = function.inputs.add(name="t0").type.tensorType
    given.dataType, given.rank = 11, len(SHAPE)
    for extent in SHAPE:
        given.dimensions.add().constant.size = extent
    block = function.block_specializations["CoreML5"]
    for n, *of in layers:
        operation = block.operations.add(type="sin" if len(of) == 1 else "add")
        for name, i in zip("x" if len(of) == 1 else "xy", of):
            operation.inputs[name].arguments.add(name=f"t{i}")
        operation.outputs.add(name=f"t{n}")
    block.outputs.append(f"t{len(layers)}")
    data: bytes = made.SerializeToString()
    return data


def pdmodel(layers: Layers) -> bytes:
    from tests.frontends.paddle import files

    made = []
    for n, *of in layers:
        sides = {side: [f"t{i}"] for side, i in zip("XY", of)}
        made.append(files.operation("relu" if len(of) == 1 else "elementwise_add", sides, {"Out": [f"t{n}"]}))
    return files.pdmodel([files.variable("t0", SHAPE)], made, ["t0"], [f"t{len(layers)}"])


def pir(layers: Layers) -> bytes:
    from tests.frontends.paddle import test_wrong_files as paddle

    return paddle.pir(*[paddle.op("relu" if len(of) == 1 else "add", [i + 1 for i in of], [n + 1]) for n, *of in layers])


def darknet(layers: Layers) -> bytes:
    """A layer has the layer before it as its operand. A shortcut adds another to it, and the first layer has none."""
    sections = ["[shortcut]\nfrom=-1\n" if n > 1 and len(of) == 2 else "[activation]\nactivation=relu\n" for n, *of in layers]
    return f"[net]\nheight=2\nwidth=3\nchannels=1\n{''.join(sections)}".encode()


def prototxt(layers: Layers) -> bytes:
    made = [f'name: "net" input: "t0" input_shape {{ {" ".join(f"dim: {d}" for d in SHAPE)} }}\n']
    for n, *of in layers:
        bottoms = " ".join(f'bottom: "t{i}"' for i in of)
        made.append(f'layer {{ name: "l{n}" type: "{"ReLU" if len(of) == 1 else "Eltwise"}" {bottoms} top: "t{n}" }}\n')
    return "".join(made).encode()


def caffemodel(layers: Layers) -> bytes:
    from relaylang.frontends.caffe.reader import message

    data: bytes = message(prototxt(layers), "chain", "the network").SerializeToString()
    return data


def pt2(layers: Layers) -> bytes:
    """A program that PyTorch exported, with other operators."""
    import torch

    from tests.frontends.torch.cases import Call
    from tests.frontends.torch.cases import pt2 as exported

    seed = zipfile.ZipFile(io.BytesIO(exported(Call(lambda x: torch.relu(x) + x), (torch.zeros(SHAPE),))))
    members = {name: seed.read(name) for name in seed.namelist()}
    name = next(name for name in members if name.endswith("model.json"))
    program = json.loads(members[name])
    graph = program["graph_module"]["graph"]
    relu, add = graph["nodes"]
    given = graph["inputs"][0]["as_tensor"]["name"]
    kind = graph["tensor_values"][given]

    def known(i: int) -> str:
        return f"t{i}" if i else given

    def node(n: int, *of: int) -> dict[str, Any]:
        rule = relu if len(of) == 1 else add
        inputs = [{**operand, "arg": {"as_tensor": {"name": known(i)}}} for operand, i in zip(rule["inputs"], of)]
        return {**rule, "inputs": inputs, "outputs": [{"as_tensor": {"name": f"t{n}"}}], "name": f"t{n}"}

    last = {"as_tensor": {"name": f"t{len(layers)}"}}
    graph["nodes"], graph["outputs"] = [node(*layer) for layer in layers], [last]
    graph["tensor_values"] = {known(i): kind for i in range(len(layers) + 1)}
    program["graph_module"]["signature"]["output_specs"] = [{"user_output": {"arg": last}}]
    return _zip({**members, name: json.dumps(program).encode()})


def torchscript(layers: Layers) -> bytes:
    from tests.frontends.torch.test_torchscript_files import body

    rules = {1: "torch.relu({})", 2: "torch.add({}, {})"}
    lines = [f"t{n} = {rules[len(of)].format(*[f't{i}' if i else 'x' for i in of])}" for n, *of in layers]
    return body(*lines, f"return t{len(layers)}")


class Format(NamedTuple):
    """What writes a format's files, and the packages that the writer and the importer need."""

    write: Callable[[Layers], bytes]
    packages: tuple[str, ...] = ()


PROTOBUF = ("google.protobuf",)
FORMATS: dict[str, Format] = {
    "onnx": Format(onnx, ("onnx",)),
    "tflite": Format(tflite, ("tflite",)),
    "mxnet": Format(mxnet),
    "graphdef": Format(graphdef, PROTOBUF),
    "savedmodel": Format(savedmodel, PROTOBUF),
    "h5": Format(h5, ("h5py",)),
    "keras": Format(keras, ("h5py",)),
    "mlir": Format(mlir),
    "mlirbc": Format(mlirbc, ("jaxlib",)),
    "mlmodel": Format(mlmodel, PROTOBUF),
    "mlprogram": Format(mlprogram, PROTOBUF),
    "pdmodel": Format(pdmodel, PROTOBUF),
    "pir": Format(pir, PROTOBUF),
    "darknet": Format(darknet),
    "prototxt": Format(prototxt, PROTOBUF),
    "caffemodel": Format(caffemodel, PROTOBUF),
    "pt2": Format(pt2, ("torch",)),
    "torchscript": Format(torchscript),
}


def read(name: str, data: bytes) -> Imported:
    """The program of a chain's file. Formats whose files have no types take the input's."""
    if name == "darknet":
        return import_darknet(data, weights=struct.pack("<3iQ", 0, 2, 0, 0))
    given = {"mxnet": "t0", "torchscript": "x"}.get(name)
    made = import_bytes(data, f"chain.{name}", Options({given: SHAPE}) if given else Options())
    assert made is not None
    return made
