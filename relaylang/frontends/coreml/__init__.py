"""Core ML: neural networks (`.mlmodel`) and ML programs (`.mlpackage`) become Relay programs, in the layout NCHW."""

from __future__ import annotations

from relaylang.frontends.coreml.importer import import_coreml

__all__ = ["import_coreml"]
