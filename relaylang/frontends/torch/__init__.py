"""PyTorch: exported programs (`.pt2`) and TorchScript archives (`.pt`) become Relay programs. Their files are read without torch."""

from __future__ import annotations

from relaylang.frontends.torch.importer import import_pytorch

__all__ = ["import_pytorch"]
