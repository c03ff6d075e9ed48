"""`TempOpAttr`: a function is registered for an operator while a `with` block runs."""

from relaylang.tvm.temp_op_attr import TempOpAttr

__all__ = ["TempOpAttr"]
