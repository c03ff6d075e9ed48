"""Files of other versions, damaged files, and symbols that are wrong."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import format_of
from relaylang.frontends.mxnet import import_mxnet
from relaylang.frontends.mxnet.params import read_params
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.runtime.budget import Budget

F32 = struct.pack("<i", 0)
CPU = struct.pack("<ii", 1, 0)
DATA = np.arange(6, dtype="float32").reshape(2, 3)


def dims(form: str, *shape: int) -> bytes:
    return struct.pack(f"<i{len(shape)}{form}", len(shape), *shape)


#: The array as each version writes it.
VERSIONS = {
    "legacy": dims("I", 2, 3) + CPU + F32 + DATA.tobytes(),
    "v1": struct.pack("<I", 0xF993FAC8) + dims("q", 2, 3) + CPU + F32 + DATA.tobytes(),
    "v2": struct.pack("<Ii", 0xF993FAC9, 0) + dims("q", 2, 3) + CPU + F32 + DATA.tobytes(),
    "v3": struct.pack("<Ii", 0xF993FACA, 0) + dims("q", 2, 3) + CPU + F32 + DATA.tobytes(),
    "rows": struct.pack("<Ii", 0xF993FAC9, 1)
    + dims("q", 2, 3)
    + dims("q", 2, 3)
    + CPU
    + F32
    + struct.pack("<i", 6)
    + dims("q", 2)
    + DATA.tobytes()
    + struct.pack("<2q", 0, 1),
    "csr": struct.pack("<Ii", 0xF993FAC9, 2)
    + dims("q", 5)
    + dims("q", 2, 3)
    + CPU
    + F32
    + struct.pack("<i", 6)
    + dims("q", 3)
    + struct.pack("<i", 6)
    + dims("q", 5)
    + DATA.reshape(-1)[1:].tobytes()
    + struct.pack("<3q", 0, 2, 5)
    + struct.pack("<5q", 1, 2, 0, 1, 2),
}


def params(array: bytes, name: bytes = b"arg:w") -> bytes:
    return struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<QQ", 1, len(name)) + name


def read(data: bytes) -> dict[str, np.ndarray]:
    return read_params(data, "net.params", Budget("net.params", len(data)))


@pytest.mark.parametrize("version", VERSIONS)
def test_parameters_of_every_version_are_read(version: str) -> None:
    found = read(params(VERSIONS[version]))
    assert list(found) == ["w"] and found["w"].dtype == np.float32 and np.array_equal(found["w"], DATA)


def test_a_parameter_file_cut_anywhere_is_damaged() -> None:
    for version in VERSIONS.values():
        whole = params(version)
        for end in range(len(whole)):
            with pytest.raises(RelayError) as raised:
                read(whole[:end])
            assert raised.value.diagnostics[0].code == "R0802"


def test_a_claim_of_a_large_array_allocates_nothing() -> None:
    huge = struct.pack("<Ii", 0xF993FAC9, 0) + dims("q", 1 << 40, 1 << 20) + CPU + F32
    with pytest.raises(RelayError, match=r"it ends within array 0"):
        read(params(huge))
    rows = struct.pack("<Ii", 0xF993FAC9, 1) + dims("q", 0, 3) + dims("q", 1 << 40, 3) + CPU + F32
    with pytest.raises(RelayError) as raised:
        read(params(rows + struct.pack("<i", 6) + dims("q", 0)))
    assert raised.value.diagnostics[0].code == "R0016"


def node(op: str, name: str, *inputs: int, key: str = "attrs", **attributes: Any) -> dict[str, Any]:
    texts = {k: str(v) for k, v in attributes.items()}
    return {"op": op, "name": name, key: texts, "inputs": [[i, 0] for i in inputs]}


def graph(*nodes: dict[str, Any], version: int | None = 10901) -> str:
    found: dict[str, Any] = {"nodes": list(nodes), "heads": [[len(nodes) - 1, 0]]}
    found["arg_nodes"] = [i for i, n in enumerate(nodes) if n["op"] == "null"]
    return json.dumps(found if version is None else {**found, "attrs": {"mxnet_version": ["int", version]}})


def test_a_symbol_of_08_has_its_attributes_elsewhere_and_no_states() -> None:
    conv = node("Convolution", "conv", 0, 1, 2, key="param", kernel="(1,1)", num_filter="2", no_bias="False")
    norm = node("BatchNorm", "bn", 3, 4, 5, key="param", eps="0.001", fix_gamma="True", momentum="0.9")
    names = ["data", "conv_weight", "conv_bias"]
    nodes = [*(node("null", n) for n in names), conv, node("null", "bn_gamma"), node("null", "bn_beta"), norm]
    rng = np.random.default_rng(0)
    sizes = {"conv_weight": (2, 3, 1, 1), "conv_bias": 2, "bn_gamma": 2, "bn_beta": 2, "bn_moving_mean": 2, "bn_moving_var": 2}
    values = {n: rng.uniform(0.5, 1, s).astype("float32") for n, s in sizes.items()}
    text = graph(*nodes, version=None)
    assert format_of(text.encode()).name == "mxnet"  # type: ignore[union-attr]
    mod = import_mxnet(text, Options({"data": (1, 3, 2, 2)}), params=values).module
    x = rng.normal(size=(1, 3, 2, 2)).astype("float32")
    made = np.einsum("nchw,oc->nohw", x, values["conv_weight"][:, :, 0, 0]) + values["conv_bias"].reshape(1, -1, 1, 1)
    mean, var, beta = (values[f"bn_{n}"].reshape(1, -1, 1, 1) for n in ("moving_mean", "moving_var", "beta"))
    assert np.allclose(np.asarray(Evaluator(mod).call("main", (x,))), (made - mean) / np.sqrt(var + 1e-3) + beta, atol=1e-5)


def test_an_old_extreme_without_an_axis_is_over_all_elements() -> None:
    for version, shape in ((800, (1,)), (10901, (2,))):
        mod = import_mxnet(graph(node("null", "x"), node("argmax", "y", 0, axis=-1), version=version), Options({"x": (2, 3)})).module
        assert np.asarray(Evaluator(mod).call("main", (DATA,))).shape == shape


def refused(text: str, code: str, said: str, **shapes: tuple[int, ...]) -> RelayError:
    with pytest.raises(RelayError, match=said) as raised:
        import_mxnet(text, Options(shapes))
    assert raised.value.diagnostics[0].code == code
    return raised.value


def test_unknown_operators_are_listed_at_once() -> None:
    nodes = [node("null", "x"), node("Foo", "a", 0), node("Foo", "b", 0), node("softmaxx", "c", 0), node("add_n", "d", 1, 2, 3)]
    wrong = refused(graph(*nodes), "R0801", "3 layers of 2 operators cannot be converted", x=(2, 3))
    notes = " ".join(wrong.diagnostics[0].notes)
    assert "2 x Foo" in notes and "first in a" in notes and "did you mean softmax" in notes


def test_wrong_symbols_have_a_diagnostic() -> None:
    x = node("null", "x")
    refused("{", "R0802", "or it is cut short")
    refused('{"nodes": 3}', "R0802", "no list of nodes")
    refused('{"nodes": ' + "[" * 100_000, "R0802", "nested too deeply|cut short")
    refused(graph(x, node("exp", "y", 1)), "R0802", "does not stand before it")
    refused(graph(x, node("exp", "y", 7)), "R0802", "names no node")
    refused(graph(x, node("exp", "y", 0)), "R0804", "the shape of the input x is not known")
    refused(graph(x, node("Reshape", "y", 0, shape="(7, -1)")), "R0805", "6 elements do not fit", x=(2, 3))
    refused(graph(x, node("Pooling", "y", 0, kernel="(0, 1)")), "R0805", "numbers from 1 on", x=(1, 1, 4, 4))
    refused(graph(x, node("sum", "y", 0, axis="5")), "R0805", "different axes of 2", x=(2, 3))
    refused(graph(x, node("_ones", "y", shape="(99999999999, 9999)")), "R0016", "budget", x=(2, 3))


def test_a_fused_layer_without_its_ranges_is_named() -> None:
    stem = Path(__file__).parent / "data" / "quantised"
    symbol = json.loads(Path(f"{stem}-symbol.json").read_text())
    for layer in symbol["nodes"]:
        if layer["op"] == "_sg_mkldnn_conv":
            layer["inputs"] = layer["inputs"][:3]
    with pytest.raises(RelayError, match="3 operands, too few for a convolution with ranges") as raised:
        import_mxnet(json.dumps(symbol), Options({"data": (2, 3, 8, 8)}, weights=f"{stem}-0000.params"))
    assert raised.value.diagnostics[0].code == "R0805"


def test_a_weight_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    text = graph(node("null", "data"), node("null", "w"), node("FullyConnected", "fc", 0, 1, num_hidden=2, no_bias=True))
    (tmp_path / "net-symbol.json").write_text(text)
    (tmp_path / "net-0003.params").write_bytes(params(VERSIONS["v2"], b"arg:other"))
    with pytest.raises(RelayError, match=r"1 weight of .* is not in its parameter file: w"):
        import_mxnet(tmp_path / "net-symbol.json", Options({"data": (1, 3)}))
    (tmp_path / "net-0012.params").write_bytes(params(VERSIONS["v2"]))
    assert import_mxnet(tmp_path / "net-symbol.json", Options({"data": (1, 3)})).params == {}
    chosen = Options({"data": (1, 3)}, weights=str(tmp_path / "net-0003.params"))
    with pytest.raises(RelayError, match=r"1 weight of "):
        import_mxnet(tmp_path / "net-symbol.json", chosen)
