"""A program compiled for VTA: its files, and how it runs in the simulator.

The `.tar` holds `manifest.json`, `report.txt`, `regions/NAME.vta` (see `program`), the host's steps as Relay text and as
compiled programs (`host/NAME.relay`, `host/NAME.tar`), and the digests of all these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from relaylang.backends.hosted import FIELDS
from relaylang.backends.hosted_artifact import HostedArtifact, read_hosted
from relaylang.backends.vta.profile import CycleProfile
from relaylang.backends.vta.program import read_program
from relaylang.backends.vta.simulator import simulate
from relaylang.runtime.artifact import Capability
from relaylang.runtime.schema import one_of, record, table, text, whole


@dataclass
class VTAArtifact(HostedArtifact):
    """A compiled program, whose regions are a `Program` each. `run` gives what the interpreter gives, to the integer."""

    format: ClassVar[str] = "relaylang-vta"
    version: ClassVar[int] = 2
    executors: ClassVar[tuple[str, ...]] = ("vta-sim",)
    executor: str = "vta-sim"

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "simulate", "cycles"])

    def run_region(self, name: str, arguments: list[Any]) -> list[np.ndarray]:
        """The results of the functional simulator, int8."""
        program = self.regions[name]
        return simulate(program, [tensor.spec.check(tensor.name, value) for tensor, value in zip(program.inputs, arguments)])

    def profile(self) -> CycleProfile:
        """The cycles of the regions, which do not depend on the values of inputs."""
        return CycleProfile({step.name: self.regions[step.name] for step in self.schedule.steps if step.is_region})

    def region_parts(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        names = {name: f"regions/{name}.vta" for name in self.regions}
        return {names[name]: program.save() for name, program in self.regions.items()}, names


_HEAD = {"format": one_of(VTAArtifact.format), "version": whole(VTAArtifact.version, VTAArtifact.version)}
_MANIFEST = record({**_HEAD, **FIELDS, "regions": table(text)})


def _regions(names: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, Any]:
    return {name: read_program(files[file], file) for name, file in names.items()}


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> VTAArtifact:
    """Read an archive that `save` has written. `source` is what messages call it, `threads` how many host steps may use.

    Raises `RelayError` (R0641) if the bytes are no archive of ours, R0615 for a stream that cannot be read.
    """
    return VTAArtifact(*read_hosted(content, source, partial(_MANIFEST, ""), _regions, threads)[:5])


__all__ = ["VTAArtifact", "loads"]
