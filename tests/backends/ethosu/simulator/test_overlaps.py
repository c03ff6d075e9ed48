"""Outputs that lie on inputs of their own operation, bytes that are written twice, and transfers onto themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.stream import read_stream
from relaylang.syntax import fromtext
from tests.backends.ethosu.simulator.test_faults import changed, run
from tests.shared import few

X = "%x: Tensor[(1, 32, 32, 16), int8]"
#: The second operation of this reads 0x0 and 0x4000, by blocks of 8 rows, and writes 0x0 on the U55-128.
SUM = f"def @main({X}, %y: Tensor[(1, 32, 32, 16), int8]) {{ qnn.add(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, -12) }}"
POOL = f'def @main({X}) {{ nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 0, 1], layout="NHWC") }}'
CONV = (
    f"def @main({X}, %w: Tensor[(3, 3, 16, 24), int8]) {{ qnn.requantize(qnn.conv2d(%x, %w, 3, 0, 0.1f, 0.1f, channels=24, "
    'kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"), 0.002f, 0, 0.1f, 4, out_dtype="int8") }'
)
#: Rows of the first tensors have 0x200 bytes.
ROW = 0x200


def compiled(text: str, accelerator: str) -> RegionCode:
    weights = {"w": np.random.default_rng(0).integers(-127, 128, (3, 3, 16, 24)).astype("int8")} if "%w" in text else {}
    (code,) = ethosu.compile(fromtext(text, "net.relay"), {"accelerator": accelerator}, weights).regions.values()
    return code


def without_outputs(region: RegionCode) -> RegionCode:
    """The region, of which nobody takes results."""
    return replace(region, outputs=[], details={**region.details, "driver": {**region.details["driver"], "outputs": []}})


@pytest.fixture(scope="module")
def total() -> RegionCode:
    return compiled(SUM, "ethos-u55-128")


@pytest.mark.parametrize(
    ("output", "refused"),
    [(0x4000, False), (0x3000, False), (0x4000 - ROW, False), (0x4000 + ROW, True), (0x4001, True), (0x4000 + 8 * ROW, True)],
)
def test_outputs_on_operands(total: RegionCode, output: int, refused: bool) -> None:
    """A sum in the place of its operand is right, and one before it, as nothing is read there again."""
    moved = changed(changed(total, "SET_IFM_BASE0", 1, 0x8000), "SET_OFM_BASE0", 1, output)
    if not refused:
        run(moved)
        return
    with pytest.raises(RelayError, match=r"R0616.*OP_ELEMENTWISE, writes byte 0x[0-9a-f]+ of region 1, which a later block"):
        run(moved)


def test_outputs_on_a_broadcast_operand(total: RegionCode) -> None:
    """All blocks read the operand's one row."""
    row = changed(changed(total, "SET_IFM_BASE0", 1, 0x8000), "SET_IFM2_BROADCAST", 0, 1)
    run(changed(row, "SET_OFM_BASE0", 1, 0x4000 + ROW))
    with pytest.raises(RelayError, match="writes byte 0x4000 of region 1, which a later block"):
        run(changed(row, "SET_OFM_BASE0", 1, 0x4000))


def test_outputs_on_weights() -> None:
    region = compiled(CONV, "ethos-u55-128")
    moved = replace(region, weights=region.weights + bytes(1 << 16))
    for name in ("SET_OFM_REGION", "SET_OFM_BASE0"):
        moved = changed(moved, name, 0, 0)
    with pytest.raises(RelayError, match=r"OP_CONV, writes byte 0x[0-9a-f]+ of region 0, which a later block of it reads"):
        run(moved)


@pytest.mark.parametrize("seed", few(range(60), *range(6)))
@pytest.mark.parametrize("accelerator", ["ethos-u55-64", "ethos-u85-256"])
def test_exactly_by_blocks(accelerator: str, seed: int) -> None:
    """A pool whose output lies anywhere near its input is refused where a block reads what one before has written."""
    region, rng = compiled(POOL, accelerator), np.random.default_rng(seed)
    registers = {c.name: c for c in read_stream(region.command_stream, "x").commands if c.name.startswith("SET_")}
    height, width, depth = (registers[f"SET_OFM_BLK_{axis}_M1"].param + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    start, row = registers["SET_IFM_BASE0"].address, registers["SET_OFM_STRIDE_Y"].address
    output = start + int(rng.integers(-18, 3)) * ROW + int(rng.integers(-40, 40))
    if output < 0 or depth < 16:
        pytest.skip("the output does not lie in memory")
    written = np.zeros(1 << 20, bool)
    refused = False
    for top in range(0, 16, height):
        for left in range(0, 32, width):
            rows, columns = range(top, min(top + height, 16)), range(left, min(left + width, 32))
            for y in range(max(2 * rows[0] - 1, 0), min(2 * rows[-1] + 2, 32)):
                at = start + y * ROW + 16 * columns[0]
                refused |= bool(written[at : start + y * ROW + 16 * min(columns[-1] + 2, 32)].any())
            for y in rows:
                written[output + y * row + 16 * columns[0] : output + y * row + 16 * (columns[-1] + 1)] = True
    moved = without_outputs(changed(region, "SET_OFM_BASE0", 0, output))
    if refused:
        with pytest.raises(RelayError, match="which a later block of it reads"):
            run(moved)
    else:
        run(moved)


def test_bytes_that_are_written_twice(total: RegionCode) -> None:
    with pytest.raises(RelayError, match=r"OP_ELEMENTWISE, writes byte 0x8 of region 1 twice"):
        run(changed(total, "SET_OFM_STRIDE_X", 0, 8))


def test_a_transfer_onto_itself(total: RegionCode) -> None:
    moved = total
    for name, value in (("SRC_REGION", 1), ("DST_REGION", 1), ("SRC", 0x8000), ("DST", 0x8010)):
        moved = changed(moved, f"SET_DMA0_{name}", 0, value)
    with pytest.raises(RelayError, match=r"OP_DMA_START, copies byte 0x8010 of region 1, to which it writes"):
        run(moved)
