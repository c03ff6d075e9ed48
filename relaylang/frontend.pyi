"""The names of `relaylang.tvm.frontend`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.frontend import from_onnx as from_onnx
