"""The archive of a program in parts: the regions of an accelerator, and the steps of the host between them."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from relaylang.backends.hosted import HostStep, Named, host_files, read_host, run_schedule, saved_step, schedule_fields, schedule_of
from relaylang.diagnostics import RelayError, error
from relaylang.partition.schedule import Schedule
from relaylang.runtime import artifact as programs
from relaylang.runtime.artifact import TensorSpec, not_an_artifact, write_sealed
from relaylang.runtime.files import atomic_write
from relaylang.runtime.schema import document
from relaylang.runtime.text import reason


@dataclass
class HostedArtifact(programs.Artifact):
    """A program of an accelerator's regions and the host's steps between them. `run` gives what the interpreter gives.

    A subclass says how a region runs, and which files it has.
    """

    format: ClassVar[str]
    version: ClassVar[int]
    schedule: Schedule
    inputs: tuple[Named, ...]
    regions: dict[str, Any]
    host: dict[str, HostStep]
    text: str = field(repr=False)

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, ()) for name, spec in self.inputs]

    def report(self) -> str:
        """What the accelerator computes, and what stays on the host and why."""
        return self.text

    def run(self, *args: Any, **named: Any) -> Any:
        """The entry's value: regions run in a simulator, the steps between them on the host.

        Arguments come in order or by name. Returns an array, or a tuple of them. Raises `RelayError`.
        """
        values: dict[str, Any] = {}
        for (name, spec), value in zip(self.inputs, programs.bind_arguments(self.input_names, args, named)):
            values[name] = spec.check(name, value)
        return run_schedule(self.schedule, values, self.host, self.run_region)

    __call__ = run

    @abstractmethod
    def run_region(self, name: str, arguments: list[Any]) -> list[Any]:
        """The results of a region."""

    @abstractmethod
    def region_parts(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        """The files of regions, and what the manifest says of each region."""

    def manifest(self) -> dict[str, Any]:
        """The content of the archive's `manifest.json`."""
        return {
            "format": self.format,
            "version": self.version,
            **schedule_fields(self.schedule, self.inputs, self.host),
            "regions": self.region_parts()[1],
        }

    def files(self) -> dict[str, bytes]:
        """Every file of the archive by its name."""
        manifest = (json.dumps(self.manifest(), indent=1) + "\n").encode("utf-8")
        report = self.text.encode("utf-8")
        return {"manifest.json": manifest, "report.txt": report, **self.region_parts()[0], **host_files(self.host)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive, whole or not at all. Equal programs give equal bytes. Raises `RelayError` (R0001)."""
        try:
            atomic_write(path, write_sealed(self.files()))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return programs.loads, (write_sealed(self.files()), None, "what was pickled")


#: What an archive of a hosted program holds: the schedule, inputs, regions, host steps, the report, and the manifest.
HostedParts = tuple[Schedule, tuple[Named, ...], dict[str, Any], dict[str, HostStep], str, dict[str, Any]]


def read_hosted(
    content: bytes,
    source: str,
    parse: Callable[[dict[str, Any]], dict[str, Any]],
    read_regions: Callable[[Mapping[str, Any], dict[str, bytes]], dict[str, Any]],
    threads: int | None,
) -> HostedParts:
    """The parts of an archive. `parse` is the schema of its manifest, `read_regions` takes its records and files.

    `threads` is how many threads compiled host steps may use. Raises `RelayError` (R0641) if the bytes are no such archive.
    """
    files = programs.read_sealed(content, source)
    try:
        manifest = parse(document(files["manifest.json"]))
        regions = read_regions(manifest["regions"], files)
        schedule = schedule_of(manifest, {name: (len(region.inputs), len(region.outputs)) for name, region in regions.items()})
        report = files["report.txt"].decode("utf-8")
        host = read_host(manifest["host"], files, lambda name, body, program: saved_step(name, body, program, threads))
    except (KeyError, ValueError) as problem:
        raise not_an_artifact(source, f"it lacks {problem}" if isinstance(problem, KeyError) else f"{problem}"[:300]) from None
    return schedule, tuple(manifest["inputs"]), regions, host, report, manifest


__all__ = ["HostedArtifact", "HostedParts", "read_hosted"]
