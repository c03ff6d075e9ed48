"""Networks: convolutions, pools, norms, activations."""

from relaylang.tvm.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "nn.")
