"""ToMixedPrecision: the operators that take 16 bits, those that stay at 32, and those that do as their operands do.

An operator without a row follows its operands, or is an error where a caller asks for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from relaylang.ops import Trait, having


class Precision(Enum):
    """How an operator's element type is chosen."""

    #: 16 bits: products, which accelerators compute with them.
    ALWAYS = auto()
    #: 32 bits: in 16, too much would be lost.
    NEVER = auto()
    #: The element type of the operands.
    FOLLOW = auto()
    #: As `FOLLOW`, with a result whose element type an attribute or an operand names.
    NAMED = auto()


#: The operator that changes an element type.
CAST = "cast"
_OTHER_FORMS = (Trait.QUANTISED, Trait.BLOCKED)
_PRODUCTS = (Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL)

RULES: Mapping[str, Precision] = {
    **{name: Precision.ALWAYS for trait in _PRODUCTS for name in having(trait, without=_OTHER_FORMS)},
    **dict.fromkeys((
        "exp", "power", "erf", "sum", "mean", "variance", "arange", "nn.softmax", "nn.cross_entropy",
        "nn.cross_entropy_with_logits", "nn.l2_normalize", "nn.layer_norm",
        *having(Trait.GLOBAL_POOL, Trait.AVERAGE), *having(Trait.ADAPTIVE_POOL, Trait.AVERAGE),
    ), Precision.NEVER),
    **dict.fromkeys((
        "add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "greater", "less_equal", "greater_equal",
        "abs", "negative", "sqrt", "sigmoid", "tanh", "fast_tanh", "fast_exp", "fast_erf", "clip", "copy", "where",
        "max", "min", "argmax", "argmin", "argwhere", "zeros_like", "ones_like", "shape_of",
        "nn.bias_add", "nn.batch_norm", "nn.relu", "nn.leaky_relu", "nn.prelu", "nn.dropout",
        *having(Trait.LARGEST), *having(Trait.POOL, Trait.AVERAGE, without=_OTHER_FORMS),
        "reshape", "dyn.reshape", "squeeze", "expand_dims", "nn.batch_flatten", "transpose", "concatenate", "stack", "split",
        "strided_slice", "dyn.strided_slice", "broadcast_to", "broadcast_to_like", "dyn.broadcast_to", "repeat", "tile",
        "dyn.tile", "take", "scatter_elements", "scatter_nd", "nn.pad", "nn.depth_to_space", "nn.space_to_depth",
        "image.resize2d",
    ), Precision.FOLLOW),
    **dict.fromkeys((CAST, "cast_like", "zeros", "full", "dyn.full"), Precision.NAMED),
}  # fmt: skip

#: The operators whose result's element type is the attribute `dtype`. Others have `out_dtype`, or neither.
OF_DTYPE = frozenset(having(Trait.FILL, without=[Trait.DYNAMIC, Trait.LIKE]))
