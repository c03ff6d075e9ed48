"""Passes one by one, in sequences, of a script's own, and watched, as scripts for TVM 0.7 to 0.16 had them.

Usage:

    relay tvm examples/legacy/pass_infra.py
"""

import numpy as np
import tvm
from tvm import relay


def network():
    image = relay.var("image", shape=(1, 4, 8, 8))
    kernel = relay.var("kernel", shape=(4, 4, 3, 3))
    shift = relay.multiply(relay.const(np.full((4, 1, 1), 0.5, "float32")), relay.const(3.0))
    features = relay.nn.relu(relay.add(relay.nn.conv2d(image, kernel, padding=(1, 1)), shift))
    left = relay.sigmoid(features)
    right = relay.sigmoid(features)
    return tvm.IRModule.from_expr(relay.Function([image, kernel], relay.multiply(left, right)))


def operators(mod):
    names = []

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            names.append(expr.op.name)

    relay.analysis.post_order_visit(mod["main"], visit)
    return names


mod = network()
print("at first:", len(operators(mod)), "calls")
print("constants folded:", len(operators(relay.transform.FoldConstant()(mod))))
print("equal calls shared:", len(operators(relay.transform.EliminateCommonSubexpr()(mod))))

build = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.EliminateCommonSubexpr(),
        relay.transform.FuseOps(fuse_opt_level=2),
    ],
    name="build",
)
with tvm.transform.PassContext(opt_level=3):
    print("in a sequence:", len(operators(build(mod))), "Primitive=1" in str(build(mod)))
with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
    print("without FoldConstant:", len(operators(build(mod))))


class Halved(relay.ExprMutator):
    def visit_constant(self, const):
        return relay.divide(const, relay.const(2, const.data.dtype)) if const.data.shape else const


@relay.transform.function_pass(opt_level=1)
class HalveConstants:
    """Halves the constants that are no scalars."""

    def transform_function(self, func, mod, ctx):
        return Halved().visit(func)


halve = HalveConstants()
print(halve.info.name, "adds", [name for name in operators(halve(mod)) if name == "divide"])


@tvm.instrument.pass_instrument
class Names:
    def __init__(self):
        self.names = []

    def run_before_pass(self, mod, info):
        self.names.append(info.name)


names, times = Names(), tvm.instrument.PassTimingInstrument()
with tvm.transform.PassContext(opt_level=3, instruments=[names, times]):
    build(mod)
    table = times.render()
print([name for name in names.names if name in ("FoldConstant", "EliminateCommonSubexpr", "FuseOps")])
print("each has a time:", all(name in table for name in ("FoldConstant", "EliminateCommonSubexpr", "FuseOps")))
