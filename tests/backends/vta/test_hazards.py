"""What the simulator finds in streams: each fault, with the instruction's place and the Relay call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.hazards import COMPUTE, LOAD, STORE, unit_of
from relaylang.backends.vta.isa import BYTES, Codec
from relaylang.backends.vta.program import Program, Tensor
from relaylang.backends.vta.simulator import simulate
from relaylang.diagnostics import RelayError
from tests.backends.vta.regions import compiled, random_region

CONFIG = Config()
#: One tile: load it, double it, store it. The result is a byte 16 later, micro-operations are at byte 64.
GOOD = """\
LOAD memory=uop dram=16 y_size=1 x_size=1 x_stride=1
LOAD memory=acc8 dram=0 y_size=1 x_size=1 x_stride=1
ALU push_next uop_end=1 iter_out=1 iter_in=1 alu=ADD
STORE pop_prev push_prev memory=out dram=1 y_size=1 x_size=1 x_stride=1
FINISH pop_next
"""


def _run(text: str) -> np.ndarray:
    stream = Codec(CONFIG).assemble(text)
    inputs, outputs = (Tensor("x", (1, 16), ((0, 16),)),), (Tensor("out0", (1, 16), ((16, 16),)),)
    program = Program(CONFIG, stream, bytes(8), 72, inputs, outputs, ((0, "add at net.relay:3:5"),))
    return simulate(program, [np.arange(16, dtype=np.int8).reshape(1, 16)])[0]


def test_a_good_stream() -> None:
    assert _run(GOOD).tolist() == [[2 * n for n in range(16)]]
    assert _run(GOOD.replace("alu=ADD", "alu=ADD reset")).tolist() == [[2 * n for n in range(16)]]
    assert _run(GOOD.replace("iter_out=1", "iter_out=3")).tolist() == [[(8 * n + 128) % 256 - 128 for n in range(16)]]
    assert _run(GOOD.replace("alu=ADD", "alu=ADD use_imm imm=5").replace("iter_in=1", "iter_in=3")).tolist() == [[*range(15, 31)]]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "push_next ",
            "",
            "byte 0x30, STORE, waits for a token of the unit compute that never comes: a deadlock|byte 0x40, FINISH, waits",
        ),
        ("pop_prev ", "", "byte 0x30, STORE, reads acc 0 perhaps before compute has written it|STORE, reads acc 0, to which nothing"),
        ("LOAD memory=uop dram=16 y_size=1 x_size=1 x_stride=1\n", "", "ALU, reads uop 0, to which nothing was written"),
        ("LOAD memory=acc8 dram=0", "LOAD memory=acc8 sram=9 dram=0", "byte 0x20, ALU, reads acc 0, to which nothing was written"),
        ("memory=acc8 dram=0", "memory=acc8 dram=2", "LOAD, reads DRAM in units of 4 bytes, 8, to which nothing was written"),
        ("memory=acc8 dram=0", "memory=acc8 dram=99", "LOAD, uses byte 0x630 of DRAM, which has 72 bytes"),
        ("memory=acc8 dram=0", "memory=acc8 sram=2048 dram=0", "LOAD, uses acc 2048, which has 2048 elements"),
        (
            "memory=out dram=1",
            "memory=out dram=0",
            "STORE, writes DRAM in units of 4 bytes, 0, which holds a constant, an input or a result",
        ),
        ("memory=out", "memory=inp", "STORE, stores the memory inp; only out can be stored"),
        ("iter_in=1", "iter_in=2 dst_in=2000", "ALU, reads acc 2000, to which nothing was written"),
        ("iter_in=1 ", "", "ALU, has no turns"),
        ("FINISH pop_next", "", "is the last one, and FINISH is not"),
        ("FINISH pop_next", "FINISH pop_prev", "byte 0x40, FINISH, waits for a token of the unit load that never comes: a deadlock"),
        ("memory=out dram=1 y_size=1", "memory=out dram=1 y_size=1 x_pad_0=1", "stores padding"),
    ],
)
def test_faults(old: str, new: str, said: str) -> None:
    with pytest.raises(RelayError, match=said) as problem:
        _run(GOOD.replace(old, new))
    assert problem.value.diagnostics[0].notes[0] == "it is part of add at net.relay:3:5"


def test_products_whose_loops_change_the_weights() -> None:
    """Two tiles of weights in turn, added to one tile of sums and then, in the outer loop, to the next."""
    rng = np.random.default_rng(0)
    weights, data = rng.integers(-9, 9, (2, 16, 16)).astype(np.int8), rng.integers(-9, 9, (1, 16)).astype(np.int8)
    stream = """\
        LOAD memory=wgt dram=1 y_size=1 x_size=2 x_stride=2
        LOAD push_next memory=inp dram=0 y_size=1 x_size=1 x_stride=1
        LOAD memory=uop dram=192 y_size=1 x_size=1 x_stride=1
        GEMM reset uop_end=1 iter_out=1 iter_in=2 dst_in=1
        GEMM pop_prev push_next uop_end=1 iter_out=2 iter_in=2 dst_out=1 wgt_in=1
        STORE pop_prev push_prev memory=out dram=1 y_size=1 x_size=2 x_stride=2
        FINISH pop_next"""
    inputs, outputs = (Tensor("x", (1, 16), ((0, 16),)),), (Tensor("out0", (2, 16), ((16, 16),)),)
    constants = bytes(256 - 48) + weights.tobytes() + bytes(4)
    program = Program(CONFIG, Codec(CONFIG).assemble(stream), constants, 48 + len(constants), inputs, outputs, ())
    wanted = (data.astype(int) @ (weights[0] + weights[1]).astype(int).T).astype(np.int8)
    assert np.array_equal(simulate(program, [data])[0], np.repeat(wanted, 2, axis=0))


def _needed_flags(seed: int, sampled: Callable[[int], bool]) -> None:
    """Without any of its tokens a stream has a fault: the schedule sets none in vain, and the checker misses none."""
    mod, inputs = random_region(seed)
    program = next(iter(compiled(mod).regions.values()))
    codec = Codec(program.config)
    instructions = program.instructions()
    values = [inputs[[p.name_hint for p in mod["main"].params].index(tensor.name)] for tensor in program.inputs]
    order = {"push_prev": -1, "push_next": 1}
    for number, instruction in enumerate(instructions):
        for flag, step in order.items():
            if not instruction[flag] or not sampled(number):
                continue
            unit = unit_of(instruction)
            position = sum(1 for i in instructions[:number] if unit_of(i) == unit and i[flag])
            pop = "pop_prev" if step > 0 else "pop_next"
            takers = [n for n, i in enumerate(instructions) if unit_of(i) == unit + step and i[pop]]
            changed = [dict(i.fields) for i in instructions]
            changed[number].pop(flag)
            changed[takers[position]].pop(pop)
            stream = b"".join(codec.encode(i.name, f) for i, f in zip(instructions, changed))
            with pytest.raises(RelayError, match="R0616"):
                simulate(program._replace(stream=stream), values)


def test_tokens_are_needed() -> None:
    _needed_flags(3, lambda number: number % 7 == 0)


@pytest.mark.sweep
def test_every_token_is_needed() -> None:
    for seed in range(3, 9):
        _needed_flags(seed, lambda number: True)


def test_units_and_flags() -> None:
    codec = Codec(CONFIG)
    decoded = codec.decode(codec.assemble(GOOD.replace("memory=uop", "memory=wgt")), "it")
    assert [unit_of(i) for i in decoded] == [LOAD, COMPUTE, COMPUTE, STORE, COMPUTE]
    assert decoded[1].at == BYTES
