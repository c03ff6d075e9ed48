"""Saved programs that somebody or something has changed: each ends in a diagnostic, or runs as before."""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.diagnostics import RelayError
from relaylang.kernels.dtypes import CTYPES
from relaylang.runtime import cpu, manifest
from relaylang.runtime.artifact import load, read_sealed, write_sealed, write_tar
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.packed import joined
from relaylang.syntax import parse

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %p: (Tensor[(3), int32], int8), %w: Tensor[(4, 3), float32]) {
  (nn.dense(%x, %w, units=4), (%p.0, add(%p.1, 1i8)))
}
"""
INPUTS = (np.ones((2, 3), "f4"), (np.int32([1, 2, 3]), np.int8(5)))
#: What a field may be changed to: another kind, empty, huge, negative, nested.
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    2**31,
    2**63,
    2**64,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "float32",
    "int8",
    "relaylang-cpu",
    "avx512",
    [],
    [[]],
    [0],
    [1, 2],
    [-1],
    [None],
    {},
    {"a": 1},
    [[[2, 3], "float32"]],
    [["x", [[2, 3], "float32"], []]],
    [0, [1, 2]],
    "x" * 10_000,
    [0] * 1000,
]


@pytest.fixture(scope="module")
def artifact() -> CpuArtifact:
    mod = parse(TEXT).module
    assert mod is not None
    made = compile_module(mod, "c -num-threads=1 -cflags=-O0", {"w": np.ones((4, 3), "f4")})
    assert isinstance(made, CpuArtifact)
    return made


@pytest.fixture(scope="module")
def wanted(artifact: CpuArtifact) -> list[Any]:
    return flat(artifact.run(*INPUTS))


def flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [(value.dtype, value.shape, value.tobytes())]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a record, itself first."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def changes(data: Any) -> Iterator[Any]:
    """The record with one thing changed, gone, or there twice."""
    for path in places(data):
        for value in [*VALUES, "gone", "twice"]:
            new = json.loads(json.dumps(data))
            if not path:
                if value not in ("gone", "twice"):
                    yield value
                continue
            holder = new
            for key in path[:-1]:
                holder = holder[key]
            if value == "gone":
                del holder[path[-1]]
            elif value == "twice":
                if not isinstance(holder, list):
                    holder["another"] = holder[path[-1]]
                else:
                    holder.insert(path[-1], holder[path[-1]])
            else:
                holder[path[-1]] = value
            if json.dumps(new) != json.dumps(data):
                yield new


def diagnosed(content: bytes) -> str:
    """What the one diagnostic says with which content is refused; "" where it runs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cpu.loads(content).run(*INPUTS)
    except RelayError as wrong:
        assert [d.code for d in wrong.diagnostics] == ["R0641"]
        return str(wrong)
    return ""


@pytest.mark.sweep
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.sweep), 13])
def test_every_field_of_the_manifest(artifact: CpuArtifact, step: int) -> None:
    """Each field is changed, and the checksums fit the change."""
    parts = artifact.packed().parts()
    data = json.loads(parts["manifest.json"])
    count = 0
    for changed in list(changes(data))[::step]:
        assert diagnosed(write_sealed({**parts, "manifest.json": json.dumps(changed).encode()})), changed
        count += 1
    assert count > 1500 // step
    # JSON of other spellings is the same manifest.
    assert diagnosed(write_sealed({**parts, "manifest.json": json.dumps(data, indent=3).encode()})) == ""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"format":',
        b"1e999",
        b"9" * 5000,
        b'{"format": "relaylang-cpu", "version": 1}',
    ],
)
def test_manifests_that_are_no_json(artifact: CpuArtifact, text: bytes, tmp_path: Path) -> None:
    content = write_sealed({**artifact.packed().parts(), "manifest.json": text})
    assert diagnosed(content)
    (tmp_path / "net.tar").write_bytes(content)
    with pytest.raises(RelayError):
        load(tmp_path / "net.tar")


def test_the_message_names_the_field(artifact: CpuArtifact) -> None:
    parts = artifact.packed().parts()

    def said(**fields: Any) -> str:
        data = {**json.loads(parts["manifest.json"]), **fields}
        return diagnosed(write_sealed({**parts, "manifest.json": json.dumps(data).encode()}))

    assert "field `arena` must be a whole number from 0" in said(arena=-1)
    assert "field `outputs` must be a list, not {}" in said(outputs={})
    assert "field `params[0][1][0]` must be a whole number" in said(params=[["w", [[-4, 3], "float32"]]])
    assert "`fixed` is 1000000 in the manifest and " in said(fixed=1_000_000)
    assert "unknown field" in said(other=1)


def test_every_part_missing_or_of_another_program(artifact: CpuArtifact) -> None:
    parts = artifact.packed().parts()
    other = compile_module(parse("fn (%x: float32) { negative(%x) }").expr, "c -num-threads=1")  # type: ignore[arg-type]
    for name in parts:
        assert name in diagnosed(write_sealed({k: v for k, v in parts.items() if k != name})) or name == "manifest.json"
        for content in (b"", b"x", other.packed().parts()[name]):  # type: ignore[attr-defined]
            changed = write_sealed({**parts, name: content})
            assert diagnosed(changed) or name in ("model.c", "graph.json")
    assert "checksums" in diagnosed(write_tar(parts))
    sealed = read_sealed(write_sealed(parts), "x")
    assert sealed == parts


@pytest.mark.parametrize("tries", [pytest.param(3000, marks=pytest.mark.sweep), 150])
@pytest.mark.parametrize("name", ["net.so", "net.tar"])
def test_flipped_bits_everywhere(artifact: CpuArtifact, wanted: list[Any], name: str, tries: int, tmp_path: Path) -> None:
    artifact.save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    refused = 0
    ends = [*range(0, tries // 5), *range(len(content) - tries // 5, len(content))]
    for at in {*ends, *range(0, len(content), len(content) // tries)}:
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        try:
            found = cpu.loads(bytes(changed))
        except RelayError as wrong:
            assert [d.code for d in wrong.diagnostics] == ["R0641"]
            refused += 1
        else:
            # A tar has bytes that mean nothing: what fills its blocks, owners, dates.
            assert name == "net.tar" and flat(found.run(*INPUTS)) == wanted, at
    assert refused > tries // 2


@pytest.mark.parametrize("name", ["net.so", "net.tar"])
def test_cut_and_lengthened_files(artifact: CpuArtifact, name: str, tmp_path: Path) -> None:
    artifact.save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    step = len(content) // 60
    for cut in [*range(0, 200, 7), *range(200, len(content) - 1100, step)]:
        # A tar ends with blocks of zeros that need not be there.
        assert diagnosed(content[:cut]) or cut >= len(content.rstrip(b"\0"))
    if name == "net.so":
        for cut in range(1, 100):
            assert diagnosed(content[:-cut])
        assert diagnosed(content + b"\0")
        assert "earlier relaylang" in diagnosed(content[:-1] + b"1")
    assert diagnosed(content[1:])
    assert diagnosed(b"\0" * 512 + content)


def test_lengths_at_the_end_of_a_library(artifact: CpuArtifact) -> None:
    """With a digest that fits."""
    import hashlib

    parts = artifact.packed().parts()
    content = joined(parts.pop("model.so"), parts)
    mark = content[-16:]
    end = len(content) - len(mark) - 32 - 8
    begin = end - struct.unpack("<Q", content[end : end + 8])[0]
    names = ["library", *parts]

    def sealed(changed: bytes) -> str:
        return diagnosed(changed + hashlib.sha256(changed).digest() + mark)

    for sizes in ((0, 0, 0, 0, 0), (2**64 - 1,) * 5, (begin, 0, 0, 0, 0), (0, begin + 1, 0, 0, 0), (-1, begin + 1, 0, 0, 0)):
        table = json.dumps(list(zip(names, sizes))).encode()
        assert sealed(content[:begin] + table + struct.pack("<Q", len(table)))
    for table in (b"", b"[", b"[" * 100_000, b"{}", b"[1]", b'[["library"]]', b"[[1, 2]]", b'[["a", 0], ["a", 0]]', b"\xff"):
        assert sealed(content[:begin] + table + struct.pack("<Q", len(table)))
    for length in (0, begin, end, end + 1, 2**63, 2**64 - 1):
        assert sealed(content[:end] + struct.pack("<Q", length))
    assert sealed(b"") and sealed(b"\x7fELF") and sealed(b"\x7fELF" + bytes(3))
    for length in range(len(mark) + 70):
        short = content[:4] + content[len(content) - length :]
        assert diagnosed(short)


def test_what_the_schema_names_is_what_the_backend_knows() -> None:
    assert set(manifest.ELEMENTS) == set(CTYPES)
    assert set(manifest.ISAS) == set(BY_NAME)
    assert manifest.ELEMENTS == {name: np.dtype(name).itemsize for name in manifest.ELEMENTS}
