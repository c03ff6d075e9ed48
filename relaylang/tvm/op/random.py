"""Random numbers from explicit keys."""

from relaylang.tvm.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "random.")
