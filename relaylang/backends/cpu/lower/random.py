"""Random numbers from explicit keys: Threefry-4x64, as in `interpreter.kernels.random`."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Value
from relaylang.backends.cpu.lower.common import result_types
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, literal
from relaylang.kernels.nest import Buf

#: The number of blocks of four words in a unit of work.
_BLOCKS = 256


def _words(kernel: Kernel, key: Buf, shape: tuple[int, ...]) -> tuple[Buf, Buf]:
    """The key to go on with, and random words."""
    size = math.prod(shape)
    start, following, words = kernel.buffer((10,), "uint64"), kernel.buffer((10,), "uint64"), kernel.buffer(shape, "uint64")
    kernel.stage().put(f"r_words({key.name}, {size}, {start.name}, {following.name});")
    blocks = -(-size // 4)
    # The words behind the last whole block come from the counter moved on, not from a block's number.
    kernel.stage(-(-blocks // _BLOCKS)).put(f"""for (long i = lo * {_BLOCKS}; i < hi * {_BLOCKS} && i < {blocks}; i++) {{
  const int whole = i < {size // 4};
  const uint64_t* c = {start.name} + 4;
  const uint64_t counter[4] = {{c[0], c[1], c[2], c[3] + (whole ? 0 : i * 4)}};
  uint64_t block[4];
  r_threefry({start.name}, counter, whole ? i : 0, block);
  for (long j = 0; j < (whole ? 4 : {size % 4}); j++) {words.name}[i * 4 + j] = block[j];
}}""")
    return following, words


def _unit(word: str, dtype: str) -> str:
    """C: a number from 0 to below 1 from the leading bits of as many as the type has."""
    info = np.finfo(dtype)
    return f"(({CTYPES[dtype]})((uint{info.bits}_t){word} >> {info.bits - info.nmant}) * {literal(2.0**-info.nmant, dtype)})"


def _generate(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    _, (shape, _) = result_types(call)
    return [BufTensor(b) for b in _words(kernel, kernel.in_memory(args[0]), shape)]


def _split(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    key = kernel.in_memory(args[0])
    left, right = kernel.buffer((10,), "uint64"), kernel.buffer((10,), "uint64")
    # Of the path TVM tests the first word only.
    kernel.stage().put(f"""uint64_t* l = {left.name};
uint64_t* r = {right.name};
for (int i = 0; i < 10; i++) l[i] = {key.name}[i];
if (!l[8]) {{
  r_threefry({key.name}, {key.name} + 4, 0, l);
  for (int i = 4; i < 10; i++) l[i] = i == 8 ? UINT64_C(1) << 62 : 0;
  for (int i = 0; i < 10; i++) r[i] = l[i];
  r[4] = UINT64_C(1) << 63;
}} else {{
  for (int i = 0; i < 10; i++) r[i] = l[i];
  r[4] |= l[8]; r[5] |= l[9];
  r_path(l + 8);
  r_path(r + 8);
}}""")
    return [BufTensor(left), BufTensor(right)]


def _distribution(normal: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        key, a, b = (kernel.in_memory(x) for x in args)
        _, (shape, dtype) = result_types(call)
        size, f = math.prod(shape), "f" if dtype == "float32" else ""
        following, words = _words(kernel, key, (2, *shape) if normal else shape)
        out = kernel.buffer(shape, dtype)
        first = _unit(f"{words.name}[i]", dtype)
        if normal:  # Box and Muller's transform
            turn = f"sin{f}({literal(2 * np.pi, dtype)} * {_unit(f'{words.name}[{size} + i]', dtype)})"
            value = f"sqrt{f}(-2 * log{f}(1 - {first})) * {turn} * {b.name}[0] + {a.name}[0]"
        else:
            value = f"{first} * ({b.name}[0] - {a.name}[0]) + {a.name}[0]"
        kernel.stage(size).put(f"for (long i = lo; i < hi; i++) {out.name}[i] = {value};")
        return [BufTensor(following), BufTensor(out)]

    return lower


def _multinomial(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Where uniform numbers fall on the running sum of the probabilities: the nearest place above."""
    key, probs = (kernel.in_memory(a) for a in args)
    _, (shape, dtype) = result_types(call)
    following, words = _words(kernel, key, shape)
    out, sums = kernel.buffer(shape, dtype), kernel.buffer(probs.shape, "float32")
    classes, samples = probs.shape[-1], shape[-1]
    kernel.stage(math.prod(shape[:-1])).put(f"""for (long u = lo; u < hi; u++) {{
  const {CTYPES[probs.dtype]}* p = {probs.name} + u * {classes};
  float* c = {sums.name} + u * {classes};
  float all = 0, sum = 0;
  for (long i = 0; i < {classes}; i++) all += p[i] > 0 ? (float)p[i] : 0;
  for (long i = 0; i < {classes}; i++) c[i] = sum += (p[i] > 0 ? (float)p[i] : 0) / all;
  for (long s = 0; s < {samples}; s++) {{
    const float at = {_unit(f"{words.name}[u * {samples} + s]", "float32")};
    float least = c[0] - at > 0 ? c[0] - at : 1;
    int32_t best = 0;
    for (long i = 1; i < {classes}; i++) {{
      const float above = c[i] - at > 0 ? c[i] - at : 1;
      if (above < least) {{ least = above; best = i; }}
    }}
    {out.name}[u * {samples} + s] = best;
  }}
}}""")
    return [BufTensor(following), BufTensor(out)]


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {
    "random.threefry_generate": _generate,
    "random.threefry_split": _split,
    "random.uniform": _distribution(normal=False),
    "random.normal": _distribution(normal=True),
    "random.multinomial": _multinomial,
}
