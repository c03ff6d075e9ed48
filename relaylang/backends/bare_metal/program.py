"""A program for a microcontroller: C with TVM's interface. It can be saved as TVM's Model Library Format, and run here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.bare_metal.host import calls_cmsis_nn, check_rounding
from relaylang.backends.bare_metal.library_format import save
from relaylang.backends.bare_metal.npu import DRIVER, fast_bytes
from relaylang.backends.ethosu.artifact import EthosUArtifact, RegionCode
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.aot import AotProgram, checked_place
from relaylang.runtime.artifact import Capability, TensorSpec
from relaylang.runtime.library import address_in, open_library

#: `ethosu_invoke` of Arm's driver: the driver, commands and their bytes, the addresses of memories, their bytes, their number.
_INVOKE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_int,
)
#: The driver's function in a library for this machine: a variable that is set before a run.
_POINTER = "int (*relay_npu)(void*, const void*, int, uint64_t*, const size_t*, int)"


class MicroProgram(AotProgram):
    """A program as C for a microcontroller. `regions` are the parts for an Ethos-U by their symbols.

    `module` is its name among TVM's modules, `text` its Relay text, `weights_by_name` the values bound to its parameters.
    `targets` are the targets as texts, `operators` the functions in C with the bytes of their workspaces. `fields` are the
    names in C of inputs and of outputs.
    A run here calls a simulator where the chip calls the NPU; `executor` names one of `runtime.artifact.SIMULATORS`.
    """

    _made_here = (*AotProgram._made_here, "_invoke")
    _workspace = "r_workspace"

    executors = EthosUArtifact.executors

    def __init__(
        self,
        parts: Sequence[Any],
        module: str,
        text: str,
        weights_by_name: Mapping[str, np.ndarray],
        targets: Sequence[str],
        operators: Sequence[tuple[str, int]],
        regions: Mapping[str, RegionCode],
        fields: Sequence[Sequence[str]],
        notes: str = "",
    ) -> None:
        super().__init__(*parts)
        self.module = module
        self.fields = [list(names) for names in fields]
        self.text = text
        self.weights_by_name = dict(weights_by_name)
        self.targets = list(targets)
        self.operators = list(operators)
        self.regions = dict(regions)
        self.notes = notes
        #: The graph of the executor "graph", in JSON; "" for "aot".
        self.graph = ""
        self._raised: list[RelayError] = []
        self.executor = self.executors[0]

    @property
    def capabilities(self) -> frozenset[Capability]:
        return super().capabilities | {"simulate"} if self.regions else super().capabilities

    @property
    def fast_bytes(self) -> int:
        """The bytes of the NPU's own memory."""
        return fast_bytes(self.regions)

    def report(self) -> str:
        """The memory that the program needs, and the report of its accelerators."""
        fast = f", the NPU's own memory: {self.fast_bytes} bytes" if self.fast_bytes else ""
        return "\n".join([*([self.notes.rstrip("\n")] if self.notes else []), super().report() + fast])

    @property
    def input_tensors(self) -> dict[str, TensorSpec]:
        """The inputs by their names in Relay; a part of a tuple has its name in C."""
        return {field if path else name: spec for field, (name, spec, path) in zip(self.fields[0], self.tensors)}

    @property
    def output_tensors(self) -> dict[str, TensorSpec]:
        """The outputs by their names in C."""
        return {field: TensorSpec(*spec) for field, spec in zip(self.fields[1], self._outputs)}

    @property
    def structure(self) -> Any:
        """How the result nests the outputs."""
        return self._structure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write FILE.tar in TVM's format, or the C alone; see `AotProgram.save`."""
        if checked_place(path).suffix == ".tar":
            save([self], path)
        else:
            super().save(path)

    @property
    def _called(self) -> str:
        return f"{self.name}_run((void*)inputs, (void*)outputs{', 0' if self.regions else ''})"

    def _opened(self, text: str) -> Any:
        stand_in = f"extern {_POINTER};\n#define ethosu_invoke relay_npu"
        included = {f'#include "{DRIVER}"': stand_in, f'#include "{self.name}.h"': self.header}

        def alone(content: bytes) -> bytes:
            for line, header in included.items():
                content = content.replace(line.encode(), header.encode())
            return content

        sources = {name: alone(content) if name.endswith(".c") else content for name, content in self._externals.items()}
        if self.regions:
            text = f'{text}#include <stddef.h>\n__attribute__((visibility("default"))) {_POINTER};\n'
        library = open_library(self._compiled(text, sources))
        if self.regions:
            self._answered(library)
        if calls_cmsis_nn(self._externals):
            check_rounding(library)
        return library

    def _answered(self, library: Any) -> None:
        """Set what answers the calls of the driver in a library."""
        self._invoke = _INVOKE(self._answer)
        address = ctypes.cast(self._invoke, ctypes.c_void_p).value
        ctypes.c_void_p.from_address(address_in(library, "relay_npu")).value = address

    def _answer(self, driver: Any, commands: int, size: int, bases: Any, sizes: Any, count: int) -> int:
        """What the NPU does: the region of these commands, computed by the simulator in the program's own memory."""
        try:
            stream = ctypes.string_at(commands, size)
            for code in self.regions.values():
                own = code.details["driver"]["weights_region"]
                if code.command_stream == stream and ctypes.string_at(bases[own], sizes[own]) == code.weights:
                    break
            else:
                raise RelayError(error("R0606", "the program gives its NPU commands that it does not have"))
            places = code.details["driver"]
            inputs = []
            for at, (_, spec) in zip(places["inputs"], code.inputs):
                content = ctypes.string_at(bases[at["region"]] + at["address"], at["bytes"])
                inputs.append(np.frombuffer(content, spec.dtype).reshape(spec.shape))
            for at, value in zip(places["outputs"], code.run(inputs, self.executor)):
                ctypes.memmove(bases[at["region"]] + at["address"], value.tobytes(), at["bytes"])
        except RelayError as problem:  # C cannot pass it on: `run` raises it again
            self._raised.append(problem)
            return -1
        return 0

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program here, compiled by this machine's compiler; see `AotProgram.run`."""
        self._raised.clear()
        try:
            return super().run(*args, **named)
        except RelayError:
            if self._raised:
                raise self._raised[0] from None
            raise

    __call__ = run


__all__ = ["MicroProgram"]
