"""Imports networks of one format with TVM 0.16, for `benchmarks/importers.py`, in a Python that has TVM.

Its arguments are:

- the folder of the module that makes `llvm` mean this machine
- the format
- the number of runs

It prints `ready`, and then reads a file and the shapes of its inputs from each line: `["net.onnx", {"x": [1, 3, 48, 80]}]`. It
answers with the least processor time in seconds, or `refuses: ` and the error. A time includes that of the framework's reader.
RELAY_PEERS names a folder with a folder per format, which goes to the front of Python's path:

- `mxnet`: `pip install --no-deps --target mxnet mxnet==1.9.1 requests graphviz 'numpy<1.24'`
- `tensorflow` and `keras`: `pip install --target tensorflow 'tensorflow-cpu==2.12.*'`
- `coreml`: `pip install --target coreml coremltools==7.2`
- `paddle`: `pip install --target paddle paddlepaddle==2.6.2 'numpy<1.27' 'protobuf<5'`
- `darknet`: `libdarknet.so`, which the Makefile of Darknet's commit 777b0982 builds, whose layers
  TVM states; TVM's module of Darknet needs cffi and OpenCV
- `caffe`: `caffe_pb2.py`, which protoc makes of Caffe's `caffe.proto`
"""

import gc
import json
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
ORACLE, FORMAT, TIMES = sys.argv[1:]
OWN = os.path.join(os.environ.get("RELAY_PEERS", ""), FORMAT)
sys.path[:0] = [OWN, ORACLE]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402

if FORMAT == "paddle":
    import paddle  # noqa: F401  # as MXNet
if FORMAT == "mxnet":
    for name, kind in (("bool", bool), ("object", object), ("int", int), ("float", float)):
        setattr(np, name, kind)  # MXNet 1.9 has the names that numpy had for Python's own types
    import mxnet  # noqa: F401  # it ends by a fault of memory when TVM's libraries are loaded before it
import tvm  # noqa: E402,F401
import x86  # noqa: E402,F401
from tvm import relay  # noqa: E402

sys.setrecursionlimit(1_000_000)
ENOUGH = 20.0  # seconds after which a network is not imported once more


def read(file):
    with open(file, "rb") as stream:
        return stream.read()


def beside(file, ending):
    return os.path.splitext(file)[0] + ending


def of_onnx():
    import onnx

    return lambda file, shapes: relay.frontend.from_onnx(onnx.load_model_from_string(read(file)), shapes)


def of_tflite():
    import tflite

    return lambda file, shapes: relay.frontend.from_tflite(tflite.Model.GetRootAsModel(bytearray(read(file)), 0))


def of_mxnet():
    import mxnet

    def run(file, shapes):
        stem, weights = file.replace("-symbol.json", ""), {}
        for ending in ("-0000.params", "-0013.params"):
            if os.path.exists(stem + ending):
                weights = mxnet.nd.load(stem + ending)
        parts = [{n[4:]: v for n, v in weights.items() if n.startswith(kind)} for kind in ("arg:", "aux:")]
        return relay.frontend.from_mxnet(mxnet.sym.load(file), shapes, arg_params=parts[0], aux_params=parts[1])

    return run


def of_tensorflow():
    from tvm.relay.frontend.tensorflow_parser import TFParser

    def run(file, shapes):
        graph = TFParser(file).parse()
        return relay.frontend.from_tensorflow(graph, shape=shapes, outputs=[graph.node[-1].name])

    return run


def of_keras():
    from tensorflow import keras

    return lambda file, shapes: relay.frontend.from_keras(keras.models.load_model(file, compile=False), shapes, "NHWC")


def of_coreml():
    import coremltools

    return lambda file, shapes: relay.frontend.from_coreml(coremltools.models.MLModel(file, skip_model_load=True), shapes)


def of_paddle():
    import paddle

    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())

    def run(file, shapes):
        program, *_ = paddle.static.load_inference_model(beside(file, ""), executor)
        return relay.frontend.from_paddle(program, shapes, paddle.static.global_scope())

    return run


def of_darknet():
    from tvm.relay.testing.darknet import __darknetffi__

    library = __darknetffi__.dlopen(os.path.join(OWN, "libdarknet.so"))

    def run(file, shapes):
        net = library.load_network(file.encode(), beside(file, ".weights").encode(), 0)
        return relay.frontend.from_darknet(net, shapes["data"], "float32")

    return run


def of_caffe():
    import caffe_pb2
    from google.protobuf import text_format

    def run(file, shapes):
        net, weights = caffe_pb2.NetParameter(), caffe_pb2.NetParameter()
        text_format.Merge(read(file).decode(), net)
        weights.ParseFromString(read(beside(file, ".caffemodel")))
        return relay.frontend.from_caffe(weights, net, shapes, dict.fromkeys(shapes, "float32"))

    return run


def measure(run, file, shapes):
    shapes = {name: tuple(shape) for name, shape in shapes.items()}
    best, spent = None, 0.0
    for i in range(int(TIMES)):
        if i and spent > ENOUGH:
            break
        gc.collect()
        start = time.process_time()
        try:
            run(file, shapes)
        except Exception as wrong:
            lines = [line for line in str(wrong).splitlines() if line.strip()] or [type(wrong).__name__]
            return "refuses: " + (lines[-1] if "TVMError" in lines[0] or "Traceback" in lines[0] else lines[0])[:200]
        seconds = time.process_time() - start
        spent += seconds
        best = seconds if best is None else min(best, seconds)
    return best


def main():
    run = globals()[f"of_{FORMAT}"]()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # frameworks print to the standard output, too
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(measure(run, *json.loads(line)), file=answers, flush=True)


main()
