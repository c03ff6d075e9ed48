"""Packages, damaged files, and networks that are wrong."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.contents import is_coreml
from relaylang.frontends.coreml import import_coreml
from relaylang.frontends.options import Options
from relaylang.ir import type_text
from tests.frontends.coreml.recorded import arrays, members
from tests.frontends.coreml.test_networks import results, same

pytest.importorskip("google.protobuf", reason="protobuf reads the files")


def model(**fields: Any) -> Any:
    """A message of a model in Core ML's form."""
    from relaylang.frontends.coreml.schema import coreml

    return coreml()["Model"](specificationVersion=4, **fields)


def network(shape: tuple[int, ...] = (2, 3), exact: bool = True) -> Any:
    """A model with one input "x", and the message of its network."""
    made = model()
    given = made.description.input.add(name="x")
    given.type.multiArrayType.shape.extend(shape)
    made.description.output.add(name="y")
    made.neuralNetwork.arrayInputShapeMapping = int(exact)
    return made


def says(made: Any, options: Options | None = None) -> str:
    """The diagnostics of a wrong model."""
    data = made if isinstance(made, bytes) else made.SerializeToString()
    with pytest.raises(RelayError) as wrong:
        import_coreml(data, options or Options(), "net.mlmodel")
    assert all(d.code != "R0900" for d in wrong.value.diagnostics)
    return "\n".join(f"{d.code} {d.title} {' '.join(d.notes)}" for d in wrong.value.diagnostics)


def add(made: Any, kind: str, inputs: str = "x", outputs: str = "y", **params: Any) -> Any:
    layer = made.neuralNetwork.layers.add(name=f"{kind}1", input=inputs.split(), output=outputs.split())
    part = getattr(layer, kind)
    part.SetInParent()
    for name, value in params.items():
        if isinstance(value, (list, tuple)):
            getattr(part, name).extend(value)
        else:
            setattr(part, name, value)
    return part


def program(name: str = "lenet.program") -> Any:
    """The message of a recorded program."""
    from relaylang.frontends.coreml.schema import coreml

    with zipfile.ZipFile(io.BytesIO(members()[name])) as archive:
        return coreml()["Model"].FromString(archive.read(next(n for n in archive.namelist() if n.endswith(".mlmodel"))))


def unpacked(tmp_path: Path, name: str = "lenet.program") -> Path:
    with zipfile.ZipFile(io.BytesIO(members()[name])) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "net.mlpackage"


def test_a_package_is_a_folder_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.cli.command import relay as command

    folder = unpacked(tmp_path)
    mod, params = relay.frontend.from_coreml(str(folder))
    assert params
    values = [*arrays("lenet", "x"), *[params[p.name_hint] for p in mod["main"].params[1:]]]
    same(results(mod, *values), arrays("lenet", "y"))
    done = command(capsys, "import", str(folder))
    assert done.status == 0 and "nn.conv2d" in done.out
    (folder / "Data" / "com.apple.CoreML" / "weights" / "weight.bin").unlink()
    done = command(capsys, "import", str(folder))
    assert done.status and "not beside the model" in done.err
    (folder / "Manifest.json").write_text("{}")
    done = command(capsys, "import", str(folder))
    assert done.status and "Manifest.json" in done.err
    with pytest.raises(RelayError, match=r"Manifest\.json names no model"):
        import_coreml(str(folder))


def test_a_package_stays_in_its_folder(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    (tmp_path / "outside.mlmodel").write_bytes(members()["lenet.network"])
    manifest = json.loads((folder / "Manifest.json").read_text())
    manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"] = "../../outside.mlmodel"
    (folder / "Manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RelayError, match=r"Manifest\.json names no model"):
        import_coreml(str(folder))
    made = program()
    (block,) = made.mlProgram.functions["main"].block_specializations.values()
    blobs = [v for op in block.operations for v in op.attributes.values() if v.WhichOneof("value") == "blobFileValue"]
    for name in ("@model_path/../weight.bin", "/etc/passwd", "@model_path/weights/a:b"):
        blobs[0].blobFileValue.fileName = name
        assert "not beside the model" in says(made, Options(folder=str(folder)))


@pytest.mark.parametrize(
    ("at", "value", "wrong"),
    [
        (0, b"\0\0\0\0", "there is no weight"),
        (4, b"\2\0\0\0", "element type"),
        (8, b"\xff" * 8, "ends beyond"),
        (16, b"\xff" * 8, "ends beyond"),
    ],
)
def test_a_wrong_head_of_a_weight(tmp_path: Path, at: int, value: bytes, wrong: str) -> None:
    folder = unpacked(tmp_path, "lenet.half")
    path = folder / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    data = bytearray(path.read_bytes())
    data[64 + at : 64 + at + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(RelayError, match=wrong):
        import_coreml(str(folder))


def test_models_of_coremltools_are_taken() -> None:
    class Model:
        def get_spec(self) -> Any:
            return program("loops.program")

    found, _ = relay.frontend.from_coreml(Model())
    same(results(found, *arrays("loops", "x")), arrays("loops", "y"))
    for wrong in (3, None, Model):
        with pytest.raises(RelayError, match=r"\.mlmodel or \.mlpackage"):
            import_coreml(wrong)


def test_all_operators_that_are_unknown_are_listed(tmp_path: Path) -> None:
    made = network()
    for i in range(3):
        made.neuralNetwork.layers.add(name=f"c{i}", input=["x"], output=[f"c{i}"]).custom.className = "Mine"
    add(made, "randomNormalLike", "x", "r")
    add(made, "addBroadcastable", "c0 r", "y")
    said = says(made)
    assert "custom Mine" in said and "3" in said and "randomNormalLike" in said and "addBroadcastable" not in said
    made = program()
    (block,) = made.mlProgram.functions["main"].block_specializations.values()
    convs = [op for op in block.operations if op.type == "conv"]
    for op in convs:
        op.type = "conw"
    said = says(made, Options(folder=str(unpacked(tmp_path) / "Data" / "com.apple.CoreML")))
    assert "conw" in said and "2" in said


@pytest.mark.parametrize(
    ("kind", "params", "wrong"),
    [
        ("innerProduct", {"inputChannels": 3, "outputChannels": 4}, "its weight has no numbers"),
        ("innerProduct", {"inputChannels": 1 << 40, "outputChannels": 1 << 40}, "its weight has no numbers"),
        ("transpose", {"axes": [0, 0]}, "its order"),
        ("tile", {"reps": [2]}, "it repeats"),
        ("tile", {"reps": [1 << 40, 1 << 20]}, "R0"),
        ("expandDims", {"axes": [9]}, "it adds the axes"),
        ("sliceStatic", {"beginIds": [0], "endIds": [1]}, "R0805"),
        ("softmaxND", {"axis": 4}, "it names the axis 4"),
        ("fillStatic", {"targetShape": [1 << 20, 1 << 20, 1 << 20]}, "R0805"),
        ("topK", {"axis": 1, "K": 9}, "it takes 9"),
        ("unary", {"type": 42}, "the number 42"),
        ("pooling", {"kernelSize": [2, 2]}, "channels, rows and columns"),
        ("splitND", {"axis": 1, "numSplits": 2}, "its parts"),
        ("loopBreak", {}, "loops end by their conditions alone"),
    ],
)
def test_a_wrong_layer(kind: str, params: dict[str, Any], wrong: str) -> None:
    made = network()
    add(made, kind, **params)
    assert wrong in says(made)


def test_wrong_names_and_shapes() -> None:
    made = network()
    add(made, "copy", "z")
    assert "'z' is no result" in says(made)
    made = network()
    add(made, "copy")
    assert "has no input image" in says(made, Options({"image": (1, 2)}))
    assert "has 2 axes, not 3" in says(made, Options({"x": (1, 2, 3)}))
    made = network(shape=(-1, 3))
    add(made, "copy")
    assert "R0802" in says(made)
    assert "no layers that give a result" in says(network())
    made = model()
    made.description.input.add(name="x").type.stringType.SetInParent()
    made.neuralNetwork.SetInParent()
    assert "takes arrays and pictures" in says(made)
    made = model()
    made.description.SetInParent()
    assert "no model that the importer knows" in says(made)
    made = model()
    made.treeEnsembleRegressor.SetInParent()
    assert "treeEnsembleRegressor" in says(made)


def test_damaged_files() -> None:
    whole = members()["lenet.network"]
    for cut in (1, 7, 100, len(whole) // 2, len(whole) - 3):
        assert "R0802" in says(whole[:cut])
    packed = members()["lenet.program"]
    assert "R0802" in says(packed[: len(packed) // 2])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("net.mlpackage/other.txt", "")
    assert "no Manifest.json" in says(out.getvalue())
    for other in (b"", b"PK", b"[net]\n", b"\x08\x07", members()["arrays.npz"] if "arrays.npz" in members() else b"x"):
        assert not is_coreml(other)


def test_a_state_is_an_input_and_a_result() -> None:
    made = model()
    function = made.mlProgram.functions["main"]
    block = function.block_specializations["CoreML8"]
    function.opset = "CoreML8"
    types = [function.inputs.add(name="x").type.tensorType, function.inputs.add(name="s").type.stateType.wrappedType.tensorType]
    for ty in types:
        ty.dataType, ty.rank = 11, 1
        ty.dimensions.add().constant.size = 3
    for kind, inputs, output in (
        ("read_state", {"input": "s"}, "a"),
        ("add", {"x": "a", "y": "x"}, "b"),
        ("write_state", {"input": "s", "data": "b"}, ""),
        ("read_state", {"input": "s"}, "c"),
        ("square", {"x": "c"}, "d"),
    ):
        op = block.operations.add(type=kind)
        for name, value in inputs.items():
            op.inputs[name].arguments.add(name=value)
        if output:
            op.outputs.add(name=output)
    block.outputs.append("d")
    x, first = np.arange(3, dtype="float32"), np.full(3, 2, "float32")
    same(results(import_coreml(made.SerializeToString()).module, x, first), [(x + first) ** 2, x + first])
    block.operations[2].inputs["data"].arguments[0].name = "s"
    assert "its input data is no tensor" in says(made)


def test_quantised_weights_may_stay_whole() -> None:
    made = import_coreml(members()["lenet.affine-iOS16"], Options(freeze=False, keep_quantized=True))
    text = made.module.astext(show_meta_data=False)
    assert "qnn.dequantize" in text and "int8" in text
    values = [*arrays("lenet", "x"), *[made.params[p.name_hint] for p in made.module["main"].params[1:]]]
    wanted = results(import_coreml(members()["lenet.affine-iOS16.plain"]).module, *arrays("lenet", "x"))
    same(results(made.module, *values), wanted, 1e-6)


def test_a_picture_is_scaled_in_the_order_of_its_colours() -> None:
    made = model()
    image = made.description.input.add(name="x").type.imageType
    image.width, image.height, image.colorSpace = 3, 2, 20
    made.description.output.add(name="y")
    scaler = made.neuralNetwork.preprocessing.add(featureName="x").scaler
    scaler.channelScale, scaler.redBias, scaler.greenBias, scaler.blueBias = 0.5, 1.0, 2.0, 3.0
    made.neuralNetwork.layers.add(name="l", input=["x"], output=["y"]).activation.ReLU.SetInParent()
    x = np.arange(18, dtype="float32").reshape(1, 3, 2, 3)
    wanted = x * 0.5 + np.array([1, 2, 3], "float32").reshape(1, 3, 1, 1)
    same(results(import_coreml(made.SerializeToString()).module, x), [wanted])
    image.colorSpace = 30
    wanted = x * 0.5 + np.array([3, 2, 1], "float32").reshape(1, 3, 1, 1)
    same(results(import_coreml(made.SerializeToString()).module, x), [wanted])


def grid(length: float, count: int, mode: int) -> np.ndarray:
    """The points of a grid from 0 to the end of a box, as the description of SamplingMode has them."""
    if mode < 2:
        return np.full(1, length / 2 if mode else 0.0) if count == 1 else np.linspace(0, length, count)
    if mode == 2:
        return np.minimum(length, np.linspace(0, length + 1 - (length + 1) / count, count))
    spacing = max(1, length) / count
    return np.minimum(length, 0.5 * spacing + np.arange(count) * spacing)


def sampled(x: np.ndarray, top: float, left: float, bottom: float, right: float, size: tuple[int, int], mode: int) -> np.ndarray:
    """A part of a picture (channels, rows, columns) at the points of a grid."""
    tents = [
        np.maximum(0, 1 - np.abs(first + grid(last - first, count, mode)[:, None] - np.arange(extent)))
        for first, last, count, extent in zip((top, left), (bottom, right), size, x.shape[1:])
    ]
    return np.asarray(np.einsum("ia,cab,jb->cij", tents[0], x, tents[1]))


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("size", [(3, 2), (1, 4), (9, 11)])
def test_parts_of_pictures_in_one_size(mode: int, size: tuple[int, int]) -> None:
    made = network((2, 2, 5, 6))
    made.description.input.add(name="boxes").type.multiArrayType.shape.extend((2, 1, 4, 1, 1))
    layer = add(made, "cropResize", "x boxes", targetSize=list(size))
    layer.mode.samplingMethod, layer.boxIndicesMode.boxMode = mode, 1
    x = np.random.default_rng(2).normal(size=(2, 2, 5, 6)).astype("float32")
    boxes = np.array([[1, 0.5, 4, 3.5], [0, 1, 5, 4]], "float32")  # left, top, right and bottom
    (found,) = results(import_coreml(made.SerializeToString()).module, x, boxes.reshape(2, 1, 4, 1, 1))
    wanted = [[sampled(x[k], top, left, bottom, right, size, mode) for k in range(2)] for left, top, right, bottom in boxes]
    same([found], [np.array(wanted)])


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("size", [(3, 2), (1, 4), (9, 11)])
def test_pictures_on_each_grid(mode: int, size: tuple[int, int]) -> None:
    made = network((1, 2, 5, 6))
    add(made, "resizeBilinear", targetSize=list(size)).mode.samplingMethod = mode
    x = np.random.default_rng(2).normal(size=(1, 2, 5, 6)).astype("float32")
    same(results(import_coreml(made.SerializeToString()).module, x), [sampled(x[0], 0, 0, 4, 5, size, mode)[None]])


def test_a_classifier_gives_its_probabilities() -> None:
    made = model()
    made.description.input.add(name="x").type.multiArrayType.shape.append(4)
    for name in ("classLabel", "probabilities"):
        made.description.output.add(name=name)
    made.description.predictedFeatureName, made.description.predictedProbabilitiesName = "classLabel", "probabilities"
    made.neuralNetworkClassifier.labelProbabilityLayerName = "p"
    made.neuralNetworkClassifier.layers.add(name="l", input=["x"], output=["p"]).softmax.SetInParent()
    x = np.arange(4, dtype="float32")
    (found,) = results(import_coreml(made.SerializeToString()).module, x)
    same([found], [(np.exp(x) / np.exp(x).sum())[None]])


def test_a_pipeline_passes_features_on() -> None:
    first, second = network(), network()
    add(first, "expandDims", axes=[0])
    del second.description.input[:], second.description.output[:]
    second.description.input.add(name="y").type.multiArrayType.shape.extend((1, 2, 3))
    second.description.output.add(name="z")
    add(second, "squeeze", "y", "z", squeezeAll=True)
    made = model()
    made.description.input.add(name="x").type.multiArrayType.shape.extend((2, 3))
    made.description.output.add(name="z")
    made.pipeline.models.extend([first, second])
    x = np.arange(6, dtype="float32").reshape(2, 3)
    same(results(import_coreml(made.SerializeToString()).module, x), [x])
    third = model()
    third.description.input.add(name="z")
    third.treeEnsembleClassifier.SetInParent()
    made.pipeline.models.append(third)
    assert "treeEnsembleClassifier" in says(made)


def test_partial_leaves_external_functions() -> None:
    made = network()
    layer = made.neuralNetwork.layers.add(name="c", input=["x"], output=["c"])
    layer.custom.className = "Mine"
    add(made, "tanh", "c")
    assert "R0801" in says(made, Options(partial=True))  # it states no type of the result
    layer.outputTensor.add(rank=2, dimValue=[4, -1])
    done = import_coreml(made.SerializeToString(), Options(partial=True))
    assert [d.severity for d in done.notes] == ["warning"] and "1 x custom Mine" in " ".join(done.notes[0].notes)
    assert type_text(done.module["extern_custom_Mine"].checked_type) == "fn (Tensor[(2, 3), float32]) -> Tensor[(4, ?), float32]"
    assert "@extern_custom_Mine(%x)" in done.module.astext()


def test_partial_leaves_external_functions_in_programs(tmp_path: Path) -> None:
    made = program()
    (block,) = made.mlProgram.functions["main"].block_specializations.values()
    operation = next(o for o in block.operations if o.type == "conv")
    operation.type = "mine"
    folder = str(unpacked(tmp_path) / "Data" / "com.apple.CoreML")
    done = import_coreml(made.SerializeToString(), Options(partial=True, folder=folder))
    assert "1 x mine" in " ".join(done.notes[0].notes) and "@extern_mine(" in done.module.astext()
    operation.outputs[0].type.tensorType.dataType = 77
    assert "1 x mine" in says(made, Options(partial=True, folder=folder))
