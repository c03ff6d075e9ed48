"""The names of `tvm` itself."""

from __future__ import annotations

from relaylang.ir import IRModule
from relaylang.tvm.error import TVMError
from relaylang.tvm.registry import get_global_func, register_func, register_object

#: The version of TVM whose names these are.
__version__ = "0.16.0"

__all__ = ["IRModule", "TVMError", "__version__", "get_global_func", "register_func", "register_object"]
