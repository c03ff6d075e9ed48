"""Which arguments an operator takes: for each a word, the element types, and where it matters the shape.

The checker holds a call against it beside the operator's relation, so that what no kernel could compute is refused with
the argument's place. Most of these calls TVM accepts and fails to compile; its conformance table lists them.

| word | the argument |
|---|---|
| `tensor` | a tensor of any element type |
| `number` | a tensor of whole or real numbers, not of bool |
| `whole` | a tensor of whole numbers or bool |
| `integer` | a tensor of whole numbers |
| `float` | a tensor of real numbers |
| `same` | a tensor of the first argument's element type |
| `any` | anything: the operator looks at no element, or its relation says what it must be |

`float[]` is a scalar, `integer[n]` a vector. In `float[b,n,4] integer[b]` the extents `b` are the same, the last one is
4; `_` is any extent, and `same[=]` has the first argument's shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from relaylang.ir.types import Dim


class Word(NamedTuple):
    """What one argument must be: its elements, and the extents of its shape (None: any shape)."""

    elements: str
    shape: tuple[str, ...] | None = None


_FUNCTIONS = (
    "nn.softmax nn.log_softmax nn.fast_softmax nn.lrn nn.l2_normalize image.affine_grid vision.multibox_prior "
    "nn.contrib_conv2d_winograd_weight_transform nn.contrib_conv3d_winograd_weight_transform"
)
_ANYTHING = (
    "annotation.bitpack_end annotation.bitpack_start annotation.cast_hint annotation.checkpoint annotation.compiler_begin "
    "annotation.compiler_end annotation.stop_fusion annotation.with_funcid on_device device_copy debug call_lowered "
    "memory.alloc_storage memory.alloc_tensor memory.kill vm.invoke_tvm_op "
    "concatenate stack meshgrid einsum adv_index qnn.concatenate"
)
_UNARY_QNN = "qnn.abs qnn.erf qnn.exp qnn.hardswish qnn.log qnn.rsqrt qnn.sigmoid qnn.sqrt qnn.tanh qnn.softmax"

#: operator -> a word for each argument. Operators that are not here take tensors.
_TAKES: dict[str, str] = {
    **dict.fromkeys(_FUNCTIONS.split(), "float"),
    **dict.fromkeys(_ANYTHING.split(), "any any any"),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor left_shift right_shift".split(), "whole whole"),
    "bitwise_not": "whole",
    "fixed_point_multiply": "integer",
    "fixed_point_multiply_per_axis": "integer integer[n] integer[n] integer[n]",
    "variance": "number same",
    # layers
    **dict.fromkeys("nn.layer_norm nn.instance_norm nn.group_norm".split(), "float same[c] same[c]"),
    "nn.batch_norm": "float same[_] same[_] same[_] same[_]",
    **dict.fromkeys("nn.cross_entropy nn.cross_entropy_with_logits".split(), "float[n,c] same[n,c]"),
    "nn.nll_loss": "float integer same[_]",
    **dict.fromkeys("nn.prelu nn.bias_add nn.fifo_buffer".split(), "tensor same"),
    **dict.fromkeys("nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.global_avg_pool2d nn.adaptive_avg_pool1d".split(), "number"),
    **dict.fromkeys("nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d".split(), "number"),
    **dict.fromkeys("nn.max_pool2d_grad nn.avg_pool2d_grad nn.conv2d_backward_weight".split(), "number same"),
    "nn.correlation": "float[n,c,h,w] same[n,c,h,w]",
    "nn.deformable_conv2d": "float same same",
    **dict.fromkeys(
        ["nn.contrib_conv2d_winograd_without_weight_transform", "nn.contrib_conv3d_winograd_without_weight_transform"],
        "float float",
    ),
    **dict.fromkeys("nn.bitpack".split(), "integer"),
    **dict.fromkeys("nn.bitserial_conv2d nn.bitserial_dense".split(), "integer integer"),
    # sparse matrices
    **dict.fromkeys("nn.sparse_dense nn.internal.sparse_dense_padded".split(),
                    "tensor[_,_] same integer[n] integer[_]"),
    "nn.sparse_add": "tensor[_,_] same integer[n] integer[_]",
    "nn.sparse_conv2d": "tensor[_,_,_,_] same integer[n] integer[_]",
    "nn.sparse_transpose": "tensor[n] integer[n] integer[_]",
    "sparse_to_dense": "integer tensor tensor[]",
    "dyn.sparse_to_dense": "integer tensor tensor[] integer[_]",
    "sparse_fill_empty_rows": "integer[n,2] tensor[n] integer[2] tensor",
    "sparse_reshape": "integer[_,r] integer[r] integer[_]",
    # places
    **dict.fromkeys("take gather gather_nd reverse_sequence".split(), "tensor integer"),
    "sequence_mask": "tensor number[_]",
    **dict.fromkeys("scatter_elements scatter_nd".split(), "tensor integer same"),
    "strided_set": "tensor same integer[_] integer[_] integer[_]",
    "matrix_set_diag": "tensor same",
    "unravel_index": "integer integer[_]",
    "invert_permutation": "integer[_]",
    "one_hot": "integer tensor[] tensor[]",
    "trilu": "tensor integer[]",
    "collapse_sum_to": "tensor integer[_]",
    "arange": "number[] number[] number[]",
    "full": "tensor[]",
    "dft": "float same[=]",
    "stft": "float float[_]",
    # shapes that are values
    **dict.fromkeys("dyn.reshape dyn.broadcast_to dyn.tile dyn.squeeze vm.reshape_tensor".split(), "tensor integer[_]"),
    **dict.fromkeys("dyn.zeros dyn.ones".split(), "integer[_]"),
    "dyn.full": "tensor[] integer[_]",
    "dyn.topk": "tensor integer",
    "dyn.one_hot": "integer tensor[] tensor[] integer",
    "dyn.strided_slice": "tensor integer[n] integer[n] integer[n]",
    "dyn.expand_dims": "tensor integer[]",
    "dyn.nn.pad": "tensor integer[_,2] tensor[]",
    "dyn.nn.upsampling": "tensor number[] number[]",
    "dyn.nn.upsampling3d": "tensor number[] number[] number[]",
    "dyn.image.resize2d": "tensor[_,_,_,_] integer[2] float[4]",
    # images and boxes
    "image.crop_and_resize": "tensor[_,_,_,_] float[n,4] integer[n]",
    "image.dilation2d": "number same",
    "image.grid_sample": "float same",
    "vision.multibox_transform_loc": "float[b,_,n] same[b,_] same[1,n,4]",
    "vision.get_valid_counts": "float[_,_,_] float[]",
    "vision.non_max_suppression": "float[b,n,_] integer[b] integer[b,n] integer[] float[]",
    "vision.all_class_non_max_suppression": "float[b,n,4] same[b,c,n] integer[] float[] float[]",
    "vision.regular_non_max_suppression": "float[b,n,4] same[b,n,_]",
    **dict.fromkeys("vision.roi_align vision.roi_pool".split(), "float[_,_,_,_] float[_,5]"),
    "vision.proposal": "float[b,_,h,w] float[b,_,h,w] float[b,3]",
    # quantised tensors
    "qnn.quantize": "float float integer",
    "qnn.dequantize": "integer float integer",
    "qnn.requantize": "integer float integer float integer",
    **dict.fromkeys("qnn.conv2d qnn.conv2d_transpose qnn.dense qnn.batch_matmul qnn.contrib_dense_pack".split(),
                    "integer integer integer integer float float"),
    **dict.fromkeys("qnn.add qnn.subtract qnn.mul".split(),
                    "integer integer float integer float integer float integer"),
    **dict.fromkeys(_UNARY_QNN.split(), "integer float integer float integer"),
    **dict.fromkeys("qnn.leaky_relu qnn.avg_pool2d".split(), "integer float integer float integer"),
    "qnn.simulated_quantize": "float integer[] float integer",
    "qnn.simulated_dequantize": "float integer[] float integer",
    "relay.op.annotation.simulated_quantize": "float same same same",
    "random.multinomial": "tensor float",
}  # fmt: skip

_KINDS = {"number": "iuf", "whole": "iub", "integer": "iu", "float": "f"}
_SAID = {
    "number": "whole or real numbers",
    "whole": "whole numbers or bool",
    "integer": "whole numbers",
    "float": "real numbers",
}
TENSOR = Word("tensor")
_WORD = re.compile(r"(\w+)(?:\[([^\]]*)\])?")


def words(text: str | Iterable[str]) -> tuple[Word, ...]:
    """`tensor integer[n]` as words."""
    found = [_WORD.fullmatch(part) for part in (text.split() if isinstance(text, str) else text)]
    return tuple([Word(m[1], None if m[2] is None else tuple(m[2].split(",") if m[2] else ())) for m in found if m])


def taken(name: str) -> tuple[Word, ...]:
    """What an operator's arguments must be."""
    return words(_TAKES.get(name, ""))


def kind_of(dtype: str) -> str:
    """`i`, `u`, `f` or `b`; empty for what holds no numbers (handles, custom types)."""
    if dtype in ("bool", "uint1"):
        return "b"
    if dtype.startswith(("float", "bfloat")):
        return "f"
    return dtype[0] if dtype.startswith(("int", "uint")) else ""


def refused_elements(word: Word, dtype: str, first: str) -> str | None:
    """Why elements are not what a word stands for; None where they are. `first` is the first argument's element type."""
    if word.elements == "same":
        return None if dtype == first else f"must be of {first}, as the first argument, not of {dtype}"
    kinds, kind = _KINDS.get(word.elements), kind_of(dtype)
    if kinds is None or kind in kinds or not kind:
        return None
    return f"must be a tensor of {_SAID[word.elements]}, not of {dtype}"


def refused_shape(word: Word, shape: Sequence[Dim], first: Sequence[Dim], bound: dict[str, int]) -> str | None:
    """Why a shape is not what a word stands for; None where it is. `bound` holds the extents of names met before."""
    pattern = word.shape
    if pattern is None:
        return None
    if pattern == ("=",):
        if len(first) != len(shape):
            return f"must have the first argument's {len(first)} dimensions, not {len(shape)}"
        pattern = tuple([str(d) if isinstance(d, int) else "_" for d in first])
    if len(shape) != len(pattern):
        count = len(pattern)
        what = f"a tensor of {count} dimension{'s' * (count != 1)}" if count else "a scalar"
        return f"must be {what}, not one of {len(shape)}" if shape else f"must be {what}, not a scalar"
    for axis, (want, have) in enumerate(zip(pattern, shape)):
        if want == "_" or not isinstance(have, int):
            continue
        known = int(want) if want.isdigit() else bound.setdefault(want, have)
        if known != have:
            return f"must have an extent of {known} at axis {axis}, not {have}"
    return None


__all__ = ["TENSOR", "Word", "kind_of", "refused_elements", "refused_shape", "taken", "words"]
