"""PaddlePaddle's messages: the public field numbers of those fields that the importer reads.

Source: PaddlePaddle, framework.proto.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from relaylang.frontends.common.protobuf import messages

_TABLE = """
ProgramDesc: blocks 1 BlockDesc*; version 4 Version
Version: version 1 int64
BlockDesc: idx 1 int32; parent_idx 2 int32; vars 3 VarDesc*; ops 4 OpDesc*
VarDesc: name 1 bytes; type 2 VarType; persistable 3 bool; need_check_feed 4 bool
VarType: type 1 int32; lod_tensor 3 LoDTensorDesc
LoDTensorDesc: tensor 1 TensorDesc
TensorDesc: data_type 1 int32; dims 2 int64*
OpDesc: inputs 1 OpVar*; outputs 2 OpVar*; type 3 bytes; attrs 4 OpAttr*
OpVar: parameter 1 bytes; arguments 2 bytes*
OpAttr: name 1 bytes; type 2 int32; i 3 int32; f 4 float; s 5 bytes; ints 6 int32*; floats 7 float*; strings 8 bytes*;
    b 10 bool; bools 11 bool*; block_idx 12 int32; l 13 int64; blocks_idx 14 int32*; longs 15 int64*; float64s 16 double*;
    var_name 17 bytes; vars_name 18 bytes*; float64 19 double; scalar 20 Scalar; scalars 21 Scalar*
Scalar: type 1 int32; b 2 bool; i 3 int64; r 4 double
"""

#: The kinds of attributes -> the fields with their values.
ATTRIBUTES = {
    0: "i",
    1: "f",
    2: "s",
    3: "ints",
    4: "floats",
    5: "strings",
    6: "b",
    7: "bools",
    8: "block_idx",
    9: "l",
    10: "blocks_idx",
    11: "longs",
    12: "float64s",
    13: "var_name",
    14: "vars_name",
    15: "float64",
    16: "scalar",
    17: "scalars",
}
#: The kinds of scalars -> the fields with their values.
SCALARS = {1: "b", 2: "i", 3: "r"}
#: The numbers of element types.
DTYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
    22: "bfloat16",
}
#: Kinds of variables: tensors, and arrays of them.
TENSOR, ARRAY = 7, 13


@cache
def paddle() -> dict[str, Any]:
    """The classes of the messages by name. Raises `RelayError` (R0803) where protobuf is missing."""
    return messages(_TABLE, "relaylang.paddle", "paddle", "proto2")


__all__ = ["ARRAY", "ATTRIBUTES", "DTYPES", "SCALARS", "TENSOR", "paddle"]
