"""A program compiled for the Ethos-U: its files, and how it runs on a machine that has no NPU.

The `.tar` holds

    manifest.json               the steps in order, tensors, where the driver puts them, cycles and memory
    report.txt                  the same for people
    regions/NAME.npu.bin        a region's command stream, with the driver's header (COP1)
    regions/NAME.weights.bin    its packed weights and scales, the driver's read-only memory
    regions/NAME.tosa           the region as TOSA 1.0, which the reference model runs
    host/NAME.relay             what the host computes between the regions, as Relay text with its constants
    host/NAME.tar               the same, compiled for the target that was named behind ours
    sha256sums                  the digests of all these
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from relaylang.backends.ethosu.reference import run_tosa
from relaylang.backends.ethosu.simulator.machine import Observer
from relaylang.backends.ethosu.simulator.region import run_stream
from relaylang.backends.ethosu.stream import Command
from relaylang.backends.hosted import FIELDS, Named, named_tensor, tensor_records
from relaylang.backends.hosted_artifact import HostedArtifact, read_hosted
from relaylang.runtime.artifact import Capability
from relaylang.runtime.manifest import count
from relaylang.runtime.schema import Parser, one_of, record, row, several, shown, table, text, whole

FORMAT = "relaylang-ethos-u"
VERSION = 2


@dataclass(frozen=True)
class RegionCode:
    """A compiled region: its TOSA file, and the command stream and weights for the driver."""

    tosa: bytes = field(repr=False)
    command_stream: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    inputs: tuple[Named, ...]
    outputs: tuple[Named, ...]
    details: dict[str, Any] = field(repr=False)

    def run(self, values: list[Any], executor: str = "tosa", observer: Observer | None = None) -> list[np.ndarray]:
        """The region's results, by one of `runtime.artifact.SIMULATORS`. uint8 tensors travel as the bytes that they are."""
        stored = [spec.check(name, v) for (name, spec), v in zip(self.inputs, values)]
        if executor == "ethosu-sim":
            specs = [spec for _, spec in self.outputs]
            return run_stream(self.command_stream, self.weights, self.details["driver"], stored, specs, observer)
        raw = run_tosa(self.tosa, [v.view(np.int8) if v.dtype == np.uint8 else v for v in stored])
        return [
            (out.view(np.uint8) if spec.dtype == "uint8" else out).reshape(spec.shape) for (_, spec), out in zip(self.outputs, raw)
        ]


_MEMORY = record({"region": whole(0, 255), "bytes": count})
_LOCATION = several(record({"region": whole(0, 255), "address": count, "bytes": count}))
_ESTIMATE = record(
    {
        "total_cycles": count,
        "npu_cycles": count,
        "macs": count,
        "operations": count,
        "weights_bytes": record({"original": count, "encoded": count}),
        "memory": table(record({"peak_bytes": count, "access_cycles": count, "traffic": table(row(count, count))})),
        "layers": several(record({"name": text, "operator": text, "cycles": count, "macs": count})),
    }
)
_REGION = record(
    {
        "command_stream": text,
        "weights": text,
        "tosa": text,
        "inputs": several(named_tensor),
        "outputs": several(named_tensor),
        "driver": record(
            {"weights_region": whole(0, 255), "scratch": _MEMORY, "scratch_fast": _MEMORY, "inputs": _LOCATION, "outputs": _LOCATION}
        ),
    },
    {"estimate": _ESTIMATE, "places": several(row(count, text, count))},
)
#: The schema of regions, for archives for the Ethos-U and for microcontrollers.
REGIONS: Parser = table(_REGION)
#: The schema of the manifest.
_MANIFEST = record(
    {
        "format": one_of(FORMAT),
        "version": whole(VERSION, VERSION),
        **FIELDS,
        "regions": REGIONS,
    },
    {
        "target": record({}, dict.fromkeys(("accelerator", "system_config", "memory_mode", "optimise"), text)),
        "operations": table(count),
        "stays_on_host": several(record({"why": text}, {"at": text})),
    },
)


@dataclass
class EthosUArtifact(HostedArtifact):
    """A compiled program. `run` gives what the interpreter gives, to the integer; `executor` says who computes regions."""

    format: ClassVar[str] = FORMAT
    version: ClassVar[int] = VERSION
    executors: ClassVar[tuple[str, ...]] = ("tosa", "ethosu-sim")
    details: dict[str, Any] = field(repr=False)
    executor: str = "tosa"
    #: Called by the simulator for each tensor that a region's stream stores, with the region's name.
    observer: Callable[[str, Command, np.ndarray], None] | None = field(default=None, repr=False)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "simulate", "observe"])

    def run_region(self, name: str, arguments: list[Any]) -> list[Any]:
        observer = partial(self.observer, name) if self.observer is not None else None
        return list(self.regions[name].run(arguments, self.executor, observer))

    def region_parts(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        return region_files(self.regions), region_records(self.regions)

    def manifest(self) -> dict[str, Any]:
        return {**super().manifest(), **self.details}


def region_files(regions: Mapping[str, RegionCode]) -> dict[str, bytes]:
    """The files of regions by their names in an archive."""
    out: dict[str, bytes] = {}
    for name, code in regions.items():
        out[f"regions/{name}.npu.bin"] = code.command_stream
        out[f"regions/{name}.weights.bin"] = code.weights
        out[f"regions/{name}.tosa"] = code.tosa
    return out


def region_records(regions: Mapping[str, RegionCode]) -> dict[str, Any]:
    """What a manifest says of regions."""
    return {
        name: {
            "command_stream": f"regions/{name}.npu.bin",
            "weights": f"regions/{name}.weights.bin",
            "tosa": f"regions/{name}.tosa",
            "inputs": tensor_records(code.inputs),
            "outputs": tensor_records(code.outputs),
            **code.details,
        }
        for name, code in regions.items()
    }


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> EthosUArtifact:
    """Read an archive. Host steps run compiled where the archive has their programs, on so many threads.

    `source` is what messages call the archive. Raises `RelayError` (R0641) if the bytes are no archive of ours.
    """
    schedule, inputs, regions, host, report, manifest = read_hosted(content, source, _parsed, read_regions, threads)
    known = {"format", "version", "inputs", "result", "steps", "regions", "host"}
    return EthosUArtifact(schedule, inputs, regions, host, report, {k: v for k, v in manifest.items() if k not in known})


def _parsed(written: dict[str, Any]) -> dict[str, Any]:
    if written.get("format") != FORMAT or written.get("version") != VERSION:
        raise ValueError(f"format {shown(written.get('format'))} {shown(written.get('version'))}")
    manifest: dict[str, Any] = _MANIFEST("", written)
    return manifest


def read_regions(records: Mapping[str, Any], files: dict[str, bytes]) -> dict[str, RegionCode]:
    """The regions of records that `REGIONS` has taken, and of `region_files`. Raises `KeyError` for a file that is missing."""
    return {name: _region(data, files) for name, data in records.items()}


def _region(data: dict[str, Any], files: dict[str, bytes]) -> RegionCode:
    stream, weights, tosa = (files[data[name]] for name in ("command_stream", "weights", "tosa"))
    details: dict[str, Any] = {name: data[name] for name in ("driver", "estimate", "places") if name in data}
    return RegionCode(tosa, stream, weights, tuple(data["inputs"]), tuple(data["outputs"]), details)
