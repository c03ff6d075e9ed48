"""Command streams as text: a line for each command.

Operations have their layer and the cycles that Vela expects. Transfers have the layer that reads the bytes.
"""

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


#: What an operation reads from the place of a transfer: registers of the region and of the address.
_READ = [
    (f"SET_{name}_REGION", f"SET_{name}_BASE{zero}") for name, zero in (("SCALE", ""), ("WEIGHT", ""), ("IFM", "0"), ("IFM2", "0"))
]
#: The bit of a transfer's region that stands for memory inside of the accelerator, which holds the next operation's table.
_INSIDE = 1 << 8


def _transfers(stream: Stream, layers: Mapping[int, str]) -> dict[int, str]:
    """By byte of a command that starts a transfer: the layer of the first operation that reads what it writes."""
    names: dict[int, str] = {}
    under_way: dict[tuple[int, int], int] = {}
    tables: list[int] = []
    held: dict[str, int] = {}
    for command in stream.commands:
        if command.name == "OP_DMA_START":
            region = held.get("SET_DMA0_DST_REGION", 0)
            if region & _INSIDE:
                tables.append(command.at)
            else:
                under_way[region, held.get("SET_DMA0_DST", 0)] = command.at
        elif command.at in layers:
            names |= dict.fromkeys(tables, layers[command.at])
            tables.clear()
            for of, base in _READ:
                at = under_way.pop((held.get(of, 0), held.get(base, 0)), None)
                if at is not None:
                    names[at] = layers[command.at]
        elif command.name.startswith("SET_"):
            held[command.name] = command.param if command.payload is None else command.address
    return names


def listing(stream: Stream, places: Iterable[tuple[int, str, int]] = ()) -> str:
    """The commands of a stream. `places` are (byte, layer, cycles) of commands that start operations."""
    registers = FIELDS[stream.product]
    places = list(places)
    known = {at: f"{layer}, {cycles:,} cycles" for at, layer, cycles in places}
    known |= {at: f"for {layer}" for at, layer in _transfers(stream, {at: layer for at, layer, _ in places}).items()}
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
