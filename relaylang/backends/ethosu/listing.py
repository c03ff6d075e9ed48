"""Command streams as text: a line for each command. Operations have their layer and the cycles that Vela expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.ethosu.stream import Command, Stream, read_stream

#: Registers of 16 bits that hold numbers with a sign.
_SIGNED = frozenset({"SET_ACTIVATION_MIN", "SET_ACTIVATION_MAX", "SET_IFM2_SCALAR"})
#: Registers whose bits are fields.
_FIELDS = frozenset({"SET_IFM_PRECISION", "SET_IFM2_PRECISION", "SET_OFM_PRECISION", "SET_KERNEL_STRIDE", "SET_IFM2_BROADCAST"})


def _value(command: Command) -> str:
    if command.payload is None:
        if command.name in _FIELDS:
            return f"{command.param:#x}"
        signed = command.name in _SIGNED and command.param & 0x8000
        return str(command.param - (1 << 16) if signed else command.param)
    if command.name.endswith("_SCALE"):
        return f"{command.payload} >> {command.param & 0x3F}"
    return f"{command.address:#x}"


def listing(stream: Stream, places: Iterable[tuple[int, str, int]] = ()) -> str:
    """The commands of a stream. `places` are (byte, layer, cycles) of commands that start operations."""
    known = {at: f"{layer}, {cycles:,} cycles" for at, layer, cycles in places}
    lines = [f"{stream.accelerator}, {len(stream.commands)} commands"]
    for command in stream.commands:
        line = f"{command.at:06x}  {command.name:<24}{_value(command)}"
        lines.append(f"{line:<48}# {known[command.at]}" if command.at in known else line)
    return "\n".join(lines) + "\n"


def archive_listing(regions: Mapping[str, RegionCode]) -> str:
    """The streams of an archive's regions, in order."""
    parts = []
    for name, region in regions.items():
        stream = read_stream(region.command_stream, f"regions/{name}.npu.bin")
        parts.append(f"@{name}: {listing(stream, region.details.get('places', ()))}")
    return "\n".join(parts)
