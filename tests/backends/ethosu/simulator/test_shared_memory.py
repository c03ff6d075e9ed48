"""Tables share a core's memory with accumulators on the smallest accelerators."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.simulator.jobs import early_reads
from relaylang.backends.ethosu.stream import read_stream
from relaylang.syntax import fromtext
from tests.backends.ethosu.simulator.test_faults import changed, run

#: Two tables with a pool between, whose accumulators lie at the end of the memory.
TABLES = """def @main(%x: Tensor[(1, 8, 8, 16), int8]) {
  %0 = nn.max_pool2d(qnn.tanh(%x, 0.05f, 3, 0.01f, 5), pool_size=[2, 2]);
  qnn.sigmoid(%0, 0.05f, 3, 0.01f, 5)
}"""


def compiled(accelerator: str) -> RegionCode:
    (code,) = ethosu.compile(fromtext(TABLES, "net.relay"), {"accelerator": accelerator}).regions.values()
    return code


def without_second_table(region: RegionCode) -> RegionCode:
    """The region, whose second table is not copied. The operation then reads the place of the first."""
    place = [c for c in read_stream(region.command_stream, "x").commands if c.name == "OP_DMA_START"][1].at
    content = bytearray(region.command_stream)
    content[place : place + 4] = struct.pack("<I", 19)  # OP_PMU_MASK
    return replace(region, command_stream=bytes(content))


@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u55-64"])
def test_tables_are_lost(accelerator: str) -> None:
    region = compiled(accelerator)
    run(region)
    with pytest.raises(RelayError, match=r"OP_POOL, reads byte 0x0 of the table memory, to which nothing was written"):
        run(without_second_table(region))


def test_tables_of_larger_accelerators_stay() -> None:
    region = without_second_table(compiled("ethos-u55-128"))
    numbers = [c.param for c in read_stream(region.command_stream, "x").commands if c.name == "SET_ACTIVATION"]
    second = max(n for n, function in enumerate(numbers) if function >= 16)
    run(changed(region, "SET_ACTIVATION", second, 16))


def test_accumulators_in_the_place_of_a_table_that_is_read() -> None:
    region = compiled("ethos-u55-64")
    commands = read_stream(region.command_stream, "x").commands
    first, second = [n for n, c in enumerate(commands) if c.name == "OP_POOL"][:2]
    assert "SET_BLOCKDEP" not in {c.name for c in commands[first:second]}
    damaged = changed(region, "SET_BLOCKDEP", 0, 1)
    with pytest.raises(RelayError, match=r"may use byte 0x0 of the table memory before .* at most BLOCKDEP 0 is right"):
        run(damaged)
    assert 0 in early_reads(read_stream(damaged.command_stream, "x")).values()
