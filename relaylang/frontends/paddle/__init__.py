"""PaddlePaddle: a `.pdmodel` or a `.json` with its `.pdiparams` becomes a Relay program."""

from __future__ import annotations

from relaylang.frontends.paddle.importer import import_paddle

__all__ = ["import_paddle"]
