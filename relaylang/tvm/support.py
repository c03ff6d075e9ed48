"""`tvm.support.libinfo`: the libraries that a build of TVM is linked with. Here there are none."""

from __future__ import annotations

from collections import defaultdict


def libinfo() -> dict[str, str]:
    """Every library: OFF."""
    return defaultdict(lambda: "OFF")


__all__ = ["libinfo"]
