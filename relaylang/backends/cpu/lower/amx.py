"""Blocks of contractions in registers that hold tiles of bytes: AMX.

A tile has up to 16 rows of 64 bytes. Four tiles of sums hold two blocks of rows by 32 columns. The data of neighbouring
rows lie equally far apart, so a tile is read from where they are. Source: Intel, "Architecture Instruction Set
Extensions Programming Reference", chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The most rows and bytes of a tile, and the fewest bytes that are worth one.
ROWS, BYTES, _LEAST = 16, 64, 24
#: The columns of a block, and the fewest products of a result. Vectors do shorter sums before tiles are set up.
COLUMNS, DEPTH = 32, 64


def run_of(length: int) -> int:
    """The bytes of a row that are multiplied at once, of `length` neighbours; 0 where they would be few."""
    size = next(n for n in range(min(BYTES, length), 0, -4) if length % n == 0)
    return size if size >= _LEAST else 0


def tile_kernel(name: str, loops: Sequence[tuple[int, int]], length: int, apart: int) -> str:
    """C of `name(a, b, w, begin, to, next, step)`: two blocks of rows, at `a` and `b`, times a panel of weights.

    `loops` are the outer loops of the sum: their counts, and their steps in the data. `length` bytes of a row follow each
    other inside, and rows lie `apart` bytes apart. Sums begin with `begin`, and go to `to` and `next`, `step` numbers
    apart.
    """
    run = run_of(length)
    out = [f"static __attribute__((noinline)) void {name}(const uint8_t* a, const uint8_t* b, const int8_t* w, const int32_t* begin,"
           " int32_t* to, int32_t* next, long step) {",
           "  r_tile_load(0, begin, 0); r_tile_load(1, begin + 16, 0);",
           "  r_tile_load(2, begin, 0); r_tile_load(3, begin + 16, 0);"]  # fmt: skip
    pad = "  "
    shift = ""
    for n, (count, step) in enumerate(loops):
        out.append(f"{pad}for (long l{n} = 0; l{n} < {count}; l{n}++)")
        shift += f" + l{n} * {step}L"
        pad += "  "
    out.append(f"{pad}for (long k = 0; k < {length}; k += {run}, w += {run * COLUMNS})")
    out.append(f"{pad}  R_TILE_STEP(a{shift} + k, b{shift} + k, w, {apart}L);")
    out += ["  r_tile_store(2, next, step * 4); r_tile_store(3, next + 16, step * 4);",
            "  r_tile_store(0, to, step * 4); r_tile_store(1, to + 16, step * 4);", "}"]  # fmt: skip
    return "\n".join(out)


#: The blocks of a unit, two at a time: {0} rows from row {1} on, in each of {2} lines. In the result {5}, {3} is the step of
#: rows, and {4} that of lines.
UNIT = """{{
  const long n_ = {0}, tiles_ = (n_ + SIZE - 1) / SIZE, all_ = tiles_ * {2};
  r_tile_shapes(SIZE, RUN);
  for (long i_ = 0; i_ < all_; i_ += 2) {{
    const long j_ = i_ + 1 < all_ ? i_ + 1 : i_, ih_ = i_ / tiles_, jh_ = j_ / tiles_;
    const long ip_ = i_ % tiles_ * SIZE < n_ - SIZE ? i_ % tiles_ * SIZE : n_ - SIZE;
    const long jp_ = j_ % tiles_ * SIZE < n_ - SIZE ? j_ % tiles_ * SIZE : n_ - SIZE;
    NAME(x + ih_ * LINE + ({1} + ip_) * ROW, x + jh_ * LINE + ({1} + jp_) * ROW, w, START,
         {5} + ih_ * {4} + ip_ * {3}, {5} + jh_ * {4} + jp_ * {3}, {3});
  }}
  r_tile_end();
}}"""
