"""A small convolutional network, built with the API of tvm.relay, compiled, run and timed.

Usage:

    relay tvm examples/legacy/conv_net.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor


def conv_block(data, name, channels, strides=(1, 1)):
    weight = relay.var(name + "_weight")
    conv = relay.nn.conv2d(data, weight, channels=channels, kernel_size=(3, 3), strides=strides, padding=(1, 1))
    return relay.nn.relu(relay.nn.bias_add(conv, relay.var(name + "_bias")))


data = relay.var("data", relay.TensorType((1, 3, 32, 32), "float32"))
net = conv_block(data, "conv1", 16)
net = conv_block(net, "conv2", 32, strides=(2, 2))
net = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(net))
net = relay.nn.softmax(relay.nn.dense(net, relay.var("fc_weight"), units=10))
func = relay.Function(relay.analysis.free_vars(net), net)

mod, params = relay.testing.create_workload(func)
print(mod["main"].checked_type.ret_type.shape[1].value, "classes,", len(params), "parameters")

dev = tvm.cpu(0)
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)

module = graph_executor.GraphModule(lib["default"](dev))
image = np.random.RandomState(0).uniform(size=(1, 3, 32, 32)).astype("float32")
module.set_input("data", tvm.nd.array(image))
module.run()
scores = module.get_output(0).numpy()

interpreted = relay.create_executor("debug", mod, dev, "llvm").evaluate()(image, **params).numpy()
tvm.testing.assert_allclose(scores, interpreted, rtol=1e-5, atol=1e-6)
print("the scores sum to", round(float(scores.sum()), 5))

timer = module.module.time_evaluator("run", dev, number=2, repeat=3)
results = np.array(timer().results)
print(len(results), "times of a run, all positive:", bool((results > 0).all()))
