"""Literals as values: numbers with their suffixes, strings with their escapes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any as AnyValue

import numpy as np

_NUMBER = re.compile(r"(-?)(inf|nan|[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)(\w*)\Z")
_SUFFIX = re.compile(r"(i(?=\Z)|[iu](?=[0-9]))(8|16|32|64|)|f(16|32|64|)|(bf16)")
#: Element types that may hold an integer which another does not, the narrowest first.
_WIDER = ("uint8", "int16", "uint16", "int32", "int64", "uint64")
_ESCAPE = re.compile(r"(?:\\x[0-9a-fA-F]{2})+|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[0-7]{1,3}|\\[\s\S]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)
_MALFORMED = re.compile(r"\\(?:x(?![0-9a-fA-F]{2})|u(?![0-9a-fA-F]{4})|U(?!00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|[^xuU])", re.S)
_DIGITS = {"x": "two hexadecimal digits", "u": "four hexadecimal digits", "U": "eight digits of a character's code"}
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "\n": ""}
DTYPE = re.compile(
    r"(?:bool|bfloat16|u?int(?:[1-9][0-9]{0,2})?|float(?:16|32|64|8_\w+|6_\w+|4_\w+|[1-9][0-9]{0,2})?|handle|e4m3_float8|e5m2_float8|custom\[\w+\][0-9]+)"
    r"(?:x[0-9]{1,4})?\Z"
)


class LiteralError(ValueError):
    """A literal has no value of its type; the message says why."""


def is_dtype(name: str) -> bool:
    """Whether a name is an element type's."""
    return DTYPE.match(name) is not None


def numpy_dtype(name: str) -> np.dtype:
    """The numpy type of a literal's element type."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _dtype_of(suffix: str, floating: bool, text: str) -> str:
    match = _SUFFIX.fullmatch(suffix)
    if match is None:
        if suffix[:1] in "xXoO" and text[:1] == "0":
            raise LiteralError("numbers are written with decimal digits only")
        raise LiteralError(f"`{suffix[:20]}` is no suffix of a number: there are i8 to i64, u8 to u64, f, f16, f32, f64, bf16")
    sign, width, float_width, brain = match.groups()
    if brain:
        return "bfloat16"
    if sign:
        if floating:
            raise LiteralError(f"`{text[:40]}` has a fraction, an exponent or no bounds, which whole numbers do not have")
        return ("int" if sign == "i" else "uint") + (width or "32")
    return "float" + (float_width or "32")


def _integer(digits: str) -> int:
    if len(digits) > 40:
        raise LiteralError("the number does not fit 64 bits")
    return int(digits)


def scalar(text: str) -> tuple[np.ndarray, str]:
    """A numeric literal as an array of rank 0 and its element type. Raises `LiteralError`, never rounds out of range."""
    match = _NUMBER.match(text)
    if match is None:
        raise LiteralError(f"`{text[:40]}` is not a number")
    sign, digits, fraction, exponent, suffix = match.groups()
    special = digits in ("inf", "nan")
    floating = special or fraction is not None or exponent is not None
    if not suffix:
        dtype = "float32" if floating else ""
    else:
        dtype = _dtype_of(suffix, floating, text)
    if not dtype or dtype[0] in "iu":
        value = _integer(digits)
        if sign:
            value = -value
        if not dtype:
            dtype = "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            wider = next((d for d in _WIDER if np.iinfo(d).min <= value <= np.iinfo(d).max), None)
            hint = f"; {wider} holds it" if wider else ""
            raise LiteralError(f"{value} does not fit {dtype}, which holds {info.min} to {info.max}{hint}")
        return _frozen(np.array(value, dtype)), dtype
    kind = numpy_dtype(dtype)
    number = float(sign + digits)
    with np.errstate(over="ignore", under="ignore"):
        array = np.array(number, "float64").astype(kind)
    if not special:
        if abs(number) > largest(dtype) or not np.isfinite(array.astype("float64")):
            raise LiteralError(f"{sign}{digits[:40]} is too large for {dtype}, whose largest number is {largest(dtype):.9g}")
        if array == 0 and digits.partition("e")[0].partition("E")[0].strip("0."):
            raise LiteralError(f"{sign}{digits[:40]} is too small for {dtype}: it would be read as 0")
    return _frozen(array), dtype


@lru_cache(maxsize=8)
def largest(dtype: str) -> float:
    """The largest number of a floating-point type, as its shortest digits that read back tell it."""
    import ml_dtypes

    most = ml_dtypes.finfo(numpy_dtype(dtype)).max
    if dtype == "float64":
        return float(most)
    for places in range(9):
        text = f"{float(most):.{places}e}"
        with np.errstate(over="ignore"):
            if most.dtype.type(float(text)) == most:
                return max(float(text), float(most))
    return float(most)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def attribute_number(text: str) -> AnyValue:
    """A numeric literal as an attribute's value: int, float (`f` or no suffix), else a numpy scalar of its type."""
    match = _NUMBER.match(text)
    if match is not None and not match[5]:
        if match[3] is None and match[4] is None and match[2] not in ("inf", "nan"):
            value = _integer(match[2]) * (-1 if match[1] else 1)
            if not -(1 << 63) <= value < 1 << 63:
                raise LiteralError(f"{value} does not fit int64")
            return value
        return float(match[1] + match[2])
    array, dtype = scalar(text)
    if dtype == "float32" and match is not None:
        return float(match[1] + match[2])
    return array[()]


def _unescape(match: re.Match[str]) -> str:
    text = match.group()
    if text[1] == "x" and len(text) > 2:
        codes = [int(text[i + 2 : i + 4], 16) for i in range(0, len(text), 4)]
        try:
            return bytes(codes).decode("utf-8")
        except UnicodeDecodeError:
            return "".join(map(chr, codes))
    if text[1] in "uU" and len(text) > 2:
        code = int(text[2:], 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if text[1] in "01234567" and len(text) > 1:
        return chr(int(text[1:], 8) & 0xFF)
    return _PLAIN.get(text[1], text[1])


def string(text: str) -> str:
    """The value of a string literal, quotes included in `text`."""
    inner = text[1:-1]
    return _ESCAPE.sub(_unescape, inner) if "\\" in inner else inner


def bad_escapes(token: str) -> list[tuple[int, str]]:
    """The escapes of a token's strings that lack their digits: where each begins, and the digits it needs."""
    escapes = []
    for literal in _STRING.finditer(token):
        for escape in _MALFORMED.finditer(token, *literal.span()):
            if escape[0][1] in _DIGITS:
                escapes.append((escape.start(), f"the escape `{escape[0][:2]}` wants {_DIGITS[escape[0][1]]} behind it"))
    return escapes
