"""Two layers of a graph convolution: the neighbours of each node as a sparse matrix.

Usage:

    relay tvm examples/legacy/graph_conv.py
"""

from collections import namedtuple

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.testing import run_infer_type

NODES, FEATURES, HIDDEN, CLASSES = 30, 8, 6, 3
random = np.random.default_rng(0)

# an undirected graph with an edge from each node to itself, and the roots of the degrees
edges = (random.random((NODES, NODES)) < 0.1).astype("float32")
neighbours = np.maximum(np.maximum(edges, edges.T), np.eye(NODES, dtype="float32"))
norm = 1 / np.sqrt(neighbours.sum(1, keepdims=True))
rows, columns = np.nonzero(neighbours)
parts = {
    "g_data": neighbours[rows, columns],
    "g_indices": columns.astype("int32"),
    "g_indptr": np.searchsorted(rows, np.arange(NODES + 1)).astype("int32"),
}

Adjacency = namedtuple("Adjacency", ["data", "indices", "indptr"])
adjacency = Adjacency(*[relay.var(name, shape=part.shape, dtype=str(part.dtype)) for name, part in parts.items()])


def graph_conv(name, inputs, depth, width, factors, activation=None):
    dense = relay.nn.dense(relay.multiply(inputs, factors), relay.var(name + ".weight", shape=(width, depth)))
    # the sparse matrix stands on the right: sums over neighbours are (dense' * A')'
    summed = relay.transpose(relay.nn.sparse_dense(relay.transpose(dense), adjacency))
    bias = relay.var(name + ".bias", shape=(width,))
    made = relay.nn.bias_add(relay.multiply(summed, factors), bias, axis=-1)
    return activation(made) if activation is not None else made


factors = relay.var("norm", shape=(NODES, 1))
x = relay.var("x", shape=(NODES, FEATURES))
hidden = graph_conv("first", x, FEATURES, HIDDEN, factors, relay.nn.relu)
scores = graph_conv("second", hidden, HIDDEN, CLASSES, factors)
func = run_infer_type(relay.Function(relay.analysis.free_vars(scores), scores))
print(func.checked_type.ret_type)

params = {**parts, "norm": norm}
for name, width, depth in (("first", HIDDEN, FEATURES), ("second", CLASSES, HIDDEN)):
    params[name + ".weight"] = random.standard_normal((width, depth)).astype("float32")
    params[name + ".bias"] = random.standard_normal(width).astype("float32")

with tvm.transform.PassContext(opt_level=0):
    lib = relay.build(tvm.IRModule.from_expr(func), "llvm", params={k: tvm.nd.array(v) for k, v in params.items()})
module = graph_executor.GraphModule(lib["default"](tvm.device("llvm", 0)))
features = random.standard_normal((NODES, FEATURES)).astype("float32")
module.run(x=features)

values = features
for name in ("first", "second"):
    values = (neighbours @ ((values * norm) @ params[name + ".weight"].T)) * norm + params[name + ".bias"]
    values = np.maximum(values, 0) if name == "first" else values
tvm.testing.assert_allclose(module.get_output(0).numpy(), values, rtol=1e-4, atol=1e-4)
print("the same as with a dense matrix")
