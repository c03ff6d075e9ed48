"""The whole way from a model to a result with tvmc as a library: load, compile, run, save.

Usage:

    relay tvm examples/legacy/tvmc_python.py
"""

import os

import numpy as np
from tvm.contrib import utils
from tvm.driver import tvmc

HERE = os.path.dirname(os.path.abspath(__file__))
image = np.load(os.path.join(HERE, "..", "seven.npy")).astype("float32")
folder = utils.tempdir()

model = tvmc.load(os.path.join(HERE, "..", "digits.onnx"))
name = model.mod["main"].params[0].name_hint
model = tvmc.load(os.path.join(HERE, "..", "digits.onnx"), shape_dict={name: list(image.shape)})
model.save(folder.relpath("digits.model"))

package = tvmc.compile(model, target="llvm", package_path=folder.relpath("digits.tar"))
result = tvmc.run(package, device="cpu", inputs={name: image})
print("the digit is", int(np.argmax(result.get_output("output_0"))))

again = tvmc.TVMCPackage(package_path=folder.relpath("digits.tar"))
timed = tvmc.run(again, device="cpu", inputs={name: image}, benchmark=True, repeat=2, number=3)
same = np.array_equal(timed.outputs["output_0"], result.outputs["output_0"])
print("times:", len(timed.times.results), "and the same result:", same)
