"""What scripts ask of parts of TVM that relaylang lacks: a part is not there, or does nothing.

`relaylang.tvm.names` has a row for each name.
"""

from __future__ import annotations

from collections import defaultdict


def has_cudnn() -> bool:
    """Whether NVIDIA's library of kernels is there: it is not."""
    return False


def have_fp16(compute_version: str) -> bool:
    """Whether a GPU computes with float16: there is none here."""
    return False


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of LLVM: 0, or None with `allow_none`, as there is none."""
    return None if allow_none else 0


def libinfo() -> dict[str, str]:
    """The libraries that a build of TVM is linked with, each OFF."""
    return defaultdict(lambda: "OFF")


def install_request_hook(depth: int) -> None:
    """Does nothing: in TVM's own builds it lets downloads of tutorials go to a mirror."""


class TECompiler:
    """The cache of kernels, which keeps nothing: every program is compiled for itself."""

    def clear(self) -> None:
        """Forget all kernels: there are none."""


def te_compiler() -> TECompiler:
    """The cache of this process."""
    return TECompiler()
