"""Archives in TVM's Model Library Format, read again; see `library_format`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from relaylang.backends.bare_metal.host import host_library
from relaylang.backends.bare_metal.library_format import FORMAT, TVM_VERSION, VERSION
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu.artifact import read_regions
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import not_an_artifact, read_sealed
from relaylang.runtime.manifest import read_tensors
from relaylang.runtime.params import parse_params


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> MicroProgram:
    """The program of an archive with one module. It is compiled for this machine at its first run.

    Raises `RelayError` (R0641) where the bytes are no such archive, are damaged, or are of another version.
    """
    found = read_sealed(content, source)
    try:
        manifest, metadata = (json.loads(found[name]) for name in ("manifest.json", "metadata.json"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION or metadata["version"] != TVM_VERSION:
            raise ValueError(f"its versions are {manifest['version']} and {metadata['version']}, not {VERSION} and {TVM_VERSION}")
        if len(manifest["modules"]) != 1:
            raise ValueError(f"it holds {len(manifest['modules'])} modules; relay runs archives of one")
        ((module, record),) = manifest["modules"].items()
        return _program(module, record, metadata["modules"][module], found)
    except RelayError:
        raise
    except (KeyError, ValueError) as problem:
        said = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
        raise not_an_artifact(source, said[:200]) from None
    except (TypeError, AttributeError, RecursionError):
        raise not_an_artifact(source, "its manifest is wrong") from None


def _program(module: str, record: Mapping[str, Any], metadata: Mapping[str, Any], found: dict[str, bytes]) -> MicroProgram:
    name = record["name"]
    inputs, outputs, structure = read_tensors(record)
    if [len(names) for names in record["fields"]] != [len(inputs), len(outputs)]:
        raise ValueError("its manifest's `fields` must name all inputs and outputs")
    own = {kind: found[place] for kind, place in record["files"].items()}
    source, header = (own.pop(f"{name}.{suffix}").decode() for suffix in ("c", "h"))
    regions = read_regions(record["regions"], found)
    (main,) = metadata["memory"]["functions"]["main"]
    if main["workspace_size_bytes"] != record["workspace"]:
        raise ValueError("metadata.json and manifest.json differ")
    symbols = [(symbol, "ethos-u") for symbol in regions]
    parts = (name, source, header, b"", [(relay, path, *spec) for relay, spec, path in inputs], outputs, structure,
             record["workspace"], partial(host_library, Target("c"), ""), own, symbols,
             main["constants_size_bytes"], 1)  # fmt: skip
    described = metadata["memory"]["functions"]["operator_functions"]
    operators = [(f["function_name"], f["workspace"][0]["workspace_size_bytes"]) for f in described]
    return MicroProgram(parts, module, found[f"src/{module}.relay"].decode(), parse_params(found[f"parameters/{module}.params"]),
                        metadata["target"], operators, regions, record["fields"])  # fmt: skip


__all__ = ["loads"]
