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
from relaylang.runtime.artifact import TensorSpec
from relaylang.runtime.manifest import count
from relaylang.runtime.schema import document, record, row, several, table, text, whole

MAGIC = b"VTA1"
#: The most bytes of DRAM that a program may have.
_MOST_BYTES = 1 << 32


class Tensor(NamedTuple):
    """An input or output of a region, int8. `places` are where it lies in DRAM: its first byte, and the block of channels.

    An input that is used in two ways has two places, an output has one.
    """

    name: str
    shape: tuple[int, ...]
    places: tuple[tuple[int, int], ...]

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, "int8")


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


_TENSORS = several(record({"name": text, "shape": several(count), "places": several(row(count, whole(1, 256)))}))
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
        inputs, outputs = (
            tuple([Tensor(t["name"], tuple(t["shape"]), tuple(t["places"])) for t in head[key]]) for key in ("inputs", "outputs")
        )
    except ValueError as problem:
        raise unreadable(source, 8, str(problem)) from None
    places = tuple([(place["first"], place["call"]) for place in head["places"]])
    at, end = 8 + size, 8 + size + BYTES * head["instructions"]
    program = Program(config, content[at:end], content[end:], head["memory"], inputs, outputs, places)
    if len(content) < end:
        program.instructions(source)  # the last one may be cut off
    if len(content) != end + head["constants"] or head["constants"] > head["memory"]:
        why = f"the header counts {head['instructions']} instructions and {head['constants']} bytes of constants"
        last = max(min(len(content), end) - at - 1, 0) // BYTES * BYTES
        raise unreadable(source, last, f"{why}, {len(content) - at} bytes follow it", [f"it is part of {program.place(last)}"])
    for tensor in (*inputs, *outputs):
        if len(tensor.shape) not in (2, 4) or any(address >= max(program.memory, 1) for address, _ in tensor.places):
            raise unreadable(source, 8, f"the tensor {tensor.name} of shape {list(tensor.shape)} leaves the DRAM")
    if any(len(tensor.places) != 1 for tensor in outputs):
        raise unreadable(source, 8, "an output has one place")
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
