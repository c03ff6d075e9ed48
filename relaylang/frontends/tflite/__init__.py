"""TFLite: files of schema 3 become Relay programs, in their own layout, NHWC."""

from __future__ import annotations

from relaylang.frontends.tflite.importer import import_tflite

__all__ = ["import_tflite"]
