"""The C file: kernels, functions, constants, and the program's face."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.backends.aot.face import Face
from relaylang.backends.aot.functions import CFunction
from relaylang.backends.aot.kernels import ALIGN, Kernels
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.isa import Isa

#: Warnings about C that people write.
_QUIET = (
    "-Wpedantic",
    "-Woverlength-strings",
    "-Wsign-compare",
    "-Wunused-value",
    "-Wmissing-field-initializers",
    "-Wmissing-braces",
    "-Wparentheses",
)
_GCC = ("-Wmaybe-uninitialized", "-Wpsabi", "-Wstringop-overflow", "-Warray-bounds")
FLAGS = "-O2 -fwrapv -fno-strict-aliasing -ffp-contract=off"

#: Each byte as an escape of C.
_ESCAPES = np.frombuffer("".join(f"\\{byte:03o}" for byte in range(256)).encode(), np.uint8).reshape(256, 4)
_LINE = 32


def array(name: str, content: bytes, align: int, place: str = "") -> str:
    """Constants as a C string, which compilers read faster than a list of numbers. `place` is an attribute in C, too."""
    data = np.frombuffer(content + bytes(-len(content) % _LINE or (_LINE if not content else 0)), np.uint8).reshape(-1, _LINE)
    text = np.empty((len(data), 4 * _LINE + 5), np.uint8)
    text[:, :3] = np.frombuffer(b'  "', np.uint8)
    text[:, 3:-2] = _ESCAPES[data].reshape(len(data), -1)
    text[:, -2:] = np.frombuffer(b'"\n', np.uint8)
    rows = text.tobytes().decode().rstrip("\n")
    return f"static const unsigned char {name}[] __attribute__((aligned({align}))){place} =\n{rows};"


class AotEmitter(Emitter):
    """Writes the kernels, functions and face of a program.

    `flags` name the processor to the C compiler. It defines `macros` then.
    """

    watched = False

    def __init__(
        self, isa: Isa, kernels: Kernels, functions: Sequence[CFunction], face: Face, flags: Sequence[str], macros: Sequence[str]
    ) -> None:
        super().__init__(isa, kernels.threads > 1)
        self.macros = macros
        self.flags = " ".join([FLAGS, *flags])
        self.kernels = kernels
        self.functions = functions
        self.face = face

    def _head(self, title: str) -> list[str]:
        name = self.face.name
        macros = [f"defined({macro})" for macro in self.macros]
        ignored = [f'#pragma GCC diagnostic ignored "{warning}"' for warning in _QUIET]
        ignored += ["#ifndef __clang__", *[f'#pragma GCC diagnostic ignored "{warning}"' for warning in _GCC], "#endif"]
        lacking = [f"#if !({' && '.join(macros)})", '#error "this C is for a processor that the flags above name"', "#endif"]
        threads = ["#define _GNU_SOURCE"] if self.threads else []
        little = [
            "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
            '#error "the constants of this C have the least byte first"',
            "#endif",
        ]
        return [
            f"// {title}",
            f"// compile it with gcc or clang: cc {self.flags} -c {name}.c",
            *(lacking if macros else []),
            *little,
            *ignored,
            *threads,
            f'#include "{name}.h"',
            *([] if self.face.static else ["#include <stdlib.h>"]),
            *self.face.begin,
        ]

    def source(self, entry: CFunction, title: str, main: bool) -> str:
        """The C file."""
        face = self.face
        parts = []
        for number, program in self.kernels.programs.items():
            self.begin(program)
            parts.append(self.sequence(f"run_{number}", program.run))
        parts += [function.text for function in self.functions]
        if not face.external:
            parts.append(array("r_weights", bytes(self.kernels.weights.content), ALIGN, face.place))
        parts.append(face.run(entry))
        if main:
            parts.append(face.main())
        return self.whole(self._head(title), "\n\n".join(parts), {h for f in self.functions for h in f.helpers}) + "\n"
