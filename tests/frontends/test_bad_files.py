"""Files that are cut short, cyclic, of another version, hostile, or have unknown operators: every format has a diagnostic."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from relaylang.diagnostics import RelayError
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
@pytest.mark.parametrize("part", [0.35, 0.67, 0.95])
def test_a_file_that_is_cut_short(name: str, part: float) -> None:
    data = file(name, chain(4))
    refused(name, data[: int(len(data) * part)])


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_operators_are_counted(name: str) -> None:
    said = refused(name, edited(file(name, chain(3)), *UNKNOWN[name]))
    assert re.search(r"R0801\]: 3 layers of 1 operator cannot be converted", said) and re.search(r"3 x \S+  first in ", said), said


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("darknet", "mlirbc")])
def test_a_cyclic_graph(name: str) -> None:
    refused(name, file(name, CYCLE))


#: What a file states about its version, and a later one.
NEWER = {
    "h5": (b"2.9.0", b"4.0.0"),
    "keras": (b'"3.8.0"', b'"4.0.0"'),
    "mlmodel": (b"\x08\x04\x12", b"\x08\x63\x12"),
    "mlprogram": (b"\x08\x06\x12", b"\x08\x63\x12"),
    "onnx": (b"B\x04\n\0\x10\x11", b"B\x04\n\0\x10\x63"),
    "pir": (b'"version": 4', b'"version": 99'),
    "pt2": (b'"major": ', b'"major": 9'),
    "savedmodel": (b"\x08\x01\x12", b"\x08\x02\x12"),
}


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_version(name: str) -> None:
    assert re.search(
        r"R0802.* has the version \d+; relaylang knows versions up to \d+", refused(name, edited(file(name, chain(1)), *NEWER[name]))
    )


def test_a_newer_schema_of_tflite() -> None:
    data = bytearray(file("tflite", chain(1)))
    root = int.from_bytes(data[:4], "little")
    fields = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    version = root + int.from_bytes(data[fields + 4 : fields + 6], "little")
    data[version] = 4
    assert "its schema has the version 4; relaylang knows versions up to 3" in refused("tflite", bytes(data))
