"""The names of `relaylang.tvm.op.vision`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.vision import *
