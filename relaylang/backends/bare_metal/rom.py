"""Constants in C, in the section that TVM has for them. A linker script may give it a memory of its own."""

from __future__ import annotations

from relaylang.backends.aot.file import array

#: What a file with constants begins with.
HEAD = '#ifdef __ELF__\n#define PLACE __attribute__((section(".rodata.tvm")))\n#else\n#define PLACE\n#endif'
#: Addresses of constants are multiples of this, as drivers and vectors want them.
ALIGN = 16


def stored(name: str, content: bytes) -> str:
    """The definition of a constant."""
    return array(name, content, ALIGN, " PLACE")


__all__ = ["ALIGN", "HEAD", "stored"]
