"""Where the memory of a program lies: sections of object files, for which a linker script may have other memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.backends.aot.file import array

#: Memory -> its section. The constants' and the workspace's are TVM's. The NPU's own memory is that of Arm's evaluation kit.
SECTIONS: Mapping[str, str] = {
    "CONSTANTS": ".rodata.tvm",
    "WORKSPACE": ".bss.noinit.tvm",
    "FAST": ".bss.NoInit.ethos_u_cache",
}
#: Addresses of constants are multiples of this, as drivers and vectors want them.
ALIGN = 16
#: Sections are a matter of ELF files.
SECTION = ["#ifdef __ELF__", "#define R_SECTION(name) __attribute__((section(name)))", "#else", "#define R_SECTION(name)", "#endif"]


def names(prefix: str, memories: Sequence[str]) -> list[str]:
    """Lines of the header that name the sections of memories, unless the compiler's command line does."""
    lines = []
    for memory in memories:
        macro = f"{prefix.upper()}_{memory}_SECTION"
        lines += [f"#ifndef {macro}", f'#define {macro} "{SECTIONS[memory]}"', "#endif"]
    return lines


def place(prefix: str, memory: str) -> str:
    """The attribute that puts an array into the section of a memory. The C has `SECTION` before."""
    return f" R_SECTION({prefix.upper()}_{memory}_SECTION)"


def head(prefix: str) -> str:
    """What a file with constants begins with."""
    return "\n".join([f'#include "{prefix}.h"', '#pragma GCC diagnostic ignored "-Woverlength-strings"', *SECTION])


def stored(prefix: str, name: str, content: bytes) -> str:
    """The definition of a constant."""
    return array(name, content, ALIGN, place(prefix, "CONSTANTS"))


__all__ = ["ALIGN", "SECTION", "SECTIONS", "head", "names", "place", "stored"]
