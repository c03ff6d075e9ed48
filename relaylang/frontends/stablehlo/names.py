"""The names that StableHLO and Relay give the same things. The exporter reads them, too."""

from __future__ import annotations

import re

from relaylang.frontends.common.versions import Versions

#: MLIR's names of Relay's element types.
DTYPES = {
    "bool": "i1",
    "int4": "i4",
    "uint4": "ui4",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
}
#: Relay's operators of one tensor -> StableHLO's, or CHLO's with the dialect's name.
ONE = {
    "bitwise_not": "not",
    "cos": "cosine",
    "exp": "exponential",
    "log": "log",
    "logical_not": "not",
    "negative": "negate",
    "rsqrt": "rsqrt",
    "sin": "sine",
    "sqrt": "sqrt",
    "tanh": "tanh",
    **{name: f"chlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "erf")},
}
#: Relay's operators of two tensors of one type -> StableHLO's.
TWO = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "logical_and": "and",
    "logical_or": "or",
    "logical_xor": "xor",
    "trunc_mod": "remainder",
}
#: Relay's comparisons -> the directions of `stablehlo.compare`.
COMPARED = {"equal": "EQ", "not_equal": "NE", "greater_equal": "GE", "greater": "GT", "less_equal": "LE", "less": "LT"}
_VERSION = re.compile(r"_v(\d+)$")
#: The versions of VHLO's operations, which another version gives another form or meaning.
_VERSIONS = Versions("the version of a VHLO operation", 1, 2)


def plain_name(name: str) -> str:
    """The name of an operation without VHLO's version; those of vhlo are called stablehlo's, or func's."""
    if name.startswith("vhlo."):
        name = _VERSION.sub("", name)
        kind = name.removeprefix("vhlo.")
        return name if kind == "func" else f"func.{kind}" if kind == "call" else f"stablehlo.{kind}"
    if name.startswith("mhlo."):
        return f"stablehlo.{name[5:]}"
    return {"call": "func.call"}.get(name, name)


def check_version(name: str, file: str) -> None:
    """Raise `RelayError` (R0807) for an operation of VHLO whose version the importer does not know."""
    version = _VERSION.search(name)
    if version and name.startswith("vhlo."):
        _VERSIONS.refuse(int(version[1][:9]), f"{file}, {name[:60]}")


__all__ = ["COMPARED", "DTYPES", "ONE", "TWO", "check_version", "plain_name"]
