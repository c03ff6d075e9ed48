"""Functions that make calls of quantized operators, as in TVM's `tvm.relay.qnn.op`."""

from relaylang.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "qnn.op.")
