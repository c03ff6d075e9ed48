"""Turns dense layers with many zeros into sparse ones, after the weights are known.

Usage:

    relay tvm examples/legacy/sparse.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import data_dep_optimization as ddo

BLOCK = (16, 1)
random = np.random.default_rng(3)


def pruned(rows, columns, density):
    """A matrix of blocks, of which a share is not zero."""
    kept = random.random((rows // BLOCK[0], columns // BLOCK[1])) < density
    return (random.standard_normal((rows, columns)) * np.kron(kept, np.ones(BLOCK))).astype("float32")


x = relay.var("x", shape=(4, 64))
first = relay.nn.relu(relay.nn.dense(x, relay.transpose(relay.var("w1", shape=(64, 128)), axes=[1, 0])))
second = relay.nn.dense(first, relay.var("w2", shape=(32, 128)))
mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(second), second))
weights = {"w1": pruned(128, 64, 0.2).T.copy(), "w2": random.standard_normal((32, 128)).astype("float32")}
params = {name: tvm.nd.array(value) for name, value in weights.items()}


def operators(func):
    return sorted(str(op) for op in relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func)))


func, params = ddo.simplify_fc_transpose.convert(mod["main"], params)
print("transposes are gone:", "transpose" not in operators(func))
func, params = ddo.bsr_dense.convert(func, params, BLOCK, sparsity_threshold=0.6)
print(operators(func))
print("parameters:", sorted({name.rpartition(".")[2] if "." in name else name for name in params}))

sparse = tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(func, params))
lib = relay.build(relay.transform.InferType()(sparse), target="llvm")
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
data = random.standard_normal((4, 64)).astype("float32")
module.run(x=data)
wanted = np.maximum(data @ weights["w1"], 0) @ weights["w2"].T
tvm.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-3)
print("the same values")
