"""Imports an ONNX model, compiles it, and recognises a digit.

Usage:

    relay tvm examples/legacy/import_onnx.py
"""

import os

import numpy as np
import onnx
import tvm
import tvm.relay as relay
from tvm.contrib.graph_executor import GraphModule

HERE = os.path.dirname(os.path.abspath(__file__))
model = onnx.load(os.path.join(HERE, "..", "digits.onnx"))
image = np.load(os.path.join(HERE, "..", "seven.npy"))

name = model.graph.input[0].name
mod, params = relay.frontend.from_onnx(model, shape={name: image.shape}, freeze_params=False)
print(mod["main"].params[0].name_hint, [int(d) for d in mod["main"].params[0].type_annotation.shape])

target = tvm.target.Target("llvm")
with target, tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=target, params=params)
module = GraphModule(lib["default"](tvm.cpu()))
module.set_input(name, image.astype("float32"))
module.run()
print("the digit is", int(np.argmax(module.get_output(0).numpy())))
