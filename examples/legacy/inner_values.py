"""The values inside a compiled network, and its nodes, by the debug executor.

Usage:

    relay tvm examples/legacy/inner_values.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.relay import testing

data = relay.var("data", shape=(2, 4))
hidden = relay.nn.relu(relay.nn.dense(data, relay.var("fc1_weight", shape=(8, 4))))
scores = relay.nn.softmax(relay.nn.dense(hidden, relay.var("fc2_weight", shape=(3, 8))))
mod, params = testing.create_workload(relay.Function(relay.analysis.free_vars(scores), scores))

lib = relay.build(mod, target="llvm", params=params)
x = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
module.run(data=x)
result = module.get_output(0).numpy()
print("each row sums to 1:", np.allclose(result.sum(1), 1))

module = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(0))
module.set_input(**lib.get_params())
module.set_input("data", x)
nodes = module.debug_datum.get_graph_nodes()
inner = module.debug_get_output(nodes[-1]["name"], tvm.nd.empty((2, 3)))
print("the last node has the result:", np.allclose(inner.numpy(), result))
print("kinds of nodes:", sorted({node["op"] for node in nodes}))
