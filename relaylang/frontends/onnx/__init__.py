"""ONNX: models of opsets 7 and later become Relay programs."""

from __future__ import annotations

from relaylang.frontends.onnx.importer import import_onnx

__all__ = ["import_onnx"]
