"""NVIDIA's library of kernels, which relaylang does not call."""

from __future__ import annotations


def exists() -> bool:
    """Whether the library is there: it is not."""
    return False


__all__ = ["exists"]
