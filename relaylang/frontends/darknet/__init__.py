"""Darknet: `.cfg` files with their `.weights` become Relay programs, in the layout NCHW."""

from __future__ import annotations

from relaylang.frontends.darknet.importer import import_darknet

__all__ = ["import_darknet"]
