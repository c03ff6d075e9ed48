"""Calls of every operator with the numbers at which arithmetic is special, and their comparison to the bit.

Floats: nan, the infinities, both zeros, numbers below the least normal one, the ends, halves. Integers: the ends, their
neighbours, zero, numbers around a count of bits. Element by element, all pairs of them. Other operators have some of them
among ordinary numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.interpreter.kernels.tolerance import EXACT
from relaylang.ops import OPS
from relaylang.ops.traits import Trait
from tests.consistency.calls import DTYPES, Made, array, bases_by_operator, digest, key, leaves, put
from tests.consistency.compiled import difference
from tests.consistency.outcome import Refused, function

#: Operators of elements without one of the traits.
_MORE = frozenset(
    "cast clip where nn.relu nn.leaky_relu nn.prelu fixed_point_multiply reinterpret isnan isinf isfinite logical_not bitwise_not "
    "copy cast_like full_like".split()
)
#: Operators whose first operand is in order.
_SORTED = frozenset({"searchsorted"})
#: Operators with probabilities.
_NUMBERS = frozenset({"random.multinomial"})
_TRAITS = {Trait.UNARY, Trait.BINARY, Trait.COMPARISON, Trait.BROADCAST}


def numbers(dtype: str) -> np.ndarray:
    """The special numbers of a type, and some ordinary ones."""
    if dtype == "bool":
        return np.asarray([False, True])
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info, bits = np.iinfo(kind), kind.itemsize * 8
        low, high = int(info.min), int(info.max)
        few = {
            low,
            low + 1,
            low // 2,
            -bits,
            -7,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            5,
            10,
            bits - 1,
            bits,
            bits + 1,
            100,
            1 << bits // 2,
            (1 << bits // 2) - 1,
            high // 2,
            high // 2 + 1,
            high - 1,
            high,
        }
        return np.asarray(sorted(n for n in few if low <= n <= high), kind)
    info = ml_dtypes.finfo(kind)
    tiny, most, least = float(info.smallest_normal), float(info.max), float(info.smallest_subnormal)
    eps, whole = float(info.eps), 2.0 ** (info.nmant)
    sizes = [
        0.0,
        least,
        3 * least,
        tiny - least,
        tiny,
        1e-3,
        0.1,
        0.3,
        0.5 - eps / 4,
        0.5,
        0.5 + eps / 2,
        1 - eps / 2,
        1.0,
        1 + eps,
        1.5,
        2.0,
        2.5,
        3.0,
        3.5,
        4.5,
        7.3,
        10.0,
        50.5,
        85.0,
        whole / 2 - 0.5,
        whole / 2 + 0.5,
        whole - 1,
        whole,
        127.5,
        128.0,
        255.5,
        32767.5,
        most / 2,
        most,
        np.inf,
    ]
    if kind.itemsize >= 4 or dtype == "bfloat16":
        sizes += [65519.0, 65520.0, 2.0**31 - 128, 2.0**31, 2.0**32, 2.0**63, 1e10, 1e30]
    with np.errstate(all="ignore"):
        found = np.asarray([s * x for x in sizes for s in (1.0, -1.0)] + [np.nan]).astype(kind)
    return found


def lattice(dtypes: list[str], rng: np.random.Generator, most: int = 6000) -> list[np.ndarray]:
    """Vectors that hold each tuple of special numbers, in no order; of many, some. Their length is odd: vectors have tails."""
    every = [numbers(d) for d in dtypes]
    count = int(np.prod([len(x) for x in every]))
    picks = rng.permutation(count) if count <= most else rng.integers(0, count, most)
    picks = np.concatenate([picks, picks[: 37 - len(picks)]]) if len(picks) < 37 else picks
    picks = picks[: len(picks) - (len(picks) + 1) % 2]
    places = np.unravel_index(picks, [len(x) for x in every])
    return [x[at] for x, at in zip(every, places)]


def elementwise(name: str) -> bool:
    return name in _MORE or bool(_TRAITS & set(OPS[name].traits))


def valid(made: Made) -> Made | None:
    """A call of vectors without the elements at which the interpreter gives an error, or None if others give one.

    Such elements are divisions by zero, negative powers of zero, and shifts by negative numbers.
    """
    name, attrs, args = made
    first, last = args[0], args[-1]
    with np.errstate(invalid="ignore"):
        forward = last >= last.dtype.type(0)
    for kept in (None, last != 0, (first != 0) | forward, forward):
        good = args if kept is None else [a[kept] for a in args]
        call, inputs = function((name, attrs, good))
        try:
            evaluate(call, *inputs)
        except RelayError:
            continue
        return name, attrs, good
    return None


def special(name: str, few: int = 12) -> Iterator[Made]:
    """Right calls of an operator with special numbers, of every element type."""
    if name in _NUMBERS:
        return
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    forms: set[str] = set()
    seen: set[str] = set()
    for _, attrs, args in bases_by_operator().get(name, []):
        ranks = [len(a) if isinstance(a, tuple) else np.ndim(a) for a in args]
        words = sorted(attrs) if elementwise(name) else sorted((k, v) for k, v in attrs.items() if isinstance(v, (str, bool)))
        if f"{ranks} {words}" in forms or len(forms) >= few:
            continue
        forms.add(f"{ranks} {words}")
        for made in (_lattices if elementwise(name) else _sprinkled)(name, attrs, args, rng):
            said = key(made) + digest(made[2])
            if said not in seen and (found := _right(made)):
                seen.add(said)
                yield found


def _right(made: Made) -> Made | None:
    try:
        function(made)
    except Refused:
        return None
    return valid(made) if elementwise(made[0]) else made


def _lattices(name: str, attrs: dict[str, Any], args: list[Any], rng: np.random.Generator) -> Iterator[Made]:
    fields = [f.name for f in OPS[name].schema.values() if f.name.endswith("dtype")]
    for dtype in DTYPES:
        dtypes = [dtype] * len(args)
        if name == "nn.prelu":
            attrs = {**attrs, "axis": 0}
        if name == "where":
            dtypes[0] = "bool"
        for field in fields or [""]:
            for other in DTYPES if field else [""]:
                new = {**attrs, field: other} if field else attrs
                if name in ("cast_like",):
                    for like in DTYPES:
                        yield name, new, [lattice([dtype], rng)[0], np.zeros(1, array(np.zeros(1), like).dtype)]
                    continue
                if name == "full_like":
                    for n in numbers(dtype):
                        yield name, new, [np.zeros(5, n.dtype), np.asarray(n)]
                    continue
                whole = lattice(dtypes, rng)
                yield name, new, whole
                yield name, new, [x[:5] for x in whole]


def _sprinkled(name: str, attrs: dict[str, Any], args: list[Any], rng: np.random.Generator) -> Iterator[Made]:
    """Special numbers in one argument, at some places."""
    where = leaves(args)
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        every = args
        for at in where:
            if (args[at[0]] if at[1] is None else args[at[0]][at[1]]).dtype.kind in "fV":
                every = put(every, at, partial(array, dtype=dtype))
        for at in where[1:] if name in _SORTED else where:
            x = every[at[0]] if at[1] is None else every[at[0]][at[1]]
            if x.dtype.kind in "fV" and x.size:
                for which in ([np.nan], [np.inf], [-np.inf], [-0.0, 0.0], [np.nan, np.inf, -np.inf, -0.0]):
                    yield name, attrs, put(every, at, partial(_mixed, which=which, rng=rng))


def _mixed(x: np.ndarray, which: list[float], rng: np.random.Generator) -> np.ndarray:
    out = np.array(x)
    chosen = rng.random(x.shape) < 0.3
    chosen.reshape(-1)[rng.integers(0, x.size)] = True
    return np.where(chosen, np.asarray(which, x.dtype)[rng.integers(0, len(which), x.shape)], out).astype(x.dtype)


#: Functions that two libraries round differently, numpy's vectors among them: so many units in the last place.
ULPS = dict.fromkeys(
    "exp fast_exp log log2 log10 tanh fast_tanh sigmoid erf fast_erf sin cos tan sinh cosh asin acos atan asinh acosh atanh power "
    "rsqrt".split(),
    4,
)
#: Operators that move elements. The greatest of several may be either zero; that depends on their order.
_SIGNED = EXACT - {name for name in EXACT if {Trait.REDUCTION, Trait.LARGEST} & set(OPS[name].traits)}


def ordered(x: np.ndarray) -> np.ndarray:
    """Floats as whole numbers of the same order, neighbours one apart."""
    kind = np.dtype(f"i{x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).view(kind).astype(object)
    return np.where(bits < 0, np.iinfo(kind).min - bits, bits)


def apart(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """The units in the last place between floats. They are infinite where only one is nan, infinite or minus zero."""
    wide, other = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore"):
        away = np.abs(ordered(ours) - ordered(theirs)).astype(np.float64)
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    away = np.where(np.isfinite(wide) & np.isfinite(other), away, np.where(same, 0, np.inf))
    zeros = (wide == 0) & (other == 0)
    return np.where(zeros, np.where(np.signbit(wide) == np.signbit(other), 0, np.inf), away)


def compare(name: str, ours: Any, theirs: Any, inputs: Any) -> str | None:
    """The difference of a compiled value and an interpreted one, in bits or in units in the last place."""
    if isinstance(theirs, (tuple, list)):
        return next((said for a, b in zip(ours, theirs) if (said := compare(name, a, b, inputs))), None)
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if theirs.dtype.kind not in "fV" or (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype) or not theirs.size:
        return difference(name, ours, theirs, inputs)
    away = apart(ours, theirs)
    if not elementwise(name):
        away = np.where(np.isinf(away) & (theirs == 0) & (name in _SIGNED), away, 0)
    at = np.unravel_index(int(np.argmax(away)), away.shape)
    if away[at] > ULPS.get(name, 0):
        given = [x[at] for x in inputs if x.shape == theirs.shape]
        return f"{ours[at]} in place of {theirs[at]} for {given}, {int((away > ULPS.get(name, 0)).sum())} of {away.size}"
    return None if elementwise(name) else difference(name, ours, theirs, inputs)
