"""The C functions of kernels: one for each stage, each text once, and those that pack weights.

A function is named by a digest of its text. So a kernel's C is the same wherever it occurs, and its object file can be cached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from relaylang.backends.cpu.kernel import Kernel, Stage, nbytes
from relaylang.backends.cpu.origin import origins
from relaylang.backends.cpu.program import PackIn, Program, Run, every
from relaylang.backends.cpu.units import Piece
from relaylang.kernels.dtypes import CTYPES, literal
from relaylang.kernels.nest import Buf
from relaylang.kernels.render import Renderer
from relaylang.kernels.sizes import Size, sizes_in

#: Kernels of no more elements are small. Functions that read their extents from a table read no more than the second.
_SMALL, _NUMBERS = 1 << 14, 32
#: The most lines of a function's comment.
_NOTES = 12


def printable(text: str) -> str:
    """A text that fits a comment, whatever it holds."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _values(buf: Buf, data: np.ndarray) -> str:
    """The elements of a table. Many equal ones are written once."""
    values = np.asarray(data).ravel().tolist()
    if len(values) > 8 and len(set(values)) == 1:
        return f"[0 ... {len(values) - 1}] = {literal(values[0], buf.dtype)}"
    return ", ".join(literal(v, buf.dtype) for v in values)


def _is_small(kernel: Kernel) -> bool:
    """Whether a kernel is small: its tensors have no sizes, and few elements together."""
    buffers = [*kernel.params, *[pack.target for pack in kernel.packs], *kernel.outs, *kernel.work]
    total = sum(buf.size for buf in buffers)
    return not isinstance(total, Size) and total <= _SMALL


def sizes_of(names: Iterable[str], where: str) -> list[str]:
    """Sizes (`relaylang.kernels.sizes`) by their names, taken from a table."""
    numbers = sorted(int(name.removeprefix("size")) for name in names)
    return [f"  const long size{n} = (long)((const int64_t*){where})[{n}];" for n in numbers]


def _extents(code: Renderer, where: str) -> list[str]:
    """The extents that a function reads from a table."""
    return [f"  const long extent{n} = (long)((const int64_t*){where})[{n}];" for n in (code.extents or {}).values()]


class KernelCode:
    """Collects the functions of a file, and writes those of kernels."""

    #: Of programs with more small kernels than this, those that differ in extents alone are one function.
    many = 256

    def __init__(self) -> None:
        self.pieces: dict[str, Piece] = {}
        #: What a function's comment says: its operators, and the lines of the program that it came from.
        self.notes: dict[str, list[str]] = {}
        #: The names that a kernel's own functions have here, by its identity.
        self.shared: dict[int, dict[str, str]] = {}
        #: Whether small kernels share functions; and the extents of such functions, by the identities of kernels and packs.
        self.shares = False
        self.extents: dict[int, list[int]] = {}
        #: The names of kernels' own functions, by their identity; of stages and packs, by their text; of kernels' stages.
        self._blocks: dict[int, str] = {}
        self._stage_names: dict[str, str] = {}
        self._pack_names: dict[str, str] = {}
        self._kernels: dict[int, list[tuple[str, Stage]]] = {}

    def add(self, name: str, text: str, signature: str, uses: Iterable[str], helpers: Iterable[str]) -> None:
        """Take a function, with those that it calls, and what it uses of `csrc/`."""
        self.pieces[name] = Piece(name, text, f"{signature};", frozenset(uses), frozenset(helpers))

    def share(self, programs: Iterable[Program]) -> None:
        """Let small kernels share functions where programs have many."""
        kernels = {id(i.kernel): i.kernel for program in programs for i in every(program.run) if isinstance(i, Run)}
        self.shares = sum(map(_is_small, kernels.values())) > self.many

    def _shared(self, kernel: Kernel) -> dict[str, str]:
        """The kernel's own functions, each given a name by its text, so that equal ones are one."""
        names: dict[str, str] = {}
        for function in kernel.functions:
            name = self._blocks.get(id(function))
            if name is None:
                code = Renderer(0, {**names, function.name: "BLOCK"}).function(function)
                text = "\n".join(code.lines)
                name = f"block_{_digest(text)}"
                if not code.calls:  # calls are of the kernel's functions, whatever they are in the next kernel
                    self._blocks[id(function)] = name
                if name not in self.pieces:
                    signature = Renderer(0, {function.name: name}).signature(function)
                    self.add(name, text.replace("BLOCK(", f"{name}("), signature, code.calls, code.helpers)
            names[function.name] = name
        return names

    def _declarations(self, kernel: Kernel, code: Renderer) -> list[str]:
        """The buffers that a stage uses, as pointers taken from `b`, and its sizes."""
        out = []
        number = 0
        groups: Sequence[tuple[Sequence, bool]] = (
            (kernel.params, True),
            ([p.target for p in kernel.packs], True),
            (kernel.outs, False),
        )
        for bufs, constant in groups:
            for buf in bufs:
                if buf.name in code.names:
                    const = "const " if constant else ""
                    # What may be overwritten is the result's memory, perhaps.
                    alone = "" if number in kernel.in_place or (kernel.in_place and not constant) else " restrict"
                    out.append(f"  {const}{CTYPES[buf.dtype]}*{alone} {buf.name} = b[{number}];")
                number += 1
        at = 0
        sizes = set(code.sizes)
        for buf in kernel.work:
            if buf.name in code.names:
                sizes.update(sizes_in(at))
                out.append(f"  {CTYPES[buf.dtype]}* restrict {buf.name} = (void*)((char*)b[{number}] + {code.number(at)});")
            at += nbytes(buf)
        for buf, data in kernel.constants:
            if buf.name in code.names:
                out.append(f"  static const {CTYPES[buf.dtype]} {buf.name}[{max(1, buf.size)}] = {{{_values(buf, data)}}};")
        number += bool(kernel.work)
        if kernel.fault.name in code.names:
            out.append(f"  int64_t* restrict {kernel.fault.name} = b[{number}];")
        where = f"b[{number + bool(kernel.sites)}]"
        return [*sizes_of(sizes, where), *_extents(code, where), *out]

    def kernel(self, item: Run, sized: bool) -> list[tuple[str, Stage]]:
        """The C functions of the stages of an instruction's kernel. The extents of a `sized` program lie in its table of sizes."""
        kernel = item.kernel
        stages = self._kernels.get(id(kernel))
        if stages is None:
            stages = self._kernels[id(kernel)] = self._stages(kernel, sized)
        for number, (name, _) in enumerate(stages):
            head = f"{item.text} (stage {number + 1} of {len(stages)})" if len(stages) > 1 else item.text
            self._note(name, [head, *origins(item.function)])
        return stages

    def _note(self, name: str, lines: Sequence[str]) -> None:
        known = self.notes.setdefault(name, [])
        if len(known) < _NOTES:
            known += [line for line in map(printable, lines) if line not in known]
            known[_NOTES:] = ["..."] if len(known) > _NOTES else []

    def _own_extents(self, kernel: Kernel, sized: bool) -> dict[int, int] | None:
        """The extents that a kernel's functions read from a table of its own: none yet, or None without one."""
        return {} if self.shares and not sized and _is_small(kernel) else None

    def _stages(self, kernel: Kernel, sized: bool) -> list[tuple[str, Stage]]:
        names = self.shared[id(kernel)] = self._shared(kernel)
        extents = self._own_extents(kernel, sized)
        codes = [Renderer(functions=names, extents=extents).body(stage.body) for stage in kernel.stages]
        if extents is not None and len(extents) > _NUMBERS:
            codes, extents = [Renderer(functions=names).body(stage.body) for stage in kernel.stages], None
        out = []
        for stage, code in zip(kernel.stages, codes):
            declared = self._declarations(kernel, code)
            if "lo" not in code.names:
                declared.append("  (void)lo; (void)hi;")
            body = "(void* const* b, long lo, long hi) {\n" + "\n".join([*declared, *code.lines]) + "\n}"
            name = self._stage_names.get(body)
            if name is None:
                name = self._stage_names[body] = f"kernel_{_digest(body)}"
                signature = f"void {name}(void* const* b, long lo, long hi)"
                self.add(name, f"R_KERNEL void {name}{body}", signature, code.calls, code.helpers)
            out.append((name, stage))
        self.extents[id(kernel)] = list(extents or ())
        return out

    def pack(self, item: PackIn, sized: bool) -> str:
        """The C function that packs a parameter."""
        pack = item.pack
        extents = self._own_extents(item.kernel, sized)
        code = Renderer(extents=extents).body(pack.body)
        self.extents[id(pack)] = list(extents or ())
        lines = ["(void* const* b) {"]
        places = {buf.name: (number, buf) for number, buf in reversed([*enumerate(pack.sources)])}
        lines += [f"  const {CTYPES[buf.dtype]}* restrict {name} = b[{n}];" for name, (n, buf) in reversed(places.items())]
        lines.append(f"  {CTYPES[pack.target.dtype]}* restrict {pack.target.name} = b[{len(pack.sources)}];")
        where = f"b[{len(pack.sources) + 1}]"
        text = "\n".join([*lines, *sizes_of(code.sizes, where), *_extents(code, where), *code.lines, "}"])
        name = self._pack_names.get(text)
        if name is None:
            name = self._pack_names[text] = f"pack_{_digest(text)}"
            self.add(name, f"R_KERNEL void {name}{text}", f"void {name}(void* const* b)", code.calls, code.helpers)
            self._note(name, ["weights into the kernel's layout"])
        return name


__all__ = ["KernelCode", "printable", "sizes_of"]
