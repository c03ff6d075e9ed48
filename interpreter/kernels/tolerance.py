"""How far a result may be from another implementation's: per operator, relative to the value, and absolute.

Whole numbers and truth values agree exactly, in every operator. Floating-point results differ where sums are added in
another order or a function of the C library rounds otherwise.
"""

from __future__ import annotations

import numpy as np

#: by the bytes of a floating-point element
RELATIVE = {1: 0.13, 2: 2e-3, 4: 2e-5, 8: 1e-12}
#: what an element near zero may be off by, where the terms that cancelled were about 1
ABSOLUTE = {1: 0.05, 2: 2e-4, 4: 2e-6, 8: 1e-13}

#: Operators that only move, compare or select: their floats agree to the bit.
EXACT = frozenset(
    "abs adv_index arange argsort broadcast_to broadcast_to_like ceil clip concatenate "
    "contrib_reverse_reshape copy expand_dims floor full full_like gather gather_nd layout_transform "
    "matrix_set_diag max maximum meshgrid min minimum negative nn.batch_flatten nn.batch_to_space_nd "
    "nn.depth_to_space nn.dilate nn.fifo_buffer nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.mirror_pad nn.pad nn.relu "
    "nn.space_to_batch_nd nn.space_to_depth nn.sparse_transpose one_hot ones ones_like qnn.dequantize "
    "reinterpret repeat reshape reshape_like reverse reverse_sequence round scatter_nd "
    "sequence_mask sign slice_like sliding_window sort sparse_to_dense split squeeze stack strided_set strided_slice "
    "take tile topk transpose trilu trunc vision.get_valid_counts vision.non_max_suppression vision.yolo_reorg "
    "where zeros zeros_like".split()
)

#: (operator, bytes of an element): relative, absolute; and why it is more than usual.
LOOSER: dict[tuple[str, int], tuple[float, float, str]] = {
    ("nn.conv2d", 2): (5e-2, 8e-3, "TVM adds in float16, the interpreter in float32"),
    ("fast_erf", 2): (1e-2, 1e-2, "TVM evaluates the polynomial in float16"),
    ("erf", 8): (1e-6, 1e-7, "TVM's polynomial has the precision of float32"),
}


def tolerance(name: str, dtype: np.dtype) -> tuple[float, float]:
    """Relative and absolute tolerance of an operator's results of an element type."""
    if dtype.kind not in "fV" or name in EXACT:
        return 0.0, 0.0
    size = dtype.itemsize
    if (name, size) in LOOSER:
        return LOOSER[name, size][:2]
    return RELATIVE[size], ABSOLUTE[size]
