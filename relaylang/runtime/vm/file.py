"""Programs of the VM as files: a sealed archive of the code, its tables, constants, declarations and library.

A file's digests, its version, its machine and every number of its code are checked before anything of it runs.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Function, FuncType, GlobalVar, IRModule, TensorType, Var, post_order, substitute
from relaylang.runtime.artifact import not_an_artifact, read_sealed, write_sealed
from relaylang.runtime.budget import Budget, Exhausted
from relaylang.runtime.external import Parts, part_name, written
from relaylang.runtime.features import machine_name, why_not
from relaylang.runtime.files import atomic_write
from relaylang.runtime.manifest import count, external_records, fault_kind, features, read_externals
from relaylang.runtime.params import parse_npz
from relaylang.runtime.schema import document, flag, maybe, one_of, record, row, several, shown, table, text, whole
from relaylang.runtime.text import reason
from relaylang.runtime.vm import late
from relaylang.runtime.vm.program import VERSION, Packed, Spec, VMFunction, VMProgram
from relaylang.runtime.vm.verify import verify
from relaylang.syntax import astext, parse
from relaylang.typing import check

FORMAT = "relaylang-vm"
#: Texts of up to so many characters go into the file, so that errors show their lines.
_TEXT = 1 << 22
_FUNCTION = ("entry", "end", "params", "captured", "generals", "registers")
_PACKED = ("inputs", "count", "region", "arena", "fixed", "sizes", "other")
_NUMBER = whole(-(1 << 48), 1 << 48)  # `verify` knows the ranges
_PLACE = whole(-1, 1 << 48)
_TYPE = row(text, several(_PLACE))
#: What a manifest must be.
_MANIFEST = record(
    {
        "format": one_of(FORMAT),
        "version": whole(VERSION, VERSION),
        "target": text,
        "machine": text,
        "features": features,
        "scalars": several(row(text, count)),
        "functions": several(
            record({"name": text, "span": _PLACE, "types": several(maybe(_TYPE)), **dict.fromkeys(_FUNCTION, _NUMBER)})
        ),
        "packed": several(
            record(
                {
                    **dict.fromkeys(_PACKED, _NUMBER),
                    "outputs": several(_TYPE),
                    "takes": several(_TYPE),
                    "weights": several(count),
                    "constants": several(count),
                    "why": several(text),
                    "relay": flag,
                    "fails": flag,
                    "shares": flag,
                    "sites": several(row(text, fault_kind, _PLACE)),
                    "calls": several(_PLACE),
                }
            )
        ),
        "entries": table(count),
        "constructors": several(row(text, text)),
        "specs": several(_TYPE),
        "sources": several(text),
        "places": several(row(count, count, count)),
        "parameters": table(several(text)),
        "externals": read_externals,
        "late": several(row(text, count, several(count))),
    }
)


def _records(specs: Sequence[Spec]) -> list[list[Any]]:
    """Types of tensors for the manifest."""
    return [[dtype, list(shape)] for dtype, shape in specs]


def _specs(records: Any) -> tuple[Spec, ...]:
    return tuple((dtype, tuple(shape)) for dtype, shape in records)


def packed(program: VMProgram, library: bytes, machine: str, features: Sequence[str], source: str, externals: Parts) -> bytes:
    """The file of a program. `externals` are the files of its external code."""
    sources: dict[int, int] = {}
    texts: list[SourceFile] = []
    known: dict[Span, int] = {}
    places: list[list[int]] = []

    def place(span: Span | None) -> int:
        if span is None or len(span.source.text) > _TEXT:
            return -1
        if span not in known:
            number = sources.setdefault(id(span.source), len(texts))
            if number == len(texts):
                texts.append(span.source)
            known[span] = len(places)
            places.append([number, span.start, span.end])
        return known[span]

    spans = [place(span) for span in program.spans]
    functions = [
        {
            "name": f.name,
            "span": place(f.span),
            "types": [_simple(ty) for ty in f.types],
            **{name: getattr(f, name) for name in _FUNCTION},
        }
        for f in program.functions
    ]
    kernels = [
        {
            **{name: getattr(p, name) for name in _PACKED},
            "outputs": _records(p.outputs),
            "takes": _records(p.takes),
            "weights": list(p.weights),
            "constants": list(p.constants),
            "why": list(p.why),
            "relay": module is not None,
            "fails": p.fails,
            "shares": p.shares,
            "sites": [[operator, kind, place(span)] for operator, kind, span in p.sites],
            "calls": [place(call.span) for call in _calls(module)],
        }
        for p, module in zip(program.packed, program.modules)
    ]
    constants, weights = late.stored(program)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "target": program.target,
        "machine": machine,
        "features": sorted(features),
        "scalars": program.scalars,
        "functions": functions,
        "packed": kernels,
        "entries": program.entries,
        "constructors": [[c.belong_to.name_hint, c.name_hint] for c in program.constructors],
        "specs": _records(program.specs),
        "sources": [text.name for text in texts],
        "places": places,
        "parameters": {name: [p.name_hint for p in f.params] for name, f in program.signatures.items()},
        "externals": external_records(program.externals),
        "late": late.records(program),
    }
    files = {
        "manifest.json": json.dumps(manifest).encode(),
        "library": library,
        "declarations.relay": astext(_declarations(program)).encode(),
        "code.npz": _arrays([program.code, program.offsets, np.asarray(spans, np.int64)]),
        "constants.npz": _arrays(constants),
        "weights.npz": _arrays(weights),
        "kernels.c": source.encode(),
        **written(externals),
        **{f"source{n}": text.text.encode("utf-8", "surrogatepass") for n, text in enumerate(texts)},
    }
    for n, module in enumerate(program.modules):
        if module is not None:
            files[f"kernel{n}.relay"] = astext(module).encode()
    return write_sealed(files)


def save(content: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file. Raises `RelayError` (R0001)."""
    try:
        atomic_write(path, content)
    except OSError as e:
        raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


def _simple(ty: Any) -> Any:
    """A tensor's type as JSON; other types are left out."""
    if isinstance(ty, TensorType) and all(isinstance(d, int) for d in ty.shape):
        return [ty.dtype, [int(d) for d in ty.shape]]  # type: ignore[arg-type]
    return None


def _declarations(program: VMProgram) -> IRModule:
    """The types of a program, and its functions' parameters and results. The functions call themselves."""
    functions = {}
    for name, function in program.signatures.items():
        ty = function.checked_type
        result = ty.ret_type if isinstance(ty, FuncType) else function.ret_type
        gv = GlobalVar(name)
        params = [Var(p.name_hint, p.checked_type or p.type_annotation) for p in function.params]
        functions[gv] = Function(params, Call(gv, params), result, function.type_params)
    return program.module.with_functions(functions)


#: Elements that numpy's files do not have are stored as whole numbers.
_BARE = {1: np.uint8, 2: np.uint16}


def _arrays(arrays: Sequence[np.ndarray]) -> bytes:
    out = io.BytesIO()
    plain = {}
    for n, array in enumerate(arrays):
        array = np.asarray(array)
        bare = array.dtype.kind == "V" or array.dtype.name not in np.sctypeDict
        plain[f"{n}:{array.dtype.name}"] = array.view(_BARE[array.dtype.itemsize]) if bare else array
    np.savez(out, **plain)
    return out.getvalue()


def _loaded(content: bytes, budget: Budget) -> list[np.ndarray]:
    stored = parse_npz(content, budget)
    entries = sorted(((*name.split(":"), name) for name in stored), key=lambda item: int(item[0]))
    if [int(number) for number, _, _ in entries] != list(range(len(entries))):
        raise ValueError("its arrays are not numbered")
    return [stored[name] if stored[name].dtype.name == dtype else stored[name].view(np.dtype(dtype)) for _, dtype, name in entries]


def unpacked(content: bytes, name: str) -> tuple[VMProgram, dict[str, bytes], dict[str, Any]]:
    """The program of a file, checked, its parts and its manifest. Nothing of it runs. Raises `RelayError` (R0641)."""
    files = read_sealed(content, name)
    try:
        manifest = document(files["manifest.json"])
        if manifest.get("format") != FORMAT:
            raise ValueError("it is no program of the VM")
        if manifest.get("version") != VERSION:
            version = shown(manifest.get("version"))
            raise ValueError(f"it has the version {version}, and this relaylang reads {VERSION}; compile it again")
        manifest = _MANIFEST("", manifest)
        program = _program(manifest, files, Budget(name, len(content)))
        verify(program)
    except KeyError as e:
        raise not_an_artifact(name, f"it lacks {e.args[0]}") from None
    except Exhausted:
        raise
    except RelayError as e:
        raise not_an_artifact(name, f"its declarations are wrong: {e.diagnostics[0].title}") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, EOFError, OSError, RecursionError, MemoryError) as e:
        raise not_an_artifact(name, str(e).partition("\n")[0] or type(e).__name__) from None
    return program, files, manifest


def _module(text: bytes) -> IRModule:
    module = parse(text.decode(), "<declarations>").module
    if module is None:
        raise ValueError("its declarations are no module")
    check(module)
    return module


def _kernel(number: int, item: Mapping[str, Any], files: Mapping[str, bytes], span: Callable[[int], Span | None]) -> Packed:
    """The kernel of a row of the manifest. `span` gives the places of its calls."""
    kernel = Packed(item["inputs"], _specs(item["outputs"]), item["count"], takes=_specs(item["takes"]))
    kernel.region, kernel.arena, kernel.fixed, kernel.sizes, kernel.other = (item[name] for name in _PACKED[2:])
    kernel.fails, kernel.shares = item["fails"], item["shares"]
    kernel.sites = tuple((operator, kind, span(place)) for operator, kind, place in item["sites"])
    kernel.weights, kernel.constants, kernel.why = (tuple(item[name]) for name in ("weights", "constants", "why"))
    if item["relay"]:
        kernel.module = _module(files[f"kernel{number}.relay"])
        for call, place in zip(_calls(kernel.module), item["calls"], strict=True):
            call.span = span(place)
    return kernel


def _kernels(rows: Sequence[Any], files: Mapping[str, bytes], span: Callable[[int], Span | None]) -> list[Packed]:
    """The kernels of a manifest. One that takes over from another has its Relay function."""
    kernels = [_kernel(n, row, files, span) for n, row in enumerate(rows)]
    for kernel in kernels:
        if kernel.other != -1:
            if not 0 <= kernel.other < len(kernels):
                raise ValueError(f"there is no kernel {kernel.other}")
            kernels[kernel.other].module = kernel.module
    return kernels


def _program(manifest: Mapping[str, Any], files: Mapping[str, bytes], budget: Budget) -> VMProgram:
    texts = [SourceFile(name, files[f"source{n}"].decode("utf-8", "surrogatepass")) for n, name in enumerate(manifest["sources"])]
    places = [Span(texts[n], int(first), int(last)) for n, first, last in manifest["places"]]

    def span(number: int) -> Span | None:
        return places[number] if number >= 0 else None

    declared = _module(files["declarations.relay"])
    code, offsets, spans = _loaded(files["code.npz"], budget)
    if code.ndim != 1 or code.dtype != np.int32 or offsets.shape != spans.shape or offsets.dtype != np.int64:
        raise ValueError("its code is no list of words")
    functions = [
        VMFunction(
            f["name"],
            **{name: f[name] for name in _FUNCTION},
            span=span(f["span"]),
            types=tuple(None if ty is None else TensorType(ty[1], ty[0]) for ty in f["types"]),
        )
        for f in manifest["functions"]
    ]
    kernels = _kernels(manifest["packed"], files, span)
    entries = manifest["entries"]
    for name, number in entries.items():
        if not 0 <= number < len(functions):
            raise ValueError(f"there is no function {number}")
        declared[name] = _named(declared[name], manifest["parameters"][name])
        functions[number].types = tuple([p.type_annotation for p in declared[name].params])
    check(declared)
    externals = manifest["externals"]
    for n, external in enumerate(externals):
        files[part_name(n, external.kind)]
    program = VMProgram(
        code,
        functions,
        _loaded(files["constants.npz"], budget),
        [declared.get_constructor(ty, name) for ty, name in manifest["constructors"]],
        list(_specs(manifest["specs"])),
        kernels,
        _loaded(files["weights.npz"], budget),
        manifest["scalars"],
        entries,
        {name: declared[name] for name in entries},
        declared,
        offsets,
        [span(int(n)) for n in spans],
        manifest["target"],
        externals,
    )
    late.mark(program, manifest["late"])
    return program


def _calls(module: IRModule | None) -> list[Call]:
    """The calls of a kernel that the host evaluates. They keep their places in the program."""
    return [] if module is None else [node for node in post_order(module["main"].body) if isinstance(node, Call)]


def _named(function: Function, names: Sequence[str]) -> Function:
    """A declaration with the names of its parameters: a text gives each name once."""
    if len(names) != len(function.params):
        raise ValueError("a function has other parameters than names")
    params = [Var(name, p.checked_type) for name, p in zip(names, function.params)]
    body = substitute(function.body, dict(zip(function.params, params)))
    return Function(params, body, function.ret_type, function.type_params)


def check_machine(manifest: Mapping[str, Any]) -> None:
    """Check that a program's library can run in this process. Raises `RelayError` (R0641)."""
    machine = str(manifest.get("machine", ""))
    why = why_not(machine, frozenset(manifest.get("features", ())))
    if why is not None:
        here = machine_name(machine)
        raise RelayError(error("R0641", why, notes=[f"load it on {here}, or compile it for this machine"] if here else []))
