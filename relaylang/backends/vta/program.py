"""A program of VTA: the stream of instructions, the constants in DRAM, and where inputs and outputs lie. The file `.vta`.

The file begins with `VTA1` and the length of a header in 4 bytes. The header is JSON: the configuration under the names of
`vta_config.json`, tensors, and the Relay places of instructions. The stream and the constants follow.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any, NamedTuple

from relaylang.backends.vta.config import Config, checked, values_of
from relaylang.backends.vta.isa import BYTES, Codec, Instruction, unreadable
from relaylang.diagnostics import RelayError
from relaylang.runtime.manifest import count
from relaylang.runtime.schema import document, record, several, table, text, whole

MAGIC = b"VTA1"
#: The most bytes of DRAM that a program may have.
_MOST_BYTES = 1 << 32


class Tensor(NamedTuple):
    """A tensor in DRAM: which input or output of the region it is, its shape, its first byte, and the block of channels."""

    number: int
    shape: tuple[int, ...]
    address: int
    block: int


class Program(NamedTuple):
    """A program. Constants lie at the end of the `memory` bytes of DRAM.

    `places` are pairs of an instruction's number and the Relay call that it and those after it compute.
    """

    config: Config
    stream: bytes
    constants: bytes
    memory: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    places: tuple[tuple[int, str], ...]

    def layer(self, at: int) -> int:
        """The number of the place that has the instruction at a byte; -1 if none has it."""
        return bisect_right(self.places, at // BYTES, key=lambda place: place[0]) - 1

    def place(self, at: int) -> str:
        """The Relay call of the instruction at a byte."""
        number = self.layer(at)
        return self.places[number][1] if number >= 0 else "no call of the program"

    def instructions(self, source: str = "the stream") -> list[Instruction]:
        """The decoded stream. Raises `RelayError` (R0615)."""
        return Codec(self.config).decode(self.stream, source, self.place)

    def save(self) -> bytes:
        """The bytes of a file `.vta`."""
        head = json.dumps(
            {
                "config": self.config.json(),
                "instructions": len(self.stream) // BYTES,
                "constants": len(self.constants),
                "memory": self.memory,
                "inputs": [tensor._asdict() for tensor in self.inputs],
                "outputs": [tensor._asdict() for tensor in self.outputs],
                "places": [{"first": first, "call": call} for first, call in self.places],
            }
        ).encode()
        return MAGIC + len(head).to_bytes(4, "little") + head + self.stream + self.constants


_TENSORS = several(record({"number": whole(0, 1 << 16), "shape": several(count), "address": count, "block": whole(1, 256)}))
_HEAD = record(
    {
        "config": table(count),
        "instructions": count,
        "constants": count,
        "memory": whole(0, _MOST_BYTES),
        "inputs": _TENSORS,
        "outputs": _TENSORS,
        "places": several(record({"first": count, "call": text})),
    }
)


def read_program(content: bytes, source: str) -> Program:
    """Read a file `.vta`. Raises `RelayError`: R0602 for its configuration, R0615 for all else."""
    size = int.from_bytes(content[4:8], "little")
    if content[:4] != MAGIC or len(content) < 8 + size:
        raise unreadable(source, 0, "the header VTA1 is missing" if content[:4] != MAGIC else "the header is cut off")
    try:
        head: dict[str, Any] = _HEAD("", document(content[8 : 8 + size]))
        config = checked(values_of(head["config"]))
        tensors = [tuple([Tensor(**{**t, "shape": tuple(t["shape"])}) for t in head[key]]) for key in ("inputs", "outputs")]
    except ValueError as problem:
        raise unreadable(source, 8, str(problem)) from None
    at, end = 8 + size, 8 + size + BYTES * head["instructions"]
    if len(content) != end + head["constants"] or head["constants"] > head["memory"]:
        why = f"the header counts {head['instructions']} instructions and {head['constants']} bytes of constants"
        raise unreadable(source, min(len(content), end), f"{why}, {len(content) - at} bytes follow it")
    places = tuple([(place["first"], place["call"]) for place in head["places"]])
    program = Program(config, content[at:end], content[end:], head["memory"], tensors[0], tensors[1], places)
    for tensor in (*program.inputs, *program.outputs):
        if len(tensor.shape) not in (2, 4) or not 0 <= tensor.address < max(program.memory, 1):
            raise unreadable(source, 8, f"a tensor of shape {list(tensor.shape)} at byte {tensor.address} of DRAM")
    return program


def listing(program: Program, source: str = "the stream") -> str:
    """The stream as text: for each instruction its byte, its fields, and the Relay call where it changes."""
    codec = Codec(program.config)
    instructions = program.instructions(source)
    lines = [f"VTA {program.config}, {len(instructions)} instructions, {program.memory:,} bytes of DRAM"]
    places = dict(program.places)
    for number, instruction in enumerate(instructions):
        if number in places:
            lines.append(f"# {places[number]}")
        lines.append(f"{instruction.at:06x}  {codec.text(instruction)}")
    return "\n".join(lines) + "\n"


__all__ = ["MAGIC", "Program", "RelayError", "Tensor", "listing", "read_program"]
