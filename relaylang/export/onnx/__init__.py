"""Export to ONNX."""

from relaylang.export.onnx.model import export_onnx

__all__ = ["export_onnx"]
