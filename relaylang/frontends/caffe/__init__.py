"""Caffe: a `.prototxt` with its `.caffemodel` becomes a Relay program, in the layout NCHW."""

from __future__ import annotations

from relaylang.frontends.caffe.importer import import_caffe

__all__ = ["import_caffe"]
