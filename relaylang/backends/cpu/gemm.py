"""The matrix kernel: a block of results held in registers while the sum runs.

`rows` results times `vectors` vectors of columns are accumulated at once. For each step of the sum, one row of packed
weights is loaded and each row's input value is broadcast straight from the data: which addresses these are is given as
constant offsets, so that the same kernel serves products (rows of a matrix), 1x1 convolutions (neighbouring pixels) and
convolutions at any stride (an implicit im2col, never written to memory).
"""
from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.isa import Isa


def vector_types(dtype: str) -> tuple[str, str, str]:
    """The element type, the vector type, and the suffix of its macros."""
    return ("int32_t", "r_vi", "vi") if dtype == "int32" else ("float", "r_vf", "vf")


def block_kernel(name: str, isa: Isa, dtype: str, vectors: int, rows: Sequence[int],
                 loops: Sequence[tuple[int, int]], taps: Sequence[int]) -> str:  # fmt: skip
    """C of `name(x, w, t)`: `t[r][c] = sum over loops and taps of x[rows[r] + offsets] * w[step][c]`.

    `loops` are (count, step in x) from outside in, `taps` the offsets of the innermost unrolled steps; `w` is packed as
    [loops...][taps][vectors * lanes] and, like `t`, aligned to 64 bytes.
    """
    ctype, vec, suffix = vector_types(dtype)
    lanes = isa.lanes
    out = [
        "static __attribute__((noinline)) void "
        f"{name}(const {ctype}* restrict x, const {ctype}* restrict w, {ctype}* restrict t) {{"
    ]
    for r in range(len(rows)):
        out.append("  " + vec + " " + ", ".join(f"c{r}_{v} = {{0}}" for v in range(vectors)) + ";")
    pad = "  "
    base = "x"
    for n, (count, step) in enumerate(loops):
        out.append(f"{pad}const {ctype}* x{n} = {base};")
        out.append(f"{pad}for (long l{n} = 0; l{n} < {count}; l{n}++, x{n} += {step}) {{")
        base = f"x{n}"
        pad += "  "
    for n, tap in enumerate(taps):
        out.append(f"{pad}{{")
        for v in range(vectors):
            out.append(f"{pad}  const {vec} w{v} = *(const {vec}*)(w + {(n * vectors + v) * lanes});")
        for r, offset in enumerate(rows):
            steps = " ".join(f"c{r}_{v} = r_fma_{suffix}(a, w{v}, c{r}_{v});" for v in range(vectors))
            out.append(f"{pad}  {{ const {vec} a = r_splat_{suffix}({base}[{offset + tap}]); {steps} }}")
        out.append(f"{pad}}}")
    out.append(f"{pad}w += {len(taps) * vectors * lanes};")
    for _ in loops:
        pad = pad[:-2]
        out.append(f"{pad}}}")
    for r in range(len(rows)):
        stores = " ".join(f"*({vec}*)(t + {(r * vectors + v) * lanes}) = c{r}_{v};" for v in range(vectors))
        out.append(f"  {stores}")
    out.append("}")
    return "\n".join(out)


def steps_of(count: int, step: int) -> tuple[list[tuple[int, int]], list[int]]:
    """A plain sum over `count` inputs `step` apart, unrolled by up to four."""
    for unroll in (4, 3, 2):
        if count % unroll == 0:
            return [(count // unroll, step * unroll)], [step * n for n in range(unroll)]
    return [(count, step)], [0]


def tiles_of(length: int, most: int) -> list[tuple[int, int, int]]:
    """`length` rows cut into blocks of nearly equal size, none above `most`: runs of (first, size, how many)."""
    count = -(-length // most)
    size, extra = divmod(length, count)
    runs = []
    if extra:
        runs.append((0, size + 1, extra))
    if count - extra:
        runs.append((extra * (size + 1), size, count - extra))
    return runs
