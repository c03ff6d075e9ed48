"""`TempOpAttr` where TVM has it: a function is registered for an operator while a `with` block runs."""

from relaylang.passes.layout.registry import TempOpAttr

__all__ = ["TempOpAttr"]
