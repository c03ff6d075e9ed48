"""Calls of every operator with every element type: the kernels' cases and the checker's calls, with changes.

A call is `(operator, attributes, arguments)`, the arguments arrays or tuples of arrays. Some changes are an element
type: of all arguments, of one, or one that an attribute names. Others are an extent of zero, and a tuple of an
argument.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (gives numpy bfloat16)
import numpy as np

from relaylang.ops import OPS
from tests.conformance.seeds import seeds
from tests.interpreter.every_case import EVERY

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)

#: operator, attributes, arguments
Made = tuple[str, dict[str, Any], list[Any]]

_RECORDED = Path(__file__).parent.parent / "conformance" / "recorded.json.gz"
_TENSOR = re.compile(r"(\w+)\[([^\]]*)\]")

#: Calls of operators that the kernels' cases leave out.
I64 = np.int64
OWN: list[Made] = [
    ("arange", {"start": 0, "stop": 7, "step": 2, "dtype": "int32"}, [np.int32(0), np.int32(7), np.int32(2)]),
    ("collapse_sum_to", {"shape": [3, 1]}, [np.ones((2, 3, 4), np.float32), np.asarray([3, 1], I64)]),
    ("dyn.broadcast_to", {}, [np.ones((3, 1), np.float32), np.asarray([2, 3, 4], I64)]),
    ("dyn.expand_dims", {"num_newaxis": 2}, [np.ones((3, 2), np.float32), np.asarray(1, I64)]),
    ("dyn.full", {"dtype": "float32"}, [np.float32(2), np.asarray([2, 3], I64)]),
    ("dyn.image.resize2d", {"layout": "NCHW"}, [np.ones((1, 2, 3, 4), np.float32), np.asarray([6, 5], I64), np.zeros(4, np.float32)]),
    ("dyn.nn.pad", {}, [np.ones((2, 3), np.float32), np.asarray([[1, 0], [0, 2]], I64), np.float32(1)]),
    ("dyn.nn.upsampling", {}, [np.ones((1, 2, 3, 4), np.float32), np.float32(2), np.float32(1.5)]),
    ("dyn.nn.upsampling3d", {}, [np.ones((1, 2, 3, 4, 2), np.float32), np.float32(2), np.float32(1), np.float32(2)]),
    (
        "dyn.one_hot",
        {"axis": -1, "dtype": "float32"},
        [np.asarray([0, 2], np.int32), np.float32(1), np.float32(0), np.asarray(4, I64)],
    ),
    ("dyn.ones", {"dtype": "float32"}, [np.asarray([2, 3], I64)]),
    ("dyn.reshape", {}, [np.ones((2, 6), np.float32), np.asarray([3, -1], I64)]),
    (
        "dyn.sparse_to_dense",
        {},
        [np.asarray([[0, 1], [2, 0]], np.int32), np.ones(2, np.float32), np.float32(0), np.asarray([3, 3], np.int32)],
    ),
    ("dyn.squeeze", {}, [np.ones((1, 3, 1), np.float32), np.asarray([0, 2], I64)]),
    (
        "dyn.strided_slice",
        {},
        [np.ones((4, 5), np.float32), np.asarray([0, 1], I64), np.asarray([4, 5], I64), np.asarray([2, 1], I64)],
    ),
    ("dyn.tile", {}, [np.ones((2, 3), np.float32), np.asarray([2, 1], I64)]),
    ("dyn.topk", {"ret_type": "both"}, [np.ones((2, 5), np.float32), np.asarray(2, I64)]),
    ("dyn.zeros", {"dtype": "float32"}, [np.asarray([2, 3], I64)]),
    (
        "nn.contrib_conv2d_NCHWc",
        {"channels": 4, "kernel_size": [3, 3], "data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o"},
        [np.ones((1, 1, 5, 5, 4), np.float32), np.ones((1, 1, 3, 3, 4, 4), np.float32)],
    ),
    (
        "nn.contrib_depthwise_conv2d_NCHWc",
        {"channels": 4, "groups": 4, "kernel_size": [3, 3], "data_layout": "NCHW4c", "kernel_layout": "OIHW1i4o"},
        [np.ones((1, 1, 5, 5, 4), np.float32), np.ones((1, 1, 3, 3, 1, 4), np.float32)],
    ),
    ("nn.dropout", {"rate": 0.5}, [np.ones((2, 3), np.float32)]),
    *[(name, {}, [np.ones((2, 3), np.float32)]) for name in ("debug", "device_copy", "memory.kill")],
    ("annotation.with_funcid", {"fid": 1}, [np.ones((2, 3), np.float32)]),
    ("vm.shape_of", {}, [np.ones((2, 3), np.float32)]),
    ("vm.reshape_tensor", {"newshape": [3, 2]}, [np.ones((2, 3), np.float32), np.asarray([3, 2], I64)]),
    *[
        (f"annotation.{name}", {"dtype": "int8"} if name == "cast_hint" else {}, [np.ones((2, 3), np.float32)])
        for name in ("bitpack_end", "bitpack_start", "cast_hint", "checkpoint", "stop_fusion")
    ],
]


def values(dtype: str, shape: tuple[int, ...], number: int) -> np.ndarray:
    """Small numbers, which most arguments allow, be they data, indices or divisors."""
    rng = np.random.default_rng([len(dtype), *shape, number])
    if "float" in dtype:
        return rng.uniform(0.1, 1.9, shape).astype(np.dtype(dtype))
    return rng.integers(0, 2, shape).astype(np.bool_ if dtype in ("bool", "uint1") else np.dtype(dtype))


def array(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(np.bool_ if dtype == "bool" else np.dtype(dtype))


def without(x: np.ndarray, extent: int) -> np.ndarray:
    """A tensor with nothing along each axis of an extent."""
    return np.zeros([0 if n == extent else n for n in x.shape], x.dtype)


def of_types(args: list[str]) -> list[Any] | None:
    """Values for arguments' types; None where an extent is not known or a type is not numpy's."""
    out: list[Any] = []
    for number, arg in enumerate(args):
        parts = []
        for dtype, dims in _TENSOR.findall(arg):
            if "?" in dims or dtype not in (*DTYPES, "uint1"):
                return None
            parts.append(values(dtype, tuple(int(d) for d in dims.split(",")) if dims else (), number))
        out.append(tuple(parts) if arg.startswith("(") else parts[0])
    return out


def bases() -> Iterator[Made]:
    """Right calls, as they are."""
    yield from OWN
    for name, attrs, args, _ in EVERY:
        yield name, attrs, list(args)
    typed = [(op, args, attrs) for op, found in seeds().items() for args, attrs in found]
    recorded = json.loads(gzip.decompress(_RECORDED.read_bytes()))
    typed += [(op, args, attrs) for op, rows in recorded.items() for args, attrs, said in rows if said.startswith("= ")]
    for op, args, attrs in typed:
        given = of_types(args) if op != "arange" else None  # its attributes are its arguments
        if given is not None:
            yield op, attrs, given


def key(made: Made) -> str:
    """What tells a call from another: its operator, attributes, and the arguments' types and values."""
    name, attrs, args = made
    types = [[_said(p) for p in a] if isinstance(a, tuple) else _said(a) for a in args]
    return f"{name} {json.dumps(types)} {json.dumps(attrs, default=repr, sort_keys=True)}"


def _said(x: Any) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def digest(args: list[Any]) -> str:
    return hashlib.sha1(b"".join([np.asarray(p).tobytes() for a in args for p in (a if isinstance(a, tuple) else (a,))])).hexdigest()


def leaves(args: list[Any]) -> list[tuple[int, int | None]]:
    """Where the tensors of some arguments are: the argument, and the field of a tuple."""
    return [(i, j) for i, a in enumerate(args) for j in (range(len(a)) if isinstance(a, tuple) else (None,))]


def put(args: list[Any], at: tuple[int, int | None], change: Any) -> list[Any]:
    i, j = at
    out = list(args)
    out[i] = change(args[i]) if j is None else (*args[i][:j], change(args[i][j]), *args[i][j + 1 :])
    return out


def changed_types(made: Made) -> Iterator[Made]:
    """The call with other element types: of all arguments, of one of them, of an attribute."""
    name, attrs, args = made
    where = leaves(args)
    for dtype in DTYPES:
        every = args
        for at in where:
            every = put(every, at, partial(array, dtype=dtype))
        yield name, attrs, every
        for field in OPS[name].schema.values():
            if field.name.endswith("dtype") or field.name == "pack_type":
                yield name, {**attrs, field.name: dtype}, args
                yield name, {**attrs, field.name: dtype}, every
        if len(where) > 1:
            for at in where:
                yield name, attrs, put(args, at, partial(array, dtype=dtype))


def emptied(made: Made) -> Iterator[Made]:
    """The call with an extent of one argument, or of all that have the same extent, at zero."""
    name, attrs, args = made
    where = leaves(args)
    for at in where:
        x = args[at[0]] if at[1] is None else args[at[0]][at[1]]
        for axis, extent in enumerate(x.shape):
            yield name, attrs, put(args, at, partial(np.take, indices=[], axis=axis))
            every = args
            for other in where:
                every = put(every, other, partial(without, extent=extent))
            yield name, attrs, every


def wrapped(made: Made) -> Iterator[Made]:
    """The call with a tuple in place of a tensor, or a tensor in place of a tuple."""
    name, attrs, args = made
    for i, a in enumerate(args):
        changed = list(args)
        if not isinstance(a, tuple):
            changed[i] = (a, a)
        elif a:
            changed[i] = a[0]
        else:
            continue
        yield name, attrs, changed


def extremes(made: Made) -> Iterator[Made]:
    """The call with its element type's least and greatest numbers, infinities and nan, in one argument or in all."""
    name, attrs, args = made
    where = leaves(args)
    if name == "arange":
        return  # its numbers are an extent
    for which in range(2 if name.startswith("dyn.") else 0, 3):  # their numbers are extents, too
        every = args
        for at in where:
            every = put(every, at, partial(extreme, which=which))
            if len(where) > 1:
                yield name, attrs, put(args, at, partial(extreme, which=which))
        yield name, attrs, every


def extreme(x: np.ndarray, which: int) -> np.ndarray:
    if x.dtype.kind == "b":
        return np.full(x.shape, which == 0)
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        return np.full(x.shape, (info.min, info.max, -1 if info.min else 7)[which]).astype(x.dtype)
    return np.full(x.shape, (np.nan, np.inf, -np.inf)[which]).astype(x.dtype)


@cache
def bases_by_operator() -> dict[str, list[Made]]:
    found: dict[str, list[Made]] = {}
    for made in bases():
        found.setdefault(made[0], []).append(made)
    return found


def calls(few: int, operators: Iterable[str] = tuple(OPS)) -> Iterator[Made]:
    """Each call once. The first `few` of an operator, and of each of its arguments' ranks, are varied."""
    seen: set[str] = set()
    varied: dict[str, int] = {}
    forms: set[str] = set()

    def fresh(made: Made) -> bool:
        told = key(made) + digest(made[2])
        return told not in seen and not seen.add(told)  # type: ignore[func-returns-value]

    for made in [made for op in operators for made in bases_by_operator().get(op, [])]:
        if fresh(made):
            yield made
        form = f"{made[0]} {[[np.ndim(p) for p in a] if isinstance(a, tuple) else np.ndim(a) for a in made[2]]}"
        form += str(sorted((k, v) for k, v in made[1].items() if isinstance(v, str) and "dtype" not in k))
        if form in forms or varied.get(made[0], 0) >= few:
            continue
        forms.add(form)
        varied[made[0]] = varied.get(made[0], 0) + 1
        for vary in (changed_types, emptied, wrapped, extremes):
            for new in vary(made):
                if fresh(new):
                    yield new
