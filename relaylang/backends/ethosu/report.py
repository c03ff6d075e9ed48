"""The report of a compilation for the Ethos-U: the text for people and the JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.ethosu.vela import ACCELERATORS, Compiled, Settings
from relaylang.diagnostics import Diagnostic


def estimate(compiled: Compiled) -> dict[str, Any]:
    """A region's estimates: cycles, bytes, multiply-accumulates."""
    return {
        "total_cycles": compiled.total_cycles,
        "npu_cycles": compiled.npu_cycles,
        "macs": compiled.macs,
        "operations": compiled.operations,
        "weights_bytes": {"original": compiled.original_weights, "encoded": compiled.encoded_weights},
        "memory": {
            m.name: {
                "peak_bytes": m.peak,
                "access_cycles": m.cycles,
                "traffic": {what: list(moved) for what, moved in m.traffic.items()},
            }
            for m in compiled.memories
        },
        "layers": [
            {"name": layer.name, "operator": layer.operator, "cycles": layer.cycles, "macs": layer.macs} for layer in compiled.layers
        ],
    }


def text_report(
    settings: Settings,
    regions: Mapping[str, Compiled],
    offloaded: int,
    kept: int,
    notes: Sequence[Diagnostic],
) -> str:
    """The report that `relay compile` prints: cycles and memory for each region, then what stays on the host and why.

    Times are Vela's estimates for the system configuration that is named, not measurements.
    """
    clock = _clock(settings)
    lines = [
        f"target: {settings.accelerator}, system {settings.system_config}, memory mode {settings.memory_mode}, "
        f"optimised for {settings.optimise.lower()}",
        f"operations: {offloaded} on the accelerator in {_count(len(regions), 'region')}, {kept} on the host",
    ]
    for name, compiled in regions.items():
        lines += ["", *_region_lines(name, compiled, settings, clock)]
    if notes:
        lines += ["", "stays on the host:"]
        lines += [f"  {_where(note)}{note.title.replace(' stays on the host', '')}" for note in notes]
    return "\n".join(lines) + "\n"


def _region_lines(name: str, compiled: Compiled, settings: Settings, clock: float) -> list[str]:
    _, macs, cores = ACCELERATORS[settings.accelerator]
    lines = [
        f"region @{name}: {compiled.total_cycles:,} cycles"
        + (f" = {compiled.total_cycles / clock * 1e3:.3f} ms at {clock / 1e6:g} MHz" if clock else "")
    ]
    busy = compiled.macs / (compiled.total_cycles * macs * cores) if compiled.total_cycles else 0.0
    lines.append(f"  {compiled.macs:,} multiply-accumulates, {busy:.1%} of what the accelerator could do in that time")
    if compiled.original_weights:
        lines.append(
            f"  weights {compiled.original_weights:,} bytes, {compiled.encoded_weights:,} encoded; "
            f"command stream {len(compiled.command_stream):,} bytes"
        )
    for memory in compiled.memories:
        read, written = (sum(counts) for counts in zip((0, 0), *memory.traffic.values()))
        lines.append(f"  {memory.name}: {memory.peak:,} bytes at most, {read:,} read, {written:,} written, {memory.cycles:,} cycles")
    width = max((len(layer.operator) for layer in compiled.layers), default=0)
    for layer in compiled.layers:
        share = layer.cycles / compiled.total_cycles if compiled.total_cycles else 0.0
        lines.append(f"  {layer.operator:{width}}  {layer.cycles:>10,} cycles {share:>4.0%}  {layer.macs:>12,} MAC  {layer.name}")
    return lines


def _clock(settings: Settings) -> float:
    section, inside = f"[System_Config.{settings.system_config}]", False
    for line in settings.config.splitlines():
        if line.startswith("["):
            inside = line.strip() == section
        elif inside and line.startswith("core_clock="):
            return float(line.partition("=")[2])
    return 0.0


def _where(note: Diagnostic) -> str:
    return f"{note.span.line}:{note.span.column} " if note.span is not None and note.span.source.text else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
