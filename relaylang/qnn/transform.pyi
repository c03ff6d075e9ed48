"""The names of `relaylang.tvm.qnn.transform`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.qnn.transform import *
