"""The names of `relaylang.tvm.op.contrib`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.contrib import *
