"""Scalars and strings as they stand in Relay text.

The style "lossless" writes the shortest digits that read back to the same bits, and the type's suffix.
The style "tvm" writes what TVM 0.16 wrote: six significant digits, no 8-bit and no unsigned scalars.
"""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

#: The suffix of each type that may stand as a literal. A whole number without one is int32.
SUFFIXES: dict[str, str] = {
    "int8": "i8",
    "int16": "i16",
    "int32": "",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "float32": "f",
    "float64": "f64",
    "bfloat16": "bf16",
}

#: The types whose scalars TVM printed in line.
TVM_SCALARS = frozenset({"int16", "int32", "int64", "float16", "float32", "float64", "bool"})

_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})


def _arrange(digits: str, exponent: int) -> str:
    """Decimal digits d.ddd × 10^exponent as C's %g arranges them, with as many digits as there are (at least 6)."""
    precision = max(6, len(digits))
    if exponent < -4 or exponent >= precision:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def _shortest(value: np.ndarray, dtype: str) -> tuple[str, int]:
    """The fewest decimal digits, and their exponent, that read back to the same positive number of this type.

    Whole numbers below a million keep all theirs.
    """
    number = float(value)
    if dtype == "float64":
        text = f"{number!r}"
        mantissa, _, exp = text.partition("e")
        integer, _, fraction = mantissa.partition(".")
        digits = (integer + fraction).lstrip("0")
        leading = len(integer) - 1 if integer != "0" else len(fraction.lstrip("0")) - len(fraction) - 1
        exponent = int(exp or 0) + leading
        return digits.rstrip("0") or "0", exponent
    scalar = value.dtype.type
    if number < 1e6 and number.is_integer():  # 65504, where float16 would read 65500 as the same
        digits = str(int(number))
        return digits.rstrip("0"), len(digits) - 1
    with np.errstate(over="ignore"):
        for places in range(9):
            text = f"{number:.{places}e}"
            if scalar(float(text)) == scalar(number):
                break
    mantissa, _, exp = text.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exp)


def float_text(value: AnyValue, dtype: str = "float64") -> str:
    """The shortest digits of a floating-point number of a type, without a suffix; `nan`, `inf`, `-inf`."""
    array = np.asarray(value, dtype="float64" if dtype == "float64" else None)
    number = float(array)
    if number != number:
        return "nan"
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    sign = "-" if np.signbit(number) else ""
    if number == 0:
        return sign + "0"
    return sign + _arrange(*_shortest(abs(array), dtype))


def tvm_float_text(number: float) -> str:
    """A floating-point number with 6 significant digits, as a C++ stream writes it."""
    return f"{number:g}"


def scalar_text(data: np.ndarray, dtype: str, style: str = "lossless") -> str | None:
    """A tensor of rank 0 as a literal, or None where this style has no literal for it."""
    if data.ndim != 0 or data.dtype.name != dtype:
        return None
    if dtype == "bool":
        return "True" if data else "False"
    if style == "tvm":
        if dtype not in TVM_SCALARS:
            return None
        if dtype in _FLOATS:
            return tvm_float_text(float(data)) + SUFFIXES[dtype]
        return f"{int(data)}{SUFFIXES[dtype]}"
    suffix = SUFFIXES.get(dtype)
    if suffix is None:
        return None
    if dtype in _FLOATS:
        if np.isnan(data) and data.tobytes() != np.array(np.nan, dtype=data.dtype).tobytes():
            return None  # The literal `nan` reads as other bits.
        return float_text(data, dtype) + suffix
    return f"{int(data)}{suffix}"


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def string_text(value: str) -> str:
    """A string in double quotes. Letters of every language stand as they are; control characters are escaped."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    out = ['"']
    for c in value:
        if c in _ESCAPES:
            out.append(_ESCAPES[c])
        elif c.isprintable():
            out.append(c)
        elif ord(c) < 0x100:
            out.append(f"\\x{ord(c):02x}")
        elif ord(c) < 0x10000:
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(f"\\U{ord(c):08x}")
    out.append('"')
    return "".join(out)


_TVM_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def tvm_string_text(value: str) -> str:
    """A string in double quotes as TVM escapes it: byte by byte, in hexadecimal where not printable ASCII."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    out = []
    for byte in value.encode("utf-8", "surrogatepass"):
        out.append(_TVM_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}"))
    return '"' + "".join(out) + '"'
