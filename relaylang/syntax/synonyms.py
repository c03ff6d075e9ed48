"""Other frameworks' names of Relay's operators and types, for suggestions."""

from __future__ import annotations

#: Element types.
OTHER_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "fp16": "float16",
    "fp32": "float32",
    "half": "float16",
    "float": "float32",
    "single": "float32",
    "double": "float64",
    "bf16": "bfloat16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "long": "int64",
    "short": "int16",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "si8": "int8",
    "si32": "int32",
    "byte": "uint8",
    "boolean": "bool",
    "i1": "bool",
    "char": "int8",
}

#: Operators and literals, in small letters without underscores.
OTHER_NAMES = {
    "mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative", "pow": "power", "eq": "equal", "ne": "not_equal",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "matmul": "nn.matmul",
    "linear": "nn.dense", "gemm": "nn.dense", "fullyconnected": "nn.dense", "fc": "nn.dense", "bmm": "nn.batch_matmul",
    "conv": "nn.conv2d", "convolution": "nn.conv2d", "maxpool": "nn.max_pool2d", "avgpool": "nn.avg_pool2d",
    "maxpool2d": "nn.max_pool2d", "avgpool2d": "nn.avg_pool2d", "globalaveragepool": "nn.global_avg_pool2d",
    "batchnorm": "nn.batch_norm", "batchnormalization": "nn.batch_norm", "layernorm": "nn.layer_norm", "concat": "concatenate",
    "cat": "concatenate", "unsqueeze": "expand_dims", "permute": "transpose", "flatten": "nn.batch_flatten",
    "reducesum": "sum", "reducemean": "mean", "reducemax": "max", "reducemin": "min",
    "astype": "cast", "slice": "strided_slice", "broadcast": "broadcast_to", "expand": "broadcast_to",
    "quantize": "qnn.quantize", "dequantize": "qnn.dequantize", "requantize": "qnn.requantize", "select": "where",
    "leakyrelu": "nn.leaky_relu", "pad2d": "nn.pad", "resize": "image.resize2d", "not": "logical_not", "and": "logical_and",
    "or": "logical_or", "true": "True", "false": "False", "inf": "inff", "nan": "nanf", "range": "arange",
    "clamp": "clip", "gather": "take", "embedding": "take", "reduceprod": "prod", "constantofshape": "full",
    "convtranspose": "nn.conv2d_transpose", "conv2dtranspose": "nn.conv2d_transpose", "globalmaxpool": "nn.global_max_pool2d",
    "identity": "copy", "mod": "floor_mod", "upsample": "nn.upsampling",
    "quantizelinear": "qnn.quantize", "dequantizelinear": "qnn.dequantize", "size": "ndarray_size", "shape": "shape_of",
    "layernormalization": "nn.layer_norm", "instancenormalization": "nn.instance_norm", "logsoftmax": "nn.log_softmax",
    "averagepool": "nn.avg_pool2d", "depthtospace": "nn.depth_to_space", "spacetodepth": "nn.space_to_depth",
    # PyTorch
    "addmm": "nn.dense", "mm": "nn.matmul", "view": "reshape", "chunk": "split", "narrow": "strided_slice", "flip": "reverse",
    "maskedfill": "where", "swapaxes": "transpose", "movedim": "transpose", "indexselect": "take", "interpolate": "image.resize2d",
    "hardtanh": "clip", "relu6": "clip", "reciprocal": "divide", "truedivide": "divide", "rsub": "subtract", "remainder": "floor_mod",
    "nonzero": "argwhere", "groupnormalization": "nn.group_norm", "bitwisenot": "bitwise_not", "amax": "max", "amin": "min",
    # TensorFlow and Keras
    "matmulv2": "nn.matmul", "realdiv": "divide", "truediv": "divide", "floordiv": "floor_divide", "reduceany": "any",
    "reduceall": "all", "reducelogsumexp": "logsumexp", "reducevariance": "variance", "reducestd": "std", "addn": "add",
    "gatherv2": "take", "concatv2": "concatenate", "identityn": "copy", "stopgradient": "copy", "resizebilinear": "image.resize2d",
    "resizenearestneighbor": "image.resize2d", "depthwiseconv2d": "nn.conv2d", "depthwiseconv2dnative": "nn.conv2d",
    "separableconv2d": "nn.conv2d", "maxpooling2d": "nn.max_pool2d", "averagepooling2d": "nn.avg_pool2d",
    "maxpooling1d": "nn.max_pool1d", "averagepooling1d": "nn.avg_pool1d", "globalaveragepooling2d": "nn.global_avg_pool2d",
    "globalmaxpooling2d": "nn.global_max_pool2d", "zeropadding2d": "nn.pad", "upsampling2d": "nn.upsampling",
    "l2normalization": "nn.l2_normalize", "fusedbatchnorm": "nn.batch_norm", "fusedbatchnormv3": "nn.batch_norm",
}  # fmt: skip

#: Attributes: the names that others give them, and Relay's, of which an operator has one at most.
OTHER_ATTRIBUTES = {
    "dim": ("axis", "axes"), "dims": ("axis", "axes", "newshape"), "axes": ("axis",), "axis": ("axes",), "perm": ("axes",),
    "permutation": ("axes",), "keepdim": ("keepdims",), "keep_dims": ("keepdims",), "shape": ("newshape", "shape"),
    "new_shape": ("newshape",), "size": ("newshape", "pool_size", "kernel_size"), "pads": ("padding", "pad_width"),
    "pad": ("padding", "pad_width"), "paddings": ("padding", "pad_width"), "padding": ("pad_width",), "stride": ("strides",),
    "dilations": ("dilation",), "group": ("groups",), "num_groups": ("groups",), "kernel_shape": ("kernel_size", "pool_size"),
    "kernel": ("kernel_size", "pool_size"), "kernel_size": ("pool_size",), "ksize": ("pool_size", "kernel_size"),
    "filters": ("channels",), "out_channels": ("channels",), "num_filter": ("channels",), "out_features": ("units",),
    "num_hidden": ("units",), "layout": ("data_layout",), "data_format": ("data_layout", "layout"), "min": ("a_min",),
    "max": ("a_max",), "min_val": ("a_min",), "max_val": ("a_max",), "eps": ("epsilon",), "p": ("rate",), "ratio": ("rate",),
    "negative_slope": ("alpha",), "slope": ("alpha",), "to": ("dtype",), "type": ("dtype",), "num": ("indices_or_sections",),
    "sections": ("indices_or_sections",), "split": ("indices_or_sections",), "chunks": ("indices_or_sections",),
    "starts": ("begin",), "start": ("begin",), "ends": ("end",), "stop": ("end",), "steps": ("strides",),
    "transA": ("transpose_a",), "transB": ("transpose_b",), "repeat": ("repeats",), "value": ("pad_value", "fill_value"),
    "output_dtype": ("out_dtype",), "dtype": ("out_dtype",), "count_include_padding": ("count_include_pad",),
}  # fmt: skip

#: Members of tensors in Python, and Relay's operators for them.
OTHER_MEMBERS = {"shape": "shape_of", "size": "ndarray_size", "T": "transpose"}


def relay_name(name: str) -> str | None:
    """Relay's name of an operator of another framework: `nn.fully_connected`, `reduce_sum`, `Gemm`, `F.linear`."""
    small = name.lower()
    return OTHER_NAMES.get(small) or OTHER_NAMES.get(small.rpartition(".")[2].replace("_", ""))
