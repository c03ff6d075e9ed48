"""The names of `relaylang.tvm.frontend`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.frontend import from_darknet as from_darknet
from relaylang.tvm.frontend import from_keras as from_keras
from relaylang.tvm.frontend import from_mxnet as from_mxnet
from relaylang.tvm.frontend import from_onnx as from_onnx
from relaylang.tvm.frontend import from_pytorch as from_pytorch
from relaylang.tvm.frontend import from_stablehlo as from_stablehlo
from relaylang.tvm.frontend import from_tensorflow as from_tensorflow
from relaylang.tvm.frontend import from_tflite as from_tflite
