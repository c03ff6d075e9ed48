"""Networks with changed bytes, fields and archive members are read or refused: no exception, bounded time and memory."""

from __future__ import annotations

import io
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options

Random = random.Random
HERE = Path(__file__).parent
BYTES = [0, 1, 2, 3, 4, 7, 8, 16, 32, 64, 127, 128, 255]
WORDS = [0, 1, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
NUMBERS = [0, 1, -1, 2, 3, -2, 7, 100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """A few bytes changed, dropped, repeated or put in, or the end cut off."""
    b = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if not b:
            break
        at, kind = rng.randrange(len(b)), rng.randrange(7)
        if kind < 2:
            b[at] = rng.choice([*BYTES, rng.randrange(256)])
        elif kind == 2:
            del b[at : at + rng.choice([1, 2, 4, 8, 64])]
        elif kind == 3:
            b[at:at] = rng.randbytes(rng.choice([1, 4, 8]))
        elif kind == 4:
            other, count = rng.randrange(len(b)), rng.choice([1, 2, 4, 8, 16])
            b[at : at + count] = b[other : other + count]
        elif kind == 5:
            b[at : at + 4] = rng.choice(WORDS).to_bytes(4, "little")
        else:
            del b[at:]
    return bytes(b)


def changed_fields(data: bytes, rng: Random) -> bytes:
    """An ONNX model with other attributes, operators, operands, shapes, element types or versions."""
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    names = [*[i.name for i in graph.input], *[o for n in graph.node for o in n.output], ""]
    for _ in range(rng.choice([1, 1, 2, 3])):
        node = rng.choice(graph.node)
        attribute = rng.choice(node.attribute) if node.attribute else None
        weight = rng.choice(graph.initializer) if graph.initializer else None
        value = rng.choice(graph.input).type.tensor_type if graph.input else None
        kind = rng.randrange(12)
        if kind == 0 and attribute is not None:
            attribute.i = rng.choice(NUMBERS)
        elif kind == 1 and attribute is not None and attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
        elif kind == 2 and attribute is not None:
            node.attribute.remove(attribute)
        elif kind == 3 and attribute is not None:
            attribute.type = rng.randrange(15)
        elif kind == 4:
            node.op_type = rng.choice(["Conv", "Gemm", "Reshape", "Slice", "Loop", "If", "LSTM", "Resize", "Pad", "TopK", "Concat"])
        elif kind == 5 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        elif kind == 6:
            node.input.append(rng.choice(names))
        elif kind == 7 and weight is not None and weight.dims:
            weight.dims[rng.randrange(len(weight.dims))] = rng.choice(NUMBERS)
        elif kind == 8 and weight is not None:
            weight.data_type = rng.randrange(28)
        elif kind == 9 and value is not None and value.shape.dim:
            rng.choice(value.shape.dim).dim_value = rng.choice(NUMBERS)
        elif kind == 10 and value is not None:
            value.shape.dim.add().dim_value = rng.choice([0, 1, 2, 3])
        elif kind == 11 and model.opset_import:
            model.opset_import[0].version = rng.choice([1, 5, 7, 9, 11, 13, 18, 21, 25, 99])
    return bytes(model.SerializeToString())


def changed_member(data: bytes, rng: Random) -> bytes:
    """An archive with changed bytes in one of its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    small = [name for name in members if name.endswith((".json", ".py", ".pkl"))]
    picked = rng.choice(small if small and rng.random() < 0.9 else list(members))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, changed_bytes(content, rng) if name == picked else content)
    return out.getvalue()


def onnx_seeds() -> list[bytes]:
    """Every model among ONNX's own node tests."""
    onnx = pytest.importorskip("onnx")
    from tests.frontends.onnx.backend_cases import cases

    found = [case for name, case in sorted(cases().items()) if name.startswith("node/")]
    models = [case.model or onnx.load(str(Path(case.model_dir) / "model.onnx")) for case in found]
    return [m.SerializeToString() for m in models if m.graph.node]


def tflite_seeds() -> list[bytes]:
    pytest.importorskip("tflite")
    return [path.read_bytes() for path in sorted((HERE / "tflite" / "data").glob("*.tflite"))]


def torch_seeds() -> list[bytes]:
    """A program of torch.export, a traced and a scripted module."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
            self.lstm = torch.nn.LSTM(4, 5, batch_first=True)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
            return self.lstm(y)[0].softmax(-1)

    net, x = Net().eval(), torch.zeros(1, 3, 6, 6)
    files = [io.BytesIO() for _ in range(3)]
    torch.export.save(torch.export.export(net, (x,)), files[0])
    torch.jit.save(torch.jit.trace(net, x), files[1])
    torch.jit.save(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())), files[2])
    return [f.getvalue() for f in files]


KINDS: dict[str, tuple[Callable[[], list[bytes]], list[Callable[[bytes, Random], bytes]]]] = {
    "onnx": (onnx_seeds, [changed_bytes, changed_fields, changed_fields]),
    "tflite": (tflite_seeds, [changed_bytes]),
    "torch": (torch_seeds, [changed_bytes, changed_member, changed_member, changed_member]),
}
SHAPES = {"": {}, "x": {"x": (1, 3, 6, 6)}, "input": {"input": (1, 3)}}


@pytest.mark.parametrize("count", [50, pytest.param(6000, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_mutant_is_read_or_refused(kind: str, count: int) -> None:
    seeds, changes = KINDS[kind][0](), KINDS[kind][1]
    for number in range(count):
        rng = Random(f"{kind} {number}")
        data = rng.choice(changes)(rng.choice(seeds), rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                import_bytes(data, "mutant", Options(rng.choice(list(SHAPES.values())) if kind == "torch" else {}))
        except RelayError as refused:
            assert refused.diagnostics and str(refused)
        except Exception as wrong:
            raise AssertionError(f"mutant {number} of {kind}: {type(wrong).__name__}: {wrong}") from wrong
