"""Addresses, strides and lengths out of line, missing waits, and transfers that leave their regions, on all products."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.stream import Command, read_stream
from relaylang.syntax import fromtext
from tests.backends.ethosu.simulator.test_faults import example

PRODUCTS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-512")
SUM = "%x: Tensor[(1, 6, 5, 20), int16]", "qnn.add(%x, %x, 0.1f, 0, 0.2f, 0, 0.5f, 0)"
TABLE = "%x: Tensor[(1, 6, 5, 20), int8]", "qnn.tanh(%x, 0.1f, 3, 0.01f, 5)"


@lru_cache
def compiled(accelerator: str, program: tuple[str, str]) -> RegionCode:
    mod = fromtext(f"def @main({program[0]}) {{ {program[1]} }}", "net.relay")
    (code,) = ethosu.compile(mod, {"accelerator": accelerator}).regions.values()
    return code


def with_word(region: RegionCode, command: Command, payload: int) -> RegionCode:
    content = bytearray(region.command_stream)
    struct.pack_into("<I", content, command.at + 4, payload)
    return replace(region, command_stream=bytes(content))


def run(region: RegionCode) -> None:
    rng = np.random.default_rng(0)
    region.run([rng.integers(-128, 128, spec.shape).astype(spec.dtype) for _, spec in region.inputs], "ethosu-sim")


def named(region: RegionCode, name: str) -> list[Command]:
    return [command for command in read_stream(region.command_stream, "x").commands if command.name == name]


@pytest.mark.parametrize("accelerator", PRODUCTS)
@pytest.mark.parametrize(
    ("program", "names"),
    [
        (SUM, ("IFM_BASE0", "IFM_STRIDE_Y", "IFM_STRIDE_X", "OFM_BASE0", "OFM_STRIDE_Y")),
        (TABLE, ("DMA0_DST", "DMA0_LEN")),
        (None, ("WEIGHT_BASE", "WEIGHT_LENGTH", "SCALE_BASE", "SCALE_LENGTH")),
    ],
)
def test_alignment(accelerator: str, program: tuple[str, str] | None, names: tuple[str, ...]) -> None:
    region = compiled(accelerator, program) if program else example(accelerator)
    run(region)
    for name in names:
        command = named(region, f"SET_{name}")[0]
        wrong = (command.payload or 0) + 1
        with pytest.raises(RelayError, match=f"R0616.*at byte 0x[0-9a-f]+, OP_[A-Z_]+, has {name} at {wrong:#x}, which is not a mult"):
            run(with_word(region, command, wrong))


def test_the_u55_copies_whole_units() -> None:
    region = compiled("ethos-u55-128", TABLE)
    (command,) = named(region, "SET_DMA0_SRC")
    with pytest.raises(RelayError, match=r"OP_DMA_START, has DMA0_SRC at .*, which is not a multiple of 16"):
        run(with_word(region, command, (command.payload or 0) + 8))


@pytest.mark.parametrize("accelerator", PRODUCTS)
@pytest.mark.parametrize(
    ("name", "payload", "says"),
    [
        ("SET_DMA0_SRC", 1 << 20, "uses byte 0x[0-9a-f]+ of region [0-9], which has"),
        ("SET_DMA0_LEN", 1 << 16, "uses byte 0x[0-9a-f]+ of (region [0-9]|the table memory), which has"),
        ("SET_DMA0_DST", 1 << 20, "uses byte 0x[0-9a-f]+ of the table memory, which has"),
    ],
)
def test_transfers_beyond_a_region(accelerator: str, name: str, payload: int, says: str) -> None:
    region = compiled(accelerator, TABLE)
    start = named(region, "OP_DMA_START")[0]
    with pytest.raises(RelayError, match=f"R0616.*the command at byte {start.at:#x}, OP_DMA_START, {says}"):
        run(with_word(region, named(region, name)[0], payload))


def tables(count: int) -> tuple[str, str]:
    """A chain of tables with pools between them. The accelerators hold eight."""
    value = "%x"
    for number in range(count):
        value = f"nn.max_pool2d(qnn.tanh({value}, 0.0{number + 1}f, 3, 0.01f, 5), pool_size=[2, 1])"
    return "%x: Tensor[(1, 3, 20, 8), int8]", value


def faults(region: RegionCode, changed: list[bytes], wait: str) -> int:
    """How many changed streams lack a wait. The others have no fault."""
    found = 0
    for stream in changed:
        try:
            run(replace(region, command_stream=stream))
        except RelayError as problem:
            assert re.search(rf"R0616.*at byte 0x[0-9a-f]+, OP_.*under way: {wait} is missing", str(problem)), problem
            found += 1
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("accelerator", PRODUCTS)
def test_each_missing_wait_for_transfers(accelerator: str) -> None:
    region, changed = compiled(accelerator, tables(11)), []
    for command in named(region, "OP_DMA_WAIT"):
        content = bytearray(region.command_stream)
        struct.pack_into("<H", content, command.at + 2, 15)
        changed.append(bytes(content))
    assert faults(region, changed, "OP_DMA_WAIT") >= len(changed) // 2 > 0


@pytest.mark.parametrize("accelerator", PRODUCTS)
def test_missing_waits_for_operations(accelerator: str) -> None:
    """A transfer overwrites the table that an operation under way reads."""
    region = compiled(accelerator, tables(3))
    places = named(region, "SET_DMA0_DST")
    changed = [with_word(region, two, one.payload or 0).command_stream for one, two in pairwise(places)]
    assert faults(region, changed, "OP_KERNEL_WAIT") > 0
