"""A network for a microcontroller: the AOT executor, the C runtime, and an archive for a firmware's project.

Usage:

    relay tvm examples/legacy/micro.py
"""

import json
import tarfile

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import utils
from tvm.micro import export_model_library_format
from tvm.relay.backend import Executor, Runtime

audio = relay.var("audio", shape=(1, 16), dtype="int8")
weight = relay.const(np.random.RandomState(0).randint(-20, 20, (4, 16)).astype("int8"))
scores = relay.nn.dense(audio, weight, out_dtype="int32")
scores = relay.cast(relay.clip(relay.right_shift(scores, relay.const(5)), -128, 127), "int8")
mod = tvm.IRModule.from_expr(relay.Function([audio], scores))

executor = Executor("aot", {"unpacked-api": True, "interface-api": "c", "workspace-byte-alignment": 8})
runtime = Runtime("crt")
with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
    module = relay.build(mod, target="c -keys=cpu", executor=executor, runtime=runtime, mod_name="words")
print(executor, runtime)

folder = utils.tempdir()
path = folder.relpath("words.tar")
export_model_library_format(module, path)
with tarfile.open(path) as archive:
    names = [name.lstrip("./") for name in archive.getnames()]
    metadata = json.load(archive.extractfile(next(m for m in archive.getmembers() if m.name.endswith("metadata.json"))))
print("C files:", any(name.endswith(".c") for name in names), "and a header:", any(name.endswith("words.h") for name in names))
print("the archive's version:", metadata["version"], "with the modules", sorted(metadata["modules"]))
