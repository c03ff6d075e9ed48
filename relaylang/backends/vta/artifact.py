"""A program compiled for VTA: its files, and how it runs in the simulator.

The `.tar` holds `manifest.json`, `report.txt`, `regions/NAME.vta` (see `program`), the host's steps as Relay text and as
compiled programs (`host/NAME.relay`, `host/NAME.tar`), and the digests of all these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from relaylang.backends.hosted import FIELDS, Named, named_tensor, tensor_records
from relaylang.backends.hosted_artifact import HostedArtifact, read_hosted
from relaylang.backends.vta.profile import CycleProfile
from relaylang.backends.vta.program import Program, read_program
from relaylang.backends.vta.simulator import simulate
from relaylang.runtime.artifact import Capability
from relaylang.runtime.schema import one_of, record, several, table, text, whole


@dataclass(frozen=True)
class Region:
    """A region: its program, and its inputs and outputs as the host sees them."""

    program: Program = field(repr=False)
    inputs: tuple[Named, ...]
    outputs: tuple[Named, ...]

    def check(self, name: str) -> Region:
        """The region, whose tensors are those of its program. Raises `ValueError`."""
        for tensors, named in ((self.program.inputs, self.inputs), (self.program.outputs, self.outputs)):
            for tensor in tensors:
                known = named[tensor.number][1] if tensor.number < len(named) else None
                if known is None or (known.shape, known.dtype) != (tensor.shape, "int8"):
                    raise ValueError(f"the region {name} has other tensors than its program")
        if {tensor.number for tensor in self.program.outputs} != set(range(len(self.outputs))):
            raise ValueError(f"the program of the region {name} leaves out a result")
        return self


@dataclass
class VTAArtifact(HostedArtifact):
    """A compiled program. `run` gives what the interpreter gives, to the integer."""

    format: ClassVar[str] = "relaylang-vta"
    version: ClassVar[int] = 1
    executors: ClassVar[tuple[str, ...]] = ("vta-sim",)
    executor: str = "vta-sim"

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "simulate", "cycles"])

    def run_region(self, name: str, arguments: list[Any]) -> list[np.ndarray]:
        """The results of the functional simulator, int8."""
        region = self.regions[name]
        return simulate(region.program, [spec.check(n, v) for (n, spec), v in zip(region.inputs, arguments)], len(region.outputs))

    def profile(self) -> CycleProfile:
        """The cycles of the regions, which do not depend on the values of inputs."""
        return CycleProfile({step.name: self.regions[step.name].program for step in self.schedule.steps if step.is_region})

    def region_parts(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        files, records = {}, {}
        for name, region in self.regions.items():
            files[f"regions/{name}.vta"] = region.program.save()
            tensors = {"inputs": tensor_records(region.inputs), "outputs": tensor_records(region.outputs)}
            records[name] = {"program": f"regions/{name}.vta", **tensors}
        return files, records


_REGION = record({"program": text, "inputs": several(named_tensor), "outputs": several(named_tensor)})
_HEAD = {"format": one_of(VTAArtifact.format), "version": whole(VTAArtifact.version, VTAArtifact.version)}
_MANIFEST = record({**_HEAD, **FIELDS, "regions": table(_REGION)})


def _regions(records: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Region]:
    return {
        name: Region(read_program(files[it["program"]], it["program"]), tuple(it["inputs"]), tuple(it["outputs"])).check(name)
        for name, it in records.items()
    }


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> VTAArtifact:
    """Read an archive that `save` has written. `source` is what messages call it, `threads` how many host steps may use.

    Raises `RelayError` (R0641) if the bytes are no archive of ours, R0615 for a stream that cannot be read.
    """
    return VTAArtifact(*read_hosted(content, source, partial(_MANIFEST, ""), _regions, threads)[:5])


__all__ = ["Region", "VTAArtifact", "loads"]
