"""MXNet: symbols (JSON of versions 0.8 to 1.9) and their parameter files become Relay programs."""

from __future__ import annotations

from relaylang.frontends.mxnet.importer import import_mxnet

__all__ = ["import_mxnet"]
