"""Many kernels in one C program, which reads their buffers and writes them again; and the evaluator's results."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.emit import fragments, needed
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.evaluate import run
from relaylang.kernels.render import Renderer
from tests.kernels.generator import Generated

#: Errors of memory and undefined behaviour end the program.
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize=alignment")

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
typedef struct { void (*f)(void* const*, long, long); long units, count, sizes[8]; } r_entry;
static const r_entry table[] = {
%s
};
int main(void) {
  for (size_t n = 0; n < sizeof table / sizeof table[0]; n++) {
    void* b[8];
    for (long i = 0; i < table[n].count; i++) {
      if (posix_memalign(&b[i], 64, table[n].sizes[i])) return 3;
      if (fread(b[i], 1, table[n].sizes[i], stdin) != (size_t)table[n].sizes[i]) return 4;
    }
    table[n].f(b, 0, table[n].units);
    for (long i = 0; i < table[n].count; i++) {
      fwrite(b[i], 1, table[n].sizes[i], stdout);
      free(b[i]);
    }
    fflush(stdout);
  }
  return 0;
}
"""


def source(kernels: Sequence[Generated], lanes: int) -> str:
    """The C program of some kernels."""
    parts, rows = [], []
    helpers: set[str] = set()
    for k in kernels:
        codes = [*[Renderer(0).function(f) for f in k.functions], Renderer().body(k.body)]
        helpers |= {h for code in codes for h in code.helpers}
        parts += ["\n".join(code.lines) for code in codes[:-1]]
        head = [f"static void k{k.seed}(void* const* b, long lo, long hi) {{"]
        for n, buf in enumerate(k.buffers):
            const = "" if buf.written else "const "
            head.append(f"  {const}{CTYPES[buf.dtype]}* restrict {buf.name} = b[{n}];")
        parts.append("\n".join([*head, *codes[-1].lines, "}"]))
        sizes = ", ".join(str(buf.data.nbytes) for buf in k.buffers)
        rows.append(f"  {{k{k.seed}, {k.units}, {len(k.buffers)}, {{{sizes}}}}},")
    text = "\n".join([*[fragments()[name].text for name in needed(helpers)], *parts])
    return f"#define R_LOCAL static\n#define R_LANES {lanes or 4}\n{text}\n{_MAIN % chr(10).join(rows)}"


def compiled(
    kernels: Sequence[Generated], compiler: Compiler, lanes: int, folder: Path, extra: Sequence[str] = ()
) -> list[list[np.ndarray]]:
    """What the compiled kernels leave in their buffers. Raises `RuntimeError` with what a compiler or a program says."""
    path, target = folder / "kernels.c", folder / "kernels"
    path.write_text(source(kernels, lanes), encoding="utf-8")
    flags = [flag for flag in compiler.flags if flag not in ("-fPIC", "-fvisibility=hidden")]
    built = subprocess.run([*compiler.command, *flags, *extra, "-o", str(target), str(path), "-lm"], capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(built.stderr[:2000])
    given = b"".join(buf.data.tobytes() for k in kernels for buf in k.buffers)
    done = subprocess.run([str(target)], input=given, capture_output=True)
    if done.returncode:
        at, left = 0, len(done.stdout)
        while at < len(kernels) and left >= (size := sum(buf.data.nbytes for buf in kernels[at].buffers)):
            at, left = at + 1, left - size
        raise RuntimeError(f"kernel {kernels[at].seed} ends with {done.returncode}: {done.stderr.decode()[:2000]}")
    out, place = [], 0
    for k in kernels:
        row = []
        for buf in k.buffers:
            row.append(np.frombuffer(done.stdout, buf.data.dtype, buf.data.size, place))
            place += buf.data.nbytes
        out.append(row)
    return out


def evaluated(k: Generated, fused: bool = True) -> list[np.ndarray]:
    """What a kernel leaves in its buffers, by the evaluator."""
    arrays = {buf.name: buf.data.copy() for buf in k.buffers}
    run(k.body, arrays, functions=k.functions, units=(0, k.units), fused=fused)
    return list(arrays.values())


def equal(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether two arrays have the same bits; one nan is as good as another."""
    if one.dtype.kind in "fV":
        wide = (one.astype(np.float64), two.astype(np.float64))
        same = (np.isnan(wide[0]) & np.isnan(wide[1])) | (one.view(f"u{one.itemsize}") == two.view(f"u{one.itemsize}"))
        return bool(same.all())
    return one.tobytes() == two.tobytes()


def differences(
    kernels: Sequence[Generated], expected: Sequence[Sequence[np.ndarray]], found: Sequence[Sequence[np.ndarray]]
) -> list[str]:
    """Where the results of kernels differ: the kernel, the buffer, and its first element that does."""
    out = []
    for k, one, two in zip(kernels, expected, found):
        for buf, x, y in zip(k.buffers, one, two):
            if not equal(x, y):
                at = next(n for n in range(x.size) if not equal(x[n : n + 1], y[n : n + 1]))
                out.append(f"kernel {k.seed}: {buf.name}[{at}] ({buf.dtype}) is {x[at]} by the evaluator, {y[at]} compiled")
    return out
