"""Dense layers with weights in blocks, as MatMulNBits of onnxruntime."""

from __future__ import annotations

from relaylang.export.attributes import result
from relaylang.export.onnx.emitter import Emitter
from relaylang.export.walk import Value
from relaylang.ir import Call
from relaylang.passes.rewriting import is_call
from relaylang.rules.quantization.blocks import packed


def dense_of_blocks(e: Emitter, call: Call, x: Value) -> Value | None:
    """A product of float32 whose weight is the expression of `Blocks`; None for another."""
    definition = e.defined(call.args[1])
    while definition is not None and is_call(definition[0], "strided_slice", "reshape"):
        definition = e.defined(definition[0].args[0])
    if definition is None or not is_call(definition[0], "qnn.dequantize"):
        return None
    node, scope = definition
    codes, scales, zeros = (scope[a].data for a in node.args)  # type: ignore[index]
    rows, columns = (int(n) for n in call.args[1].checked_type.shape)  # type: ignore[union-attr]
    if any(v is None for v in (codes, scales, zeros)) or codes.dtype != "uint8" or codes.ndim != 2 or x.dtype != "float32":
        return None
    size = codes.shape[1]
    blocks = -(-columns // size)
    if size < 16 or size & (size - 1) or rows * blocks != len(codes) or scales.size != len(codes) or zeros.size != len(codes):
        return None
    if not 0 <= zeros.min(initial=0) <= zeros.max(initial=0) <= 255:
        return None
    bits = 4 if max(codes.max(initial=0), zeros.max(initial=0)) < 16 else 8
    return e.custom(  # type: ignore[no-any-return]
        "com.microsoft",
        "MatMulNBits",
        x,
        e.array(packed(codes.reshape(rows, blocks, size), bits), "weight"),
        e.array(scales.reshape(rows, blocks), "scales"),
        e.array(packed(zeros.reshape(rows, blocks), bits), "zeros"),
        results=[result(call)],
        K=columns,
        N=rows,
        bits=bits,
        block_size=size,
    )


__all__ = ["dense_of_blocks"]
