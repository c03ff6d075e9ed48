"""Damage to what the Ethos-U's tools read: streams, archives and Vela's files. All of it ends in a diagnostic."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu.artifact import EthosUArtifact, RegionCode
from relaylang.backends.ethosu.listing import archive_listing, listing
from relaylang.backends.ethosu.stream import read_stream
from relaylang.backends.ethosu.tflite import load_network, npu_layers
from relaylang.runtime.artifact import TensorSpec, read_sealed, write_sealed
from relaylang.syntax import parse
from tests.backends.ethosu.simulator.test_tflite import LAYERS, compiled
from tests.shared import ROOT

#: Words of the driver's header.
_HEADER = 8
#: Codes of refusals: streams, simulation, archives, inputs, TFLite files, texts, types and operators in these.
_CODES = ("R00", "R01", "R02", "R03", "R04", "R06", "R08")

Rng = np.random.Generator


def damaged(rng: Rng, content: bytes) -> bytes:
    """The bytes with flipped bits, other bytes, a part left out, doubled, moved, or an end cut off."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        kind, at = rng.integers(6), int(rng.integers(len(out) + 1))
        size = int(min(rng.integers(1, 65), len(out) - at))
        if kind == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            out[at : at + size] = rng.bytes(size)
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size]
        elif kind == 4:
            out[at : at + size] = bytes([0xFF * int(rng.integers(2))]) * size
        elif rng.integers(4) == 0:
            del out[at:]
    return bytes(out)


def damaged_stream(rng: Rng, content: bytes) -> bytes:
    """A stream whose commands have other numbers, or come twice, elsewhere, or not at all; the header counts them."""
    words = list(struct.unpack(f"<{len(content) // 4}I", content))
    for _ in range(int(rng.integers(1, 5))):
        kind, at = rng.integers(6), int(rng.integers(_HEADER, len(words)))
        if kind == 0:
            words[at] ^= 1 << int(rng.integers(32))
        elif kind == 1:
            words[at] = words[at] & 0xFFFF | int(rng.choice([0, 1, 0x7FFF, 0x8000, 0xFFFF, int(rng.integers(1 << 16))])) << 16
        elif kind == 2:
            words[at] = int(rng.integers(1 << 32))
        elif kind == 3:
            words.insert(at, words[int(rng.integers(_HEADER, len(words)))])
        elif kind == 4 and len(words) > _HEADER + 1:
            del words[at]
        else:
            words[at:at] = words[at : at + int(rng.integers(1, 30))]
    stream = next(i for i in range(1, _HEADER) if words[i] & 0xFF == 2)
    words[stream] = 2 | (len(words) - stream - 1) << 16 & 0xFFFF0000 | (len(words) - stream - 1) >> 16 << 8
    return struct.pack(f"<{len(words)}I", *words)


def damaged_json(rng: Rng, value: Any) -> Any:
    """A value of a manifest with one part replaced or left out."""
    if isinstance(value, (dict, list)) and value and rng.integers(6):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(rng.integers(len(keys)))]
        copy = dict(value) if isinstance(value, dict) else list(value)
        if rng.integers(12) == 0:
            del copy[key]
        else:
            copy[key] = damaged_json(rng, value[key])
        return copy
    others = [None, 0, -1, 1 << 31, 1 << 40, 1 << 70, 0.5, 1e308, float("nan"), "", "x", [], {}, [1], [[1]], True]
    return others[int(rng.integers(len(others)))]


def inputs_of(specs: list[TensorSpec], rng: Rng) -> list[np.ndarray]:
    """Numbers for inputs."""
    return [rng.integers(-128, 128, spec.shape).astype(spec.dtype) for spec in specs]


def run_region(region: RegionCode, stream: bytes, rng: Rng) -> None:
    """List a stream, and run it as the region's."""
    listing(read_stream(stream, "net.npu.bin"))
    changed = RegionCode(region.tosa, stream, region.weights, region.inputs, region.outputs, region.details)
    changed.run(inputs_of([spec for _, spec in region.inputs], rng), "ethosu-sim")


def run_weights(region: RegionCode, rng: Rng) -> None:
    """Run a region with damaged weights."""
    changed = RegionCode(
        region.tosa, region.command_stream, damaged(rng, region.weights), region.inputs, region.outputs, region.details
    )
    changed.run(inputs_of([spec for _, spec in region.inputs], rng), "ethosu-sim")


def run_archive(artifact: EthosUArtifact, rng: Rng) -> None:
    """Damage a file of an archive, which then has right digests; load, list and run it."""
    files = read_sealed(write_sealed(artifact.files()), "net.tar")
    name = str(rng.choice([name for name in files if name.endswith((".json", ".npu.bin", ".weights.bin"))]))
    if name == "manifest.json" and rng.integers(4):
        files[name] = json.dumps(damaged_json(rng, json.loads(files[name]))).encode()
    else:
        files[name] = damaged(rng, files[name])
    loaded = ethosu.loads(write_sealed(files), source="net.tar")
    archive_listing(loaded.regions)
    loaded.executor = "ethosu-sim"
    if all(np.prod(spec.shape, dtype=float) < 1 << 20 for _, spec in loaded.inputs):
        loaded.run(*inputs_of([spec for _, spec in loaded.inputs], rng))


def run_file(content: bytes, rng: Rng) -> None:
    """Damage a file of Vela's, list and run it."""
    changed = damaged(rng, content)
    for layer in npu_layers(changed, "net.tflite")[1]:
        listing(layer.stream())
    network = load_network(changed, "net.tflite")
    if all(np.prod(spec.shape, dtype=float) < 1 << 20 for _, spec in network.inputs):
        network.run(*inputs_of([spec for _, spec in network.inputs], rng))


def targets() -> list[Callable[[Rng], None]]:
    """What can be damaged and run: streams, weights, archives and files, of each product."""
    mod = parse((ROOT / "examples/ethosu_bars.relay").read_text()).module
    found: list[Callable[[Rng], None]] = []
    for accelerator in ("ethos-u55-128", "ethos-u65-512", "ethos-u85-512"):
        artifact = ethosu.compile(mod, {"accelerator": accelerator})
        (region,) = artifact.regions.values()
        found += [partial(change, region) for change in (_commands, _commands, _bytes, run_weights)]
        found.append(partial(run_archive, artifact))
        found += [partial(run_file, compiled(LAYERS[name][0], accelerator)) for name in ("CONV same", "SOFTMAX")]
    return found


def _commands(region: RegionCode, rng: Rng) -> None:
    run_region(region, damaged_stream(rng, region.command_stream), rng)


def _bytes(region: RegionCode, rng: Rng) -> None:
    run_region(region, damaged(rng, region.command_stream), rng)


def is_refused(run: Callable[[Rng], None], seed: int) -> bool:
    """Whether damage ends in a diagnostic, with the place of a command where the simulator refuses one."""
    try:
        run(np.random.default_rng(seed))
    except RelayError as problem:
        found = problem.diagnostics[0]
        assert found.code.startswith(_CODES), problem
        if found.code == "R0616" and "the region cannot be simulated" not in found.title:
            assert "the command at byte 0x" in found.title, problem
        return True
    return False
