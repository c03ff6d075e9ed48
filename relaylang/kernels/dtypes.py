"""Element types in C: those in memory, and those of the arithmetic."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.runtime.manifest import ELEMENTS

#: The type in memory of each dtype. A bool takes one byte of 0 or 1, as in numpy.
#: A float16 or bfloat16 is 16 bits, which operators convert to float32 and back.
CTYPES: dict[str, str] = {
    "float32": "float",
    "float64": "double",
    "float16": "uint16_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "bool": "uint8_t",
    "bfloat16": "uint16_t",
}
SIZES: dict[str, int] = ELEMENTS
_INTS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "bool": (0, 1),
}


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def int_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    return _INTS[dtype]


def literal(value: float | int | bool, dtype: str) -> str:
    """A value as a C expression of its type, exact to the bit for floats (hexadecimal)."""
    if dtype in ("float16", "bfloat16"):
        with np.errstate(over="ignore"):
            return f"({CTYPES[dtype]})({np.asarray(value, np.dtype(dtype)).view(np.uint16).item()})"
    if is_float(dtype):
        return _float_literal(float(value), dtype)
    number = int(value != 0) if dtype == "bool" else int(value)
    if dtype == "int64":
        return "INT64_MIN" if number == -(2**63) else f"INT64_C({number})"
    if dtype == "uint64":
        return f"UINT64_C({number})"
    if dtype == "int32":
        return "INT32_MIN" if number == -(2**31) else (f"({number})" if number < 0 else str(number))
    if dtype == "uint32":
        return f"UINT32_C({number})"
    return f"({CTYPES[dtype]})({number})"


def _float_literal(number: float, dtype: str) -> str:
    if number != number:
        text = '__builtin_nanf("")'
    elif number in (float("inf"), float("-inf")):
        text = "-__builtin_inff()" if number < 0 else "__builtin_inff()"
    elif number == int(number) and abs(number) < 1e6:
        text = f"{number:.1f}"
    else:
        text = number.hex()
    if dtype == "float32" and "builtin" not in text:
        text += "f"
    if dtype == "float64" and "builtin" in text:
        text = f"(double)({text})"
    return f"({text})" if text.startswith(("-", "(")) else text


@lru_cache(maxsize=1024)
def vector_of(ty: str) -> tuple[str, int]:
    """A type's element type and lanes: (`float32`, 16) of `float32x16`; 1 lane of a scalar."""
    head, _, lanes = ty.rpartition("x")
    return (head, int(lanes)) if head and lanes.isdigit() else (ty, 1)


def element_of(ty: str) -> str:
    """The element type behind a pointer; other types as they are."""
    return ty.removeprefix("const ").removesuffix("*")


def vector(dtype: str, lanes: int) -> str:
    """The type of a vector; a scalar type where there is one lane."""
    return f"{dtype}x{lanes}" if lanes > 1 else dtype
