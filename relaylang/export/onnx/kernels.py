"""The element types that onnxruntime's CPU kernels take, where these are fewer than ONNX's; others are cast around a layer.

From the kernel definitions of onnxruntime 1.32 for opset 21. It casts float16 itself, so that always counts as taken.
"""

from __future__ import annotations

_SINGLE = ("float32",)
_REAL = ("float32", "float64")
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SUMS = (*_REAL, "int32", "int64")
_ENDS = (*_REAL, "int8", "int32", "int64", "uint8", "uint32", "uint64")

#: The element types by operator, of all its operands that have one type.
_TAKEN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Conv", "ConvTranspose", "Cosh", "Erf",
                     "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "LRN", "LeakyRelu", "PRelu", "Sinh",
                     "Tan"), _SINGLE),
    **dict.fromkeys(("BatchNormalization", "Ceil", "Cos", "Exp", "Floor", "LayerNormalization", "Log", "LogSoftmax", "Reciprocal",
                     "Sigmoid", "Sin", "Softmax", "Sqrt", "Tanh"), _REAL),
    **dict.fromkeys(("Abs", "Add", "Div", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod", "Mul", "Neg", "Sub"),
                    (*_REAL, *_WHOLE)),
    **dict.fromkeys(("Equal", "Expand", "Size", "Tile"), (*_REAL, *_WHOLE, "bool")),
    **dict.fromkeys(("CumSum", "Einsum", "Pow", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare"), _SUMS),
    **dict.fromkeys(("Clip", "Max", "Min"), _ENDS),
    "DepthToSpace": (*_REAL, "int8", "uint8"),
    "SpaceToDepth": (*_REAL, "int8", "uint8"),
    "MatMul": (*_REAL, "int32", "int64", "uint32", "uint64"),
    "MaxPool": (*_REAL, "int8", "uint8"),
    "NonZero": ("float32", "int32", "int64", "uint8", "bool"),
    "Pad": (*_ENDS, "bfloat16", "bool"),
    "Relu": (*_REAL, "int8", "int32"),
    "Resize": ("float32", "int8", "int32", "uint8"),
    "TopK": (*_REAL, "int8", "int16", "int32", "int64", "uint8"),
    "Trilu": (*_SUMS, "bool"),
    "Where": (*_REAL, "int8", "int32", "int64", "uint8", "uint32"),
}  # fmt: skip
#: Operators that move elements, or whose results wrap alike, so that numbers of 64 bits may change their sign around them.
_WRAPS = ("CumSum", "Einsum", "NonZero", "ReduceSum", "Trilu", "Where")
#: The types that hold every number of a type, the next one first.
_WIDER = {
    "float64": ("float32",),
    "bfloat16": ("float32",),
    "bool": ("uint8", "int32"),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("int16", "int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
}
#: Operators that only move truth values.
_MOVES = ("DepthToSpace", "Resize", "SpaceToDepth", "Where")


def carrier(kind: str, dtype: str) -> str:
    """The element type that stands for `dtype` around an operator: one that has a kernel, and holds its numbers.

    float64 becomes float32 where there are no other kernels. Where nothing fits, it is `dtype`.
    """
    taken = _TAKEN.get(kind)
    if taken is None or dtype in taken or dtype == "float16" or (dtype == "bool" and kind not in _MOVES):
        return dtype
    wider = ("int64",) if dtype == "uint64" and kind in _WRAPS else _WIDER.get(dtype, ())
    return next((other for other in wider if other in taken), dtype)


__all__ = ["carrier"]
