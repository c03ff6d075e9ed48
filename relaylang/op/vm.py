"""The virtual machine's operators."""

from relaylang.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "op.vm.")
