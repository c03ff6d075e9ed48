"""Archives in TVM's Model Library Format, read again; see `library_format`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from relaylang.backends.bare_metal.host import host_library
from relaylang.backends.bare_metal.library_format import FORMAT, TVM_VERSION, VERSION
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu.artifact import REGIONS, read_regions
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import not_an_artifact, read_sealed
from relaylang.runtime.manifest import count, read_tensors
from relaylang.runtime.params import parse_params
from relaylang.runtime.schema import Parser, document, one_of, record, several, shown, table, text, whole

#: A list or an object that another reader checks.
_RAW: Parser = lambda place, value: value  # noqa: E731
#: What `manifest.json` must be.
_MANIFEST = record(
    {
        "format": one_of(FORMAT),
        "version": whole(VERSION, VERSION),
        "modules": table(
            record(
                {
                    "name": text,
                    "files": table(text),
                    "inputs": _RAW,
                    "outputs": _RAW,
                    "structure": _RAW,
                    "fields": several(several(text)),
                    "workspace": count,
                    "regions": REGIONS,
                }
            )
        ),
    }
)
_TENSORS = table(record({"size": count, "dtype": text}))
_WORKSPACE = {"device": count, "workspace_size_bytes": count}
#: What `metadata.json` must be.
_METADATA = record(
    {
        "version": whole(TVM_VERSION, TVM_VERSION),
        "modules": table(
            record(
                {
                    "model_name": text,
                    "export_datetime": text,
                    "target": several(text),
                    "executors": several(text),
                    "style": text,
                    "memory": record(
                        {
                            "functions": record(
                                {
                                    "main": several(
                                        record(
                                            {
                                                **_WORKSPACE,
                                                "constants_size_bytes": count,
                                                "io_size_bytes": count,
                                                "inputs": _TENSORS,
                                                "outputs": _TENSORS,
                                            },
                                            {"fast_memory_size_bytes": count},
                                        )
                                    ),
                                    "operator_functions": several(
                                        record({"function_name": text, "workspace": several(record(_WORKSPACE))})
                                    ),
                                }
                            )
                        }
                    ),
                }
            )
        ),
    }
)


def loads(content: bytes, threads: int | None = None, source: str = "what was given") -> MicroProgram:
    """The program of an archive with one module. It is compiled for this machine at its first run.

    Raises `RelayError` (R0641) where the bytes are no such archive, are damaged, or are of another version.
    """
    files = read_sealed(content, source)
    try:
        manifest, metadata = document(files["manifest.json"]), document(files["metadata.json"], "its metadata.json")
        if (manifest.get("format"), manifest.get("version"), metadata.get("version")) != (FORMAT, VERSION, TVM_VERSION):
            versions = f"{shown(manifest.get('version'))} and {shown(metadata.get('version'))}"
            raise ValueError(f"its versions are {versions}, not {VERSION} and {TVM_VERSION}")
        manifest, metadata = _MANIFEST("", manifest), _METADATA("", metadata)
        if len(manifest["modules"]) != 1:
            raise ValueError(f"it holds {len(manifest['modules'])} modules; relay runs archives of one")
        ((module, record),) = manifest["modules"].items()
        return _program(module, record, metadata["modules"][module], files)
    except RelayError:
        raise
    except (KeyError, ValueError) as problem:
        said = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
        raise not_an_artifact(source, said[:300]) from None


def _program(module: str, record: Mapping[str, Any], metadata: Mapping[str, Any], files: dict[str, bytes]) -> MicroProgram:
    name = record["name"]
    inputs, outputs, structure = read_tensors(record)
    if [len(names) for names in record["fields"]] != [len(inputs), len(outputs)]:
        raise ValueError("its manifest's `fields` must name all inputs and outputs")
    own = {kind: files[place] for kind, place in record["files"].items()}
    source, header = (own.pop(f"{name}.{suffix}").decode() for suffix in ("c", "h"))
    regions = read_regions(record["regions"], files)
    if len(metadata["memory"]["functions"]["main"]) != 1:
        raise ValueError("metadata.json must describe one `main`")
    main = metadata["memory"]["functions"]["main"][0]
    if main["workspace_size_bytes"] != record["workspace"]:
        raise ValueError("metadata.json and manifest.json differ")
    symbols = [(symbol, "ethos-u") for symbol in regions]
    parts = (
        name,
        source,
        header,
        b"",
        [(relay, path, *spec) for relay, spec, path in inputs],
        outputs,
        structure,
        record["workspace"],
        partial(host_library, Target("c"), ""),
        own,
        symbols,
        main["constants_size_bytes"],
        1,
    )
    described = metadata["memory"]["functions"]["operator_functions"]
    if not all(len(f["workspace"]) == 1 for f in described):
        raise ValueError("metadata.json must give each function one `workspace`")
    operators = [(f["function_name"], f["workspace"][0]["workspace_size_bytes"]) for f in described]
    return MicroProgram(
        parts,
        module,
        files[f"src/{module}.relay"].decode(),
        parse_params(files[f"parameters/{module}.params"]),
        metadata["target"],
        operators,
        regions,
        record["fields"],
    )


__all__ = ["loads"]
