"""The names of `relaylang.tvm.temp_op_attr`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.temp_op_attr import TempOpAttr as TempOpAttr
