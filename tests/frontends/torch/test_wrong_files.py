"""Damaged .pt2 files: a diagnostic, never a crash, and no code of the file runs."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import format_of
from relaylang.frontends.options import Options
from relaylang.frontends.torch import import_pytorch
from relaylang.interpreter.evaluate import Evaluator


def tensor(name: str) -> dict[str, Any]:
    """A tensor as an argument."""
    return {"as_tensor": {"name": name}}


def meta(*sizes: int, strides: tuple[int, ...] | None = None) -> dict[str, Any]:
    """A float32 tensor's metadata."""
    steps = strides or tuple(int(np.prod(sizes[i + 1 :])) for i in range(len(sizes)))
    return {
        "dtype": 7,
        "sizes": [{"as_int": s} for s in sizes],
        "strides": [{"as_int": s} for s in steps],
        "storage_offset": {"as_int": 0},
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "layout": 7,
    }


def archive(target: str = "torch.ops.aten.add.Tensor", other: str = "w", weight: Any = None, **members: bytes) -> bytes:
    """A .pt2 file of one call, written by hand: torch is not needed."""
    call = {"target": target, "inputs": [{"name": "self", "arg": tensor("x")}, {"name": "other", "arg": tensor(other)}]}
    graph = {
        "inputs": [tensor("w"), tensor("x")],
        "outputs": [tensor("y")],
        "nodes": [{**call, "outputs": [tensor("y")], "metadata": {}}],
        "tensor_values": {"x": meta(2, 3), "w": meta(3), "y": meta(2, 3)},
    }
    signature = {
        "input_specs": [
            {"parameter": {"arg": {"name": "w"}, "parameter_name": "w"}},
            {"user_input": {"arg": tensor("x")}},
        ],
        "output_specs": [{"user_output": {"arg": tensor("y")}}],
    }
    config = {"config": {"w": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": weight or meta(3)}}}
    files = {
        "models/model.json": json.dumps({"graph_module": {"graph": graph, "signature": signature}}).encode(),
        "data/weights/model_weights_config.json": json.dumps(config).encode(),
        "data/weights/weight_0": np.arange(3, dtype="float32").tobytes(),
        "archive_format": b"pt2",
    }
    files.update({name.replace("__", "/"): data for name, data in members.items()})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(f"net/{name}", data)
    return out.getvalue()


def wrong(data: bytes, **options: Any) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        import_pytorch(data, Options(**options), file="net.pt2")
    return raised.value.diagnostics[0].code, str(raised.value)


def test_a_program_is_read_without_torch() -> None:
    data = archive()
    found = format_of(data)
    assert found is not None and found.name == "pytorch"
    value = Evaluator(import_pytorch(data).module).call("main", (np.ones((2, 3), "float32"),))
    assert np.array_equal(value, np.ones((2, 3), "float32") + np.arange(3, dtype="float32"))


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong(archive("torch.ops.my.own.default"))[0] == "R0801"
    assert "no call before this one makes the value v" in wrong(archive(other="v"))[1]
    assert wrong(archive(), shapes={"z": (1,)})[0] == "R0804"
    assert wrong(archive()[:200])[0] == "R0802"
    assert wrong(b"PK\x03\x04")[0] == "R0802"
    assert "needs 100" in wrong(archive(weight=meta(100)))[1]
    assert wrong(archive(weight=meta(1 << 40, strides=(0,))))[0] == "R0016"
    monkeypatch.setenv("RELAY_BUDGET_BYTES", str(1 << 20))
    assert "unpacking" in wrong(archive(data__weights__weight_0=bytes(1 << 24)))[1]


def test_no_pickle_is_loaded() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return pytest.fail, ("the file's code ran",)

    evil = pickle.dumps(Evil())
    import_pytorch(archive(data__sample_inputs__model_pt=evil))


def test_every_mutant_is_read_or_refused() -> None:
    data, rng = archive(), random.Random(3)
    plain = zipfile.ZipFile(io.BytesIO(data)).read("net/models/model.json")
    for turn in range(400):
        mutant = bytearray(plain if turn % 2 else data)
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.choice(b'09"{}[],:xw')
        try:
            import_pytorch(archive(models__model_json=b"", **{"models/model.json": bytes(mutant)}) if turn % 2 else bytes(mutant))
        except RelayError as said:
            assert said.diagnostics
