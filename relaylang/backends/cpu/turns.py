"""Loops that turn a matrix: they write along one axis and read along another.

Such loops wait for memory: each element read is alone in its line of the cache. Here squares are turned in registers, of
as many numbers as a vector has. Their rows are read along the one axis, and written along the other.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relaylang.backends.cpu.gemm import vector_types
from relaylang.backends.cpu.isa import Isa
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.index import Affine
from relaylang.kernels.nest import Nest, Scalar
from relaylang.kernels.sizes import surely_less

#: Element types that vectors are made of.
_TURNED = ("float32", "int32")
#: Fewer elements than this are not worth the code.
_FEW = 2048
#: The squares in a unit of work.
_SQUARES = 16


def turn_kernel(name: str, isa: Isa, dtype: str) -> str:
    """C of `name(t, n, r, m)`: a square of `lanes` by `lanes` numbers turned, `r[c * m + i] = t[i * n + c]`.

    Rows trade halves, quarters and so on until each has become a column.
    """
    ctype, vec, suffix = vector_types(dtype)
    lanes = isa.lanes
    out = [f"static __attribute__((noinline)) void {name}(const {ctype}* restrict t, long n, {ctype}* restrict r, long m) {{"]
    for i in range(lanes):
        out.append(f"  {vec} a{i} = *(const {vec}u*)(t + {i} * n);")
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


def _read_across(loads: Sequence[Scalar], axes: Sequence[int], extents: Sequence[int], lanes: int) -> tuple[Scalar, int] | None:
    """The one load that runs along another axis than the last of `axes`, and that axis."""
    last = axes[-1]
    across = [n for n in loads if n.data.terms.get(last, 0) not in (0, 1)]
    if len(across) != 1 or extents[last] < lanes:
        return None
    for axis in axes[:-1]:
        if across[0].data.terms.get(axis, 0) == 1 and extents[axis] >= lanes:
            return across[0], axis
    return None


def turned(nest: Nest, isa: Isa, name: str) -> tuple[str, list[str], int] | None:
    """For a nest that turns a matrix: the function that its C calls by `name`, the C, its units. None for others."""
    if nest.empty or nest.bounds or nest.updates or nest.reductions or len(nest.stores) != 1:
        return None
    buf, offset, value = nest.stores[0]
    order = nest.reachable()
    loads = [n for n in order if n.kind == "load"]
    plain = all(n.kind in ("load", "const", "op", "cast") for n in order) and all(n.text != buf.name for n in loads)
    if not plain or not isinstance(offset, Affine) or not surely_less(_FEW, prod(nest.extents)):
        return None
    axes, extents = nest.merged_axes()
    if len(axes) < 2 or offset.terms.get(axes[-1]) != 1:
        return None
    found = _read_across(loads, axes, extents, isa.lanes)
    if found is None or found[0].dtype not in _TURNED:
        return None
    load, across = found
    lanes, last = isa.lanes, axes[-1]
    ctype = CTYPES[load.dtype]
    # The loops that remain get numbers of their own.
    number = {d: n for n, d in enumerate(axes)}
    rest = [d for d in axes if d not in (across, last)]
    source = Affine({number[d]: c for d, c in load.data.terms.items() if d in number}, load.data.const)
    target = Affine({number[d]: c for d, c in offset.terms.items() if d in number}, offset.const)
    kept = [(node, node.text, node.data) for node in loads]
    for node in loads:
        node.data = Affine({number[d]: c for d, c in node.data.terms.items() if d in number}, node.data.const)
    origin = load.text
    load.text, load.data = "square", Affine({number[across]: lanes, number[last]: 1})
    names = [f"y{n}" for n in range(len(axes))]
    names[number[across]], names[number[last]] = "p0", "q0"
    height, width = extents[across], extents[last]
    blocks, parts = -(-height // lanes), -(-width // (lanes * _SQUARES))
    digits, left = [], "u"
    for digit, extent in [("k", parts), ("b", blocks), *[(f"y{number[d]}", extents[d]) for d in reversed(rest)]]:
        digits.append(f"{digit} = {left} % {extent}" if extent != 1 else f"{digit} = 0")
        left = f"({left} / {extent})" if extent != 1 else left
    units = blocks * parts * prod(extents[d] for d in rest)

    def stored(rows: tuple[str, str], columns: tuple[str, str]) -> list[str]:
        bounds = {number[d]: (f"y{number[d]}", f"y{number[d]} + 1") for d in rest}
        inner = Nest([extents[d] for d in axes], {**bounds, number[across]: rows, number[last]: columns})
        inner.stores.append((buf, target, value))
        return inner.emit(indent="      ")

    call = f"{name}({origin} + {source.text(names)}, {source.terms[number[last]]}, "
    lines = [
        "for (long u = lo; u < hi; u++) {",
        f"  const long {', '.join(digits)};",
        f"  const long p1 = b * {lanes}, p0 = p1 < {height - lanes} ? p1 : {height - lanes};",
        f"  const long end = (k + 1) * {lanes * _SQUARES} < {width} ? (k + 1) * {lanes * _SQUARES} : {width};",
        f"  for (long q1 = k * {lanes * _SQUARES}; q1 < end; q1 += {lanes}) {{",
        # The last squares reach back over those before, and store their own results only.
        f"    const long q0 = q1 < {width - lanes} ? q1 : {width - lanes};",
    ]
    square = [f"      {ctype} t[{lanes * lanes}] __attribute__((aligned(64)));", f"      {call}t, {lanes});",
              f"      const {ctype}* square = t - (p0 * {lanes} + q0);"]  # fmt: skip
    whole = f"p0 == p1{' && q0 == q1' if width % lanes else ''}" if height % lanes or width % lanes else "1"
    lines.append(f"    if ({whole}) {{")
    if value is load and buf.dtype == load.dtype:
        lines.append(f"      {call}{buf.name} + {target.text(names)}, {target.terms[number[across]]});")
    else:
        lines += [*square, *stored(("p1", f"p1 + {lanes}"), ("q1", f"q1 + {lanes}"))]
    if whole != "1":
        lines += ["    } else {", *square, *stored(("p1", f"p0 + {lanes}"), ("q1", f"q0 + {lanes}"))]
    lines += ["    }", "  }", "}"]
    for node, text, form in kept:
        node.text, node.data = text, form
    return turn_kernel(name, isa, load.dtype), lines, units

