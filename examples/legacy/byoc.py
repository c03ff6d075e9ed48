"""Partitions a network for an accelerator of one's own: a pattern table, checks, and the passes that use them.

Usage:

    relay tvm examples/legacy/byoc.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.dataflow_pattern import is_constant, is_op, wildcard
from tvm.relay.op.contrib.register import get_pattern_table, register_pattern_table

NAME = "my_accel"


@register_pattern_table(NAME)
def pattern_table():
    def conv_bias_relu():
        conv = is_op("nn.conv2d")(wildcard(), is_constant())
        bias = is_op("nn.bias_add")(conv, is_constant())
        return bias.optional(lambda x: is_op("nn.relu")(x))

    def takes(call):
        while call.op.name != "nn.conv2d":
            call = call.args[0]
        return call.attrs.groups == 1 and [int(d) for d in call.attrs.dilation] == [1, 1]

    return [(NAME + ".conv2d", conv_bias_relu(), takes)]


@tvm.ir.register_op_attr("nn.max_pool2d", "target." + NAME)
def max_pool2d(call):
    return tuple(int(size) for size in call.attrs.pool_size) == (2, 2)


def make_network():
    x = relay.var("x", shape=(1, 4, 8, 8))
    for number in (1, 2):
        x = relay.nn.conv2d(x, relay.var(f"w{number}", shape=(4, 4, 3, 3)), padding=(1, 1))
        x = relay.nn.relu(relay.nn.bias_add(x, relay.var(f"b{number}", shape=(4,))))
    x = relay.nn.softmax(relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2)), axis=1)
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x))


random = np.random.RandomState(1)
shapes = {"w1": (4, 4, 3, 3), "b1": (4,), "w2": (4, 4, 3, 3), "b2": (4,)}
params = {name: tvm.nd.array(random.uniform(-1, 1, shape).astype("float32")) for name, shape in shapes.items()}
mod = make_network()
mod["main"] = bind_params_by_name(mod["main"], params)

seq = tvm.transform.Sequential(
    [
        transform.InferType(),
        transform.MergeComposite(get_pattern_table(NAME)),
        transform.AnnotateTarget(NAME),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
)
with tvm.transform.PassContext(opt_level=3):
    partitioned = seq(mod)

for gvar in partitioned.get_global_vars():
    func = partitioned[gvar]
    if func.attrs and "Compiler" in func.attrs:
        composites = []

        def visit(node, composites=composites):
            if isinstance(node, relay.Function) and node.attrs and "Composite" in node.attrs:
                composites.append(str(node.attrs["Composite"]))

        relay.analysis.post_order_visit(func.body, visit)
        print(gvar.name_hint, "for", func.attrs.Compiler, "has", composites)
        assert func.attrs["global_symbol"] == gvar.name_hint

x = random.uniform(size=(1, 4, 8, 8)).astype("float32")
before = relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
after = relay.create_executor("debug", mod=partitioned).evaluate()(x).numpy()
tvm.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
print("the same values:", after.shape)
