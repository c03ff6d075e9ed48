"""TensorFlow: frozen graphs and SavedModels become Relay programs, in their own layout, NHWC."""

from __future__ import annotations

from relaylang.frontends.tensorflow.importer import import_tensorflow

__all__ = ["import_tensorflow"]
