"""Changed graphs and SavedModels, for `tests/mutants.py`. A SavedModel is the bytes of a zip archive of its folder."""

from __future__ import annotations

import io
import random
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from relaylang.frontends.options import Options
from relaylang.frontends.tensorflow import import_tensorflow
from relaylang.frontends.tensorflow.schema import tensorflow
from relaylang.frontends.tensorflow.table import table
from tests.frontends.tensorflow.recorded import FOLDER, cases

NUMBERS = [0, 1, -1, 2, 3, -2, 7, 100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]
TEXTS = [b"", b"x", b"\xff", b"SAME", b"VALID", b"NHWC", b"NCHW", b"EXPLICIT"]
SMALL = [0, 1, -1, 2, 3, 2**31 - 1]


def graph_seeds() -> list[bytes]:
    """The recorded graphs."""
    return [case.graph for case in cases().values()]


def saved_seeds() -> list[bytes]:
    """Recorded SavedModels."""
    found: dict[str, dict[str, bytes]] = {}
    with tarfile.open(FOLDER / "networks.tar.xz") as archive:
        for member in archive:
            name, _, rest = member.name.partition("/")
            stream = archive.extractfile(member)
            if rest and name in ("old", "signature", "gru_5", "convolutions") and stream is not None:
                found.setdefault(name, {})[rest] = stream.read()
    return [zipped(files) for files in found.values()]


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _changed_attribute(value: Any, rng: random.Random) -> None:
    kind = value.WhichOneof("value")
    if kind == "i":
        value.i = rng.choice(NUMBERS)
    elif kind == "f":
        value.f = rng.choice([0.0, -1.0, 1e30, float("nan")])
    elif kind == "b":
        value.b = not value.b
    elif kind == "s":
        value.s = rng.choice(TEXTS)
    elif kind == "type":
        value.type = rng.randrange(32)
    elif kind == "list":
        if value.list.i:
            value.list.i[rng.randrange(len(value.list.i))] = rng.choice(NUMBERS)
        elif value.list.s:
            value.list.s[0] = rng.choice(TEXTS)
    elif kind == "shape" and value.shape.dim:
        rng.choice(value.shape.dim).size = rng.choice(NUMBERS)
    elif kind == "func":
        value.func.name = rng.choice(["", "f", value.func.name + "x"])
    elif kind == "tensor":
        tensor = value.tensor
        if tensor.tensor_shape.dim and rng.random() < 0.5:
            rng.choice(tensor.tensor_shape.dim).size = rng.choice(NUMBERS)
        elif rng.random() < 0.3:
            tensor.dtype = rng.randrange(32)
        elif tensor.dtype == 3:
            tensor.tensor_content = b""
            tensor.int_val.append(rng.choice(SMALL))
            tensor.int_val[0] = rng.choice(SMALL)
        else:
            tensor.tensor_content = tensor.tensor_content[: rng.randrange(8)]


def _changed_nodes(nodes: Any, operators: list[str], rng: random.Random) -> None:
    if not nodes:
        return
    names = [n.name for n in nodes]
    for _ in range(rng.choice([1, 1, 2, 3])):
        node, kind = rng.choice(nodes), rng.randrange(8)
        if kind < 3 and node.attr:
            _changed_attribute(node.attr[rng.choice(sorted(node.attr))], rng)
        elif kind == 3 and node.attr:
            del node.attr[rng.choice(sorted(node.attr))]
        elif kind == 4:
            node.op = rng.choice(operators)
        elif kind == 5 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, "", "^x", "x:1:2:3", f"{rng.choice(names)}:1"])
        elif kind == 6:
            node.input.append(rng.choice(names))
        elif kind == 7 and node.input:
            del node.input[rng.randrange(len(node.input))]


def changed_graph(data: bytes, rng: random.Random) -> bytes:
    """A graph with other operators, operands, attributes or constants."""
    graph = tensorflow()["GraphDef"].FromString(data)
    bodies = [graph.node, *[f.node_def for f in graph.library.function]]
    _changed_nodes(rng.choice(bodies), table().names(), rng)
    return bytes(graph.SerializeToString())


def changed_saved(data: bytes, rng: random.Random) -> bytes:
    """A SavedModel with a changed function, graph, signature or entry of its variables."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    saved = tensorflow()["SavedModel"].FromString(files["saved_model.pb"])
    meta = saved.meta_graphs[0]
    bodies = [meta.graph_def.node, *[f.node_def for f in meta.graph_def.library.function]]
    if rng.random() < 0.2:
        signature = meta.signature_def["serving_default"]
        place = rng.choice([*signature.inputs.values(), *signature.outputs.values()])
        place.name = rng.choice(["", "x", place.name + "0", "a:b"])
    else:
        _changed_nodes(rng.choice(bodies), table().names(), rng)
    files["saved_model.pb"] = saved.SerializeToString()
    return zipped(files)


def read_graph(data: bytes, rng: random.Random) -> None:
    import_tensorflow(data, Options(), "mutant.pb")


def read_saved(data: bytes, rng: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(archive.read(name))
        import_tensorflow(folder)
