"""FlattenAtrousConv: the convolutions that take in a split of space into a batch, and the number that fills its
padding.

A rule gets a convolution's call. It returns the number with which the convolution pads, or None where that is not
known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relaylang.ir import Call
from relaylang.ir.tensors import scalar_value

Rule = Callable[[Call], "float | None"]

#: The operators in front of and behind the convolution.
SPLIT, JOIN = "nn.space_to_batch_nd", "nn.batch_to_space_nd"


RULES: Mapping[str, Rule] = {"nn.conv2d": lambda call: 0.0, "qnn.conv2d": lambda call: scalar_value(call.args[2])}
