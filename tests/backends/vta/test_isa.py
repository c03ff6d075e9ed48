"""Instructions: the table gives back what it encodes, and bad streams are named with their place."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.vta.config import Config
from relaylang.backends.vta.isa import BYTES, KINDS, Codec
from relaylang.backends.vta.program import Program, listing, read_program
from relaylang.diagnostics import RelayError
from tests.backends.vta.regions import CONFIGS, compiled, random_region
from tests.shared import ROOT


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_field_comes_back(config: Config) -> None:
    codec, rng = Codec(config), np.random.default_rng(0)
    stream, lines = b"", []
    for name, kind in KINDS.items():
        for _ in range(20):
            fields = {}
            for field in kind.fields:
                bits = field.width(config)
                low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if field.signed else (0, (1 << bits) - 1)
                fields[field.name] = int(rng.integers(low, high + 1)) if not field.names else int(rng.integers(len(field.names)))
            encoded = codec.encode(name, fields)
            (decoded,) = codec.decode(encoded, "it")
            assert (decoded.name, {f.name: decoded[f.name] for f in kind.fields}) == (name, fields)
            stream += encoded
            lines.append(codec.text(decoded))
    assert codec.assemble("\n".join(lines)) == stream


def test_the_bits_are_those_of_the_hardware() -> None:
    """Words put together by hand from the widths of `hw_spec.h`, for TVM's configuration."""
    codec = Codec(Config())
    gemm = codec.encode(
        "GEMM", {"pop_prev": 1, "push_next": 1, "uop_bgn": 3, "uop_end": 7, "iter_out": 5, "iter_in": 9, "dst_in": 1, "wgt_in": 2}
    )
    first = 2 | 1 << 3 | 1 << 6 | 3 << 8 | 7 << 21 | 5 << 35 | 9 << 49
    assert gemm == first.to_bytes(8, "little") + (1 << 11 | 2 << 54).to_bytes(8, "little")
    load = codec.encode("LOAD", {"memory": 2, "sram": 4, "dram": 6, "y_size": 8, "x_size": 10, "x_stride": 12, "x_pad_1": 3})
    assert load == (2 << 7 | 4 << 10 | 6 << 26).to_bytes(8, "little") + (8 | 10 << 16 | 12 << 32 | 3 << 60).to_bytes(8, "little")
    alu = codec.encode("ALU", {"alu": 3, "use_imm": 1, "imm": -2})
    assert alu == (4).to_bytes(8, "little") + (3 << 44 | 1 << 47 | 0xFFFE << 48).to_bytes(8, "little")
    assert codec.uop(5, 6, 7) == 5 | 6 << 11 | 7 << 22


def test_bad_streams_are_named_with_their_place() -> None:
    codec = Codec(Config())
    finish = codec.encode("FINISH", {})
    cases = [
        (finish + finish[:7], "at byte 0x10, the last instruction is cut off"),
        (finish + bytes([5]) + bytes(15), "at byte 0x10, the opcode 5 is not defined"),
        (codec.encode("ALU", {"alu": 7}), "at byte 0x0, alu of ALU is 7, which is not defined"),
        (codec.encode("LOAD", {"memory": 6}), "memory of LOAD is 6, which is not defined"),
        (finish[:15] + b"\x01", "FINISH sets bits that no field has"),
    ]
    for stream, said in cases:
        with pytest.raises(RelayError, match=f"R0615.*{said}"):
            codec.decode(stream, "it")
    for line, said in [
        ("JUMP", "there is no JUMP"),
        ("ALU alu=DIV", "alu is one of MIN"),
        ("GEMM far", "no field far"),
        ("GEMM dst_in=4096", "11 bits"),
    ]:
        with pytest.raises(RelayError, match=f"R0615.*:1 is no instruction of VTA: .*{said}"):
            codec.assemble(line)


def test_streams_that_cannot_be_read_name_the_relay_line() -> None:
    """The byte in the stream and the call, of a stream that is cut off, of an undefined opcode, and of an undefined memory."""
    mod = relay.parse(
        'def @main(%x: Tensor[(1, 16), int8]) {\n  nn.relu(cast(maximum(%x, 3i8), dtype="int8"))\n}\n', source_name="n.relay"
    )
    program = next(iter(compiled(mod).regions.values()))
    content, end = program.save(), len(program.save()) - len(program.constants)
    for size, said in [
        (end - 3, f"at byte {len(program.stream) - BYTES:#x}, the last instruction is cut off"),
        (end - BYTES, f"at byte {len(program.stream) - 2 * BYTES:#x}, the header counts {len(program.stream) // BYTES} instructions"),
        (end + 1, f"at byte {len(program.stream) - BYTES:#x}, the header counts"),
    ]:
        with pytest.raises(RelayError, match=f"R0615.*{said}") as problem:
            read_program(content[:size], "net.vta")
        assert "at n.relay:2:" in problem.value.diagnostics[0].notes[0]
    load = Codec(program.config).encode("LOAD", {"memory": 6})
    for stream, said in [
        (program.stream[:-3], f"at byte {len(program.stream) - BYTES:#x}, the last instruction is cut off"),
        (program.stream[:BYTES] + bytes([7]) + program.stream[BYTES + 1 :], "at byte 0x10, the opcode 7 is not defined"),
        (program.stream[:BYTES] + load + program.stream[2 * BYTES :], "at byte 0x10, memory of LOAD is 6"),
    ]:
        with pytest.raises(RelayError, match=f"R0615.*{said}") as problem:
            listing(program._replace(stream=stream))
        assert "at n.relay:2:" in problem.value.diagnostics[0].notes[0]


def test_a_listing_can_be_assembled_again() -> None:
    region = next(iter(compiled(random_region(3)[0]).regions.values()))
    text = listing(region)
    assert Codec(region.config).assemble("\n".join(text.splitlines()[1:])) == region.stream


def test_files_come_back_and_damaged_ones_are_refused() -> None:
    program = next(iter(compiled(random_region(3)[0]).regions.values()))
    content = program.save()
    assert read_program(content, "net.vta") == program
    for size in range(0, len(content), 37):
        with pytest.raises(RelayError, match=r"R0615.*net\.vta is no stream of VTA that can be read: at byte 0x"):
            read_program(content[:size], "net.vta")
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        try:
            found: Program = read_program(bytes(damaged), "net.vta")
            listing(found)
        except RelayError as problem:
            assert {d.code for d in problem.diagnostics} <= {"R0602", "R0615"}


def test_the_page_has_the_table() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "vta_page.py"))
    text = script["PAGE"].read_text(encoding="utf-8")
    assert script["page"](text) == text, "run scripts/vta_page.py"
    assert all(f"`{field.name}`" in text for kind in KINDS.values() for field in kind.fields)
    assert "| 8-20 | `uop_bgn` | the first micro-operation |" in text
