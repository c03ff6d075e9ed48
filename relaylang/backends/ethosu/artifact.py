"""A program compiled for the Ethos-U: what is written to disk, and how it runs on a machine that has no NPU.

The `.tar` holds

    manifest.json               the steps in order, tensors, where the driver puts them, cycles and memory
    report.txt                  the same for people
    regions/NAME.npu.bin        a region's command stream, with the driver's header (COP1)
    regions/NAME.weights.bin    its packed weights and scales, the driver's read-only memory
    regions/NAME.tosa           the region as TOSA 1.0, which the reference model runs
    host/NAME.relay             what the host computes between the regions, as Relay text with its constants
"""
from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.backends.ethosu.reference import run_tosa
from relaylang.byoc.schedule import Schedule, Step
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Function, IRModule, TensorType
from relaylang.runtime.files import atomic_write

FORMAT = "relaylang-ethos-u"
VERSION = 1


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape and element type of an input or output, as Relay knows it."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def check(self, value: Any) -> np.ndarray:
        """The value as this tensor, or a diagnostic."""
        array = np.asarray(value)
        if array.shape != self.shape or array.dtype.name != self.dtype:
            raise RelayError(
                error(
                    "R0615",
                    f"input {self.name} is {array.dtype.name}{list(array.shape)}, "
                    f"not {self.dtype}{list(self.shape)}",
                )
            )
        return array


@dataclass(frozen=True)
class RegionCode:
    """A compiled region: its TOSA file, and the command stream and weights for the driver."""

    tosa: bytes = field(repr=False)
    command_stream: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    details: dict[str, Any] = field(repr=False)

    def run(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The region on the TOSA reference model. uint8 tensors travel as the bytes that they are."""
        stored = [np.ascontiguousarray(spec.check(v)) for spec, v in zip(self.inputs, values)]
        raw = run_tosa(self.tosa, [v.view(np.int8) if v.dtype == np.uint8 else v for v in stored])
        return [
            (out.view(np.uint8) if spec.dtype == "uint8" else out).reshape(spec.shape)
            for spec, out in zip(self.outputs, raw)
        ]


#: Runs a host step: the step's name and its arguments to its outputs.
HostRunner = Callable[[str, list[Any]], list[Any]]


@dataclass
class EthosUArtifact:
    """A compiled program. `run` gives what the interpreter gives, to the integer."""

    schedule: Schedule
    inputs: tuple[TensorSpec, ...]
    regions: dict[str, RegionCode]
    host: dict[str, IRModule]
    host_text: dict[str, str]
    run_host: HostRunner = field(repr=False)
    text: str = field(repr=False)
    details: dict[str, Any] = field(repr=False)

    def report(self) -> str:
        """Cycles and memory of each region, and what stays on the host and why."""
        return self.text

    def run(self, *args: Any, **named: Any) -> Any:
        """The entry's value; regions run on the TOSA reference model, what is between them on the host.

        Arguments come in order or by name. Returns an array, or a tuple of them. Raises `RelayError`.
        """
        values: dict[str, Any] = {}
        for spec, value in zip(self.inputs, self._arguments(args, named)):
            values[spec.name] = spec.check(value)
        for step in self.schedule.steps:
            arguments = [values[name] for name in step.inputs]
            if step.is_region:
                results: list[Any] = list(self.regions[step.name].run(arguments))
            else:
                results = self.run_host(step.name, arguments)
            values.update(zip(step.outputs, results))
        return _pick(self.schedule.result, values)

    __call__ = run

    def _arguments(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        given = dict(zip([spec.name for spec in self.inputs], args))
        given.update(named)
        unknown = [name for name in given if name not in {spec.name for spec in self.inputs}]
        missing = [spec.name for spec in self.inputs if spec.name not in given]
        if unknown or missing or len(args) > len(self.inputs):
            what = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown) or len(args)}"
            raise RelayError(
                error(
                    "R0615",
                    f"the program's inputs do not match ({what})",
                    notes=[f"its inputs: {', '.join(s.name for s in self.inputs) or 'none'}"],
                )
            )
        return [given[spec.name] for spec in self.inputs]

    def files(self) -> dict[str, bytes]:
        """Every file of the archive by its name."""
        out: dict[str, bytes] = {}
        for name, code in self.regions.items():
            out[f"regions/{name}.npu.bin"] = code.command_stream
            out[f"regions/{name}.weights.bin"] = code.weights
            out[f"regions/{name}.tosa"] = code.tosa
        for name, text in self.host_text.items():
            out[f"host/{name}.relay"] = text.encode("utf-8")
        manifest = json.dumps(self.manifest(), indent=1) + "\n"
        return {"manifest.json": manifest.encode("utf-8"), "report.txt": self.text.encode("utf-8"), **out}

    def manifest(self) -> dict[str, Any]:
        """What the archive's `manifest.json` says."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **self.details,
            "inputs": [_spec_json(s) for s in self.inputs],
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
            "regions": {
                name: {
                    "command_stream": f"regions/{name}.npu.bin",
                    "weights": f"regions/{name}.weights.bin",
                    "tosa": f"regions/{name}.tosa",
                    "inputs": [_spec_json(s) for s in code.inputs],
                    "outputs": [_spec_json(s) for s in code.outputs],
                    **code.details,
                }
                for name, code in self.regions.items()
            },
            "host": {name: f"host/{name}.relay" for name in self.host_text},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive, whole or not at all. Equal programs give equal bytes. Raises `OSError`."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data in self.files().items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                info.mode = 0o644
                tar.addfile(info, io.BytesIO(data))
        atomic_write(path, buffer.getvalue())


def load(path: str | os.PathLike[str], make_runner: Callable[[dict[str, str]], HostRunner]) -> EthosUArtifact:
    """Read an archive. `make_runner` gets the host steps' Relay texts and gives what runs them.

    Raises `RelayError` for a file that is no such archive, `OSError` where it cannot be read.
    """
    try:
        with tarfile.open(path) as tar:
            files = {m.name: f.read() for m in tar.getmembers() if (f := tar.extractfile(m)) is not None}
        manifest = json.loads(files["manifest.json"])
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise KeyError(f"{manifest['format']} version {manifest['version']}")
        regions = {name: _region(data, files) for name, data in manifest["regions"].items()}
        host_text = {name: files[at].decode("utf-8") for name, at in manifest["host"].items()}
        no_function = Function((), None)  # type: ignore[arg-type]
        steps = tuple(
            Step(s["name"], no_function, tuple(s["inputs"]), tuple(s["outputs"]), s["kind"] == "region")
            for s in manifest["steps"]
        )
        inputs = tuple(_spec(s) for s in manifest["inputs"])
        text = files["report.txt"].decode("utf-8")
        result = manifest["result"]
    except (tarfile.TarError, KeyError, TypeError, ValueError) as problem:
        raise RelayError(
            error("R0616", f"{os.fspath(path)} is no archive of a program for the Ethos-U", notes=[str(problem)[:200]])
        ) from None
    schedule = Schedule(tuple(s.name for s in inputs), steps, result)
    known = {"format", "version", "inputs", "result", "steps", "regions", "host"}
    details = {k: v for k, v in manifest.items() if k not in known}
    return EthosUArtifact(schedule, inputs, regions, {}, host_text, make_runner(host_text), text, details)


def _region(data: dict[str, Any], files: dict[str, bytes]) -> RegionCode:
    own = {"command_stream", "weights", "tosa", "inputs", "outputs"}
    return RegionCode(
        tosa=files[data["tosa"]],
        command_stream=files[data["command_stream"]],
        weights=files[data["weights"]],
        inputs=tuple(_spec(s) for s in data["inputs"]),
        outputs=tuple(_spec(s) for s in data["outputs"]),
        details={k: v for k, v in data.items() if k not in own},
    )


def spec_of(name: str, ty: Any) -> TensorSpec:
    """A tensor type with static shape as a spec."""
    if not isinstance(ty, TensorType) or not all(isinstance(d, int) for d in ty.shape):
        raise RelayError(
            error("R0615", f"input {name} is `{ty!r}`; a program for the Ethos-U takes tensors of static shape")
        )
    return TensorSpec(name, tuple(int(d) for d in ty.shape), ty.dtype)  # type: ignore[arg-type]


def _spec(data: dict[str, Any]) -> TensorSpec:
    return TensorSpec(data["name"], tuple(data["shape"]), data["dtype"])


def _spec_json(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype}


def _pick(result: Any, values: dict[str, Any]) -> Any:
    """The result's value; its nesting is that of tuples that the program writes, a few levels."""
    if isinstance(result, str):
        return values[result]
    return tuple(_pick(part, values) for part in result)
