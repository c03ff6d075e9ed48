"""Files of versions that the importers do not know: refused where the format's own readers refuse them, else read with a warning."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.darknet import import_darknet
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.chains import FORMATS, chain, read

pytestmark = pytest.mark.filterwarnings("error")


def onnx(data: bytes, set_: Callable[[Any], None]) -> bytes:
    from onnx import ModelProto

    return _changed(ModelProto.FromString(data), set_)


def _changed(message: Any, set_: Callable[[Any], None]) -> bytes:
    set_(message)
    data: bytes = message.SerializeToString()
    return data


def _ir(model: Any) -> None:
    model.ir_version = 99


def _opset(domain: str, version: int) -> Callable[[bytes], bytes]:
    def set_(model: Any) -> None:
        del model.opset_import[:]
        model.opset_import.add(domain="", version=17)
        model.opset_import.add(domain=domain, version=version)

    return lambda data: onnx(data, set_)


def _tflite(version: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        root = int.from_bytes(data[:4], "little")
        fields = root - int.from_bytes(data[root : root + 4], "little", signed=True)
        place = root + int.from_bytes(data[fields + 4 : fields + 6], "little")
        changed[place : place + 4] = version.to_bytes(4, "little")
        return bytes(changed)

    return change


def _replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """A change of a text, or of the members of an archive."""

    def change(data: bytes) -> bytes:
        if data[:2] != b"PK":
            assert old in data
            return data.replace(old, new)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        assert any(old in content for content in members.values())
        return _zip({name: content.replace(old, new) for name, content in members.items()})

    return change


def _zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _member(end: str, text: bytes) -> Callable[[bytes], bytes]:
    """A change of the member of an archive whose name has this end; a member of this name where there is none."""

    def change(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        root = next(iter(members)).partition("/")[0]
        name = next((name for name in members if name.endswith(end)), f"{root}/{end}")
        return _zip({**members, name: text})

    return change


def _tensorflow(kind: str, set_: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        from relaylang.frontends.tensorflow.schema import tensorflow

        return _changed(tensorflow()[kind].FromString(data), set_)

    return change


def _consumer(version: int) -> Callable[[Any], None]:
    def set_(graph: Any) -> None:
        graph.versions.producer, graph.versions.min_consumer = version, version

    return set_


def _saved_model(message: Any) -> None:
    message.saved_model_schema_version = 2


def _coreml(version: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        from relaylang.frontends.coreml.schema import coreml

        model = coreml()["Model"].FromString(data)
        model.specificationVersion = version
        return bytes(model.SerializeToString())

    return change


def _pdmodel(data: bytes) -> bytes:
    from relaylang.frontends.paddle.schema import paddle

    model = paddle()["ProgramDesc"].FromString(data)
    model.version.version = 9_001_002
    return bytes(model.SerializeToString())


def _h5(version: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        import h5py

        out = io.BytesIO(data)
        with h5py.File(out, "r+") as file:
            file.attrs["keras_version"] = version
        return out.getvalue()

    return change


def _mxnet(version: Any) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        return json.dumps({**json.loads(data), "attrs": {"mxnet_version": version}}).encode()

    return change


def _vhlo(version: int) -> Callable[[bytes], bytes]:
    """The text of a program with an operation of VHLO."""
    kind = "tensor<2x3xf32>"
    operation = f'"vhlo.negate_v{version}"(%x) : ({kind}) -> {kind}'
    return lambda data: f"func.func @main(%x: {kind}) -> {kind} {{\n  %y = {operation}\n  return %y : {kind}\n}}\n".encode()


#: The format, the change, and the diagnostic of a file that is refused.
REFUSED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "onnx, opset": ("onnx", _opset("ai.onnx", 29), "the version of the operator set ai.onnx is 29; relaylang knows 1 to 28"),
    "onnx, opset 0": ("onnx", _opset("", 0), "the version of the operator set ai.onnx is 0"),
    "onnx, ml": ("onnx", _opset("ai.onnx.ml", 6), "the version of the operator set ai.onnx.ml is 6; relaylang knows 1 to 5"),
    "tflite, newer": ("tflite", _tflite(4), "the schema of the model is 4; relaylang knows 3"),
    "tflite, older": ("tflite", _tflite(2), "the schema of the model is 2; relaylang knows 3"),
    "graphdef": ("graphdef", _tensorflow("GraphDef", _consumer(9999)), "a reader of it must know is 9999; relaylang knows 0 to 2474"),
    "savedmodel": ("savedmodel", _tensorflow("SavedModel", _saved_model), "the schema of the SavedModel is 2; relaylang knows 0 to 1"),
    "savedmodel, graph": (
        "savedmodel",
        _tensorflow("SavedModel", lambda m: _consumer(9999)(m.meta_graphs[0].graph_def)),
        "the version of graphs that a reader of it must know is 9999",
    ),
    "mlir": ("mlir", _vhlo(3), "vhlo.negate_v3: the version of a VHLO operation is 3; relaylang knows 1 to 2"),
    "pt2, schema": ("pt2", _replaced(b'"major": 8', b'"major": 9'), "the schema of its program is 9; relaylang knows 8"),
    "pt2, older schema": ("pt2", _replaced(b'"major": 8', b'"major": 5'), "the schema of its program is 5; relaylang knows 8"),
    "pt2, archive": ("pt2", _member("archive_version", b"1"), "the version of the archive is 1; relaylang knows 0"),
    "torchscript": ("torchscript", _member("version", b"99\n"), "the version of the archive is 99; relaylang knows 1 to 10"),
    "torchscript, older": ("torchscript", _member("version", b"0\n"), "the version of the archive is 0; relaylang knows 1 to 10"),
}
#: The format, the change, and the warning of a file that is read.
WARNED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "onnx": ("onnx", lambda data: onnx(data, _ir), "the IR version is 99; relaylang knows 0 to 13"),
    "mxnet": ("mxnet", _mxnet(["int", 20000]), "MXNet's version is 2.0; relaylang knows 0.0 to 1.9"),
    "mxnet, as a text": ("mxnet", _mxnet(["int", "20100"]), "MXNet's version is 2.1"),
    "h5": ("h5", _h5("9.1.0"), "the version of Keras is 9; relaylang knows 1 to 3"),
    "h5, two digits": ("h5", _h5("10.0.0"), "the version of Keras is 10; relaylang knows 1 to 3"),
    "keras": ("keras", _replaced(b'"3.8.0"', b'"4.0.0"'), "the version of Keras is 4; relaylang knows 1 to 3"),
    "mlmodel": ("mlmodel", _coreml(200), "the specification version is 200; relaylang knows 1 to 10"),
    "mlprogram": ("mlprogram", _coreml(11), "the specification version is 11; relaylang knows 1 to 10"),
    "pdmodel": ("pdmodel", _pdmodel, "PaddlePaddle's version is 9.1; relaylang knows 0.0 to 3.999"),
    "pir": ("pir", _replaced(b'"version": 4', b'"version": 99'), "the version of PIR is 99; relaylang knows 0 to 4"),
}
#: Versions of which a file is read without a word.
KNOWN: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "mxnet 0.8": ("mxnet", lambda data: json.dumps({k: v for k, v in json.loads(data).items() if k != "attrs"}).encode()),
    "graphdef of a newer producer": ("graphdef", _tensorflow("GraphDef", lambda graph: setattr(graph.versions, "producer", 9999))),
    "mlir": ("mlir", _vhlo(1)),
    "pt2, minor": ("pt2", _replaced(b'"minor": ', b'"minor": 9')),
    "torchscript 3": ("torchscript", _member("version", b"3\n")),
    "Core ML 10": ("mlmodel", _coreml(10)),
}


def written(name: str, change: Callable[[bytes], bytes]) -> bytes:
    for package in FORMATS[name].packages:
        pytest.importorskip(package)
    return change(FORMATS[name].write(chain(2)))


@pytest.mark.parametrize("case", REFUSED)
def test_a_version_whose_meaning_is_not_known_is_refused(case: str) -> None:
    name, change, said = REFUSED[case]
    with pytest.raises(RelayError) as raised:
        read(name, written(name, change))
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "R0807" and said in diagnostic.title, diagnostic.title


@pytest.mark.parametrize("case", WARNED)
def test_a_version_that_may_be_read_right_gets_a_warning(case: str) -> None:
    name, change, said = WARNED[case]
    (note,) = read(name, written(name, change)).notes
    assert (note.code, note.severity) == ("R0807", "warning") and said in note.title, note.title


@pytest.mark.parametrize("case", KNOWN)
def test_a_known_version_is_read_without_a_word(case: str) -> None:
    name, change = KNOWN[case]
    assert not read(name, written(name, change)).notes


@pytest.mark.parametrize("head", [(9, 0, 0), (0, 2, 0), (0, 1, 0), (5000, 0, 0)])
def test_the_head_of_weights_of_darknet(head: tuple[int, int, int]) -> None:
    """Darknet 0.1 counts pictures with 32 bits; a number beyond 1000 marks an old form of dense layers."""
    counter = b"\0" * (4 if head in ((0, 1, 0), (5000, 0, 0)) else 8)
    notes = import_darknet(FORMATS["darknet"].write(chain(2)), weights=struct.pack("<3i", *head) + counter).notes
    said = [n.title for n in notes]
    assert said == (["the weights: the version in the head of the weights is 9.0; relaylang knows 0.0 to 0.2"] if head[0] == 9 else [])


def test_a_portable_artifact_of_a_newer_bytecode() -> None:
    """The number behind the mark; an odd byte is a number of its upper seven bits."""
    data = written("mlirbc", lambda data: data)
    newer = data[:4] + bytes([2 * 100 + 1 & 255]) + data[5:]
    with pytest.raises(
        RelayError, match=r"R0802\]: chain.mlirbc: jaxlib cannot read its bytecode(.|\n)*bytecode version 100 is newer"
    ):
        read("mlirbc", newer)


def _script(*lines: str, version: bytes) -> bytes:
    from tests.frontends.torch.test_torchscript_files import body

    return _member("version", version)(body(*lines))


@pytest.mark.parametrize(("version", "expected"), [(b"3", [[-2, 3]]), (b"4", [[-2.5, 3.5]])])
def test_division_of_whole_numbers_by_the_archive_s_version(version: bytes, expected: Any) -> None:
    data = _script("return torch.div(x, 2)", version=version)
    program = import_bytes(data, "net.pt", Options({"x": (1, 2)}, {"x": "int32"}))
    assert program is not None
    result = np.asarray(Evaluator(program.module).call("main", [np.array([[-5, 7]], "int32")]))
    assert result.dtype == ("int32" if version == b"3" else "float32")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("version", "dtype"), [(b"4", "float32"), (b"5", "int64")])
def test_the_kind_of_full_by_the_archive_s_version(version: bytes, dtype: str) -> None:
    data = _script("return torch.full([2], 3)", version=version)
    program = import_bytes(data, "net.pt", Options({"x": (1, 2)}))
    assert program is not None
    assert np.asarray(Evaluator(program.module).call("main", [np.zeros((1, 2), "float32")])).dtype == dtype


def test_an_extent_of_zero_in_symbols_of_numpy() -> None:
    """With NumPy's shapes, 0 is an extent and -1 an open one; before, 0 is an open one."""
    symbol = json.loads(FORMATS["mxnet"].write(chain(1)))
    symbol["nodes"][0]["attrs"] = {"__shape__": "(0, 3)"}
    symbol["attrs"]["is_np_shape"] = ["int", 1]
    program = import_bytes(json.dumps(symbol).encode(), "net-symbol.json")
    assert program is not None and "Tensor[(0, 3), float32]" in program.module.astext()
    symbol["attrs"]["is_np_shape"] = ["int", 0]
    with pytest.raises(RelayError, match="the shape of the input t0 is not known"):
        import_bytes(json.dumps(symbol).encode(), "net-symbol.json")
