"""TorchScript archives (`torch.jit.save`) become Relay programs. They are read without torch, and no code of them runs."""

from __future__ import annotations

from relaylang.frontends.torch.torchscript.archive import is_torchscript
from relaylang.frontends.torch.torchscript.importer import import_torchscript

__all__ = ["import_torchscript", "is_torchscript"]
