"""The kernels of a program in C, and the constants that they read.

What depends on constants alone is computed here, by a library for this machine. So the C has weights in their final layout.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.program import Program, Site, every
from relaylang.runtime.failures import Place, place_of
from relaylang.runtime.library import function_in, open_library, unload
from relaylang.runtime.tensors import aligned

ALIGN = 64
#: Gives the kernels of a number, and the ways in which they fail.
Lower = Callable[[int], tuple[Program, Sequence[Site]]]
_SHOWN = '__attribute__((visibility("default")))'
_PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Weights:
    """The constants of a program, one behind the other, each at a multiple of 64."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, data: np.ndarray) -> int:
        """Where a constant lies. Equal ones lie at one place."""
        content = np.asarray(data, order="C").tobytes()
        key = hashlib.sha256(content).digest()
        if key not in self._known:
            self.content += bytes(-len(self.content) % ALIGN)
            self._known[key] = len(self.content)
            self.content += content
        return self._known[key]


class Kernels:
    """The kernels that a program uses, by number, and their C.

    `lower` gives the kernels of a number and their sites. `values` are bound parameters by name. Every function of the C has
    the parameters `head`, and passes `passed` on.
    """

    #: Whether a loop's turn, and what runs kernels, looks whether the run ends.
    watched = False

    def __init__(self, lower: Lower, isa: Isa, threads: int, values: Mapping[str, np.ndarray]) -> None:
        self._lower = lower
        self._isa = isa
        self._values = values
        self._programs: dict[int, Program] = {}
        #: The ways in which kernels fail, and the number of each kernel's first.
        self.sites: list[Site] = []
        self._first_sites: dict[int, int] = {}
        self._places: dict[int, tuple[list[str], int]] = {}
        self.threads = threads
        self.weights = Weights()

    def program(self, number: int) -> Program:
        """The kernels of a number, lowered at the first question. Raises `RelayError` where they have no C."""
        if number not in self._programs:
            self._programs[number], sites = self._lower(number)
            self._first_sites[number] = len(self.sites)
            self.sites += sites
        return self._programs[number]

    @property
    def passed(self) -> Sequence[str]:
        return ("weights", "status") if self.sites else ("weights",)

    @property
    def head(self) -> Sequence[str]:
        return ("const char* weights", *(["int64_t* status"] if self.sites else []), "char* work")

    @property
    def places(self) -> list[Place]:
        """The ways in which kernels fail, as a program keeps them."""
        return [place_of(*site) for site in self.sites]

    def may_fail(self, number: int) -> bool:
        """Whether kernels say how they failed to what `passed` has for that."""
        return bool(self.sites) and self.program(number).may_fail

    def failing(self, number: int, arena: str, failed: str) -> list[str]:
        """The C that returns an error's number where kernels failed, `failed` for external code."""
        program = self._programs[number]
        record = f"{arena} + {program.status}"
        if self.may_fail(number):
            return [f"if (*(const int64_t*)({record})) return r_said(status, {record}, {self._first_sites[number]}, {failed});"]
        return [f"if (*(const int32_t*)({record})) return {failed};"] if program.may_fail else []

    @property
    def programs(self) -> Mapping[int, Program]:
        return self._programs

    def constant(self, data: np.ndarray) -> str:
        """The address of a constant in C."""
        return f"weights + {self.weights.add(data)}"

    def prepare(self) -> None:
        """Compute what depends on constants alone, and take all constants that are read later."""
        prepared = _prepared({n: p for n, p in self._programs.items() if p.fixed_bytes}, self._constants, self._isa)
        for number, program in self._programs.items():
            used = {slot.number for item in every(program.run) for slot in item.reads() if slot.kind == "param"}
            values = self._constants(program)
            places = [f"weights + {self.weights.add(data)}" if n in used else "0" for n, data in enumerate(values)]
            fixed = prepared.get(number)
            self._places[number] = (places, self.weights.add(fixed) if fixed is not None else 0)

    def _constants(self, program: Program) -> list[np.ndarray]:
        return [program.constants[name] if name in program.constants else self._values[name] for name, _ in program.params]

    def call(self, number: int, inputs: Sequence[str], outputs: Sequence[str], arena: str, failed: str) -> list[str]:
        """The C that runs kernels with the addresses of their inputs and outputs."""
        places, fixed = self._places[number]
        lines = [
            *tables(inputs, outputs),
            f"const void* const params[] = {{{', '.join(places) or '0'}}};",
            f"run_{number}(in, out, params, (char*)(weights + {fixed}), {arena}, {self.threads});",
        ]
        return lines + self.failing(number, arena, failed)


def tables(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The tables of addresses that kernels take, as C."""
    taken, outs = (", ".join(places) or "0" for places in (inputs, outputs))
    return [f"const void* const in[] = {{{taken}}};", f"void* const out[] = {{{outs}}};"]


class _Preparation(Emitter):
    """Writes the steps that depend on constants alone."""

    watched = False

    def __init__(self, isa: Isa, programs: Mapping[int, Program]) -> None:
        super().__init__(isa, False)
        self.programs = programs

    def _ends(self, program: Any) -> str:
        if not self.ends:
            parts = []
            for number, item in self.programs.items():
                parts.append(self.sequence(f"prepare_{number}", item.prepare, once=True))
                parts.append(
                    f"{_SHOWN} void relay_prepare_{number}(const void* const* params, char* fixed, char* arena) {{\n"
                    f"  prepare_{number}(NULL, NULL, params, fixed, arena, 1);\n}}\n"
                )
            self.ends = "\n\n".join(parts)
        return self.ends

    def library(self) -> bytes:
        """The steps compiled for this machine."""
        units = self.units(None)  # type: ignore[arg-type]
        return Compiler({}).compile(units, self.whole(["// what depends on constants alone"], self.ends))


def _prepared(programs: Mapping[int, Program], constants: Callable[[Program], list[np.ndarray]], isa: Isa) -> dict[int, np.ndarray]:
    """The fixed memory of programs, computed by a library for this machine."""
    if not programs:
        return {}
    emitter = _Preparation(isa, programs)
    library = open_library(emitter.library())
    fixed_memory = {}
    for number, program in programs.items():
        values = constants(program)
        params = (ctypes.c_void_p * max(1, len(values)))(*[v.ctypes.data for v in values])
        fixed, arena = aligned(program.fixed_bytes), aligned(program.arena_bytes)
        fixed[...] = 0  # equal programs give equal files
        function_in(library, f"relay_prepare_{number}", _PREPARE)(params, fixed.ctypes.data, arena.ctypes.data)
        fixed_memory[number] = fixed
    unload(library, None)
    return fixed_memory
