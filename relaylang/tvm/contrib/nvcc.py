"""NVIDIA's compiler, which relaylang does not use."""

from __future__ import annotations


def have_fp16(compute_version: str) -> bool:
    """Whether a GPU computes with float16: there is none here."""
    return False


__all__ = ["have_fp16"]
