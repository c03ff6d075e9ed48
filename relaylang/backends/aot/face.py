"""A program's face: what a caller sees of it. The header, the function that the header declares, and the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from relaylang.backends.aot.functions import CFunction
from relaylang.backends.aot.kernels import ALIGN
from relaylang.backends.aot.shapes import Leaf, Shape, leaves, paths
from relaylang.kernels.dtypes import CTYPES, SIZES
from relaylang.runtime.failures import ERRORS, STATUS

#: Words that cannot name a field in C or C++.
_WORDS = frozenset(
    """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr const_cast
continue decltype default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
""".split()
)


@dataclass(frozen=True)
class Field:
    """A tensor of the caller's: its names in C and in Relay, its place in a tuple, and its type."""

    name: str
    relay: str
    path: tuple[int, ...]
    leaf: Leaf

    @property
    def type(self) -> str:
        dims = ", ".join(map(str, self.leaf.dims))
        return f"{self.leaf.dtype}[{dims}]" if dims else self.leaf.dtype

    @property
    def count(self) -> int:
        return int(np.prod(self.leaf.dims, dtype=np.int64))


def c_names(wanted: Iterable[str]) -> list[str]:
    """A name in C for each text, all different."""
    out: list[str] = []
    known = set(_WORDS)
    for text in wanted:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
        plain = plain if plain[:1].isalpha() else f"x{plain}"
        name, number = plain, 1
        while name in known:
            number += 1
            name = f"{plain}_{number}"
        known.add(name)
        out.append(name)
    return out


def error_rows(prefix: str) -> list[str]:
    """The rows of an enumeration of the errors."""
    last = len(ERRORS)
    return [f"  {prefix}_ERROR_{name} = {n}{',' * (n < last)}  // {text}" for n, (name, text) in enumerate(ERRORS.items(), 1)]


@dataclass(frozen=True)
class Face:
    """What a caller sees: the program's name in C, its inputs and outputs, its memory and its weights."""

    name: str
    entry: str
    inputs: Sequence[Field]
    outputs: Sequence[Field]
    static: bool
    external: bool
    frame: int
    weights: int
    digest: bytes
    threads: int
    fails: bool

    @property
    def status(self) -> int | None:
        """Where the workspace says how kernels failed; None where they cannot."""
        return -(-self.frame // ALIGN) * ALIGN if self.fails else None

    @property
    def workspace(self) -> int:
        """The bytes of memory that a run needs."""
        return self.frame if self.status is None else self.status + STATUS

    @property
    def prefix(self) -> str:
        return self.name.upper()

    @property
    def begin(self) -> Sequence[str]:
        """Lines of C behind the header's."""
        return []

    @property
    def place(self) -> str:
        """The attribute of constants that says where they lie."""
        return ""

    def told(self, workspace: str) -> Sequence[str]:
        """The argument that says where kernels tell how they failed."""
        return [] if self.status is None else [f"(int64_t*)({workspace} + {self.status})"]

    def _struct(self, kind: str, fields: Sequence[Field], const: str) -> str:
        rows = [f"  {const}{CTYPES[f.leaf.dtype]}* {f.name};  // {f.type}" for f in fields] or ["  char none;"]
        return "\n".join([f"typedef struct {self.name}_{kind} {{", *rows, f"}} {self.name}_{kind};"])

    @property
    def signature(self) -> str:
        weights = "const void* weights, " if self.external else ""
        name = self.name
        return f"int32_t {name}_run(const {name}_inputs* inputs, const {name}_outputs* outputs, {weights}void* workspace)"

    def header(self) -> str:
        """The header, which C and C++ include."""
        p = self.prefix
        none = "the file's own memory, for one run at a time" if self.static else "memory of malloc"
        sizes = [f"#define {p}_WORKSPACE_SIZE {self.workspace}", f"#define {p}_WORKSPACE_ALIGN {ALIGN}"]
        if self.external:
            sizes.append(f"#define {p}_WEIGHTS_SIZE {self.weights + ALIGN}")
        said = [
            f"// Run @{self.entry if self.entry.isidentifier() else json.dumps(self.entry)}. Returns 0, or the number of an error.",
            "// Tensors are dense, in C order. Outputs lie apart from inputs and from each other.",
            f"// `workspace` has {p}_WORKSPACE_SIZE bytes. NULL stands for {none}.",
        ]
        if self.external:
            said.append(f"// `weights` is the content of {self.name}.bin, of {p}_WEIGHTS_SIZE bytes.")
        ends = [f"// End the threads of runs.\nvoid {self.name}_close(void);\n"] if self.threads > 1 else []
        guard = f"{p}_H"
        return "\n".join(
            [
                "// made by relaylang",
                f"#ifndef {guard}",
                f"#define {guard}",
                "#include <stddef.h>",
                "#include <stdint.h>",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                "",
                *sizes,
                "",
                "enum {",
                f"  {p}_OK = 0,",
                *error_rows(p),
                "};",
                "",
                self._struct("inputs", self.inputs, "const "),
                "",
                self._struct("outputs", self.outputs, ""),
                "",
                *said,
                f"{self.signature};",
                "",
                *ends,
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "#endif",
                "",
            ]
        )

    def run(self, entry: CFunction) -> str:
        """The function that the header declares."""
        p, name = self.prefix, self.name
        parts = []
        if self.static:
            parts.append(f"static char r_workspace[{max(1, self.workspace)}] __attribute__((aligned({ALIGN})));\n")
        if self.threads > 1:
            parts.append(f"void {name}_close(void) {{ r_end(); }}\n")
        lines = [f"{self.signature} {{", "  (void)inputs; (void)outputs;", "  char* work = workspace;"]
        if self.external:
            check = f"(uintptr_t)weights % {ALIGN} || memcmp(weights, {_bytes(self.digest)}, {len(self.digest)})"
            lines.append(f"  if (!weights || {check}) return {p}_ERROR_WEIGHTS;")
            lines.append(f"  const char* const constants = (const char*)weights + {ALIGN};")
        else:
            lines.append("  const char* const constants = (const char*)r_weights;")
        if self.static:
            lines.append("  if (!work) work = r_workspace;")
        else:
            lines += [
                "  void* own = NULL;",
                "  if (!work) {",
                f"    own = malloc({self.workspace + ALIGN});",
                f"    if (!own) return {p}_ERROR_MEMORY;",
                f"    work = (char*)(((uintptr_t)own + {ALIGN - 1}) & ~(uintptr_t){ALIGN - 1});",
                "  }",
            ]
        lines.append(f"  if ((uintptr_t)work % {ALIGN}) return {p}_ERROR_ALIGNMENT;")
        if self.threads > 1:
            lines.append(f"  r_begin({self.threads});")
        values = [f"{'*' if f.leaf.is_scalar else ''}inputs->{f.name}" for f in self.inputs]
        places = [f"outputs->{f.name}" for f in self.outputs]
        call = f"{entry.name}({', '.join(['constants', *self.told('work'), 'work', *values, *places])})"
        lines += [f"  return {call};"] if self.static else [f"  const int32_t failed = {call};", "  free(own);", "  return failed;"]
        return "\n\n".join([*parts, "\n".join([*lines, "}"])])

    def main(self) -> str:
        """The command line."""
        rows, room = [], []
        for kind, fields in (("in", self.inputs), ("out", self.outputs)):
            table = []
            for n, field in enumerate(fields):
                dtype = field.leaf.dtype
                room.append(f"static {CTYPES[dtype]} r_{kind}{n}[{max(1, field.count)}];")
                letter = {"float32": "f", "float64": "d", "float16": "h", "bfloat16": "b", "bool": "u"}.get(dtype, dtype[0])
                words = [field.name, field.type, np.dtype(dtype).str, str(field.leaf.dims)]
                values = [*map(json.dumps, words), str(field.count), str(SIZES[dtype]), f"'{letter}'", f"r_{kind}{n}"]
                table.append(f"  {{{', '.join(values)}}},")
            rows.append("\n".join([f"static const r_tensor r_{kind}s[] = {{", *(table or ["  {0, 0, 0, 0, 0, 0, 0, 0},"]), "};"]))
        ins, outs = len(self.inputs), len(self.outputs)
        names = "".join(f" {f.name}" for f in self.inputs)
        weights = f" {self.name}.bin" if self.external else ""
        tables = [f"{{{', '.join(f'r_{kind}{n}' for n in range(count)) or '0'}}}" for kind, count in (("in", ins), ("out", outs))]
        body = [
            "int main(int count, char** words) {",
            f"  if (count < {1 + ins + self.external} || count > {1 + ins + self.external} + {1 + outs}"
            + (f' || (count > {1 + ins + self.external} && strcmp(words[{1 + ins + self.external}], "-o"))) {{'),
            f'    fprintf(stderr, "usage: %s{weights}{names} [-o FILE...]\\n", words[0]);',
            "    return 2;",
            "  }",
            f"  const int first = {1 + self.external};",
        ]
        if self.external:
            room.append(f"static char r_content[{self.prefix}_WEIGHTS_SIZE] __attribute__((aligned({ALIGN})));")
            body += [
                f'  const r_tensor content = {{"weights", "", "", "", {self.prefix}_WEIGHTS_SIZE, 1, \'u\', r_content}};',
                "  if (r_read(words[1], &content)) return 2;",
            ]
        body += [
            f"  for (int n = 0; n < {ins}; n++)",
            "    if (r_read(words[first + n], &r_ins[n])) return 2;",
            f"  const {self.name}_inputs inputs = {tables[0]};",
            f"  const {self.name}_outputs outputs = {tables[1]};",
            f"  const int32_t failed = {self.name}_run(&inputs, &outputs, {'r_content, ' if self.external else ''}NULL);",
            "  if (failed) {",
            '    fprintf(stderr, "error %d\\n", (int)failed);',
            "    return 1;",
            "  }",
            f"  for (int n = 0; n < {outs}; n++) {{",
            f"    const int place = first + {ins} + 1 + n;",
            "    if (place >= count) r_print(&r_outs[n]);",
            "    else if (r_write(words[place], &r_outs[n])) return 1;",
            "  }",
            "  return fflush(stdout) ? 1 : 0;",
            "}",
            "",
        ]
        template = files(f"{__package__}.csrc").joinpath("main.h").read_text(encoding="utf-8")
        return "\n".join([template, *room, *rows, "", *body])


def _bytes(content: bytes) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in content) + '"'


def inputs_of(names: Sequence[str], shapes: Sequence[Shape]) -> list[Field]:
    """The tensors of parameters. A tuple's have their places in it behind the name."""
    tensors = [(name, path, leaf) for name, shape in zip(names, shapes) for path, leaf in paths(shape)]
    fields = c_names("_".join([name, *map(str, path)]) for name, path, _ in tensors)
    return [Field(field, name, path, leaf) for field, (name, path, leaf) in zip(fields, tensors)]


def outputs_of(shape: Shape) -> list[Field]:
    """The tensors of a result."""
    tensors = leaves(shape)
    names = ["output"] if len(tensors) == 1 else [f"output{n}" for n in range(len(tensors))]
    return [Field(name, "", (), leaf) for name, leaf in zip(names, tensors)]
