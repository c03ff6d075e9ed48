"""Many kernels in one C program, which reads their buffers and writes them again; and the evaluator's results."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.fragments import fragments, needed
from relaylang.kernels import text
from relaylang.kernels.check import check, check_function
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.evaluate import run
from relaylang.kernels.nest import Buf
from relaylang.kernels.ops import OPERATIONS, helper_of
from relaylang.kernels.reader import parse
from relaylang.kernels.render import Renderer
from relaylang.kernels.same import same
from tests.kernels import rewritten
from tests.kernels.generator import Generated
from tests.kernels.values import FLOATS, FUNCTIONS

#: Errors of memory and undefined behaviour end the program. Alignment is the machine's affair, and other checks find nulls.
#: Checks are calls and traps, which compilers are quicker with.
SANITIZED = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize=alignment,null,object-size",
             "--param=asan-instrumentation-with-call-threshold=0", "-fsanitize-undefined-trap-on-error",
             "-fno-asynchronous-unwind-tables")  # fmt: skip

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
typedef struct { void (*f)(void* const*, const long*, long, long); long units, z[2], count, bytes[12]; } r_entry;
static const r_entry table[] = {
%s
};
int main(void) {
  for (size_t n = 0; n < sizeof table / sizeof table[0]; n++) {
    void* b[12];
    for (long i = 0; i < table[n].count; i++) {
      if (posix_memalign(&b[i], 64, table[n].bytes[i])) return 3;
      if (fread(b[i], 1, table[n].bytes[i], stdin) != (size_t)table[n].bytes[i]) return 4;
    }
    table[n].f(b, table[n].z, 0, table[n].units);
    for (long i = 0; i < table[n].count; i++) {
      fwrite(b[i], 1, table[n].bytes[i], stdout);
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
        extents: dict[int, int] | None = {} if k.seed % 2 and not k.sizes else None
        codes = [*[Renderer(0).function(f) for f in k.functions], Renderer(extents=extents).body(k.body)]
        helpers |= {h for code in codes for h in code.helpers}
        parts += ["\n".join(code.lines) for code in codes[:-1]]
        head = [f"static void k{k.seed}(void* const* b, const long* z, long lo, long hi) {{"]
        for n, buf in enumerate(k.buffers):
            const = "" if buf.written else "const "
            head.append(f"  {const}{CTYPES[buf.dtype]}* restrict {buf.name} = b[{n}];")
        head += [f"  const long {name} = z[{name.removeprefix('size')}];" for name in sorted(codes[-1].sizes)]
        head += [f"  const long extent{n} = {value};" for value, n in (extents or {}).items()]
        parts.append("\n".join([*head, *codes[-1].lines, "}"]))
        sizes = ", ".join(str(buf.data.nbytes) for buf in k.buffers)
        given = ", ".join(map(str, [*k.sizes.values(), 0, 0][:2]))
        rows.append(f"  {{k{k.seed}, {k.units}, {{{given}}}, {len(k.buffers)}, {{{sizes}}}}},")
    helped = "\n".join([*[fragments()[name].text for name in needed(helpers)], *parts])
    return f"#define R_LOCAL static\n#define R_LANES {lanes or 4}\n{helped}\n{_MAIN % chr(10).join(rows)}"


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


@contextmanager
def machine(compiler: Compiler, folder: Path) -> Iterator[None]:
    """The evaluator has the functions of the C library and the polynomials of `csrc/`, to the bit."""
    forms = {(name, dtype): OPERATIONS[name].form(dtype, dtype) for name in FUNCTIONS for dtype in FLOATS}
    helpers = {helper for form in forms.values() for helper in helper_of(form)}
    lines = [fragments()[name].text for name in needed(helpers)]
    for (name, dtype), form in forms.items():
        one = form.format("x[i]", "y[i]")
        kind = CTYPES[dtype]
        lines.append(f"void m_{name}_{dtype}(const {kind}* x, const {kind}* y, {kind}* z, long n)")
        lines.append(f"{{ for (long i = 0; i < n; i++) z[i] = {one}; }}")
    path, target = folder / "functions.c", folder / "functions.so"
    path.write_text("\n".join(lines), encoding="utf-8")
    flags = [flag for flag in compiler.flags if flag != "-fvisibility=hidden"]
    subprocess.run([*compiler.command, *flags, "-shared", "-o", str(target), str(path), "-lm"], check=True)
    library = ctypes.CDLL(str(target))

    def meaning(name: str) -> Any:
        def apply(x: np.ndarray, y: Any = None) -> np.ndarray:
            if x.dtype.kind != "f":
                return OPERATIONS_BEFORE[name].meaning(x, y)
            x, out = np.ascontiguousarray(x).reshape(-1), np.empty(x.size, x.dtype)
            y = x if y is None else np.ascontiguousarray(y, x.dtype).reshape(-1)
            arrays = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, y, out)]
            getattr(library, f"m_{name}_{x.dtype}")(*arrays, ctypes.c_long(x.size))
            return out if out.size > 1 else out[0]

        return apply

    OPERATIONS_BEFORE = dict(OPERATIONS)
    with mock.patch.dict(OPERATIONS, {name: replace(OPERATIONS[name], meaning=meaning(name)) for name in FUNCTIONS}):  # type: ignore[arg-type]
        yield


def evaluated(k: Generated, fused: bool = True) -> list[np.ndarray]:
    """What a kernel leaves in its buffers, by the evaluator."""
    arrays = {buf.name: buf.data.copy() for buf in k.buffers}
    run(k.body, arrays, k.sizes, functions=k.functions, units=(0, k.units), fused=fused)
    return list(arrays.values())


def read_back(k: Generated) -> Generated:
    """The kernel of a kernel's text. Raises `AssertionError` where it is another."""
    kinds = [("out" if b.written else "in", Buf(b.name, b.shape, b.dtype)) for b in k.buffers]
    lines = [*(line for f in k.functions for line in text.function(f)), *text.kernel(text.Part("k", kinds, k.body))]
    listing = parse("\n".join(lines))
    body = listing.parts[0].body
    assert same(listing.functions, k.functions) and same(body, k.body), k.seed
    return replace(k, body=body, functions=listing.functions)


def prepared(k: Generated, lanes: int, fused: bool) -> tuple[Generated, list[np.ndarray], list[str]]:
    """A kernel for compilers, the evaluator's results of the generated one, and what differs between both.

    Every third kernel is compiled as it is, every third as its text is read back, every third after rewrites.
    """
    assert check(k.body, {b.name for b in k.buffers}) == [], k.seed
    assert [p for f in k.functions for p in check_function(f)] == [], k.seed
    expected = evaluated(k, fused)
    if k.seed % 3 == 0:
        return k, expected, []
    if k.seed % 3 == 1:
        return read_back(k), expected, []
    steps = rewritten.steps(k, lanes)
    variants = [(name, replace(k, body=body, units=rewritten.units(body, k))) for name, body in steps]
    if not variants:
        return k, expected, []
    wrong: list[str] = []
    last = variants[-1][1]
    if differences([k], [expected], [evaluated(last, fused)]):
        for name, variant in variants:
            wrong = [f"after {name}: {line}" for line in differences([k], [expected], [evaluated(variant, fused)])]
            if wrong:
                break
    problems = check(last.body, {b.name for b in k.buffers})
    return last, expected, wrong + [f"kernel {k.seed} after {[name for name, _ in steps]}: {p}" for p in problems]


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
                out.append(f"kernel {k.seed}: {buf.name}[{at}] ({buf.dtype}) is {x[at]} by the evaluator, {y[at]} else")
    return out
