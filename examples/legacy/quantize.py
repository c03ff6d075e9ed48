"""Turns a network with fake quantisation into one of 8-bit integers, and compares them.

Usage:

    relay tvm examples/legacy/quantize.py
"""

import numpy as np
import tvm
from tvm import relay

SCALES = {"x": 0.02, "w": 0.01, "y": 0.1}


def fake(expr, name):
    """Quantised, and back to floats."""
    scale, zero = relay.const(SCALES[name], "float32"), relay.const(0, "int32")
    return relay.qnn.op.dequantize(relay.qnn.op.quantize(expr, scale, zero, out_dtype="int8"), scale, zero)


x = relay.var("x", shape=[1, 3, 16, 16], dtype="float32")
random = np.random.RandomState(2)
weight = relay.const(random.uniform(-1, 1, (8, 3, 3, 3)).astype("float32"))
conv = relay.nn.conv2d(fake(x, "x"), fake(weight, "w"), kernel_size=[3, 3], padding=[1, 1])
y = fake(relay.nn.relu(conv), "y")
mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))

integers = relay.transform.FakeQuantizationToInteger()(mod)
names = sorted({str(op) for op in relay.analysis.list_op_freqs(integers) if str(op).startswith("qnn.")})
print("operators:", ", ".join(names))

with tvm.transform.PassContext(opt_level=3):
    lowered = relay.qnn.transform.CanonicalizeOps()(relay.transform.FoldConstant()(integers))
print("qnn is left:", any(str(op).startswith("qnn.") for op in relay.analysis.list_op_freqs(lowered)))

image = random.uniform(-1, 1, (1, 3, 16, 16)).astype("float32")
wanted = relay.create_executor("debug", mod).evaluate()(image).numpy()
found = relay.create_executor("graph", integers, tvm.cpu(), "llvm").evaluate()(image).numpy()
step = SCALES["y"] * (1 + 1e-5)
print("differs by a step at most:", bool(np.abs(wanted - found).max() <= step))
