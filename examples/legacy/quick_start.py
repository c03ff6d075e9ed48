"""A network of relay.testing, built as scripts for TVM 0.6 did, saved as three files, loaded and run.

Usage:

    relay tvm examples/legacy/quick_start.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_runtime, util
from tvm.relay import testing

net, params = testing.resnet.get_workload(batch_size=1, num_classes=10, num_layers=18, image_shape=(3, 32, 32))
print(len(net["main"].params), "inputs,", len(params), "of them parameters")

with relay.build_config(opt_level=3):
    graph, lib, params = relay.build(net, tvm.target.create("llvm"), params=params)

ctx = tvm.context("llvm", 0)
image = np.random.default_rng(0).uniform(-1, 1, (1, 3, 32, 32)).astype("float32")
module = graph_runtime.create(graph, lib, ctx)
module.set_input("data", image)
module.set_input(**params)
module.run()
scores = module.get_output(0, tvm.nd.empty((1, 10))).asnumpy()
print("the scores sum to", round(float(scores.sum()), 3))

folder = util.tempdir()
lib.export_library(folder.relpath("net.tar"))
with open(folder.relpath("net.json"), "w") as file:
    file.write(graph)
with open(folder.relpath("net.params"), "wb") as file:
    file.write(relay.save_param_dict(params))
print(sorted(folder.listdir()))

with open(folder.relpath("net.json")) as file:
    module = graph_runtime.create(file.read(), tvm.module.load(folder.relpath("net.tar")), ctx)
with open(folder.relpath("net.params"), "rb") as file:
    module.load_params(bytearray(file.read()))
module.run(data=tvm.nd.array(image))
print("the loaded files give the same:", np.array_equal(module.get_output(0).asnumpy(), scores))
