"""Random parameters to try a program with: the same for the same seed, and such that deep networks stay finite."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from math import prod

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import MetaRef, Var
from relaylang.ir.types import TensorType, TupleType, Type, type_text
from relaylang.syntax.literals import numpy_dtype

# What a parameter is for is read off its name, as the importers and the classic networks give them.
_VARIANCE = re.compile(r"(?i)var(?:iance)?\d*$")
_SCALE = re.compile(r"(?i)scales?\d*$")
_GAMMA = re.compile(r"(?i)gamma\d*$")
_SHIFT = re.compile(r"(?i)(?:beta|bias|mean|b)\d*$")
_ZERO_POINT = re.compile(r"(?i)zero_?points?\d*$|zp\d*$")
_INPUT = re.compile(r"(?i)^(?:data|input|inputs|image|images|x|states?)[\d_.:]*$")


def random_tensor(ty: TensorType, rng: np.random.Generator, name: str = "") -> np.ndarray:
    """A random tensor of a type with a known shape.

    Float inputs are standard normal, and weights of rank 2 and more have the variance 1 / fan-in. Variances lie in
    [0.5, 1.5), scales in [0.01, 0.1). Gammas are near 1; biases, betas and means are near 0. Integers of 8 bits use
    their whole range, biases lie within ±128, zero points and others in [0, 8). Raises `ValueError` for an open shape.
    """
    if not all(isinstance(d, int) for d in ty.shape):
        raise ValueError(f"the shape of {type_text(ty)} is not known")
    shape = tuple(int(d) for d in ty.shape)  # type: ignore[arg-type]
    dtype = numpy_dtype(ty.dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = 0, 8
        if _ZERO_POINT.search(name):
            pass
        elif dtype.itemsize == 1:
            info = np.iinfo(dtype)
            low, high = int(info.min), int(info.max) + 1
        elif _SHIFT.search(name) and dtype.kind == "i":
            low, high = -128, 129
        return rng.integers(low, high, shape).astype(dtype)
    if _VARIANCE.search(name):
        values = rng.uniform(0.5, 1.5, shape)
    elif _SCALE.search(name):
        values = rng.uniform(0.01, 0.1, shape)
    elif _GAMMA.search(name):
        values = rng.normal(1.0, 0.1, shape)
    elif _SHIFT.search(name):
        values = rng.normal(0.0, 0.1, shape)
    else:
        fan_in = 1 if len(shape) < 2 or _INPUT.search(name) else max(prod(shape[1:]), 1)
        values = rng.normal(0.0, fan_in**-0.5, shape)
    return np.asarray(values).astype(dtype)


def _random(ty: Type, rng: np.random.Generator, name: str) -> np.ndarray | tuple:
    if isinstance(ty, TensorType):
        return random_tensor(ty, rng, name)
    if isinstance(ty, TupleType):
        return tuple([_random(field, rng, name) for field in ty.fields])
    raise ValueError(f"{type_text(ty)} is no tensor type")


def random_params(seed: int, variables: Iterable[Var | MetaRef]) -> dict[str, np.ndarray]:
    """A random value for every typed variable, by name; tuples of tensors are tuples of arrays.

    A value depends on the seed, the variable's name and its type only, not on its neighbours. Raises `RelayError`
    (R0015) for a variable whose type is not known, or is no tensor's.
    """
    values: dict = {}
    wrong = []
    for variable in variables:
        name = variable.name_hint
        ty = variable.checked_type if variable.checked_type is not None else variable.type_annotation
        rng = np.random.default_rng([seed & 0xFFFFFFFF, zlib.crc32(name.encode("utf-8", "surrogatepass"))])
        try:
            if ty is None:
                raise ValueError("its type is not known")
            values[name] = _random(ty, rng, name)
        except (ValueError, TypeError) as e:
            wrong.append(error("R0015", f"there is no random value for `{name}`: {e}", variable.span))
    if wrong:
        raise RelayError(wrong)
    return values
