"""The names of `relaylang.tvm.op.image`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.image import *
