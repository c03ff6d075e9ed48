"""Marks on a program."""

from relaylang.tvm.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "annotation.")
