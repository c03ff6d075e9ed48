"""Fourier transforms of tensors and of windows of a signal. Complex numbers are pairs, as in `frontends.common.complexes`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common import complexes as cx
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.torch.families.shape import pad, roll
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _numbers(n: Node, name: str) -> Complex | Expr:
    """An operand of floating-point numbers; whole ones become float32."""
    x = n.get(name)
    if isinstance(x, Complex):
        return x
    x = n.x(name)
    return x if "float" in n.b.dtype(x) else n.b.cast(x, "float32")


def _whole(b: Builder, x: Complex | Expr) -> Complex:
    return x if isinstance(x, Complex) else Complex(x, b.op("zeros_like", x))


def _part(x: Complex | Expr) -> Expr:
    return x.real if isinstance(x, Complex) else x


def _factor(norm: str, count: int, inverse: bool) -> float:
    """What a transform of `count` numbers is multiplied by."""
    scales = {"backward": count if inverse else 1, "ortho": math.sqrt(count), "forward": 1 if inverse else count}
    return 1 / scales[norm]


def _transformed(b: Builder, x: Complex, axes: Sequence[int], norm: str, inverse: bool) -> Complex:
    """The transform along axes with PyTorch's factor."""
    count = math.prod(b.extent(x.real, a, "the axis of a Fourier transform") for a in axes)
    if count == 0:
        raise Malformed("a Fourier transform needs one number at least along each axis")
    for axis in axes:
        x = cx.fourier(b, x, axis, inverse)
    return cx.scaled(b, x, _factor(norm, count, inverse) * (count if inverse else 1))


def _real_of(b: Builder, x: Complex, axes: Sequence[int], extent: int, norm: str, inverse: bool = True) -> Expr:
    """The real numbers of a spectrum whose last axis of `axes` is halved. `inverse` chooses the factor."""
    if extent < 1:
        raise Malformed(f"a Fourier transform of {extent} numbers has no meaning")
    for axis in axes[:-1]:
        x = cx.fourier(b, x, axis, inverse=True)
    signal = cx.real_inverse(b, x, axes[-1], extent)
    count = math.prod(b.extent(signal, a) for a in axes)
    factor = _factor(norm, count, inverse) * count
    return signal if factor == 1 else b.op("multiply", signal, factor)


def _axes(n: Node, x: Complex | Expr, count: int) -> tuple[list[int], list[int | None]]:
    """The axes of a transform, and the extents to which they are cut or filled; None keeps one.

    `count` is the number of axes of the operator's name, 0 for any number.
    """
    rank = n.b.rank(_part(x))
    if count == 1:
        return [n.int("dim", -1) % rank], [n.int("n") if n.has("n") else None]
    sizes: list[int | None] = [s if s != -1 else None for s in n.ints("s")] if n.has("s") else []
    if n.has("dim"):
        axes = [a % rank for a in n.ints("dim")]
    else:
        axes = list(range(rank - (count or len(sizes) or rank), rank))
    return axes, sizes or [None] * len(axes)


def _cut(b: Builder, x: Complex | Expr, axes: Sequence[int], sizes: Sequence[int | None]) -> Complex | Expr:
    for axis, size in zip(axes, sizes, strict=True):
        if size is None:
            continue
        if size < 1:
            raise Malformed(f"a Fourier transform of {size} numbers has no meaning")
        cut = partial(cx.resized, b, axis=axis, extent=size)
        x = x.each(cut) if isinstance(x, Complex) else cut(x)
    return x


def _norm(n: Node) -> str:
    named: str = n.choice("norm", None, {None: "backward", **{name: name for name in ("backward", "ortho", "forward")}})
    return named


def transform(count: int, inverse: bool, halved: bool = False) -> Any:
    """`fft_fft`, `fft_ifft2`, `fft_rfftn` and their kin; `count` is the number of axes, 0 for any number."""

    def convert(n: Node) -> Any:
        b, x = n.b, _numbers(n, "self")
        if halved and isinstance(x, Complex):
            raise Malformed("a transform of real numbers takes no complex ones")
        axes, sizes = _axes(n, x, count)
        x = _cut(b, x, axes, sizes)
        return _spectrum(b, x, axes, _norm(n), inverse, halved)

    return convert


def _spectrum(b: Builder, x: Complex | Expr, axes: Sequence[int], norm: str, inverse: bool, halved: bool) -> Complex:
    if not halved:
        return _transformed(b, _whole(b, x), axes, norm, inverse)
    count = math.prod(b.extent(_part(x), a, "the axis of a Fourier transform") for a in axes)
    spectrum = cx.half(b, _transformed(b, _whole(b, x), axes[-1:], "backward", False), axes[-1])
    for axis in axes[:-1]:
        spectrum = cx.fourier(b, spectrum, axis)
    return cx.scaled(b, spectrum, _factor(norm, count, False))


def real_transform(count: int) -> Any:
    """`fft_irfft` and its kin: real numbers of a halved spectrum."""

    def convert(n: Node) -> Any:
        b, x = n.b, _whole(n.b, _numbers(n, "self"))
        axes, sizes = _axes(n, x, count)
        last = sizes[-1] if sizes[-1] is not None else 2 * (b.extent(x.real, axes[-1]) - 1)
        x = _whole(b, _cut(b, x, axes[:-1], sizes[:-1]))
        return _real_of(b, x, axes, last, _norm(n))

    return convert


def hermitian(n: Node) -> Any:
    """`fft_hfft`: the transform of numbers whose other half are their conjugates."""
    b, x = n.b, _whole(n.b, _numbers(n, "self"))
    axes, sizes = _axes(n, x, 1)
    extent = sizes[0] if sizes[0] is not None else 2 * (b.extent(x.real, axes[0]) - 1)
    return _real_of(b, cx.conjugate(b, x), axes, extent, _norm(n), inverse=False)


def hermitian_inverse(n: Node) -> Any:
    """`fft_ihfft`."""
    b, x = n.b, _numbers(n, "self")
    axes, sizes = _axes(n, x, 1)
    x = _cut(b, x, axes, sizes)
    count = b.extent(_part(x), axes[0])
    spectrum = cx.half(b, _transformed(b, _whole(b, x), axes, "backward", False), axes[0])
    return cx.scaled(b, cx.conjugate(b, spectrum), _factor(_norm(n), count, True))


def shifted(inverse: bool) -> Any:
    """The bin of frequency 0 in the middle of each axis, or back at the front."""

    def convert(n: Node) -> Any:
        x = n.get("self")
        rank = n.b.rank(_part(x))
        axes = [a % rank for a in n.ints("dim")] if n.has("dim") else list(range(rank))
        extents = [n.b.extent(_part(x), a) for a in axes]
        args = {"shifts": [(e + 1) // 2 if inverse else e // 2 for e in extents], "dims": axes}
        if not axes:
            return x
        if isinstance(x, Complex):
            return x.each(lambda part: roll(n.replaced({"self": part, **args})))
        return roll(n.replaced(args))

    return convert


def frequencies(halved: bool) -> Any:
    def convert(n: Node) -> Any:
        numbers = (np.fft.rfftfreq if halved else np.fft.fftfreq)(n.b.arrays.reserve(n.int("n")), float(n.get("d", 1.0)))
        return n.b.const(numbers, n.dtype() or n.result_dtype())

    return convert


#: The factors of the operators that transforms are decomposed to.
_MODES = {0: "backward", 1: "ortho", 2: "forward"}


def _mode(n: Node, inverse: bool) -> str:
    """The name of a factor: none, the root of the count, the count."""
    mode: int = n.choice("normalization", 0, {i: i for i in _MODES})
    return {0: "forward", 2: "backward"}.get(mode, "ortho") if inverse else _MODES[mode]


def real_to_complex(n: Node) -> Any:
    b, x = n.b, _numbers(n, "self")
    if isinstance(x, Complex):
        raise Malformed("a transform of real numbers takes no complex ones")
    axes = [a % b.rank(x) for a in n.ints("dim")]
    return _spectrum(b, x, axes, _mode(n, False), False, bool(n.get("onesided")))


def complex_to_complex(n: Node) -> Any:
    b, x = n.b, _whole(n.b, _numbers(n, "self"))
    axes, inverse = [a % b.rank(x.real) for a in n.ints("dim")], not n.get("forward")
    return _transformed(b, x, axes, _mode(n, inverse), inverse)


def complex_to_real(n: Node) -> Any:
    b, x = n.b, _whole(n.b, _numbers(n, "self"))
    axes = [a % b.rank(x.real) for a in n.ints("dim")]
    return _real_of(b, x, axes, n.int("last_dim_size"), _mode(n, True))


# ---- windows of a signal


def _window(n: Node, size: int, dtype: str) -> Expr:
    """The window in the middle of `size` numbers, zeros beside it. Without one, `win_length` ones."""
    b = n.b
    length = n.int("win_length") if n.has("win_length") else size
    window = n.get("window")
    if isinstance(window, Complex):
        raise Unsupported("its window is complex")
    if not 0 < length <= size:
        raise Malformed(f"the argument win_length is {length}; it must be 1 to n_fft={size}")
    ones = b.const(b.arrays.ones(length), dtype) if window is None else b.cast(b.of_rank(window, 1), dtype)
    if b.extent(ones, 0, "the window") != length:
        raise Malformed(f"the window has {b.extent(ones, 0)} elements; it must have win_length={length}")
    before = (size - length) // 2
    if length == size:
        return ones
    return b.op("nn.pad", ones, b.const(0, dtype), pad_width=[[before, size - length - before]])


def _hop(n: Node, size: int) -> int:
    hop: int = n.int("hop_length") if n.has("hop_length") else size // 4
    if hop < 1 or size < 1:
        raise Malformed(f"n_fft is {size} and hop_length {hop}; they must be positive")
    return hop


def stft(n: Node) -> Any:
    """The spectra of windows: (batch, bins, frames), complex, or with the parts on a last axis."""
    b, x = n.b, _numbers(n, "self")
    rank, size = b.rank(_part(x)), n.int("n_fft")
    hop, dtype = _hop(n, size), b.dtype(_part(x))
    if rank not in (1, 2):
        raise Malformed(f"the signal has {rank} axes; it must have 1 or 2")
    if n.get("align_to_window") and n.has("win_length") and n.int("win_length") != size:
        raise Unsupported("align_to_window moves its windows")
    if n.call.target.endswith(".center") and n.get("center", True):
        x = _centred(n, x, size // 2)
    window = _window(n, size, dtype)
    onesided = not isinstance(x, Complex) if n.get("onesided") is None else bool(n.get("onesided"))
    if isinstance(x, Complex):
        if onesided:
            raise Malformed("the spectrum of complex numbers is not onesided")
        spectra = _complex_stft(n, x, window, size, hop)
        return spectra if n.get("return_complex") is not False else cx.paired(b, spectra)
    extent = b.shape(x)[-1]
    if isinstance(extent, int) and extent < size:
        raise Malformed(f"the signal has {int(extent)} elements, fewer than n_fft={size}")
    pair = b.op(
        "stft", x, window, n_fft=size, hop_length=hop, win_length=size, normalized=bool(n.get("normalized", False)), onesided=onesided
    )
    return cx.unpaired(b, pair) if n.get("return_complex") else pair


def _centred(n: Node, x: Complex | Expr, width: int) -> Complex | Expr:
    """The signal with half a window before it and behind it."""

    def padded(part: Expr) -> Expr:
        padded_part: Expr = pad(n.replaced({"self": part, "pad": [width, width], "mode": n.get("pad_mode", "reflect")}))
        return padded_part

    return x.each(padded) if isinstance(x, Complex) else padded(x)


def _complex_stft(n: Node, x: Complex, window: Expr, size: int, hop: int) -> Complex:
    b = n.b
    extent, rank = b.extent(x.real, -1, "the signal"), b.rank(x.real)
    if extent < size:
        raise Malformed(f"the signal has {extent} elements, fewer than n_fft={size}")
    places = b.arrays.windows(extent, size, hop)
    cut = x.each(lambda part: b.op("multiply", b.op("take", part, b.const(places), axis=rank - 1), window))
    spectra = _transformed(b, cut, [rank], "ortho" if n.get("normalized") else "backward", False)
    order = [*range(rank - 1), rank, rank - 1]
    return spectra.each(lambda part: b.transpose(part, order))


def _overlapped(b: Builder, frames: Expr, hop: int) -> Expr:
    """The sums of frames (batch, frames, n) that lie `hop` behind each other: (batch, signal)."""
    batch, count, size = b.static_shape(frames, "the spectrum")
    places = b.arrays.windows(size + hop * (count - 1), size, hop)
    zeros = b.const(b.arrays.zeros((batch, size + hop * (count - 1))), b.dtype(frames))
    rows = b.reshape_exactly(frames, [batch, count * size])
    at = np.broadcast_to(places.reshape(1, -1), (batch, count * size)).astype(np.int64)
    sums: Expr = b.op("scatter_elements", zeros, b.const(np.ascontiguousarray(at)), rows, axis=1, reduction="add")
    return sums


def istft(n: Node) -> Any:
    """The signal of spectra (batch, bins, frames): frames are added where they overlap, and divided by their windows."""
    b, x = n.b, n.get("self")
    if isinstance(x, Expr):  # programs that were traced long ago have the parts on a last axis
        x = cx.unpaired(b, x)
    single, size = b.rank(x.real) == 2, n.int("n_fft")
    if single:
        x = x.each(lambda part: b.unsqueeze(part, [0]))
    hop, dtype = _hop(n, size), b.dtype(b.of_rank(x.real, 3))
    window = _window(n, size, dtype)
    x = x.each(lambda part: b.transpose(part, [0, 2, 1]))
    norm = "ortho" if n.get("normalized") else "backward"
    frames: Complex | Expr
    if n.get("return_complex"):
        frames = _transformed(b, x, [2], norm, True)
    else:
        frames = _real_of(b, x, [2], size, norm)
    envelope = _overlapped(b, b.op("broadcast_to", b.op("multiply", window, window), shape=(1, b.extent(x.real, 1), size)), hop)
    begin = size // 2 if n.get("center", True) else 0
    have = b.extent(envelope, 1)
    end = begin + n.int("length") if n.has("length") else have - begin
    if end <= begin:
        raise Malformed("the signal that it gives has no elements")

    def signal(part: Expr) -> Expr:
        signal = _overlapped(b, b.op("multiply", part, window), hop)
        signal, under = (b.slice(v, [begin], [min(end, have)], [1]) for v in (signal, envelope))
        signal = cx.resized(b, b.op("divide", signal, under), 1, end - begin)
        return b.squeeze(signal, [0]) if single else signal

    return frames.each(signal) if isinstance(frames, Complex) else signal(frames)


RULES = (
    *(
        Rule(f"aten.fft_{way}fft{axes}", transform(count, way == "i", way == "r"))
        for axes, count in (("", 1), ("2", 2), ("n", 0))
        for way in ("", "i", "r")
    ),
    *(Rule(f"aten.fft_irfft{axes}", real_transform(count)) for axes, count in (("", 1), ("2", 2), ("n", 0))),
    Rule("aten._fft_c2c", complex_to_complex),
    Rule("aten._fft_c2r", complex_to_real),
    Rule("aten._fft_r2c", real_to_complex),
    Rule("aten.fft_fftfreq", frequencies(False)),
    Rule("aten.fft_fftshift", shifted(False)),
    Rule("aten.fft_hfft", hermitian),
    Rule("aten.fft_ifftshift", shifted(True)),
    Rule("aten.fft_ihfft", hermitian_inverse),
    Rule("aten.fft_rfftfreq", frequencies(True)),
    Rule("aten.istft", istft),
    Rule("aten.stft", stft),
)
