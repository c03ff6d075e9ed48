"""A program compiled for VTA: its files, and how it runs in the simulator.

The `.tar` holds `manifest.json`, `report.txt`, `regions/NAME.vta` (see `program`), the host's steps as Relay text and as
compiled programs (`host/NAME.relay`, `host/NAME.tar`), and the digests of all these.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from relaylang.backends.hosted import (
    FIELDS,
    HostFunction,
    HostStep,
    Named,
    host_files,
    named_tensor,
    read_host,
    run_schedule,
    schedule_fields,
    schedule_of,
    tensor_records,
)
from relaylang.backends.vta.profile import CycleProfile
from relaylang.backends.vta.program import Program, read_program
from relaylang.backends.vta.simulator import simulate
from relaylang.diagnostics import RelayError, error
from relaylang.partition.schedule import Schedule
from relaylang.runtime import artifact as programs
from relaylang.runtime.artifact import Artifact, Capability, TensorSpec, bind_arguments, not_an_artifact, read_sealed, write_sealed
from relaylang.runtime.files import atomic_write
from relaylang.runtime.schema import document, one_of, record, several, table, text, whole
from relaylang.runtime.text import reason

FORMAT = "relaylang-vta"
VERSION = 1
_MANIFEST = record(
    {
        "format": one_of(FORMAT),
        "version": whole(VERSION, VERSION),
        **FIELDS,
        "regions": table(record({"program": text, "inputs": several(named_tensor), "outputs": several(named_tensor)})),
    }
)


@dataclass(frozen=True)
class Region:
    """A region: its program, and its inputs and outputs as the host sees them."""

    program: Program = field(repr=False)
    inputs: tuple[Named, ...]
    outputs: tuple[Named, ...]

    def run(self, values: list[Any]) -> list[np.ndarray]:
        """The results of the functional simulator, int8."""
        stored = [spec.check(name, value) for (name, spec), value in zip(self.inputs, values)]
        return simulate(self.program, stored, len(self.outputs))


@dataclass
class VTAArtifact(Artifact):
    """A compiled program. `run` gives what the interpreter gives, to the integer."""

    executors: ClassVar[tuple[str, ...]] = ("vta-sim",)
    schedule: Schedule
    inputs: tuple[Named, ...]
    regions: dict[str, Region]
    host: dict[str, HostStep]
    text: str = field(repr=False)
    executor: str = "vta-sim"

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "simulate", "cycles"])

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, ()) for name, spec in self.inputs]

    def report(self) -> str:
        """What VTA computes, and what stays on the host and why."""
        return self.text

    def run(self, *args: Any, **named: Any) -> Any:
        """The entry's value: regions run in the simulator, the steps between them on the host.

        Arguments come in order or by name. Returns an array, or a tuple of them. Raises `RelayError`.
        """
        values: dict[str, Any] = {}
        for (name, spec), value in zip(self.inputs, bind_arguments(self.input_names, args, named)):
            values[name] = spec.check(name, value)
        return run_schedule(self.schedule, values, self.host, lambda name, arguments: list(self.regions[name].run(arguments)))

    __call__ = run

    def profile(self) -> CycleProfile:
        """The cycles of the regions, which do not depend on the values of inputs."""
        names = [step.name for step in self.schedule.steps if step.is_region]
        return CycleProfile({name: self.regions[name].program for name in names})

    def files(self) -> dict[str, bytes]:
        """Every file of the archive by its name."""
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **schedule_fields(self.schedule, self.inputs, self.host),
            "regions": {
                name: {
                    "program": f"regions/{name}.vta",
                    "inputs": tensor_records(region.inputs),
                    "outputs": tensor_records(region.outputs),
                }
                for name, region in self.regions.items()
            },
        }
        streams = {f"regions/{name}.vta": region.program.save() for name, region in self.regions.items()}
        content = (json.dumps(manifest, indent=1) + "\n").encode()
        return {"manifest.json": content, "report.txt": self.text.encode(), **streams, **host_files(self.host)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive, whole or not at all. Equal programs give equal bytes. Raises `RelayError` (R0001)."""
        try:
            atomic_write(path, write_sealed(self.files()))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return programs.loads, (write_sealed(self.files()), None, "what was pickled")


def loads(content: bytes, make_host: Callable[[str, str, bytes | None], HostFunction], source: str) -> VTAArtifact:
    """Read an archive. `make_host` gets a host step's name, text and saved program, and makes it ready to run.

    Raises `RelayError` (R0641) if the bytes are no archive of ours, R0615 for a stream that cannot be read.
    """
    files = read_sealed(content, source)
    try:
        manifest = _MANIFEST("", document(files["manifest.json"]))
        regions = {
            name: Region(read_program(files[entry["program"]], entry["program"]), tuple(entry["inputs"]), tuple(entry["outputs"]))
            for name, entry in manifest["regions"].items()
        }
        for name, region in regions.items():
            _check_tensors(name, region)
        schedule = schedule_of(manifest, {name: (len(region.inputs), len(region.outputs)) for name, region in regions.items()})
        report = files["report.txt"].decode("utf-8")
        host = read_host(manifest["host"], files, make_host)
    except (KeyError, ValueError) as problem:
        raise not_an_artifact(source, f"it lacks {problem}" if isinstance(problem, KeyError) else f"{problem}"[:300]) from None
    return VTAArtifact(schedule, tuple(manifest["inputs"]), regions, host, report)


def _check_tensors(name: str, region: Region) -> None:
    """The program's tensors are the manifest's. Raises `ValueError`."""
    for tensors, named in ((region.program.inputs, region.inputs), (region.program.outputs, region.outputs)):
        for tensor in tensors:
            known = named[tensor.number][1] if tensor.number < len(named) else None
            if known is None or (known.shape, known.dtype) != (tensor.shape, "int8"):
                raise ValueError(f"the region {name} has other tensors than its program")
    if {tensor.number for tensor in region.program.outputs} != set(range(len(region.outputs))):
        raise ValueError(f"the program of the region {name} leaves out a result")


__all__ = ["FORMAT", "Region", "VTAArtifact", "loads"]
