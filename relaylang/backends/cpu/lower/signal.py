"""Fourier transforms, in float64 as the interpreter's."""
from __future__ import annotations

import math
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import result_types
from relaylang.backends.cpu.lower.scatter import pass_on, target_of
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.nest import Buf


def _transforms(kernel: Kernel, lines: int, size: int, inverse: bool, take: str, give: str) -> None:
    """Transforms of lines: `take` is C that fills the complex numbers `x` of line `u`, `give` reads their transform."""
    roots, room = kernel.buffer((size, 2), "float64"), kernel.buffer((lines, 2, size, 2), "float64")
    step = f"{'' if inverse else '-'}6.283185307179586476925286766559 * i / {max(size, 1)}"
    kernel.stage().put(f"for (long i = 0; i < {size}; i++) {{ {roots.name}[i * 2] = cos({step});"
                       f" {roots.name}[i * 2 + 1] = sin({step}); }}")  # fmt: skip
    kernel.stage(lines).put(f"""for (long u = lo; u < hi; u++) {{
  double* x = {room.name} + u * {size * 4};
  {take}
  x = r_fft(x, x + {size * 2}, {roots.name}, {size});
  {give}
}}""")


def _dft(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Along the last axis."""
    real, imaginary = (kernel.in_memory(a) for a in args)
    size = real.shape[-1]
    out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    share = f" / {max(size, 1)}" if call.attrs.inverse else ""

    def each(texts: list[str]) -> str:
        return f"for (long i = 0; i < {size}; i++) {{ {' '.join(texts)} }}"

    take = [f"x[i * 2 + {n}] = {b.name}[u * {size} + i];" for n, b in enumerate((real, imaginary))]
    give = [f"{b.name}[u * {size} + i] = x[i * 2 + {n}]{share};" for n, b in enumerate(out)]
    _transforms(kernel, math.prod(real.shape[:-1]), size, bool(call.attrs.inverse), each(take), each(give))
    return [BufTensor(b) for b in out]


def _stft(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """Windows of the signal; a bin beyond a window's length is that of the same place in the next turn."""
    signal, window = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    size, length = attrs.win_length, signal.shape[-1]
    if window.shape != (size,):
        raise unsupported(f"win_length is {size}, but the window has {window.shape[0]} entries", call)
    out: Buf = target_of(kernel, sink)
    *_, bins, frames, _ = out.shape
    share = f" / {math.sqrt(attrs.n_fft)!r}" if attrs.normalized else ""
    take = f"""const long n = u / {max(frames, 1)}, f = u % {max(frames, 1)};
  const {CTYPES[signal.dtype]}* s = {signal.name} + n * {length} + f * {attrs.hop_length};
  for (long i = 0; i < {size}; i++) {{ x[i * 2] = (double)s[i] * {window.name}[i]; x[i * 2 + 1] = 0; }}"""
    give = f"""for (long b = 0; b < {bins}; b++) {{
    const double* y = x + b % {max(size, 1)} * 2;
    {CTYPES[out.dtype]}* to = {out.name} + ((n * {bins} + b) * {frames} + f) * 2;
    to[0] = y[0]{share};
    to[1] = y[1]{share};
  }}"""
    _transforms(kernel, math.prod(signal.shape[:-1]) * frames, size, False, take, give)
    pass_on(kernel, sink, out)


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {"dft": _dft}
ANCHORS: dict[str, Any] = {"stft": _stft}
