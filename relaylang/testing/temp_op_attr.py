"""TVM's place for `TempOpAttr`: a registered function for as long as a `with` block lasts."""

from relaylang.passes.layout.registry import TempOpAttr

__all__ = ["TempOpAttr"]
