"""A compiled program as a module: the executors that it makes, its graph, its weights, its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.runtime.artifact import LIBRARY_MAGIC, Artifact, load, read_file
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.external import part_name, written
from relaylang.runtime.files import atomic_write
from relaylang.runtime.packed import Packed, joined, unpacked
from relaylang.runtime.text import reason
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.tvm.contrib import cc as tools
from relaylang.tvm.runtime.graph import GraphExecutor, simple_graph
from relaylang.tvm.runtime.module import Module, SourceModule, exported
from relaylang.tvm.runtime.ndarray import Device, NDArray
from relaylang.tvm.runtime.vm import Library

#: Suffixes of files that need a compiled program's C text, and not its library.
_SOURCES = (".c", ".cc", ".cpp")


class Program(Module):
    """A compiled program. `program["default"](dev)` is an executor of its own; see `GraphExecutor`.

    `make` compiles the program again with other options of its targets, where that is possible.
    """

    def __init__(
        self, artifact: Artifact, name: str = "default", make: Callable[..., Artifact] | None = None, target: Target | None = None
    ) -> None:
        functions: dict[str, Callable[..., Any]] = {
            name: self.executor,
            "debug_create": lambda _name, *devices: self.debug_executor(*devices),
            "get_graph_json": self.get_graph_json,
            "get_graph_params": self.get_params,
            "remove_params": lambda: self,
            "list_module_names": lambda: [name],
        }
        super().__init__({"default": self.executor, **functions}, "GraphExecutorFactory", name)
        self.artifact = artifact
        self.name = name
        self._make = make
        self._target = target
        self._profiled: Artifact | None = None
        self._kept: Artifact | None = None

    is_dso_exportable = True

    def executor(self, *devices: Device) -> GraphExecutor:
        """An executor on devices, all of them the CPU. Raises `RelayError` (R0608, R0641)."""
        for dev in devices:
            dev.check()
        if "run" not in self.artifact.capabilities:
            self.artifact.run()
        return GraphExecutor(self.artifact)

    def debug_executor(self, *devices: Device) -> GraphExecutor:
        """An executor that knows the time of each kernel. Raises `RelayError` (R0609) where the program has none to show."""
        for dev in devices:
            dev.check()
        if self._profiled is None:
            known = "steps" in self.artifact.capabilities
            if not known and self._make is None:
                notes = ['compile it with the option -profile: relay.build(mod, "llvm -profile", params=params)']
                raise RelayError(error("R0609", "the program was compiled without the times of its kernels", notes=notes))
            self._profiled = self.artifact if known else self._make(profile=True)  # type: ignore[misc]
        return GraphExecutor(self._profiled, self._keeping)

    def _keeping(self) -> CpuArtifact:
        """The program compiled so that each value has memory of its own. Raises `RelayError` (R0609) where it cannot be."""
        if self._kept is None:
            if self._make is None or not isinstance(self.artifact, CpuArtifact):
                notes = ["build the program in this script, for the CPU", "or make the value a result of the program"]
                raise RelayError(error("R0609", "the values inside this program do not outlast the run", notes=notes))
            self._kept = self._make(**{"keep-values": True})
        assert isinstance(self._kept, CpuArtifact)
        return self._kept

    def get_graph_json(self) -> str:
        """The graph: inputs, kernels, results, and where they lie."""
        return getattr(self.artifact, "graph", "") or simple_graph(self.artifact)

    def get_params(self) -> dict[str, NDArray]:
        """The weights that the program was compiled with, by name."""
        return {name: NDArray(value) for name, value in getattr(self.artifact, "params", {}).items()}

    def get_source(self, fmt: str = "") -> str:
        """The C text; "asm" for the compiler's assembly. Raises `RelayError` (R0609) for other forms."""
        text: str = getattr(self.artifact, "source", "")
        if fmt in ("", "c", "cc"):
            return text
        if fmt in ("asm", "s"):
            return self._compiler().assembly(text)
        notes = ['the forms are "c" and "asm"; relay compile --emit has relay, fused and loops']
        raise RelayError(error("R0609", f"a compiled program has no text of the form {fmt}", notes=notes))

    @property
    def imported_modules(self) -> list[Module]:
        """The C text as a module of its own, and modules that were imported."""
        text = self.get_source()
        return [*([SourceModule(text, func_names=[f"tvmgen_{self.name}_run"])] if text else []), *self._imports]

    def _compiler(self) -> Compiler:
        if self._target is None:
            notes = ["build it in this script, or compile it again: relay compile"]
            raise RelayError(error("R0609", "a loaded program does not know the options of its compiler", notes=notes))
        return Compiler(self._target.options)

    def _packed(self) -> Packed:
        artifact: Any = self.artifact
        if "pack" in artifact.capabilities:
            packed: Packed = artifact.packed()
            return packed
        raise RelayError(
            error("R0609", "only a program for the CPU alone can be written as an object or by another linker", notes=["write a .tar"])
        )

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the program as a library (any name), `.tar`, object (`.o`), C text (`.c`) or assembly (`.s`).

        Libraries, `.tar` and `.o` hold weights and graph, too; `load_module` reads them. A program of C source becomes
        `.c` and `.h`, or a `.tar` of them. Raises `RelayError`.
        """
        suffix = f".{fmt}" if fmt else Path(file_name).suffix
        if "source" in self.artifact.capabilities:
            self.artifact.save(file_name)
        elif suffix in _SOURCES:
            _write(file_name, self.get_source().encode())
        elif suffix in (".s", ".asm"):
            _write(file_name, self.get_source("asm").encode())
        elif suffix in (".ll", ".bc"):
            self.get_source(suffix[1:])
        elif suffix in (".o", ".obj"):
            _write(file_name, self._object())
        else:
            self.artifact.save(file_name)

    def _object(self) -> bytes:
        packed = self._packed()
        if any(external.kind in ("c", "object") for external in packed.manifest.externals):
            notes = ["write a library or a .tar", "a linker of your own gets all objects: export_library(path, fcompile=...)"]
            raise RelayError(error("R0609", "a program with code of other compilers is no single object", notes=notes))
        return joined(self._compiler().object(packed.source), packed.others())

    def _files(self, packed: Packed, sources: bool) -> dict[str, bytes]:
        """The program as C files or objects, with those of other compilers in it."""
        texts = {"lib0": packed.source}
        files: dict[str, bytes] = {}
        for number, external in enumerate(packed.manifest.externals):
            content = written(packed.externals)[part_name(number, external.kind)]
            if external.kind == "c":
                texts[f"external{number}"] = content.decode()
            elif external.kind == "object":
                files[f"external{number}.o"] = content
        if sources:
            return {**{f"{name}.c": text.encode() for name, text in texts.items()}, **files}
        compiler = self._compiler()
        return {**{f"{name}.o": compiler.object(text) for name, text in texts.items()}, **files}

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        *,
        fcompile: Any = None,
        fpack_imports: Any = None,
        addons: Any = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write the program to a file, by its suffix as `save` has it.

        With `fcompile`, `cc`, `options` or `addons`, the program's object goes to `fcompile(output, objects, **kwargs)`,
        by default `contrib.cc.create_shared`. Its result gets weights and graph at its end. Returns what `fcompile` does.
        """
        if not fcompile and not addons and not kwargs:
            return self.save(file_name)
        link = fcompile or tools.create_shared
        packed = self._packed()
        wanted = getattr(link, "object_format", "o")
        files = self._files(packed, wanted in ("c", "cc"))
        content, result = exported(file_name, link, files, addons or (), workspace_dir, kwargs)
        _write(file_name, joined(content, packed.others()) if content.startswith(LIBRARY_MAGIC) else content)
        return result


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        atomic_write(path, content)
    except OSError as e:
        raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Program | Library:
    """The program of a file that `export_library` or `relay compile` wrote: a library, `.tar`, or `.o`, which is linked first.

    The file of a program of the VM gives its library, of which a `VirtualMachine` is made. This runs code from the file.
    Raises `RelayError` (R0001, R0641).
    """
    name = os.fspath(path)
    if not name.endswith((".o", ".obj")):
        program = load(path)
        return Library(program) if isinstance(program, VMExecutable) else Program(program)
    packed = unpacked(read_file(path), name)
    library = Compiler({}).link(packed.library, packed.manifest.machine)
    return Program(CpuArtifact(library, packed.manifest, packed.params, packed.source, graph=packed.graph))


class ExecutorFactoryModule:
    """What `relay.build` returns: a compiled program. It unpacks as `graph_json, lib, params`.

    It is an artifact, too: `.run(name=array)`, `.save(path)`.
    """

    def __init__(
        self,
        artifact: Artifact,
        ir_mod: IRModule | None,
        targets: Sequence[Target],
        params: Mapping[str, np.ndarray],
        libmod_name: str = "default",
        executor: Any = None,
        runtime: Any = None,
    ) -> None:
        first, *rest = targets

        def make(**options: Any) -> Artifact:
            assert ir_mod is not None
            return compile_module(ir_mod, [Target(first.name, {**first.options, **options}), *rest], params)

        self.artifact = artifact
        self.ir_mod = ir_mod
        self.target = list(targets)
        self.values = dict(params)
        self.executor = executor
        self.runtime = runtime
        self.libmod_name = libmod_name
        self.module = self.lib = Program(artifact, libmod_name, make if ir_mod is not None else None, first)
        self.params = self.lib.get_params()
        self.function_metadata: dict[str, Any] = {}
        self._graph: str | None = None

    @property
    def graph_json(self) -> str:
        if self._graph is None:
            self._graph = self.lib.get_graph_json()
        return self._graph

    def get_graph_json(self) -> str:
        """The graph as JSON text."""
        return self.graph_json

    get_executor_config = get_graph_json

    def get_params(self) -> dict[str, NDArray]:
        """The weights that are part of the program, by name."""
        return self.params

    def get_lib(self) -> Program:
        """The program as a module."""
        return self.lib

    def get_devices(self) -> list[str]:
        return []

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Any = None, addons: Any = None, **kwargs: Any) -> Any:
        """Write the program to a file; see `Program.export_library`."""
        return self.lib.export_library(file_name, fcompile=fcompile, addons=addons, **kwargs)

    def __getitem__(self, name: str) -> Any:
        return self.lib[name]

    def __iter__(self) -> Any:
        return iter((self.graph_json, self.lib, self.params))

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return self.artifact.input_names

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program; see `relaylang.runtime.artifact.Artifact`."""
        return self.artifact.run(*args, **named)

    __call__ = run

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program, its weights and its manifest to one file."""
        self.artifact.save(path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "artifact":
            raise AttributeError(name)
        return getattr(self.artifact, name)

    def __reduce__(self) -> tuple[Any, ...]:
        # an unpickled program runs; it is not compiled again
        return ExecutorFactoryModule, (self.artifact, None, self.target, {}, self.libmod_name, self.executor, self.runtime)


GraphExecutorFactoryModule = AOTExecutorFactoryModule = ExecutorFactoryModule

__all__ = [
    "AOTExecutorFactoryModule",
    "ExecutorFactoryModule",
    "GraphExecutorFactoryModule",
    "Program",
    "load_module",
]
