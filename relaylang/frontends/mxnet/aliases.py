"""Further names of MXNet's operators: those of versions before 0.9, short ones, and those of other name spaces."""

from __future__ import annotations

#: Operators of two tensors and of a tensor and a number, by their names of 0.8.
_OLD = {
    "_Plus": "elemwise_add", "_Minus": "elemwise_sub", "_Mul": "elemwise_mul", "_Div": "elemwise_div", "_Mod": "_mod",
    "_Power": "_power", "_Maximum": "_maximum", "_Minimum": "_minimum", "_Hypot": "_hypot", "_Equal": "_equal",
    "_Not_Equal": "_not_equal", "_Greater": "_greater", "_Greater_Equal": "_greater_equal", "_Lesser": "_lesser",
    "_Lesser_Equal": "_lesser_equal", "_Logical_And": "_logical_and", "_Logical_Or": "_logical_or", "_Logical_Xor": "_logical_xor",
    "_PlusScalar": "_plus_scalar", "_MinusScalar": "_minus_scalar", "_RMinusScalar": "_rminus_scalar", "_MulScalar": "_mul_scalar",
    "_DivScalar": "_div_scalar", "_RDivScalar": "_rdiv_scalar", "_ModScalar": "_mod_scalar", "_RModScalar": "_rmod_scalar",
    "_PowerScalar": "_power_scalar", "_RPowerScalar": "_rpower_scalar", "_MaximumScalar": "_maximum_scalar",
    "_MinimumScalar": "_minimum_scalar", "_HypotScalar": "_hypot_scalar", "_EqualScalar": "_equal_scalar",
    "_NotEqualScalar": "_not_equal_scalar", "_GreaterScalar": "_greater_scalar", "_GreaterEqualScalar": "_greater_equal_scalar",
    "_LesserScalar": "_lesser_scalar", "_LesserEqualScalar": "_lesser_equal_scalar",
    "_LogicalAndScalar": "_logical_and_scalar", "_LogicalOrScalar": "_logical_or_scalar", "_LogicalXorScalar": "_logical_xor_scalar",
    "__add_scalar__": "_plus_scalar", "__sub_scalar__": "_minus_scalar", "__rsub_scalar__": "_rminus_scalar",
    "__mul_scalar__": "_mul_scalar", "__div_scalar__": "_div_scalar", "__rdiv_scalar__": "_rdiv_scalar",
    "__pow_scalar__": "_power_scalar", "__rpow_scalar__": "_rpower_scalar",
}  # fmt: skip
_SHORT = {
    "ElementWiseSum": "add_n", "Softmax": "SoftmaxOutput", "_add": "elemwise_add", "_plus": "elemwise_add", "_sub": "elemwise_sub",
    "_minus": "elemwise_sub", "_mul": "elemwise_mul", "_div": "elemwise_div", "_grad_add": "elemwise_add",
    "broadcast_plus": "broadcast_add", "broadcast_minus": "broadcast_sub", "broadcast_axes": "broadcast_axis", "cast": "Cast",
    "choose_element_0index": "pick", "concat": "Concat", "crop": "slice", "flatten": "Flatten", "flip": "reverse",
    "identity": "_copy", "_copyto": "_copy", "max_axis": "max", "min_axis": "min", "sum_axis": "sum", "pad": "Pad",
    "ravel_multi_index": "_ravel_multi_index", "unravel_index": "_unravel_index", "reshape": "Reshape", "split": "SliceChannel",
    "stop_gradient": "BlockGrad", "swapaxes": "SwapAxis", "ctc_loss": "CTCLoss", "_contrib_CTCLoss": "CTCLoss",
    "_contrib_ctc_loss": "CTCLoss", "_contrib_box_non_maximum_suppression": "_contrib_box_nms", "Convolution_v1": "Convolution",
    "Pooling_v1": "Pooling", "BatchNorm_v1": "BatchNorm", "_contrib_SyncBatchNorm": "BatchNorm", "linalg_gemm": "_linalg_gemm",
    "linalg_gemm2": "_linalg_gemm2", "linalg_syrk": "_linalg_syrk", "_contrib_SparseEmbedding": "Embedding",
    "uniform": "_random_uniform", "normal": "_random_normal", "random_uniform": "_random_uniform",
    "random_normal": "_random_normal", "shuffle": "_shuffle", "sample_multinomial": "_sample_multinomial", "_CrossDeviceCopy": "_copy",
    "ring_buffer": "fifo_buffer", "_contrib_ring_buffer": "fifo_buffer",
}  # fmt: skip
_NUMPY = {
    "_np_copy": "_copy", "_npi_copy": "_copy", "_np_transpose": "transpose", "_npi_transpose": "transpose",
    "_npi_maximum": "broadcast_maximum", "_npi_minimum": "broadcast_minimum", "_npi_maximum_scalar": "_maximum_scalar",
    "_npi_minimum_scalar": "_minimum_scalar", "_np_repeat": "repeat", "_npi_cast": "Cast", "_npi_clip": "clip",
    "_npi_expand_dims": "expand_dims", "_npi_full": "_full", "_npi_gather_nd": "gather_nd", "_npi_reshape": "_npx_reshape",
    "_npi_rnn_param_concat": "_rnn_param_concat", "_npi_slice": "slice", "_npi_split": "_split_v2", "_npi_swapaxes": "SwapAxis",
    "_npi_take": "take", "_npi_tile": "tile", "_npx_activation": "Activation", "_npx_arange_like": "_contrib_arange_like",
    "_npx_batch_dot": "batch_dot", "_npx_batch_flatten": "Flatten", "_npx_batch_norm": "BatchNorm", "_npx_cast": "Cast",
    "_npx_convolution": "Convolution", "_npx_deconvolution": "Deconvolution", "_npx_dropout": "Dropout",
    "_npx_embedding": "Embedding", "_npx_erf": "erf", "_npx_fully_connected": "FullyConnected", "_npx_gather_nd": "gather_nd",
    "_npx_layer_norm": "LayerNorm", "_npx_leaky_relu": "LeakyReLU", "_npx_log_softmax": "log_softmax",
    "_npx_multibox_detection": "_contrib_MultiBoxDetection", "_npx_multibox_prior": "_contrib_MultiBoxPrior",
    "_npx_one_hot": "one_hot", "_npx_pick": "pick", "_npx_pooling": "Pooling", "_npx_reshape_like": "reshape_like",
    "_npx_rnn": "RNN", "_npx_roi_pooling": "ROIPooling", "_npx_sequence_mask": "SequenceMask", "_npx_shape_array": "shape_array",
    "_npx_slice": "slice", "_npx_smooth_l1": "smooth_l1", "_npx_softmax": "softmax", "_npx_topk": "topk",
    "_npx_relu": "relu", "_npx_sigmoid": "sigmoid", "_np_squeeze": "squeeze",
    "_npi_add": "broadcast_add", "_npi_subtract": "broadcast_sub", "_npi_multiply": "broadcast_mul", "_npi_power": "broadcast_power",
    "_npi_mod": "broadcast_mod", "_npi_add_scalar": "_plus_scalar", "_npi_subtract_scalar": "_minus_scalar",
    "_npi_rsubtract_scalar": "_rminus_scalar", "_npi_multiply_scalar": "_mul_scalar", "_npi_power_scalar": "_power_scalar",
    "_npi_rpower_scalar": "_rpower_scalar", "_npi_mod_scalar": "_mod_scalar", "_npi_rmod_scalar": "_rmod_scalar",
    **{f"_npi_{name}": name for name in (
        "sqrt", "square", "cbrt", "reciprocal", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin",
        "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "negative", "sign", "rint",
        "ceil", "floor", "trunc", "fix",
    )},
    "_npi_abs": "abs", "_npi_absolute": "abs",
}  # fmt: skip
#: A further name, and the name under which the table has the operator.
ALIASES: dict[str, str] = {**_OLD, **_SHORT, **_NUMPY}
#: The name space of operators that take sparse arrays, too.
SPARSE = "_sparse_"

__all__ = ["ALIASES", "SPARSE"]
