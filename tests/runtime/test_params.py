from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.runtime.params import load_params, params_bytes, save_params

KINDS = ("npz", "params", "safetensors")
DTYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
)


def example() -> dict[str, np.ndarray]:
    found = {f"w {d}": np.ones((2, 3), d) for d in DTYPES}
    found |= {f"é.{d}": np.array(1, d) for d in DTYPES}
    found["empty"] = np.zeros((0, 3), "float32")
    found["brain"] = np.arange(3).astype(ml_dtypes.bfloat16)
    found["fortran"] = np.asfortranarray(np.arange(6, dtype="int32").reshape(2, 3))
    return found


def said(call, *args) -> str:
    with pytest.raises(RelayError) as caught:
        call(*args)
    [diagnostic] = caught.value.diagnostics
    return f"{diagnostic.code} {diagnostic.title}"


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"p.{kind}"
    params = example()
    save_params(path, params)
    found = load_params(path)
    assert set(found) == set(params)
    for name, value in params.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert found[name].tobytes() == value.tobytes(), name
        assert found[name].flags.writeable
    first = path.read_bytes()
    save_params(path, params)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", KINDS)
def test_no_tensors(kind: str, tmp_path: Path) -> None:
    save_params(tmp_path / f"p.{kind}", {})
    assert load_params(tmp_path / f"p.{kind}") == {}


def test_the_bytes_of_tvms_params() -> None:
    assert params_bytes({"a": np.array([1, 2], "int8")}).hex() == (
        "b79c04054f8de5f7"
        "0000000000000000"
        "0100000000000000"
        "0100000000000000"
        "61"
        "0100000000000000"
        "3fa1b496f0405edd"
        "0000000000000000"
        "01000000"
        "00000000"
        "01000000"
        "00"
        "08"
        "0100"
        "0200000000000000"
        "0200000000000000"
        "0102"
    )


def test_numpys_own_files(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "p.npz", a=np.arange(3.0), big=np.arange(3, dtype=">i4"))
    found = load_params(tmp_path / "p.npz")
    assert found["a"].tolist() == [0.0, 1.0, 2.0]
    assert found["big"].tolist() == [0, 1, 2] and found["big"].dtype == np.dtype("int32")
    np.savez(tmp_path / "o.npz", a=np.array([{}], dtype=object))
    assert "'a' holds Python objects" in said(load_params, tmp_path / "o.npz")


def test_safetensors_own_files(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    params = {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array(3), "c": np.zeros((0, 2), "uint8")}
    package.save_file(params, tmp_path / "p.safetensors", {"format": "np"})
    found = load_params(tmp_path / "p.safetensors")
    assert {k: (v.dtype, v.tolist()) for k, v in found.items()} == {k: (v.dtype, v.tolist()) for k, v in params.items()}
    save_params(tmp_path / "q.safetensors", params)
    again = package.load_file(tmp_path / "q.safetensors")
    assert {k: v.tolist() for k, v in again.items()} == {k: v.tolist() for k, v in params.items()}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"p.{kind}"
    save_params(path, example())
    good = path.read_bytes()
    rng = random.Random(7)
    for i in range(300):
        bad = bytearray(good)
        if i % 2:
            del bad[rng.randrange(len(bad)) :]
        else:
            for _ in range(4):
                bad[rng.randrange(min(len(bad), 3000))] = rng.randrange(256)
        path.write_bytes(bad)
        try:
            load_params(path)
        except RelayError as e:
            assert e.diagnostics[0].code == "R0012"
            assert str(path) in e.diagnostics[0].title
    path.write_bytes(b"")
    assert said(load_params, path) == f"R0012 {path} is empty"
    path.write_bytes(b"garbage that is nothing at all" * 3)
    assert said(load_params, path).startswith(f"R0012 {path} cannot be read: ")


def test_files_that_are_not_there_and_suffixes_that_are_not_known(tmp_path: Path) -> None:
    assert said(load_params, tmp_path / "p.npz").startswith("R0001 cannot read ")
    assert said(load_params, tmp_path / "p.pkl").startswith("R0014 ")
    assert said(save_params, tmp_path / "p", {}).startswith("R0014 ")
    assert said(save_params, tmp_path / "no" / "p.npz", {}).startswith("R0013 cannot write ")


def test_what_a_kind_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    for kind in KINDS:
        assert "complex64" in said(save_params, tmp_path / f"p.{kind}", {"a": np.zeros(1, "complex64")})
    assert list(tmp_path.iterdir()) == []


#: A value of each kind that JSON has.
JSON = [
    None,
    True,
    0,
    -1,
    1.5,
    2**70,
    "",
    "F32",
    "[]",
    [],
    [0],
    [-1],
    [2**70, 0],
    [[]],
    [None],
    ["2"],
    [True],
    [0, 8, 8],
    [1] * 70,
    {},
    {"F32": 1},
]


@pytest.mark.parametrize("field", ["dtype", "shape", "data_offsets", "the entry", "the header", "the name"])
def test_safetensors_headers_of_every_kind_of_value(field: str, tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    right = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for value in JSON:
        header: object = {"w": {**right, field: value}} if field in right else value if field == "the header" else {"w": value}
        if field == "the name":
            header = {"w": {name: value for name in right}}
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
        try:
            load_params(path)
        except RelayError as refused:
            assert [d.code for d in refused.diagnostics] == ["R0012"] and len(str(refused)) < 400
        else:
            assert field == "dtype" and value == "F32"
