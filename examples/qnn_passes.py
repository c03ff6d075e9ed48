"""Two passes that convert the quantized convolution of PyTorch's importer to the form of TFLite's.

    relay opt net.relay --load examples/qnn_passes.py --passes "QnnQuantizeConstFold,RemoveClipAfterRequantize"

PyTorch's importer quantizes weights and biases in the program. For the activation it requantizes to int32, clips and
casts. TFLite's importer has integer constants, and requantizes to uint8 directly. The pattern tables of accelerators
expect the second form.
"""

from __future__ import annotations

import numpy as np

import relaylang as relay
from relaylang.dataflow_pattern import DFPatternCallback, is_constant, is_op, wildcard
from relaylang.ops import make_attrs


class QnnQuantizeConstFold(DFPatternCallback):
    """Replaces qnn.quantize of a constant by the integer constant that it computes."""

    def __init__(self):
        super().__init__()
        self.pattern = is_op("qnn.quantize")(is_constant(), is_constant(), is_constant())

    def callback(self, pre, post, node_map):
        data, scale, zero_point = (arg.data for arg in post.args)
        dtype = np.dtype(post.attrs.out_dtype)
        # The scales of channels lie along the attribute's axis.
        shape = [-1 if i == post.attrs.axis % data.ndim else 1 for i in range(data.ndim)]
        scale, zero_point = (v.reshape(shape) if v.size > 1 else v for v in (scale, zero_point))
        scaled = data / scale
        rounded = np.trunc(scaled + np.copysign(0.5, scaled)) + zero_point
        info = np.iinfo(dtype)
        return relay.Constant(np.clip(rounded.astype(np.float64), info.min, info.max).astype(dtype))


class RemoveClipAfterRequantize(DFPatternCallback):
    """Replaces requantize to int32, clip and cast by a requantize to uint8 or int8, which saturates."""

    def __init__(self):
        super().__init__()
        self.requantize = is_op("qnn.requantize")(wildcard(), wildcard(), wildcard(), wildcard(), wildcard())
        self.clip = is_op("clip")(self.requantize)
        self.pattern = is_op("cast")(self.clip)

    def callback(self, pre, post, node_map):
        requantize = node_map[self.requantize][0]
        clip = node_map[self.clip][0]
        dtype = post.attrs.dtype
        limits = {"uint8": (0, 255), "int8": (-128, 127)}.get(dtype)
        if (clip.attrs.a_min, clip.attrs.a_max) != limits:
            return post
        names = type(requantize.attrs).schema
        attrs = {**{name: getattr(requantize.attrs, name) for name in names}, "out_dtype": dtype}
        return relay.Call(requantize.op, requantize.args, make_attrs(type(requantize.attrs), attrs))
