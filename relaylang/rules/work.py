"""Work of a call in the interpreter, beyond a step for each element that it reads or makes.

A rule gives an upper bound of a typed call's steps. An unknown extent counts as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from relaylang.ir import Call, TensorType, TupleType, Type
from relaylang.ir.tensors import static_shape
from relaylang.ops.record import Op, OpPattern
from relaylang.rules.macs import RULES as MACS

Rule = Callable[[Call], int]
#: Operators that are neither element-wise nor reductions may sort, interpolate or take functions of many steps.
_STEPS = 64


def elements(ty: Type | None) -> int:
    """The elements of a tensor, or of all in a tuple, with 1 for each extent that is not known."""
    if isinstance(ty, TupleType):
        return sum(map(elements, ty.fields))
    if isinstance(ty, TensorType):
        return prod(int(d) if isinstance(d, int) else 1 for d in ty.shape)
    return 0


def work(call: Call) -> int:
    """An upper bound of the steps of a typed call of an operator, whose operands are constants."""
    assert isinstance(call.op, Op)
    moved = elements(call.checked_type) + sum(elements(a.checked_type) for a in call.args)
    rule = RULES.get(call.op.name)
    if rule is not None:
        return moved + rule(call)
    return moved if call.op.pattern <= OpPattern.COMM_REDUCE else moved * _STEPS


def _product(call: Call) -> int:
    """Each element of the result takes at most every element of the second operand."""
    return elements(call.checked_type) * elements(call.args[1].checked_type)


def _windows(call: Call) -> int:
    return elements(call.checked_type) * prod(map(int, call.attrs.pool_size))


def _regions(call: Call) -> int:
    """A region may cover the whole image."""
    return elements(call.checked_type) * elements(call.args[0].checked_type)


def _correlation(call: Call) -> int:
    return elements(call.checked_type) * int(call.attrs.kernel_size) ** 2 * elements(call.args[0].checked_type)


def _einsum(call: Call) -> int:
    """Each combination of the indices takes a step for each operand."""
    operands = call.args[0].checked_type
    assert isinstance(operands, TupleType)
    names = call.attrs.equation.replace(" ", "").split("->")[0].split(",")
    if "." in call.attrs.equation:
        return prod(max(elements(t), 1) for t in operands.fields)
    extents = {name: d for word, t in zip(names, operands.fields) for name, d in zip(word, static_shape(t) or ())}
    return prod(extents.values()) * len(operands.fields)


def _transform(call: Call) -> int:
    """stft: each frame is multiplied by a matrix."""
    return elements(call.checked_type) * int(call.attrs.n_fft)


def _neighbours(call: Call) -> int:
    return elements(call.checked_type) * int(call.attrs.size)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            "nn.conv1d_transpose",
            "nn.conv3d_transpose",
            "nn.conv2d_backward_weight",
            "nn.deformable_conv2d",
            "nn.sparse_conv2d",
            "nn.bitserial_conv2d",
            "nn.bitserial_dense",
            "nn.sparse_dense",
            "nn.internal.sparse_dense_padded",
            "image.dilation2d",
            "nn.contrib_conv2d_gemm_without_weight_transform",
            "nn.contrib_conv2d_winograd_without_weight_transform",
            "nn.contrib_conv3d_winograd_without_weight_transform",
            "nn.contrib_dense_pack",
            "qnn.contrib_dense_pack",
            "qnn.conv2d_transpose",
        ),
        _product,
    ),
    **dict.fromkeys(
        ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "qnn.avg_pool2d"),
        _windows,
    ),
    **dict.fromkeys(
        ("nn.max_pool2d_grad", "nn.avg_pool2d_grad"),
        lambda call: elements(call.args[0].checked_type) * prod(map(int, call.attrs.pool_size)),
    ),
    **dict.fromkeys(
        (
            "vision.non_max_suppression",
            "vision.all_class_non_max_suppression",
            "vision.regular_non_max_suppression",
            "vision.proposal",
        ),
        # Boxes are compared with each other.
        lambda call: max(elements(a.checked_type) for a in call.args) ** 2,
    ),
    **dict.fromkeys(("vision.roi_align", "vision.roi_pool"), _regions),
    "nn.correlation": _correlation,
    "nn.lrn": _neighbours,
    "einsum": _einsum,
    "stft": _transform,
    **MACS,
}
