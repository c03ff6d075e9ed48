"""The face of a program for a microcontroller: TVM's C interface, as its option `--interface-api c` gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.aot.face import Face, Field
from relaylang.backends.aot.functions import CFunction
from relaylang.backends.aot.kernels import ALIGN
from relaylang.backends.cpu.dtypes import CTYPES, SIZES
from relaylang.runtime.aot import ERRORS


def nbytes(field: Field) -> int:
    """The bytes of a tensor of the caller's."""
    return field.count * SIZES[field.leaf.dtype]


@dataclass(frozen=True)
class MicroFace(Face):
    """Structs of pointers and one function. The workspace is the file's own.

    `devices` are the accelerators whose drivers the caller opens, by their names in C.
    """

    devices: Sequence[str] = ()

    def _pointers(self, kind: str, names: Sequence[tuple[str, str]]) -> str:
        rows = [f"  void* {name};{said}" for name, said in names] or ["  char none;"]
        return "\n".join([f"struct {self.name}_{kind} {{", *rows, "};"])

    @property
    def signature(self) -> str:
        kinds = ["inputs", "outputs", *(["devices"] if self.devices else [])]
        return f"int32_t {self.name}_run({', '.join(f'struct {self.name}_{kind}* {kind}' for kind in kinds)})"

    def handle(self, device: str) -> str:
        """The variable with a device's driver."""
        return f"{self.name}_{device}"

    def header(self) -> str:
        p = self.prefix
        sizes = [f"#define {p}_{f.name.upper()}_SIZE {nbytes(f)}" for f in [*self.inputs, *self.outputs]]
        structs = [self._pointers(kind, [(f.name, f"  // {f.type}") for f in fields])
                   for kind, fields in (("inputs", self.inputs), ("outputs", self.outputs))]  # fmt: skip
        if self.devices:
            structs.append(self._pointers("devices", [(name, "  // its driver") for name in self.devices]))
        errors = [f"  {p}_ERROR_{name} = {n},  // {text}" for n, (name, text) in enumerate(ERRORS.items(), 1)]
        return "\n".join([
            "// made by relaylang", f"#ifndef {p}_H_", f"#define {p}_H_", "#include <stdint.h>", "#ifdef __cplusplus",
            'extern "C" {', "#endif", "", *sizes, "", *structs, "", "enum {", *errors, "};", "",
            "// Returns 0, or the number of an error. Tensors are dense, in C order, and lie apart. One run at a time.",
            f"{self.signature};", "", "// The bytes of memory for runs, which is a part of the program.",
            f"#define {p}_WORKSPACE_SIZE {self.workspace}", "", "#ifdef __cplusplus", "}", "#endif", "#endif", "",
        ])  # fmt: skip

    def run(self, entry: CFunction) -> str:
        place = f'__attribute__((section(".bss.noinit.tvm"), aligned({ALIGN})))'
        memory = f"r_workspace[{max(1, self.workspace)}]"
        lines = ["#ifdef __ELF__", f"static char {memory} {place};", "#else",
                 f"static char {memory} __attribute__((aligned({ALIGN})));", "#endif",
                 *(f"void* {self.handle(name)};" for name in self.devices), "",
                 f"{self.signature} {{", "  (void)inputs; (void)outputs;",
                 *(f"  {self.handle(name)} = devices ? devices->{name} : 0;" for name in self.devices)]  # fmt: skip
        values = [f"*(const {CTYPES[f.leaf.dtype]}*)inputs->{f.name}" if f.leaf.is_scalar else f"inputs->{f.name}"
                  for f in self.inputs]  # fmt: skip
        places = [f"outputs->{f.name}" for f in self.outputs]
        lines.append(f"  return {entry.name}({', '.join(['(const char*)r_weights', 'r_workspace', *values, *places])});")
        return "\n".join([*lines, "}"])


__all__ = ["MicroFace", "nbytes"]
