"""Command streams as text: a line for each command. Operations have their layer and the cycles that Vela expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.registers import FIELDS
from relaylang.backends.ethosu.stream import Command, Stream, read_stream

#: Registers of 16 bits that hold numbers with a sign.
_SIGNED = frozenset({"SET_ACTIVATION_MIN", "SET_ACTIVATION_MAX", "SET_IFM2_SCALAR"})


def _value(command: Command, fields: dict[str, tuple[int, int]], start: int) -> str:
    """A register's number; or its fields that are not zero, by Arm's names, and bits outside of them.

    A branch shows the byte in the file to which it goes. `start` is that of the first command.
    """
    named = {name: command.param >> low & ((1 << bits) - 1) for name, (low, bits) in fields.items()}
    if command.payload is None and not named:
        signed = command.name in _SIGNED and command.param & 0x8000
        return str(command.param - (1 << 16) if signed else command.param)
    words = [f"{name}={value}" for name, value in named.items() if value and name != "shift"]
    rest = command.param & ~sum(((1 << bits) - 1) << low for low, bits in fields.values())
    if named and rest:
        words.append(f"{rest:#x}")
    if command.name.endswith("_SCALE"):
        words.insert(0, f"{command.payload} >> {command.param & 0x3F}")
    elif command.name == "OP_BRANCH":
        words.insert(0, f"{start + (command.payload or 0):06x}")
    elif command.payload is not None:
        words.insert(0, f"{command.payload if named else command.address:#x}")
    return " ".join(words) or "0"


def listing(stream: Stream, places: Iterable[tuple[int, str, int]] = ()) -> str:
    """The commands of a stream. `places` are (byte, layer, cycles) of commands that start operations."""
    registers = FIELDS[stream.product]
    known = {at: f"{layer}, {cycles:,} cycles" for at, layer, cycles in places}
    lines = [f"{stream.accelerator}, {len(stream.commands)} commands"]
    start = stream.commands[0].at if stream.commands else 0
    for command in stream.commands:
        line = f"{command.at:06x}  {command.name:<24}{_value(command, registers.get(command.name.removeprefix('SET_'), {}), start)}"
        lines.append(f"{line:<48}# {known[command.at]}" if command.at in known else line)
    return "\n".join(lines) + "\n"


def archive_listing(regions: Mapping[str, RegionCode]) -> str:
    """The streams of an archive's regions, in order."""
    parts = []
    for name, region in regions.items():
        stream = read_stream(region.command_stream, f"regions/{name}.npu.bin")
        parts.append(f"@{name}: {listing(stream, region.details.get('places', ()))}")
    return "\n".join(parts)
