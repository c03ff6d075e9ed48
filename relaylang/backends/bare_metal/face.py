"""The face of a program for a microcontroller: TVM's C interface, as its option `--interface-api c` gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.aot.face import Face, Field, c_names, error_rows
from relaylang.backends.aot.functions import CFunction
from relaylang.backends.aot.kernels import ALIGN
from relaylang.backends.bare_metal.npu import fast_memory, handle
from relaylang.backends.bare_metal.rom import SECTION, names, place
from relaylang.kernels.dtypes import CTYPES, SIZES


def nbytes(field: Field) -> int:
    """The bytes of a tensor of the caller's."""
    return field.count * SIZES[field.leaf.dtype]


@dataclass(frozen=True)
class MicroFace(Face):
    """Structs of pointers and one function. The workspace is the file's own.

    A program with an NPU takes its driver. `fast` are the bytes of the NPU's own memory.
    """

    npu: bool = False
    fast: int = 0

    def _pointers(self, kind: str, names: Sequence[tuple[str, str]]) -> str:
        rows = [f"  void* {name};{said}" for name, said in names] or ["  char none;"]
        return "\n".join([f"struct {self.name}_{kind} {{", *rows, "};"])

    @property
    def signature(self) -> str:
        kinds = ["inputs", "outputs", *(["devices"] if self.npu else [])]
        return f"int32_t {self.name}_run({', '.join(f'struct {self.name}_{kind}* {kind}' for kind in kinds)})"

    @property
    def begin(self) -> Sequence[str]:
        return SECTION

    @property
    def place(self) -> str:
        return place(self.name, "CONSTANTS")

    def header(self) -> str:
        p, fields = self.prefix, [*self.inputs, *self.outputs]
        _, _, *upper = c_names(["WORKSPACE", "FAST", *(f.name.upper() for f in fields)])
        sizes = [f"#define {p}_{name}_SIZE {nbytes(f)}" for name, f in zip(upper, fields)]
        structs = [
            self._pointers(kind, [(f.name, f"  // {f.type}") for f in fields])
            for kind, fields in (("inputs", self.inputs), ("outputs", self.outputs))
        ]
        if self.npu:
            structs.append(self._pointers("devices", [("ethos_u", "  // its driver")]))
        return "\n".join(
            [
                "// made by relaylang",
                f"#ifndef {p}_H_",
                f"#define {p}_H_",
                "#include <stdint.h>",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                "",
                *sizes,
                "",
                *structs,
                "",
                "enum {",
                *error_rows(p),
                "};",
                "",
                "// Returns 0, or the number of an error. Tensors are dense, in C order, and lie apart. One run at a time.",
                f"{self.signature};",
                "",
                "// The bytes of memory for runs, which is a part of the program.",
                f"#define {p}_WORKSPACE_SIZE {self.workspace}",
                "",
                *(["// The bytes of the NPU's own memory, likewise.", f"#define {p}_FAST_SIZE {self.fast}", ""] if self.fast else []),
                "// The sections of the memories: other ones are defined for all files of the program.",
                *names(self.name, ["CONSTANTS", "WORKSPACE", *(["FAST"] if self.fast else [])]),
                "",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "#endif",
                "",
            ]
        )

    def run(self, entry: CFunction) -> str:
        def memory(name: str, size: int, section: str) -> str:
            return f"char {name}[{max(1, size)}] __attribute__((aligned({ALIGN}))){place(self.name, section)};"

        lines = [
            f"static {memory('r_workspace', self.workspace, 'WORKSPACE')}",
            *([memory(fast_memory(self.name), self.fast, "FAST")] if self.fast else []),
            *([f"void* {handle(self.name)};"] if self.npu else []),
            "",
            f"{self.signature} {{",
            "  (void)inputs; (void)outputs;",
            *([f"  {handle(self.name)} = devices ? devices->ethos_u : 0;"] if self.npu else []),
        ]
        values = [
            f"*(const {CTYPES[f.leaf.dtype]}*)inputs->{f.name}" if f.leaf.is_scalar else f"inputs->{f.name}" for f in self.inputs
        ]
        places = [f"outputs->{f.name}" for f in self.outputs]
        memories = ["(const char*)r_weights", *self.told("r_workspace"), "r_workspace"]
        lines.append(f"  return {entry.name}({', '.join([*memories, *values, *places])});")
        return "\n".join([*lines, "}"])


__all__ = ["MicroFace", "nbytes"]
