"""Code of other people inside compiled programs: code generators for functions that have the attribute `Compiler`.

    @codegen("my-npu")
    def generate(region):
        return f"int32_t {region.symbol}(const float* x, float* y) {{ ... }}"

A partitioned program has functions of other compilers. The generator of that name gets each as a `Region`. It returns C
text, object code, bytes for its loader, or a Python function; see `Code`. A program keeps C and object code in its library.
It keeps bytes as they are. A region whose code is a Python function is kept as Relay text, and generated again by `load`.

Installed packages add generators by entry points in the group `relaylang.codegens`. An entry point is a function like
`generate`, or an object with `generate` and `load(content, symbol)`, which makes functions of bytes.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import Constant, Function, GlobalVar, IRModule, TensorType, TupleType, Type, post_order
from relaylang.ir.types import type_text
from relaylang.passes.manager import raised_in
from relaylang.plugins.entrypoints import CODEGEN_GROUP, installed_names, load_installed, wrong_plugin
from relaylang.runtime.artifact import TensorSpec, not_an_artifact
from relaylang.runtime.manifest import External, Spec
from relaylang.syntax import astext, parse
from relaylang.typing import check

#: What C calls for a Python function: the addresses of inputs and outputs. 0 is success.
CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
#: How object files begin: ELF, Mach-O, COFF for x86-64, aarch64 and i386.
_OBJECTS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x64\x86", b"\x64\xaa", b"\x4c\x01")


@dataclass(frozen=True)
class Code:
    """A region's code. Exactly one of the first four is given.

    `source` is C that defines `int32_t SYMBOL(const T* in0, ..., T* out0, ...)`, `object` is object code with that function.
    It returns 0 for success. Tensors are dense, in C order, and aligned to their elements. `data` are bytes: the generator's `load`
    makes a Python function of them. `call` is a Python function. Python functions get numpy arrays, inputs first, then
    outputs. They fill the outputs, or return the results. `constants` names constants of the region that are passed behind
    its inputs. `workspace` are bytes of memory, at a multiple of 64, that C text or object code gets behind its outputs.
    `constant_bytes` are those of the constants in it, for reports.
    """

    source: str = ""
    object: bytes = b""
    data: bytes | None = None
    call: Callable[..., Any] | None = None
    constants: Sequence[str] = ()
    workspace: int = 0
    constant_bytes: int = 0

    @property
    def kind(self) -> str:
        return "python" if self.call is not None else "data" if self.data is not None else "object" if self.object else "c"


@dataclass(frozen=True)
class Region:
    """A function for another compiler: its name as a C symbol, its typed function, and its parts.

    `inputs` and `outputs` are tensors, tuples taken apart. `constants` are the arrays in its body by name, in the order of
    `post_order`. `constant_names` has the names by the ids of the `Constant` nodes.
    """

    compiler: str
    symbol: str
    function: Function
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    constant_names: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Generator:
    """A code generator: its function, its loader of bytes if it has one, and the package that it is from."""

    generate: Callable[[Region], Any]
    load: Callable[[bytes, str], Callable[..., Any]] | None = None
    package: str = ""


#: Generators by the values of `Compiler`.
CODEGENS: dict[str, Generator] = {}


def codegen(
    name: str, generate: Callable[[Region], Any] | None = None, *, load: Callable[[bytes, str], Callable[..., Any]] | None = None
) -> Any:
    """Register a code generator for functions whose `Compiler` is `name`; without `generate` a decorator."""

    def register(function: Callable[[Region], Any]) -> Callable[[Region], Any]:
        CODEGENS[name] = Generator(function, load)
        return function

    return register(generate) if generate is not None else register


def find(name: str) -> Generator | None:
    """The generator of a name, None if there is none. An installed package that has it is imported now.

    Raises `RelayError` (R0512) for a package's generator that cannot be loaded.
    """
    known = CODEGENS.get(name)
    if known is not None or name not in installed_names(CODEGEN_GROUP):
        return known
    plugin = load_installed(CODEGEN_GROUP, name)
    generate = getattr(plugin, "generate", plugin)
    if not callable(generate):
        raise wrong_plugin(CODEGEN_GROUP, name, "is no function, and has no function generate")
    CODEGENS[name] = Generator(generate, getattr(plugin, "load", None), name)
    return CODEGENS[name]


def tensors_of(ty: Type | None) -> list[TensorType]:
    """The tensors of a type in order. Raises `RelayError` (R0605) for other types and unknown extents."""
    out: list[TensorType] = []
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(reversed(item.fields))
        elif isinstance(item, TensorType) and all(isinstance(d, int) for d in item.shape):
            out.append(item)
        else:
            said = type_text(item) if item is not None else "an unknown type"
            raise RelayError(error("R0605", f"external code takes tensors of known shapes, not {said}"))
    return out


def region_of(compiler: str, symbol: str, function: Function) -> Region:
    """A function for another compiler as its generator gets it. Raises `RelayError` (R0605)."""
    try:
        inputs = [TensorSpec.of(t) for p in function.params for t in tensors_of(p.checked_type or p.type_annotation)]
        outputs = [TensorSpec.of(t) for t in tensors_of(function.body.checked_type)]
    except RelayError as e:
        raise _at(function, e.diagnostics[0].title) from None
    nodes = [n for n in post_order(function.body) if isinstance(n, Constant)]
    names = {id(n): f"{symbol}_const_{number}" for number, n in enumerate(nodes)}
    constants = {names[id(n)]: np.asarray(n.data, order="C") for n in nodes}
    return Region(compiler, symbol, function, tuple(inputs), tuple(outputs), constants, names)


def _at(function: Function, title: str, notes: Sequence[str] = ()) -> RelayError:
    span = function.span or (function.body.span if function.body is not None else None)
    return RelayError(error("R0605", title, span, notes=notes))


def generated(generator: Generator, region: Region) -> Code:
    """The code of a region. Raises `RelayError` (R0605) for a generator that raises, or that returns something else."""
    what = f"the code generator {region.compiler}"
    try:
        result = generator.generate(region)
    except (RelayError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as problem:
        said = raised_in(f"{region.compiler} for {region.symbol}", problem, "the code generator")
        raise RelayError(Diagnostic("R0605", said.title, said.labels, said.notes)) from problem
    code = _code(result)
    kinds = 0 if code is None else sum((bool(code.source), bool(code.object), code.data is not None, code.call is not None))
    if code is None or kinds != 1:
        shown = (
            "nothing (None)" if result is None else f"{kinds} kinds of code" if code else f"a value of type {type(result).__name__}"
        )
        notes = ["it returns C text, object code, bytes for its loader, a Python function, or a Code with one of them"]
        raise _at(region.function, f"{what} returned {shown} for {region.symbol}", notes)
    if code.data is not None and generator.load is None:
        notes = [
            f'register it with a loader: codegen("{region.compiler}", load=...)',
            "object code begins as an ELF, Mach-O or COFF file",
        ]
        raise _at(region.function, f"{what} returned bytes for {region.symbol}, and has no loader", notes)
    if code.workspace and code.kind not in ("c", "object"):
        raise _at(region.function, f"{what} asks for a workspace for {region.symbol}, which C text and object code alone can have")
    missing = [name for name in code.constants if name not in region.constants]
    if missing:
        notes = [f"its constants: {', '.join(region.constants) or 'none'}"]
        raise _at(region.function, f"{what} asks for the constant {missing[0]}, which {region.symbol} does not have", notes)
    return code


def _code(result: Any) -> Code | None:
    if isinstance(result, Code):
        return replace(result, constants=tuple(result.constants))
    if isinstance(result, str):
        return Code(source=result)
    if isinstance(result, (bytes, bytearray)):
        content = bytes(result)
        return Code(object=content) if content.startswith(_OBJECTS) else Code(data=content)
    return Code(call=result) if callable(result) else None


# -- what a file keeps of a region


def kept(region: Region, code: Code) -> bytes:
    """What a saved program holds of a region's code."""
    if code.kind == "python":
        return astext(IRModule({GlobalVar("main"): region.function})).encode()
    return code.source.encode() if code.kind == "c" else code.object or code.data or b""


def part_name(number: int, kind: str) -> str:
    """The name of the file of a region in a saved program."""
    return f"external/{number}{ {'c': '.c', 'object': '.o', 'data': '.bin', 'python': '.relay'}[kind] }"


#: The files of a program's regions; what costs time to write is a function.
Parts = Mapping[str, bytes | Callable[[], bytes]]


def written(parts: Parts) -> dict[str, bytes]:
    """The files themselves."""
    return {name: part() if callable(part) else part for name, part in parts.items()}


def callables(
    externals: Sequence[External], parts: Parts, name: str, known: Sequence[Callable[..., Any] | None] = ()
) -> list[Callable[..., Any] | None]:
    """The Python functions of a program's regions, None for those that are in its library; `known` are there already.

    Raises `RelayError` (R0641) where nobody here can load one.
    """
    out: list[Callable[..., Any] | None] = []
    for number, external in enumerate(externals):
        if external.kind in ("c", "object") or (number < len(known) and known[number] is not None):
            out.append(known[number] if number < len(known) else None)
            continue
        generator = find(external.compiler)
        if generator is None or (external.kind == "data" and generator.load is None):
            notes = ["load its file: relay run --load codegen.py, or import it before", "or install the package that has it"]
            title = f"{name} needs the code generator {external.compiler}, which is not here"
            raise RelayError(error("R0641", title, notes=notes))
        content = written({"": parts[part_name(number, external.kind)]})[""]
        if external.kind == "data":
            assert generator.load is not None
            try:
                function = generator.load(content, external.symbol)
            except (RelayError, KeyboardInterrupt, MemoryError):
                raise
            except Exception as problem:
                said = raised_in(f"{external.compiler} for {external.symbol}", problem, "the loader")
                raise RelayError(Diagnostic("R0605", said.title, said.labels, said.notes)) from problem
            if not callable(function):
                raise RelayError(error("R0605", f"the loader {external.compiler} returned no function for {external.symbol}"))
        else:
            function = _again(generator, external, content, name)
        out.append(function)
    return out


def _again(generator: Generator, external: External, content: bytes, name: str) -> Callable[..., Any]:
    try:
        mod = parse(content.decode(), f"{external.symbol}.relay").module
        assert mod is not None
        check(mod)
        function = mod["main"]
    except (RelayError, ValueError, AssertionError, KeyError):
        raise not_an_artifact(name, f"its region {external.symbol} is no Relay text") from None
    region = region_of(external.compiler, external.symbol, function)
    code = generated(generator, region)
    if code.call is None or [_spec(s) for s in region.outputs] != list(external.outputs):
        raise not_an_artifact(name, f"the code generator {external.compiler} makes other code for {external.symbol} now")
    return code.call


def _spec(spec: TensorSpec) -> Spec:
    return spec.shape, spec.dtype


# -- calls of Python functions


class Calls:
    """Python functions that a library calls. What they raise is kept for the thread that runs the program."""

    def __init__(self, externals: Sequence[External], functions: Sequence[Callable[..., Any] | None]) -> None:
        self.externals = externals
        self._raised = threading.local()
        #: What C calls; these objects must live as long as the library.
        self.entries = [CALL() if f is None else CALL(_entry(e, f, self._raised)) for e, f in zip(externals, functions)]

    def check(self, status: int, code: int) -> None:
        """Raise `RelayError` (R0606) for the external code that failed: its number from 1 on, and what it returned."""
        external = self.externals[status - 1]
        problem: BaseException | None = getattr(self._raised, "problem", None)
        self._raised.problem = None
        where = [f"at {external.place}"] if external.place else []
        notes = [*where, *([f"there: {external.line}"] if external.line else [])]
        what = f"the external code {external.symbol} of {external.compiler}"
        if problem is None:
            raise RelayError(error("R0606", f"{what} failed: it returned {code}", notes=notes))
        if isinstance(problem, (KeyboardInterrupt, MemoryError, SystemExit)):
            raise problem
        if isinstance(problem, RelayError):
            first = problem.diagnostics[0]
            raise RelayError(Diagnostic("R0606", f"{what} failed: {first.title}", first.labels, (*notes, *first.notes))) from problem
        said = raised_in(external.symbol, problem, f"the external code of {external.compiler}")
        raise RelayError(Diagnostic("R0606", said.title, said.labels, (*notes, *said.notes))) from problem


def _entry(external: External, function: Callable[..., Any], raised: Any) -> Callable[[Any], int]:
    inputs, outputs = external.inputs, external.outputs

    def call(addresses: Any) -> int:
        try:
            arguments = [_array(addresses[n], spec, False) for n, spec in enumerate(inputs)]
            results = [_array(addresses[len(inputs) + n], spec, True) for n, spec in enumerate(outputs)]
            returned = function(*arguments, *results)
            if returned is not None:
                _take(returned, results)
        except BaseException as problem:  # C cannot pass it on: `check` raises it again
            raised.problem = problem
            return 1
        return 0

    return call


def _array(address: int, spec: Spec, writable: bool) -> np.ndarray:
    """The memory at an address as an array."""
    shape, name = spec
    dtype = np.dtype(name)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.empty(0, np.uint8)
    memory.flags.writeable = writable and memory.flags.writeable
    return memory.view(dtype).reshape(shape)


def _take(returned: Any, results: Sequence[np.ndarray]) -> None:
    """Copy returned arrays into the results. Raises `ValueError` where they do not fit."""
    values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(values) != len(results):
        raise ValueError(f"it returned {len(values)} results, not {len(results)}")
    for value, result in zip(values, results):
        array = np.asarray(value)
        if array.shape != result.shape or array.dtype != result.dtype:
            actual, wanted = (TensorSpec(a.shape, a.dtype.name) for a in (array, result))
            raise ValueError(f"it returned {actual}, not {wanted}")
        if array is not result:
            np.copyto(result, array)


__all__ = [
    "CODEGENS",
    "Calls",
    "Code",
    "Generator",
    "Parts",
    "Region",
    "callables",
    "codegen",
    "find",
    "generated",
    "kept",
    "part_name",
    "region_of",
    "tensors_of",
    "written",
]
