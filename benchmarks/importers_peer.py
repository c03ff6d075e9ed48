"""Imports one network with TVM 0.16, for `benchmarks/importers.py`, in a Python that has TVM.

Its arguments are:

- the folder of the module that makes `llvm` mean this machine
- the file, `.onnx` or `.tflite`
- the shapes of the inputs as JSON: `{"x": [1, 3, 48, 80]}`
- the number of runs

It prints `ready`, then the least processor time in seconds, or `refuses: ` and the error.
"""

import gc
import json
import sys
import time

sys.path.insert(0, sys.argv[1])
import tvm  # noqa: F401
import x86  # noqa: F401
from tvm import relay

sys.setrecursionlimit(1_000_000)
ENOUGH = 20.0  # seconds after which a network is not imported once more


def run(data, kind, shapes):
    if kind == "onnx":
        import onnx

        return relay.frontend.from_onnx(onnx.load_model_from_string(data), shapes)
    import tflite

    return relay.frontend.from_tflite(tflite.Model.GetRootAsModel(bytearray(data), 0))


def main():
    file, shapes, times = sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
    with open(file, "rb") as stream:
        data = stream.read()
    kind = file.rpartition(".")[2]
    __import__(kind)
    print("ready", flush=True)
    best, spent = None, 0.0
    for i in range(times):
        if i and spent > ENOUGH:
            break
        gc.collect()
        start = time.process_time()
        try:
            run(data, kind, shapes)
        except Exception as wrong:
            lines = [line for line in str(wrong).splitlines() if line.strip()] or [type(wrong).__name__]
            print("refuses:", (lines[-1] if "TVMError" in lines[0] or "Traceback" in lines[0] else lines[0])[:200], flush=True)
            return
        seconds = time.process_time() - start
        spent += seconds
        best = seconds if best is None else min(best, seconds)
    print(best, flush=True)


main()
