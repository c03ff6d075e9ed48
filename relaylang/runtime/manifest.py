"""The manifest of a program for the CPU: inputs, outputs, parameters, memory.

The file of `save` has it for all readers, and the library has it, too (`relay_about`). Both follow one schema and must be
equal, because a call of the library needs arrays of the exact sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from relaylang.diagnostics.faults import FAULTS
from relaylang.runtime.failures import STATUS, Place
from relaylang.runtime.features import NAMES
from relaylang.runtime.schema import document, flag, items, maybe, one_of, shown, text, whole, wrong

FORMAT = "relaylang-cpu"
VERSION = 8
#: The element types of tensors that compiled code takes and gives, and their bytes.
ELEMENTS: dict[str, int] = {
    "float32": 4,
    "float64": 8,
    "float16": 2,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
    "bfloat16": 2,
}
#: Instruction sets by the names that a manifest has for them.
ISAS = ("avx512", "avx2", "neon", "generic")
#: numpy 1.26 knows no more dimensions.
_MAX_RANK = 32
#: No machine addresses more bytes.
_MAX_BYTES = 1 << 48
_MAX_THREADS = 1024
#: The last line that a place names.
_MAX_LINES = 1 << 24
#: The most multiply-accumulates of a kernel.
_MAX_MACS = 1 << 62
#: Tuples in tuples: a deeper nesting would come from nobody's program.
_MAX_DEPTH = 200

#: A tensor's shape and element type.
Spec = tuple[tuple[int, ...], str]


class Step(NamedTuple):
    """An instruction of a run: its operators, the type of its result, and its place in the program.

    `line` is the program's line there. `macs` are its multiply-accumulates, on elements of `dtype`. `weights` are the
    bytes of the parameters that it reads, `data` those of other tensors, results included. `others` are the places of the
    calls that it also computes.
    """

    operators: str
    type: str
    place: str
    line: str
    dtype: str
    macs: int
    weights: int
    data: int
    others: tuple[str, ...] = ()


#: Kinds of external code: in the library (C text, object code), or Python's (bytes for a loader, a function).
KINDS = ("c", "object", "data", "python")


class External(NamedTuple):
    """Code of another compiler: whose, its symbol, one of `KINDS`, its tensors, and the region's place in the program."""

    compiler: str
    symbol: str
    kind: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    place: str
    line: str


@dataclass(frozen=True)
class Manifest:
    """The fields of a manifest.

    `inputs` has each tensor's parameter, type, and position inside a tuple. `structure` is the result: the number of an
    output, or a list of structures. `arena` and `fixed` are the bytes of working memory and of the memory of
    `relay_prepare`. `live` is the most of the arena that is in use at once. `threads` is the limit of threads: 1 for code
    without threads, None for no limit. `machine` and `features` are the processor, the system and the processor's features
    that the library needs (`relaylang.runtime.features`). `aligned` has the numbers of parameters that run faster where they
    begin at a multiple of 64. `steps` are the instructions of a run, for a library that keeps their times.
    `externals` is the code of other compilers, in the order of the library's table of calls. `fails` says whether a run may
    fail without these. The arena's last `STATUS` bytes say how. `in_place` has the numbers of inputs and outputs that may be
    the same memory: a run that writes such an output needs nothing of the input afterwards. `sites` are the calls whose
    kernels may fail.
    """

    entry: str
    inputs: tuple[tuple[str, Spec, tuple[int, ...]], ...]
    params: tuple[tuple[str, Spec], ...]
    outputs: tuple[Spec, ...]
    structure: Any
    arena: int
    fixed: int
    live: int
    isa: str
    threads: int | None
    machine: str = ""
    features: frozenset[str] = frozenset()
    aligned: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    externals: tuple[External, ...] = ()
    fails: bool = False
    in_place: tuple[tuple[int, int], ...] = ()
    sites: tuple[Place, ...] = ()

    @property
    def may_fail(self) -> bool:
        """Whether a run says in the arena how it failed."""
        return bool(self.externals or self.sites) or self.fails

    def record(self) -> dict[str, Any]:
        """The manifest as JSON has it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "entry": self.entry,
            "inputs": [[name, _record(spec), list(path)] for name, spec, path in self.inputs],
            "params": [[name, _record(spec)] for name, spec in self.params],
            "outputs": [_record(spec) for spec in self.outputs],
            "structure": self.structure,
            "arena": self.arena,
            "fixed": self.fixed,
            "live": self.live,
            "isa": self.isa,
            "threads": self.threads,
            "machine": self.machine,
            "features": sorted(self.features),
            "aligned": list(self.aligned),
            "steps": [list(step) for step in self.steps],
            "externals": external_records(self.externals),
            "fails": self.fails,
            "in_place": [list(pair) for pair in self.in_place],
            "sites": [list(place) for place in self.sites],
        }

    def text(self) -> str:
        """The manifest as JSON in ASCII, the same for the same contents."""
        return json.dumps(self.record(), separators=(",", ":"))


def external_records(externals: Sequence[External]) -> list[Any]:
    """The code of other compilers as JSON has it."""
    return [[*e[:3], [_record(s) for s in e.inputs], [_record(s) for s in e.outputs], *e[5:]] for e in externals]


def _record(spec: Spec) -> list[Any]:
    return [list(spec[0]), spec[1]]


def read_text(content: str | bytes) -> Manifest:
    """The manifest of a JSON text. Raises `ValueError` with the reason for a wrong text."""
    return read(document(content))


def read(data: Any) -> Manifest:
    """The manifest that a record is, every field checked. Raises `ValueError` that names the field and what it must be."""
    if not isinstance(data, Mapping):
        raise wrong("", "an object", data)
    if data.get("format") != FORMAT:
        raise wrong("format", json.dumps(FORMAT), data.get("format"))
    version = data.get("version")
    if version != VERSION or isinstance(version, bool):
        older = isinstance(version, int) and 0 < version < VERSION
        raise ValueError("an earlier relaylang made it; compile it again" if older else f"its version is {shown(version)}")
    unknown = sorted(set(map(str, data)) - _FIELDS.keys() - {"format", "version"})
    if unknown:
        raise ValueError(f"its manifest has an unknown field, {shown(unknown[0])}")
    missing = [name for name in _FIELDS if name not in data]
    if missing:
        raise ValueError(f"its manifest has no field `{missing[0]}`")
    manifest = Manifest(**{name: parse(name, data[name]) for name, parse in _FIELDS.items()})
    _agree(manifest)
    return manifest


def _agree(manifest: Manifest) -> None:
    """What several fields say together."""
    names = [name for name, _ in manifest.params]
    if len(set(names)) != len(names):
        raise ValueError("its manifest names a parameter twice in `params`")
    if manifest.aligned and manifest.aligned[-1] >= len(names):
        raise ValueError("its manifest's `aligned` must be numbers of `params`")
    if manifest.may_fail and manifest.arena < STATUS:
        raise ValueError(f"its manifest's `arena` must be {STATUS} or more")
    _agree_tensors(manifest.inputs, manifest.outputs, manifest.structure)
    specs = dict(enumerate(manifest.outputs))
    if any(number >= len(manifest.inputs) or specs.get(output) != manifest.inputs[number][1] for number, output in manifest.in_place):
        raise ValueError("its manifest's `in_place` must be pairs of an input and an output of the same type")


def _agree_tensors(inputs: Sequence[Any], outputs: Sequence[Spec], structure: Any) -> None:
    paths = [(name, path) for name, _, path in inputs]
    if len(set(paths)) != len(paths):
        raise ValueError("its manifest names an input twice in `inputs`")
    for name, path in paths:
        if any((name, path[:n]) in paths for n in range(len(path))):
            raise ValueError(f"its manifest says of the input {shown(name)} that it is a tensor and a tuple")
    numbers: list[int] = []
    stack = [structure]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            numbers.append(item)
    if numbers != list(range(len(outputs))):
        raise ValueError("its manifest's `structure` must name each of the `outputs` once, in order")


#: The tensors of a program: its inputs as in a manifest, its outputs, and how its result nests them.
Tensors = tuple[tuple[tuple[str, Spec, tuple[int, ...]], ...], tuple[Spec, ...], Any]


def read_tensors(record: Mapping[str, Any]) -> Tensors:
    """The tensors of a manifest's `inputs`, `outputs` and `structure`. Raises `ValueError`, and `KeyError` for what it lacks."""
    inputs, outputs = _inputs("inputs", record["inputs"]), _outputs("outputs", record["outputs"])
    structure = _structure("structure", record["structure"])
    _agree_tensors(inputs, outputs, structure)
    return inputs, outputs, structure


def differences(found: Manifest, own: Manifest) -> list[str]:
    """The fields in which two manifests differ, each with both values."""
    a, b = found.record(), own.record()
    return [f"`{name}` is {shown(a[name])} in the manifest and {shown(b[name])} in the library" for name in a if a[name] != b[name]]


#: A count of bytes, or an extent of a tensor.
count = whole(0, _MAX_BYTES)
_macs = whole(0, _MAX_MACS)
#: A kind of a fault.
fault_kind = one_of(*FAULTS)


def features(place: str, value: Any) -> frozenset[str]:
    names = [text(f"{place}[{n}]", item) for n, item in enumerate(items(place, value))]
    unknown = [name for name in names if name not in NAMES]
    if unknown or names != sorted(set(names)):
        raise wrong(place, "a sorted list of processor features that are known here", unknown or names)
    return frozenset(names)


def tensor_spec(place: str, value: Any) -> Spec:
    """A tensor's shape and element type from a record of them. Raises `ValueError`."""
    shape, dtype = items(place, value, 2)
    if not isinstance(dtype, str) or dtype not in ELEMENTS:
        raise wrong(f"{place}[1]", f"an element type ({', '.join(ELEMENTS)})", dtype)
    if len(items(f"{place}[0]", shape)) > _MAX_RANK:
        raise wrong(f"{place}[0]", f"a shape of at most {_MAX_RANK} dimensions", shape)
    total = ELEMENTS[dtype]
    for extent in shape:
        total *= max(1, count(f"{place}[0]", extent))
    if total > _MAX_BYTES:
        raise wrong(place, f"a tensor of at most {_MAX_BYTES} bytes", value)
    return tuple(shape), dtype


def _inputs(place: str, value: Any) -> tuple[tuple[str, Spec, tuple[int, ...]], ...]:
    out = []
    for n, item in enumerate(items(place, value)):
        at = f"{place}[{n}]"
        name, spec, path = items(at, item, 3)
        steps = [count(f"{at}[2]", step) for step in items(f"{at}[2]", path)]
        out.append((text(f"{at}[0]", name), tensor_spec(f"{at}[1]", spec), tuple(steps)))
    return tuple(out)


def _params(place: str, value: Any) -> tuple[tuple[str, Spec], ...]:
    out = []
    for n, item in enumerate(items(place, value)):
        name, spec = items(f"{place}[{n}]", item, 2)
        out.append((text(f"{place}[{n}][0]", name), tensor_spec(f"{place}[{n}][1]", spec)))
    return tuple(out)


def _outputs(place: str, value: Any) -> tuple[Spec, ...]:
    return tuple([tensor_spec(f"{place}[{n}]", item) for n, item in enumerate(items(place, value))])


def _structure(place: str, value: Any) -> Any:
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, list) and depth < _MAX_DEPTH:
            stack.extend((part, depth + 1) for part in item)
        elif not isinstance(item, int) or isinstance(item, bool) or item < 0:
            raise wrong(place, "an output's number, or a list of such", item)
    return value


def _numbers(place: str, value: Any) -> tuple[int, ...]:
    numbers = [count(f"{place}[{n}]", item) for n, item in enumerate(items(place, value))]
    if numbers != sorted(set(numbers)):
        raise wrong(place, "a sorted list of numbers", value)
    return tuple(numbers)


def _pairs(place: str, value: Any) -> tuple[tuple[int, int], ...]:
    found = []
    for n, item in enumerate(items(place, value)):
        number, output = (count(f"{place}[{n}]", part) for part in items(f"{place}[{n}]", item, 2))
        found.append((number, output))
    return tuple(found)


def _steps(place: str, value: Any) -> tuple[Step, ...]:
    out = []
    for n, item in enumerate(items(place, value)):
        at = f"{place}[{n}]"
        fields = items(at, item, len(Step._fields))
        texts = [text(f"{at}[{k}]", item) for k, item in enumerate(fields[:5])]
        numbers = [_macs(f"{at}[{k}]", number) for k, number in enumerate(fields[5:8], 5)]
        others = [text(f"{at}[8][{k}]", other) for k, other in enumerate(items(f"{at}[8]", fields[8]))]
        out.append(Step._make([*texts, *numbers, tuple(others)]))
    return tuple(out)


def read_externals(place: str, value: Any) -> tuple[External, ...]:
    """The code of other compilers from a record of it. Raises `ValueError`."""
    out = []
    for n, item in enumerate(items(place, value)):
        at = f"{place}[{n}]"
        fields = items(at, item, len(External._fields))
        compiler, symbol, kind, where, line = (text(f"{at}[{k}]", fields[k]) for k in (0, 1, 2, 5, 6))
        if kind not in KINDS:
            raise wrong(f"{at}[2]", f"one of {', '.join(KINDS)}", kind)
        out.append(External(compiler, symbol, kind, _outputs(f"{at}[3]", fields[3]), _outputs(f"{at}[4]", fields[4]), where, line))
    return tuple(out)


def _sites(place: str, value: Any) -> tuple[Place, ...]:
    out = []
    for n, item in enumerate(items(place, value)):
        at = f"{place}[{n}]"
        fields = items(at, item, len(Place._fields))
        operator, source, words = (text(f"{at}[{k}]", fields[k]) for k in (0, 2, 4))
        kind = fault_kind(f"{at}[1]", fields[1])
        line, begin, end = (count(f"{at}[{k}]", fields[k]) for k in (3, 5, 6))
        if not 1 <= begin <= end <= len(words) + 1 or line > _MAX_LINES:
            raise wrong(at, "a stretch of a line", item)
        out.append(Place(operator, kind, source, line, words, begin, end))
    return tuple(out)


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "entry": text,
    "inputs": _inputs,
    "params": _params,
    "outputs": _outputs,
    "structure": _structure,
    "arena": count,
    "fixed": count,
    "live": count,
    "isa": one_of(*ISAS),
    "threads": maybe(whole(1, _MAX_THREADS)),
    "machine": text,
    "features": features,
    "aligned": _numbers,
    "steps": _steps,
    "externals": read_externals,
    "fails": flag,
    "in_place": _pairs,
    "sites": _sites,
}

__all__ = [
    "ELEMENTS",
    "FORMAT",
    "ISAS",
    "KINDS",
    "VERSION",
    "External",
    "Manifest",
    "Step",
    "count",
    "differences",
    "external_records",
    "fault_kind",
    "features",
    "read",
    "read_externals",
    "read_tensors",
    "read_text",
    "tensor_spec",
]
