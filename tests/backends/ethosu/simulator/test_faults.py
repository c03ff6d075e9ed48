"""What hardware does not forgive is found, and damaged streams end in a diagnostic."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu import regions
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.listing import listing
from relaylang.backends.ethosu.simulator.jobs import early_reads
from relaylang.backends.ethosu.stream import read_stream, with_params
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.syntax import fromtext, parse
from tests.backends.ethosu.networks import random_input, random_network
from tests.shared import ROOT, few


def example(accelerator: str) -> RegionCode:
    mod = parse((ROOT / "examples/ethosu_bars.relay").read_text()).module
    (code,) = ethosu.compile(mod, {"accelerator": accelerator}).regions.values()
    return code


@pytest.fixture(scope="module")
def region() -> RegionCode:
    return example("ethos-u55-128")


@pytest.fixture(scope="module")
def region85() -> RegionCode:
    return example("ethos-u85-512")


def words(content: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(content) // 4}I", content))


def changed(region: RegionCode, name: str, nth: int, value: int) -> RegionCode:
    """The region with another value in the nth command of a name."""
    stream = read_stream(region.command_stream, "x")
    command = [c for c in stream.commands if c.name == name][nth]
    content = words(region.command_stream)
    if command.payload is None:
        content[command.at // 4] = content[command.at // 4] & 0xFFFF | value << 16
    else:
        content[command.at // 4 + 1] = value
    return replace(region, command_stream=struct.pack(f"<{len(content)}I", *content))


def run(region: RegionCode) -> Any:
    rng = np.random.default_rng(0)
    return region.run([rng.integers(-128, 128, spec.shape).astype(spec.dtype) for _, spec in region.inputs], "ethosu-sim")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "nth", "value", "says"),
    [
        ("SET_IFM_BASE0", 0, 0x10000000, "reads byte 0x10000.* of region 1, which has"),
        ("SET_OFM_BASE0", 0, 0x10000000, "writes byte 0x10000.* of region 1, which has"),
        ("SET_IFM_REGION", 0, 5, "reads region 5, which the driver does not give"),
        ("SET_WEIGHT_BASE", 0, 8, "WEIGHT_BASE at 0x8, which is not a multiple of 16"),
        ("SET_SCALE_LENGTH", 0, 16, "has a table of scales of 16 bytes for 4 channels"),
        ("SET_WEIGHT_LENGTH", 0, 16, "weight stream"),
        ("SET_OFM_DEPTH_M1", 0, 0xFFFF, "a weight stream of 768 values, and needs"),
        ("SET_ACTIVATION", 0, 5, "the activation function 5, which the simulator does not know"),
        ("SET_KERNEL_HEIGHT_M1", 0, 0xFFFF, "kernel|bytes|elements|values"),
        ("SET_IFM_PAD_TOP", 0, 0xFFFF, "a padding of 65535 rows or columns"),
        ("SET_BLOCKDEP", 6, 2, "may use byte 0x30 of region 1 before the operation in front has done so: at most BLOCKDEP 1"),
        ("SET_BLOCKDEP", 1, 4, "the BLOCKDEP 4, and the accelerator holds back 3 blocks"),
        ("SET_ACC_FORMAT", 0, 2, "accumulators of the kind 2, which the simulator does not know"),
    ],
)
def test_commands_that_go_wrong(region: RegionCode, name: str, nth: int, value: int, says: str) -> None:
    with pytest.raises(RelayError, match=f"R0616.*the command at byte 0x[0-9a-f]+, OP_[A-Z]+, .*({says})"):
        run(changed(region, name, nth, value))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "nth", "value", "says"),
    [
        ("SET_IFM_BASE0", 0, 0x10000000, "reads byte 0x10000.* of region 1, which has"),
        ("SET_IFM_PRECISION", 0, 0x4001, "IFM in the storage 1, which the simulator does not know"),
        ("SET_IFM_PRECISION", 0, 0x8001, "reads buffer 1 of chains, to which nothing was written"),
        ("SET_OFM_PRECISION", 0, 0x2901, "the unknown transposition 5"),
        ("SET_ACC_FORMAT", 0, 0x700, "the microblock 7, which ethos-u85-512 lacks"),
        ("SET_ACC_FORMAT", 0, 0x310, "keeps accumulators, and the operation before it left others"),
        ("SET_ACC_FORMAT", 0, 0x330, "accumulators that start with 3"),
        ("SET_WEIGHT_FORMAT", 0, 1, "a weight stream"),
        ("SET_BLOCKDEP", 0, 1, "may use byte 0x0 of region 2 before the operation in front has done so: at most BLOCKDEP 0"),
        ("SET_SCALE_LENGTH", 0, 16, "has a table of scales of 16 bytes for 4 channels"),
        ("SET_OFM_DEPTH_M1", 0, 0xFFFF, "weights|values"),
        ("SET_ACTIVATION", 0, 3, "the activation function 3, which the simulator does not know"),
        ("SET_ACTIVATION", 0, 4, "the table memory, to which nothing was written"),
        ("SET_ACTIVATION_MIN", 0, 0x7FFF, "has the limits 32767 and 127, in this order"),
    ],
)
def test_commands_of_the_u85_that_go_wrong(region85: RegionCode, name: str, nth: int, value: int, says: str) -> None:
    with pytest.raises(RelayError, match=f"R0616.*the command at byte 0x[0-9a-f]+, OP_[A-Z]+, .*({says})"):
        run(changed(region85, name, nth, value))


def test_memory_that_nothing_wrote(region: RegionCode) -> None:
    base = next(c for c in read_stream(region.command_stream, "x").commands if c.name == "SET_OFM_BASE0").payload
    assert base is not None
    with pytest.raises(RelayError, match=r"to which nothing was written|without a value"):
        run(changed(region, "SET_OFM_BASE0", 0, base + 4096 if region.details["driver"]["scratch"]["bytes"] > base + 8192 else 0))


def test_a_stream_without_an_end(region: RegionCode) -> None:
    content = words(region.command_stream)
    header = next(i for i, w in enumerate(content) if i > 3 and w & 0xFF == 2)
    content[header] -= 1 << 16
    cut = struct.pack(f"<{len(content) - 1}I", *content[:-1])
    with pytest.raises(RelayError, match="there is no OP_STOP behind it"):
        run(replace(region, command_stream=cut))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda b: b[:-4], "at byte 0x20, the header counts"),
        (lambda b: b[:-2], "a word is cut off"),
        (lambda b: b"COP2" + b[4:], "the driver's header COP1 is missing"),
        (lambda b: b[:4], "the header ends before the stream"),
        (lambda b: b[:8] + b"\xff\xff\xff\xff" + b[12:], "there is no product 15"),
        (lambda b: b[:8] + bytes([b[8] | 15]) + b[9:], "there is no ethos-u55 of 32768 MACs"),
        (lambda b: b[:32] + struct.pack("<I", 0x3FF) + b[36:], "is no command of ethos-u55"),
        (lambda b: b"", "COP1 is missing"),
    ],
)
def test_streams_that_cannot_be_read(region: RegionCode, change: Any, says: str) -> None:
    with pytest.raises(RelayError, match=f"R0615.*{says}"):
        read_stream(change(region.command_stream), "net.npu.bin")


def test_a_missing_wait_is_found() -> None:
    """On U65 weights are copied while the accelerator works; without the waits it would read them too early."""
    for seed in range(40):
        network = random_network(seed)
        try:
            artifact = ethosu.compile(IRModule.from_expr(network), {"accelerator": "ethos-u65-256"})
        except RelayError:
            continue
        for name, code in artifact.regions.items():
            content = words(code.command_stream)
            waits = [c for c in read_stream(code.command_stream, name).commands if c.name == "OP_DMA_WAIT"]
            if waits:
                for wait in waits:
                    content[wait.at // 4] |= 15 << 16
                artifact.regions[name] = replace(code, command_stream=struct.pack(f"<{len(content)}I", *content))
                artifact.executor = "ethosu-sim"
                with pytest.raises(RelayError, match="OP_DMA_WAIT is missing"):
                    artifact.run(x=random_input(network, seed))
                return
    pytest.fail("no network has a transfer")


def test_blocks_that_are_held_back_too_little(region: RegionCode) -> None:
    command = [c for c in read_stream(region.command_stream, "x").commands if c.name == "SET_BLOCKDEP"][6]
    damaged = changed(region, "SET_BLOCKDEP", 6, 3).command_stream
    found = early_reads(read_stream(damaged, "x"))
    assert found == {command.at: 1}
    assert early_reads(read_stream(with_params(damaged, found), "x")) == {}


def test_blocks_behind_a_transposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vela takes their places for those before it, and would have the second operation read too early."""
    mod = fromtext("def @main(%x: Tensor[(1, 57, 4, 1), int8]) { min(%x, axis=[1, 3], keepdims=True) }", "net.relay")
    x = np.random.default_rng(0).integers(-128, 128, (1, 57, 4, 1)).astype("int8")

    def simulated() -> Any:
        artifact = ethosu.compile(mod, {"accelerator": "ethos-u65-512"})
        artifact.executor = "ethosu-sim"
        return artifact.run(x=x)

    np.testing.assert_array_equal(simulated(), x.min((1, 3), keepdims=True))
    monkeypatch.setattr(regions, "early_reads", lambda stream: {})
    with pytest.raises(RelayError, match=r"R0616.*OP_POOL, may use byte 0x38 of region 2 before"):
        simulated()


@pytest.mark.parametrize(
    ("executor", "says"),
    [
        ("ethosu-sim", r"R0616.*OP_DMA_START, writes the row 4 twice: the indices of replaced entries must differ"),
        ("tosa", r"R0613.*TOSA_UNPREDICTABLE"),
    ],
)
def test_indices_of_replaced_entries_that_repeat(executor: str, says: str) -> None:
    """The interpreter's last one wins. On the accelerator, which one does is not documented."""
    params = "%x: Tensor[(9, 5, 6), int8], %i: Tensor[(1, 3), int32], %y: Tensor[(3, 5, 6), int8]"
    mod = fromtext(f'def @main({params}) {{ scatter_nd(%x, %i, %y, mode="update") }}', "net.relay")
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, (extent, 5, 6)).astype("int8") for extent in (9, 3))
    artifact = ethosu.compile(mod, {"accelerator": "ethos-u85-256"})
    artifact.executor = executor
    once, twice = np.array([[4, 0, 8]], "int32"), np.array([[4, 0, 4]], "int32")
    np.testing.assert_array_equal(artifact.run(x, once, y), evaluate(mod, x, once, y))
    np.testing.assert_array_equal(evaluate(mod, x, twice, y)[4], y[2])
    with pytest.raises(RelayError, match=says):
        artifact.run(x, twice, y)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", few(range(20), 0))
@pytest.mark.parametrize("of", ["region", "region85"])
def test_random_damage_ends_in_a_diagnostic(request: pytest.FixtureRequest, of: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = request.getfixturevalue(of)
    content = words(region.command_stream)
    for _ in range(60):
        damaged = list(content)
        for place in rng.integers(8, len(content), int(rng.integers(1, 4))):
            damaged[place] ^= int(1 << rng.integers(0, 32))
        try:
            run(replace(region, command_stream=struct.pack(f"<{len(damaged)}I", *damaged)))
        except RelayError as problem:
            assert problem.diagnostics[0].code in ("R0615", "R0616")


def test_a_listing(region: RegionCode) -> None:
    stream = read_stream(region.command_stream, "x")
    lines = listing(stream, region.details["places"]).splitlines()
    assert lines[0].startswith("ethos-u55-128, ") and len(lines) == len(stream.commands) + 1
    starts = [line for line in lines if " OP_" in line and "OP_STOP" not in line and "WAIT" not in line]
    assert starts and all("cycles" in line for line in starts)
    assert any("conv2d line 19" in line for line in starts) and lines[-1].split()[1] == "OP_STOP"
    assert any(line.endswith("SET_OFM_PRECISION       activation_type=1 scale_mode=1 round_mode=2") for line in lines)


def test_transfers_have_the_layer_that_reads_them() -> None:
    mod = parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 8, 16), int8], %w: Tensor[(1, 1, 16, 256), int8]) {
  %0 = qnn.sigmoid(%x, 0.1f, 3, 0.00390625f, -128);
  %1 = qnn.conv2d(%0, %w, -128, 0, 0.00390625f, 0.01f, kernel_size=[1, 1], channels=256, data_layout="NHWC",
                  kernel_layout="HWIO", out_dtype="int32");
  qnn.requantize(%1, 0.0000390625f, 0, 0.05f, 0, out_dtype="int8")
}""").module
    made = ethosu.compile(mod, {"accelerator": "ethos-u65-256"}, params={"w": np.ones((1, 1, 16, 256), "int8")})
    (code,) = made.regions.values()
    lines = listing(read_stream(code.command_stream, "x"), code.details["places"]).splitlines()
    read = [line.partition("# ")[2] for line in lines if "OP_DMA_START" in line]
    assert read[0].startswith("for sigmoid line 3") and len(read) > 1
    assert all(text.startswith("for qnn_conv2d line 6") for text in read[1:])


def test_a_listing_of_the_u85(region85: RegionCode) -> None:
    stream = read_stream(changed(region85, "SET_WEIGHT_FORMAT", 0, 0x8001).command_stream, "x")
    texts = [line.split(maxsplit=2)[1:] for line in listing(stream).splitlines()[1:]]
    assert ["SET_ACC_FORMAT", "microblock=3"] in texts
    assert ["SET_WEIGHT_FORMAT", "weight_format=1 0x8000"] in texts  # a bit that is no field's
    assert any(name == "SET_OFM_SCALE" and text.endswith(" round_mode=1") for name, text in texts)
