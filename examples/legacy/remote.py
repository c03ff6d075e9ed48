"""Builds a library for another session, uploads and runs it there, as scripts do for boards.

Usage:

    relay tvm examples/legacy/remote.py
"""

import numpy as np
import tvm
from tvm import relay, rpc
from tvm.contrib import graph_executor, utils

x = relay.var("x", shape=(1, 8))
net = relay.nn.softmax(relay.nn.dense(x, relay.var("w", shape=(4, 8))))
mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(net), net))
params = {"w": tvm.nd.array(np.eye(4, 8, dtype="float32"))}

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=tvm.target.Target("llvm"), params=params)
folder = utils.tempdir()
lib.export_library(folder.relpath("net.tar"))

remote = rpc.LocalSession()
remote.upload(folder.relpath("net.tar"))
board = remote.cpu(0)
module = graph_executor.GraphModule(remote.load_module("net.tar")["default"](board))
data = np.arange(8, dtype="float32")[None]
module.set_input("x", data)
module.run()
scores = module.get_output(0).numpy()
print("the best is", int(scores.argmax()), "of", scores.shape[1])
print("a benchmark:", module.benchmark(board, number=2, repeat=2).mean > 0)

array = tvm.nd.array(data, board)
print("an array there:", array.numpy().sum() == data.sum())
