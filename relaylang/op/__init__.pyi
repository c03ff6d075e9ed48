"""The names of `relaylang.tvm.op`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op import *
