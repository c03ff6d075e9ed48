"""The names of `relaylang.tvm.op.annotation`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.annotation import *
