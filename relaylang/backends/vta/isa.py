"""The instructions of VTA: one table of their fields, from which come encoder, decoder, printer, assembler and documentation.

An instruction has 128 bits in two words. Fields follow each other from the lowest bit up, and none crosses from one word to
the other. The widths of some depend on the configuration. The facts are those of `hw_spec.h` in Apache's `tvm-vta`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from relaylang.backends.vta.config import Config, cannot_build
from relaylang.diagnostics import RelayError, error

#: The bytes of an instruction.
BYTES = 16
_WORD = 64


@dataclass(frozen=True)
class Field:
    """A field: its name, its bits or the memory whose depth gives them (`extra` more), and what it says.

    `names` are the words of a field that is an enumeration, in the order of its numbers.
    """

    name: str
    bits: int | str
    doc: str
    names: Sequence[str] = ()
    signed: bool = False
    extra: int = 0

    def width(self, config: Config) -> int:
        return (self.bits if isinstance(self.bits, int) else config.log_depth[self.bits]) + self.extra


@dataclass(frozen=True)
class Kind:
    """An instruction: its opcode, the fields after the opcode, and what it does."""

    opcode: int
    fields: tuple[Field, ...]
    doc: str


_FLAGS = (
    Field("pop_prev", 1, "waits for a token of the unit before"),
    Field("pop_next", 1, "waits for a token of the unit after"),
    Field("push_prev", 1, "gives a token to the unit before"),
    Field("push_next", 1, "gives a token to the unit after"),
)
#: The memories and the ALU's operations, in the order of their numbers.
MEMORIES, OPERATIONS = ("uop", "wgt", "inp", "acc", "out", "acc8"), ("MIN", "MAX", "ADD", "SHR", "MUL")
_MEMORY = (
    *_FLAGS,
    Field("memory", 3, "the memory on the chip", MEMORIES),
    Field("sram", 16, "its first element"),
    Field("dram", 32, "the first element in DRAM, in elements of this memory"),
    Field("y_size", 16, "rows"),
    Field("x_size", 16, "elements of a row"),
    Field("x_stride", 16, "elements in DRAM from one row to the next"),
    Field("y_pad_0", 4, "rows of zeros above"),
    Field("y_pad_1", 4, "rows of zeros below"),
    Field("x_pad_0", 4, "zeros on the left of a row"),
    Field("x_pad_1", 4, "zeros on the right of a row"),
)


def _loops(source: str, reset: str) -> tuple[Field, ...]:
    return (
        *_FLAGS,
        Field("reset", 1, reset),
        Field("uop_bgn", "uop", "the first micro-operation"),
        Field("uop_end", "uop", "the micro-operation after the last", extra=1),
        Field("iter_out", 14, "turns of the outer loop"),
        Field("iter_in", 14, "turns of the inner loop"),
        Field("dst_out", "acc", "what a turn of the outer loop adds to the index of the result"),
        Field("dst_in", "acc", "what a turn of the inner loop adds to it"),
        Field("src_out", source, "the same of the source, outer loop"),
        Field("src_in", source, "the same of the source, inner loop"),
    )


#: Every instruction by its name.
KINDS: dict[str, Kind] = {
    "LOAD": Kind(0, _MEMORY, "copies rows from DRAM to a memory on the chip, with zeros around them"),
    "STORE": Kind(1, _MEMORY, "copies rows from the chip to DRAM"),
    "GEMM": Kind(
        2,
        (
            *_loops("inp", "writes zeros"),
            Field("wgt_out", "wgt", "the same of the weights, outer loop"),
            Field("wgt_in", "wgt", "the same of the weights, inner loop"),
        ),
        "adds products of tiles of inputs and weights to tiles of sums",
    ),
    "FINISH": Kind(3, _FLAGS, "ends the program"),
    "ALU": Kind(
        4,
        (
            *_loops("acc", "has no effect"),
            Field("alu", 3, "the operation; SHR by a negative number shifts left", OPERATIONS),
            Field("use_imm", 1, "takes the number below, not a second tile"),
            Field("imm", 16, "the number", signed=True),
        ),
        "computes tiles of sums with others, or with a number",
    ),
}
OPCODE_BITS = 3


@dataclass(frozen=True)
class Instruction:
    """An instruction: its byte in the stream, its name, and the fields that are not 0."""

    at: int
    name: str
    fields: Mapping[str, int]

    def __getitem__(self, key: str) -> int:
        return self.fields.get(key, 0)


class Codec:
    """Encodes, decodes, prints and reads the instructions of one configuration. Raises `RelayError` (R0602)."""

    def __init__(self, config: Config) -> None:
        self.config, depth = config, config.log_depth
        #: For each instruction and field the lowest bit and the number of bits.
        self.places = {name: self._places(kind) for name, kind in KINDS.items()}
        self.uop_bits = (depth["acc"], max(depth["acc"], depth["inp"]), depth["wgt"])
        ends = {name: max(low + bits for low, bits in places.values()) for name, places in self.places.items()}
        for what, bits, most in (
            ("a micro-operation", sum(self.uop_bits), 32),
            *[(name, end, 8 * BYTES) for name, end in ends.items()],
        ):
            if bits > most:
                raise cannot_build(f"{what} needs {bits} bits, and has {most}")

    def _places(self, kind: Kind) -> dict[str, tuple[int, int]]:
        at, places = OPCODE_BITS, {}
        for field in kind.fields:
            bits = field.width(self.config)
            if at // _WORD != (at + bits - 1) // _WORD:
                at = (at // _WORD + 1) * _WORD
            places[field.name] = (at, bits)
            at += bits
        return places

    def encode(self, name: str, fields: Mapping[str, int]) -> bytes:
        """The 16 bytes of an instruction. Raises `ValueError` for a value that its field does not hold."""
        content = KINDS[name].opcode
        for key, value in fields.items():
            low, bits = self.places[name][key]
            least = -(1 << bits - 1) if key == "imm" else 0
            if not least <= value < least + (1 << bits):
                raise ValueError(f"{key} of {name} has {bits} bits, which do not hold {value}")
            content |= (value & ((1 << bits) - 1)) << low
        return content.to_bytes(BYTES, "little")

    def decode(self, content: bytes, source: str, place: Callable[[int], str] | None = None) -> list[Instruction]:
        """The instructions of a stream. `place` gives the Relay call of a byte.

        Raises `RelayError` (R0615), with the byte of the fault and its call.
        """
        instructions = []
        for at in range(0, len(content), BYTES):
            try:
                instructions.append(self._decoded(content[at : at + BYTES], at))
            except ValueError as problem:
                raise unreadable(source, at, str(problem), [f"it is part of {place(at)}"] if place else []) from None
        return instructions

    def _decoded(self, content: bytes, at: int) -> Instruction:
        if len(content) < BYTES:
            raise ValueError("the last instruction is cut off")
        rest, fields = int.from_bytes(content, "little"), {}
        opcode = rest & ((1 << OPCODE_BITS) - 1)
        name = next((name for name, kind in KINDS.items() if kind.opcode == opcode), None)
        if name is None:
            raise ValueError(f"the opcode {opcode} is not defined")
        rest -= opcode
        for field in KINDS[name].fields:
            low, bits = self.places[name][field.name]
            value = rest >> low & ((1 << bits) - 1)
            rest ^= value << low
            if field.names and value >= len(field.names):
                raise ValueError(f"{field.name} of {name} is {value}, which is not defined")
            if value:
                fields[field.name] = value - (1 << bits) if field.signed and value >> (bits - 1) else value
        if rest:
            raise ValueError(f"{name} sets bits that no field has")
        return Instruction(at, name, fields)

    def text(self, instruction: Instruction) -> str:
        """An instruction as a line, without its place: its name, its flags, and the other fields."""
        words = [instruction.name]
        for field in KINDS[instruction.name].fields:
            value = instruction[field.name]
            if field.names:
                words.append(f"{field.name}={field.names[value]}")
            elif value:
                words.append(field.name if field.bits == 1 else f"{field.name}={value}")
        return " ".join(words)

    def assemble(self, text: str, source: str = "<assembly>") -> bytes:
        """The stream of lines as `text` writes them. `#` begins a comment, and a place at a line's start is not read.

        Raises `RelayError` (R0615) with the line.
        """
        out = bytearray()
        for number, line in enumerate(text.splitlines(), 1):
            name, *words = re.sub(r"^\s*[0-9a-f]{6}\s", "", line.partition("#")[0]).split() or [""]
            try:
                out += self.encode(name, _fields(name, words)) if name else b""
            except ValueError as problem:
                raise RelayError(error("R0615", f"{source}:{number} is no instruction of VTA: {problem}")) from None
        return bytes(out)

    def uop(self, dst: int, src: int, wgt: int) -> int:
        """A micro-operation's 32 bits."""
        return dst | src << self.uop_bits[0] | wgt << (self.uop_bits[0] + self.uop_bits[1])


def _fields(name: str, words: Iterable[str]) -> dict[str, int]:
    """The fields that words of a line set. Raises `ValueError`."""
    if name not in KINDS:
        raise ValueError(f"there is no {name}; there are {', '.join(KINDS)}")
    known, values = {field.name: field for field in KINDS[name].fields}, {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in known:
            raise ValueError(f"{name} has no field {key}")
        names = known[key].names
        value = value if equals or known[key].bits != 1 else "1"
        if names and value not in names:
            raise ValueError(f"{key} is one of {', '.join(names)}, not {value}")
        if not names and not re.fullmatch(r"-?[0-9]{1,10}", value):
            raise ValueError(f"{key} is no number")
        values[key] = names.index(value) if names else int(value)
    return values


def unreadable(source: str, at: int, why: str, notes: Sequence[str] = ()) -> RelayError:
    title = f"{source} is no stream of VTA that can be read: at byte {at:#x}, {why}"
    return RelayError(error("R0615", title, notes=list(notes)))


__all__ = ["BYTES", "KINDS", "MEMORIES", "OPCODE_BITS", "OPERATIONS", "Codec", "Field", "Instruction", "Kind", "unreadable"]
