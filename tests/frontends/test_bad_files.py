"""Files that are cut short, cyclic, hostile, or have unknown operators: every format has a diagnostic."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from tests.frontends import chains
from tests.frontends.chains import FORMATS, chain, read

#: The first layer takes the second one's result.
CYCLE: chains.Layers = [(1, 2), (2, 1), (3, 2)]
#: How an operator's name is written in a file, and an unknown one of the same length.
UNKNOWN = {
    "onnx": (b"Relu", b"Relx"),
    "mxnet": (b'"relu"', b'"relx"'),
    "graphdef": (b"Relu", b"Relx"),
    "savedmodel": (b"Relu", b"Relx"),
    "h5": (b'"class_name": "Activation"', b'"class_name": "Activatiox"'),
    "keras": (b'"class_name": "Activation"', b'"class_name": "Activatiox"'),
    "mlir": (b"stablehlo.negate", b"stablehlo.negatx"),
    "mlmodel": (b"\xb2\x2c", b"\xfa\x7c"),  # the field 710 of a layer, and 1999
    "mlprogram": (b"\3sin", b"\3six"),
    "pdmodel": (b"relu", b"relx"),
    "pir": (b"1.relu", b"1.relx"),
    "darknet": (b"[activation]", b"[activatiox]"),
    "prototxt": (b'"ReLU"', b'"ReLX"'),
    "caffemodel": (b"ReLU", b"ReLX"),
    "pt2": (b"aten.relu.default", b"aten.relx.default"),
    "torchscript": (b"torch.relu", b"torch.relx"),
}


def edited(data: bytes, old: bytes, new: bytes) -> bytes:
    """A file, or each member of an archive, with other bytes."""
    if data[:2] != b"PK":
        assert old in data
        return data.replace(old, new)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert any(old in content for content in members.values())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in members.items():
            made.writestr(name, content.replace(old, new))
    return out.getvalue()


def file(name: str, layers: chains.Layers) -> bytes:
    for package in FORMATS[name].packages:
        pytest.importorskip(package)
    return FORMATS[name].write(layers)


def refused(name: str, data: bytes) -> str:
    """The diagnostics of a file. Their words are neither Python's nor an internal error's."""
    with pytest.raises(RelayError) as raised:
        read(name, data)
    said = str(raised.value)
    assert all(d.code != "R0900" for d in raised.value.diagnostics), said
    assert not re.search(r"Traceback|Error:|object has no|NoneType|list index|not subscriptable|<class|Exception", said), said
    return said


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("part", [0.35, 0.67, 0.9, 0.95])
def test_a_file_that_is_cut_short(name: str, part: float) -> None:
    data = file(name, chain(4))
    said = refused(name, data[: int(len(data) * part)])
    assert name not in ("pt2", "torchscript", "keras") or "cut short" in said


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_operators_are_counted(name: str) -> None:
    said = refused(name, edited(file(name, chain(3)), *UNKNOWN[name]))
    assert re.search(r"R0801\]: 3 layers of 1 operator cannot be converted", said) and re.search(r"3 x \S+  first in ", said), said


def test_unknown_operators_of_tflite_are_counted() -> None:
    pytest.importorskip("tflite")
    from tests.frontends.tflite.files import Op, T, file

    tensors = {f"t{i}": T(chains.SHAPE) for i in range(4)}
    data = file(tensors, [Op("MyRelu", [f"t{i}"], [f"t{i + 1}"]) for i in range(3)], ["t0"], ["t3"])
    assert re.search(r"3 layers of 1 operator cannot be converted(.|\n)*3 x MyRelu  first in t1", refused("tflite", data))
    newer = edited(FORMATS["tflite"].write(chain(3)), (19).to_bytes(4, "little"), (250).to_bytes(4, "little"))  # RELU's number
    said = refused("tflite", newer)
    assert re.search(r"3 layers of 1 operator cannot be converted(.|\n)*3 x operator#250  first in t1", said), said


def test_unknown_operators_of_an_artifact_are_counted() -> None:
    pytest.importorskip("jaxlib")
    text = chains.mlir(chain(3)).decode()
    custom = re.sub(r"stablehlo.negate (%t\d) : (.*)", r"stablehlo.custom_call @mine(\1) : (\2) -> \2", text)
    said = refused("mlirbc", chains.artifact(custom))
    assert re.search(r"3 layers of 1 operator cannot be converted(.|\n)*3 x .*mine", said), said


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("darknet", "mlirbc")])
def test_a_cyclic_graph(name: str) -> None:
    refused(name, file(name, CYCLE))


def test_a_split_into_many_parts_is_refused_before_it_is_made() -> None:
    """The operand's shape alone has so many elements; the results would be a thousand million types."""
    parts = {"op": "SliceChannel", "name": "y", "attrs": {"num_outputs": "1000000000", "axis": "1"}, "inputs": [[0, 0, 0]]}
    nodes = [{"op": "null", "name": "x", "inputs": []}, parts]
    symbol = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    with pytest.raises(RelayError, match=r"R0016\]: .*writing its layers out needs 1,000,000,000 nodes"):
        import_bytes(json.dumps(symbol).encode(), "net-symbol.json", Options({"x": (2, 1_000_000_000)}))
