"""A program of the VM as text: its instructions, each with its line of the Relay program."""

from __future__ import annotations

from relaylang.diagnostics.source import Span
from relaylang.ir import type_text
from relaylang.runtime.vm.instructions import DTYPES, FAULTS, MASK, TAKE
from relaylang.runtime.vm.program import UNKNOWN, VMFunction, VMProgram


def listing(program: VMProgram) -> str:
    """The functions of a program and its tables, as `relay disasm` prints them.

    `$3` is a register, `$3!` one whose value moves. `c0` is a constant, `k0` a kernel, `L12` a place in the code.
    """
    lines = [f"# target {program.target}, {len(program.functions)} functions, {len(program.code)} words"]
    for n, array in enumerate(program.constants):
        shown = str(array.item()) if array.ndim == 0 else ""
        lines.append(f"c{n} = {_type(array.dtype.name, array.shape)} {shown}".rstrip())
    others = {packed.other for packed in program.packed}
    for n, packed in enumerate(program.packed):
        results = ", ".join(_type(*spec) for spec in packed.outputs) or "when it runs"
        where = "interpreted" if packed.region < 0 else "compiled" if packed.module is None else "compiled for unknown extents"
        where += " that broadcast" if n in others else f", or k{packed.other}" if packed.other >= 0 else ""
        lines.append(f"k{n} = {where}, {packed.inputs} inputs, results: {results}")
    for function in program.functions:
        lines += ["", *_function(program, function)]
    return "\n".join(lines) + "\n"


def _function(program: VMProgram, function: VMFunction) -> list[str]:
    types = [type_text(ty, 60) if ty is not None else "_" for ty in function.types]
    head = f"{function.name}({', '.join(types)})"
    extra = f", {function.captured} captured" if function.captured else ""
    lines = [f"{head}: {function.registers} registers, {function.registers - function.generals} of scalars{extra}"]
    starts, targets = [], set()
    at = function.entry
    while at < function.end:
        operands = program.operands(at)
        starts.append((at, operands))
        targets |= {word for kind, word in operands if kind == "j"}
        at += 1 + len(operands)
    before: str | None = None
    for at, operands in starts:
        name = program.table[int(program.code[at])].name
        text = ", ".join(_operand(program, kind, word, name) for kind, word in operands if kind != "#")
        mark = f"L{at}:" if at in targets else ""
        line = f"  {mark:<7}{at:>6}  {name:<20} {text}"
        place = _place(program.place(at))
        if place and place != before:
            line = f"{line:<72} # {place}"
        before = place
        lines.append(line.rstrip())
    return lines


def _place(span: Span | None) -> str:
    if span is None:
        return ""
    return f"{span}  {span.source.line(span.line).strip()[:100]}"


def _operand(program: VMProgram, kind: str, word: int, name: str) -> str:
    if kind in "dsrt":
        return f"${word & MASK}" + ("!" if kind == "t" and word & TAKE else "")
    if kind == "f":
        return program.functions[word].name
    if kind == "g":
        return program.constructors[word].name_hint
    if kind == "y":
        return _type(*program.specs[word])
    if kind == "e":
        return DTYPES[word]
    if kind == "i" and name == "Fatal":
        return FAULTS[word] if 0 <= word < len(FAULTS) else str(word)
    return {"c": "c", "p": "k", "j": "L", "m": "."}.get(kind, "") + str(word)


def _type(dtype: str, shape: tuple[int, ...]) -> str:
    extents = ", ".join("?" if d == UNKNOWN else str(d) for d in shape)
    return f"Tensor[({extents}), {dtype}]" if shape else dtype
