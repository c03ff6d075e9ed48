"""The matrix kernel: a block of results held in registers while the sum runs.

`rows` results times `vectors` vectors of columns are accumulated at once. Each step of the sum loads one row of packed
weights. It broadcasts each row's input value straight from the data.

The addresses of the input values are constant offsets. So the same kernel serves products (rows of a matrix) and 1x1
convolutions (neighbouring pixels). It also serves convolutions at any stride: an implicit im2col, never written to
memory.
"""
from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.isa import Isa


def vector_types(dtype: str) -> tuple[str, str, str]:
    """The element type, the vector type, and the suffix of its macros."""
    wide = {"int32": ("int32_t", "r_vi", "vi"), "int64": ("int64_t", "r_vl", "vl"), "float64": ("double", "r_vd", "vd")}
    return wide.get(dtype, ("float", "r_vf", "vf"))


def block_kernel(name: str, isa: Isa, dtype: str, vectors: int, rows: Sequence[int], depth: int, taps: Sequence[int]) -> str:
    """C of `name(x, w, t, n0, s0, ...)`: `t[r][c] = sum over loops and taps of x[rows[r] + offsets] * w[step][c]`.

    There are `depth` loops around the taps; loop `i` makes `n<i>` steps of `s<i>` elements in x. `taps` are the offsets of
    the innermost, unrolled steps. `w` is packed as [loops...][taps][vectors * lanes]; it and `t` are aligned to 64 bytes.
    """
    ctype, vec, suffix = vector_types(dtype)
    lanes = isa.lanes
    loops = "".join(f", long n{n}, long s{n}" for n in range(depth))
    out = [
        "static __attribute__((noinline)) void "
        f"{name}(const {ctype}* restrict x, const {ctype}* restrict w, {ctype}* restrict t{loops}) {{"
    ]
    for r in range(len(rows)):
        out.append("  " + vec + " " + ", ".join(f"c{r}_{v} = {{0}}" for v in range(vectors)) + ";")
    pad = "  "
    base = "x"
    for n in range(depth):
        out.append(f"{pad}const {ctype}* x{n} = {base};")
        out.append(f"{pad}for (long l{n} = 0; l{n} < n{n}; l{n}++, x{n} += s{n}) {{")
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
    for _ in range(depth):
        pad = pad[:-2]
        out.append(f"{pad}}}")
    for r in range(len(rows)):
        stores = " ".join(f"*({vec}*)(t + {(r * vectors + v) * lanes}) = c{r}_{v};" for v in range(vectors))
        out.append(f"  {stores}")
    out.append("}")
    return "\n".join(out)


def turn_kernel(name: str, isa: Isa, dtype: str) -> str:
    """C of `name(t, n, r, m)`: a square of `lanes` by `lanes` numbers turned, `r[c * m + i] = t[i * n + c]`.

    Rows trade halves, quarters and so on until each has become a column.
    """
    ctype, vec, suffix = vector_types(dtype)
    lanes = isa.lanes
    out = [f"static __attribute__((noinline)) void {name}(const {ctype}* restrict t, long n, {ctype}* restrict r, long m) {{"]
    for i in range(lanes):
        out.append(f"  {vec} a{i} = *(const {vec}*)(t + {i} * n);")
    out.append(f"  {vec} b;")
    step = 1
    while step < lanes:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        for i in range(lanes):
            if not i & step:
                first, second = f"a{i}", f"a{i + step}"
                out.append(f"  b = r_mix_{suffix}({first}, {second}, {', '.join(map(str, low))});")
                out.append(f"  {second} = r_mix_{suffix}({first}, {second}, {', '.join(map(str, high))}); {first} = b;")
        step *= 2
    for i in range(lanes):
        out.append(f"  *({vec}u*)(r + {i} * m) = a{i};")
    out.append("}")
    return "\n".join(out)
