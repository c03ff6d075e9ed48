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

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.ethosu.reference import run_tosa
from relaylang.backends.ethosu.simulator.machine import Observer
from relaylang.backends.ethosu.simulator.region import run_stream
from relaylang.backends.ethosu.stream import Command
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Function, TensorType
from relaylang.partition.schedule import Schedule, Step
from relaylang.runtime import artifact as programs
from relaylang.runtime.artifact import Artifact, Capability, TensorSpec, bind_arguments, not_an_artifact, read_sealed, write_sealed
from relaylang.runtime.files import atomic_write
from relaylang.runtime.manifest import count, tensor_spec
from relaylang.runtime.schema import (
    Parser,
    document,
    maybe,
    one_of,
    record,
    row,
    several,
    shown,
    table,
    text,
    whole,
    wrong,
)
from relaylang.runtime.text import reason

FORMAT = "relaylang-ethos-u"
VERSION = 2

#: An input or output: its name, shape and element type.
Named = tuple[str, TensorSpec]


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


def _nested(place: str, value: Any) -> Any:
    """A result: the name of a value, or a list of results, some levels deep."""
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, list) and depth < 100:
            stack.extend((part, depth + 1) for part in item)
        elif not isinstance(item, str):
            raise wrong(place, "a value's name, or a list of such", item)
    return value


def _tensor(place: str, value: Any) -> Named:
    found = _NAMED(place, value)
    return found["name"], TensorSpec(*tensor_spec(place, [found["shape"], found["dtype"]]))


_NAMED = record({"name": text, "shape": several(count), "dtype": text})
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
        "inputs": several(_tensor),
        "outputs": several(_tensor),
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
        "inputs": several(_tensor),
        "result": _nested,
        "steps": several(record({"name": text, "kind": one_of("region", "host"), "inputs": several(text), "outputs": several(text)})),
        "regions": REGIONS,
        "host": table(record({"text": text, "program": maybe(text)})),
    },
    {
        "target": record({}, dict.fromkeys(("accelerator", "system_config", "memory_mode", "optimise"), text)),
        "operations": table(count),
        "stays_on_host": several(record({"why": text}, {"at": text})),
    },
)

#: A host step that can be run: its arguments, in order, to its outputs.
HostFunction = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class HostStep:
    """A step of the host between regions: as text, as a saved program if compiled, and ready to run."""

    text: str = field(repr=False)
    program: bytes | None = field(repr=False)
    run: HostFunction = field(repr=False)


@dataclass
class EthosUArtifact(Artifact):
    """A compiled program. `run` gives what the interpreter gives, to the integer; `executor` says who computes regions."""

    schedule: Schedule
    inputs: tuple[Named, ...]
    regions: dict[str, RegionCode]
    host: dict[str, HostStep]
    text: str = field(repr=False)
    details: dict[str, Any] = field(repr=False)
    executor: str = "tosa"
    #: Called by the simulator for each tensor that a region's stream stores, with the region's name.
    observer: Callable[[str, Command, np.ndarray], None] | None = field(default=None, repr=False)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", "simulate", "observe"])

    @property
    def tensors(self) -> list[tuple[str, TensorSpec, tuple[int, ...]]]:
        return [(name, spec, ()) for name, spec in self.inputs]

    def report(self) -> str:
        """Cycles and memory of each region, and what stays on the host and why."""
        return self.text

    def run(self, *args: Any, **named: Any) -> Any:
        """The entry's value. Regions run as `executor` says, the steps between them on the host.

        Arguments come in order or by name. Returns an array, or a tuple of them. Raises `RelayError`.
        """
        values: dict[str, Any] = {}
        for (name, spec), value in zip(self.inputs, bind_arguments(self.input_names, args, named)):
            values[name] = spec.check(name, value)
        for step in self.schedule.steps:
            arguments = [values[name] for name in step.inputs]
            if step.is_region:
                observer = partial(self.observer, step.name) if self.observer is not None else None
                results: list[Any] = list(self.regions[step.name].run(arguments, self.executor, observer))
            else:
                results = self.host[step.name].run(arguments)
            if len(results) != len(step.outputs):
                raise not_an_artifact("this program", f"the step {step.name} gives {len(results)} of {len(step.outputs)} values")
            values.update(zip(step.outputs, results))
        return _pick(self.schedule.result, values)

    __call__ = run

    def files(self) -> dict[str, bytes]:
        """Every file of the archive by its name."""
        out = region_files(self.regions)
        for name, step in self.host.items():
            out[f"host/{name}.relay"] = step.text.encode("utf-8")
            if step.program is not None:
                out[f"host/{name}.tar"] = step.program
        manifest = json.dumps(self.manifest(), indent=1) + "\n"
        return {"manifest.json": manifest.encode("utf-8"), "report.txt": self.text.encode("utf-8"), **out}

    def manifest(self) -> dict[str, Any]:
        """The content of the archive's `manifest.json`."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **self.details,
            "inputs": _records(self.inputs),
            "result": self.schedule.result,
            "steps": [
                {
                    "name": s.name,
                    "kind": "region" if s.is_region else "host",
                    "inputs": list(s.inputs),
                    "outputs": list(s.outputs),
                }
                for s in self.schedule.steps
            ],
            "regions": region_records(self.regions),
            "host": {
                name: {"text": f"host/{name}.relay", "program": f"host/{name}.tar" if step.program else None}
                for name, step in self.host.items()
            },
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive, whole or not at all. Equal programs give equal bytes. Raises `RelayError` (R0001)."""
        try:
            atomic_write(path, write_sealed(self.files()))
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return programs.loads, (write_sealed(self.files()), None, "what was pickled")


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
            "inputs": _records(code.inputs),
            "outputs": _records(code.outputs),
            **code.details,
        }
        for name, code in regions.items()
    }


def loads(content: bytes, make_host: Callable[[str, str, bytes | None], HostFunction], source: str) -> EthosUArtifact:
    """Read an archive. `make_host` gets a host step's name, text and saved program, and makes it ready to run.

    `source` is what messages call the archive. Raises `RelayError` (R0641) if the bytes are no archive of ours.
    """
    files = read_sealed(content, source)
    try:
        written = document(files["manifest.json"])
        if written.get("format") != FORMAT or written.get("version") != VERSION:
            raise ValueError(f"format {shown(written.get('format'))} {shown(written.get('version'))}")
        manifest = _MANIFEST("", written)
        regions = read_regions(manifest["regions"], files)
        at = {
            name: (files[entry["text"]], None if entry["program"] is None else files[entry["program"]])
            for name, entry in manifest["host"].items()
        }
        steps = tuple(_step(step, regions, at) for step in manifest["steps"])
        inputs = tuple(manifest["inputs"])
        report = files["report.txt"].decode("utf-8")
        result = manifest["result"]
        _order(inputs, steps, result)
    except (KeyError, ValueError) as problem:
        raise not_an_artifact(source, f"it lacks {problem}" if isinstance(problem, KeyError) else f"{problem}"[:300]) from None
    host = {}
    for name, (encoded, program) in at.items():
        try:
            body = encoded.decode("utf-8")
            host[name] = HostStep(body, program, make_host(name, body, program))
        except ValueError as problem:
            raise not_an_artifact(source, f"{problem}"[:200]) from None
    known = {"format", "version", "inputs", "result", "steps", "regions", "host"}
    details = {k: v for k, v in manifest.items() if k not in known}
    return EthosUArtifact(Schedule(tuple(name for name, _ in inputs), steps, result), inputs, regions, host, report, details)


def _step(step: dict[str, Any], regions: dict[str, RegionCode], host: dict[str, Any]) -> Step:
    kind, name = step["kind"], step["name"]
    if name not in (regions if kind == "region" else host):
        raise ValueError(f"there is no {kind} {name}")
    inputs, outputs = tuple(step["inputs"]), tuple(step["outputs"])
    if kind == "region" and (len(inputs), len(outputs)) != (len(regions[name].inputs), len(regions[name].outputs)):
        raise ValueError(f"a step gives the region {name} other inputs or outputs than it has")
    nothing = Function((), None)  # type: ignore[arg-type]
    return Step(name, nothing, inputs, outputs, kind == "region")


def _order(inputs: tuple[Named, ...], steps: tuple[Step, ...], result: Any) -> None:
    """Each value is there before it is needed. Raises `ValueError`."""
    there = {name for name, _ in inputs}
    if len(there) != len(inputs):
        raise ValueError("an input is named twice")
    for step in steps:
        for name in step.inputs:
            if name not in there:
                raise ValueError(f"the step {step.name} needs {name}, which is not there")
        there.update(step.outputs)
    stack = [result]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif item not in there:
            raise ValueError(f"`result` must name values that are there, not {shown(item)}")


def read_regions(records: Mapping[str, Any], files: dict[str, bytes]) -> dict[str, RegionCode]:
    """The regions of records that `REGIONS` has taken, and of `region_files`. Raises `KeyError` for a file that is missing."""
    return {name: _region(data, files) for name, data in records.items()}


def _region(data: dict[str, Any], files: dict[str, bytes]) -> RegionCode:
    stream, weights, tosa = (files[data[name]] for name in ("command_stream", "weights", "tosa"))
    details: dict[str, Any] = {name: data[name] for name in ("driver", "estimate", "places") if name in data}
    return RegionCode(tosa, stream, weights, tuple(data["inputs"]), tuple(data["outputs"]), details)


def spec_of(name: str, ty: Any) -> Named:
    """A name and its static tensor type."""
    if not isinstance(ty, TensorType) or not all(isinstance(d, int) for d in ty.shape):
        raise RelayError(error("R0612", f"the input {name} is `{ty!r}`; a program for the Ethos-U takes tensors of static shape"))
    return name, TensorSpec.of(ty)


def _records(tensors: tuple[Named, ...]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": list(spec.shape), "dtype": spec.dtype} for name, spec in tensors]


def _pick(result: Any, values: dict[str, Any]) -> Any:
    """The result's value; its nesting is that of tuples that the program writes, a few levels."""
    if isinstance(result, str):
        return values[result]
    return tuple(_pick(part, values) for part in result)
