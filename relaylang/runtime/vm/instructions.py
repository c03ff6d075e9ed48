"""The instructions of the Relay VM: names, and what each word behind the opcode is.

The numbers of the instructions are those of `BASE`, and behind them those of the scalar instructions. A program's file
lists its scalar instructions, one for an operator and its element types: `add.int32`.

Kinds of operands:

| kind | word |
|---|---|
| `d` | register that gets a value |
| `s` | register that gets a scalar; it lies behind the registers that may hold objects |
| `r` | register that is read |
| `t` | register that is read; with the bit `TAKE` its value moves |
| `n` | count; so many operands `t` follow |
| `p` | kernel; counts of its inputs and results follow, then inputs `r` and results `d` |
| `f` `c` `g` `y` | number of a function, constant, constructor, tensor type |
| `m` | position inside a value, from 0 |
| `e` | element type |
| `i` | number |
| `j` | place in the code |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: The bit of an operand `t` whose register is empty afterwards.
TAKE = 0x40000000
MASK = TAKE - 1


@dataclass(frozen=True)
class Instruction:
    """An instruction: its name, the kinds of its operands, and whether the next one in the code never follows it."""

    name: str
    kinds: str
    ends: bool = False


BASE: tuple[Instruction, ...] = (
    Instruction("Move", "dt"),
    Instruction("Ret", "t", ends=True),
    Instruction("Fatal", "it", ends=True),
    Instruction("Invoke", "dfn"),
    Instruction("InvokeTail", "fn", ends=True),
    Instruction("InvokeClosure", "dtn"),
    Instruction("InvokeClosureTail", "tn", ends=True),
    Instruction("InvokePacked", "p"),
    Instruction("AllocTuple", "dn"),
    Instruction("AllocADT", "dgn"),
    Instruction("AllocClosure", "dfn"),
    Instruction("GetField", "dtm"),
    Instruction("GetTag", "sr"),
    Instruction("If", "rj"),
    Instruction("IfTag", "rgj"),
    Instruction("Goto", "j", ends=True),
    Instruction("LoadConst", "dc"),
    Instruction("LoadConsti", "sei"),
    Instruction("LoadFree", "dm"),
    Instruction("LoadSelf", "d"),
    Instruction("Drop", "d"),
    Instruction("NewRef", "dt"),
    Instruction("ReadRef", "dr"),
    Instruction("WriteRef", "rt"),
    Instruction("ReshapeTensor", "dty"),
)
NUMBERS: dict[str, int] = {instruction.name: number for number, instruction in enumerate(BASE)}

#: Element types by the number that a value has for its own. Scalars of these lie in registers.
DTYPES: tuple[str, ...] = (
    "",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int4",
    "uint4",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
)
DTYPE_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(DTYPES) if name}

#: The reasons for which a program stops, by the number that the machine gives.
FAULTS: tuple[str, ...] = (
    "none",
    "match",
    "division",
    "shift",
    "power",
    "memory",
    "empty",
    "callee",
    "arity",
    "value",
    "kernel",
    "extents",
)


def table(scalars: Sequence[tuple[str, int]]) -> list[Instruction]:
    """All instructions of a program by number. `scalars` has the name and the count of operands of each scalar one."""
    return [*BASE, *[Instruction(name, "s" + "r" * count) for name, count in scalars]]
